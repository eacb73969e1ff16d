//! What one scheduling cycle sees of the cluster.

use std::collections::HashMap;
use std::sync::Arc;

use super::NodeInfo;
use super::domains::{Domains, DomainsByKey};

/// The nodes as they were when a cycle began, in the order in which they are tried: zone by turns. The cache brings it up
/// to date in place between cycles; during a cycle it does not change.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    nodes: Vec<Arc<NodeInfo>>,
    /// Position in `nodes` by name. Looked up only, never iterated.
    positions: HashMap<Arc<str>, usize>,
    /// Positions of nodes with a pod that has pod affinity or anti-affinity, ascending.
    with_affinity: Vec<usize>,
    /// Positions of nodes with a pod that has required anti-affinity, ascending.
    with_required_anti_affinity: Vec<usize>,
    /// On how many nodes a claim is in use, by `namespace/claim`. Looked up only, never iterated.
    claims: HashMap<Arc<str>, usize>,
    domains: DomainsByKey,
    /// The newest generation that the snapshot holds.
    generation: u64,
}

impl Snapshot {
    /// A snapshot of these nodes, in this order, as tests and benchmarks make it.
    pub fn from_nodes(nodes: Vec<Arc<NodeInfo>>) -> Self {
        let mut snapshot = Self::default();
        snapshot.set_nodes(nodes);
        snapshot
    }

    /// The nodes in the order in which they are tried.
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where node `name` stands in [`Self::nodes`].
    pub fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// Node `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.position(name).map(|at| &self.nodes[at])
    }

    /// The newest generation that the snapshot holds.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Records the newest generation that the snapshot holds.
    pub fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// The nodes on which a pod has pod affinity or anti-affinity, be it empty, in the order of [`Self::nodes`].
    pub fn nodes_with_affinity(&self) -> impl ExactSizeIterator<Item = &Arc<NodeInfo>> {
        self.with_affinity.iter().map(|at| &self.nodes[*at])
    }

    /// The nodes on which a pod has required anti-affinity, in the order of [`Self::nodes`].
    pub fn nodes_with_required_anti_affinity(&self) -> impl ExactSizeIterator<Item = &Arc<NodeInfo>> {
        self.with_required_anti_affinity.iter().map(|at| &self.nodes[*at])
    }

    /// The nodes by the value of the label `key`.
    pub fn domains(&self, key: &str) -> Arc<Domains> {
        self.domains.get(key, &self.nodes)
    }

    /// Whether a pod on any node uses claim `namespace/name`.
    pub fn is_claim_used(&self, claim: &str) -> bool {
        self.claims.contains_key(claim)
    }

    /// Replaces one node by its newer state.
    pub fn replace(&mut self, position: usize, node: Arc<NodeInfo>) {
        debug_assert_eq!(self.nodes[position].name(), node.name(), "a node keeps its place");
        let old = std::mem::replace(&mut self.nodes[position], node);
        uncount(&mut self.claims, &old);
        if !has_same_labels(&old, &self.nodes[position]) {
            self.domains.clear();
        }
        self.count(position);
    }

    /// Changes one node in place. Returns false, and changes nothing, if somebody else still holds its state.
    pub fn change(&mut self, position: usize, change: impl FnOnce(&mut NodeInfo)) -> bool {
        let Some(node) = Arc::get_mut(&mut self.nodes[position]) else { return false };
        uncount(&mut self.claims, node);
        let object = node.node().clone();
        change(node);
        if !Arc::ptr_eq(&object, node.node()) && object.labels() != node.node().labels() {
            self.domains.clear();
        }
        self.count(position);
        true
    }

    /// Replaces the list, when nodes came, went or changed places.
    pub fn set_nodes(&mut self, nodes: Vec<Arc<NodeInfo>>) {
        self.positions.clear();
        self.positions.extend(nodes.iter().enumerate().map(|(at, node)| (node.name_arc().clone(), at)));
        self.nodes = nodes;
        self.domains.clear();
        self.with_affinity.clear();
        self.with_required_anti_affinity.clear();
        self.claims.clear();
        for position in 0..self.nodes.len() {
            self.count(position);
        }
    }

    /// Takes the node at this position into the lists and counts of what is on nodes.
    fn count(&mut self, position: usize) {
        let node = &self.nodes[position];
        set_member(&mut self.with_affinity, position, !node.pods_with_affinity().is_empty());
        set_member(
            &mut self.with_required_anti_affinity,
            position,
            !node.pods_with_required_anti_affinity().is_empty(),
        );
        for claim in node.claim_arcs() {
            if let Some(nodes) = self.claims.get_mut(claim) {
                *nodes += 1;
            } else {
                self.claims.insert(claim.clone(), 1);
            }
        }
    }
}

fn has_same_labels(old: &NodeInfo, new: &NodeInfo) -> bool {
    Arc::ptr_eq(old.node(), new.node()) || old.node().labels() == new.node().labels()
}

/// Takes the claims on a node out of the count before the node changes; the lists are set right afterwards.
fn uncount(claims: &mut HashMap<Arc<str>, usize>, node: &NodeInfo) {
    for claim in node.claim_arcs() {
        let nodes = claims.get_mut(claim).expect("a claim on a node is counted");
        *nodes -= 1;
        if *nodes == 0 {
            claims.remove(claim);
        }
    }
}

/// Makes `position` a member of a sorted list, or not.
fn set_member(list: &mut Vec<usize>, position: usize, member: bool) {
    match (list.binary_search(&position), member) {
        (Err(at), true) => list.insert(at, position),
        (Ok(at), false) => {
            list.remove(at);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{PodFixture, node, pod};

    fn affine(name: &str) -> PodFixture {
        pod(name).set("spec.affinity", json!({"podAffinity": {}}))
    }

    fn exclusive(name: &str) -> PodFixture {
        let term = json!({"topologyKey": "zone"});
        pod(name).set(
            "spec.affinity",
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
        )
    }

    fn claiming(name: &str, claim: &str) -> PodFixture {
        pod(name).set("spec.volumes", json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]))
    }

    fn with(name: &str, pods: Vec<PodFixture>) -> Arc<NodeInfo> {
        let mut info = node(name).info();
        for pod in pods {
            info.add_pod(pod.on(name).info());
        }
        Arc::new(info)
    }

    #[track_caller]
    fn check(snapshot: &Snapshot, affinity: &str, anti_affinity: &str, claims: &[(&str, bool)]) {
        let names = |nodes: Vec<&Arc<NodeInfo>>| {
            let names: Vec<&str> = nodes.into_iter().map(|node| node.name()).collect();
            names.join(" ")
        };
        assert_eq!(names(snapshot.nodes_with_affinity().collect()), affinity);
        assert_eq!(names(snapshot.nodes_with_required_anti_affinity().collect()), anti_affinity);
        for (claim, used) in claims {
            assert_eq!(snapshot.is_claim_used(claim), *used, "{claim}");
        }
    }

    #[test]
    fn domains_follow_labels() {
        let in_zone = |name: &str, zone: &str| Arc::new(node(name).label("zone", zone).info());
        let mut snapshot = Snapshot::from_nodes(vec![in_zone("a", "x"), in_zone("b", "y"), with("c", vec![])]);
        let zones = |snapshot: &Snapshot| {
            let domains = snapshot.domains("zone");
            let of = |at| domains.of(at).map_or("-".to_owned(), |domain| domains.value(domain).to_owned());
            format!("{} {}", domains.len(), (0..4).map(of).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(zones(&snapshot), "2 x y - -");
        assert!(snapshot.domains("region").is_empty());
        let kept = snapshot.domains("zone");
        snapshot.replace(2, with("c", vec![claiming("p", "c")]));
        assert!(Arc::ptr_eq(&kept, &snapshot.domains("zone")));
        snapshot.replace(2, in_zone("c", "x"));
        assert_eq!(zones(&snapshot), "2 x y x -");
        assert!(snapshot.change(0, |info| info.set_node(node("a").label("zone", "z").build())));
        assert_eq!(zones(&snapshot), "3 z y x -");
        snapshot.set_nodes(vec![in_zone("b", "y")]);
        assert_eq!(zones(&snapshot), "1 y - - -");
        (0..100).for_each(|key| drop(snapshot.domains(&key.to_string())));
        assert_eq!(zones(&snapshot), "1 y - - -");
    }

    #[test]
    fn what_is_on_nodes_follows_replacements() {
        let mut snapshot = Snapshot::from_nodes(vec![
            with("a", vec![claiming("p", "c")]),
            with("b", vec![affine("q")]),
            with("c", vec![exclusive("r"), claiming("s", "c"), claiming("t", "d")]),
        ]);
        check(&snapshot, "b c", "c", &[("default/c", true), ("default/d", true), ("other/c", false)]);
        snapshot.replace(2, with("c", vec![claiming("s", "c")]));
        check(&snapshot, "b", "", &[("default/c", true), ("default/d", false)]);
        snapshot.replace(0, with("a", vec![exclusive("u")]));
        check(&snapshot, "a b", "a", &[("default/c", true)]);
        snapshot.replace(2, with("c", vec![]));
        check(&snapshot, "a b", "a", &[("default/c", false)]);
        let pod = claiming("v", "e").on("c").info();
        assert!(snapshot.change(2, |node| node.add_pod(pod.clone())));
        check(&snapshot, "a b", "a", &[("default/e", true)]);
        let held = snapshot.nodes()[2].clone();
        assert!(!snapshot.change(2, |node| assert!(node.take_pod(&pod))));
        check(&snapshot, "a b", "a", &[("default/e", true)]);
        drop(held);
        assert!(snapshot.change(2, |node| assert!(node.take_pod(&pod))));
        check(&snapshot, "a b", "a", &[("default/e", false)]);
        snapshot.set_nodes(vec![with("b", vec![affine("q")])]);
        check(&snapshot, "b", "", &[]);
        assert_eq!((snapshot.position("b"), snapshot.position("a")), (Some(0), None));
    }
}
