//! Authentication of requests by front proxy, client certificate or bearer token.
//!
//! The first authenticator that succeeds decides the user. If one fails, for example because of an unknown token or an
//! untrusted certificate, the request is unauthorized unless a later one succeeds. Only a request without any credentials
//! is anonymous.

mod cluster;
mod headers;
mod token;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use rustls::pki_types::CertificateDer;

pub(super) use cluster::{Cluster, lookup};
pub(super) use headers::{HeaderNames, RequestHeader};
pub(super) use token::Tokens;

use super::trust::Trust;
use super::x509::Subject;
use crate::clock::Clock;
use crate::serve::gauges::Gauges;

/// User name and group of a request without credentials.
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const AUTHENTICATED: &str = "system:authenticated";

/// Key of the certificate's digest in a user's `extra`.
/// From `apiserver/pkg/authentication/user/user.go#CredentialIDKey @v1.36.3`.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// An authenticated user, or [`User::anonymous`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) groups: Vec<String>,
    pub(super) extra: BTreeMap<String, Vec<String>>,
}

/// Identity that a client has proved on its connection.
#[derive(Clone, Default)]
pub(super) struct Peer {
    /// The client's certificate chain, its own certificate first.
    pub(super) chain: Arc<[CertificateDer<'static>]>,
}

/// Result of one authenticator: a user, `None` if the request has no such credentials, or the error.
type Outcome = Result<Option<User>, String>;

/// All authenticators, which are tried in upstream's order.
/// Follows `apiserver/pkg/authentication/authenticatorfactory/delegating.go#New @v1.36.3`.
pub(super) struct Authenticator {
    pub(super) clock: Clock,
    pub(super) request_header: Option<RequestHeader>,
    pub(super) clients: Option<Arc<Trust>>,
    pub(super) uid_from_certificates: bool,
    pub(super) tokens: Option<Tokens>,
    pub(super) gauges: Arc<Gauges>,
}

impl User {
    /// Returns the user of a request without credentials.
    pub(super) fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// Whether this is the anonymous user or the user has the group `system:unauthenticated`.
    pub(super) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS || self.groups.iter().any(|group| group == UNAUTHENTICATED)
    }

    /// Adds the group `system:authenticated` to a user that is not anonymous.
    /// Follows `apiserver/pkg/authentication/group/authenticated_group_adder.go @v1.36.3`.
    fn authenticated(mut self) -> Self {
        let known = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if self.name != ANONYMOUS && !self.groups.iter().any(known) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

impl Authenticator {
    /// Returns the user of a request. The error says why the credentials are invalid, and is for the log only.
    pub(super) async fn authenticate(&self, headers: &HeaderMap, peer: &Peer) -> Result<User, String> {
        let began = self.clock.mono();
        let outcome = self.union(headers, peer).await;
        let user = outcome.as_ref().ok().map(|user| user.name.as_str());
        self.gauges.authenticated(user, self.clock.mono().seconds_since(began));
        outcome
    }

    async fn union(&self, headers: &HeaderMap, peer: &Peer) -> Result<User, String> {
        let mut errors = Vec::new();
        if let Some(request_header) = &self.request_header {
            match request_header.authenticate(headers, peer, self.clock.now().wall) {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        match self.certificate(peer) {
            Ok(Some(user)) => return Ok(user.authenticated()),
            Ok(None) => {}
            Err(error) => errors.push(error),
        }
        if let Some(tokens) = &self.tokens {
            match Box::pin(tokens.authenticate(headers)).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        match &errors[..] {
            [] => Ok(User::anonymous()),
            [error] => Err(error.clone()),
            errors => Err(format!("[{}]", errors.join(", "))),
        }
    }

    /// Authenticates a client by its certificate.
    /// Follows `apiserver/pkg/authentication/request/x509/x509.go#Authenticator.AuthenticateRequest`,
    /// `#CommonNameUserConversion @v1.36.3`.
    fn certificate(&self, peer: &Peer) -> Outcome {
        let (Some(trust), Some(leaf)) = (&self.clients, peer.chain.first()) else { return Ok(None) };
        let Some(bundle) = trust.bundle() else { return Ok(None) };
        let now = self.clock.now().wall;
        let subject = Subject::of(leaf)?;
        self.gauges.certificate_left(subject.ends - now.as_second());
        bundle
            .verify(&peer.chain, now)
            .map_err(|error| format!("verifying certificate {} failed: {error}", subject.identifier))?;
        if subject.common_name.is_empty() {
            return Ok(None);
        }
        let uid = if self.uid_from_certificates { uid(&subject.uids)? } else { String::new() };
        let id = format!("X509SHA256={}", sha256(leaf));
        let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
        Ok(Some(User { name: subject.common_name, uid, groups: subject.organizations, extra }))
    }
}

/// Returns the only UID of a certificate's subject, or an empty string if there is none.
/// Follows `apiserver/pkg/authentication/request/x509/x509.go#parseUIDFromCert @v1.36.3`.
fn uid(uids: &[String]) -> Result<String, String> {
    match uids {
        [] => Ok(String::new()),
        [uid] if uid.is_empty() => Err("UID cannot be an empty string".to_owned()),
        [uid] => Ok(uid.clone()),
        _ => Err(format!("expected 1 UID, but found multiple: [{}]", uids.join(" "))),
    }
}

fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authenticated_users_get_the_authenticated_group() {
        let check = |name: &str, groups: &[&str], expected: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            let user = User { name: name.to_owned(), groups, ..User::default() };
            assert_eq!(user.authenticated().groups, expected);
        };
        check("alice", &["team"], &["team", AUTHENTICATED]);
        check("alice", &[AUTHENTICATED], &[AUTHENTICATED]);
        check("alice", &[UNAUTHENTICATED], &[UNAUTHENTICATED]);
        check(ANONYMOUS, &[], &[]);
    }

    #[test]
    fn certificate_has_at_most_one_uid() {
        let check = |uids: &[&str], expected: Result<&str, &str>| {
            let got = uid(&uids.iter().map(|uid| (*uid).to_owned()).collect::<Vec<_>>());
            assert_eq!(got.as_deref().map_err(String::as_str), expected);
        };
        check(&[], Ok(""));
        check(&["a"], Ok("a"));
        check(&[""], Err("UID cannot be an empty string"));
        check(&["a", "b"], Err("expected 1 UID, but found multiple: [a b]"));
    }

    #[test]
    fn digests_are_hexadecimal() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
