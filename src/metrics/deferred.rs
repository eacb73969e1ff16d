//! A series that exists from its first use on.

use std::sync::OnceLock;

use prometheus::core::{MetricVec, MetricVecBuilder};

/// A family of series told apart by labels.
pub trait Family: Clone {
    /// One of its series.
    type Series;

    /// The series with these label values, made if it does not exist.
    fn series(&self, labels: &[String]) -> Self::Series;
}

impl<B: MetricVecBuilder> Family for MetricVec<B> {
    type Series = B::M;

    fn series(&self, labels: &[String]) -> B::M {
        self.with_label_values(labels)
    }
}

/// One series of a family, looked up once and not before it is needed: a series that shows up with 0 before anything happened
/// would differ from upstream, and one that is looked up each time costs a hash and a lock.
pub struct Deferred<F: Family> {
    family: F,
    labels: Vec<String>,
    series: OnceLock<F::Series>,
}

impl<F: Family> Deferred<F> {
    /// The series of `family` with these label values, in the family's order of labels.
    pub(super) fn new(family: &F, labels: &[&str]) -> Self {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        Self { family: family.clone(), labels, series: OnceLock::new() }
    }

    /// The series, which now exists.
    ///
    /// # Panics
    /// If the number of label values is not the family's: a mistake of this module that its tests would show.
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
    fn a_series_exists_from_its_first_use() {
        let family = IntCounterVec::new(Opts::new("a", "b"), &["one", "two"]).unwrap();
        let series = Deferred::new(&family, &["x", "y"]);
        assert!(family.collect()[0].get_metric().is_empty());
        series.get().inc();
        series.get().inc();
        assert_eq!(family.with_label_values(&["x", "y"]).get(), 2);
    }
}
