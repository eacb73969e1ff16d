//! Headers that every request of a client has.

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::kubeconfig::{Access, Impersonation};

/// Returns the user agent header and the impersonation headers.
/// Follows `client-go/transport/round_trippers.go#impersonatingRoundTripper.RoundTrip @v1.36.3`.
pub(super) fn common_headers(agent: &str, access: &Access) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &str| {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes())) {
            headers.append(name, value);
        }
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
    headers
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
        let headers = common_headers("kube-scheduler/v1/scheduler", &access);
        let all = |name: &str| -> Vec<_> { headers.get_all(name).iter().map(|v| v.to_str().unwrap()).collect() };
        assert_eq!(all("user-agent"), ["kube-scheduler/v1/scheduler"]);
        assert_eq!(all("impersonate-user"), ["jane"]);
        assert_eq!(all("impersonate-group"), ["a", "b"]);
        assert_eq!(all("impersonate-uid"), [""; 0]);
        assert_eq!(all("impersonate-extra-example.com%2fkey%20%25"), ["v"]);
    }
}
