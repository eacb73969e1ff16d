//! Compiled constraints: the pod's own constraints, or the profile's default constraints for a pod without its own.

use std::sync::Arc;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;

use super::PodTopologySpread;
use super::args::{PodTopologySpreadArgs, SYSTEM};
use crate::framework::PluginError;
use crate::k8s::label_selector::Requirement;
use crate::k8s::{ParseSelectorError, Pod, Selector, StringMap};

/// The node label with the hostname. Each of its domains is one node.
pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// The node label with the zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The inclusion policy that counts only nodes on which the pod could run.
const HONOR: &str = "Honor";

/// The effect of a constraint on a node that would violate the skew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The node is rejected: a hard constraint.
    DoNotSchedule,
    /// The node gets a lower score: a soft constraint.
    ScheduleAnyway,
}

impl Action {
    fn name(self) -> &'static str {
        match self {
            Self::DoNotSchedule => "DoNotSchedule",
            Self::ScheduleAnyway => "ScheduleAnyway",
        }
    }

    fn adjective(self) -> &'static str {
        match self {
            Self::DoNotSchedule => "hard",
            Self::ScheduleAnyway => "soft",
        }
    }
}

/// A constraint with its selector compiled.
/// Follows `pkg/scheduler/framework/plugins/podtopologyspread/common.go#topologySpreadConstraint @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Constraint {
    /// The maximum difference between the pod counts of a domain and of the domain with the fewest pods.
    pub(super) max_skew: i32,
    /// The node label whose values define the topology domains.
    pub(super) topology_key: Box<str>,
    /// The selector for the pods that are counted.
    pub(super) selector: Arc<Selector>,
    /// If there are fewer domains than this, the minimum count is taken as 0.
    pub(super) min_domains: i32,
    /// Whether a node counts only if it matches the pod's node affinity.
    pub(super) honors_affinity: bool,
    /// Whether a node counts only if the pod tolerates its hard taints.
    pub(super) honors_taints: bool,
}

impl Constraint {
    fn new(wire: &TopologySpreadConstraint, selector: Arc<Selector>) -> Self {
        let honors = |policy: &Option<String>, default| policy.as_deref().map_or(default, |policy| policy == HONOR);
        Self {
            max_skew: wire.max_skew,
            topology_key: wire.topology_key.as_str().into(),
            selector,
            min_domains: wire.min_domains.unwrap_or(1),
            honors_affinity: honors(&wire.node_affinity_policy, true),
            honors_taints: honors(&wire.node_taints_policy, false),
        }
    }
}

/// The constraints for pods without constraints of their own. Their selector is derived from each pod.
#[derive(Clone, Debug)]
pub(super) struct Defaults {
    pub(super) constraints: Vec<TopologySpreadConstraint>,
    /// Whether these are the built-in constraints, which also score nodes without all topology keys.
    pub(super) system: bool,
}

impl Defaults {
    /// Returns the constraints in the arguments, or the built-in ones.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#systemDefaultConstraints @v1.36.3`.
    pub(super) fn new(args: PodTopologySpreadArgs) -> Self {
        if args.defaulting_type != SYSTEM {
            return Self { constraints: args.default_constraints, system: false };
        }
        let soft = |key: &str, max_skew| TopologySpreadConstraint {
            topology_key: key.to_owned(),
            max_skew,
            when_unsatisfiable: Action::ScheduleAnyway.name().to_owned(),
            ..TopologySpreadConstraint::default()
        };
        Self { constraints: vec![soft(HOSTNAME, 3), soft(ZONE, 5)], system: true }
    }

    fn has(&self, action: Action) -> bool {
        self.constraints.iter().any(|constraint| constraint.when_unsatisfiable == action.name())
    }
}

impl PodTopologySpread {
    /// Returns the constraints with this `action`, in the pod's order. A pod with constraints of its own, hard or soft, gets no
    /// default constraints.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#PodTopologySpread.getConstraints @v1.36.3`.
    pub(super) fn constraints(&self, pod: &Pod, action: Action) -> Result<Vec<Constraint>, PluginError> {
        let own = &pod.spec.topology_spread_constraints;
        let adjective = action.adjective();
        if own.is_empty() {
            return Ok(self.default_constraints(pod, action));
        }
        self.compile(own, pod.labels(), action).map_err(|error| {
            PluginError::new(format!("obtaining pod's {adjective} topology spread constraints: {error}"))
        })
    }

    /// Returns the default constraints with this `action`. Their selector is derived from the pod's services and controller.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/common.go#PodTopologySpread.buildDefaultConstraints
    /// @v1.36.3`.
    fn default_constraints(&self, pod: &Pod, action: Action) -> Vec<Constraint> {
        let Some(selectors) = self.selectors.as_ref().filter(|_| self.defaults.has(action)) else { return Vec::new() };
        let selector = selectors.of(pod);
        if selector.is_empty() {
            return Vec::new();
        }
        let selector = Arc::new(selector);
        let listed = self.defaults.constraints.iter().filter(|wire| wire.when_unsatisfiable == action.name());
        listed.map(|wire| Constraint::new(wire, selector.clone())).collect()
    }

    /// Compiles the constraints with this `action`.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/common.go#PodTopologySpread.filterTopologySpreadConstraints
    /// @v1.36.3`.
    fn compile(
        &self,
        constraints: &[TopologySpreadConstraint],
        labels: &StringMap,
        action: Action,
    ) -> Result<Vec<Constraint>, ParseSelectorError> {
        let mut compiled: Vec<Constraint> = Vec::new();
        for wire in constraints.iter().filter(|wire| wire.when_unsatisfiable == action.name()) {
            let selector = self.selector(wire, labels)?;
            // Constraints with equal selectors share one, so that pods are matched once.
            let known = compiled.iter().find(|earlier| *earlier.selector == selector);
            let selector = known.map_or_else(|| Arc::new(selector), |earlier| earlier.selector.clone());
            compiled.push(Constraint::new(wire, selector));
        }
        Ok(compiled)
    }

    /// Returns the constraint's selector, restricted to pods that have the same values of the `matchLabelKeys` as this pod.
    fn selector(&self, wire: &TopologySpreadConstraint, labels: &StringMap) -> Result<Selector, ParseSelectorError> {
        let selector = Selector::from_label_selector(wire.label_selector.as_ref())?;
        if !self.match_label_keys {
            return Ok(selector);
        }
        let keys = wire.match_label_keys.iter().flatten();
        let shared = keys.filter_map(|key| labels.get(key).map(|value| Requirement::equals(key, value)));
        Ok(shared.fold(selector, Selector::and))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{FeatureGates, Gate};
    use crate::plugins::pod_topology_spread::tests::{spread, system, with_service};
    use crate::testing::pod;

    /// Prints the constraints for `action`: skew, key, selector, and the fields that differ from their defaults.
    fn print(plugin: &PodTopologySpread, own: &Value, action: Action) -> String {
        let pod = pod("p").label("app", "a").label("rev", "1").set("spec.topologySpreadConstraints", own.clone());
        let print = |constraint: &Constraint| {
            let selector = match constraint.selector.requirements() {
                None => "nothing".to_owned(),
                Some([]) => "everything".to_owned(),
                Some(_) => constraint.selector.to_string(),
            };
            let domains =
                if constraint.min_domains == 1 { String::new() } else { format!(" of {}", constraint.min_domains) };
            let affinity = if constraint.honors_affinity { "" } else { " any affinity" };
            let taints = if constraint.honors_taints { " honors taints" } else { "" };
            let (skew, key) = (constraint.max_skew, &constraint.topology_key);
            format!("{skew} {key} {selector}{domains}{affinity}{taints}")
        };
        match plugin.constraints(&pod.build(), action) {
            Ok(constraints) => constraints.iter().map(print).collect::<Vec<_>>().join("; "),
            Err(error) => error.to_string(),
        }
    }

    fn constraint(fields: &Value) -> Value {
        let mut constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
        let fields = fields.as_object().expect("fields").clone();
        constraint.as_object_mut().expect("an object").extend(fields);
        constraint
    }

    #[test]
    fn constraint_fields_are_defaulted() {
        let check = |fields: Value, expected: &str| {
            let plugin = spread(FeatureGates::default(), system());
            assert_eq!(print(&plugin, &json!([constraint(&fields)]), Action::DoNotSchedule), expected);
        };
        check(json!({}), "1 zone nothing");
        check(json!({"labelSelector": {}}), "1 zone everything");
        check(json!({"labelSelector": {"matchLabels": {"app": "a"}}, "maxSkew": 3}), "3 zone app=a");
        check(json!({"minDomains": 4}), "1 zone nothing of 4");
        check(
            json!({"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}),
            "1 zone nothing any affinity honors taints",
        );
        check(json!({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore"}), "1 zone nothing");
        check(json!({"whenUnsatisfiable": "ScheduleAnyway"}), "");
        let odd = json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}});
        let error = "obtaining pod's hard topology spread constraints: \"Near\" is not a valid label selector operator";
        check(odd, error);
    }

    #[test]
    fn match_label_keys_narrow_the_selector() {
        let check = |gate: bool, fields: Value, expected: &str| {
            let gates = FeatureGates::default().with(Gate::MatchLabelKeysInPodTopologySpread, gate);
            let plugin = spread(gates, system());
            assert_eq!(print(&plugin, &json!([constraint(&fields)]), Action::DoNotSchedule), expected);
        };
        let keys = || json!({"labelSelector": {"matchLabels": {"x": "y"}}, "matchLabelKeys": ["rev", "no-such-label"]});
        check(true, keys(), "1 zone rev=1,x=y");
        check(false, keys(), "1 zone x=y");
        check(true, json!({"matchLabelKeys": ["rev"]}), "1 zone nothing");
        check(true, json!({"labelSelector": {}, "matchLabelKeys": ["rev"]}), "1 zone rev=1");
    }

    #[test]
    fn own_constraints_replace_the_defaults() {
        let built_in = "3 kubernetes.io/hostname app=a; 5 topology.kubernetes.io/zone app=a";
        let check = |own: Value, action: Action, expected: &str| {
            let plugin = with_service(&spread(FeatureGates::default(), system()), &json!({"app": "a"}));
            assert_eq!(print(&plugin, &own, action), expected, "{own} {action:?}");
        };
        check(json!([]), Action::ScheduleAnyway, built_in);
        check(json!([]), Action::DoNotSchedule, "");
        check(json!([constraint(&json!({}))]), Action::ScheduleAnyway, "");
        check(json!([constraint(&json!({}))]), Action::DoNotSchedule, "1 zone nothing");
    }

    #[test]
    fn default_constraints_need_a_service_or_controller() {
        let args = PodTopologySpreadArgs {
            defaulting_type: "List".to_owned(),
            default_constraints: vec![
                serde_json::from_value(constraint(&json!({"maxSkew": 2, "matchLabelKeys": ["rev"]})))
                    .expect("a constraint"),
            ],
        };
        let plugin = spread(FeatureGates::default(), args);
        assert_eq!(print(&plugin, &json!([]), Action::DoNotSchedule), "");
        let check = |selector: Value, expected: &str| {
            let plugin = with_service(&plugin, &selector);
            assert_eq!(print(&plugin, &json!([]), Action::DoNotSchedule), expected);
            assert_eq!(print(&plugin, &json!([]), Action::ScheduleAnyway), "");
        };
        check(json!({"app": "a"}), "2 zone app=a");
        check(json!({"app": "b"}), "");
    }

    #[test]
    fn equal_selectors_are_shared() {
        let plugin = spread(FeatureGates::default(), system());
        let own = |key: &str| constraint(&json!({"topologyKey": key, "labelSelector": {"matchLabels": {"a": "b"}}}));
        let pod = pod("p").set("spec.topologySpreadConstraints", json!([own("x"), own("y"), constraint(&json!({}))]));
        let compiled = plugin.constraints(&pod.build(), Action::DoNotSchedule).expect("they can be compiled");
        assert!(Arc::ptr_eq(&compiled[0].selector, &compiled[1].selector));
        assert!(!Arc::ptr_eq(&compiled[0].selector, &compiled[2].selector));
    }
}
