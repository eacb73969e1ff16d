//! Reset of metrics by `DELETE /metrics`. The families keep counting, and the values at the time of the reset are subtracted from
//! each later export.

use std::collections::BTreeMap;

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::combine::{Combine, labels};

/// Values at the time of the last reset, by family and labels. Empty if there was no reset.
#[derive(Debug, Default)]
pub struct Since(BTreeMap<(String, Vec<(String, String)>), Metric>);

impl Since {
    /// Records the current values of counters and histograms, so that later exports start from zero.
    pub fn now(families: Vec<MetricFamily>) -> Self {
        let mut counted = BTreeMap::new();
        for mut family in families {
            if matches!(family.get_field_type(), MetricType::COUNTER | MetricType::HISTOGRAM) {
                for metric in family.take_metric() {
                    counted.insert((family.name().to_owned(), labels(&metric)), metric);
                }
            }
        }
        Self(counted)
    }

    /// Subtracts the recorded values from `families`.
    pub fn apply(&self, families: &mut [MetricFamily]) {
        if self.0.is_empty() {
            return;
        }
        for family in families {
            let (name, kind) = (family.name().to_owned(), family.get_field_type());
            for metric in family.mut_metric() {
                if let Some(before) = self.0.get(&(name.clone(), labels(metric))) {
                    Combine::Subtract.apply(kind, metric, before);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{Histogram as Family, HistogramOpts, IntCounter, IntGauge, Registry};

    use super::*;
    use crate::metrics::encode;

    #[test]
    fn reset_zeroes_counters_and_histograms_but_not_gauges() {
        let registry = Registry::new();
        let counter = IntCounter::new("c", "counts").expect("a family");
        let gauge = IntGauge::new("g", "is").expect("a family");
        let histogram = Family::with_opts(HistogramOpts::new("h", "observes").buckets(vec![1.0])).expect("a family");
        registry.register(Box::new(counter.clone())).expect("a free name");
        registry.register(Box::new(gauge.clone())).expect("a free name");
        registry.register(Box::new(histogram.clone())).expect("a free name");
        counter.inc_by(3);
        gauge.set(5);
        histogram.observe(0.5);
        let since = Since::now(registry.gather());
        counter.inc();
        histogram.observe(2.0);
        let mut families = registry.gather();
        since.apply(&mut families);
        let text = encode(&families);
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = ["c 1", "g 5", "h_bucket{le=\"1\"} 0", "h_bucket{le=\"+Inf\"} 1", "h_sum 2", "h_count 1"];
        assert_eq!(samples, expected);
    }
}
