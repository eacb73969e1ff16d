//! Changes that others make to the cluster, directly on the server: users, controllers, kubelets and another scheduler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube_scheduler::apiserver::{ApiServer, DeleteOptions, Object, kinds};
use kube_scheduler::clock::Rng;
use serde_json::{Value, json};

const NAMESPACE: &str = "default";

/// The schedulerNames that are ours.
pub(super) const PROFILES: [&str; 2] = ["default-scheduler", "second"];

/// A node on which every pod fits.
pub(super) const HAVEN: &str = "haven";

/// The cluster, from everybody's side but the scheduler's.
pub(super) struct Cluster {
    pub(super) server: ApiServer,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of objects created so far.
    made: usize,
    /// The node that each pod was seen with, by UID.
    assigned: BTreeMap<String, String>,
    /// Up to where the history of pods has been read.
    read: u64,
    /// Violations of the invariants so far.
    wrong: Vec<String>,
}

impl Cluster {
    pub(super) fn new(server: ApiServer) -> Self {
        Self { server, state: Mutex::default() }
    }

    fn next(&self) -> usize {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.made += 1;
        state.made
    }

    /// All pods that can be read.
    pub(super) fn pods(&self) -> Vec<Value> {
        let readable = |object: &Arc<Object>| !object.uid().is_empty();
        self.server.list(&kinds::PODS).iter().filter(|object| readable(object)).map(|object| object.value()).collect()
    }

    fn nodes(&self) -> Vec<String> {
        let nodes = self.server.list(&kinds::NODES);
        nodes.iter().filter(|node| !node.uid().is_empty()).map(|node| node.name().to_owned()).collect()
    }

    /// The name of a pod, at random.
    pub(super) fn any_pod(&self, rng: &mut Rng) -> Option<String> {
        let pods = self.pods();
        (!pods.is_empty()).then(|| text(&pods[rng.index(pods.len())], "/metadata/name").to_owned())
    }

    pub(super) fn any_node(&self, rng: &mut Rng) -> Option<String> {
        let nodes = self.nodes();
        (!nodes.is_empty()).then(|| nodes[rng.index(nodes.len())].clone())
    }

    fn pod(&self, name: &str) -> Option<Value> {
        let object = self.server.get(&kinds::PODS, NAMESPACE, name)?;
        (!object.uid().is_empty()).then(|| object.value())
    }

    pub(super) fn create_pod(&self, rng: &mut Rng) -> bool {
        if self.server.list(&kinds::PODS).len() >= 20 {
            return false;
        }
        self.server.create(new_pod(&format!("p{}", self.next()), rng)).is_ok()
    }

    /// A pod without anything special.
    pub(super) fn create_plain_pod(&self, name: &str) {
        self.create_pod_with(name, "1");
    }

    /// A pod that fits nowhere.
    pub(super) fn create_large_pod(&self, name: &str) {
        self.create_pod_with(name, "1000000");
    }

    fn create_pod_with(&self, name: &str, cpu: &str) {
        let created = self.server.create(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"containers": [{"name": "c", "image": "image", "resources": {"requests": {"cpu": cpu}}}]},
        }));
        assert!(created.is_ok(), "{created:?}");
    }

    pub(super) fn create_node(&self, rng: &mut Rng) -> bool {
        if self.server.list(&kinds::NODES).len() >= 6 {
            return false;
        }
        let cpu = ["1", "2", "4"][rng.index(3)];
        let node = new_node(&format!("n{}", self.next()), cpu);
        self.server.create(node).is_ok()
    }

    pub(super) fn create_haven(&self) {
        let mut node = new_node(HAVEN, "1000");
        node["status"]["allocatable"]["pods"] = json!("1000");
        let _ = self.server.create(node);
    }

    pub(super) fn delete_pod(&self, name: &str) -> bool {
        self.server.delete(&kinds::PODS, NAMESPACE, name, &now()).is_ok()
    }

    pub(super) fn delete_node(&self, name: &str) -> bool {
        self.server.delete(&kinds::NODES, "", name, &now()).is_ok()
    }

    /// Begins the deletion of a pod that something keeps.
    pub(super) fn terminate_pod(&self, name: &str) -> bool {
        let Some(pod) = self.pod(name) else { return false };
        if pod.pointer("/metadata/deletionTimestamp").is_some() {
            return false;
        }
        let keep = json!({"metadata": {"finalizers": ["example.com/keep"]}});
        self.server.patch(&kinds::PODS, NAMESPACE, name, keep).is_ok() && self.delete_pod(name)
    }

    /// Another pod of the same name.
    pub(super) fn replace_pod(&self, name: &str, rng: &mut Rng) -> bool {
        let Some(pod) = self.pod(name) else { return false };
        if pod.pointer("/metadata/finalizers").is_some() {
            return false;
        }
        self.delete_pod(name) && self.server.create(new_pod(name, rng)).is_ok()
    }

    pub(super) fn finish_pod(&self, name: &str, rng: &mut Rng) -> bool {
        let phase = if rng.chance(1, 2) { "Succeeded" } else { "Failed" };
        self.pod(name).is_some_and(|pod| text(&pod, "/status/phase") == "Pending")
            && self.server.patch_status(&kinds::PODS, NAMESPACE, name, json!({"status": {"phase": phase}})).is_ok()
    }

    /// Another scheduler binds the pod.
    pub(super) fn bind_pod(&self, name: &str, rng: &mut Rng) -> bool {
        let node = self.any_node(rng).unwrap_or_else(|| "unheard-of".to_owned());
        let target = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"kind": "Node", "name": node},
        });
        self.server.bind(NAMESPACE, &target).is_ok()
    }

    pub(super) fn bind_any_pod(&self, rng: &mut Rng) -> bool {
        let pods = self.pods();
        pods.iter().any(|pod| self.bind_pod(text(pod, "/metadata/name"), rng))
    }

    pub(super) fn update_pod(&self, name: &str, rng: &mut Rng) -> bool {
        let Some(pod) = self.pod(name) else { return false };
        let patch = |patch: Value| self.server.patch(&kinds::PODS, NAMESPACE, name, patch).is_ok();
        let status = |patch: Value| self.server.patch_status(&kinds::PODS, NAMESPACE, name, patch).is_ok();
        let count = self.next().to_string();
        match rng.below(7) {
            0 => patch(json!({"metadata": {"labels": {"count": count}}})),
            1 => patch(json!({"metadata": {"annotations": {"count": count}}})),
            2 => patch(json!({"spec": {"schedulingGates": null}})),
            3 => patch(json!({"metadata": {"finalizers": null}})),
            4 => status(json!({"status": {"nominatedNodeName": self.any_node(rng)}})),
            5 => status(json!({"status": {"nominatedNodeName": null}})),
            _ => {
                let mut tolerations = pod.pointer("/spec/tolerations").cloned().unwrap_or_else(|| json!([]));
                let toleration = json!({"key": format!("k{count}"), "operator": "Exists", "effect": "NoSchedule"});
                tolerations.as_array_mut().expect("a list").push(toleration);
                patch(json!({"spec": {"tolerations": tolerations}}))
            }
        }
    }

    pub(super) fn update_node(&self, name: &str, rng: &mut Rng) -> bool {
        let patch = |patch: Value| self.server.patch(&kinds::NODES, "", name, patch).is_ok();
        let status = |patch: Value| self.server.patch_status(&kinds::NODES, "", name, patch).is_ok();
        let count = self.next().to_string();
        match rng.below(5) {
            0 => patch(json!({"spec": {"unschedulable": true}})),
            1 => patch(json!({"spec": {"unschedulable": null}})),
            2 => patch(json!({"metadata": {"labels": {"count": count, "topology.kubernetes.io/zone": count}}})),
            3 => patch(json!({"spec": {"taints": [{"key": "t", "value": count, "effect": "NoSchedule"}]}})),
            _ => status(json!({"status": {"allocatable": {"cpu": rng.below(4).to_string()}}})),
        }
    }

    /// An object that no client can read: a new one, or in place of one that was readable.
    pub(super) fn garbage(&self, rng: &mut Rng) -> bool {
        let of_pods = rng.chance(2, 3);
        let known = if of_pods { self.any_pod(rng) } else { self.any_node(rng) };
        let name = match known {
            Some(known) if rng.chance(1, 3) => known,
            _ => format!("garbage-{}", self.next()),
        };
        let version = (self.server.version() + 1).to_string();
        let faults = self.server.faults();
        let metadata = json!({"name": name, "namespace": NAMESPACE, "resourceVersion": version});
        if of_pods {
            let raw = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": []});
            faults.inject_raw(&kinds::PODS, NAMESPACE, &name, raw.to_string());
        } else {
            let raw = json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": [7]});
            faults.inject_raw(&kinds::NODES, "", &name, raw.to_string());
        }
        true
    }

    /// Makes the cluster one in which every pod that is left can be placed.
    pub(super) fn heal(&self) {
        for kind in [&kinds::PODS, &kinds::NODES] {
            for object in self.server.list(kind).iter().filter(|object| object.uid().is_empty()) {
                let _ = self.server.delete(kind, object.namespace(), object.name(), &now());
            }
        }
        self.create_haven();
        for pod in self.pods() {
            let patch = json!({"metadata": {"labels": {"healed": "true"}}, "spec": {"schedulingGates": null}});
            let _ = self.server.patch(&kinds::PODS, NAMESPACE, text(&pod, "/metadata/name"), patch);
        }
    }

    /// Reads what has been written to pods since the last call. To be called before anything of it is forgotten.
    pub(super) fn read_history(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(changes) = self.server.faults().history(&kinds::PODS, state.read) else {
            state.wrong.push("the history of pods was forgotten before it was read".to_owned());
            return;
        };
        for object in changes {
            state.read = object.version();
            let node = object.field("spec.nodeName").unwrap_or_default().to_owned();
            if object.uid().is_empty() {
                continue;
            }
            let before = state.assigned.get(object.uid()).cloned().unwrap_or_default();
            if before != node {
                if !before.is_empty() {
                    state.wrong.push(format!("pod {} moved from {before:?} to {node:?}", object.name()));
                }
                state.assigned.insert(object.uid().to_owned(), node);
            }
        }
    }

    /// After a compaction nothing older can be read.
    pub(super) fn compact(&self, of_pods: bool) {
        self.read_history();
        if of_pods {
            self.server.faults().compact(&kinds::PODS);
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.read = self.server.version();
        } else {
            self.server.faults().compact(&kinds::NODES);
        }
    }

    /// Takes the violations found so far.
    pub(super) fn wrong(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).wrong)
    }

    /// Pods of ours that could be bound and are not.
    pub(super) fn unbound(&self) -> Vec<String> {
        let waits = |pod: &Value| {
            PROFILES.contains(&text(pod, "/spec/schedulerName"))
                && pod.pointer("/metadata/deletionTimestamp").is_none()
                && text(pod, "/status/phase") == "Pending"
                && text(pod, "/spec/nodeName").is_empty()
        };
        self.pods().iter().filter(|pod| waits(pod)).map(|pod| text(pod, "/metadata/name").to_owned()).collect()
    }
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn now() -> DeleteOptions {
    DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() }
}

fn new_node(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    })
}

/// A pod of any kind that fits on [`HAVEN`].
fn new_pod(name: &str, rng: &mut Rng) -> Value {
    let profile = if rng.chance(1, 12) { "another" } else { PROFILES[rng.index(PROFILES.len())] };
    let cpu = ["100m", "500m", "1", "3"][rng.index(4)];
    let app = ["a", "b"][rng.index(2)];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
        "spec": {
            "schedulerName": profile, "priority": 0,
            "containers": [{"name": "c", "image": "image", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
        },
    });
    let selector = json!({"matchLabels": {"app": app}});
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector});
    match rng.below(8) {
        0 => pod["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]),
        1 => pod["metadata"]["finalizers"] = json!(["example.com/keep"]),
        2 => {
            pod["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!([{"weight": 10, "podAffinityTerm": term}]);
        }
        3 => {
            pod["spec"]["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": selector,
            }]);
        }
        _ => {}
    }
    pod
}
