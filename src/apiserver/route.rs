//! Parsing of request paths and queries.
//!
//! Follows `apiserver/pkg/endpoints/request/requestinfo.go#RequestInfoFactory.NewRequestInfo @v1.36.3`.

use super::kinds::{self, Kind};
use crate::apimachinery::Status;
use crate::go::number::invalid_syntax;

/// Target that a request path names.
#[derive(Debug)]
pub(super) enum Target {
    /// All objects of a kind, in one namespace or in all.
    Collection { kind: &'static Kind, namespace: String },
    /// One object or one of its subresources.
    Object { kind: &'static Kind, namespace: String, name: String, subresource: String },
    /// The legacy collection to which bindings can be posted.
    Bindings { namespace: String },
    /// A discovery document: `/api`, `/apis`, and the paths below them.
    Discovery(Vec<String>),
    /// A path outside `/api` and `/apis`, such as `/version`. The page may not exist.
    Page(String),
    /// An unknown version or resource of a known API group.
    UnknownResource,
    /// A path in an unknown API group.
    Unknown,
}

impl Target {
    /// Parses a request path.
    pub(super) fn parse(path: &str) -> Self {
        let steps: Vec<String> = path.split('/').filter(|step| !step.is_empty()).map(decode).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let (group, version, rest) = match steps.as_slice() {
            ["api" | "apis"] | ["api" | "apis", _] | ["apis", _, _] => {
                return Self::Discovery(steps.iter().map(|step| (*step).to_owned()).collect());
            }
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return Self::Page(steps.join("/")),
        };
        if !kinds::served().any(|kind| kind.group == group && kind.version == version) {
            let is_known = kinds::served().any(|kind| kind.group == group);
            return if is_known { Self::UnknownResource } else { Self::Unknown };
        }
        let find = |plural: &str| kinds::by_plural(group, version, plural);
        let (namespace, rest) = match rest {
            // Subresources of a namespace are not resources inside it.
            ["namespaces", name, sub @ ("status" | "finalize")] => {
                return Self::object(&kinds::NAMESPACES, "", name, sub);
            }
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        match rest {
            ["bindings"] if group.is_empty() => Self::Bindings { namespace: namespace.to_owned() },
            [plural] => find(plural)
                .map_or(Self::UnknownResource, |kind| Self::Collection { kind, namespace: namespace.to_owned() }),
            [plural, name] => {
                find(plural).map_or(Self::UnknownResource, |kind| Self::object(kind, namespace, name, ""))
            }
            [plural, name, sub] => {
                find(plural).map_or(Self::UnknownResource, |kind| Self::object(kind, namespace, name, sub))
            }
            _ => Self::UnknownResource,
        }
    }

    fn object(kind: &'static Kind, namespace: &str, name: &str, subresource: &str) -> Self {
        Self::Object {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// Parameters of a request's query.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query string.
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
        });
        Self(pairs.collect())
    }

    /// Returns the first value of a parameter.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a parameter, or "" if it is missing.
    pub(super) fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }

    /// Parses a parameter as a number. An empty value counts as missing.
    /// Follows `apimachinery/pkg/runtime/conversion.go#Convert_Slice_string_To_int64 @v1.36.3`.
    pub(super) fn number(&self, key: &str) -> Result<Option<i64>, Status> {
        match self.text(key) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| Status::bad_request(invalid_syntax("ParseInt", text))),
        }
    }

    /// Whether a flag is set. An invalid value counts as set, as in upstream's conversion of query parameters.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| !matches!(value, "0" | "f" | "F" | "false" | "False" | "FALSE"))
    }
}

/// Decodes the percent encoding of a text. Invalid escapes are kept unchanged.
fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if let (b'%', Some(high), Some(low)) = (byte, digit(at + 1), digit(at + 2)) {
            out.push(u8::try_from(high * 16 + low).expect("two hexadecimal digits"));
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &str) {
        let text = match Target::parse(path) {
            Target::Collection { kind, namespace } => format!("all {} in [{namespace}]", kind.qualified()),
            Target::Object { kind, namespace, name, subresource } => {
                format!("{} [{namespace}] {name} [{subresource}]", kind.qualified())
            }
            Target::Bindings { namespace } => format!("bindings in {namespace}"),
            other => format!("{other:?}"),
        };
        assert_eq!(text, expected, "{path}");
    }

    #[test]
    fn paths_are_parsed() {
        check("/api/v1/pods", "all pods in []");
        check("/api/v1/namespaces/a/pods", "all pods in [a]");
        check("/api/v1/namespaces/a/pods/p/binding", "pods [a] p [binding]");
        check("/api/v1/namespaces/a/bindings", "bindings in a");
        check("/api/v1/namespaces/a", "namespaces [] a []");
        check("/api/v1/namespaces/a/status", "namespaces [] a [status]");
        check("/api/v1/namespaces", "all namespaces in []");
        check("/apis/apps/v1/namespaces/a/replicasets/r", "replicasets.apps [a] r []");
        check("/api/v1/nodes/a%3Ab", "nodes [] a:b []");
        check("/apis/apps/v1", "Discovery([\"apis\", \"apps\", \"v1\"])");
        check("/apis/apps/v1/widgets", "UnknownResource");
        check("/apis/apps/v2/replicasets", "UnknownResource");
        check("/apis/none/v2/replicasets", "Unknown");
        check("/version", "Page(\"version\")");
    }

    #[test]
    fn queries_are_parsed() {
        let query = Query::parse("fieldSelector=a%3Db%2Cc!%3Dd&watch=true&limit=&x=a+b&no=0");
        assert_eq!(query.get("fieldSelector"), Some("a=b,c!=d"));
        assert_eq!((query.get("limit"), query.get("none"), query.text("x")), (Some(""), None, "a b"));
        assert!(query.flag("watch") && !query.flag("no") && !query.flag("none"));
    }
}
