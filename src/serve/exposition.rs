//! Metrics in the form that is wanted: text or protobuf, compressed or not. `DELETE` forgets them.
//! Follows `component-base/metrics/http.go#HandlerWithReset @v1.36.3` and
//! `github.com/prometheus/common/expfmt/encode.go#Negotiate @v0.67.5`.
//!
//! Names here are plain, so escaping them changes nothing; which scheme was asked for is said all the same. Of protobuf,
//! the delimited form is had; who asks for one of the two for people gets text.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response};
use http_body_util::Full;
use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::endpoints::MetricsSource;
use super::negotiate::{self, Clause};
use super::protobuf::Message;
use super::reply::{Reply, text, with};
use crate::metrics::encode;

const STARTED: HeaderName = HeaderName::from_static("process-start-time-unix");
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PROTOBUF: &str = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Answers with a source's metrics. `started` is when the process was, in seconds since 1970.
pub(super) fn expose(source: &dyn MetricsSource, started: i64, method: &Method, headers: &HeaderMap) -> Reply {
    if *method == Method::DELETE {
        source.reset();
        return text("metrics reset\n");
    }
    let clauses = negotiate::clauses(&negotiate::accept(headers));
    let (delimited, escaping) = form(&clauses);
    let families = source.gather();
    let (kind, body) = if delimited { (PROTOBUF, protobuf(&families)) } else { (TEXT, encode(&families).into_bytes()) };
    let compressed = match negotiate::encoding(headers, &["identity", "gzip"]) {
        Some("gzip") => gzip(&body),
        _ => None,
    };
    let encoded = compressed.is_some();
    let mut reply = Response::new(Full::new(compressed.unwrap_or(body).into()));
    let kind = HeaderValue::try_from(format!("{kind}; escaping={escaping}"));
    reply.headers_mut().insert(CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static(TEXT)));
    if encoded {
        reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    with(reply, STARTED, HeaderValue::from(started))
}

/// Whether protobuf is wanted, and which escaping.
fn form(clauses: &[Clause]) -> (bool, &str) {
    let mut escaping = "underscores";
    for clause in clauses {
        let param = |name: &str| clause.params.get(name).map(String::as_str);
        if let Some(wanted @ ("allow-utf-8" | "underscores" | "dots" | "values")) = param("escaping") {
            escaping = wanted;
        }
        let of_families = param("proto") == Some("io.prometheus.client.MetricFamily");
        let names = (clause.kind.as_str(), clause.subkind.as_str());
        if names == ("application", "vnd.google.protobuf") && of_families && param("encoding") == Some("delimited") {
            return (true, escaping);
        }
        if names == ("text", "plain") && matches!(param("version"), None | Some("0.0.4")) {
            return (false, escaping);
        }
    }
    (false, escaping)
}

fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

/// Each family with its length before it. Follows `io/prometheus/client/metrics.proto`.
fn protobuf(families: &[MetricFamily]) -> Vec<u8> {
    let mut out = Vec::new();
    for family in families {
        let kind = family.get_field_type();
        let number = match kind {
            MetricType::COUNTER => 0,
            MetricType::GAUGE => 1,
            MetricType::SUMMARY => 2,
            MetricType::UNTYPED => 3,
            MetricType::HISTOGRAM => 4,
        };
        let message = Message::default().bytes(1, family.name()).bytes(2, family.help()).number(3, number);
        let add = |message: Message, metric: &Metric| message.message(4, sample(metric, kind));
        family.get_metric().iter().fold(message, add).delimited(&mut out);
    }
    out
}

fn sample(metric: &Metric, kind: MetricType) -> Message {
    let labels = metric.get_label().iter().fold(Message::default(), |message, label| {
        message.message(1, Message::default().bytes(1, label.name()).bytes(2, label.value()))
    });
    let value = |value: f64| Message::default().double(1, value);
    match kind {
        MetricType::GAUGE => labels.message(2, value(metric.get_gauge().get_value())),
        MetricType::COUNTER => labels.message(3, value(metric.get_counter().get_value())),
        MetricType::SUMMARY => {
            let summary = metric.get_summary();
            let totals = Message::default().number(1, summary.sample_count()).double(2, summary.sample_sum());
            let all = summary.get_quantile().iter().fold(totals, |message, quantile| {
                message.message(3, Message::default().double(1, quantile.quantile()).double(2, quantile.value()))
            });
            labels.message(4, all)
        }
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            let totals =
                Message::default().number(1, histogram.get_sample_count()).double(2, histogram.get_sample_sum());
            let all = histogram.get_bucket().iter().fold(totals, |message, bucket| {
                let bound = Message::default().number(1, bucket.cumulative_count()).double(2, bucket.upper_bound());
                message.message(3, bound)
            });
            labels.message(7, all)
        }
        // The crate has no collector of this type.
        MetricType::UNTYPED => labels,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use http::header::{ACCEPT, ACCEPT_ENCODING};
    use http_body_util::BodyExt as _;
    use prometheus::{IntCounter, Registry};

    use super::*;

    fn registry() -> Registry {
        let registry = Registry::new();
        let counter = IntCounter::new("c", "help").expect("a counter");
        counter.inc();
        registry.register(Box::new(counter)).expect("a new name");
        registry
    }

    fn asked(headers: &[(HeaderName, &str)]) -> (Reply, Vec<u8>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let reply = expose(&registry(), 7, &Method::GET, &map);
        let (parts, body) = reply.into_parts();
        let body = futures::executor::block_on(body.collect()).expect("a whole body").to_bytes().to_vec();
        (Response::from_parts(parts, Full::default()), body)
    }

    #[test]
    fn the_form_is_what_upstream_chooses() {
        let check = |accept: &str, expected: &str| {
            let (reply, _) = asked(&[(ACCEPT, accept)]);
            assert_eq!(reply.headers()[CONTENT_TYPE], expected, "{accept}");
        };
        let plain = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
        check("", plain);
        check("application/json", plain);
        check("application/openmetrics-text;version=1.0.0,*/*;q=0.1", plain);
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        check(protobuf, &format!("{PROTOBUF}; escaping=underscores"));
        check(
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.1",
            "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8",
        );
    }

    #[test]
    fn a_body_is_compressed_for_those_who_ask() {
        let (reply, body) = asked(&[(ACCEPT_ENCODING, "gzip")]);
        assert_eq!(reply.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(reply.headers()[STARTED], "7");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).expect("text");
        assert_eq!(text, "# HELP c help\n# TYPE c counter\nc 1\n");
    }

    #[test]
    fn a_family_in_protobuf() {
        let expected: &[u8] = b"\x18\x0a\x01c\x12\x04help\x18\x00\x22\x0b\x1a\x09\x09\x00\x00\x00\x00\x00\x00\xf0\x3f";
        assert_eq!(protobuf(&registry().gather()), expected);
    }
}
