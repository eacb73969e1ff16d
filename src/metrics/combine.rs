//! Addition and subtraction of gathered series.

use prometheus::proto::{Bucket, Counter, Histogram, Metric, MetricType};

/// The operation that combines two series.
#[derive(Clone, Copy)]
pub(super) enum Combine {
    Add,
    Subtract,
}

impl Combine {
    fn counts(self, left: u64, right: u64) -> u64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
        }
    }

    fn amounts(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
        }
    }

    /// Combines `other` into `metric`, value by value. Does nothing unless both are counters or histograms.
    pub(super) fn apply(self, kind: MetricType, metric: &mut Metric, other: &Metric) {
        match kind {
            MetricType::COUNTER => {
                let mut counter = Counter::default();
                counter.set_value(self.amounts(metric.get_counter().get_value(), other.get_counter().get_value()));
                metric.set_counter(counter);
            }
            MetricType::HISTOGRAM => {
                let histogram = self.histograms(metric.get_histogram(), other.get_histogram());
                metric.set_histogram(histogram);
            }
            _ => {}
        }
    }

    fn histograms(self, left: &Histogram, right: &Histogram) -> Histogram {
        let mut histogram = Histogram::default();
        histogram.set_sample_count(self.counts(left.get_sample_count(), right.get_sample_count()));
        histogram.set_sample_sum(self.amounts(left.get_sample_sum(), right.get_sample_sum()));
        let buckets = left.get_bucket().iter().zip(right.get_bucket()).map(|(left, right)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(left.upper_bound());
            bucket.set_cumulative_count(self.counts(left.cumulative_count(), right.cumulative_count()));
            bucket
        });
        histogram.set_bucket(buckets.collect());
        histogram
    }
}

/// Returns the names and values of a series' labels.
pub(super) fn labels(metric: &Metric) -> Vec<(String, String)> {
    metric.get_label().iter().map(|pair| (pair.name().to_owned(), pair.value().to_owned())).collect()
}
