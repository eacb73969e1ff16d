//! Faults of serving: invalid files, addresses that cannot be listened on, and API servers that do not answer. Both schedulers end
//! with the same error, or go on and give the same responses.

use std::fmt::Display;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use libtest_mimic::Failed;
use rcgen::{CertificateParams, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::Value;

use super::credentials::{identity, own_pkcs8};
use super::shape::shape;
use crate::certificates::{Authority, params_of_subject};
use crate::support::client::{Client, Identity};
use crate::support::cluster::{ControlPlane, GUEST, Process, free_ports, wait_for};
use crate::support::programs::program;
use crate::surface::{Whose, judge, scratch};

/// Timeout for a scheduler to start, or to reload a changed file.
const BOUND: Duration = Duration::from_mins(2);

fn text(error: impl Display) -> String {
    error.to_string()
}

/// Command lines that end by themselves: each is a name and its flags, in which words with `/` are files of the folder.
const REFUSED: &[&str] = &[
    "--tls-cert-file=@/none --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/none",
    "--tls-cert-file=@/good.crt",
    "--tls-private-key-file=@/good.key",
    "--tls-cert-file=@/garbage --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/garbage",
    "--tls-cert-file=@/empty --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/empty",
    "--tls-cert-file=@/good.key --tls-private-key-file=@/good.crt",
    "--tls-cert-file=@/good.key --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/good.crt",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/other.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/rsa.key",
    "--tls-cert-file=@/rsa.crt --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/folder --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/folder",
    "--tls-cert-file=@/good.crt/x --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/loop --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/broken.crt --tls-private-key-file=@/good.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/broken.key",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/parameters",
    // What is taken is told by an error that comes later.
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/good.key --tls-min-version=none",
    "--tls-cert-file=@/blanks.crt --tls-private-key-file=@/good.key --tls-min-version=none",
    "--tls-cert-file=@/headers.crt --tls-private-key-file=@/good.key --tls-min-version=none",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/label.key --tls-min-version=none",
    "--tls-cert-file=@/good.crt --tls-private-key-file=@/two.key --tls-min-version=none",
    "--client-ca-file=@/blanks.crt --authorization-always-allow-paths=/a*b",
    "--client-ca-file=@/headers.crt",
    "--tls-sni-cert-key=@/none,@/good.key",
    "--tls-sni-cert-key=@/good.crt,@/other.key",
    "--tls-sni-cert-key=@/garbage,@/good.key",
    "--tls-sni-cert-key=@/good.crt,@/good.key --tls-sni-cert-key=@/good.crt,@/none:a.example",
    "--client-ca-file=@/none",
    "--client-ca-file=@/empty",
    "--client-ca-file=@/garbage",
    "--client-ca-file=@/folder",
    "--client-ca-file=@/good.key",
    "--client-ca-file=@/broken.crt",
    "--requestheader-client-ca-file=@/none",
    "--requestheader-client-ca-file=@/empty",
    "--requestheader-client-ca-file=@/garbage",
    "--requestheader-client-ca-file=@/broken.crt",
    "--authentication-kubeconfig=@/none",
    "--authentication-kubeconfig=@/empty",
    "--authentication-kubeconfig=@/garbage",
    "--authentication-kubeconfig=@/folder",
    "--authorization-kubeconfig=@/none",
    "--authorization-kubeconfig=@/empty",
    "--authorization-kubeconfig=@/garbage",
    "--authentication-kubeconfig=@/nobody.conf --authentication-tolerate-lookup-failure=false",
    "--authorization-always-allow-paths=/a*b",
    "--tls-min-version=VersionTLS09",
    "--tls-cipher-suites=TLS_NONE",
    "--secure-port=@TAKEN",
    "--secure-port=@TAKEN --permit-address-sharing",
    "--secure-port=@TAKEN --permit-port-sharing",
    "--bind-address=192.0.2.1",
    "--bind-address=2001:db8::1",
    "--cert-dir=@/garbage",
    "--cert-dir=@/garbage/x",
    "--cert-dir=@/half",
    "--cert-dir=@/odd",
    "--secure-port=@TAKEN --tls-cert-file=@/none --tls-private-key-file=@/none",
    "--tls-cert-file=@/none --tls-private-key-file=@/none --client-ca-file=@/none",
    "--client-ca-file=@/none --authorization-always-allow-paths=/a*b",
];

/// Same exit code and same error.
pub(crate) fn what_cannot_be_served_is_refused_the_same() -> Result<(), Failed> {
    let folder = scratch("unservable")?;
    write_files(&folder)?;
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(text)?;
    let port = taken.local_addr().map_err(text)?.port();
    judge(
        REFUSED,
        |line| format!("kube-scheduler {line}"),
        |line| {
            let [free] = free_ports()?;
            let at = folder.display().to_string();
            let mut arguments: Vec<String> =
                line.split(' ').map(|word| word.replace("@TAKEN", &port.to_string()).replace('@', &at)).collect();
            if !line.contains("--bind-address") {
                arguments.push("--bind-address=127.0.0.1".to_owned());
            }
            if !line.contains("--secure-port") {
                arguments.push(format!("--secure-port={free}"));
            }
            arguments.push("--leader-elect=false".to_owned());
            arguments.push(format!("--kubeconfig={at}/nobody.conf"));
            let theirs = Whose::Upstreams.run(&arguments, &folder)?;
            let ours = Whose::Ours.run(&arguments, &folder)?;
            Ok((theirs != ours).then(|| format!("  upstream {theirs:?}\n  ours     {ours:?}")))
        },
    )?;
    drop(taken);
    Ok(fs::remove_dir_all(folder).map_err(text)?)
}

/// A certificate of a name that signs itself, and its key.
fn pair(name: &str) -> Result<(String, String), String> {
    let key = KeyPair::generate().map_err(text)?;
    let params = CertificateParams::new(vec![name.to_owned()]).map_err(text)?;
    let certificate = params.self_signed(&key).map_err(text)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn write_files(folder: &Path) -> Result<(), String> {
    let (crt, key) = pair("good.example")?;
    let (_, other) = pair("other.example")?;
    let status = Command::new(program("certificates")).arg(folder).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("certificates could not be made".to_owned());
    }
    let broken = |kind: &str| format!("-----BEGIN {kind}-----\nAAECAw==\n-----END {kind}-----\n");
    // Object identifier of P-256.
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let blanks = crt.replace('\n', " \t\r\n");
    let headers = crt.replacen('\n', "\nComment: one\n\n", 1);
    let label = key.replace("PRIVATE KEY", "RSA PRIVATE KEY");
    let two = format!("{parameters}{key}");
    let server = "{name: c, cluster: {server: 'https://127.0.0.1:1'}}";
    let nobody = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{server}]\nusers: [{{name: u, user: {{}}}}]\n\
         contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
    );
    for directory in ["folder", "half", "odd"] {
        fs::create_dir(folder.join(directory)).map_err(text)?;
    }
    for (name, text) in [
        ("good.crt", &*crt),
        ("good.key", &*key),
        ("other.key", &*other),
        ("garbage", "garbage: [\n"),
        ("empty", ""),
        ("broken.crt", &*broken("CERTIFICATE")),
        ("broken.key", &*broken("PRIVATE KEY")),
        ("parameters", parameters),
        ("blanks.crt", &*blanks),
        ("headers.crt", &*headers),
        ("label.key", &*label),
        ("two.key", &*two),
        ("nobody.conf", &*nobody),
        ("half/kube-scheduler.crt", &*crt),
        ("odd/kube-scheduler.crt", "garbage"),
        ("odd/kube-scheduler.key", "garbage"),
    ] {
        fs::write(folder.join(name), text).map_err(|error| format!("{name}: {error}"))?;
    }
    for (from, to) in [("ca.crt", "rsa.crt"), ("sa.key", "rsa.key")] {
        fs::rename(folder.join(from), folder.join(to)).map_err(text)?;
    }
    std::os::unix::fs::symlink("loop", folder.join("loop")).map_err(text)
}

/// A scheduler that serves, and who asks it.
struct Served<'a> {
    plane: &'a ControlPlane,
    process: Process,
    client: Client,
}

impl<'a> Served<'a> {
    fn start(plane: &'a ControlPlane, whose: Whose, name: &str, flags: &[String]) -> Result<Self, String> {
        let [port] = free_ports()?;
        let mut command = Command::new(whose.program());
        command.arg("--kubeconfig").arg(plane.scheduler_kubeconfig());
        command.args(["--leader-elect=false", "--bind-address=127.0.0.1", "--secure-port"]).arg(port.to_string());
        command.args(flags);
        let process = plane.run(&format!("{name}-{whose:?}"), &mut command)?;
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let served = Self { plane, process, client: Client::new(address) };
        wait_for("the endpoints", BOUND, || Ok((served.status("/healthz", None, None) == Some(200)).then_some(())))
            .map_err(|error| format!("{error}; {}", served.process.tail()))?;
        Ok(served)
    }

    /// The status, and what is said of a refusal.
    fn ask(&self, path: &str, token: Option<&str>, identity: Option<&Identity>) -> Result<(u16, String), String> {
        let client = identity.map_or(self.client.clone(), |identity| self.client.with(identity));
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|value| ("authorization", value.as_str())).collect();
        let got = self.plane.runtime.block_on(client.speaking(&["http/1.1"]).ask("GET", path, &headers, ""))?;
        // What is served is compared by another test.
        Ok((got.status, if got.status == 200 { String::new() } else { shape("GET", path, &got) }))
    }

    fn status(&self, path: &str, token: Option<&str>, identity: Option<&Identity>) -> Option<u16> {
        self.ask(path, token, identity).ok().map(|(status, _)| status)
    }

    /// The certificate that is shown.
    fn shown(&self) -> Result<Vec<u8>, String> {
        let (_, shown) = self.plane.runtime.block_on(self.client.connect())?;
        Ok(shown.to_vec())
    }
}

/// While the API server cannot be asked who somebody is, or whether they may, and with tokens whose time is over.
pub(crate) fn who_may_not_is_served_nothing() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let tokens = tokens(&plane)?;
    let reachable = plane.scheduler_kubeconfig();
    let [nowhere] = free_ports()?;
    let unreachable = plane.kubeconfig_through("nowhere", SocketAddr::new(Ipv4Addr::LOCALHOST.into(), nowhere))?;
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, authentication, authorization) in [
        ("both-answer", &reachable, &reachable),
        ("nobody-authenticates", &unreachable, &reachable),
        ("nobody-authorizes", &reachable, &unreachable),
    ] {
        let flags = [
            format!("--authentication-kubeconfig={}", authentication.display()),
            format!("--authorization-kubeconfig={}", authorization.display()),
        ];
        let both = [Whose::Upstreams, Whose::Ours].map(|whose| Served::start(&plane, whose, name, &flags));
        let [theirs, ours] = both;
        let (theirs, ours) = (theirs?, ours?);
        for (who, token) in &tokens {
            for path in ["/healthz", "/metrics", "/configz", "/debug/pprof/symbol"] {
                let ask = |served: &Served<'_>| served.ask(path, token.as_deref(), None);
                let (theirs, ours) = (ask(&theirs), ask(&ours));
                compared += 1;
                if theirs != ours {
                    wrong.push(format!("{name}: {path} by {who}:\n  upstream {theirs:?}\n  ours     {ours:?}"));
                }
                let served = matches!(ours, Ok((200, _)));
                let may = match *who {
                    "an administrator" => name != "nobody-authenticates",
                    "a monitor" => name == "both-answer" && path == "/metrics",
                    _ => false,
                };
                let is_open = path == "/healthz" && !(token.is_some() && name == "nobody-authenticates");
                let is_open = is_open && !matches!(*who, "an expired token" | "no token at all");
                if served != (may || is_open) {
                    wrong.push(format!("{name}: {path} by {who}: {ours:?}"));
                }
            }
        }
    }
    if !wrong.is_empty() {
        return Err(format!("of {compared} answers:\n{}", wrong.join("\n")).into());
    }
    println!("{compared} answers are the same");
    Ok(plane.remove()?)
}

/// Who asks with which token: a service account's is real, and the same one whose time is over.
fn tokens(plane: &ControlPlane) -> Result<Vec<(&'static str, Option<String>)>, String> {
    plane.kubectl(&["create", "serviceaccount", "monitor"])?;
    let role = "--clusterrole=system:monitoring";
    plane.kubectl(&["create", "clusterrolebinding", "monitor", role, "--serviceaccount=default:monitor"])?;
    let token = plane.kubectl(&["create", "token", "monitor", "--duration=10m"])?.trim().to_owned();
    let expired = expired(&token, &own_pkcs8(plane)?)?;
    Ok(vec![
        ("nobody", None),
        ("an administrator", Some("admin-token".to_owned())),
        ("a monitor", Some(token)),
        ("an expired token", Some(expired)),
        ("no token at all", Some("x".to_owned())),
        ("somebody without rights", Some(format!("{GUEST}-token"))),
    ])
}

/// The same token, but over an hour ago.
fn expired(token: &str, key: &[u8]) -> Result<String, String> {
    let mut parts = token.split('.');
    let (Some(header), Some(claims)) = (parts.next(), parts.next()) else { return Err(format!("no token: {token}")) };
    let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).map_err(text)?;
    let mut claims: Value = serde_json::from_slice(&claims).map_err(text)?;
    for claim in ["iat", "nbf", "exp"] {
        claims[claim] = (claims[claim].as_i64().ok_or_else(|| format!("no {claim}: {claims}"))? - 3600).into();
    }
    let signed = format!("{header}.{}", BASE64_URL_SAFE_NO_PAD.encode(claims.to_string()));
    let key = RsaKeyPair::from_pkcs8(key).map_err(text)?;
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).map_err(text)?;
    Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
}

/// Files that become others while a scheduler runs are read again, unless there is nothing in them to be used.
pub(crate) fn files_that_change_are_read_again() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let folder = scratch("changing")?;
    let [first, second] = ["first", "second"].map(|name| Authority::of(params_of_subject(name)));
    let [alice, bob] =
        [(&first, "alice"), (&second, "bob")].map(|(by, name)| identity(by.issuer(), name, &["system:masters"]));
    let pairs = [pair("a.example")?, pair("b.example")?, pair("c.example")?];
    // Whole at once, as kubelet and cert-manager do it.
    let write = |name: &str, text: &str| -> Result<PathBuf, String> {
        let (path, new) = (folder.join(name), folder.join(format!("{name}.new")));
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(|error| error.to_string())?;
        Ok(path)
    };
    let write_pair = |(crt, key): &(String, String)| -> Result<(), String> {
        write("tls.crt", crt)?;
        write("tls.key", key).map(drop)
    };
    write_pair(&pairs[0])?;
    let ca = write("ca.crt", &first.pem())?;
    let at = |name: &str| folder.join(name).display().to_string();
    let flags = [
        "--authentication-skip-lookup".to_owned(),
        format!("--client-ca-file={}", ca.display()),
        format!("--tls-cert-file={}", at("tls.crt")),
        format!("--tls-private-key-file={}", at("tls.key")),
    ];
    let [theirs, ours] = [Whose::Upstreams, Whose::Ours].map(|whose| Served::start(&plane, whose, "changing", &flags));
    let both = [theirs?, ours?];
    let expect = |what: &str, whose: &Identity, expected: u16| -> Result<(), String> {
        for served in &both {
            let status = served.status("/metrics", None, Some(whose));
            if status != Some(expected) {
                return Err(format!("{what}: {status:?} instead of {expected}; {}", served.process.tail()));
            }
        }
        Ok(())
    };
    let until_served = |what: &str, whose: &Identity| -> Result<(), String> {
        for served in &both {
            wait_for(what, BOUND, || Ok((served.status("/metrics", None, Some(whose)) == Some(200)).then_some(())))
                .map_err(|error| format!("{error}; {}", served.process.tail()))?;
        }
        Ok(())
    };
    let until_shown = |number: usize| -> Result<(), String> {
        let pem = pem_der(&pairs[number].0)?;
        for served in &both {
            wait_for(&format!("pair {number}"), BOUND, || Ok((served.shown()? == pem).then_some(())))
                .map_err(|error| format!("{error}; {}", served.process.tail()))?;
        }
        Ok(())
    };
    until_shown(0)?;
    expect("of the first authority", &alice, 200)?;
    expect("of another authority", &bob, 401)?;
    write_pair(&("garbage".to_owned(), "garbage".to_owned()))?;
    write("ca.crt", &second.pem())?;
    until_served("the second authority to be known", &bob)?;
    expect("of an authority that was one", &alice, 401)?;
    until_shown(0)?;
    write("ca.crt", "garbage")?;
    write_pair(&pairs[1])?;
    until_shown(1)?;
    expect("while the file has no authority", &bob, 200)?;
    expect("of an authority that was one", &alice, 401)?;
    fs::remove_file(&ca).map_err(text)?;
    write_pair(&pairs[2])?;
    until_shown(2)?;
    expect("while there is no file", &bob, 200)?;
    expect("of an authority that was one", &alice, 401)?;
    write("ca.crt", &first.pem())?;
    until_served("the first authority to be known again", &alice)?;
    expect("of an authority that was one", &bob, 401)?;
    drop(both);
    fs::remove_dir_all(folder).map_err(text)?;
    Ok(plane.remove()?)
}

/// What is between the lines of a certificate's file.
fn pem_der(pem: &str) -> Result<Vec<u8>, String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    CertificateDer::from_pem_slice(pem.as_bytes()).map(|der| der.to_vec()).map_err(text)
}
