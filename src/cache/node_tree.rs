//! The order in which nodes are tried: round-robin over zones, so that neighbours in the list are in different zones.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::nodes::SlotId;
use crate::k8s::Node;

const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Returns the key of a node's zone: region and zone, separated by `:\0:`, because neither can contain a null character. The key
/// is empty if the node has neither. The deprecated beta labels take precedence, even when they are empty.
/// Follows `component-helpers/node/topology/helpers.go#GetZoneKey @v1.36.3`.
pub fn zone_key(node: &Node) -> String {
    let labels = node.labels();
    let value = |beta: &str, label: &str| labels.get(beta).or_else(|| labels.get(label)).map_or("", String::as_str);
    let (region, zone) = (value(BETA_REGION, REGION), value(BETA_ZONE, ZONE));
    if region.is_empty() && zone.is_empty() { String::new() } else { format!("{region}:\0:{zone}") }
}

/// Nodes grouped by zone. The zones are in the order in which they got their first node, and the nodes of a zone in the order in
/// which they were added. Follows `pkg/scheduler/backend/cache/node_tree.go#nodeTree @v1.36.3`, with one difference: the caller
/// remembers the zone under which a node was added and passes it for the removal, so a node cannot be in two zones.
#[derive(Debug, Default)]
pub(super) struct NodeTree {
    zones: Vec<Arc<str>>,
    nodes: BTreeMap<Arc<str>, Vec<SlotId>>,
    len: usize,
}

impl NodeTree {
    /// Counts the nodes of all zones.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a node to a zone, and returns the zone's shared name.
    pub(super) fn add(&mut self, zone: &str, node: SlotId) -> Arc<str> {
        let zone = if let Some((zone, _)) = self.nodes.get_key_value(zone) {
            zone.clone()
        } else {
            let zone: Arc<str> = Arc::from(zone);
            self.zones.push(zone.clone());
            zone
        };
        self.nodes.entry(zone.clone()).or_default().push(node);
        self.len += 1;
        zone
    }

    /// Removes a node from its zone. A zone without nodes is removed, too.
    pub(super) fn remove(&mut self, zone: &str, node: SlotId) {
        let nodes = self.nodes.get_mut(zone).expect("a zone with nodes is in the tree");
        let at = nodes.iter().position(|other| *other == node).expect("the node is under its zone");
        nodes.remove(at);
        self.len -= 1;
        if nodes.is_empty() {
            self.nodes.remove(zone);
            self.zones.retain(|other| **other != *zone);
        }
    }

    /// Returns all nodes: the first node of each zone, then the second of each, and so on.
    pub(super) fn order(&self) -> Vec<SlotId> {
        let mut zones: Vec<&[SlotId]> = self.zones.iter().map(|zone| self.nodes[zone].as_slice()).collect();
        let mut order = Vec::with_capacity(self.len);
        let mut round = 0;
        while !zones.is_empty() {
            zones.retain(|nodes| nodes.len() > round);
            order.extend(zones.iter().map(|nodes| nodes[round]));
            round += 1;
        }
        debug_assert_eq!(order.len(), self.len, "every node is under one zone");
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    #[test]
    fn zone_key_follows_the_labels() {
        let check = |labels: &[(&str, &str)], expected: &str| {
            let node = labels.iter().fold(node("n"), |node, (key, value)| node.label(key, value));
            assert_eq!(zone_key(&node.build()), expected, "{labels:?}");
        };
        check(&[], "");
        check(&[(ZONE, ""), (REGION, "")], "");
        check(&[(ZONE, "z")], ":\0:z");
        check(&[(REGION, "r")], "r:\0:");
        check(&[(REGION, "r"), (ZONE, "z")], "r:\0:z");
        check(&[(REGION, "r"), (ZONE, "z"), (BETA_REGION, "br"), (BETA_ZONE, "bz")], "br:\0:bz");
        check(&[(REGION, "r"), (ZONE, "z"), (BETA_ZONE, "")], "r:\0:");
    }

    #[test]
    fn order_is_round_robin_over_zones() {
        // `a1` adds node 1 to zone a, `-a1` removes it.
        let check = |steps: &str, expected: &str| {
            let mut tree = NodeTree::default();
            for step in steps.split_whitespace() {
                let (remove, step) = step.strip_prefix('-').map_or((false, step), |step| (true, step));
                let (zone, node) = step.split_at(1);
                let node = SlotId::from_index(node.parse().expect("a number"));
                if remove {
                    tree.remove(zone, node);
                } else {
                    tree.add(zone, node);
                }
            }
            let order: Vec<String> = tree.order().iter().map(|node| node.index().to_string()).collect();
            assert_eq!(order.join(" "), expected, "{steps}");
            assert_eq!(order.len(), tree.len());
        };
        check("", "");
        check("a1 a2 a3", "1 2 3");
        check("a1 b2 c3", "1 2 3");
        check("b1 a2 b3 b4 c5 a6", "1 2 5 3 6 4");
        // Zones without further nodes are skipped.
        check("a1 b2 b3 b4 c5 c6", "1 2 5 3 6 4");
        // A zone that lost all its nodes is last when it gets a node again.
        check("a1 b2 c3 -a1 a4", "2 3 4");
        // A node keeps its position in its zone until it is removed.
        check("a1 a2 a3 b4 -a2 a2", "1 4 3 2");
        check("a1 -a1", "");
    }
}
