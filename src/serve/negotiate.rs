//! Which form of an answer a client wants.
//! Follows `github.com/munnerlz/goautoneg` and `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go @v1.36.3`.

use std::collections::BTreeMap;

use http::{HeaderMap, header};

/// One clause of an `Accept` header.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clause {
    pub(super) kind: String,
    pub(super) subkind: String,
    quality: f64,
    pub(super) params: BTreeMap<String, String>,
}

/// The value of `Accept`, of which Go reads the first line alone.
pub(super) fn accept(headers: &HeaderMap) -> String {
    headers.get(header::ACCEPT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// The clauses of an `Accept` header, the preferred one first.
pub(super) fn clauses(header: &str) -> Vec<Clause> {
    let mut clauses: Vec<Clause> = header.split(',').filter_map(clause).collect();
    // Not an order that sorting may rely on, so this is done as Go does it for a few: each moves forward past those that
    // it is before.
    for at in 1..clauses.len() {
        let mut place = at;
        while place > 0 && is_before(&clauses[place], &clauses[place - 1]) {
            clauses.swap(place, place - 1);
            place -= 1;
        }
    }
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
    /// Whether it asks for this type.
    pub(super) fn wants(&self, kind: &str, subkind: &str) -> bool {
        (self.kind == kind && (self.subkind == subkind || self.subkind == "*"))
            || (self.kind == "*" && self.subkind == "*")
    }

    /// The kind of object that it asks for: group, version, kind; none if it names no part of one.
    pub(super) fn object(&self) -> Option<[&str; 3]> {
        let parts = ["g", "v", "as"].map(|name| self.params.get(name).map(String::as_str));
        parts.iter().any(Option::is_some).then(|| parts.map(Option::unwrap_or_default))
    }

    /// Whether it asks for something that is never had here: a stream, or a version of the server's.
    pub(super) fn is_unservable(&self) -> bool {
        ["stream", "sv"].iter().any(|name| self.params.get(*name).is_some_and(|value| !value.is_empty()))
    }

    /// Whether it asks for a stream of changes, and for nothing else that is never had.
    pub(super) fn is_watch(&self) -> bool {
        self.params.get("stream").is_some_and(|value| value == "watch") && !self.params.contains_key("sv")
    }

    /// Whether the answer is to be laid out for people.
    pub(super) fn is_pretty(&self) -> bool {
        self.params.get("pretty").is_some_and(|value| value == "1")
    }
}

/// Whether the query, or what a browser is called, asks for a layout for people.
/// Follows `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go#isPrettyPrint @v1.36.3`.
pub(super) fn is_for_people(query: &Query, headers: &HeaderMap) -> bool {
    if let Some(pretty) = query.first("pretty").filter(|pretty| !pretty.is_empty()) {
        return matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers.get(header::USER_AGENT).map(http::HeaderValue::as_bytes).unwrap_or_default();
    [&b"curl"[..], b"Wget", b"Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
}

/// Which of the encodings that are on offer, the preferred one first, a client wants; none if it wants none of them.
/// Follows `github.com/prometheus/client_golang/prometheus/promhttp/internal.NegotiateContentEncoding`.
pub(super) fn encoding<'a>(headers: &HeaderMap, offers: &[&'a str]) -> Option<&'a str> {
    let values = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    let specs: Vec<(String, f64)> = values
        .flat_map(|value| value.split(','))
        .map(|spec| {
            let (name, params) = spec.split_once(';').unwrap_or((spec, ""));
            let quality = params.trim().strip_prefix("q=").map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
            (name.trim().to_owned(), quality)
        })
        .collect();
    let (mut best, mut best_quality) = (*offers.first()?, -1.0);
    for offer in offers {
        for (name, quality) in &specs {
            if *quality > best_quality && (name == "*" || name == offer) {
                (best, best_quality) = (offer, *quality);
            }
        }
    }
    (best_quality != 0.0).then_some(best)
}

/// The query of a URL.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what is between `?` and `#`. A part that cannot be read is left out, as Go does.
    pub(super) fn parse(text: &str) -> Self {
        let parts = text.split('&').filter(|part| !part.is_empty() && !part.contains(';'));
        let decoded = parts.filter_map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((unescaped(name)?, unescaped(value)?))
        });
        Self(decoded.collect())
    }

    /// All values of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a name.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What is escaped in a query, if every `%` is followed by two digits.
fn unescaped(text: &str) -> Option<String> {
    decoded(&text.replace('+', " "))
}

/// What is escaped in a path, if every `%` is followed by two digits. What is no text is replaced.
pub(super) fn decoded(text: &str) -> Option<String> {
    let is_well = text.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    is_well.then(|| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_preferred_clause_is_first() {
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
    fn a_clause_names_an_object() {
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

    #[test]
    fn an_encoding_is_chosen() {
        let check = |header: Option<&str>, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_str(header).expect("a value"));
            }
            assert_eq!(encoding(&headers, &["identity", "gzip"]), expected, "{header:?}");
        };
        check(None, Some("identity"));
        check(Some("gzip"), Some("gzip"));
        check(Some("gzip;q=0.5, identity"), Some("identity"));
        check(Some("br, gzip;q=0.8"), Some("gzip"));
        check(Some("br"), Some("identity"));
        check(Some("*"), Some("identity"));
        check(Some("identity;q=0"), None);
    }

    #[test]
    fn a_query_is_read() {
        let query = Query::parse("verbose&exclude=a&exclude=b+c%21&bad=%zz&x;y=1");
        assert_eq!(query.first("verbose"), Some(""));
        assert_eq!(query.all("exclude").collect::<Vec<_>>(), ["a", "b c!"]);
        assert_eq!((query.first("bad"), query.first("x")), (None, None));
    }

    #[test]
    fn what_is_for_people_is_known_by_its_reader() {
        let check = |query: &str, agent: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, HeaderValue::from_str(agent).expect("a value"));
            assert_eq!(is_for_people(&Query::parse(query), &headers), expected, "{query} {agent}");
        };
        check("", "curl/8", true);
        check("", "Prometheus/3", false);
        check("pretty=true", "Prometheus/3", true);
        check("pretty=0", "curl/8", false);
        check("pretty=", "curl/8", true);
    }
}
