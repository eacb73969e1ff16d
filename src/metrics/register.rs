//! Creation of metric families and their registration.

use prometheus::core::Collector;
use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    exponential_buckets,
};

/// Stability level of a family. The family's help text begins with the level.
#[derive(Clone, Copy)]
pub(super) enum Stability {
    /// Name, labels and buckets do not change.
    Stable,
    /// Name, labels and buckets may change with notice.
    Beta,
    /// Name, labels and buckets may change, and the family may be removed.
    Alpha,
}

/// Creates families, and registers them if `enabled`, which depends on the families' feature gate. Handles of unregistered
/// families work, but their values are not exported.
pub(super) struct Registrar<'a> {
    pub(super) registry: &'a Registry,
    pub(super) enabled: bool,
}

/// Exponential buckets: start, factor and number of buckets. An implied last bucket has no bound.
#[derive(Clone, Copy)]
pub(super) struct Exponential(pub(super) f64, pub(super) f64, pub(super) usize);

impl Stability {
    fn help(self, text: &str) -> String {
        let level = match self {
            Self::Stable => "STABLE",
            Self::Beta => "BETA",
            Self::Alpha => "ALPHA",
        };
        format!("[{level}] {text}")
    }
}

impl Registrar<'_> {
    fn keep<C: Collector + Clone + 'static>(&self, family: C) -> Result<C, Error> {
        if self.enabled {
            self.registry.register(Box::new(family.clone()))?;
        }
        Ok(family)
    }

    pub(super) fn counter(&self, level: Stability, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.keep(IntCounter::new(name, level.help(help))?)
    }

    pub(super) fn counters(
        &self,
        level: Stability,
        name: &str,
        labels: &[&str],
        help: &str,
    ) -> Result<IntCounterVec, Error> {
        self.keep(IntCounterVec::new(Opts::new(name, level.help(help)), labels)?)
    }

    pub(super) fn gauges(
        &self,
        level: Stability,
        name: &str,
        labels: &[&str],
        help: &str,
    ) -> Result<IntGaugeVec, Error> {
        self.keep(IntGaugeVec::new(Opts::new(name, level.help(help)), labels)?)
    }

    pub(super) fn histogram(
        &self,
        level: Stability,
        name: &str,
        buckets: Exponential,
        help: &str,
    ) -> Result<Histogram, Error> {
        self.keep(Histogram::with_opts(options(level, name, buckets, help)?)?)
    }

    pub(super) fn histograms(
        &self,
        level: Stability,
        name: &str,
        labels: &[&str],
        buckets: Exponential,
        help: &str,
    ) -> Result<HistogramVec, Error> {
        self.keep(HistogramVec::new(options(level, name, buckets, help)?, labels)?)
    }
}

fn options(level: Stability, name: &str, buckets: Exponential, help: &str) -> Result<HistogramOpts, Error> {
    let Exponential(start, factor, count) = buckets;
    Ok(HistogramOpts::new(name, level.help(help)).buckets(exponential_buckets(start, factor, count)?))
}
