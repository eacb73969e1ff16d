//! Fixtures for the tests of the plugin's modules, and tests of its signature.

use serde_json::{Value, json};

use super::*;
use crate::config::FeatureGates;
use crate::framework::SignOutcome;
use crate::listers::Listers;
use crate::testing::{Harness, PodFixture, handle, pod};

/// Arguments that apply the built-in constraints.
pub(super) fn system() -> PodTopologySpreadArgs {
    PodTopologySpreadArgs { defaulting_type: "System".to_owned(), default_constraints: Vec::new() }
}

/// Arguments that apply these constraints by default.
pub(super) fn list(constraints: &[Value]) -> PodTopologySpreadArgs {
    PodTopologySpreadArgs {
        defaulting_type: "List".to_owned(),
        default_constraints: serde_json::from_value(constraints.into()).expect("constraints"),
    }
}

/// Returns the plugin, built with these gates and arguments.
pub(super) fn spread(gates: FeatureGates, args: PodTopologySpreadArgs) -> PodTopologySpread {
    PodTopologySpread::new(args, &handle(gates)).expect("nothing is watched yet")
}

/// Returns the plugin in a cluster that only has a service with this selector.
pub(super) fn with_service(plugin: &PodTopologySpread, selector: &Value) -> PodTopologySpread {
    let handle = handle(FeatureGates::default());
    add_service(handle.listers(), selector);
    let selectors = DefaultSelectors::new(&handle).expect("nothing is watched yet");
    PodTopologySpread { selectors: Some(selectors), ..plugin.clone() }
}

/// Adds a service with this selector to the cluster.
pub(super) fn add_service(listers: &Listers, selector: &Value) {
    let service = json!({"metadata": {"namespace": "default", "name": "s"}, "spec": {"selector": selector}});
    let service: k8s_openapi::api::core::v1::Service = serde_json::from_value(service).expect("a service");
    listers.put(Arc::new(service));
}

/// A constraint that selects pods with label `app: a`, by default hard and with a skew of 1. `more` replaces fields.
pub(super) fn constraint(key: &str, more: &Value) -> Value {
    let mut constraint = json!({
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    });
    let fields = more.as_object().expect("fields").clone();
    constraint.as_object_mut().expect("an object").extend(fields);
    constraint
}

/// A soft constraint that selects pods with label `app: a`.
pub(super) fn soft(key: &str, skew: i32) -> Value {
    constraint(key, &json!({"whenUnsatisfiable": "ScheduleAnyway", "maxSkew": skew}))
}

/// A pod with label `app: a` and these constraints.
pub(super) fn spreading(constraints: &[Value]) -> PodFixture {
    pod("p").label("app", "a").set("spec.topologySpreadConstraints", constraints.into())
}

#[test]
fn only_pods_without_constraints_are_signed() {
    let refused = |harness: &Harness, pod: &PodFixture| {
        let signed = harness.registration.sign.as_ref().expect("Sign").sign(&pod.clone().info());
        match signed.expect("signing does not fail") {
            SignOutcome::Refuse(rejection) => rejection.reasons.to_string(),
            SignOutcome::Fragments(fragments) => format!("{fragments:?}"),
        }
    };
    let check = |args: PodTopologySpreadArgs, pod: PodFixture, expected: &str| {
        assert_eq!(refused(&Harness::with_args(args, factory), &pod), expected);
    };
    let own = || spreading(&[soft("zone", 1)]);
    check(list(&[]), pod("p"), "[]");
    check(list(&[]), own(), "pods with topology constraints are not signable");
    check(system(), own(), "pods with topology constraints are not signable");
    check(system(), pod("p"), "pods with default topology constraints are not signable");
    check(list(&[soft("zone", 1)]), pod("p"), "pods with default topology constraints are not signable");
}
