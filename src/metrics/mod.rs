//! The scheduler's own metric families, under upstream's names, types, labels and buckets.
//!
//! ```text
//!  Metrics::new(&registry, gates) ──▶ families, registered once
//!     │ profile("default-scheduler") ──▶ handles of one profile
//!     │ plugin_durations("NodeName", Filter) ──▶ handles of one plugin at one point
//!     └ recorder() ──▶ bounded buffer, emptied by flush() once a second
//! ```
//!
//! The registry is injected, never global. A hot path holds handles and looks nothing up; what it counts for each node it adds
//! up itself and adds once a block. This module imports no other one: durations arrive as seconds, and whoever owns the
//! [`Metrics`] calls [`Metrics::flush`].
//! Names, help's meaning and buckets follow `pkg/scheduler/metrics/metrics.go#InitMetrics @v1.36.3`.

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

/// `event` of in-flight pods. Follows `pkg/scheduler/metrics/metrics.go#PodPoppedInFlightEvent @v1.36.3`.
pub const EVENT_POD_POPPED: &str = "PodPopped";

/// From this many attempts on, the label is `15+`.
const MANY_ATTEMPTS: usize = 15;

/// All families, and the handles that every part of the scheduler shares. One exists a process (or a test); it is shared by
/// `Arc`.
pub struct Metrics {
    registry: Registry,
    families: Families,
    pending: [IntGauge; PendingQueue::ALL.len()],
    cache_size: [Deferred<prometheus::IntGaugeVec>; CacheKind::ALL.len()],
    sli: [Deferred<HistogramVec>; MANY_ATTEMPTS],
    permit_wait: [Deferred<HistogramVec>; StatusCode::ALL.len()],
    running: [Deferred<prometheus::IntGaugeVec>; Operation::ALL.len()],
    /// Guards the list only; recorders lock themselves.
    recorders: Mutex<Vec<Recorder>>,
}

/// Hints of one plugin for one event, by result; observed through a [`Recorder`].
pub struct HintDurations([DurationSeries; HintResult::ALL.len()]);

/// Counts one running operation until it is dropped.
#[must_use = "the operation counts as running only while this is held"]
pub struct Running(IntGauge);

impl Metrics {
    /// Makes all families and registers those whose feature gate is on; `gate_enabled` is asked by the gate's name.
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

    /// Families in a registry of their own, with the gates that are on by default: for tests and examples.
    ///
    /// # Panics
    /// Never: an empty registry has no family to clash with.
    pub fn detached() -> Arc<Self> {
        match Self::new(&Registry::new(), families::gate_default) {
            Ok(metrics) => metrics,
            Err(error) => unreachable!("an empty registry refused a family: {error}"),
        }
    }

    /// The registry that was given.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All series of the registry in text format, families by name and series by labels. What recorders still hold is not in
    /// it; see [`Metrics::flush`].
    pub fn gather_text(&self) -> String {
        encode(&self.registry.gather())
    }

    /// A new bounded buffer; upstream has one a profile and one for the queue.
    pub fn recorder(&self) -> Recorder {
        let recorder = Recorder::default();
        self.recorders.lock().unwrap_or_else(PoisonError::into_inner).push(recorder.clone());
        recorder
    }

    /// Empties every recorder into its histograms. To be called once in [`FLUSH_INTERVAL`].
    pub fn flush(&self) {
        let recorders = self.recorders.lock().unwrap_or_else(PoisonError::into_inner).clone();
        recorders.iter().for_each(Recorder::flush);
    }

    /// Handles of one profile. Made once, when the profile is built.
    pub fn profile(&self, profile: &str) -> ProfileMetrics {
        ProfileMetrics::new(&self.families, profile)
    }

    /// `scheduler_plugin_execution_duration_seconds` of one plugin at one point, by status.
    pub fn plugin_durations(&self, plugin: &str, point: Point) -> PluginDurations {
        PluginDurations::new(&self.families, plugin, point)
    }

    /// `scheduler_queueing_hint_execution_duration_seconds` of one plugin for one event.
    pub fn hint_durations(&self, plugin: &str, event: &str) -> HintDurations {
        let family = &self.families.queueing_hint_duration;
        HintDurations(HintResult::ALL.map(|result| Arc::new(Deferred::new(family, &[plugin, event, result.as_str()]))))
    }

    /// `scheduler_pending_pods`: the size of one queue.
    pub fn pending_pods(&self, queue: PendingQueue) -> &IntGauge {
        &self.pending[queue.index()]
    }

    /// `scheduler_queue_incoming_pods_total`; keep the handle, this looks it up.
    pub fn incoming_pods(&self, queue: IncomingQueue, event: &str) -> IntCounter {
        self.families.queue_incoming_pods.with_label_values(&[queue.as_str(), event])
    }

    /// `scheduler_unschedulable_pods`: pods that `plugin` rejected and that wait; keep the handle, this looks it up.
    pub fn unschedulable_pods(&self, plugin: &str, profile: &str) -> IntGauge {
        self.families.unschedulable_pods.with_label_values(&[plugin, profile])
    }

    /// `scheduler_inflight_events`; keep the handle, this looks it up. `event` is [`EVENT_POD_POPPED`] or an event's label.
    pub fn inflight_events(&self, event: &str) -> IntGauge {
        self.families.inflight_events.with_label_values(&[event])
    }

    /// `scheduler_event_handling_duration_seconds`; keep the handle, this looks it up.
    pub fn event_handling_duration(&self, event: &str) -> Histogram {
        self.families.event_handling_duration.with_label_values(&[event])
    }

    /// `scheduler_cache_size`; set once a second.
    pub fn cache_size(&self, kind: CacheKind) -> &IntGauge {
        self.cache_size[kind.index()].get()
    }

    /// `scheduler_scheduling_algorithm_duration_seconds`: each attempt's filters and scores, and `PostFilter` when it runs.
    pub fn scheduling_algorithm_duration(&self) -> &Histogram {
        &self.families.scheduling_algorithm_duration
    }

    /// `scheduler_pod_scheduling_attempts`: attempts that a bound pod needed.
    pub fn pod_scheduling_attempts(&self) -> &Histogram {
        &self.families.pod_scheduling_attempts
    }

    /// `scheduler_pod_scheduling_sli_duration_seconds` of a pod bound at its `attempts`-th attempt, counted from 1: from its
    /// first entry into activeQ, without the time it was gated. Follows `pkg/scheduler/schedule_one.go#getAttemptsLabel @v1.36.3`.
    pub fn pod_scheduling_sli_duration(&self, attempts: usize) -> &Histogram {
        self.sli[attempts.clamp(1, MANY_ATTEMPTS) - 1].get()
    }

    /// `scheduler_permit_wait_duration_seconds`: only of pods that did wait.
    pub fn permit_wait_duration(&self, code: StatusCode) -> &Histogram {
        self.permit_wait[code.index()].get()
    }

    /// `scheduler_preemption_attempts_total`.
    pub fn preemption_attempts(&self) -> &IntCounter {
        &self.families.preemption_attempts
    }

    /// `scheduler_preemption_victims`: victims of one executed preemption.
    pub fn preemption_victims(&self) -> &Histogram {
        &self.families.preemption_victims
    }

    /// Counts the end of an asynchronous preemption that took `seconds`. Upstream always reports success and about 0 seconds,
    /// because it evaluates both too early; what callers pass is theirs to decide.
    pub fn preemption_goroutine(&self, outcome: Outcome, seconds: f64) {
        self.families.preemption_goroutines_total.with_label_values(&[outcome.as_str()]).inc();
        self.families.preemption_goroutines_duration.with_label_values(&[outcome.as_str()]).observe(seconds);
    }

    /// `scheduler_goroutines`: one more running `operation` until the answer is dropped.
    pub fn running(&self, operation: Operation) -> Running {
        Running::new(self.running[operation.index()].get())
    }

    /// Counts a write of the asynchronous dispatcher that took `seconds`.
    pub fn api_call(&self, call: ApiCallType, outcome: Outcome, seconds: f64) {
        let labels = [call.as_str(), outcome.as_str()];
        self.families.async_api_calls.with_label_values(&labels).inc();
        self.families.async_api_call_duration.with_label_values(&labels).observe(seconds);
    }

    /// `scheduler_pending_async_api_calls`.
    pub fn pending_api_calls(&self, call: ApiCallType) -> IntGauge {
        self.families.pending_async_api_calls.with_label_values(&[call.as_str()])
    }

    /// `scheduler_resourceclaim_creates_total`: a claim made for extended resources. `created` says whether it was.
    pub fn resource_claim_creates(&self, created: bool) -> IntCounter {
        let status = if created { "success" } else { "failure" };
        self.families.resource_claim_creates.with_label_values(&[status])
    }

    /// `scheduler_volume_scheduling_stage_error_total`.
    pub fn volume_stage_errors(&self, stage: VolumeStage) -> IntCounter {
        self.families.volume_stage_errors.with_label_values(&[stage.as_str()])
    }

    /// `scheduler_podgroup_scheduling_algorithm_duration_seconds`.
    pub fn pod_group_algorithm_duration(&self) -> &Histogram {
        &self.families.pod_group_algorithm_duration
    }
}

impl HintDurations {
    /// The series of one result.
    pub fn series(&self, result: HintResult) -> &DurationSeries {
        &self.0[result.index()]
    }
}

impl Running {
    /// One more running operation that `gauge` counts.
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
