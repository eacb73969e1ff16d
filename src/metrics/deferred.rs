//! A series that is created at its first use.

use std::sync::OnceLock;

use prometheus::core::{MetricVec, MetricVecBuilder};

/// A family of series that differ in their label values.
pub trait Family: Clone {
    /// A series of the family.
    type Series;

    /// Returns the series with these label values, created if it does not exist.
    fn series(&self, labels: &[String]) -> Self::Series;
}

impl<B: MetricVecBuilder> Family for MetricVec<B> {
    type Series = B::M;

    fn series(&self, labels: &[String]) -> B::M {
        self.with_label_values(labels)
    }
}

/// One series of a family, created and looked up at its first use. Creating the series earlier would export it with 0, which
/// upstream does not. Looking the series up at each use would cost a hash and a lock.
pub struct Deferred<F: Family> {
    family: F,
    labels: Vec<String>,
    series: OnceLock<F::Series>,
}

impl<F: Family> Deferred<F> {
    /// Prepares the series of `family` with these label values, which are in the family's order of labels.
    pub(super) fn new(family: &F, labels: &[&str]) -> Self {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Self { family: family.clone(), labels, series: OnceLock::new() }
    }

    /// Returns the series, created if it does not exist.
    ///
    /// # Panics
    /// If the number of label values differs from the family's. That is a bug in this module, which its tests would find.
    pub fn get(&self) -> &F::Series {
        self.series.get_or_init(|| self.family.series(&self.labels))
    }
}

#[cfg(test)]
mod tests {
    use prometheus::core::Collector;
    use prometheus::{IntCounterVec, Opts};

    use super::*;

    #[test]
    fn a_series_is_created_at_its_first_use() {
        let family = IntCounterVec::new(Opts::new("a", "b"), &["one", "two"]).unwrap();
        let series = Deferred::new(&family, &["x", "y"]);
        assert!(family.collect()[0].get_metric().is_empty());
        series.get().inc();
        series.get().inc();
        assert_eq!(family.with_label_values(&["x", "y"]).get(), 2);
    }
}
