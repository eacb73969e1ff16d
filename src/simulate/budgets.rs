//! Status of disruption budgets, computed like by the disruption controller.
//!
//! Follows `pkg/controller/disruption/disruption.go#DisruptionController.trySync @v1.36.3`. There are no kubelets here, so a
//! pod on a node counts as ready unless its status says otherwise.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::owned::controller;
use crate::apiserver::{ApiServer, Kind, kinds};
use crate::k8s::{Selector, StringMap};

/// Time after which an announced eviction is no longer expected. Follows
/// `pkg/controller/disruption/disruption.go#DeletionTimeout @v1.36.3`.
const DELETION_TIMEOUT: SignedDuration = SignedDuration::from_mins(2);

/// The properties of a pod that budgets depend on.
struct PodFacts {
    name: String,
    labels: StringMap,
    ready: bool,
    ending: bool,
    /// UID of the pod's controller.
    controller: Option<String>,
}

/// Pods and scales from which budgets are computed.
struct Cluster {
    /// Pods of each namespace.
    pods: BTreeMap<String, Vec<PodFacts>>,
    /// UID and replicas of each controller, by the controller's UID. For a replica set of a deployment, the UID and replicas
    /// are those of the deployment.
    scales: BTreeMap<String, (String, i64)>,
}

/// Pod counts in a budget's status.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    expected: i64,
    desired: i64,
    healthy: i64,
    allowed: i64,
}

/// Keeps the status of budgets up to date.
#[derive(Default)]
pub(super) struct Budgets {
    /// The server's version at the last refresh.
    seen: u64,
    /// The last written status, by the budget's UID.
    written: BTreeMap<String, Value>,
}

impl Budgets {
    /// Computes the status of every budget if anything has changed. Returns whether a status has.
    pub(super) fn refresh(&mut self, server: &ApiServer, now: Timestamp) -> bool {
        let budgets = server.list(&kinds::POD_DISRUPTION_BUDGETS);
        if budgets.is_empty() || self.seen == server.version() {
            return false;
        }
        let cluster = Cluster::read(server);
        let mut changed = false;
        for budget in budgets {
            let mut value = budget.value();
            let status = cluster.status(&value, now);
            if self.written.get(budget.uid()) != Some(&status) {
                value["status"] = status.clone();
                // The object exists, since it was just listed, and its status is always valid.
                changed |= server.update_status(value).is_ok();
                self.written.insert(budget.uid().to_owned(), status);
            }
        }
        self.seen = server.version();
        changed
    }
}

impl Cluster {
    fn read(server: &ApiServer) -> Self {
        let mut pods: BTreeMap<String, Vec<PodFacts>> = BTreeMap::new();
        for object in server.list(&kinds::PODS) {
            pods.entry(object.namespace().to_owned()).or_default().push(PodFacts::of(object.name(), &object.value()));
        }
        let mut scales: BTreeMap<String, (String, i64)> = BTreeMap::new();
        let of_kind: [&'static Kind; 4] =
            [&kinds::DEPLOYMENTS, &kinds::REPLICATION_CONTROLLERS, &kinds::STATEFUL_SETS, &kinds::REPLICA_SETS];
        for object in of_kind.into_iter().flat_map(|kind| server.list(kind)) {
            let value = object.value();
            let own = (object.uid().to_owned(), value["spec"]["replicas"].as_i64().unwrap_or(1));
            let above = controller(&value).and_then(|owner| scales.get(owner).cloned());
            scales.insert(object.uid().to_owned(), above.unwrap_or(own));
        }
        Self { pods, scales }
    }

    /// Computes the status of a budget.
    fn status(&self, budget: &Value, now: Timestamp) -> Value {
        let spec = PodDisruptionBudgetSpec::deserialize(&budget["spec"]).unwrap_or_default();
        let selector = Selector::from_label_selector(spec.selector.as_ref()).unwrap_or(Selector::Nothing);
        let namespace = budget["metadata"]["namespace"].as_str().unwrap_or_default();
        let pods = self.pods.get(namespace).map_or(&[][..], Vec::as_slice);
        let pods: Vec<&PodFacts> = pods.iter().filter(|pod| selector.matches(&pod.labels)).collect();
        let disrupted = still_disrupted(&budget["status"]["disruptedPods"], &pods, now);
        let (count, reason) = match self.expectation(&spec, &pods) {
            Some((expected, desired)) => {
                let counts = |pod: &&&PodFacts| pod.ready && !pod.ending && !disrupted.contains_key(&pod.name);
                let healthy = i64::try_from(pods.iter().filter(counts).count()).unwrap_or(i64::MAX);
                let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
                let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
                (Count { expected, desired, healthy, allowed }, reason)
            }
            None => (Count::default(), "SyncFailed"),
        };
        let mut status = json!({
            "expectedPods": count.expected, "desiredHealthy": count.desired, "currentHealthy": count.healthy,
            "disruptionsAllowed": count.allowed,
            "observedGeneration": budget["metadata"]["generation"],
            "conditions": [condition(budget, count.allowed > 0, reason, now)],
        });
        if !disrupted.is_empty() {
            status["disruptedPods"] = json!(disrupted);
        }
        status
    }

    /// Returns the expected number of pods and the number that have to be healthy. `None` if a controller has no scale.
    /// Follows `pkg/controller/disruption/disruption.go#DisruptionController.getExpectedPodCount @v1.36.3`.
    fn expectation(&self, spec: &PodDisruptionBudgetSpec, pods: &[&PodFacts]) -> Option<(i64, i64)> {
        let there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
        match (&spec.max_unavailable, &spec.min_available) {
            (Some(most), _) => {
                let expected = self.scale(pods)?;
                Some((expected, (expected - scaled(most, expected)).max(0)))
            }
            (None, Some(IntOrString::Int(least))) => Some((there, i64::from(*least))),
            (None, Some(least)) => {
                let expected = self.scale(pods)?;
                Some((expected, scaled(least, expected)))
            }
            (None, None) => Some((0, 0)),
        }
    }

    /// Returns the total replicas of all controllers of the pods. Pods without a controller do not count.
    fn scale(&self, pods: &[&PodFacts]) -> Option<i64> {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut sum = 0;
        for uid in pods.iter().filter_map(|pod| pod.controller.as_ref()) {
            let (owner, replicas) = self.scales.get(uid)?;
            if seen.insert(owner) {
                sum += replicas;
            }
        }
        Some(sum)
    }
}

impl PodFacts {
    fn of(name: &str, pod: &Value) -> Self {
        let conditions = pod["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
        let terminal = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let placed = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        Self {
            name: name.to_owned(),
            labels: StringMap::deserialize(&pod["metadata"]["labels"]).unwrap_or_default(),
            ready: placed && !terminal && ready.is_none_or(|ready| ready["status"] == "True"),
            ending: !pod["metadata"]["deletionTimestamp"].is_null(),
            controller: controller(pod).map(str::to_owned),
        }
    }
}

/// Returns the number, or the percentage of `total` rounded up.
fn scaled(value: &IntOrString, total: i64) -> i64 {
    match value {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(text) => {
            let percent = text.trim_end_matches('%').parse::<i64>().unwrap_or(0);
            // Rounded up: 50 % of 3 are 2.
            (total * percent + 99) / 100
        }
    }
}

/// Returns the announced evictions that are still expected.
/// Follows `pkg/controller/disruption/disruption.go#DisruptionController.buildDisruptedPodMap @v1.36.3`.
fn still_disrupted(announced: &Value, pods: &[&PodFacts], now: Timestamp) -> BTreeMap<String, Value> {
    let mut kept = BTreeMap::new();
    for (name, time) in announced.as_object().into_iter().flatten() {
        let there = pods.iter().any(|pod| pod.name == *name && !pod.ending);
        let since = time.as_str().and_then(|time| time.parse::<Timestamp>().ok());
        if there && since.is_some_and(|since| since + DELETION_TIMEOUT > now) {
            kept.insert(name.clone(), time.clone());
        }
    }
    kept
}

/// Returns the condition `DisruptionAllowed`. Its transition time changes only with its status.
fn condition(budget: &Value, allowed: bool, reason: &str, now: Timestamp) -> Value {
    let conditions = budget["status"]["conditions"].as_array();
    let old = conditions.into_iter().flatten().find(|condition| condition["type"] == "DisruptionAllowed");
    let status = if allowed { "True" } else { "False" };
    let since = old.filter(|old| old["status"] == status).and_then(|old| old["lastTransitionTime"].as_str());
    let whole_seconds = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    json!({
        "type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": since.map_or(whole_seconds, str::to_owned),
        "observedGeneration": budget["metadata"]["generation"],
    })
}

#[cfg(test)]
mod tests;
