//! URL queries, and negotiation of the layout and the encoding of responses.

use http::{HeaderMap, header};

/// Whether the query or the user agent asks for indented output.
/// Follows `apiserver/pkg/endpoints/handlers/negotiation/negotiate.go#isPrettyPrint @v1.36.3`.
pub(super) fn is_for_people(query: &Query, headers: &HeaderMap) -> bool {
    if let Some(pretty) = query.first("pretty").filter(|pretty| !pretty.is_empty()) {
        return matches!(pretty, "1" | "t" | "T" | "true" | "TRUE" | "True");
    }
    let agent = headers.get(header::USER_AGENT).map(http::HeaderValue::as_bytes).unwrap_or_default();
    [&b"curl"[..], b"Wget", b"Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
}

/// Returns the offered encoding that the client prefers, or `None` if it rejects all. Ties go to the earliest offer.
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

/// Decoded parameters of a URL query.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the text between `?` and `#`. A malformed part is ignored, as in Go.
    pub(super) fn parse(text: &str) -> Self {
        let parts = text.split('&').filter(|part| !part.is_empty() && !part.contains(';'));
        let decoded = parts.filter_map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Some((unescaped(name)?, unescaped(value)?))
        });
        Self(decoded.collect())
    }

    /// Returns all values of a parameter.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a parameter.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes a part of a query. Returns `None` if a `%` is not followed by two hexadecimal digits.
fn unescaped(text: &str) -> Option<String> {
    decoded(&text.replace('+', " "))
}

/// Decodes an escaped path. Returns `None` if a `%` is not followed by two hexadecimal digits. Invalid UTF-8 is replaced.
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
    fn query_parameters_are_parsed() {
        let query = Query::parse("verbose&exclude=a&exclude=b+c%21&bad=%zz&x;y=1");
        assert_eq!(query.first("verbose"), Some(""));
        assert_eq!(query.all("exclude").collect::<Vec<_>>(), ["a", "b c!"]);
        assert_eq!((query.first("bad"), query.first("x")), (None, None));
    }

    #[test]
    fn json_is_pretty_for_curl_or_on_request() {
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
