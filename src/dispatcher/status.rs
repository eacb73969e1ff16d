//! Patches of a pod's status: merging updates, detecting unchanged ones, and encoding.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Serialize;

use crate::k8s::Pod;
use crate::k8s::conditions::{find_pod_condition, update_pod_condition};

/// Type of the condition that says whether a pod is bound to a node.
pub const POD_SCHEDULED: &str = "PodScheduled";

/// Type of the condition that says why a pod is about to be terminated.
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Changes to a pod's status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusUpdate {
    /// The condition to set. Its times are set when the patch is sent.
    pub condition: Option<PodCondition>,
    /// The node to nominate. Empty clears the nomination and `None` keeps it (upstream's nominating modes Override and Noop).
    pub nominated_node_name: Option<String>,
}

/// The content of a queued patch, merged from all updates since the previous patch was sent.
#[derive(Debug)]
pub(super) struct Draft {
    pod: Arc<Pod>,
    conditions: Vec<PodCondition>,
    nominated_node_name: Option<String>,
}

/// Changes by earlier writes of the same queue, which may not be in the informer's cache yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    conditions: Vec<PodCondition>,
    nominated_node_name: Option<String>,
}

#[derive(Serialize)]
struct PodPatch<'a> {
    status: StatusPatch<'a>,
}

/// Fields in the order of their JSON names, as in upstream's encoding.
#[derive(Serialize)]
struct StatusPatch<'a> {
    #[serde(rename = "$setElementOrder/conditions", skip_serializing_if = "Vec::is_empty")]
    order: Vec<ConditionKey<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<ConditionPatch<'a>>,
    #[serde(rename = "nominatedNodeName", skip_serializing_if = "Option::is_none")]
    nominated_node_name: Changed<&'a str>,
}

#[derive(Serialize)]
struct ConditionKey<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

/// A field of a patch: `None` if unchanged, `Some(None)` (null) if removed.
type Changed<T> = Option<Option<T>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionPatch<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    last_probe_time: Changed<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_transition_time: Changed<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Changed<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Changed<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Changed<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'a str,
}

impl StatusUpdate {
    /// Sets `PodScheduled=False` with the full message, and optionally changes the nomination.
    /// Follows `pkg/scheduler/schedule_one.go#handleSchedulingFailure @v1.36.3`.
    pub fn not_scheduled(pod: &Pod, reason: &str, message: &str, nominated_node_name: Option<String>) -> Self {
        let condition = condition(pod, POD_SCHEDULED, "False", reason, message);
        Self { condition: Some(condition), nominated_node_name }
    }

    /// Changes only the nomination. An empty `node` clears it.
    pub fn nominate(node: &str) -> Self {
        Self { condition: None, nominated_node_name: Some(node.to_owned()) }
    }

    /// The condition that a preemption victim gets before its deletion. `preemptor` is the scheduler name of a preempting pod, or
    /// `podgroup` for a group. Follows `pkg/scheduler/framework/preemption/executor.go#NewExecutor @v1.36.3`.
    pub fn disruption_target(victim: &Pod, preemptor: &str) -> Self {
        let message = format!("{preemptor}: preempting to accommodate a higher priority pod");
        let condition = condition(victim, DISRUPTION_TARGET, "True", "PreemptionByScheduler", &message);
        Self { condition: Some(condition), nominated_node_name: None }
    }
}

fn condition(pod: &Pod, kind: &str, status: &str, reason: &str, message: &str) -> PodCondition {
    PodCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        observed_generation: pod.metadata.generation.filter(|generation| *generation != 0),
        ..PodCondition::default()
    }
}

impl Draft {
    pub(super) fn new(pod: Arc<Pod>, update: StatusUpdate) -> Self {
        let conditions = update.condition.into_iter().collect();
        Self { pod, conditions, nominated_node_name: update.nominated_node_name }
    }

    /// Merges a later update. Values in the update win, other values stay, and `pod` replaces the older version of the pod.
    pub(super) fn absorb(&mut self, pod: Arc<Pod>, update: StatusUpdate) {
        self.pod = pod;
        if let Some(condition) = update.condition {
            set(&mut self.conditions, condition);
        }
        if update.nominated_node_name.is_some() {
            self.nominated_node_name = update.nominated_node_name;
        }
    }

    pub(super) fn pod(&self) -> &Pod {
        &self.pod
    }

    /// Encodes the draft as a patch. Returns the patch with the changes that are written once it has succeeded: its own and those
    /// in `written`. Returns `None` if the status has all these values already.
    ///
    /// A condition counts as changed if its status, reason, message or probe time differs; its observed generation does not
    /// count. The transition time changes only with the status.
    /// Follows `pkg/scheduler/schedule_one.go#updatePod @v1.36.3` and `pkg/api/v1/pod/util.go#UpdatePodCondition @v1.36.3`.
    pub(super) fn patch(&self, written: &Written, now: Timestamp) -> Option<(Bytes, Written)> {
        let mut old = self.pod.status.conditions.clone();
        written.conditions.iter().for_each(|condition| set(&mut old, condition.clone()));
        let mut new = old.clone();
        let mut needed = false;
        for condition in &self.conditions {
            needed |= update_pod_condition(&mut new, condition.clone(), whole_seconds(now));
        }
        let nominated = written.nominated_node_name.as_deref().or(self.pod.nominated_node_name()).unwrap_or_default();
        let renamed = self.nominated_node_name.as_deref().filter(|node| *node != nominated);
        if !needed && renamed.is_none() {
            return None;
        }
        let body = encode(&old, &new, renamed)?;
        let mut written = written.clone();
        for condition in &self.conditions {
            if let Some(condition) = find_pod_condition(&new, &condition.type_) {
                set(&mut written.conditions, condition.clone());
            }
        }
        if let Some(node) = renamed {
            written.nominated_node_name = Some(node.to_owned());
        }
        Some((body, written))
    }
}

fn set(conditions: &mut Vec<PodCondition>, new: PodCondition) {
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

/// Truncates to whole seconds, because the API has no fractions.
fn whole_seconds(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

fn text(field: Option<&String>) -> &str {
    field.map_or("", String::as_str)
}

/// Encodes the two-way strategic merge patch from `old` to `new`.
/// Follows `apimachinery/pkg/util/strategicpatch/patch.go#CreateTwoWayMergePatch @v1.36.3`.
fn encode(old: &[PodCondition], new: &[PodCondition], renamed: Option<&str>) -> Option<Bytes> {
    let conditions: Vec<ConditionPatch<'_>> =
        new.iter().filter_map(|condition| difference(find_pod_condition(old, &condition.type_), condition)).collect();
    // A list that was empty before is patched without an order.
    let order = if conditions.is_empty() || old.is_empty() {
        Vec::new()
    } else {
        new.iter().map(|condition| ConditionKey { kind: &condition.type_ }).collect()
    };
    let nominated_node_name = renamed.map(|node| (!node.is_empty()).then_some(node));
    let patch = PodPatch { status: StatusPatch { order, conditions, nominated_node_name } };
    // Encoding cannot fail: strings, numbers and times always have a JSON form.
    serde_json::to_vec(&patch).ok().map(Bytes::from)
}

/// Returns the changed fields of a condition, with its key. A new condition is returned whole. As in upstream, its probe time is
/// null if it has none.
fn difference<'a>(old: Option<&PodCondition>, new: &'a PodCondition) -> Option<ConditionPatch<'a>> {
    let some = |field: Option<&'a String>| field.map(String::as_str).filter(|text| !text.is_empty());
    let Some(old) = old else {
        return Some(ConditionPatch {
            last_probe_time: Some(new.last_probe_time.as_ref()),
            last_transition_time: Some(new.last_transition_time.as_ref()),
            message: some(new.message.as_ref()).map(Some),
            observed_generation: new.observed_generation.map(Some),
            reason: some(new.reason.as_ref()).map(Some),
            status: Some(&new.status),
            kind: &new.type_,
        });
    };
    if old == new {
        return None;
    }
    let changed_text = |old: Option<&String>, new: Option<&'a String>| (text(old) != text(new)).then(|| some(new));
    Some(ConditionPatch {
        last_probe_time: (old.last_probe_time != new.last_probe_time).then_some(new.last_probe_time.as_ref()),
        last_transition_time: (old.last_transition_time != new.last_transition_time)
            .then_some(new.last_transition_time.as_ref()),
        message: changed_text(old.message.as_ref(), new.message.as_ref()),
        observed_generation: (old.observed_generation != new.observed_generation).then_some(new.observed_generation),
        reason: changed_text(old.reason.as_ref(), new.reason.as_ref()),
        status: (old.status != new.status).then_some(new.status.as_str()),
        kind: &new.type_,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: &str = "2026-02-03T04:05:06.789Z";

    fn pod(status: &serde_json::Value) -> Arc<Pod> {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns", "generation": 3}, "status": status});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn check(pod: &Arc<Pod>, update: StatusUpdate, expected: Option<&str>) {
        let draft = Draft::new(Arc::clone(pod), update);
        let got = draft.patch(&Written::default(), NOW.parse().unwrap());
        let got = got.map(|(body, _)| String::from_utf8(body.to_vec()).unwrap());
        assert_eq!(got.as_deref(), expected);
    }

    fn unschedulable(pod: &Pod, message: &str, node: Option<&str>) -> StatusUpdate {
        StatusUpdate::not_scheduled(pod, "Unschedulable", message, node.map(str::to_owned))
    }

    #[test]
    fn new_condition_is_patched_whole() {
        let fresh = pod(&json!({}));
        check(
            &fresh,
            unschedulable(&fresh, "0/1 nodes", None),
            Some(
                r#"{"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-02-03T04:05:06Z","message":"0/1 nodes","observedGeneration":3,"reason":"Unschedulable","status":"False","type":"PodScheduled"}]}}"#,
            ),
        );
        check(
            &fresh,
            unschedulable(&fresh, "m", Some("n1")),
            Some(
                r#"{"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-02-03T04:05:06Z","message":"m","observedGeneration":3,"reason":"Unschedulable","status":"False","type":"PodScheduled"}],"nominatedNodeName":"n1"}}"#,
            ),
        );
    }

    fn failed_before() -> Arc<Pod> {
        pod(&json!({
            "nominatedNodeName": "n1",
            "conditions": [
                {"type": "Other", "status": "True"},
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "old", "observedGeneration": 2,
                 "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ],
        }))
    }

    #[test]
    fn changed_condition_is_patched_by_its_changed_fields() {
        let known = failed_before();
        check(
            &known,
            unschedulable(&known, "new", None),
            Some(
                r#"{"status":{"$setElementOrder/conditions":[{"type":"Other"},{"type":"PodScheduled"}],"conditions":[{"message":"new","observedGeneration":3,"type":"PodScheduled"}]}}"#,
            ),
        );
        let mut gone = unschedulable(&known, "", None);
        gone.condition.as_mut().unwrap().status = "Unknown".to_owned();
        check(
            &known,
            gone,
            Some(
                r#"{"status":{"$setElementOrder/conditions":[{"type":"Other"},{"type":"PodScheduled"}],"conditions":[{"lastTransitionTime":"2026-02-03T04:05:06Z","message":null,"observedGeneration":3,"status":"Unknown","type":"PodScheduled"}]}}"#,
            ),
        );
    }

    #[test]
    fn unchanged_condition_is_not_patched() {
        let known = failed_before();
        check(&known, unschedulable(&known, "old", None), None);
        check(&known, unschedulable(&known, "old", Some("n1")), None);
        check(&known, StatusUpdate::default(), None);
        check(&known, StatusUpdate::nominate("n1"), None);
        check(&known, StatusUpdate::nominate("n2"), Some(r#"{"status":{"nominatedNodeName":"n2"}}"#));
        check(&known, StatusUpdate::nominate(""), Some(r#"{"status":{"nominatedNodeName":null}}"#));
        // If the patch has another change, the observed generation is also sent.
        check(
            &known,
            unschedulable(&known, "old", Some("")),
            Some(
                r#"{"status":{"$setElementOrder/conditions":[{"type":"Other"},{"type":"PodScheduled"}],"conditions":[{"observedGeneration":3,"type":"PodScheduled"}],"nominatedNodeName":null}}"#,
            ),
        );
    }

    #[test]
    fn disruption_target_condition_is_patched() {
        let victim = pod(&json!({}));
        let update = StatusUpdate::disruption_target(&victim, "default-scheduler");
        check(
            &victim,
            update,
            Some(
                r#"{"status":{"conditions":[{"lastProbeTime":null,"lastTransitionTime":"2026-02-03T04:05:06Z","message":"default-scheduler: preempting to accommodate a higher priority pod","observedGeneration":3,"reason":"PreemptionByScheduler","status":"True","type":"DisruptionTarget"}]}}"#,
            ),
        );
    }

    #[test]
    fn patch_merges_later_updates_and_omits_written_fields() {
        let known = failed_before();
        let mut draft = Draft::new(Arc::clone(&known), unschedulable(&known, "new", Some("n2")));
        draft.absorb(Arc::clone(&known), unschedulable(&known, "newer", None));
        let now: Timestamp = NOW.parse().unwrap();
        let (body, written) = draft.patch(&Written::default(), now).unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains(r#""message":"newer""#) && body.contains(r#""nominatedNodeName":"n2""#), "{body}");
        assert!(draft.patch(&written, now).is_none(), "it has been written");
        let back = Draft::new(Arc::clone(&known), StatusUpdate::nominate(""));
        let (body, _) = back.patch(&written, now).unwrap();
        assert_eq!(body, r#"{"status":{"nominatedNodeName":null}}"#);
    }
}
