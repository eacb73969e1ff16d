//! Failures as `Status` objects, in the form that the client accepts.

use http::header::HeaderValue;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use super::negotiate::{self, Query};
use super::reply::{JSON, Reply, reply};
use crate::apimachinery::protobuf::MEDIA_TYPE;
use crate::apimachinery::{Status, accept};
use crate::go::json;

/// Media type of a response, for a `Status` or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Yaml,
    Text,
    Protobuf,
}

/// Forms of a `Status` from endpoints that have no forms of their own, in upstream's order.
pub(super) const ANY_FORM: &[Form] = &[Form::Json, Form::Yaml, Form::Protobuf];

impl Form {
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Json => ("application", "json"),
            Self::Yaml => ("application", "yaml"),
            Self::Text => ("text", "plain"),
            Self::Protobuf => ("application", "vnd.kubernetes.protobuf"),
        }
    }

    pub(super) fn name(self) -> String {
        let (kind, subkind) = self.names();
        format!("{kind}/{subkind}")
    }
}

/// Returns the failure of a request that is not authorized.
pub(super) fn forbidden(message: &str) -> Status {
    Status::failure(403, "Forbidden", format!("forbidden: {message}")).about("", "", "")
}

/// Returns the failure of a request that accepts none of these forms.
pub(super) fn not_acceptable(forms: &[Form]) -> Status {
    Status::not_acceptable(&forms.iter().map(|form| form.name()).collect::<Vec<_>>())
}

/// Response with a failure in the first of `forms` that the client accepts, or in indented JSON if it accepts none.
/// Follows `apiserver/pkg/endpoints/handlers/responsewriters/writers.go#ErrorNegotiated @v1.36.3`.
pub(super) fn status_reply(status: &Status, forms: &[Form], query: &Query, headers: &HeaderMap) -> Reply {
    let wanted = accept::accept(headers);
    let people = negotiate::is_for_people(query, headers);
    let chosen = if wanted.is_empty() { forms.first().map(|form| (*form, people)) } else { None };
    let clauses = accept::clauses(&wanted);
    let chosen = chosen.or_else(|| {
        clauses.iter().find_map(|clause| {
            // JSON and protobuf support watches, so `stream=watch` is accepted for them.
            let fits = |form: &&Form| {
                let watchable = matches!(form, Form::Json | Form::Protobuf) && clause.is_watch();
                clause.wants(form.names().0, form.names().1)
                    && clause.object().is_none()
                    && (watchable || !clause.is_unservable())
            };
            forms.iter().find(fits).map(|form| (*form, clause.is_pretty() || people))
        })
    });
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (form, pretty) = chosen.unwrap_or((Form::Json, true));
    match form {
        Form::Json => reply(code, JSON, document(status, pretty)),
        Form::Yaml => reply(code, HeaderValue::from_static("application/yaml"), yaml(status)),
        Form::Protobuf => reply(code, HeaderValue::from_static(MEDIA_TYPE), status.to_protobuf()),
        // Upstream's text serializer does not support `Status`. It writes reason and message instead.
        Form::Text => {
            reply(code, HeaderValue::from_static("text/plain"), format!("{}: {}", status.reason, status.message))
        }
    }
}

/// Encodes JSON as Go does: on one line with a line end, or indented without one.
pub(super) fn document<T: Serialize + ?Sized>(value: &T, pretty: bool) -> String {
    // A value in memory can always be written.
    if pretty {
        json::to_string_pretty(value).unwrap_or_default()
    } else {
        json::to_string(value).map(|line| line + "\n").unwrap_or_default()
    }
}

/// Encodes a value as YAML, with the members in alphabetical order.
pub(super) fn yaml<T: Serialize + ?Sized>(value: &T) -> String {
    // A value in memory can always be written.
    serde_json::to_value(value).ok().and_then(|sorted| serde_yaml::to_string(&sorted).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::header;
    use http_body_util::BodyExt as _;

    use super::*;

    fn body(reply: Reply) -> Vec<u8> {
        futures::executor::block_on(reply.into_body().collect()).expect("a whole body").to_bytes().to_vec()
    }

    fn asked(status: &Status, accept: &str) -> (String, String) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_str(accept).expect("a value"));
        let reply = status_reply(status, ANY_FORM, &Query::default(), &headers);
        let kind = reply.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
        (kind, String::from_utf8_lossy(&body(reply)).into_owned())
    }

    #[test]
    fn status_format_follows_the_accept_header() {
        let status = forbidden("User \"a<b\" cannot get path \"/x\"");
        let line = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\
            \"forbidden: User \\\"a\\u003cb\\\" cannot get path \\\"/x\\\"\",\"reason\":\"Forbidden\",\"details\":{},\
            \"code\":403}\n";
        let check = |accept: &str, kind: &str, expected: &str| {
            assert_eq!(asked(&status, accept), (kind.to_owned(), expected.to_owned()), "{accept}");
        };
        check("*/*", "application/json", line);
        check("application/json", "application/json", line);
        check("application/json;stream=watch", "application/json", line);
        check("application/json;as=Table;v=v1;g=meta.k8s.io,*/*;q=0.1", "application/json", line);
        let yaml = "apiVersion: v1\ncode: 403\ndetails: {}\nkind: Status\nmessage: 'forbidden: User \"a<b\" cannot get \
            path \"/x\"'\nmetadata: {}\nreason: Forbidden\nstatus: Failure\n";
        check("text/html,application/yaml", "application/yaml", yaml);
        let (kind, laid_out) = asked(&status, "text/html");
        assert_eq!(kind, "application/json");
        assert!(laid_out.starts_with("{\n  \"kind\": \"Status\",\n") && laid_out.ends_with("\n  \"code\": 403\n}"));
    }
}
