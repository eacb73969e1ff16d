//! Handles of one profile, and of one plugin at one extension point.

use std::sync::Arc;

use prometheus::{HistogramVec, IntCounter, IntCounterVec};

use super::deferred::Deferred;
use super::families::Families;
use super::labels::{AttemptResult, BatchAttempt, BatchFlush, BindingConditions, Point, StatusCode};
use super::recorder::DurationSeries;

/// Handles of one profile's series. Created when the profile is built, and kept with it.
pub struct ProfileMetrics {
    profile: String,
    attempts: [AttemptSeries; AttemptResult::ALL.len()],
    group_attempts: [AttemptSeries; AttemptResult::ALL.len()],
    /// Extension point durations, by [`Point`] and then by [`StatusCode`].
    points: [[Deferred<HistogramVec>; StatusCode::ALL.len()]; Point::ALL.len()],
    batch_attempts: [Deferred<IntCounterVec>; BatchAttempt::ALL.len()],
    batch_flushes: [Deferred<IntCounterVec>; BatchFlush::ALL.len()],
    /// Node hint durations: without a hint, then with a hint.
    node_hint_duration: [Deferred<HistogramVec>; 2],
    store_results_duration: Deferred<HistogramVec>,
    plugin_evaluation: IntCounterVec,
    binding_conditions_total: IntCounterVec,
    binding_conditions_wait: HistogramVec,
}

/// Number and duration of the attempts with one result.
struct AttemptSeries {
    total: Deferred<IntCounterVec>,
    duration: Deferred<HistogramVec>,
}

/// Durations of one plugin's calls at one extension point, by status. Observed through a [`Recorder`](super::Recorder).
pub struct PluginDurations([DurationSeries; StatusCode::ALL.len()]);

impl ProfileMetrics {
    pub(super) fn new(families: &Families, profile: &str) -> Self {
        let attempts = |total: &IntCounterVec, duration: &HistogramVec| {
            AttemptResult::ALL.map(|result| AttemptSeries {
                total: Deferred::new(total, &[result.as_str(), profile]),
                duration: Deferred::new(duration, &[result.as_str(), profile]),
            })
        };
        let point = |point: Point| {
            StatusCode::ALL.map(|code| {
                Deferred::new(&families.extension_point_duration, &[point.as_str(), code.as_str(), profile])
            })
        };
        Self {
            profile: profile.to_owned(),
            attempts: attempts(&families.schedule_attempts, &families.scheduling_attempt_duration),
            group_attempts: attempts(&families.pod_group_attempts, &families.pod_group_attempt_duration),
            points: Point::ALL.map(point),
            batch_attempts: BatchAttempt::ALL
                .map(|result| Deferred::new(&families.batch_attempts, &[profile, result.as_str()])),
            batch_flushes: BatchFlush::ALL
                .map(|reason| Deferred::new(&families.batch_cache_flushed, &[profile, reason.as_str()])),
            node_hint_duration: ["no_hint", "hint"]
                .map(|hinted| Deferred::new(&families.get_node_hint_duration, &[hinted, profile])),
            store_results_duration: Deferred::new(&families.store_schedule_results_duration, &[profile]),
            plugin_evaluation: families.plugin_evaluation.clone(),
            binding_conditions_total: families.binding_conditions_total.clone(),
            binding_conditions_wait: families.binding_conditions_wait.clone(),
        }
    }

    /// Returns the profile's scheduler name.
    pub fn name(&self) -> &str {
        &self.profile
    }

    /// Counts an attempt in `scheduler_schedule_attempts_total` and `scheduler_scheduling_attempt_duration_seconds`. `seconds` is
    /// the time from the start of the scheduling cycle to the end of the binding, or to the failure.
    /// Follows `pkg/scheduler/metrics/profile_metrics.go#observeScheduleAttemptAndLatency @v1.36.3`.
    pub fn attempt(&self, result: AttemptResult, seconds: f64) {
        self.attempts[result.index()].observe(seconds);
    }

    /// Counts an attempt to schedule a pod group, which took `seconds`.
    pub fn group_attempt(&self, result: AttemptResult, seconds: f64) {
        self.group_attempts[result.index()].observe(seconds);
    }

    /// Observes `scheduler_framework_extension_point_duration_seconds`: all plugins of an extension point took `seconds`.
    pub fn point(&self, point: Point, code: StatusCode, seconds: f64) {
        self.points[point.index()][code.index()].get().observe(seconds);
    }

    /// Returns `scheduler_plugin_evaluation_total`, which is exported with 0 from now on. Call this when the profile is built,
    /// for every plugin at `PreFilter`, `Filter`, `PreScore` and `Score`. `Filter` and `Score` count nodes: sum them, and add
    /// the sum once per block. Follows `pkg/scheduler/framework/runtime/framework.go#setInstrumentedPlugins @v1.36.3`.
    pub fn plugin_evaluation(&self, plugin: &str, point: Point) -> IntCounter {
        debug_assert!(
            matches!(point, Point::PreFilter | Point::Filter | Point::PreScore | Point::Score),
            "{point} is not counted"
        );
        self.plugin_evaluation.with_label_values(&[plugin, point.as_str(), self.profile.as_str()])
    }

    /// Increments the counter `scheduler_batch_attempts_total`.
    pub fn batch_attempt(&self, result: BatchAttempt) {
        self.batch_attempts[result.index()].get().inc();
    }

    /// Increments the counter `scheduler_batch_cache_flushed_total`.
    pub fn batch_flushed(&self, reason: BatchFlush) {
        self.batch_flushes[reason.index()].get().inc();
    }

    /// Observes `scheduler_get_node_hint_duration_seconds`: looking for a node hint took `seconds`, and found one if `hinted`.
    pub fn node_hint_asked(&self, hinted: bool, seconds: f64) {
        self.node_hint_duration[usize::from(hinted)].get().observe(seconds);
    }

    /// Observes the histogram `scheduler_store_schedule_results_duration_seconds`.
    pub fn results_stored(&self, seconds: f64) {
        self.store_results_duration.get().observe(seconds);
    }

    /// Observes `scheduler_dra_bindingconditions_wait_duration_seconds`: a wait that ended after `seconds`. Call this once for
    /// each allocated device.
    pub fn binding_conditions_waited(&self, driver: &str, status: BindingConditions, seconds: f64) {
        let labels = [self.profile.as_str(), driver, status.as_str()];
        self.binding_conditions_wait.with_label_values(&labels).observe(seconds);
    }

    /// Returns `scheduler_dra_bindingconditions_allocations_total`, which counts each driver of a claim whose devices have
    /// binding conditions. Follows `pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go#PreBind @v1.36.3`.
    pub fn binding_conditions_allocation(&self, driver: &str, status: BindingConditions) -> IntCounter {
        self.binding_conditions_total.with_label_values(&[self.profile.as_str(), driver, status.as_str()])
    }
}

impl AttemptSeries {
    fn observe(&self, seconds: f64) {
        self.duration.get().observe(seconds);
        self.total.get().inc();
    }
}

impl PluginDurations {
    pub(super) fn new(families: &Families, plugin: &str, point: Point) -> Self {
        let family = &families.plugin_execution_duration;
        Self(StatusCode::ALL.map(|code| Arc::new(Deferred::new(family, &[plugin, point.as_str(), code.as_str()]))))
    }

    /// Returns the series of one status.
    pub fn series(&self, code: StatusCode) -> &DurationSeries {
        &self.0[code.index()]
    }
}
