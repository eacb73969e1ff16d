//! `PodTopologySpread`, which is not built yet: pods that have to be spread are not scheduled, others are not spread.
//!
//! Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go @v1.36.3` in who needs it and whom it signs.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, OwnerReference};

use super::unsupported::{Missing, Unsupported, not_supported};
use crate::config::PodTopologySpreadArgs;
use crate::framework::{CycleContext, Handle, PluginArgs, PluginError, Registration, Rejection, SignOutcome};
use crate::k8s::Pod;
use crate::listers::Listers;
use crate::model::PodInfo;

/// The plugin's name.
pub const NAME: &str = "PodTopologySpread";

/// A constraint that nodes are filtered by; others are scored by.
const DO_NOT_SCHEDULE: &str = "DoNotSchedule";

/// Constraints for pods that have none.
struct Defaults {
    any: bool,
    hard: bool,
}

struct PodTopologySpread {
    defaults: Defaults,
    listers: Arc<Listers>,
}

/// Builds the plugin from [`PodTopologySpreadArgs`].
#[expect(clippy::needless_pass_by_value, reason = "every factory is called alike")]
pub fn factory(args: PluginArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let args: PodTopologySpreadArgs = args.decode().map_err(|error| PluginError::new(error.to_string()))?;
    let defaults = Defaults::new(&args);
    let plugin = Unsupported::new(PodTopologySpread { defaults, listers: handle.listers().clone() }, handle);
    Ok(Registration::new(NAME)
        .events(&plugin)
        .pre_filter(&plugin)
        .filter(&plugin)
        .pre_score(&plugin)
        .score(&plugin)
        .normalize(&plugin)
        .sign(&plugin))
}

impl Defaults {
    /// The built-in ones are all soft.
    fn new(args: &PodTopologySpreadArgs) -> Self {
        if args.defaulting_type == "System" {
            return Self { any: true, hard: false };
        }
        Self { any: !args.default_constraints.is_empty(), hard: has_hard(&args.default_constraints) }
    }
}

fn has_hard(constraints: &[TopologySpreadConstraint]) -> bool {
    constraints.iter().any(|constraint| constraint.when_unsatisfiable == DO_NOT_SCHEDULE)
}

fn has_soft(constraints: &[TopologySpreadConstraint]) -> bool {
    constraints.iter().any(|constraint| constraint.when_unsatisfiable != DO_NOT_SCHEDULE)
}

impl PodTopologySpread {
    /// Whether something says which pods the pod belongs with; only then do default constraints apply to it.
    /// Follows `pkg/scheduler/framework/plugins/helper/spread.go#DefaultSelector @v1.36.3`.
    fn has_default_selector(&self, pod: &Pod) -> bool {
        let labels = pod.labels();
        let in_service = self.listers.services.list_in(pod.namespace()).iter().any(|service| {
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            selector.is_some_and(|selector| {
                !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            })
        });
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        in_service || controller.is_some_and(|owner| self.selects(pod.namespace(), owner))
    }

    fn selects(&self, namespace: &str, owner: &OwnerReference) -> bool {
        let is_selective = |selector: &LabelSelector| {
            selector.match_labels.as_ref().is_some_and(|labels| !labels.is_empty())
                || selector.match_expressions.as_ref().is_some_and(|expressions| !expressions.is_empty())
        };
        let listers = &self.listers;
        match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => {
                let controller = listers.replication_controllers.get_in(namespace, &owner.name);
                let spec = controller.as_ref().and_then(|controller| controller.spec.as_ref());
                spec.and_then(|spec| spec.selector.as_ref()).is_some_and(|selector| !selector.is_empty())
            }
            ("apps/v1", "ReplicaSet") => {
                let set = listers.replica_sets.get_in(namespace, &owner.name);
                set.and_then(|set| set.spec.as_ref().map(|spec| is_selective(&spec.selector))).unwrap_or(false)
            }
            ("apps/v1", "StatefulSet") => {
                let set = listers.stateful_sets.get_in(namespace, &owner.name);
                set.and_then(|set| set.spec.as_ref().map(|spec| is_selective(&spec.selector))).unwrap_or(false)
            }
            _ => false,
        }
    }
}

impl Missing for PodTopologySpread {
    const NAME: &'static str = NAME;

    fn requirement(&self, cx: &CycleContext<'_>) -> Option<Cow<'static, str>> {
        let own = &cx.pod.pod().spec.topology_spread_constraints;
        let hard =
            if own.is_empty() { self.defaults.hard && self.has_default_selector(cx.pod.pod()) } else { has_hard(own) };
        hard.then(|| not_supported(NAME))
    }

    fn preference(&self, cx: &CycleContext<'_>) -> bool {
        let own = &cx.pod.pod().spec.topology_spread_constraints;
        if own.is_empty() { self.defaults.any && self.has_default_selector(cx.pod.pod()) } else { has_soft(own) }
    }

    fn sign(&self, pod: &PodInfo) -> SignOutcome {
        let refuse = |reason| SignOutcome::Refuse(Rejection::unschedulable(reason));
        if !pod.pod().spec.topology_spread_constraints.is_empty() {
            refuse("pods with topology constraints are not signable")
        } else if self.defaults.any {
            refuse("pods with default topology constraints are not signable")
        } else {
            SignOutcome::Fragments(Vec::new())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::framework::{PreScoreOutcome, Verdict};
    use crate::plugins::tests::harness::Harness;
    use crate::testing::{PodFixture, node, pod};

    fn args(defaulting: &str, constraints: Value) -> PluginArgs {
        PluginArgs::PodTopologySpread(PodTopologySpreadArgs {
            defaulting_type: defaulting.to_owned(),
            default_constraints: serde_json::from_value(constraints).expect("constraints"),
        })
    }

    fn system() -> Harness {
        Harness::with_args(args("System", json!([])), factory)
    }

    fn constraint(when: &str) -> Value {
        json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when})
    }

    fn constrained(when: &[&str]) -> PodFixture {
        pod("p").set("spec.topologySpreadConstraints", when.iter().map(|when| constraint(when)).collect())
    }

    fn owned(api_version: &str, kind: &str) -> PodFixture {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": true});
        pod("p").label("app", "a").set("metadata.ownerReferences", json!([owner]))
    }

    /// Something that each kind of owner, and a service, stands for, all with this selector.
    fn fill(harness: &Harness, selector: &Value) {
        let listers = harness.handle.listers();
        let object = |selector: &Value| {
            let spec = json!({"selector": selector, "serviceName": "s", "template": {}});
            json!({"metadata": {"namespace": "default", "name": "o"}, "spec": spec})
        };
        let read = "an object of its kind";
        let labels = selector.get("matchLabels").cloned().unwrap_or_else(|| json!({}));
        listers.replica_sets.apply(Arc::new(serde_json::from_value(object(selector)).expect(read)));
        listers.stateful_sets.apply(Arc::new(serde_json::from_value(object(selector)).expect(read)));
        listers.replication_controllers.apply(Arc::new(serde_json::from_value(object(&labels)).expect(read)));
    }

    fn add_service(harness: &Harness, selector: &Value) {
        let service = json!({"metadata": {"namespace": "default", "name": "s"}, "spec": {"selector": selector}});
        harness.handle.listers().services.apply(Arc::new(serde_json::from_value(service).expect("a service")));
    }

    fn ignored(harness: &Harness, pod: &PodFixture) -> u64 {
        assert_eq!(harness.pre_score(pod).0, Ok(PreScoreOutcome::Skip));
        harness.handle.metrics().ignored_preferences(NAME).get()
    }

    #[test]
    fn hard_constraints_are_rejected_and_soft_ones_counted() {
        let check = |pod: &PodFixture, passes: bool, counted: u64| {
            let rejected = Verdict::unresolvable("PodTopologySpread is not supported yet");
            let expected = if passes { Verdict::Pass } else { rejected };
            system().check_filter(pod, node("n"), &expected);
            assert_eq!(ignored(&system(), pod), counted);
        };
        check(&pod("p"), true, 0);
        check(&constrained(&["ScheduleAnyway"]), true, 1);
        check(&constrained(&["ScheduleAnyway", "DoNotSchedule"]), false, 1);
        check(&constrained(&["DoNotSchedule"]), false, 0);
    }

    #[test]
    fn default_constraints_apply_to_pods_that_belong_to_something() {
        let check = |pod: PodFixture, selector: Value, counted: u64| {
            let harness = system();
            fill(&harness, &selector);
            assert_eq!(ignored(&harness, &pod), counted, "{pod:?} {selector}");
        };
        let app = || json!({"matchLabels": {"app": "a"}});
        check(owned("apps/v1", "ReplicaSet"), app(), 1);
        check(owned("apps/v1", "StatefulSet"), app(), 1);
        check(owned("v1", "ReplicationController"), app(), 1);
        check(owned("apps/v1", "StatefulSet"), json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}), 1);
        check(owned("apps/v1", "ReplicaSet"), json!({}), 0);
        check(owned("v1", "ReplicationController"), json!({}), 0);
        check(owned("apps/v1", "DaemonSet"), app(), 0);
        check(pod("p").label("app", "a"), app(), 0);
    }

    #[test]
    fn default_constraints_apply_to_pods_in_a_service() {
        let check = |pod: PodFixture, selector: Value, counted: u64| {
            let harness = system();
            add_service(&harness, &selector);
            assert_eq!(ignored(&harness, &pod), counted, "{pod:?} {selector}");
        };
        check(pod("p").label("app", "a").label("x", "y"), json!({"app": "a"}), 1);
        check(pod("p").label("app", "b"), json!({"app": "a"}), 0);
        check(pod("p").label("app", "a").namespace("other"), json!({"app": "a"}), 0);
        check(pod("p"), json!({}), 0);
        check(pod("p"), Value::Null, 0);
    }

    #[test]
    fn listed_defaults_may_be_hard() {
        let listed = |when: &str| Harness::with_args(args("List", json!([constraint(when)])), factory);
        let in_service = pod("p").label("app", "a");
        let check = |when: &str, expected: Verdict| {
            let harness = listed(when);
            harness.check_filter(&in_service, node("n"), &Verdict::Pass);
            add_service(&harness, &json!({"app": "a"}));
            harness.check_filter(&in_service, node("n"), &expected);
        };
        check("DoNotSchedule", Verdict::unresolvable("PodTopologySpread is not supported yet"));
        check("ScheduleAnyway", Verdict::Pass);
    }

    #[test]
    fn preferences_add_up() {
        let harness = system();
        assert_eq!(ignored(&harness, &constrained(&["ScheduleAnyway"])), 1);
        assert_eq!(ignored(&harness, &constrained(&["ScheduleAnyway"])), 2);
    }

    #[test]
    fn only_pods_without_any_constraint_are_signed() {
        let refused = |harness: &Harness, pod: PodFixture| {
            matches!(harness.registration.sign.as_ref().expect("Sign").sign(&pod.info()), Ok(SignOutcome::Refuse(_)))
        };
        let empty = Harness::with_args(args("List", json!([])), factory);
        empty.check_signature(&pod("p"), &[]);
        assert!(refused(&empty, constrained(&["ScheduleAnyway"])));
        assert!(refused(&system(), pod("p")));
    }
}
