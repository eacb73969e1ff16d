//! Headers that every request of a client has.

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::kubeconfig::{Access, Impersonation};
use crate::go::quote::quote;

/// Error for a header that cannot be sent. Without such an error, a request to impersonate a user would run as the client itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("net/http: invalid header field value for {}", quote(_0))]
pub(super) struct InvalidHeader(String);

/// Returns the user agent header and the impersonation headers.
/// Follows `client-go/transport/round_trippers.go#impersonatingRoundTripper.RoundTrip @v1.36.3`.
pub(super) fn common_headers(agent: &str, access: &Access) -> Result<HeaderMap, InvalidHeader> {
    let mut headers = HeaderMap::new();
    let mut invalid = None;
    let mut add =
        |name: &str, value: &str| match (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes())) {
            (Ok(name), Ok(value)) => drop(headers.append(name, value)),
            _ => drop(invalid.get_or_insert_with(|| InvalidHeader(canonical(name)))),
        };
    add(USER_AGENT.as_str(), agent);
    if let Some(Impersonation { user, uid, groups, extra }) = &access.impersonation {
        add("impersonate-user", user);
        if !uid.is_empty() {
            add("impersonate-uid", uid);
        }
        groups.iter().for_each(|group| add("impersonate-group", group));
        for (key, values) in extra {
            let name = format!("impersonate-extra-{}", escaped(key));
            values.iter().for_each(|value| add(&name, value));
        }
    }
    invalid.map_or(Ok(headers), Err)
}

/// Returns a header's name as Go writes it, such as `Impersonate-User`.
fn canonical(name: &str) -> String {
    let mut at_start = true;
    let capital = |letter: char| {
        let letter = if at_start { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() };
        at_start = letter == '-';
        letter
    };
    name.chars().map(capital).collect()
}

/// Escapes a text for use in a header's name.
/// Follows `client-go/transport/round_trippers.go#headerKeyEscape @v1.36.3`.
fn escaped(key: &str) -> String {
    use std::fmt::Write as _;

    let mut text = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_user_agent_and_impersonation_headers() {
        let mut access = Access::new(http::Uri::from_static("https://server:6443"));
        access.impersonation = Some(Impersonation {
            user: "jane".to_owned(),
            uid: String::new(),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: vec![("Example.com/Key %".to_owned(), vec!["v".to_owned()])],
        });
        let headers = common_headers("kube-scheduler/v1/scheduler", &access).expect("all headers can be sent");
        let all = |name: &str| -> Vec<_> { headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect() };
        assert_eq!(all("user-agent"), ["kube-scheduler/v1/scheduler"]);
        assert_eq!(all("impersonate-user"), ["jane"]);
        assert_eq!(all("impersonate-group"), ["a", "b"]);
        assert_eq!(all("impersonate-uid"), [""; 0]);
        assert_eq!(all("impersonate-extra-example.com%2fkey%20%25"), ["v"]);
    }

    #[test]
    fn invalid_impersonation_headers_are_errors() {
        let check = |user: &str, extra: &[(&str, &str)], expected: &str| {
            let mut access = Access::new(http::Uri::from_static("https://server:6443"));
            let extra = extra.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()])).collect();
            let user = user.to_owned();
            access.impersonation = Some(Impersonation { user, uid: String::new(), groups: Vec::new(), extra });
            let error = common_headers("agent", &access).expect_err("a header cannot be sent");
            assert_eq!(error.to_string(), format!("net/http: invalid header field value for \"{expected}\""));
        };
        check("jo\ne", &[], "Impersonate-User");
        check("joe", &[("reason", "a\u{0}b")], "Impersonate-Extra-Reason");
    }
}
