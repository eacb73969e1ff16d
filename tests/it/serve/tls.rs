//! Serving certificates, TLS versions and protocols.

use std::os::unix::fs::PermissionsExt as _;

use http::Version;
use kube_scheduler::serve::{Options, SniCertificate, TlsOptions};
use rcgen::SanType;
use rustls::version::TLS12;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{Client, Folder, Running, authority, options, params_of_subject, refused};

/// Writes a pair for a name, and answers with its files and the certificate.
fn pair(folder: &Folder, file: &str, name: &str) -> (String, String, Vec<u8>) {
    let mut params = params_of_subject(name);
    params.subject_alt_names = vec![SanType::DnsName(name.try_into().expect("a name"))];
    let pair = authority("authority").pair_of(&params);
    let cert_file = folder.write(&format!("{file}.crt"), &pair.certificate);
    (cert_file, folder.write(&format!("{file}.key"), &pair.key), pair.der)
}

async fn shown(client: &Client, name: &str) -> Vec<u8> {
    let client = Client { name: name.to_owned(), ..client.clone() };
    client.get("/healthz", None).await.certificate.to_vec()
}

#[tokio::test]
async fn a_certificate_that_is_made_is_kept_where_there_is_a_folder() {
    let folder = Folder::new();
    let kept = Options { cert_dir: Some(folder.path().join("new")), ..options() };
    let first = Running::start(kept.clone(), None).await;
    let second = Running::start(kept.clone(), None).await;
    assert_eq!(shown(&first.client, "localhost").await, shown(&second.client, "localhost").await);
    let mode = |name: &str| {
        let file = std::fs::metadata(folder.path().join("new").join(name)).expect("it was written");
        file.permissions().mode() & 0o777
    };
    assert_eq!((mode("kube-scheduler.crt"), mode("kube-scheduler.key")), (0o644, 0o600));
    let third = Running::start(options(), None).await;
    assert_ne!(shown(&first.client, "localhost").await, shown(&third.client, "localhost").await);
    let key = folder.path().join("new/kube-scheduler.key");
    std::fs::remove_file(&key).expect("it was there");
    let expected = format!(
        "error creating self-signed certificates: error reading {}, certificate and key must be supplied as a pair",
        key.display()
    );
    assert_eq!(refused(kept).await, expected);
}

#[tokio::test]
async fn the_name_that_is_asked_for_decides_which_certificate_is_shown() {
    let folder = Folder::new();
    let (cert_file, key_file, plain) = pair(&folder, "plain", "plain.example");
    let sni = |file: &str, name: &str, names: &[&str]| {
        let (cert_file, key_file, der) = pair(&folder, file, name);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        (SniCertificate { cert_file, key_file, names }, der)
    };
    let (own, own_der) = sni("own", "own.example", &[]);
    let (given, given_der) = sni("given", "whatever", &["given.example", "*.wild.example", "127.0.0.1"]);
    let (late, _) = sni("late", "own.example", &[]);
    let running = Running::start(Options { cert_file, key_file, sni: vec![own, given, late], ..options() }, None).await;
    let check = async |name: &str, expected: &[u8]| {
        assert!(shown(&running.client, name).await == expected, "{name}");
    };
    check("plain.example", &plain).await;
    check("unknown.example", &plain).await;
    check("own.example", &own_der).await;
    check("OWN.example", &own_der).await;
    check("given.example", &given_der).await;
    check("a.wild.example", &given_der).await;
    check("a.b.wild.example", &plain).await;
    // By its own name, though other names were given for it.
    check("whatever", &given_der).await;
    // Who names no host gets the certificate for the address.
    check("127.0.0.1", &given_der).await;
}

#[tokio::test]
async fn a_certificate_that_is_replaced_is_shown_from_then_on() {
    let folder = Folder::new();
    let (cert_file, key_file, first) = pair(&folder, "one", "one.example");
    let running = Running::start(Options { cert_file, key_file, ..options() }, None).await;
    assert!(shown(&running.client, "one.example").await == first);
    folder.write("one.crt", "broken");
    running.clock.advance(std::time::Duration::from_secs(2));
    assert!(shown(&running.client, "one.example").await == first, "what was of use stays");
    let (_, _, second) = pair(&folder, "one", "one.example");
    running.until("the new certificate", async || shown(&running.client, "one.example").await == second).await;
}

#[tokio::test]
async fn what_cannot_be_shown_is_said_at_the_start() {
    let folder = Folder::new();
    let (cert_file, key_file, _) = pair(&folder, "one", "one.example");
    let (_, other_key, _) = pair(&folder, "other", "one.example");
    let files = |cert_file: &str, key_file: &str| Options {
        cert_file: cert_file.to_owned(),
        key_file: key_file.to_owned(),
        ..options()
    };
    let check = async |options: Options, expected: &str| assert_eq!(refused(options).await, expected);
    check(files(&cert_file, ""), "missing filename for serving cert").await;
    check(files("/nowhere/a", &key_file), "open /nowhere/a: no such file or directory").await;
    check(files(&cert_file, &other_key), "tls: private key does not match public key").await;
    let bad = SniCertificate { cert_file: "/nowhere/a".into(), key_file: key_file.clone(), names: vec![] };
    let expected = "failed to load SNI cert and key: open /nowhere/a: no such file or directory";
    check(Options { sni: vec![bad], ..options() }, expected).await;
    let tls = TlsOptions { min_version: "foo".into(), ..TlsOptions::default() };
    check(Options { tls, ..options() }, "unknown tls version \"foo\"").await;
    let taken = Running::start(options(), None).await;
    let address = taken.client.address;
    let expected = format!(
        "failed to create listener: failed to listen on {address}: listen tcp {address}: bind: address already in use"
    );
    check(Options { port: address.port(), ..options() }, &expected).await;
}

#[tokio::test]
async fn old_versions_are_spoken_only_where_they_may() {
    let check = async |version: &str, spoken: bool| {
        let tls = TlsOptions { min_version: version.to_owned(), ..TlsOptions::default() };
        let running = Running::start(Options { tls, ..options() }, None).await;
        let old = Client { versions: vec![&TLS12], ..running.client.clone() };
        assert_eq!(old.ask("GET", "/healthz", &[], "").await.is_ok(), spoken, "{version}");
        assert_eq!(running.status("/healthz", None).await, 200, "{version}");
    };
    check("", true).await;
    check("VersionTLS10", true).await;
    check("VersionTLS13", false).await;
}

#[tokio::test]
async fn http2_is_spoken_unless_it_is_turned_off() {
    let check = async |disable_http2: bool, offered: &[&'static str], expected: Option<Version>| {
        let running = Running::start(Options { disable_http2, ..options() }, None).await;
        let got = running.client.speaking(offered).ask("GET", "/healthz", &[], "").await;
        assert_eq!(got.ok().map(|got| got.version), expected, "{disable_http2} {offered:?}");
    };
    check(false, &["h2", "http/1.1"], Some(Version::HTTP_2)).await;
    check(false, &["http/1.1"], Some(Version::HTTP_11)).await;
    check(false, &[], Some(Version::HTTP_11)).await;
    check(true, &["h2", "http/1.1"], Some(Version::HTTP_11)).await;
    check(true, &["h2"], None).await;
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_so() {
    let running = Running::start(options(), None).await;
    let mut stream = TcpStream::connect(running.client.address).await.expect("it listens");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("sent");
    let mut told = String::new();
    stream.read_to_string(&mut told).await.expect("an end");
    assert_eq!(told, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
}
