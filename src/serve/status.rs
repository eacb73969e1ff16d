//! `Status` objects: what an API server, and so this one, answers with when it does not do what was asked.

use http::header::HeaderValue;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::negotiate::{self, Query};
use super::protobuf::Message;
use super::reply::{JSON, Reply, reply};
use crate::k8s::field_error::html_safe;

/// A failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Status {
    pub(super) code: StatusCode,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// Whether it has details, which are empty.
    pub(super) details: bool,
}

/// Types that a `Status` can be had in; upstream lists them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    Yaml,
    Text,
    Protobuf,
}

/// Forms of a `Status` where nothing else is known.
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

impl Status {
    /// Who asks is not known.
    pub(super) fn unauthorized() -> Self {
        let message = "Unauthorized".to_owned();
        Self { code: StatusCode::UNAUTHORIZED, reason: "Unauthorized", message, details: false }
    }

    /// Who asks may not.
    pub(super) fn forbidden(message: &str) -> Self {
        let message = format!("forbidden: {message}");
        Self { code: StatusCode::FORBIDDEN, reason: "Forbidden", message, details: true }
    }

    /// It cannot be had in any form that was asked for.
    pub(super) fn not_acceptable(forms: &[Form]) -> Self {
        let forms: Vec<String> = forms.iter().map(|form| form.name()).collect();
        let message = format!("only the following media types are accepted: {}", forms.join(", "));
        Self { code: StatusCode::NOT_ACCEPTABLE, reason: "NotAcceptable", message, details: false }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = vec![
            ("kind", json!("Status")),
            ("apiVersion", json!("v1")),
            ("metadata", json!({})),
            ("status", json!("Failure")),
            ("message", json!(self.message)),
            ("reason", json!(self.reason)),
        ];
        if self.details {
            fields.push(("details", json!({})));
        }
        fields.push(("code", json!(self.code.as_u16())));
        fields
    }

    /// As bytes that begin with Kubernetes' mark. Follows
    /// `apimachinery/pkg/runtime/serializer/protobuf/protobuf.go @v1.36.3`, which writes empty fields too.
    fn protobuf(&self) -> Vec<u8> {
        let metadata = Message::default().bytes(1, "").bytes(2, "").bytes(3, "");
        let mut raw =
            Message::default().message(1, metadata).bytes(2, "Failure").bytes(3, &self.message).bytes(4, self.reason);
        if self.details {
            raw = raw.message(5, Message::default().bytes(1, "").bytes(2, "").bytes(3, "").number(5, 0).bytes(6, ""));
        }
        let raw = raw.number(6, u64::from(self.code.as_u16()));
        let kind = Message::default().bytes(1, "v1").bytes(2, "Status");
        let unknown = Message::default().message(1, kind).message(2, raw).bytes(3, "").bytes(4, "");
        [&b"k8s\0"[..], &unknown.finish()].concat()
    }

    /// The answer in the form that is wanted, of those that it can be had in; in JSON, laid out, if it is none of them.
    /// Follows `apiserver/pkg/endpoints/handlers/responsewriters/writers.go#ErrorNegotiated @v1.36.3`.
    pub(super) fn reply(&self, forms: &[Form], query: &Query, headers: &HeaderMap) -> Reply {
        let accept = negotiate::accept(headers);
        let people = negotiate::is_for_people(query, headers);
        let chosen = if accept.is_empty() { forms.first().map(|form| (*form, people)) } else { None };
        let clauses = negotiate::clauses(&accept);
        let chosen = chosen.or_else(|| {
            clauses.iter().find_map(|clause| {
                // What can be watched may be asked for as if it were.
                let fits = |form: &&Form| {
                    let watchable = matches!(form, Form::Json | Form::Protobuf) && clause.is_watch();
                    clause.wants(form.names().0, form.names().1)
                        && clause.object().is_none()
                        && (watchable || !clause.is_unservable())
                };
                forms.iter().find(fits).map(|form| (*form, clause.is_pretty() || people))
            })
        });
        let (form, pretty) = chosen.unwrap_or((Form::Json, true));
        match form {
            Form::Json => reply(self.code, JSON, ordered_json(self.fields(), pretty)),
            Form::Yaml => reply(self.code, HeaderValue::from_static("application/yaml"), yaml(self.fields())),
            Form::Protobuf => {
                reply(self.code, HeaderValue::from_static("application/vnd.kubernetes.protobuf"), self.protobuf())
            }
            // Upstream's text serialiser knows no Status; it says reason and message instead.
            Form::Text => {
                reply(self.code, HeaderValue::from_static("text/plain"), format!("{}: {}", self.reason, self.message))
            }
        }
    }
}

/// JSON with its members in this order: on one line that ends, or laid out by two spaces without an end, as Go writes both.
pub(super) fn ordered_json(fields: Vec<(&'static str, Value)>, pretty: bool) -> String {
    let member = |(name, value): (&str, Value)| {
        let value = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        // A value in memory can always be written.
        (name.to_owned(), value.unwrap_or_default())
    };
    let members: Vec<(String, String)> = fields.into_iter().map(member).collect();
    let text = if pretty {
        let lines: Vec<String> =
            members.iter().map(|(name, value)| format!("  \"{name}\": {}", value.replace('\n', "\n  "))).collect();
        format!("{{\n{}\n}}", lines.join(",\n"))
    } else {
        let parts: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}\n", parts.join(","))
    };
    html_safe(&text)
}

/// YAML with its members in alphabetical order.
pub(super) fn yaml(fields: Vec<(&'static str, Value)>) -> String {
    let sorted: std::collections::BTreeMap<&str, Value> = fields.into_iter().collect();
    let map: Map<String, Value> = sorted.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    // A value in memory can always be written.
    serde_yaml::to_string(&map).unwrap_or_default()
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
        let reply = status.reply(ANY_FORM, &Query::default(), &headers);
        let kind = reply.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
        (kind, String::from_utf8_lossy(&body(reply)).into_owned())
    }

    #[test]
    fn it_comes_in_the_form_that_is_wanted() {
        let status = Status::forbidden("User \"a<b\" cannot get path \"/x\"");
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

    #[test]
    fn protobuf_is_what_upstream_sends() {
        // What upstream's scheduler has answered to a token that nobody knows.
        let expected: &[u8] = &[
            0x6b, 0x38, 0x73, 0x00, 0x0a, 0x0c, 0x0a, 0x02, 0x76, 0x31, 0x12, 0x06, 0x53, 0x74, 0x61, 0x74, 0x75, 0x73,
            0x12, 0x30, 0x0a, 0x06, 0x0a, 0x00, 0x12, 0x00, 0x1a, 0x00, 0x12, 0x07, 0x46, 0x61, 0x69, 0x6c, 0x75, 0x72,
            0x65, 0x1a, 0x0c, 0x55, 0x6e, 0x61, 0x75, 0x74, 0x68, 0x6f, 0x72, 0x69, 0x7a, 0x65, 0x64, 0x22, 0x0c, 0x55,
            0x6e, 0x61, 0x75, 0x74, 0x68, 0x6f, 0x72, 0x69, 0x7a, 0x65, 0x64, 0x30, 0x91, 0x03, 0x1a, 0x00, 0x22, 0x00,
        ];
        assert_eq!(Status::unauthorized().protobuf(), expected);
    }
}
