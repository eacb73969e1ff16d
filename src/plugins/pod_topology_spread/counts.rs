//! Which nodes count for a constraint, and how many pods they have that it selects.

use std::sync::Arc;

use super::constraints::Constraint;
use crate::k8s::tolerations::{do_not_schedule, find_untolerated_taint};
use crate::k8s::{Node, Pod, RequiredNodeAffinity, Selector};
use crate::model::{LabelClass, NodeInfo};

/// Which nodes count, by the policies of some constraints. What no policy asks for is not looked at.
#[derive(Debug)]
pub(super) struct Eligibility {
    /// None if no constraint honours it, or any node will do.
    affinity: Option<RequiredNodeAffinity>,
    honors_taints: bool,
    /// Whether tolerations may compare numbers.
    comparisons: bool,
}

/// What policies may ask of one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eligible {
    affinity: bool,
    taints: bool,
}

impl Eligibility {
    /// For the constraints of this pod.
    pub(super) fn new(pod: &Pod, constraints: &[Constraint], comparisons: bool) -> Self {
        let honors_affinity = constraints.iter().any(|constraint| constraint.honors_affinity);
        let affinity = honors_affinity.then(|| RequiredNodeAffinity::new(pod));
        Self {
            affinity: affinity.filter(|affinity| !affinity.is_unrestricted()),
            honors_taints: constraints.iter().any(|constraint| constraint.honors_taints),
            comparisons,
        }
    }

    /// Looks at a node for the pod. Terms that cannot be compiled match nothing, and nothing is said about them.
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

/// One selector, and what is known of classes.
#[derive(Debug)]
struct Matches {
    selector: Arc<Selector>,
    /// By the class's number.
    known: Vec<Option<bool>>,
}

/// Counts the pods of one namespace that selectors select. A selector is matched once a class.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    namespace: &'a str,
    matches: Vec<Matches>,
    /// Which of `matches` is a constraint's.
    of: Vec<usize>,
}

impl<'a> Tally<'a> {
    /// For these constraints, whose equal selectors are one.
    pub(super) fn new(namespace: &'a str, constraints: &[Constraint]) -> Self {
        let mut tally = Self { namespace, matches: Vec::new(), of: Vec::new() };
        for constraint in constraints {
            let known = tally.matches.iter().position(|known| Arc::ptr_eq(&known.selector, &constraint.selector));
            tally.of.push(known.unwrap_or(tally.matches.len()));
            if known.is_none() {
                tally.matches.push(Matches { selector: constraint.selector.clone(), known: Vec::new() });
            }
        }
        tally
    }

    /// How many pods on the node the constraint at this place selects, without those that are being deleted. A selector that
    /// requires nothing counts none.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/common.go#countPodsMatchSelector @v1.36.3`.
    pub(super) fn count(&mut self, constraint: usize, node: &NodeInfo) -> i64 {
        let matches = &mut self.matches[self.of[constraint]];
        if matches.selector.is_empty() {
            return 0;
        }
        let mut pods = 0;
        for count in node.classes() {
            if matches.class(self.namespace, count.class()) {
                pods += count.staying();
            }
        }
        i64::try_from(pods).unwrap_or(i64::MAX)
    }
}

impl Matches {
    fn class(&mut self, namespace: &str, class: &LabelClass) -> bool {
        let at = class.id().index();
        if let Some(Some(known)) = self.known.get(at) {
            return *known;
        }
        if self.known.len() <= at {
            self.known.resize(at + 1, None);
        }
        let matches = class.namespace() == namespace && self.selector.matches(class.labels());
        self.known[at] = Some(matches);
        matches
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
        let plugin = spread(FeatureGates::default(), &system());
        plugin.constraints(&pod.build(), Action::DoNotSchedule).expect("they can be compiled")
    }

    #[test]
    fn policies_decide_which_nodes_count() {
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
    fn pods_are_counted_by_class() {
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
        let check = |selector: Value, expected: i64| {
            let constraints = compiled(&pod("p"), &[json!({"labelSelector": selector})]);
            let mut tally = Tally::new("default", &constraints);
            assert_eq!((tally.count(0, &info), tally.count(0, &info)), (expected, expected), "{selector}");
        };
        check(json!({"matchLabels": {"app": "a"}}), 2);
        check(json!({"matchLabels": {"app": "b"}}), 1);
        check(json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}), 3);
        check(json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}), 0);
        check(json!({}), 0);
        check(Value::Null, 0);
    }
}
