//! Tries single changes of a pod or its cluster to find those after which some node could take the pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, Taint, Toleration};

use super::change::Change;
use crate::config::Gate;
use crate::framework::{Code, Framework};
use crate::k8s::tolerations::{do_not_schedule, tolerates};
use crate::k8s::{Container, Node, Pod, Quantity};
use crate::model::{CPU, MEMORY, NodeInfo, NodeOrdinal, PodInfo, Resources, Snapshot, quantity_of};
use crate::plugins::node_resources;
use crate::scheduler::{NodeEvaluation, evaluate_filters, feasible_nodes};
use crate::simulate::Loading;

/// Maximum number of candidates that are tried for one kind of change: taints and kinds of nodes, the most frequent first,
/// cordoned nodes, and amounts of a resource, the largest first.
const TRIED: usize = 20;

/// Prefix of a resource's name in the reasons of `NodeResourcesFit`.
const INSUFFICIENT: &str = "Insufficient ";

/// Taint key of unschedulable nodes.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Resources whose request may be lower than their limit.
const OVERCOMMITTED: [&str; 3] = [CPU, MEMORY, "ephemeral-storage"];

/// Name of a node that is added.
const NEW_NODE: &str = "new-node";

/// Removes one requirement from a pod. Returns false if the pod does not have it.
type Relief = fn(&mut Pod) -> bool;

/// Requirements that can be removed from a pod, with descriptions.
const RELIEFS: [(&str, Relief); 6] = [
    ("drop its nodeSelector", |pod| !std::mem::take(&mut pod.spec.node_selector).is_empty()),
    ("drop its required node affinity", |pod| {
        let own = affinity(pod).and_then(|affinity| affinity.node_affinity.as_mut());
        own.is_some_and(|own| own.required_during_scheduling_ignored_during_execution.take().is_some())
    }),
    ("drop its required pod affinity", |pod| {
        let own = affinity(pod).and_then(|affinity| affinity.pod_affinity.as_mut());
        own.is_some_and(|own| own.required_during_scheduling_ignored_during_execution.take().is_some())
    }),
    ("drop its required pod anti-affinity", |pod| {
        let own = affinity(pod).and_then(|affinity| affinity.pod_anti_affinity.as_mut());
        own.is_some_and(|own| own.required_during_scheduling_ignored_during_execution.take().is_some())
    }),
    ("drop its DoNotSchedule spread constraints", |pod| {
        let constraints = &mut pod.spec.topology_spread_constraints;
        let before = constraints.len();
        constraints.retain(|constraint| constraint.when_unsatisfiable != "DoNotSchedule");
        constraints.len() < before
    }),
    ("drop its host ports", |pod| {
        let containers = pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers);
        let ports = containers.flat_map(|container| &mut container.ports);
        ports.map(|port| std::mem::take(&mut port.host_port)).max().is_some_and(|port| port > 0)
    }),
];

fn affinity(pod: &mut Pod) -> Option<&mut Affinity> {
    pod.spec.affinity.as_deref_mut()
}

/// A pod that fits nowhere, with its cluster and profile.
pub(super) struct WhatIf<'a> {
    cluster: &'a Loading,
    profile: &'a Framework,
    pod: &'a Arc<PodInfo>,
}

impl<'a> WhatIf<'a> {
    pub(super) fn new(cluster: &'a Loading, profile: &'a Framework, pod: &'a Arc<PodInfo>) -> Self {
        Self { cluster, profile, pod }
    }

    /// Returns the changes that would help. `nodes` are the verdicts without a change.
    pub(super) fn changes(&self, nodes: &[NodeEvaluation]) -> Vec<Change> {
        let mut changes = self.tolerations();
        changes.extend(self.uncordoned());
        changes.extend(self.lower_requests(nodes));
        for (what, relief) in RELIEFS {
            changes.extend(self.change_pod(what, relief));
        }
        changes.extend(self.added_node());
        changes
    }

    /// Returns the change of the pod if it applies and the pod fits somewhere after it.
    fn change_pod(&self, what: impl Into<String>, change: impl FnOnce(&mut Pod) -> bool) -> Option<Change> {
        let mut pod = (**self.pod.pod()).clone();
        let nodes = if change(&mut pod) { self.takers(&self.cluster.snapshot, &self.info(pod)) } else { Vec::new() };
        (!nodes.is_empty()).then(|| Change { change: what.into(), nodes })
    }

    fn info(&self, pod: Pod) -> Arc<PodInfo> {
        let classes = self.profile.handle().classes();
        Arc::new(PodInfo::with_gates(Arc::new(pod), classes, self.cluster.resource_gates))
    }

    fn takers(&self, snapshot: &Snapshot, pod: &Arc<PodInfo>) -> Vec<Arc<str>> {
        let nodes = feasible_nodes(self.profile, snapshot, pod, self.cluster.now);
        nodes.into_iter().map(|node| snapshot.node(node).name_arc().clone()).collect()
    }

    /// Returns the changes that let the pod tolerate one more taint.
    fn tolerations(&self) -> Vec<Change> {
        let nodes = self.cluster.snapshot.nodes().iter().map(|node| node.node());
        let mut taints: BTreeMap<(&str, &str, &str), (usize, &Taint)> = BTreeMap::new();
        let all = nodes.flat_map(|node| node.spec.taints.iter().map(move |taint| (node, taint)));
        for (_, taint) in all.filter(|(node, taint)| self.is_obstacle(node, taint)) {
            let key = (&*taint.key, taint.value.as_deref().unwrap_or_default(), &*taint.effect);
            taints.entry(key).or_insert((0, taint)).0 += 1;
        }
        let mut taints: Vec<(usize, &Taint)> = taints.into_values().collect();
        taints.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let tolerate = |taint: &Taint| {
            self.change_pod(format!("tolerate the taint {}", shown(taint)), |pod| {
                pod.spec.tolerations.push(toleration(taint));
                true
            })
        };
        taints.into_iter().take(TRIED).filter_map(|(_, taint)| tolerate(taint)).collect()
    }

    /// Whether the taint keeps the pod away. The taint of a cordoned node is ignored, since uncordoning removes it.
    fn is_obstacle(&self, node: &Node, taint: &Taint) -> bool {
        let tolerations = &self.pod.pod().spec.tolerations;
        let compare = self.profile.handle().gates().enabled(Gate::TaintTolerationComparisonOperators);
        !(node.spec.unschedulable && taint.key == UNSCHEDULABLE)
            && do_not_schedule(taint)
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint, compare))
    }

    /// Returns the cordoned nodes that could take the pod if that node alone were uncordoned.
    fn uncordoned(&self) -> Option<Change> {
        let nodes = self.cluster.snapshot.nodes();
        let uncordoned = |which: &dyn Fn(&NodeInfo) -> bool| {
            let uncordon = |node: &Arc<NodeInfo>| {
                if !node.is_unschedulable() || !which(node) {
                    return node.clone();
                }
                let mut changed = (**node).clone();
                changed.set_node(Arc::new(schedulable(node.node())));
                Arc::new(changed)
            };
            self.takers(&Snapshot::from_nodes(nodes.iter().map(uncordon).collect()), self.pod)
        };
        if !nodes.iter().any(|node| node.is_unschedulable()) {
            return None;
        }
        // First find the nodes that could take the pod if all were schedulable, then try each of them alone.
        let hopeful = uncordoned(&|_| true);
        let is_cordoned = |name: &str| self.cluster.snapshot.get(name).is_some_and(|node| node.is_unschedulable());
        let hopeful = hopeful.into_iter().filter(|name| is_cordoned(name)).take(TRIED);
        let nodes: Vec<Arc<str>> =
            hopeful.filter(|name| uncordoned(&|node| node.name() == &**name).contains(name)).collect();
        (!nodes.is_empty()).then(|| Change { change: "uncordon a node".to_owned(), nodes })
    }

    /// Returns requests that could be lowered to the free amount of some node that has no other obstacle.
    fn lower_requests(&self, nodes: &[NodeEvaluation]) -> Vec<Change> {
        let mut left: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for node in nodes.iter().filter(|node| *node.status.plugin == *node_resources::FIT) {
            let [reason] = &node.status.reasons[..] else { continue };
            let Some(resource) = reason.strip_prefix(INSUFFICIENT) else { continue };
            let Some(info) = self.cluster.snapshot.get(&node.node) else { continue };
            let free = info.allocatable().get(resource).saturating_sub(info.requested().get(resource));
            left.entry(resource).or_default().insert(free);
        }
        let lower = |(resource, left): (&str, BTreeSet<i64>)| {
            let asked = amount(resource, self.pod.spec_requests().get(resource));
            // For other resources the API requires the limit to equal the request.
            let what = if OVERCOMMITTED.contains(&resource) { "request" } else { "request and limit" };
            left.into_iter().rev().filter(|most| *most > 0).take(TRIED).find_map(|most| {
                let change = format!("lower its {what} of {resource} from {asked} to {}", amount(resource, most));
                self.change_pod(change, |pod| self.lower(pod, resource, most))
            })
        };
        left.into_iter().filter_map(lower).collect()
    }

    /// Limits each request of a resource to the greatest amount at which the pod's total is at most `most`. Returns false if the
    /// total cannot be lowered that far, for example because of the pod's overhead.
    fn lower(&self, pod: &mut Pod, resource: &str, most: i64) -> bool {
        let cut = |height: i64| {
            let mut pod = pod.clone();
            let whole = pod.spec.resources.iter_mut().map(|resources| &mut resources.requests);
            let containers = pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers);
            let requests = whole.chain(containers.map(|container: &mut Container| &mut container.resources.requests));
            for list in requests {
                if list.get(resource).is_some_and(|quantity| units(resource, *quantity) > height) {
                    list.insert(resource, quantity_of(resource, height));
                }
            }
            pod
        };
        let is_low = |pod: Pod| self.info(pod).spec_requests().get(resource) <= most;
        if !is_low(cut(0)) {
            return false;
        }
        let (mut low, mut high) = (0, self.pod.spec_requests().get(resource));
        while low < high {
            let middle = low + (high - low).div_euclid(2) + 1;
            (low, high) = if is_low(cut(middle)) { (middle, high) } else { (low, middle - 1) };
        }
        *pod = cut(low);
        true
    }

    /// Tries to add an empty node like an existing one. If no such node can take the pod, tries nodes with more of the
    /// resources of which they have too little.
    fn added_node(&self) -> Option<Change> {
        let mut kinds: BTreeMap<String, (usize, &Node)> = BTreeMap::new();
        for node in self.cluster.snapshot.nodes() {
            kinds.entry(kind_of(node.node())).or_insert((0, node.node())).0 += 1;
        }
        let mut kinds: Vec<(usize, &Node)> = kinds.into_values().collect();
        kinds.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let kinds = || kinds.iter().take(TRIED).map(|(_, node)| *node);
        let as_it_is = kinds().find(|node| self.lacks(&like(node)).is_some_and(|lacking| lacking.is_empty()));
        if let Some(node) = as_it_is {
            let change = format!("add {} ({})", one_like(node), size_of(node));
            return Some(Change { change, nodes: Vec::new() });
        }
        kinds().find_map(|node| {
            let mut larger = like(node);
            let lacking = self.lacks(&larger)?;
            let mut more = Vec::new();
            for resource in lacking {
                let needed = self.pod.spec_requests().get(&resource);
                larger.status.allocatable.insert(resource.clone(), quantity_of(&resource, needed));
                more.push(format!("{} of {resource}", amount(&resource, needed)));
            }
            let fits = self.lacks(&larger).is_some_and(|lacking| lacking.is_empty());
            let change = format!("add {}, but with {}", one_like(node), more.join(" and "));
            fits.then_some(Change { change, nodes: Vec::new() })
        })
    }

    /// Returns the resources of which an added node has too little. `None` if the node has another obstacle.
    fn lacks(&self, node: &Node) -> Option<Vec<String>> {
        let mut nodes = self.cluster.snapshot.nodes().to_vec();
        let added = NodeOrdinal::new(nodes.len());
        nodes.push(Arc::new(NodeInfo::new(Arc::new(node.clone()))));
        let verdicts = evaluate_filters(self.profile, &Snapshot::from_nodes(nodes), self.pod, added, self.cluster.now);
        let mut lacking = Vec::new();
        for verdict in verdicts.iter().filter(|verdict| verdict.code != Code::Success.as_str()) {
            for reason in &verdict.reasons {
                lacking.push(reason.strip_prefix(INSUFFICIENT)?.to_owned());
            }
        }
        (!verdicts.is_empty()).then_some(lacking)
    }
}

fn toleration(taint: &Taint) -> Toleration {
    Toleration {
        key: Some(taint.key.clone()),
        operator: Some("Equal".to_owned()),
        value: taint.value.clone(),
        effect: Some(taint.effect.clone()),
        ..Toleration::default()
    }
}

/// Formats the taint like `kubectl`.
fn shown(taint: &Taint) -> String {
    match taint.value.as_deref() {
        None | Some("") => format!("{}:{}", taint.key, taint.effect),
        Some(value) => format!("{}={value}:{}", taint.key, taint.effect),
    }
}

fn schedulable(node: &Node) -> Node {
    let mut node = node.clone();
    node.spec.unschedulable = false;
    node.spec.taints.retain(|taint| taint.key != UNSCHEDULABLE);
    node
}

/// Describes a node that is like this one.
fn one_like(node: &Node) -> String {
    let schedulable = schedulable(node).spec == node.spec;
    format!("a {}node like {}", if schedulable { "" } else { "schedulable " }, node.name())
}

/// Returns the node under a new name, schedulable and without the taint of unschedulable nodes.
fn like(node: &Node) -> Node {
    let mut new = schedulable(node);
    let name = node.name().to_owned();
    for value in new.metadata.labels.iter_mut().flatten().map(|(_, value)| value).filter(|value| **value == name) {
        NEW_NODE.clone_into(value);
    }
    new.metadata.name = Some(NEW_NODE.to_owned());
    new
}

/// Returns the properties that nodes of one kind share.
fn kind_of(node: &Node) -> String {
    let node = like(node);
    format!("{:?} {:?} {:?}", node.labels(), node.spec.taints, node.status.allocatable)
}

/// Formats a node's CPU and memory.
fn size_of(node: &Node) -> String {
    let all = Resources::from_list(&node.status.allocatable);
    format!("{} of cpu, {} of memory", amount(CPU, all.milli_cpu), amount(MEMORY, all.memory))
}

/// Converts a quantity to the units of [`Resources`].
fn units(resource: &str, quantity: Quantity) -> i64 {
    if resource == CPU { quantity.milli_value() } else { quantity.value() }
}

fn amount(resource: &str, units: i64) -> String {
    quantity_of(resource, units).to_string()
}
