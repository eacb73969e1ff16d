//! Authentication by a front proxy, which shows its own certificate and names the user in request headers.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;

use super::{Outcome, Peer, User};
use crate::serve::trust::{LatestValue, Trust};
use crate::serve::x509::Subject;

/// Names of the headers that carry the user, and the front proxies that may send them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::serve) struct HeaderNames {
    pub(in crate::serve) username: Vec<String>,
    pub(in crate::serve) uid: Vec<String>,
    pub(in crate::serve) group: Vec<String>,
    pub(in crate::serve) extra_prefix: Vec<String>,
    /// Common names of the allowed front proxies. Empty means any.
    pub(in crate::serve) allowed: Vec<String>,
}

/// Authenticates requests that come from front proxies.
pub(in crate::serve) struct RequestHeader {
    pub(in crate::serve) trust: Arc<Trust>,
    pub(in crate::serve) names: Arc<LatestValue<HeaderNames>>,
}

impl RequestHeader {
    /// Verifies the front proxy's certificate and reads the user from the headers.
    /// Follows `apiserver/pkg/authentication/request/x509/x509.go#Verifier.AuthenticateRequest @v1.36.3`.
    pub(super) fn authenticate(&self, headers: &HeaderMap, peer: &Peer, now: Timestamp) -> Outcome {
        let Some(leaf) = peer.chain.first() else { return Ok(None) };
        let Some(bundle) = self.trust.bundle() else { return Ok(None) };
        bundle.verify(&peer.chain, now)?;
        let names = self.names.get().unwrap_or_default();
        let name = Subject::of(leaf)?.common_name;
        if !names.allowed.is_empty() && !names.allowed.contains(&name) {
            return Err(format!("x509: subject with cn={name} is not in the allowed list"));
        }
        Ok(names.user(headers))
    }
}

impl HeaderNames {
    /// Returns the user that the headers name. Follows
    /// `apiserver/pkg/authentication/request/headerrequest/requestheader.go#AuthenticateRequest @v1.36.3`.
    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let name = first(headers, &self.username).filter(|name| !name.is_empty())?;
        let uid = first(headers, &self.uid).unwrap_or_default();
        let groups = self.group.iter().flat_map(|name| headers.get_all(name.trim()));
        let groups = groups.map(text).filter(|group| !group.is_empty()).collect();
        Some(User { name, uid, groups, extra: self.extra(headers) })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefix {
            let prefix = prefix.trim().to_ascii_lowercase();
            for (name, value) in headers {
                // `HeaderMap` keeps names in lower case.
                let Some(key) = name.as_str().strip_prefix(prefix.as_str()) else { continue };
                let decoded = percent_decode_str(key).decode_utf8().ok().filter(|_| is_escaped_well(key));
                let key = decoded.map_or_else(|| key.to_owned(), std::borrow::Cow::into_owned);
                extra.entry(key).or_default().push(text(value));
            }
        }
        extra
    }
}

/// Whether each `%` is followed by two hexadecimal digits. A key with a malformed escape is not decoded.
fn is_escaped_well(key: &str) -> bool {
    key.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Returns the first non-empty value of these headers.
fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    let values = names.iter().filter_map(|name| headers.get(name.trim()));
    values.map(text).find(|value| !value.is_empty())
}

fn text(value: &http::HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn names() -> HeaderNames {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        HeaderNames {
            username: list(&["X-Remote-User", "X-Other"]),
            uid: list(&["X-Remote-Uid"]),
            group: list(&["X-Remote-Group"]),
            extra_prefix: list(&["X-Remote-Extra-"]),
            allowed: Vec::new(),
        }
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        lines.iter().map(line).fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        })
    }

    #[test]
    fn headers_name_a_user() {
        let check = |lines: &[(&str, &str)], expected: Option<&str>| {
            let got = names()
                .user(&headers(lines))
                .map(|user| format!("{} {} {} {:?}", user.name, user.uid, user.groups.join("+"), user.extra));
            assert_eq!(got.as_deref(), expected);
        };
        check(&[], None);
        check(&[("x-remote-user", "")], None);
        check(&[("x-remote-group", "a")], None);
        check(&[("x-other", "bob")], Some("bob   {}"));
        check(&[("x-other", "bob"), ("x-remote-user", "eve")], Some("eve   {}"));
        check(
            &[("x-remote-user", "eve"), ("x-remote-group", "a"), ("x-remote-group", "b"), ("x-remote-group", "")],
            Some("eve  a+b {}"),
        );
        check(
            &[
                ("x-remote-user", "e"),
                ("x-remote-uid", "7"),
                ("x-remote-extra-a%2fb", "1"),
                ("x-remote-extra-a%2fb", "2"),
            ],
            Some("e 7  {\"a/b\": [\"1\", \"2\"]}"),
        );
        check(&[("x-remote-user", "e"), ("x-remote-extra-a%zz", "1")], Some("e   {\"a%zz\": [\"1\"]}"));
    }
}
