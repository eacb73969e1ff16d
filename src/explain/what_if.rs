//! Tries single changes of a pod, or of its cluster, until some node could take it.

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

/// Taints and kinds of nodes that are tried, the most frequent first.
const TRIED: usize = 20;

/// What `NodeResourcesFit` says before the name of a resource.
const INSUFFICIENT: &str = "Insufficient ";

/// The taint of nodes that are unschedulable.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Resources of which a pod may ask for less than it may use.
const OVERCOMMITTED: [&str; 3] = [CPU, MEMORY, "ephemeral-storage"];

/// What a node that is made up is called.
const NEW_NODE: &str = "new-node";

/// Takes one requirement out of a pod; false if it has none such.
type Relief = fn(&mut Pod) -> bool;

/// Requirements that a pod can be freed of.
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

/// A pod that fits nowhere, and its cluster.
pub(super) struct WhatIf<'a> {
    cluster: &'a Loading,
    profile: &'a Framework,
    pod: &'a Arc<PodInfo>,
}

impl<'a> WhatIf<'a> {
    pub(super) fn new(cluster: &'a Loading, profile: &'a Framework, pod: &'a Arc<PodInfo>) -> Self {
        Self { cluster, profile, pod }
    }

    /// The changes that would help, given what is said of the nodes now.
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

    /// The change, if the pod has what it takes away, and fits somewhere after it.
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

    /// Taints that could be tolerated.
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

    /// Whether the taint keeps the pod away. That of a cordoned node is not looked at: it goes with what it stands for.
    fn is_obstacle(&self, node: &Node, taint: &Taint) -> bool {
        let tolerations = &self.pod.pod().spec.tolerations;
        let compare = self.profile.handle().gates().enabled(Gate::TaintTolerationComparisonOperators);
        !(node.spec.unschedulable && taint.key == UNSCHEDULABLE)
            && do_not_schedule(taint)
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint, compare))
    }

    /// Nodes that could be made schedulable again.
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
        // Those that would take it if all were schedulable, and then each by itself.
        let hopeful = uncordoned(&|_| true);
        let is_cordoned = |name: &str| self.cluster.snapshot.get(name).is_some_and(|node| node.is_unschedulable());
        let hopeful = hopeful.into_iter().filter(|name| is_cordoned(name)).take(TRIED);
        let nodes: Vec<Arc<str>> =
            hopeful.filter(|name| uncordoned(&|node| node.name() == &**name).contains(name)).collect();
        (!nodes.is_empty()).then(|| Change { change: "uncordon a node".to_owned(), nodes })
    }

    /// Requests that could be lowered to what some node has left, where that is all that is wrong with the node.
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
            // Of other resources the API has both the same.
            let what = if OVERCOMMITTED.contains(&resource) { "request" } else { "request and limit" };
            left.into_iter().rev().filter(|most| *most > 0).take(TRIED).find_map(|most| {
                let change = format!("lower its {what} of {resource} from {asked} to {}", amount(resource, most));
                self.change_pod(change, |pod| self.lower(pod, resource, most))
            })
        };
        left.into_iter().filter_map(lower).collect()
    }

    /// Cuts the requests of a resource at the height at which all together come to `most` or a little less. False if they
    /// cannot, as where the pod's overhead is larger.
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

    /// A node like one that there is, empty; or with more of what it lacks.
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

    /// The resources of which a node that is added has too little; `None` if something else is wrong with it.
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

/// As `kubectl` writes it.
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

/// How the node is called that is made after this one.
fn one_like(node: &Node) -> String {
    let schedulable = schedulable(node).spec == node.spec;
    format!("a {}node like {}", if schedulable { "" } else { "schedulable " }, node.name())
}

/// The node under another name, without what went wrong with it.
fn like(node: &Node) -> Node {
    let mut new = schedulable(node);
    let name = node.name().to_owned();
    for value in new.metadata.labels.iter_mut().flatten().map(|(_, value)| value).filter(|value| **value == name) {
        NEW_NODE.clone_into(value);
    }
    new.metadata.name = Some(NEW_NODE.to_owned());
    new
}

/// What makes two nodes of one kind.
fn kind_of(node: &Node) -> String {
    let node = like(node);
    format!("{:?} {:?} {:?}", node.labels(), node.spec.taints, node.status.allocatable)
}

/// A node's CPU and memory.
fn size_of(node: &Node) -> String {
    let all = Resources::from_list(&node.status.allocatable);
    format!("{} of cpu, {} of memory", amount(CPU, all.milli_cpu), amount(MEMORY, all.memory))
}

/// A quantity in the units of [`Resources`].
fn units(resource: &str, quantity: Quantity) -> i64 {
    if resource == CPU { quantity.milli_value() } else { quantity.value() }
}

fn amount(resource: &str, units: i64) -> String {
    quantity_of(resource, units).to_string()
}
