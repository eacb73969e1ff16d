//! The text exposition format, with numbers formatted as Go does, so that `le` labels equal upstream's.
//!
//! The `prometheus` crate's own encoder writes 0.00001 for 1e-05. A recording rule or alert that selects such a bucket would
//! find no series.

use prometheus::proto::{Histogram, LabelPair, MetricFamily, MetricType};

use crate::go::number::general;

/// Encodes families in the given order.
/// Follows `github.com/prometheus/common/expfmt/text_create.go#MetricFamilyToText @v0.67.5`.
pub fn encode(families: &[MetricFamily]) -> String {
    let mut out = String::new();
    for family in families {
        family_text(&mut out, family);
    }
    out
}

fn family_text(out: &mut String, family: &MetricFamily) {
    let name = family.name();
    if !family.help().is_empty() {
        put(out, &["# HELP ", name, " "]);
        escaped(out, family.help(), false);
        out.push('\n');
    }
    put(out, &["# TYPE ", name, " ", type_name(family.get_field_type()), "\n"]);
    for metric in family.get_metric() {
        let labels = metric.get_label();
        match family.get_field_type() {
            MetricType::COUNTER => sample(out, name, "", labels, None, metric.get_counter().get_value()),
            MetricType::GAUGE => sample(out, name, "", labels, None, metric.get_gauge().get_value()),
            MetricType::HISTOGRAM => histogram(out, name, labels, metric.get_histogram()),
            MetricType::SUMMARY => {
                let summary = metric.get_summary();
                for quantile in summary.get_quantile() {
                    sample(out, name, "", labels, Some(("quantile", quantile.quantile())), quantile.value());
                }
                sample(out, name, "_sum", labels, None, summary.sample_sum());
                sample(out, name, "_count", labels, None, count(summary.sample_count()));
            }
            // The crate has no collector of this type.
            MetricType::UNTYPED => {}
        }
    }
}

fn type_name(kind: MetricType) -> &'static str {
    match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
        MetricType::HISTOGRAM => "histogram",
    }
}

fn histogram(out: &mut String, name: &str, labels: &[LabelPair], histogram: &Histogram) {
    let total = count(histogram.get_sample_count());
    let mut unbounded = false;
    for bucket in histogram.get_bucket() {
        let bound = bucket.upper_bound();
        unbounded |= bound == f64::INFINITY;
        sample(out, name, "_bucket", labels, Some(("le", bound)), count(bucket.cumulative_count()));
    }
    if !unbounded {
        sample(out, name, "_bucket", labels, Some(("le", f64::INFINITY)), total);
    }
    sample(out, name, "_sum", labels, None, histogram.get_sample_sum());
    sample(out, name, "_count", labels, None, total);
}

/// Writes one line: name and suffix, the labels, the `extra` label if there is one, and the value.
fn sample(out: &mut String, name: &str, suffix: &str, labels: &[LabelPair], extra: Option<(&str, f64)>, value: f64) {
    put(out, &[name, suffix]);
    let mut separator = '{';
    for label in labels {
        out.push(separator);
        separator = ',';
        put(out, &[label.name(), "=\""]);
        escaped(out, label.value(), true);
        out.push('"');
    }
    if let Some((name, bound)) = extra {
        out.push(separator);
        separator = ',';
        put(out, &[name, "=\""]);
        out.push_str(&general(bound));
        out.push('"');
    }
    if separator == ',' {
        out.push('}');
    }
    out.push(' ');
    out.push_str(&general(value));
    out.push('\n');
}

fn put(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
}

fn escaped(out: &mut String, text: &str, quotes: bool) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "the format's numbers are floats; counts above 2^53 do not occur")]
fn count(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntGauge, Registry};

    use super::*;

    #[test]
    fn histograms_and_escapes_are_formatted() {
        let registry = Registry::new();
        let options = HistogramOpts::new("h", "a \\ and\na \"line\"").buckets(vec![0.00001, 1.0]);
        let family = HistogramVec::new(options, &["z", "a"]).unwrap();
        let gauge = IntGauge::new("g", "plain").unwrap();
        gauge.set(-3);
        registry.register(Box::new(family.clone())).unwrap();
        registry.register(Box::new(gauge)).unwrap();
        let series = family.with_label_values(&["q\"\\\n", "x"]);
        for value in [0.5, 0.25, 7.0] {
            series.observe(value);
        }
        let expected = r#"# HELP g plain
# TYPE g gauge
g -3
# HELP h a \\ and\na "line"
# TYPE h histogram
h_bucket{a="x",z="q\"\\\n",le="1e-05"} 0
h_bucket{a="x",z="q\"\\\n",le="1"} 2
h_bucket{a="x",z="q\"\\\n",le="+Inf"} 3
h_sum{a="x",z="q\"\\\n"} 7.75
h_count{a="x",z="q\"\\\n"} 3
"#;
        assert_eq!(encode(&registry.gather()), expected);
    }
}
