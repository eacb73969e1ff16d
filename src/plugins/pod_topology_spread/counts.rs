//! The nodes that count for a constraint, and the number of selected pods on each.

use std::sync::Arc;

use super::constraints::Constraint;
use crate::k8s::tolerations::{do_not_schedule, find_untolerated_taint};
use crate::k8s::{Node, Pod, RequiredNodeAffinity, Selector};
use crate::model::{ClassCount, LabelClass, NodeInfo, NodeOrdinal, Occurrence, Snapshot};

/// Decides by inclusion policies which nodes count. Only the policies that at least one constraint honors are checked.
#[derive(Debug)]
pub(super) struct Eligibility {
    /// `None` if no constraint honors node affinity, or if the pod has none.
    affinity: Option<RequiredNodeAffinity>,
    honors_taints: bool,
    /// Whether tolerations may compare numbers: gate `TaintTolerationComparisonOperators`.
    comparisons: bool,
}

/// The results of both inclusion policies for one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eligible {
    affinity: bool,
    taints: bool,
}

impl Eligibility {
    /// Returns the check for these constraints of this pod.
    pub(super) fn new(pod: &Pod, constraints: &[Constraint], comparisons: bool) -> Self {
        let honors_affinity = constraints.iter().any(|constraint| constraint.honors_affinity);
        let affinity = honors_affinity.then(|| RequiredNodeAffinity::new(pod));
        Self {
            affinity: affinity.filter(|affinity| !affinity.is_unrestricted()),
            honors_taints: constraints.iter().any(|constraint| constraint.honors_taints),
            comparisons,
        }
    }

    /// Checks all nodes for the pod, unless all of them count anyway.
    pub(super) fn of_all(&self, pod: &Pod, snapshot: &Snapshot) -> EligibleNodes {
        let all_alike = self.affinity.is_none() && !self.honors_taints;
        let look = || snapshot.nodes().iter().map(|node| self.of(pod, node.node())).collect();
        EligibleNodes((!all_alike).then(look))
    }

    /// Checks one node for the pod. Affinity terms that cannot be compiled match no node, and their error is not reported here.
    pub(super) fn of(&self, pod: &Pod, node: &Node) -> Eligible {
        let affinity = self.affinity.as_ref().is_none_or(|affinity| affinity.matches(node).unwrap_or(false));
        let taints = &node.spec.taints;
        let taints = !self.honors_taints
            || taints.is_empty()
            || find_untolerated_taint(taints, &pod.spec.tolerations, do_not_schedule, self.comparisons).is_none();
        Eligible { affinity, taints }
    }
}

impl Eligible {
    /// Whether the node counts for the constraint.
    /// Follows
    /// `pkg/scheduler/framework/plugins/podtopologyspread/common.go#topologySpreadConstraint.matchNodeInclusionPolicies
    /// @v1.36.3`.
    pub(super) fn counts_for(self, constraint: &Constraint) -> bool {
        (!constraint.honors_affinity || self.affinity) && (!constraint.honors_taints || self.taints)
    }
}

/// The nodes of a snapshot that count. `None` if all nodes count for every constraint.
#[derive(Debug)]
pub(super) struct EligibleNodes(Option<Vec<Eligible>>);

impl EligibleNodes {
    /// Whether the node counts for the constraint.
    pub(super) fn count_for(&self, constraint: &Constraint, node: NodeOrdinal) -> bool {
        self.0.as_ref().is_none_or(|nodes| nodes[node.index()].counts_for(constraint))
    }
}

/// The pods of one namespace that a constraint selects, except pods that are being deleted. An empty selector selects no pods.
/// Follows `pkg/scheduler/framework/plugins/podtopologyspread/common.go#countPodsMatchSelector @v1.36.3`.
#[derive(Debug)]
pub(super) struct Selected<'a> {
    namespace: &'a str,
    selector: Arc<Selector>,
    /// The label classes of these pods in the snapshot.
    classes: Vec<&'a Occurrence<LabelClass>>,
}

impl<'a> Selected<'a> {
    /// Returns the pods that each of these constraints selects. A selector is matched once per label class.
    pub(super) fn by_each(namespace: &'a str, snapshot: &'a Snapshot, constraints: &[Constraint]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for Constraint { selector, .. } in constraints {
            let known = all.iter().find(|known| Arc::ptr_eq(&known.selector, selector));
            let classes = known.map(|known| known.classes.clone());
            let mut selected = Self { namespace, selector: selector.clone(), classes: Vec::new() };
            selected.classes = classes
                .unwrap_or_else(|| snapshot.classes().filter(|class| selected.contains(class.shared())).collect());
            all.push(selected);
        }
        all
    }

    /// Returns the nodes with selected pods, each with a number of selected pods. A node occurs once per selected label class,
    /// so its numbers must be added up.
    pub(super) fn nodes(&self) -> impl Iterator<Item = (NodeOrdinal, i64)> {
        self.classes.iter().flat_map(|class| class.staying()).map(|(node, pods)| (node, pods.cast_signed() as i64))
    }

    /// Number of selected pods on a node whose pods may differ from the snapshot's.
    pub(super) fn on(&self, node: &NodeInfo) -> i64 {
        let counts = node.classes().iter().filter(|count| self.contains(count.class()));
        counts.map(ClassCount::staying).sum::<usize>().cast_signed() as i64
    }

    fn contains(&self, class: &LabelClass) -> bool {
        !self.selector.is_empty() && class.namespace() == self.namespace && self.selector.matches(class.labels())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::FeatureGates;
    use crate::model::{LabelClasses, PodInfo};
    use crate::plugins::pod_topology_spread::constraints::Action;
    use crate::plugins::pod_topology_spread::tests::{spread, system};
    use crate::testing::{NodeFixture, PodFixture, node, pod};

    fn compiled(pod: &PodFixture, fields: &[Value]) -> Vec<Constraint> {
        let own = fields.iter().map(|fields| {
            let mut own = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
            own.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
            own
        });
        let pod = pod.clone().set("spec.topologySpreadConstraints", own.collect());
        let plugin = spread(FeatureGates::default(), system());
        plugin.constraints(&pod.build(), Action::DoNotSchedule).expect("they can be compiled")
    }

    #[test]
    fn node_inclusion_policies_decide_which_nodes_count() {
        let check = |pod: PodFixture, node: NodeFixture, policies: [&str; 2], expected: bool| {
            let [affinity, taints] = policies;
            let constraints = compiled(&pod, &[json!({"nodeAffinityPolicy": affinity, "nodeTaintsPolicy": taints})]);
            let pod = pod.build();
            let eligible = Eligibility::new(&pod, &constraints, false).of(&pod, &node.build());
            assert_eq!(eligible.counts_for(&constraints[0]), expected, "{policies:?}");
        };
        let picky = || pod("p").node_selector("disk", "ssd");
        check(picky(), node("n"), ["Honor", "Ignore"], false);
        check(picky(), node("n").label("disk", "ssd"), ["Honor", "Ignore"], true);
        check(picky(), node("n"), ["Ignore", "Ignore"], true);
        let tainted = || node("n").taint("a", "", "NoSchedule");
        check(pod("p"), tainted(), ["Honor", "Ignore"], true);
        check(pod("p"), tainted(), ["Honor", "Honor"], false);
        check(pod("p").toleration("a", "", "NoSchedule"), tainted(), ["Honor", "Honor"], true);
        check(pod("p"), node("n").taint("a", "", "PreferNoSchedule"), ["Honor", "Honor"], true);
    }

    #[test]
    fn matching_pods_are_counted_by_class() {
        let classes = LabelClasses::default();
        let mut info = node("n").info();
        let running = [
            pod("a").label("app", "a"),
            pod("b").label("app", "a"),
            pod("c").label("app", "a").terminating(),
            pod("d").label("app", "b"),
            pod("e").label("app", "a").namespace("other"),
        ];
        running.into_iter().for_each(|pod| info.add_pod(Arc::new(PodInfo::new(pod.build(), &classes))));
        let snapshot = Snapshot::from_nodes(vec![Arc::new(info.clone())]);
        let check = |selector: Value, expected: i64| {
            let constraints = compiled(&pod("p"), &[json!({"labelSelector": selector})]);
            let selected = &Selected::by_each("default", &snapshot, &constraints)[0];
            let on_first: i64 = selected.nodes().filter(|(node, _)| node.index() == 0).map(|(_, pods)| pods).sum();
            assert_eq!((on_first, selected.on(&info)), (expected, expected), "{selector}");
        };
        check(json!({"matchLabels": {"app": "a"}}), 2);
        check(json!({"matchLabels": {"app": "b"}}), 1);
        check(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), 3);
        check(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), 0);
        check(json!({}), 0);
        check(Value::Null, 0);
    }
}
