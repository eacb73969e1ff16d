//! All metric families of the scheduler: names, help texts, labels and buckets.

use prometheus::{Error, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Registry};

use super::register::Stability::{Alpha, Beta, Stable};
use super::register::{Exponential, Registrar};

/// Durations of scheduling attempts and binding: 1 ms to about 16 s.
const ATTEMPT: Exponential = Exponential(0.001, 2.0, 15);
/// Durations of extension points and event handlers: 0.1 ms to about 200 ms.
const POINT: Exponential = Exponential(0.0001, 2.0, 12);
/// Durations of single plugin and hint calls: 0.01 ms to about 22 ms, in 20 buckets.
const CALL: Exponential = Exponential(0.00001, 1.5, 20);
/// Durations of batching steps: 0.01 ms to about 20 ms.
const BATCH: Exponential = Exponential(0.00001, 2.0, 12);
/// Durations from queue to binding: 10 ms to about 87 min.
const SLI: Exponential = Exponential(0.01, 2.0, 20);

/// Handles of all families. Labels are in upstream's order.
pub(super) struct Families {
    pub(super) schedule_attempts: IntCounterVec,
    pub(super) scheduling_attempt_duration: HistogramVec,
    pub(super) scheduling_algorithm_duration: Histogram,
    pub(super) event_handling_duration: HistogramVec,
    pub(super) preemption_victims: Histogram,
    pub(super) preemption_attempts: IntCounter,
    pub(super) pending_pods: IntGaugeVec,
    pub(super) pod_scheduling_sli_duration: HistogramVec,
    pub(super) pod_scheduling_attempts: Histogram,
    pub(super) extension_point_duration: HistogramVec,
    pub(super) plugin_execution_duration: HistogramVec,
    pub(super) queue_incoming_pods: IntCounterVec,
    pub(super) goroutines: IntGaugeVec,
    pub(super) permit_wait_duration: HistogramVec,
    pub(super) cache_size: IntGaugeVec,
    pub(super) unschedulable_pods: IntGaugeVec,
    pub(super) plugin_evaluation: IntCounterVec,
    pub(super) batch_attempts: IntCounterVec,
    pub(super) batch_cache_flushed: IntCounterVec,
    pub(super) get_node_hint_duration: HistogramVec,
    pub(super) store_schedule_results_duration: HistogramVec,
    pub(super) volume_stage_errors: IntCounterVec,
    pub(super) queueing_hint_duration: HistogramVec,
    pub(super) inflight_events: IntGaugeVec,
    pub(super) preemption_goroutines_duration: HistogramVec,
    pub(super) preemption_goroutines_total: IntCounterVec,
    pub(super) async_api_calls: IntCounterVec,
    pub(super) async_api_call_duration: HistogramVec,
    pub(super) pending_async_api_calls: IntGaugeVec,
    pub(super) resource_claim_creates: IntCounterVec,
    pub(super) pod_group_attempts: IntCounterVec,
    pub(super) pod_group_attempt_duration: HistogramVec,
    pub(super) pod_group_algorithm_duration: Histogram,
    pub(super) binding_conditions_total: IntCounterVec,
    pub(super) binding_conditions_wait: HistogramVec,
}

/// Returns the default of the feature gates that families depend on.
pub(super) fn gate_default(gate: &str) -> bool {
    matches!(
        gate,
        "SchedulerQueueingHints" | "SchedulerAsyncPreemption" | "DRAExtendedResource" | "DRADeviceBindingConditions"
    )
}

impl Families {
    /// Creates all families, and registers those whose gate is enabled.
    /// Follows `pkg/scheduler/metrics/metrics.go#Register @v1.36.3`.
    #[expect(clippy::too_many_lines, reason = "a table: one entry a family")]
    pub(super) fn new(registry: &Registry, gate_enabled: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let always = Registrar { registry, enabled: true };
        let gated = |gate: &str| Registrar { registry, enabled: gate_enabled(gate) };
        let hints = gated("SchedulerQueueingHints");
        let preemption = gated("SchedulerAsyncPreemption");
        let async_calls = gated("SchedulerAsyncAPICalls");
        let extended = gated("DRAExtendedResource");
        let groups = gated("GenericWorkload");
        let conditions = gated("DRADeviceBindingConditions");

        // Nothing increments these two families. They are registered because upstream has them. Upstream does not increment the
        // first family either, and loses the flag that decides about incrementing the second one.
        always.counters(
            Alpha,
            "scheduler_volume_binder_cache_requests_total",
            &["operation"],
            "Requests to the cache of volume bindings.",
        )?;
        always.counter(
            Alpha,
            "scheduler_pod_scheduled_after_flush_total",
            "Pods bound after the periodic flush moved them out of unschedulablePods. A high number suggests a queueing hint that misses events.",
        )?;

        Ok(Self {
            schedule_attempts: always.counters(
                Stable,
                "scheduler_schedule_attempts_total",
                &["result", "profile"],
                "Attempts to schedule pods, by result: 'scheduled' if the pod was bound, 'unschedulable' if it was rejected, 'error' \
                 if the scheduler or a request of it failed.",
            )?,
            scheduling_attempt_duration: always.histograms(
                Stable,
                "scheduler_scheduling_attempt_duration_seconds",
                &["result", "profile"],
                ATTEMPT,
                "Seconds from the start of a scheduling attempt to the end of its binding, or to its failure.",
            )?,
            scheduling_algorithm_duration: always.histogram(
                Alpha,
                "scheduler_scheduling_algorithm_duration_seconds",
                ATTEMPT,
                "Seconds spent in an attempt on filtering and scoring nodes, and on PostFilter if no node passes.",
            )?,
            event_handling_duration: always.histograms(
                Alpha,
                "scheduler_event_handling_duration_seconds",
                &["event"],
                POINT,
                "Seconds spent on handling a cluster event, by event.",
            )?,
            preemption_victims: always.histogram(
                Stable,
                "scheduler_preemption_victims",
                Exponential(1.0, 2.0, 7),
                "Number of victims of a preemption.",
            )?,
            preemption_attempts: always.counter(
                Stable,
                "scheduler_preemption_attempts_total",
                "Attempts to find victims whose preemption makes room for a pod.",
            )?,
            pending_pods: always.gauges(
                Stable,
                "scheduler_pending_pods",
                &["queue"],
                "Pending pods: in activeQ ('active'), in a backoff queue ('backoff'), rejected and waiting for an event \
                 ('unschedulable'), or gated and never tried ('gated').",
            )?,
            pod_scheduling_sli_duration: always.histograms(
                Beta,
                "scheduler_pod_scheduling_sli_duration_seconds",
                &["attempts"],
                SLI,
                "Seconds from a pod's first entry into activeQ to its binding, over all attempts.",
            )?,
            pod_scheduling_attempts: always.histogram(
                Stable,
                "scheduler_pod_scheduling_attempts",
                Exponential(1.0, 2.0, 5),
                "Number of attempts until a pod was bound.",
            )?,
            extension_point_duration: always.histograms(
                Stable,
                "scheduler_framework_extension_point_duration_seconds",
                &["extension_point", "status", "profile"],
                POINT,
                "Seconds spent in all plugins of an extension point.",
            )?,
            plugin_execution_duration: always.histograms(
                Alpha,
                "scheduler_plugin_execution_duration_seconds",
                &["plugin", "extension_point", "status"],
                CALL,
                "Seconds spent in one plugin at an extension point, sampled.",
            )?,
            queue_incoming_pods: always.counters(
                Stable,
                "scheduler_queue_incoming_pods_total",
                &["queue", "event"],
                "Pods that entered a scheduling queue, by queue and by the event that moved them.",
            )?,
            goroutines: always.gauges(
                Beta,
                "scheduler_goroutines",
                &["operation"],
                "Tasks and threads that are running, by operation.",
            )?,
            permit_wait_duration: always.histograms(
                Beta,
                "scheduler_permit_wait_duration_seconds",
                &["result"],
                ATTEMPT,
                "Seconds that pods waited on Permit.",
            )?,
            cache_size: always.gauges(
                Alpha,
                "scheduler_cache_size",
                &["type"],
                "Nodes, pods and assumed pods in the cache.",
            )?,
            unschedulable_pods: always.gauges(
                Beta,
                "scheduler_unschedulable_pods",
                &["plugin", "profile"],
                "Unschedulable pods by the plugin that rejected them. A pod counts once for each plugin that rejected it, so \
                 sums over plugins have no meaning.",
            )?,
            plugin_evaluation: always.counters(
                Beta,
                "scheduler_plugin_evaluation_total",
                &["plugin", "extension_point", "profile"],
                "Calls of plugins at PreFilter, Filter, PreScore and Score; at Filter and Score one for each node.",
            )?,
            batch_attempts: always.counters(
                Alpha,
                "scheduler_batch_attempts_total",
                &["profile", "result"],
                "Attempts to reuse the scheduling results of an equal pod.",
            )?,
            batch_cache_flushed: always.counters(
                Alpha,
                "scheduler_batch_cache_flushed_total",
                &["profile", "reason"],
                "Stored scheduling results that were dropped, by reason.",
            )?,
            get_node_hint_duration: always.histograms(
                Alpha,
                "scheduler_get_node_hint_duration_seconds",
                &["hinted", "profile"],
                BATCH,
                "Seconds spent on looking for a node hint in an equal pod's results.",
            )?,
            store_schedule_results_duration: always.histograms(
                Alpha,
                "scheduler_store_schedule_results_duration_seconds",
                &["profile"],
                BATCH,
                "Seconds spent on storing scheduling results for equal pods.",
            )?,
            volume_stage_errors: always.counters(
                Alpha,
                "scheduler_volume_scheduling_stage_error_total",
                &["operation"],
                "Failures to find, assume or bind volumes.",
            )?,
            queueing_hint_duration: hints.histograms(
                Alpha,
                "scheduler_queueing_hint_execution_duration_seconds",
                &["plugin", "event", "hint"],
                CALL,
                "Seconds spent in a plugin's queueing hint.",
            )?,
            inflight_events: hints.gauges(
                Alpha,
                "scheduler_inflight_events",
                &["event"],
                "Events that are kept for pods in flight, and the pods in flight.",
            )?,
            preemption_goroutines_duration: preemption.histograms(
                Alpha,
                "scheduler_preemption_goroutines_duration_seconds",
                &["result"],
                SLI,
                "Seconds spent in the asynchronous part of a preemption.",
            )?,
            preemption_goroutines_total: preemption.counters(
                Alpha,
                "scheduler_preemption_goroutines_execution_total",
                &["result"],
                "Completed asynchronous parts of preemptions.",
            )?,
            async_api_calls: async_calls.counters(
                Alpha,
                "scheduler_async_api_call_execution_total",
                &["call_type", "result"],
                "API calls that the asynchronous dispatcher made.",
            )?,
            async_api_call_duration: async_calls.histograms(
                Alpha,
                "scheduler_async_api_call_execution_duration_seconds",
                &["call_type", "result"],
                ATTEMPT,
                "Duration of an API call of the asynchronous dispatcher in seconds.",
            )?,
            pending_async_api_calls: async_calls.gauges(
                Alpha,
                "scheduler_pending_async_api_calls",
                &["call_type"],
                "API calls waiting in the asynchronous dispatcher.",
            )?,
            resource_claim_creates: extended.counters(
                Alpha,
                "scheduler_resourceclaim_creates_total",
                &["status"],
                "ResourceClaims that the scheduler created or failed to create.",
            )?,
            pod_group_attempts: groups.counters(
                Alpha,
                "scheduler_podgroup_schedule_attempts_total",
                &["result", "profile"],
                "Attempts to schedule pod groups, by result.",
            )?,
            pod_group_attempt_duration: groups.histograms(
                Alpha,
                "scheduler_podgroup_scheduling_attempt_duration_seconds",
                &["result", "profile"],
                ATTEMPT,
                "Duration of an attempt to schedule a pod group in seconds.",
            )?,
            pod_group_algorithm_duration: groups.histogram(
                Alpha,
                "scheduler_podgroup_scheduling_algorithm_duration_seconds",
                ATTEMPT,
                "Seconds spent on finding nodes for a pod group.",
            )?,
            binding_conditions_total: conditions.counters(
                Alpha,
                "scheduler_dra_bindingconditions_allocations_total",
                &["profile", "driver", "status"],
                "Allocations of devices with binding conditions, one for each driver and attempt.",
            )?,
            binding_conditions_wait: conditions.histograms(
                Alpha,
                "scheduler_dra_bindingconditions_wait_duration_seconds",
                &["profile", "driver", "status"],
                Exponential(0.1, 2.0, 14),
                "Seconds that PreBind waited for devices' binding conditions.",
            )?,
        })
    }
}
