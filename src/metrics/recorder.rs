//! A bounded buffer in front of histograms that are observed too often to write each observation directly.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::HistogramVec;

use super::deferred::Deferred;

/// Number of calls that a recorder holds until the next flush. Further calls are dropped.
/// Follows `pkg/scheduler/framework/runtime/framework.go#defaultFrameworkOptions @v1.36.3`.
pub const BUFFERED_CALLS: usize = 1000;

/// Interval at which the owner of [`Metrics`](super::Metrics) calls `flush`.
pub const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Percentage of scheduling cycles in which each plugin call is timed. The caller draws the sample, from a separate random
/// generator, so that sampling never changes a decision.
/// Follows `pkg/scheduler/schedule_one.go#pluginMetricsSamplePercent @v1.36.3`.
pub const PLUGIN_SAMPLE_PERCENT: u64 = 10;

/// One series of a histogram family that a [`Recorder`] writes to.
pub type DurationSeries = Arc<Deferred<HistogramVec>>;

/// A bounded buffer in front of histograms. Upstream has one for each profile and one for the queue, each with its own bound.
/// Cheap to clone. The lock guards the buffer, and is held only for a push or a swap.
/// Follows `pkg/scheduler/metrics/metric_recorder.go#MetricAsyncRecorder @v1.36.3`.
#[derive(Clone, Default)]
pub struct Recorder(Arc<Mutex<Buffer>>);

#[derive(Default)]
struct Buffer {
    samples: Vec<Sample>,
    calls: usize,
}

struct Sample {
    series: DurationSeries,
    seconds: f64,
    calls: usize,
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        // The buffer stays consistent even if a thread panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Buffers one call that took `seconds`, unless the buffer is full.
    pub fn observe(&self, series: &DurationSeries, seconds: f64) {
        self.observe_each(series, seconds, 1);
    }

    /// Buffers `calls` calls that took `seconds` each, as many as fit. Used for plugins that decide a block of nodes at a time,
    /// because upstream observes each node.
    pub fn observe_each(&self, series: &DurationSeries, seconds: f64, calls: usize) {
        let mut buffer = self.lock();
        let calls = calls.min(BUFFERED_CALLS - buffer.calls);
        if calls > 0 {
            buffer.calls += calls;
            buffer.samples.push(Sample { series: Arc::clone(series), seconds, calls });
        }
    }

    /// Observes the buffered calls, and empties the buffer.
    pub fn flush(&self) {
        let samples = {
            let mut buffer = self.lock();
            buffer.calls = 0;
            std::mem::take(&mut buffer.samples)
        };
        for sample in samples {
            let histogram = sample.series.get();
            (0..sample.calls).for_each(|_| histogram.observe(sample.seconds));
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus::HistogramOpts;
    use prometheus::core::Collector;

    use super::*;

    #[test]
    fn a_full_buffer_drops_calls_until_the_next_flush() {
        let family = HistogramVec::new(HistogramOpts::new("h", "help"), &["a"]).unwrap();
        let series: DurationSeries = Arc::new(Deferred::new(&family, &["x"]));
        let recorder = Recorder::default();
        recorder.observe_each(&series, 0.5, 998);
        recorder.observe(&series, 0.5);
        recorder.observe_each(&series, 0.5, 5);
        recorder.observe(&series, 0.5);
        assert!(family.collect()[0].get_metric().is_empty(), "nothing shows before the flush");
        recorder.flush();
        assert_eq!(series.get().get_sample_count(), 1000);
        recorder.observe(&series, 0.25);
        recorder.flush();
        recorder.flush();
        assert_eq!(series.get().get_sample_count(), 1001);
        assert!((series.get().get_sample_sum() - 500.25).abs() < 1e-9);
    }
}
