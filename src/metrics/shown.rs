//! Filter of exported metrics and label values: `--disabled-metrics` and `--allow-metric-labels`.
//!
//! Both flags are applied when metrics are gathered, so code that counts does not depend on them.
//! Follows `component-base/metrics/options.go`,
//! `#MetricLabelAllowList @v1.36.3`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::combine::{self, Combine};

/// Label value that replaces values that are not allowed.
const UNEXPECTED: &str = "unexpected";

/// Filter of metrics and label values, as configured by flags.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    disabled: BTreeSet<String>,
    /// Allowed values, by metric and label.
    allowed: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Shown {
    /// Creates the filter from the flags' values. `disabled` has names of metrics. `allowed` has keys such as `metric,label` and
    /// values such as `value,value`.
    pub fn new(disabled: &[String], allowed: &BTreeMap<String, String>) -> Self {
        let mut by_metric: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for (key, values) in allowed {
            let Some((metric, label)) = key.split_once(',') else { continue };
            let values = values.split(',').map(str::to_owned).collect();
            by_metric.entry(metric.to_owned()).or_default().insert(label.to_owned(), values);
        }
        Self { disabled: disabled.iter().cloned().collect(), allowed: by_metric }
    }

    /// Counts the disabled metrics.
    pub fn disabled(&self) -> usize {
        self.disabled.len()
    }

    /// Filters the gathered `families`. Returns the exported families, and the number of observations with a label value that is
    /// not allowed.
    pub fn apply(&self, mut families: Vec<MetricFamily>) -> (Vec<MetricFamily>, u64) {
        families.retain(|family| !self.disabled.contains(family.name()));
        let mut unexpected = 0;
        for family in &mut families {
            if let Some(labels) = self.allowed.get(family.name()) {
                unexpected += restrict(family, labels);
            }
        }
        (families, unexpected)
    }
}

/// Replaces label values that are not allowed, and merges series whose labels have become equal. Returns the number of
/// observations in series with a replaced value.
fn restrict(family: &mut MetricFamily, labels: &BTreeMap<String, BTreeSet<String>>) -> u64 {
    let kind = family.get_field_type();
    let mut unexpected = 0;
    let mut series: BTreeMap<Vec<(String, String)>, Metric> = BTreeMap::new();
    for mut metric in family.take_metric() {
        let mut is_unexpected = false;
        for pair in metric.mut_label() {
            if labels.get(pair.name()).is_some_and(|values| !values.contains(pair.value())) {
                pair.set_value(UNEXPECTED.to_owned());
                is_unexpected = true;
            }
        }
        if is_unexpected {
            unexpected += observations(kind, &metric);
        }
        match series.entry(combine::labels(&metric)) {
            Entry::Vacant(entry) => drop(entry.insert(metric)),
            // Merged gauges have the value of the last series, as if both had set the same gauge.
            Entry::Occupied(mut entry) if kind == MetricType::GAUGE => drop(entry.insert(metric)),
            Entry::Occupied(mut entry) => Combine::Add.apply(kind, entry.get_mut(), &metric),
        }
    }
    family.set_metric(series.into_values().collect());
    unexpected
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counters hold non-negative integers")]
fn observations(kind: MetricType, metric: &Metric) -> u64 {
    match kind {
        MetricType::COUNTER => metric.get_counter().get_value() as u64,
        MetricType::HISTOGRAM => metric.get_histogram().get_sample_count(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{CounterVec, HistogramOpts, HistogramVec, Opts, Registry};

    use super::*;
    use crate::metrics::encode;

    fn registry() -> Registry {
        let registry = Registry::new();
        let counter = CounterVec::new(Opts::new("c", "counts"), &["a", "b"]).expect("a family");
        for (a, b, count) in [("x", "1", 1.0), ("y", "1", 2.0), ("z", "2", 4.0)] {
            counter.with_label_values(&[a, b]).inc_by(count);
        }
        let options = HistogramOpts::new("h", "observes").buckets(vec![1.0]);
        let histogram = HistogramVec::new(options, &["a"]).expect("a family");
        for (a, value) in [("x", 0.5), ("y", 0.5), ("z", 5.0)] {
            histogram.with_label_values(&[a]).observe(value);
        }
        registry.register(Box::new(counter)).expect("a free name");
        registry.register(Box::new(histogram)).expect("a free name");
        registry
    }

    fn check(disabled: &[&str], allowed: &[(&str, &str)], expected: &str, unexpected: u64) {
        let disabled: Vec<String> = disabled.iter().map(|name| (*name).to_owned()).collect();
        let allowed = allowed.iter().map(|(key, values)| ((*key).to_owned(), (*values).to_owned())).collect();
        let (families, count) = Shown::new(&disabled, &allowed).apply(registry().gather());
        let text = encode(&families);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!((samples.join("\n"), count), (expected.to_owned(), unexpected));
    }

    #[test]
    fn disabled_metrics_are_not_exported() {
        check(&["h"], &[], "c{a=\"x\",b=\"1\"} 1\nc{a=\"y\",b=\"1\"} 2\nc{a=\"z\",b=\"2\"} 4", 0);
    }

    #[test]
    fn disallowed_label_values_are_merged() {
        let counter = "c{a=\"unexpected\",b=\"1\"} 2\nc{a=\"unexpected\",b=\"2\"} 4\nc{a=\"x\",b=\"1\"} 1";
        check(&["h"], &[("c,a", "x,w")], counter, 6);
        let histogram = "h_bucket{a=\"unexpected\",le=\"1\"} 1\nh_bucket{a=\"unexpected\",le=\"+Inf\"} 2\n\
                         h_sum{a=\"unexpected\"} 5.5\nh_count{a=\"unexpected\"} 2\n\
                         h_bucket{a=\"x\",le=\"1\"} 1\nh_bucket{a=\"x\",le=\"+Inf\"} 1\nh_sum{a=\"x\"} 0.5\nh_count{a=\"x\"} 1";
        check(&["c"], &[("h,a", "x")], histogram, 2);
    }
}
