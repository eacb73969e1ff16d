//! Trials: a pod that fits nowhere, changes that do not help it, and one that does.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::Stage;

type Step = fn(&mut Stage<'_>) -> Result<(), String>;

/// A trial. The pod that waits is `p`, and it ends on `node`.
pub(super) struct Trial {
    pub(super) name: &'static str,
    /// Makes the cluster and the pod.
    setting: Step,
    /// What the pod is told meanwhile.
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
        (self.setting)(stage)?;
        stage.wait_refused("p", self.refused)?;
        (self.useless)(stage)?;
        (self.helps)(stage)?;
        let began = Instant::now();
        stage.wait_bound("p", self.node)?;
        Ok(began.elapsed())
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
pub(super) const ALL: &[Trial] = &[
    Trial {
        name: "uncordoned",
        setting: |stage| {
            stage.node("a", "4", &json!({"unschedulable": true}))?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) were unschedulable",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.patch("nodes", "a", "", &json!({"spec": {"unschedulable": null}})),
        node: "a",
    },
    Trial {
        name: "taint-removed",
        setting: |stage| {
            stage.node("a", "4", &taint())?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) had untolerated taint(s)",
        useless: |stage| {
            label(stage, "a", "other", "1")?;
            allocatable(stage, "a", "5")
        },
        helps: |stage| stage.patch("nodes", "a", "", &json!({"spec": {"taints": null}})),
        node: "a",
    },
    Trial {
        name: "toleration-added",
        setting: |stage| {
            stage.node("a", "4", &taint())?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) had untolerated taint(s)",
        useless: |stage| stage.patch("pods", "p", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| {
            let mut tolerations = stage.get_pod("p")?["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
            tolerations.push(json!({"key": "team", "operator": "Exists"}));
            stage.patch("pods", "p", "", &json!({"spec": {"tolerations": tolerations}}))
        },
        node: "a",
    },
    Trial {
        name: "node-label",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", json!({"spec": {"nodeSelector": {"disk": "ssd"}}}))
        },
        refused: "node(s) didn't match Pod's node affinity/selector",
        useless: |stage| {
            label(stage, "a", "disk", "hdd")?;
            allocatable(stage, "a", "5")
        },
        helps: |stage| label(stage, "a", "disk", "ssd"),
        node: "a",
    },
    Trial {
        name: "node-added",
        setting: |stage| {
            stage.node("a", "1", &none())?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.node("b", "1", &none()),
        helps: |stage| stage.node("c", "4", &none()),
        node: "c",
    },
    Trial {
        name: "allocatable-grown",
        setting: |stage| {
            stage.node("a", "1", &none())?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| {
            allocatable(stage, "a", "1500m")?;
            label(stage, "a", "other", "1")
        },
        helps: |stage| allocatable(stage, "a", "4"),
        node: "a",
    },
    Trial {
        name: "pod-deleted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "large", "a", "3", "other")?;
            running(stage, "nothing", "a", "0", "other")?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.delete_now("nothing"),
        helps: |stage| stage.delete_now("large"),
        node: "a",
    },
    Trial {
        name: "pod-scaled-down",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "large", "a", "3", "other")?;
            seen(stage)?;
            stage.pod("p", "2", none())
        },
        refused: "Insufficient cpu",
        useless: |stage| stage.patch("pods", "large", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| resize(stage, "large", "1"),
        node: "a",
    },
    Trial {
        name: "port-freed",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.pod("eighty", "1", json!({"spec": {"nodeName": "a", "containers": port(80)}}))?;
            stage.pod("ninety", "1", json!({"spec": {"nodeName": "a", "containers": port(90)}}))?;
            seen(stage)?;
            stage.pod("p", "1", json!({"spec": {"containers": port(80)}}))
        },
        refused: "node(s) didn't have free ports",
        useless: |stage| stage.delete_now("ninety"),
        helps: |stage| stage.delete_now("eighty"),
        node: "a",
    },
    Trial {
        name: "friend-added",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", HOST))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| running(stage, "web", "a", "1", "web"),
        helps: |stage| running(stage, "db", "a", "1", "db"),
        node: "a",
    },
    Trial {
        name: "friend-labelled",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "web", "a", "1", "web")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", HOST))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| stage.patch("pods", "web", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| stage.patch("pods", "web", "", &json!({"metadata": {"labels": {"app": "db"}}})),
        node: "a",
    },
    Trial {
        name: "enemy-deleted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "web", "a", "1", "web")?;
            running(stage, "db", "a", "1", "db")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAntiAffinity", "web", HOST))
        },
        refused: "node(s) didn't match pod anti-affinity rules",
        useless: |stage| stage.delete_now("db"),
        helps: |stage| stage.delete_now("web"),
        node: "a",
    },
    Trial {
        name: "enemy-of-others-deleted",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            let mut hates = term("podAntiAffinity", "p", HOST);
            hates["spec"]["nodeName"] = "a".into();
            stage.pod("hates", "1", hates)?;
            seen(stage)?;
            stage.pod("p", "1", none())
        },
        refused: "node(s) didn't satisfy existing pods anti-affinity rules",
        useless: |stage| stage.patch("pods", "hates", "", &json!({"metadata": {"labels": {"other": "1"}}})),
        helps: |stage| stage.delete_now("hates"),
        node: "a",
    },
    Trial {
        name: "topology-key-added",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            running(stage, "db", "a", "1", "db")?;
            seen(stage)?;
            stage.pod("p", "1", term("podAffinity", "db", ZONE))
        },
        refused: "node(s) didn't match pod affinity rules",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| label(stage, "a", ZONE, "z"),
        node: "a",
    },
    Trial {
        name: "less-skew",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &taint())?;
            running(stage, "same", "a", "1", "p")?;
            running(stage, "other", "a", "1", "other")?;
            seen(stage)?;
            stage.pod("p", "1", spread(HOST))
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| stage.delete_now("other"),
        helps: |stage| stage.delete_now("same"),
        node: "a",
    },
    Trial {
        name: "domain-added",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            stage.node("b", "4", &taint())?;
            running(stage, "same", "a", "1", "p")?;
            seen(stage)?;
            stage.pod("p", "1", spread(HOST))
        },
        refused: "node(s) didn't match pod topology spread constraints",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| stage.node("c", "4", &none()),
        node: "c",
    },
    Trial {
        name: "domain-labelled",
        setting: |stage| {
            stage.node("a", "4", &none())?;
            seen(stage)?;
            stage.pod("p", "1", spread(ZONE))
        },
        refused: "node(s) didn't match pod topology spread constraints (missing required label)",
        useless: |stage| label(stage, "a", "other", "1"),
        helps: |stage| label(stage, "a", ZONE, "z"),
        node: "a",
    },
];
