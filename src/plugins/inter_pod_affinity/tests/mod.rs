//! Tests on a cluster of four nodes: two in zone `a`, one in zone `b`, one in no zone. Each node is a domain of the key `host`.

mod filter;
mod hints;
mod score;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::{InterPodAffinityArgs, factory};
use crate::testing::{Harness, NodeFixture, PodFixture, node, pod};

fn host(name: &str) -> NodeFixture {
    node(name).label("host", name)
}

fn harness(existing: &[PodFixture]) -> Harness {
    with_args(existing, 1, false)
}

/// The plugin on the cluster. Namespace `default` has the label `team: x`, namespace `other` the label `team: y`.
fn with_args(existing: &[PodFixture], hard_pod_affinity_weight: i32, ignore: bool) -> Harness {
    let args = InterPodAffinityArgs { hard_pod_affinity_weight, ignore_preferred_terms_of_existing_pods: ignore };
    let harness = Harness::with_args(args, factory);
    for (name, team) in [("default", "x"), ("other", "y")] {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        let namespace: Namespace = serde_json::from_value(namespace).expect("a namespace");
        harness.handle.listers().put(Arc::new(namespace));
    }
    let zone = |name: &str, zone: &str| host(name).label("zone", zone);
    harness.cluster(vec![zone("n1", "a"), zone("n2", "a"), zone("n3", "b"), host("n4")], existing)
}

/// A term that selects pods with this value of the label `app`.
fn app(key: &str, app: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

/// Returns the term with one more field.
fn and(mut term: Value, field: &str, value: &Value) -> Value {
    term[field] = value.clone();
    term
}

/// Sets one list of terms of the pod and keeps its other lists.
fn set(pod: PodFixture, kind: &str, list: &str, terms: Value) -> PodFixture {
    pod.set(&format!("spec.affinity.{kind}.{list}DuringSchedulingIgnoredDuringExecution"), terms)
}

fn near(pod: PodFixture, terms: impl Into<Vec<Value>>) -> PodFixture {
    set(pod, "podAffinity", "required", terms.into().into())
}

fn away(pod: PodFixture, terms: impl Into<Vec<Value>>) -> PodFixture {
    set(pod, "podAntiAffinity", "required", terms.into().into())
}

fn rather(pod: PodFixture, kind: &str, weight: i32, term: &Value) -> PodFixture {
    set(pod, kind, "preferred", json!([{"weight": weight, "podAffinityTerm": term}]))
}

/// A pod with this value of the label `app`.
fn of(name: &str, app: &str) -> PodFixture {
    pod(name).label("app", app)
}

/// A term whose selector cannot be parsed.
fn malformed() -> Value {
    json!({"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}})
}
