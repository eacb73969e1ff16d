//! Trials: a pod that fits nowhere, changes that do not help it, and one that does.

mod nodes;
mod room;
mod topology;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::stage::Stage;

type Step = fn(&mut Stage<'_>) -> Result<(), String>;

/// A trial. The pod that waits is `p`, and it ends on `node`.
pub(super) struct Trial {
    pub(super) name: &'static str,
    /// Makes the cluster, in which the pod fits nowhere.
    cluster: Step,
    /// Creates the pod once the scheduler knows the cluster.
    pod: Step,
    /// What the pod is told meanwhile; nothing for one that is not tried at all.
    refused: &'static str,
    /// Changes that wake nobody, of the same kind where possible.
    useless: Step,
    /// The change that helps.
    helps: Step,
    node: &'static str,
}

impl Trial {
    /// The time from the change that helps to the binding.
    #[expect(clippy::disallowed_methods, reason = "what is measured is the time that another process takes")]
    pub(super) fn play(&self, stage: &mut Stage<'_>) -> Result<Duration, String> {
        self.play_until_it_helps(stage)?;
        let began = Instant::now();
        stage.wait_bound("p", self.node)?;
        Ok(began.elapsed())
    }

    /// The same, or nothing if the change was for nothing.
    #[expect(clippy::disallowed_methods, reason = "what is measured is the time that another process takes")]
    pub(super) fn try_to_play(&self, stage: &mut Stage<'_>) -> Result<Option<Duration>, String> {
        const ENOUGH: Duration = Duration::from_secs(10);
        self.play_until_it_helps(stage)?;
        let is_bound = |stage: &Stage<'_>| Ok(stage.get_pod("p")?["spec"]["nodeName"].is_string().then_some(()));
        let began = Instant::now();
        Ok(stage.wait_for("pod p to be bound", ENOUGH, is_bound).ok().map(|()| began.elapsed()))
    }

    fn play_until_it_helps(&self, stage: &mut Stage<'_>) -> Result<(), String> {
        (self.cluster)(stage)?;
        seen(stage)?;
        (self.pod)(stage)?;
        if self.refused.is_empty() {
            stage.wait("the pod's gates to be seen", |stage| {
                let gated = stage.sum(&["scheduler_pending_pods{queue=\"gated\"}"])?;
                Ok((gated > 0).then_some(()))
            })?;
        } else {
            stage.wait_refused("p", self.refused)?;
        }
        (self.useless)(stage)?;
        (self.helps)(stage)
    }
}

/// Waits until the scheduler knows all nodes, and all pods that run: they come to it on different ways, and a pod that is
/// tried before them is tried once more.
fn seen(stage: &mut Stage<'_>) -> Result<(), String> {
    let count = |path: &str, is_counted: fn(&Value) -> bool| {
        let list = stage.send(http::Method::GET, path, &Value::Null)?;
        let count = list["items"].as_array().map_or(0, |items| items.iter().filter(|item| is_counted(item)).count());
        Ok::<u64, String>(count as u64)
    };
    let nodes = count("/api/v1/nodes", |_| true)?;
    let pods = count("/api/v1/pods", |pod| pod["spec"]["nodeName"].is_string())?;
    stage.wait("the scheduler to know its cluster", |stage| {
        let known = |kind: &str| stage.sum(&[&format!("scheduler_cache_size{{type=\"{kind}\"}}")]);
        Ok((known("nodes")? == nodes && known("pods")? == pods).then_some(()))
    })
}

fn none() -> Value {
    json!({})
}

fn taint() -> Value {
    json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]})
}

fn label(stage: &Stage<'_>, node: &str, key: &str, value: &str) -> Result<(), String> {
    stage.patch("nodes", node, "", &json!({"metadata": {"labels": {key: value}}}))
}

/// Sets a label of a pod.
fn label_pod(stage: &Stage<'_>, pod: &str, key: &str, value: &str) -> Result<(), String> {
    stage.patch("pods", pod, "", &json!({"metadata": {"labels": {key: value}}}))
}

/// Gives node `a` a label that no pod asks for.
fn unrelated_label(stage: &mut Stage<'_>) -> Result<(), String> {
    label(stage, "a", "other", "1")
}

/// Adds node `a` with four CPUs.
fn one_node(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.node("a", "4", &none())
}

/// Adds a toleration to the pod that waits.
fn tolerate(stage: &Stage<'_>, key: &str) -> Result<(), String> {
    let mut tolerations = stage.get_pod("p")?["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    tolerations.push(json!({"key": key, "operator": "Exists"}));
    stage.patch("pods", "p", "", &json!({"spec": {"tolerations": tolerations}}))
}

fn allocatable(stage: &Stage<'_>, node: &str, cpu: &str) -> Result<(), String> {
    stage.patch("nodes", node, "/status", &json!({"status": {"allocatable": {"cpu": cpu}}}))
}

/// A pod that runs on a node from the start.
fn running(stage: &Stage<'_>, name: &str, node: &str, cpu: &str, app: &str) -> Result<(), String> {
    stage.pod(name, cpu, json!({"metadata": {"labels": {"app": app}}, "spec": {"nodeName": node}}))
}

fn port(number: u16) -> Value {
    json!([{
        "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": "1"}},
        "ports": [{"containerPort": number, "hostPort": number}],
    }])
}

fn term(kind: &str, app: &str, key: &str) -> Value {
    let term = json!([{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]);
    json!({"spec": {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": term}}}})
}

fn spread(key: &str) -> Value {
    json!({"metadata": {"labels": {"app": "p"}}, "spec": {"topologySpreadConstraints": [{
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "p"}},
    }]}})
}

/// Changes what a pod that runs asks for.
fn resize(stage: &Stage<'_>, pod: &str, cpu: &str) -> Result<(), String> {
    let mut containers = stage.get_pod(pod)?["spec"]["containers"].clone();
    containers[0]["resources"]["requests"]["cpu"] = cpu.into();
    stage.patch("pods", pod, "/resize", &json!({"spec": {"containers": containers}}))
}

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Trial> {
    [nodes::ALL, room::ALL, topology::ALL].into_iter().flatten()
}
