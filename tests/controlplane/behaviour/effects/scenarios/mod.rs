//! Scenarios, each of which ends when what it is about has been written.

mod preemption;

use http::Method;
use serde_json::{Value, json};

use crate::support::stage::Stage;

pub(crate) type Scenario = fn(&mut Stage<'_>) -> Result<(), String>;

/// All of them, each with the name of its namespace.
pub(super) const ALL: &[(&str, Scenario)] = &[
    ("binds", binds),
    ("no-nodes", no_nodes),
    ("room-later", room_later),
    ("another-reason", another_reason),
    ("gates", gates),
    ("profiles", profiles),
    ("long-message", long_message),
    ("leaves-early", leaves_early),
    ("placed-by-others", placed_by_others),
    ("repeats", repeats),
    ("same-name-again", same_name_again),
    ("binding-refused", binding_refused),
    ("nominated-by-others", nominated_by_others),
    ("preempts", preemption::preempts),
    ("never-preempts", preemption::never_preempts),
    ("outbid", preemption::outbid),
    ("several-victims", preemption::several_victims),
    ("breaks-a-budget", preemption::breaks_a_budget),
    ("least-important", preemption::least_important),
    ("foreign-victim", preemption::foreign_victim),
    ("still-terminating", preemption::still_terminating),
    ("node-gone", preemption::node_gone),
];

/// The scenario of this name.
pub(crate) fn scenario(name: &str) -> Option<Scenario> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, scenario)| *scenario)
}

fn none() -> Value {
    json!({})
}

fn binds(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    stage.pod("p", "1", none())?;
    stage.wait_bound("p", "a")
}

fn no_nodes(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.pod("p", "1", none())?;
    stage.wait_refused("p", "no nodes available to schedule pods")?;
    stage.node("a", "4", &none())?;
    stage.wait_bound("p", "a")
}

fn room_later(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("p", "2", none())?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"cpu": "4"}}}))?;
    stage.wait_bound("p", "a")
}

/// The condition is written again with another message, and the event is another one, too.
fn another_reason(stage: &mut Stage<'_>) -> Result<(), String> {
    let taint = json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]});
    stage.known_node("a", "1", &taint)?;
    stage.known_node("b", "1", &none())?;
    stage.pod("p", "2", none())?;
    stage.wait_refused("p", "1 Insufficient cpu, 1 node(s) had untolerated taint(s)")?;
    stage.patch("nodes", "a", "", &json!({"spec": {"taints": null}}))?;
    stage.wait_refused("p", "2 Insufficient cpu")?;
    stage.node("c", "2", &none())?;
    stage.wait_bound("p", "c")
}

/// Nothing is written while a gate is there.
fn gates(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    stage.pod("gated", "1", json!({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}}))?;
    stage.pod("other", "1", none())?;
    stage.wait_bound("other", "a")?;
    stage.patch("pods", "gated", "", &json!({"spec": {"schedulingGates": null}}))?;
    stage.wait_bound("gated", "a")
}

/// Each profile speaks for its own pods, and nobody for those of others.
fn profiles(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    stage.pod("foreign", "1", json!({"spec": {"schedulerName": "somebody-else"}}))?;
    stage.pod("big", "9", json!({"spec": {"schedulerName": "second-scheduler"}}))?;
    stage.pod("small", "1", json!({"spec": {"schedulerName": "second-scheduler"}}))?;
    stage.wait_refused("big", "1 Insufficient cpu")?;
    stage.wait_bound("small", "a")
}

/// More than an event's note holds.
fn long_message(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    let names = (0..30).map(|at| (format!("example.com/a-resource-with-a-long-name-{at}"), Value::from("1")));
    let amounts: Value = names.chain([("cpu".to_owned(), "1".into())]).collect::<serde_json::Map<_, _>>().into();
    let container = json!({
        "name": "main", "image": "registry.example/app:v1", "resources": {"requests": amounts, "limits": amounts},
    });
    stage.pod("p", "1", json!({"spec": {"containers": [container]}}))?;
    stage.wait_refused("p", "0/1 nodes are available: 1 Insufficient example.com/a-resource-with-a-long-name-")
}

/// A pod that waits and is being deleted meanwhile is not scheduled when there is room.
fn leaves_early(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("p", "2", json!({"metadata": {"finalizers": ["example.com/held"]}}))?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    stage.delete("p")?;
    stage.wait_terminating("p")?;
    stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"cpu": "4"}}}))?;
    stage.wait_event("p", "FailedScheduling", "skip schedule deleting pod")
}

/// A pod that waits and is put on a node by somebody else, and one that came with its node.
fn placed_by_others(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("waits", "2", none())?;
    stage.wait_refused("waits", "1 Insufficient cpu")?;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "waits"}, "target": {"kind": "Node", "name": "a"},
    });
    stage.create("pods/waits/binding", &binding)?;
    stage.pod("placed", "2", json!({"spec": {"nodeName": "a"}}))?;
    stage.node("b", "4", &none())?;
    stage.pod("last", "4", none())?;
    stage.wait_bound("last", "b")
}

/// A pod that is tried again and again in vain, for the same reason: the condition is written once, and events become a series.
fn repeats(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "4", &none())?;
    for name in ["small-1", "small-2", "small-3", "large"] {
        stage.pod(name, if name == "large" { "3" } else { "100m" }, none())?;
        stage.wait_bound(name, "a")?;
    }
    stage.pod("p", "2", none())?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    // An event's regarding names the version of the pod that was tried: the second attempt is of another one.
    stage.delete_now("small-1")?;
    stage.wait_events("p", "FailedScheduling", 2)?;
    stage.delete_now("small-2")?;
    stage.wait_series()?;
    stage.delete_now("large")?;
    stage.wait_bound("p", "a")
}

/// A pod that waits is deleted, and another one of its name waits in its place.
fn same_name_again(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "1", &none())?;
    stage.pod("p", "2", none())?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    stage.delete_now("p")?;
    stage.pod("p", "3", none())?;
    stage.wait_refused("p", "1 Insufficient cpu")?;
    stage.patch("nodes", "a", "/status", &json!({"status": {"allocatable": {"cpu": "4"}}}))?;
    stage.wait_bound("p", "a")
}

/// The API server refuses a binding by a policy, until it does not any more.
fn binding_refused(stage: &mut Stage<'_>) -> Result<(), String> {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    stage.known_node("a", "4", &none())?;
    let api = "admissionregistration.k8s.io/v1";
    let rules =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}]);
    let policy = json!({
        "apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "no-bindings"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{
                "expression": "!has(namespaceObject.metadata.labels.closed)", "message": "this namespace is closed",
            }],
        },
    });
    let binding = json!({
        "apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "no-bindings"},
        "spec": {"policyName": "no-bindings", "validationActions": ["Deny"]},
    });
    stage.send(Method::POST, POLICIES, &policy)?;
    stage.send(Method::POST, BINDINGS, &binding)?;
    let namespace = format!("/api/v1/namespaces/{}", stage.namespace);
    stage.send(Method::PATCH, &namespace, &json!({"metadata": {"labels": {"closed": "yes"}}}))?;
    let nobody = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "nobody"}, "target": {"kind": "Node", "name": "a"},
    });
    stage.wait("the policy to be in force", |stage| {
        let refused = stage.create("pods/nobody/binding", &nobody).is_err_and(|error| error.contains("is closed"));
        Ok(refused.then_some(()))
    })?;
    stage.pod("p", "1", none())?;
    stage.wait_refused("p", "this namespace is closed")?;
    stage.send(Method::PATCH, &namespace, &json!({"metadata": {"labels": {"closed": null}}}))?;
    stage.wait_bound("p", "a")?;
    stage.send(Method::DELETE, &format!("{BINDINGS}/no-bindings"), &none())?;
    stage.send(Method::DELETE, &format!("{POLICIES}/no-bindings"), &none()).map(drop)
}

/// Somebody else has said where pods are expected: where there is room they go there, else anywhere.
fn nominated_by_others(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.known_node("a", "8", &none())?;
    stage.known_node("b", "4", &none())?;
    for (pod, cpu, node) in [("fits", "3", "b"), ("does-not", "2", "a")] {
        stage.pod(pod, cpu, json!({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}}))?;
        stage.patch("pods", pod, "/status", &json!({"status": {"nominatedNodeName": "b"}}))?;
        stage.patch("pods", pod, "", &json!({"spec": {"schedulingGates": null}}))?;
        stage.wait_bound(pod, node)?;
    }
    Ok(())
}
