//! `Accept` headers, by which a client chooses the format of a response.
//!
//! Follows `github.com/munnerz/goautoneg` and `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go @v1.36.3`.

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use crate::go::sort::sort_slice;

/// One clause of an `Accept` header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Clause {
    /// Type before the slash, such as `application`, or `*`.
    pub kind: String,
    /// Subtype after the slash, such as `json`, or `*`.
    pub subkind: String,
    quality: f64,
    /// Parameters other than the quality, by name.
    pub params: BTreeMap<String, String>,
}

/// Returns the value of the first `Accept` header. Go ignores any others.
pub fn accept(headers: &HeaderMap) -> String {
    headers.get(header::ACCEPT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// Parses the clauses of an `Accept` header, most preferred first. Follows
/// `github.com/munnerz/goautoneg/autoneg.go#ParseAccept`.
pub fn clauses(header: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = header.split(',').filter_map(clause).collect();
    // This order is inconsistent, so the result depends on the sort algorithm.
    sort_slice(&mut clauses, is_before);
    clauses
}

fn is_before(a: &Clause, b: &Clause) -> bool {
    a.quality > b.quality || (a.kind != "*" && b.kind == "*") || (a.subkind != "*" && b.subkind == "*")
}

fn clause(part: &str) -> Option<Clause> {
    let spaces = |text: &str| text.trim_matches(' ').to_owned();
    let part = part.trim_matches(' ');
    let (kinds, params) = part.split_once(';').unwrap_or((part, ""));
    let (kind, subkind) = kinds.split_once('/').unwrap_or((kinds, ""));
    let kind = spaces(kind);
    let subkind = match subkind {
        "" if kind == "*" => "*".to_owned(),
        "" => return None,
        subkind => match subkind.split_once('/') {
            Some((_, rest)) if !rest.is_empty() => return None,
            Some((subkind, _)) => spaces(subkind),
            None => spaces(subkind),
        },
    };
    let mut clause = Clause { kind, subkind, quality: 1.0, params: BTreeMap::new() };
    for param in params.split(';') {
        let Some((name, value)) = param.split_once('=') else { continue };
        let value = match value.split_once('=') {
            Some((_, rest)) if !rest.is_empty() => continue,
            Some((value, _)) => value,
            None => value,
        };
        if value.is_empty() {
            continue;
        }
        match name.trim_matches(' ') {
            "q" => clause.quality = value.parse().unwrap_or(0.0),
            name => drop(clause.params.insert(name.to_owned(), spaces(value))),
        }
    }
    Some(clause)
}

impl Clause {
    /// Whether this clause accepts the media type.
    pub fn wants(&self, kind: &str, subkind: &str) -> bool {
        (self.kind == kind && (self.subkind == subkind || self.subkind == "*"))
            || (self.kind == "*" && self.subkind == "*")
    }

    /// Returns group, version and kind of the object that this clause asks for. `None` if it has none of the three.
    pub fn object(&self) -> Option<[&str; 3]> {
        let parts = ["g", "v", "as"].map(|name| self.params.get(name).map(String::as_str));
        parts.iter().any(Option::is_some).then(|| parts.map(Option::unwrap_or_default))
    }

    /// Whether this clause asks for a stream, or for a version of an apiserver. Plain endpoints serve neither.
    pub fn is_unservable(&self) -> bool {
        ["stream", "sv"].iter().any(|name| self.params.get(*name).is_some_and(|value| !value.is_empty()))
    }

    /// Whether this clause asks for a watch, without a version of an apiserver.
    pub fn is_watch(&self) -> bool {
        self.params.get("stream").is_some_and(|value| value == "watch") && !self.params.contains_key("sv")
    }

    /// Whether this clause asks for indented JSON.
    pub fn is_pretty(&self) -> bool {
        self.params.get("pretty").is_some_and(|value| value == "1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_sorted_by_preference() {
        let check = |header: &str, expected: &[&str]| {
            let got: Vec<String> = clauses(header).iter().map(|c| format!("{}/{}", c.kind, c.subkind)).collect();
            assert_eq!(got, expected, "{header}");
        };
        check("", &[]);
        check("text/plain", &["text/plain"]);
        check("garbage", &[]);
        check("*", &["*/*"]);
        check("a/b/c", &[]);
        check("text/html, application/json;q=0.5", &["text/html", "application/json"]);
        check("*/*, text/*, text/plain", &["text/plain", "text/*", "*/*"]);
        check("a/a;q=0.1,b/b;q=0.2,c/c;q=0.3", &["c/c", "b/b", "a/a"]);
        check("a/a;q=x,b/b", &["b/b", "a/a"]);
    }

    #[test]
    fn clause_parameters_name_an_object() {
        let only = |header: &str| clauses(header).pop().expect("a clause");
        let clause = only("application/json;v=v1beta1;g=config.k8s.io;as=Flagz;pretty=1;q=0.5");
        assert_eq!(clause.object(), Some(["config.k8s.io", "v1beta1", "Flagz"]));
        assert!(clause.is_pretty() && !clause.is_unservable());
        assert_eq!(only("application/json").object(), None);
        assert_eq!(only("application/json;v=v1").object(), Some(["", "v1", ""]));
        assert!(only("application/json;stream=watch").is_unservable());
        assert!(only("application/*").wants("application", "json") && only("*/*").wants("text", "plain"));
        assert!(!only("text/html").wants("text", "plain"));
    }
}
