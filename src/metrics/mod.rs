//! The scheduler's own metric families, under upstream's names, types, labels and buckets.
//!
//! ```text
//!  Metrics::new(&registry, gates) ──▶ families, registered once
//!     │ profile("default-scheduler") ──▶ handles of one profile
//!     │ plugin_durations("NodeName", Filter) ──▶ handles of one plugin at one point
//!     └ recorder() ──▶ bounded buffer, emptied by flush() once a second
//! ```
//!
//! The registry is injected, never global. Hot paths keep handles and look up no series. They sum per-node counts themselves and
//! add the sum once per block of nodes. This module uses no part of the crate except [`go`](crate::go): durations are passed in
//! seconds, and the owner of the [`Metrics`] calls [`Metrics::flush`].
//! Names, meanings and buckets follow `pkg/scheduler/metrics/metrics.go#InitMetrics @v1.36.3`.

mod combine;
pub mod component;
mod deferred;
mod election;
mod families;
mod labels;
pub mod process;
mod profile;
mod recorder;
mod register;
mod rest;
mod shown;
mod since;
#[cfg(test)]
mod tests;
mod text;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus::{Error, Histogram, HistogramVec, IntCounter, IntGauge, Registry};

pub use deferred::{Deferred, Family};
pub use election::ElectionMetrics;
use families::Families;
pub use labels::{
    ApiCallType, AttemptResult, BatchAttempt, BatchFlush, BindingConditions, CacheKind, HintResult, IncomingQueue,
    Operation, Outcome, PendingQueue, Point, StatusCode, VolumeStage,
};
pub use profile::{PluginDurations, ProfileMetrics};
pub use recorder::{BUFFERED_CALLS, DurationSeries, FLUSH_INTERVAL, PLUGIN_SAMPLE_PERCENT, Recorder};
pub use rest::RestMetrics;
pub use shown::Shown;
pub use since::Since;
pub use text::encode;

/// Value of the label `event` for pods in flight. Follows `pkg/scheduler/metrics/metrics.go#PodPoppedInFlightEvent @v1.36.3`.
pub const EVENT_POD_POPPED: &str = "PodPopped";

/// Number of attempts from which on the label `attempts` is `15+`.
const MANY_ATTEMPTS: usize = 15;

/// All families, and the handles that all parts of the scheduler share. A process or test has one, shared by `Arc`.
pub struct Metrics {
    registry: Registry,
    families: Families,
    pending: [IntGauge; PendingQueue::ALL.len()],
    cache_size: [Deferred<prometheus::IntGaugeVec>; CacheKind::ALL.len()],
    sli: [Deferred<HistogramVec>; MANY_ATTEMPTS],
    permit_wait: [Deferred<HistogramVec>; StatusCode::ALL.len()],
    running: [Deferred<prometheus::IntGaugeVec>; Operation::ALL.len()],
    /// All recorders to flush. The lock guards the list only; each recorder has its own lock.
    recorders: Mutex<Vec<Recorder>>,
}

/// Durations of one plugin's queueing hint for one event, by result. Observed through a [`Recorder`].
pub struct HintDurations([DurationSeries; HintResult::ALL.len()]);

/// Guard of one running operation. The operation counts as running until the guard is dropped.
#[must_use = "the operation counts as running only while this is held"]
pub struct Running(IntGauge);

impl Metrics {
    /// Creates all families, and registers those whose feature gate is enabled. `gate_enabled` gets the gate's name.
    ///
    /// Fails if the registry already has a family of one of these names.
    pub fn new(registry: &Registry, gate_enabled: impl Fn(&str) -> bool) -> Result<Arc<Self>, Error> {
        let families = Families::new(registry, gate_enabled)?;
        let pending = PendingQueue::ALL.map(|queue| families.pending_pods.with_label_values(&[queue.as_str()]));
        let cache_size = CacheKind::ALL.map(|kind| Deferred::new(&families.cache_size, &[kind.as_str()]));
        let sli = std::array::from_fn(|index| {
            let attempts = index + 1;
            let label = if attempts < MANY_ATTEMPTS { attempts.to_string() } else { format!("{MANY_ATTEMPTS}+") };
            Deferred::new(&families.pod_scheduling_sli_duration, &[label.as_str()])
        });
        let permit_wait = StatusCode::ALL.map(|code| Deferred::new(&families.permit_wait_duration, &[code.as_str()]));
        let running = Operation::ALL.map(|operation| Deferred::new(&families.goroutines, &[operation.as_str()]));
        let recorders = Mutex::default();
        Ok(Arc::new(Self {
            registry: registry.clone(),
            families,
            pending,
            cache_size,
            sli,
            permit_wait,
            running,
            recorders,
        }))
    }

    /// Creates the families in a new registry, with the default feature gates, for tests and examples.
    ///
    /// # Panics
    /// Never: an empty registry has no family with the same name.
    pub fn detached() -> Arc<Self> {
        match Self::new(&Registry::new(), families::gate_default) {
            Ok(metrics) => metrics,
            Err(error) => unreachable!("an empty registry refused a family: {error}"),
        }
    }

    /// Returns the registry passed to [`Metrics::new`].
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns all series of the registry in text format. Families are sorted by name, and series by labels. Observations that
    /// are still in a recorder are missing: call [`Metrics::flush`] first.
    pub fn gather_text(&self) -> String {
        encode(&self.registry.gather())
    }

    /// Creates a recorder with a bounded buffer. Upstream has one for each profile and one for the queue.
    pub fn recorder(&self) -> Recorder {
        let recorder = Recorder::default();
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner).push(recorder.clone());
        recorder
    }

    /// Writes the observations of all recorders into their histograms. Call this every [`FLUSH_INTERVAL`].
    pub fn flush(&self) {
        let recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        recorders.iter().for_each(Recorder::flush);
    }

    /// Creates the handles of one profile. Call this once, when the profile is built.
    pub fn profile(&self, profile: &str) -> ProfileMetrics {
        ProfileMetrics::new(&self.families, profile)
    }

    /// Returns `scheduler_plugin_execution_duration_seconds` of one plugin at one extension point, by status.
    pub fn plugin_durations(&self, plugin: &str, point: Point) -> PluginDurations {
        PluginDurations::new(&self.families, plugin, point)
    }

    /// Returns `scheduler_queueing_hint_execution_duration_seconds` of one plugin for one event, by result.
    pub fn hint_durations(&self, plugin: &str, event: &str) -> HintDurations {
        let family = &self.families.queueing_hint_duration;
        HintDurations(HintResult::ALL.map(|result| Arc::new(Deferred::new(family, &[plugin, event, result.as_str()]))))
    }

    /// Returns `scheduler_pending_pods` of one queue: the number of its pods.
    pub fn pending_pods(&self, queue: PendingQueue) -> &IntGauge {
        &self.pending[queue.index()]
    }

    /// Looks up the counter `scheduler_queue_incoming_pods_total`. Keep the handle.
    pub fn incoming_pods(&self, queue: IncomingQueue, event: &str) -> IntCounter {
        self.families.queue_incoming_pods.with_label_values(&[queue.as_str(), event])
    }

    /// Looks up `scheduler_unschedulable_pods`: unschedulable pods that `plugin` rejected. Keep the handle.
    pub fn unschedulable_pods(&self, plugin: &str, profile: &str) -> IntGauge {
        self.families.unschedulable_pods.with_label_values(&[plugin, profile])
    }

    /// Looks up the gauge `scheduler_inflight_events`. `event` is [`EVENT_POD_POPPED`] or an event's label. Keep the handle.
    pub fn inflight_events(&self, event: &str) -> IntGauge {
        self.families.inflight_events.with_label_values(&[event])
    }

    /// Looks up the histogram `scheduler_event_handling_duration_seconds`. Keep the handle.
    pub fn event_handling_duration(&self, event: &str) -> Histogram {
        self.families.event_handling_duration.with_label_values(&[event])
    }

    /// Returns `scheduler_cache_size`, which is set once a second.
    pub fn cache_size(&self, kind: CacheKind) -> &IntGauge {
        self.cache_size[kind.index()].get()
    }

    /// Returns `scheduler_scheduling_algorithm_duration_seconds`: the time of filtering and scoring in each attempt, including
    /// `PostFilter` if it runs.
    pub fn scheduling_algorithm_duration(&self) -> &Histogram {
        &self.families.scheduling_algorithm_duration
    }

    /// Returns `scheduler_pod_scheduling_attempts`: the number of attempts until a pod was bound.
    pub fn pod_scheduling_attempts(&self) -> &Histogram {
        &self.families.pod_scheduling_attempts
    }

    /// Returns `scheduler_pod_scheduling_sli_duration_seconds` of pods that were bound at their `attempts`-th attempt, counted
    /// from 1. The duration starts with the pod's first entry into activeQ, and excludes the time in which the pod was gated.
    /// Follows `pkg/scheduler/schedule_one.go#getAttemptsLabel @v1.36.3`.
    pub fn pod_scheduling_sli_duration(&self, attempts: usize) -> &Histogram {
        self.sli[attempts.clamp(1, MANY_ATTEMPTS) - 1].get()
    }

    /// Returns `scheduler_permit_wait_duration_seconds` for one result of the wait in Permit.
    pub fn permit_wait_duration(&self, code: StatusCode) -> &Histogram {
        self.permit_wait[code.index()].get()
    }

    /// Returns the counter `scheduler_preemption_attempts_total`.
    pub fn preemption_attempts(&self) -> &IntCounter {
        &self.families.preemption_attempts
    }

    /// Returns `scheduler_preemption_victims`: the number of victims of a preemption.
    pub fn preemption_victims(&self) -> &Histogram {
        &self.families.preemption_victims
    }

    /// Counts an asynchronous preemption that ended after `seconds`. Upstream evaluates outcome and duration too early, and so
    /// always reports success and about 0 seconds. The caller decides whether to report the same.
    pub fn preemption_goroutine(&self, outcome: Outcome, seconds: f64) {
        self.families.preemption_goroutines_total.with_label_values(&[outcome.as_str()]).inc();
        self.families.preemption_goroutines_duration.with_label_values(&[outcome.as_str()]).observe(seconds);
    }

    /// Counts a running `operation` in `scheduler_goroutines` until the returned guard is dropped.
    pub fn running(&self, operation: Operation) -> Running {
        Running::new(self.running[operation.index()].get())
    }

    /// Counts an API call of the asynchronous dispatcher that took `seconds`.
    pub fn api_call(&self, call: ApiCallType, outcome: Outcome, seconds: f64) {
        let labels = [call.as_str(), outcome.as_str()];
        self.families.async_api_calls.with_label_values(&labels).inc();
        self.families.async_api_call_duration.with_label_values(&labels).observe(seconds);
    }

    /// Returns the gauge `scheduler_pending_async_api_calls`.
    pub fn pending_api_calls(&self, call: ApiCallType) -> IntGauge {
        self.families.pending_async_api_calls.with_label_values(&[call.as_str()])
    }

    /// Returns `scheduler_resourceclaim_creates_total`: resource claims created for extended resources. `created` is false for
    /// failed creations.
    pub fn resource_claim_creates(&self, created: bool) -> IntCounter {
        let status = if created { "success" } else { "failure" };
        self.families.resource_claim_creates.with_label_values(&[status])
    }

    /// Returns the counter `scheduler_volume_scheduling_stage_error_total`.
    pub fn volume_stage_errors(&self, stage: VolumeStage) -> IntCounter {
        self.families.volume_stage_errors.with_label_values(&[stage.as_str()])
    }

    /// Returns the histogram `scheduler_podgroup_scheduling_algorithm_duration_seconds`.
    pub fn pod_group_algorithm_duration(&self) -> &Histogram {
        &self.families.pod_group_algorithm_duration
    }
}

impl HintDurations {
    /// Returns the series of one result.
    pub fn series(&self, result: HintResult) -> &DurationSeries {
        &self.0[result.index()]
    }
}

impl Running {
    /// Counts a running operation in `gauge`.
    pub fn new(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.dec();
    }
}
