//! Webhooks behind TLS, with an authority of the test's own.

use std::path::PathBuf;
use std::sync::Arc;

use kube_scheduler::framework::NodeRef;
use kube_scheduler::model::NodeInfo;
use kube_scheduler::testing::{node, pod};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};

use super::{keep, only, with};
use crate::certificates::{self, Authority, Pair, params_of_host};
use crate::world::webhook::{Webhook, secure_webhook};

/// An authority whose certificate may also be a server's.
fn authority() -> Authority {
    Authority::of(params_of_host("127.0.0.1"))
}

/// A server that shows this certificate, and wants one of `clients` if that is given.
fn server(pair: &Pair, clients: Option<&Authority>) -> Webhook {
    let verifier = match clients {
        None => WebPkiClientVerifier::no_client_auth(),
        Some(authority) => authority.clients().build().expect("a verifier"),
    };
    secure_webhook(certificates::server(pair, verifier), |_| keep(&["n"]))
}

/// Asks the extender once; the error's text if it fails.
fn ask(hook: &Webhook, more: Value) -> Result<(), String> {
    let base = json!({"urlPrefix": hook.secure_url(), "filterVerb": "filter", "nodeCacheCapable": true});
    let extender = only(&with(base, more))?;
    let info: NodeInfo = node("n").info();
    let json = pod("p").json();
    let mut pod: kube_scheduler::k8s::Pod = serde_json::from_value(json.clone()).expect("a pod");
    let raw = serde_json::value::to_raw_value(&json).expect("it can be written");
    pod.original = Some(kube_scheduler::k8s::Original::of_pod(&raw).expect("an object"));
    let pod = kube_scheduler::model::PodInfo::new(Arc::new(pod), &kube_scheduler::model::LabelClasses::default());
    extender
        .filter(&pod, &[NodeRef::outside(&info)])
        .map(|_| ())
        .map_err(|error| error.to_string().replace(&hook.secure_url(), "URL"))
}

fn data(pem: &str) -> String {
    use std::fmt::Write as _;
    // The configuration's base64, a symbol at a time: tests need no crate for that.
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in pem.as_bytes().chunks(3) {
        let bits = chunk.iter().enumerate().fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let symbol = char::from(SYMBOLS[(bits >> (18 - 6 * at) & 0x3f) as usize]);
            let _ = write!(text, "{}", if at <= chunk.len() { symbol } else { '=' });
        }
    }
    text
}

fn file(name: &str, pem: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tls");
    std::fs::create_dir_all(&folder).expect("a folder for test files");
    let path = folder.join(name);
    std::fs::write(&path, pem).expect("a test file is written");
    path
}

const UNTRUSTED: &str =
    "Post \"URL/filter\": tls: failed to verify certificate: x509: certificate signed by unknown authority";

#[test]
fn authorities_of_data_and_files() {
    let (ours, other) = (authority(), authority());
    let hook = server(&ours.pair("127.0.0.1"), None);
    let with_ca = |pem: &str| json!({"enableHTTPS": true, "tlsConfig": {"caData": data(pem)}});
    assert_eq!(ask(&hook, with_ca(&ours.pem())), Ok(()));
    assert_eq!(ask(&hook, with_ca(&other.pem())), Err(UNTRUSTED.to_owned()));
    let path = file("ca.pem", &ours.pem());
    // Data goes before the file.
    let both = json!({"tlsConfig": {"caData": data(&other.pem()), "caFile": path}});
    assert_eq!(ask(&hook, both), Err(UNTRUSTED.to_owned()));
    assert_eq!(ask(&hook, json!({"tlsConfig": {"caFile": path}})), Ok(()));
    assert_eq!(hook.take_paths(), ["/filter"; 2]);
}

#[test]
fn an_authority_may_speak_for_itself() {
    let ours = authority();
    let hook = server(&ours.own_pair(), None);
    assert_eq!(ask(&hook, json!({"tlsConfig": {"caData": data(&ours.pem())}})), Ok(()));
    let elsewhere = json!({"tlsConfig": {"caData": data(&ours.pem()), "serverName": "other.example"}});
    assert!(ask(&hook, elsewhere).is_err_and(|error| error.contains("failed to verify certificate")));
}

#[test]
fn without_authority() {
    let ours = authority();
    let hook = server(&ours.pair("127.0.0.1"), None);
    assert_eq!(ask(&hook, json!({"enableHTTPS": true})), Ok(()), "nothing to check against");
    assert_eq!(ask(&hook, json!({"tlsConfig": {"insecure": true}})), Ok(()));
    assert!(ask(&hook, json!({})).is_err(), "the system does not know the authority");
    let both = json!({"tlsConfig": {"insecure": true, "caData": data(&ours.pem())}});
    let text = "couldn't build extenders: specifying a root certificates file with the insecure flag is not allowed";
    assert_eq!(ask(&hook, both), Err(text.to_owned()));
}

#[test]
fn a_server_of_another_name() {
    let ours = authority();
    let hook = server(&ours.pair("extender.example"), None);
    let named = |name: &str| json!({"tlsConfig": {"caData": data(&ours.pem()), "serverName": name}});
    assert_eq!(ask(&hook, named("extender.example")), Ok(()));
    assert!(ask(&hook, named("")).is_err_and(|error| error.contains("failed to verify certificate")));
    assert!(ask(&hook, named("a b")).is_err_and(|error| error.starts_with("couldn't build extenders: ")));
}

#[test]
fn a_server_that_wants_to_know_the_client() {
    let ours = authority();
    let hook = server(&ours.pair("127.0.0.1"), Some(&ours));
    let client = ours.pair("scheduler");
    let ca = data(&ours.pem());
    let by_data = json!({"caData": ca, "certData": data(&client.certificate), "keyData": data(&client.key)});
    assert_eq!(ask(&hook, json!({"tlsConfig": by_data})), Ok(()));
    let (cert, key) = (file("client.pem", &client.certificate), file("client.key", &client.key));
    let by_file = json!({"tlsConfig": {"caData": ca, "certFile": cert, "keyFile": key}});
    assert_eq!(ask(&hook, by_file), Ok(()));
    assert!(ask(&hook, json!({"tlsConfig": {"caData": ca}})).is_err(), "it shows none");
    let mixed = json!({"tlsConfig": {"caData": ca, "certFile": cert, "keyData": data(&ours.pair("another").key)}});
    assert_eq!(
        ask(&hook, mixed),
        Err("couldn't build extenders: tls: private key does not match public key".to_owned())
    );
}

#[test]
fn settings_that_cannot_be_used() {
    let build = |tls: Value| only(&json!({"urlPrefix": "https://host", "tlsConfig": tls})).map(|_| ());
    let check =
        |tls: Value, expected: &str| assert_eq!(build(tls), Err(format!("couldn't build extenders: {expected}")));
    check(json!({"caFile": "/no/such"}), "open /no/such: no such file or directory");
    check(json!({"caData": "YWJj"}), "unable to load root certificates: unable to parse bytes as PEM block");
    check(json!({"certData": "YWJj", "keyData": "YWJj"}), "tls: failed to find any PEM data in certificate input");
    check(json!({"certFile": "/no/such", "keyFile": "/no/such"}), "open /no/such: no such file or directory");
    check(json!({"certFile": "/no/such"}), "open /no/such: no such file or directory");
    check(json!({"keyFile": "/no/such"}), "open /no/such: no such file or directory");
    assert_eq!(build(json!({"certData": "YWJj"})), Ok(()), "one without the other is none");
}
