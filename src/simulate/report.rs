//! Report of a simulation, as data.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::world::Running;
use crate::apiserver::{Object, kinds};
use crate::dispatcher::POD_SCHEDULED;
use crate::model::{CPU, EPHEMERAL_STORAGE, MEMORY, NodeInfo, PODS, Resources, quantity_of};

/// Result of a simulation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Every scheduled or pending pod, by namespace and name.
    pub pods: Vec<PodReport>,
    /// All nodes, sorted by name.
    pub nodes: Vec<NodeReport>,
    /// Preempted pods, in the order of their preemption. Their replacements are in `pods`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preempted: Vec<PreemptedReport>,
    /// Numbers of pods and nodes.
    pub totals: Totals,
    /// Events of the scheduler in their order, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<EventReport>>,
}

/// Placement of a pod, or why it is pending.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodReport {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Node of the pod, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Whether the pod had its node from the start.
    pub was_placed: bool,
    /// Reason why the pod is pending: `Unschedulable`, `SchedulerError`, `SchedulingGated`, `Terminating`, or `NotOurs` for a pod
    /// of a scheduler that is not configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The scheduler's message about a pending pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A pod that was preempted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PreemptedReport {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Node from which the pod was preempted.
    pub node: String,
}

/// Resources of a node: amounts by resource, in the format of the API.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Name of the node.
    pub name: String,
    /// Resources that pods may use.
    pub allocatable: BTreeMap<String, String>,
    /// Resources requested at the start.
    pub before: BTreeMap<String, String>,
    /// Resources requested at the end.
    pub after: BTreeMap<String, String>,
}

/// Numbers of pods and nodes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Number of all nodes.
    pub nodes: usize,
    /// Pods that had a node from the start.
    pub already_placed: usize,
    /// Pods that were scheduled in the simulation.
    pub placed: usize,
    /// Pods without a node.
    pub pending: usize,
    /// Virtual seconds from the start of the scheduler until the number of scheduled pods last changed.
    pub virtual_seconds: f64,
}

/// An event of the scheduler.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventReport {
    /// Time of the event in virtual time.
    pub time: String,
    /// Type of the event: `Normal` or `Warning`.
    pub r#type: String,
    /// Reason of the event.
    pub reason: String,
    /// The object that the event regards.
    pub object: String,
    /// Number of occurrences, if there is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Text of the event.
    pub note: String,
}

/// Resources in use on each node before the first pod is scheduled.
pub(super) struct UsageBefore(BTreeMap<String, BTreeMap<String, String>>);

impl UsageBefore {
    pub(super) fn take(running: &Running) -> Self {
        let nodes = running.engine.shared.cache.nodes();
        Self(nodes.iter().map(|node| (node.name().to_owned(), used(node))).collect())
    }
}

impl Report {
    /// Whether every pod has a node.
    pub fn all_placed(&self) -> bool {
        self.totals.pending == 0
    }

    pub(super) fn new(
        running: &Running,
        mut before: UsageBefore,
        placed_before: &BTreeSet<String>,
        events: bool,
    ) -> Self {
        let mut pods: Vec<PodReport> = Vec::new();
        for object in running.server().list(&kinds::PODS) {
            if !matches!(object.field("status.phase"), Some("Succeeded" | "Failed")) {
                pods.push(PodReport::new(running, &object, placed_before.contains(object.uid())));
            }
        }
        let mut nodes: Vec<NodeReport> = running
            .engine
            .shared
            .cache
            .nodes()
            .iter()
            .filter(|node| node.try_node().is_some())
            .map(|node| NodeReport {
                name: node.name().to_owned(),
                allocatable: amounts(node.allocatable(), Some(node.allocatable().allowed_pods)),
                before: before.0.remove(node.name()).unwrap_or_default(),
                after: used(node),
            })
            .collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        let already_placed = pods.iter().filter(|pod| pod.was_placed).count();
        let pending = pods.iter().filter(|pod| pod.node.is_none()).count();
        let totals = Totals {
            nodes: nodes.len(),
            already_placed,
            placed: pods.len() - pending - already_placed,
            pending,
            virtual_seconds: running.elapsed().as_secs_f64(),
        };
        let preempted = running.controllers.preempted().to_vec();
        Self { pods, nodes, preempted, totals, events: events.then(|| event_reports(running)) }
    }
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty())
}

impl PreemptedReport {
    pub(super) fn new(pod: &Object) -> Self {
        Self {
            namespace: pod.namespace().to_owned(),
            name: pod.name().to_owned(),
            node: assigned_node(pod).unwrap_or_default().to_owned(),
        }
    }
}

impl PodReport {
    fn new(running: &Running, pod: &Object, was_placed: bool) -> Self {
        let node = assigned_node(pod).map(str::to_owned);
        // Only pending pods have to be parsed.
        let (reason, message) = if node.is_some() { (None, None) } else { Self::why(running, &pod.value()) };
        let (namespace, name) = (pod.namespace().to_owned(), pod.name().to_owned());
        Self { namespace, name, node, was_placed, reason, message }
    }

    /// Returns the reason why a pod is pending, and the scheduler's message.
    fn why(running: &Running, pod: &Value) -> (Option<String>, Option<String>) {
        let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
        let condition = conditions.into_iter().flatten().find(|condition| condition["type"] == POD_SCHEDULED);
        let gated = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).filter(|gates| !gates.is_empty());
        let scheduler = text(pod, "/spec/schedulerName").unwrap_or_default();
        let ours = running.engine.profiles.iter().any(|profile| **profile.name() == *scheduler);
        match gated {
            Some(gates) => {
                let names: Vec<&str> = gates.iter().filter_map(|gate| gate["name"].as_str()).collect();
                let message = format!("waiting for scheduling gates: {}", names.join(", "));
                (Some("SchedulingGated".to_owned()), Some(message))
            }
            None if !pod["metadata"]["deletionTimestamp"].is_null() => {
                let message = "the pod is being deleted and is not scheduled";
                (Some("Terminating".to_owned()), Some(message.to_owned()))
            }
            None if !ours => {
                let message = format!("no profile has the schedulerName {scheduler:?}");
                (Some("NotOurs".to_owned()), Some(message))
            }
            None => {
                let said = |path| condition.and_then(|condition| text(condition, path)).map(str::to_owned);
                (said("/reason"), said("/message"))
            }
        }
    }
}

/// Returns the pod's node.
pub(super) fn assigned_node(pod: &Object) -> Option<&str> {
    pod.field("spec.nodeName").filter(|node| !node.is_empty())
}

fn used(node: &NodeInfo) -> BTreeMap<String, String> {
    amounts(node.requested(), i64::try_from(node.pods().len()).ok())
}

/// Formats amounts like the API. Amounts of 0 are omitted, except for CPU, memory and pods.
fn amounts(resources: &Resources, pods: Option<i64>) -> BTreeMap<String, String> {
    let always = [(CPU, resources.milli_cpu), (MEMORY, resources.memory)];
    let others = resources.scalars().chain([(EPHEMERAL_STORAGE, resources.ephemeral_storage)]);
    let listed = always.into_iter().chain(others.filter(|(_, amount)| *amount != 0));
    let mut amounts: BTreeMap<String, String> =
        listed.map(|(name, amount)| (name.to_owned(), quantity_of(name, amount).to_string())).collect();
    amounts.insert(PODS.to_owned(), pods.unwrap_or_default().to_string());
    amounts
}

fn event_reports(running: &Running) -> Vec<EventReport> {
    let objects = running.server().list(&kinds::EVENTS);
    let mut events: Vec<(u64, EventReport)> = objects
        .iter()
        .map(|object| {
            let value = running.server().value_as(&kinds::EVENTS, object);
            let said = |path: &str| text(&value, path).unwrap_or_default().to_owned();
            let event = EventReport {
                time: said("/eventTime"),
                r#type: said("/type"),
                reason: said("/reason"),
                object: format!(
                    "{} {}/{}",
                    said("/regarding/kind"),
                    said("/regarding/namespace"),
                    said("/regarding/name")
                ),
                count: value.pointer("/series/count").and_then(Value::as_u64),
                note: said("/note"),
            };
            (object.version(), event)
        })
        .collect();
    events.sort_by(|(a, first), (b, second)| (&first.time, a).cmp(&(&second.time, b)));
    events.into_iter().map(|(_, event)| event).collect()
}
