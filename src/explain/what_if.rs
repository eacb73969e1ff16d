//! Tries single changes of a pod, or of its cluster, until some node could take it.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Affinity, Taint, Toleration};

use super::change::Change;
use crate::config::Gate;
use crate::framework::{Code, Framework, NodeEvaluation, evaluate_filters, feasible_nodes};
use crate::k8s::tolerations::{do_not_schedule, tolerates};
use crate::k8s::{Container, Node, Pod, Quantity};
use crate::model::{CPU, MEMORY, NodeInfo, PodInfo, Resources, Snapshot, quantity_of};
use crate::plugins::node_resources;
use crate::simulate::Loading;

/// Taints and kinds of nodes that are tried, the most frequent first.
const TRIED: usize = 20;

/// What `NodeResourcesFit` says before the name of a resource.
const INSUFFICIENT: &str = "Insufficient ";

/// The taint of nodes that are unschedulable.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

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
        let positions = feasible_nodes(self.profile, snapshot, pod, self.cluster.now);
        positions.into_iter().map(|position| snapshot.nodes()[position].name_arc().clone()).collect()
    }

    /// Taints that could be tolerated.
    fn tolerations(&self) -> Vec<Change> {
        let nodes = self.cluster.snapshot.nodes().iter().map(|node| node.node());
        let mut taints: BTreeMap<(&str, &str, &str), (usize, &Taint)> = BTreeMap::new();
        for taint in nodes.flat_map(|node| &node.spec.taints).filter(|taint| self.is_obstacle(taint)) {
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

    /// Whether the taint keeps the pod away. That of unschedulable nodes is not looked at: it goes with what it stands for.
    fn is_obstacle(&self, taint: &Taint) -> bool {
        let tolerations = &self.pod.pod().spec.tolerations;
        let compare = self.profile.handle().gates().enabled(Gate::TaintTolerationComparisonOperators);
        taint.key != UNSCHEDULABLE
            && do_not_schedule(taint)
            && !tolerations.iter().any(|toleration| tolerates(toleration, taint, compare))
    }

    /// Nodes that could be made schedulable again.
    fn uncordoned(&self) -> Option<Change> {
        let uncordon = |node: &Arc<NodeInfo>| {
            if !node.is_unschedulable() {
                return node.clone();
            }
            let mut changed = (**node).clone();
            changed.set_node(Arc::new(schedulable(node.node())));
            Arc::new(changed)
        };
        let is_cordoned = |node: &Arc<NodeInfo>| node.is_unschedulable();
        if !self.cluster.snapshot.nodes().iter().any(is_cordoned) {
            return None;
        }
        let snapshot = Snapshot::from_nodes(self.cluster.snapshot.nodes().iter().map(uncordon).collect());
        let nodes = self.takers(&snapshot, self.pod);
        (!nodes.is_empty()).then(|| Change { change: "uncordon a node".to_owned(), nodes })
    }

    /// Requests that could be lowered to what some node has left, where that is all that is wrong with the node.
    fn lower_requests(&self, nodes: &[NodeEvaluation]) -> Vec<Change> {
        let mut most: BTreeMap<&str, i64> = BTreeMap::new();
        for node in nodes.iter().filter(|node| *node.status.plugin == *node_resources::FIT) {
            let [reason] = &node.status.reasons[..] else { continue };
            let Some(resource) = reason.strip_prefix(INSUFFICIENT) else { continue };
            let Some(info) = self.cluster.snapshot.get(&node.node) else { continue };
            let free = info.allocatable().get(resource).saturating_sub(info.requested().get(resource));
            let most = most.entry(resource).or_insert(0);
            *most = (*most).max(free);
        }
        let lower = |(resource, most): (&str, i64)| {
            let asked = self.pod.spec_requests().get(resource);
            let what = format!(
                "lower its request of {resource} from {} to {}",
                amount(resource, asked),
                amount(resource, most)
            );
            self.change_pod(what, |pod| most > 0 && self.lower(pod, resource, most))
        };
        most.into_iter().filter_map(lower).collect()
    }

    /// Takes from the largest requests of a resource until all together are down to `most`. False if they cannot be, as
    /// where the pod's overhead is larger.
    fn lower(&self, pod: &mut Pod, resource: &str, most: i64) -> bool {
        loop {
            let total = self.info(pod.clone()).spec_requests().get(resource);
            if total <= most {
                return true;
            }
            let whole = pod.spec.resources.iter_mut().map(|resources| &mut resources.requests);
            let containers = pod.spec.containers.iter_mut().chain(&mut pod.spec.init_containers);
            let requests = whole.chain(containers.map(|container: &mut Container| &mut container.resources.requests));
            let largest = requests
                .map(|list| (list.get(resource).map_or(0, |quantity| units(resource, *quantity)), list))
                .max_by_key(|(request, _)| *request);
            let Some((request, list)) = largest.filter(|(request, _)| *request > 0) else { return false };
            list.insert(resource, quantity_of(resource, request.saturating_sub(total - most).max(0)));
        }
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
        let added = Arc::new(NodeInfo::new(Arc::new(node.clone())));
        nodes.push(added.clone());
        let verdicts = evaluate_filters(self.profile, &Snapshot::from_nodes(nodes), self.pod, &added, self.cluster.now);
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
