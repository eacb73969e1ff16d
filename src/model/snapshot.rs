//! The cluster as one scheduling cycle sees it.

use std::collections::HashMap;
use std::sync::Arc;

use super::domains::{Domains, DomainsByKey};
use super::occurrence::{Count, Occurrence, Occurrences};
use super::{AffinityTerms, LabelClass, NodeInfo, NodeOrdinal};

/// The nodes as they were when a cycle began, in the order in which the cycle tries them: round-robin over the zones. The cache
/// updates the snapshot in place between cycles. It does not change during a cycle.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    nodes: Vec<Arc<NodeInfo>>,
    /// Ordinals by node name. Used for look-ups only, never iterated.
    ordinals: HashMap<Arc<str>, NodeOrdinal>,
    classes: Occurrences<LabelClass>,
    affinity_terms: Occurrences<AffinityTerms>,
    /// Number of nodes on which a claim is in use, by `namespace/claim`. Used for look-ups only, never iterated.
    claims: HashMap<Arc<str>, usize>,
    domains: DomainsByKey,
    /// The newest generation that the snapshot holds.
    generation: u64,
}

impl Snapshot {
    /// Makes a snapshot of these nodes, in this order, for tests and benchmarks.
    pub fn from_nodes(nodes: Vec<Arc<NodeInfo>>) -> Self {
        let mut snapshot = Self::default();
        snapshot.set_nodes(nodes);
        snapshot
    }

    /// The nodes by ordinal, which is the order in which a cycle tries them.
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// Number of nodes in the snapshot.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether the snapshot has no nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The ordinals of all nodes, ascending.
    pub fn ordinals(&self) -> impl ExactSizeIterator<Item = NodeOrdinal> + use<> {
        (0..self.nodes.len()).map(NodeOrdinal::new)
    }

    /// The ordinal of the node with this name.
    pub fn ordinal(&self, name: &str) -> Option<NodeOrdinal> {
        self.ordinals.get(name).copied()
    }

    /// The node with this ordinal. The ordinal must come from this snapshot.
    pub fn node(&self, ordinal: NodeOrdinal) -> &Arc<NodeInfo> {
        &self.nodes[ordinal.index()]
    }

    /// The node with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<NodeInfo>> {
        self.ordinal(name).map(|ordinal| self.node(ordinal))
    }

    /// The newest generation that the snapshot holds.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Records the newest generation that the snapshot holds.
    pub fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// The label classes of all pods, each with the nodes that run pods of the class.
    pub fn classes(&self) -> impl Iterator<Item = &Occurrence<LabelClass>> {
        self.classes.iter()
    }

    /// The sets of affinity terms of all pods, each with the nodes that run pods with these terms.
    pub fn affinity_terms(&self) -> impl Iterator<Item = &Occurrence<AffinityTerms>> {
        self.affinity_terms.iter()
    }

    /// The nodes grouped by the value of the label `key`.
    pub fn domains(&self, key: &str) -> Arc<Domains> {
        self.domains.get(key, &self.nodes)
    }

    /// Whether a pod on any node uses claim `namespace/name`.
    pub fn is_claim_used(&self, claim: &str) -> bool {
        self.claims.contains_key(claim)
    }

    /// Replaces one node with its newer state.
    pub fn replace(&mut self, ordinal: NodeOrdinal, node: Arc<NodeInfo>) {
        debug_assert_eq!(self.node(ordinal).name(), node.name(), "a node keeps its place");
        let old = std::mem::replace(&mut self.nodes[ordinal.index()], node);
        uncount(&mut self.claims, &old);
        self.recount(ordinal, numbers_of_classes(&old), numbers_of_terms(&old));
        if !has_same_labels(&old, self.node(ordinal)) {
            self.domains.clear();
        }
        self.count(ordinal);
    }

    /// Changes one node in place. If there is another reference to the node's state, returns false and changes nothing.
    pub fn change(&mut self, ordinal: NodeOrdinal, change: impl FnOnce(&mut NodeInfo)) -> bool {
        let Some(node) = Arc::get_mut(&mut self.nodes[ordinal.index()]) else { return false };
        uncount(&mut self.claims, node);
        let object = node.node().clone();
        let classes: Vec<_> = numbers_of_classes(node).collect();
        let terms: Vec<_> = numbers_of_terms(node).collect();
        change(node);
        if !Arc::ptr_eq(&object, node.node()) && object.labels() != node.node().labels() {
            self.domains.clear();
        }
        self.recount(ordinal, classes.into_iter(), terms.into_iter());
        self.count(ordinal);
        true
    }

    /// Replaces the list of nodes. Used when nodes were added, removed or reordered.
    pub fn set_nodes(&mut self, nodes: Vec<Arc<NodeInfo>>) {
        self.ordinals.clear();
        let numbered = nodes.iter().enumerate();
        self.ordinals.extend(numbered.map(|(at, node)| (node.name_arc().clone(), NodeOrdinal::new(at))));
        self.nodes = nodes;
        self.domains.clear();
        self.classes.clear();
        self.affinity_terms.clear();
        self.claims.clear();
        for ordinal in self.ordinals() {
            self.recount(ordinal, std::iter::empty(), std::iter::empty());
            self.count(ordinal);
        }
    }

    /// Updates the counts of pods per node. `classes` and `terms` are the node's counts before the change.
    fn recount(
        &mut self,
        ordinal: NodeOrdinal,
        classes: impl Iterator<Item = (usize, Count)>,
        terms: impl Iterator<Item = (usize, Count)>,
    ) {
        let node = &self.nodes[ordinal.index()];
        let present = node.classes().iter().map(|count| (count.class(), count.count()));
        self.classes.update(ordinal, classes, present);
        let present = node.affinity_terms().iter().map(|count| (count.terms(), count.count()));
        self.affinity_terms.update(ordinal, terms, present);
    }

    /// Adds the node's claims to the counts of claims in use.
    fn count(&mut self, ordinal: NodeOrdinal) {
        let node = &self.nodes[ordinal.index()];
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

/// Removes the claims of a node's old state from the counts. The caller then adds the claims of the new state.
fn uncount(claims: &mut HashMap<Arc<str>, usize>, node: &NodeInfo) {
    for claim in node.claim_arcs() {
        let nodes = claims.get_mut(claim).expect("a claim on a node is counted");
        *nodes -= 1;
        if *nodes == 0 {
            claims.remove(claim);
        }
    }
}

fn numbers_of_classes(node: &NodeInfo) -> impl Iterator<Item = (usize, Count)> {
    node.classes().iter().map(|count| (count.class().id().index(), count.count()))
}

fn numbers_of_terms(node: &NodeInfo) -> impl Iterator<Item = (usize, Count)> {
    node.affinity_terms().iter().map(|count| (count.terms().number(), count.count()))
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

    /// Checks on which nodes, as indices with pod counts, there are pods with empty affinity and pods with required
    /// anti-affinity.
    #[track_caller]
    fn check(snapshot: &Snapshot, affine: &str, exclusive: &str, claims: &[(&str, bool)]) {
        let places = |wanted: fn(&AffinityTerms) -> bool| {
            let of_kind = snapshot.affinity_terms().filter(|one| wanted(one.shared()));
            let places: Vec<String> =
                of_kind.flat_map(Occurrence::nodes).map(|(at, pods)| format!("{}:{pods}", at.index())).collect();
            places.join(" ")
        };
        assert_eq!(places(|terms| terms.required_anti_affinity().is_empty()), affine);
        assert_eq!(places(|terms| !terms.required_anti_affinity().is_empty()), exclusive);
        for (claim, used) in claims {
            assert_eq!(snapshot.is_claim_used(claim), *used, "{claim}");
        }
    }

    #[test]
    fn topology_domains_follow_node_labels() {
        let in_zone = |name: &str, zone: &str| Arc::new(node(name).label("zone", zone).info());
        let mut snapshot = Snapshot::from_nodes(vec![in_zone("a", "x"), in_zone("b", "y"), with("c", vec![])]);
        let zones = |snapshot: &Snapshot| {
            let domains = snapshot.domains("zone");
            let of =
                |at| domains.of(NodeOrdinal::new(at)).map_or("-".to_owned(), |domain| domains.value(domain).to_owned());
            format!("{} {}", domains.len(), (0..4).map(of).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(zones(&snapshot), "2 x y - -");
        assert!(snapshot.domains("region").is_empty());
        let kept = snapshot.domains("zone");
        snapshot.replace(NodeOrdinal::new(2), with("c", vec![claiming("p", "c")]));
        assert!(Arc::ptr_eq(&kept, &snapshot.domains("zone")));
        snapshot.replace(NodeOrdinal::new(2), in_zone("c", "x"));
        assert_eq!(zones(&snapshot), "2 x y x -");
        assert!(snapshot.change(NodeOrdinal::new(0), |info| info.set_node(node("a").label("zone", "z").build())));
        assert_eq!(zones(&snapshot), "3 z y x -");
        snapshot.set_nodes(vec![in_zone("b", "y")]);
        assert_eq!(zones(&snapshot), "1 y - - -");
        (0..100).for_each(|key| drop(snapshot.domains(&key.to_string())));
        assert_eq!(zones(&snapshot), "1 y - - -");
    }

    #[test]
    fn pod_lists_follow_replaced_nodes() {
        let mut snapshot = Snapshot::from_nodes(vec![
            with("a", vec![claiming("p", "c")]),
            with("b", vec![affine("q"), affine("w")]),
            with("c", vec![exclusive("r"), claiming("s", "c"), claiming("t", "d")]),
        ]);
        check(&snapshot, "1:2", "2:1", &[("default/c", true), ("default/d", true), ("other/c", false)]);
        snapshot.replace(NodeOrdinal::new(2), with("c", vec![claiming("s", "c")]));
        check(&snapshot, "1:2", "", &[("default/c", true), ("default/d", false)]);
        snapshot.replace(NodeOrdinal::new(0), with("a", vec![exclusive("u"), affine("v")]));
        check(&snapshot, "0:1 1:2", "0:1", &[("default/c", true)]);
        snapshot.replace(NodeOrdinal::new(2), with("c", vec![]));
        check(&snapshot, "0:1 1:2", "0:1", &[("default/c", false)]);
        let pod = claiming("v", "e").on("c").info();
        assert!(snapshot.change(NodeOrdinal::new(2), |node| node.add_pod(pod.clone())));
        check(&snapshot, "0:1 1:2", "0:1", &[("default/e", true)]);
        let held = snapshot.nodes()[2].clone();
        assert!(!snapshot.change(NodeOrdinal::new(2), |node| assert!(node.take_pod(&pod))));
        check(&snapshot, "0:1 1:2", "0:1", &[("default/e", true)]);
        drop(held);
        assert!(snapshot.change(NodeOrdinal::new(2), |node| assert!(node.take_pod(&pod))));
        check(&snapshot, "0:1 1:2", "0:1", &[("default/e", false)]);
        assert!(snapshot.change(NodeOrdinal::new(1), |node| assert!(node.remove_pod("q").is_some())));
        check(&snapshot, "0:1 1:1", "0:1", &[]);
        snapshot.set_nodes(vec![with("b", vec![affine("q")])]);
        check(&snapshot, "0:1", "", &[]);
        assert_eq!((snapshot.ordinal("b"), snapshot.ordinal("a")), (Some(NodeOrdinal::new(0)), None));
    }
}
