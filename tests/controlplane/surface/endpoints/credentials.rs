//! The identities that send requests: anonymous, tokens, certificates of the API server's CA and of an unknown one, a front proxy.

use std::fs;

use rcgen::{Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs1KeyDer, PrivatePkcs8KeyDer};

use crate::certificates::{Authority, Pair, params_of_client, params_of_subject};
use crate::support::client::{Client, Got, Identity};
use crate::support::cluster::{ControlPlane, GUEST};

/// The name of the authority that `cmd/certificates` makes.
const AUTHORITY: &str = "test authority";

/// One client.
pub(super) struct Credential {
    pub(super) name: &'static str,
    token: Option<String>,
    identity: Option<Identity>,
    headers: Vec<(&'static str, &'static str)>,
}

impl Credential {
    /// Asks once, as this client.
    pub(super) async fn ask(
        &self,
        client: &Client,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Got, String> {
        let client = self.identity.as_ref().map_or(client.clone(), |identity| client.with(identity));
        let bearer = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut all = headers.to_vec();
        all.extend(bearer.iter().map(|value| ("authorization", value.as_str())));
        all.extend(&self.headers);
        client.ask(method, path, &all, body).await
    }
}

/// Nobody first.
pub(super) fn all(plane: &ControlPlane) -> Result<Vec<Credential>, String> {
    let own = Issuer::new(params_of_subject(AUTHORITY), own_key(plane)?);
    let stranger = Authority::of(params_of_subject("a stranger"));
    let one = |name| Credential { name, token: None, identity: None, headers: Vec::new() };
    let token = |name, token: &str| Credential { token: Some(token.to_owned()), ..one(name) };
    let by =
        |name, issuer, who, groups: &[&str]| Credential { identity: Some(identity(issuer, who, groups)), ..one(name) };
    let masters = ("x-remote-group", "system:masters");
    let carol = ("x-remote-user", "carol");
    let proxy = |name, headers: &[(&'static str, &'static str)]| Credential {
        headers: headers.to_vec(),
        ..by(name, &own, "front-proxy", &[])
    };
    Ok(vec![
        one("nobody"),
        token("a bad token", "nobody-knows"),
        token("guest", &format!("{GUEST}-token")),
        token("admin", "admin-token"),
        by("a certificate", &own, "alice", &["system:masters"]),
        by("a certificate without rights", &own, "bob", &["team"]),
        by("a certificate without a name", &own, "", &["system:masters"]),
        by("a stranger's certificate", stranger.issuer(), "alice", &["system:masters"]),
        Credential {
            token: Some("admin-token".into()),
            ..by("a stranger with a token", stranger.issuer(), "alice", &[])
        },
        proxy("a proxy for a master", &[carol, masters]),
        proxy("a proxy for somebody", &[carol]),
        proxy("a proxy for nobody", &[]),
        Credential { headers: vec![carol, masters], ..by("a proxy that may not", &own, "bob", &[]) },
        Credential {
            headers: vec![carol, masters],
            ..by("a proxy of a stranger", stranger.issuer(), "front-proxy", &[])
        },
        Credential { headers: vec![carol, masters], ..one("nobody with headers") },
    ])
}

fn own_key(plane: &ControlPlane) -> Result<KeyPair, String> {
    let key = PrivatePkcs8KeyDer::from(own_pkcs8(plane)?);
    KeyPair::try_from(&key).map_err(|error| error.to_string())
}

/// The key of the API server's authority, which `cmd/certificates` writes in PKCS #1, in PKCS #8. It signs tokens, too.
pub(super) fn own_pkcs8(plane: &ControlPlane) -> Result<Vec<u8>, String> {
    let pem = fs::read(plane.folder().join("sa.key")).map_err(|error| error.to_string())?;
    let key = PrivatePkcs1KeyDer::from_pem_slice(&pem).map_err(|error| error.to_string())?;
    // Version 0, the algorithm rsaEncryption without parameters, and the key as it is.
    let algorithm = [0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
    let mut inner = vec![0x02, 0x01, 0x00];
    inner.extend(algorithm);
    inner.extend(tagged(0x04, key.secret_pkcs1_der()));
    Ok(tagged(0x30, &inner))
}

/// A value with its tag, and its length in two bytes.
fn tagged(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short value").to_be_bytes();
    [&[tag, 0x82][..], &length, value].concat()
}

/// A client's certificate that this authority signs.
pub(super) fn identity(issuer: &Issuer<'static, KeyPair>, name: &str, groups: &[&str]) -> Identity {
    Pair::signed_by(issuer, &params_of_client(name, groups)).into()
}
