//! Tests that compare every family with a table of upstream's names, types, labels and buckets.

use prometheus::proto::{Bucket, LabelPair, MetricFamily, MetricType};

use super::*;

use MetricType::{COUNTER as Counter, GAUGE as Gauge, HISTOGRAM as Histogram_};

/// Name without `scheduler_`, type, stability, labels in alphabetical order, and first, second, last and number of buckets.
type Row = (&'static str, MetricType, &'static str, &'static [&'static str], Option<(f64, f64, f64, usize)>);

const ATTEMPT: Option<(f64, f64, f64, usize)> = Some((0.001, 0.002, 16.384, 15));
const POINT: Option<(f64, f64, f64, usize)> = Some((0.0001, 0.0002, 0.2048, 12));
const CALL: Option<(f64, f64, f64, usize)> = Some((0.00001, 0.000_015, 0.022_168_378_200_531, 20));
const BATCH: Option<(f64, f64, f64, usize)> = Some((0.00001, 0.00002, 0.02048, 12));
const SLI: Option<(f64, f64, f64, usize)> = Some((0.01, 0.02, 5242.88, 20));

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("async_api_call_execution_duration_seconds", Histogram_, "ALPHA", &["call_type", "result"], ATTEMPT),
    ("async_api_call_execution_total", Counter, "ALPHA", &["call_type", "result"], None),
    ("batch_attempts_total", Counter, "ALPHA", &["profile", "result"], None),
    ("batch_cache_flushed_total", Counter, "ALPHA", &["profile", "reason"], None),
    ("cache_size", Gauge, "ALPHA", &["type"], None),
    ("dra_bindingconditions_allocations_total", Counter, "ALPHA", &["driver", "profile", "status"], None),
    ("dra_bindingconditions_wait_duration_seconds", Histogram_, "ALPHA", &["driver", "profile", "status"], Some((0.1, 0.2, 819.2, 14))),
    ("event_handling_duration_seconds", Histogram_, "ALPHA", &["event"], POINT),
    ("framework_extension_point_duration_seconds", Histogram_, "STABLE", &["extension_point", "profile", "status"], POINT),
    ("get_node_hint_duration_seconds", Histogram_, "ALPHA", &["hinted", "profile"], BATCH),
    ("goroutines", Gauge, "BETA", &["operation"], None),
    ("inflight_events", Gauge, "ALPHA", &["event"], None),
    ("pending_async_api_calls", Gauge, "ALPHA", &["call_type"], None),
    ("pending_pods", Gauge, "STABLE", &["queue"], None),
    ("permit_wait_duration_seconds", Histogram_, "BETA", &["result"], ATTEMPT),
    ("plugin_evaluation_total", Counter, "BETA", &["extension_point", "plugin", "profile"], None),
    ("plugin_execution_duration_seconds", Histogram_, "ALPHA", &["extension_point", "plugin", "status"], CALL),
    ("pod_scheduled_after_flush_total", Counter, "ALPHA", &[], None),
    ("pod_scheduling_attempts", Histogram_, "STABLE", &[], Some((1.0, 2.0, 16.0, 5))),
    ("pod_scheduling_sli_duration_seconds", Histogram_, "BETA", &["attempts"], SLI),
    ("podgroup_schedule_attempts_total", Counter, "ALPHA", &["profile", "result"], None),
    ("podgroup_scheduling_algorithm_duration_seconds", Histogram_, "ALPHA", &[], ATTEMPT),
    ("podgroup_scheduling_attempt_duration_seconds", Histogram_, "ALPHA", &["profile", "result"], ATTEMPT),
    ("preemption_attempts_total", Counter, "STABLE", &[], None),
    ("preemption_goroutines_duration_seconds", Histogram_, "ALPHA", &["result"], SLI),
    ("preemption_goroutines_execution_total", Counter, "ALPHA", &["result"], None),
    ("preemption_victims", Histogram_, "STABLE", &[], Some((1.0, 2.0, 64.0, 7))),
    ("queue_incoming_pods_total", Counter, "STABLE", &["event", "queue"], None),
    ("queueing_hint_execution_duration_seconds", Histogram_, "ALPHA", &["event", "hint", "plugin"], CALL),
    ("resourceclaim_creates_total", Counter, "ALPHA", &["status"], None),
    ("schedule_attempts_total", Counter, "STABLE", &["profile", "result"], None),
    ("scheduling_algorithm_duration_seconds", Histogram_, "ALPHA", &[], ATTEMPT),
    ("scheduling_attempt_duration_seconds", Histogram_, "STABLE", &["profile", "result"], ATTEMPT),
    ("store_schedule_results_duration_seconds", Histogram_, "ALPHA", &["profile"], BATCH),
    ("unschedulable_pods", Gauge, "BETA", &["plugin", "profile"], None),
    ("volume_scheduling_stage_error_total", Counter, "ALPHA", &["operation"], None),
];

/// Families with series that exist before any event.
const PRE_CREATED: &[&str] = &[
    "scheduler_pending_pods",
    "scheduler_pod_scheduled_after_flush_total",
    "scheduler_pod_scheduling_attempts",
    "scheduler_podgroup_scheduling_algorithm_duration_seconds",
    "scheduler_preemption_attempts_total",
    "scheduler_preemption_victims",
    "scheduler_scheduling_algorithm_duration_seconds",
];

#[test]
fn reference_documents_every_family() {
    let document = include_str!("../../docs/reference.md");
    for (name, kind, stability, labels, _) in TABLE {
        let kind = match kind {
            Counter => "counter",
            Gauge => "gauge",
            _ => "histogram",
        };
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let row = format!("| `scheduler_{name}` | {kind} | {stability} | {} |", labels.join(", "));
        assert!(document.contains(&row), "docs/reference.md lacks {row}");
    }
    assert_eq!(document.matches("\n| `scheduler_").count(), TABLE.len());
}

fn everything_on() -> Arc<Metrics> {
    Metrics::new(&Registry::new(), |_| true).unwrap()
}

fn names(metrics: &Metrics) -> Vec<String> {
    metrics.registry().gather().iter().map(|family| family.name().to_owned()).collect()
}

/// Creates at least one series of every family.
fn touch_all(metrics: &Metrics) {
    let profile = metrics.profile("default-scheduler");
    profile.attempt(AttemptResult::Scheduled, 0.5);
    profile.group_attempt(AttemptResult::WaitingOnPreemption, 0.5);
    profile.point(Point::Filter, StatusCode::Success, 0.5);
    profile.plugin_evaluation("NodeName", Point::Filter).inc_by(100);
    metrics.unschedulable_pods("NodeName", "default-scheduler").inc();
    profile.batch_attempt(BatchAttempt::NoHint);
    profile.batch_flushed(BatchFlush::EmptyList);
    profile.node_hint_asked(true, 0.5);
    profile.results_stored(0.5);
    profile.binding_conditions_waited("driver", BindingConditions::Timeout, 0.5);
    profile.binding_conditions_allocation("driver", BindingConditions::Failure).inc();
    metrics.cache_size(CacheKind::AssumedPods).set(3);
    metrics.incoming_pods(IncomingQueue::Active, "PodAdd").inc();
    metrics.inflight_events(EVENT_POD_POPPED).inc();
    metrics.event_handling_duration("NodeAdd").observe(0.5);
    metrics.pod_scheduling_sli_duration(20).observe(0.5);
    metrics.permit_wait_duration(StatusCode::Unschedulable).observe(0.5);
    metrics.preemption_goroutine(Outcome::Success, 0.0);
    metrics.api_call(ApiCallType::PodBinding, Outcome::Error, 0.5);
    metrics.pending_api_calls(ApiCallType::PodStatusPatch).inc();
    metrics.resource_claim_creates(true).inc();
    metrics.volume_stage_errors(VolumeStage::Predicate).inc();
    drop(metrics.running(Operation::Binding));
    let recorder = metrics.recorder();
    recorder.observe(metrics.plugin_durations("NodeName", Point::Filter).series(StatusCode::Success), 0.5);
    recorder.observe(metrics.hint_durations("NodeName", "NodeAdd").series(HintResult::QueueSkip), 0.5);
    metrics.flush();
}

fn check_family(family: &MetricFamily, row: &Row) {
    let (name, kind, stability, labels, buckets) = row;
    assert_eq!(family.name(), format!("scheduler_{name}"));
    assert_eq!(family.get_field_type(), *kind, "{name}");
    assert!(family.help().starts_with(&format!("[{stability}] ")), "{name}: {}", family.help());
    for metric in family.get_metric() {
        let got: Vec<&str> = metric.get_label().iter().map(LabelPair::name).collect();
        assert_eq!(got, *labels, "{name}");
        let got: Vec<f64> = metric.get_histogram().get_bucket().iter().map(Bucket::upper_bound).collect();
        match *buckets {
            None => assert!(got.is_empty(), "{name}"),
            Some((first, second, last, count)) => {
                assert_eq!(got.len(), count, "{name}");
                for (got, expected) in [(got[0], first), (got[1], second), (got[count - 1], last)] {
                    assert!((got - expected).abs() < expected * 1e-9, "{name}: {got} is not {expected}");
                }
            }
        }
    }
}

#[test]
fn families_equal_upstreams() {
    let metrics = everything_on();
    touch_all(&metrics);
    let families = metrics.registry().gather();
    let expected: Vec<String> = TABLE.iter().map(|row| format!("scheduler_{}", row.0)).collect();
    assert_eq!(names(&metrics), expected);
    families.iter().zip(TABLE).for_each(|(family, row)| check_family(family, row));
}

#[test]
fn series_are_created_at_their_first_use() {
    let metrics = everything_on();
    let profile = metrics.profile("default-scheduler");
    let _durations = metrics.plugin_durations("NodeName", Point::Filter);
    assert_eq!(names(&metrics), PRE_CREATED);
    let pending = "scheduler_pending_pods{queue=\"active\"} 0\n\
                   scheduler_pending_pods{queue=\"backoff\"} 0\n\
                   scheduler_pending_pods{queue=\"gated\"} 0\n\
                   scheduler_pending_pods{queue=\"unschedulable\"} 0\n";
    assert!(metrics.gather_text().contains(pending));
    let _evaluations = profile.plugin_evaluation("NodeName", Point::Filter);
    let line = "scheduler_plugin_evaluation_total{extension_point=\"Filter\",plugin=\"NodeName\",profile=\"default-scheduler\"} 0\n";
    assert!(metrics.gather_text().contains(line));
}

#[test]
fn families_of_disabled_gates_are_not_exported() {
    let metrics = Metrics::detached();
    touch_all(&metrics);
    let shown = names(&metrics);
    for hidden in ["async_api_call_execution_total", "pending_async_api_calls", "podgroup_schedule_attempts_total"] {
        assert!(!shown.contains(&format!("scheduler_{hidden}")), "{hidden}");
    }
    assert_eq!(shown.len(), TABLE.len() - 6, "three families of asynchronous calls and three of pod groups are off");
    assert!(Metrics::new(metrics.registry(), |_| true).is_err(), "a registry holds each family once");
}

#[test]
fn label_of_attempts_is_capped_at_15() {
    let metrics = everything_on();
    for attempts in [0, 1, 14, 15, 99] {
        metrics.pod_scheduling_sli_duration(attempts).observe(1.0);
    }
    let text = metrics.gather_text();
    let counts: Vec<&str> =
        text.lines().filter(|line| line.starts_with("scheduler_pod_scheduling_sli_duration_seconds_count")).collect();
    let count = |label: &str, n: u32| {
        format!("scheduler_pod_scheduling_sli_duration_seconds_count{{attempts=\"{label}\"}} {n}")
    };
    assert_eq!(counts, [count("1", 2), count("14", 1), count("15+", 2)]);
}

#[test]
fn running_operations_are_counted_until_they_end() {
    let metrics = everything_on();
    let (one, two) = (metrics.running(Operation::Binding), metrics.running(Operation::Binding));
    drop(one);
    assert!(metrics.gather_text().contains("scheduler_goroutines{operation=\"binding\"} 1\n"));
    drop(two);
    assert!(metrics.gather_text().contains("scheduler_goroutines{operation=\"binding\"} 0\n"));
}

#[test]
fn small_bucket_bounds_are_formatted_as_go_does() {
    let metrics = everything_on();
    metrics.profile("p").results_stored(0.5);
    let line = "scheduler_store_schedule_results_duration_seconds_bucket{profile=\"p\",le=\"1e-05\"} 0\n";
    assert!(metrics.gather_text().contains(line));
}
