//! What was counted since counts were last forgotten, as `DELETE /metrics` asks for: families keep counting, and what they
//! had counted by then is taken off.

use std::collections::BTreeMap;

use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::combine::{Combine, labels};

/// By family and labels: what had been counted.
#[derive(Debug, Default)]
pub struct Since(BTreeMap<(String, Vec<(String, String)>), Metric>);

impl Since {
    /// From these on, all begins anew.
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

    /// Takes off what had been counted.
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
    fn counts_begin_anew_and_gauges_stay() {
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
