//! Makes sequences out of what happened: every change of a namespace and of the nodes that was not the scheduler's.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::change::{Change, Verb};
use crate::support::cluster::{ControlPlane, SCHEDULER};
use crate::support::stage::FENCE;

/// Where changes are looked for.
const RESOURCES: [&str; 6] =
    ["priorityclasses", "nodes", "replicasets", "statefulsets", "pods", "poddisruptionbudgets"];

/// Metadata that the API server writes.
const SERVERS: [&str; 9] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "generateName",
    "managedFields",
    "namespace",
    "resourceVersion",
    "uid",
];

/// All that has changed since a version, in order.
pub(super) fn changes(plane: &ControlPlane, namespace: &str, since: u64) -> Result<Vec<Change>, String> {
    let mut seen: Vec<(u64, &str, Value)> = Vec::new();
    for resource in RESOURCES {
        let path = match resource {
            "nodes" => "/api/v1/nodes".to_owned(),
            "priorityclasses" => format!("/apis/scheduling.k8s.io/v1/{resource}"),
            "poddisruptionbudgets" => format!("/apis/policy/v1/namespaces/{namespace}/{resource}"),
            "replicasets" | "statefulsets" => format!("/apis/apps/v1/namespaces/{namespace}/{resource}"),
            _ => format!("/api/v1/namespaces/{namespace}/{resource}"),
        };
        // The server ends the watch after a second: by then it has sent all that was.
        let text = plane.get(&format!("{path}?watch=1&resourceVersion={since}&timeoutSeconds=1"))?;
        for line in text.lines() {
            let event: Value = serde_json::from_str(line).map_err(|error| format!("{path}: {error}: {line}"))?;
            let version = event.pointer("/object/metadata/resourceVersion").and_then(Value::as_str);
            let version = version.and_then(|version| version.parse().ok());
            seen.push((version.ok_or_else(|| format!("{path}: {line}"))?, resource, event));
        }
    }
    seen.sort_by_key(|(version, ..)| *version);
    let preempted = preempted(plane)?;
    let mut recorder = Recorder { objects: BTreeMap::new(), preempted, changes: Vec::new() };
    for (_, resource, event) in seen {
        recorder.record(resource, &event);
    }
    Ok(recorder.changes)
}

/// UIDs of the pods that the scheduler has deleted.
fn preempted(plane: &ControlPlane) -> Result<BTreeSet<String>, String> {
    let mut pods = BTreeSet::new();
    for entry in plane.audited(SCHEDULER)? {
        if entry["verb"] == "delete" && entry["objectRef"]["resource"] == "pods" {
            pods.extend(entry["objectRef"]["name"].as_str().map(str::to_owned));
        }
    }
    Ok(pods)
}

/// Follows objects from version to version.
struct Recorder {
    /// By resource and name: the version before.
    objects: BTreeMap<(&'static str, String), Value>,
    /// Names of the pods that the scheduler deletes by itself.
    preempted: BTreeSet<String>,
    changes: Vec<Change>,
}

impl Recorder {
    fn record(&mut self, resource: &'static str, event: &Value) {
        let object = &event["object"];
        if object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(FENCE)) {
            return;
        }
        // Of owners schedulers read the selectors alone.
        if matches!(resource, "replicasets" | "statefulsets") && event["type"] != "ADDED" {
            return;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let before = self.objects.insert((resource, name.clone()), object.clone());
        let mut push = |verb, resource: &str, body| {
            self.changes.push(Change { verb, resource: resource.to_owned(), name: name.clone(), body });
        };
        if event["type"] == "DELETED" {
            self.objects.remove(&(resource, name.clone()));
            let verb = if resource == "pods" { Verb::End } else { Verb::Delete };
            return push(verb, resource, Value::Null);
        }
        let Some(before) = before else {
            let object = without_the_schedulers(resource, object, true);
            push(Verb::Create, resource, object.clone());
            // Nodes alone may be made with their status.
            if resource != "nodes" && object["status"].as_object().is_some_and(|status| !status.is_empty()) {
                let body = json!({"status": object["status"]});
                push(Verb::Patch, &format!("{resource}/status"), body);
            }
            return;
        };
        let is_new = |field: &str| object["metadata"][field].is_string() && !before["metadata"][field].is_string();
        if is_new("deletionTimestamp") && !self.preempted.contains(&name) {
            return push(Verb::Delete, resource, Value::Null);
        }
        let [old, new] = [&before, object].map(|object| without_the_schedulers(resource, object, false));
        let difference = merge_patch(&old, &new);
        let Value::Object(mut difference) = difference else { return };
        if let Some(status) = difference.remove("status") {
            push(Verb::Patch, &format!("{resource}/status"), json!({"status": status}));
        }
        if !difference.is_empty() {
            push(Verb::Patch, resource, difference.into());
        }
    }
}

/// The object without what the API server adds and the scheduler writes.
fn without_the_schedulers(resource: &str, object: &Value, is_created: bool) -> Value {
    let mut object = object.clone();
    let remove = |value: &mut Value, fields: &[&str]| {
        if let Value::Object(members) = value {
            members.retain(|key, _| !fields.contains(&&**key));
        }
    };
    remove(&mut object["metadata"], &SERVERS);
    match resource {
        "pods" => {
            // Who comes with a node has it from its owner.
            let placed = is_created && object["spec"]["nodeName"].is_string();
            let computed = ["priority", "preemptionPolicy", "nodeName"];
            remove(&mut object["spec"], if placed { &computed[..2] } else { &computed });
            remove(&mut object["status"], &["conditions", "nominatedNodeName", "observedGeneration", "qosClass"]);
            if object["status"]["phase"] == "Pending" {
                remove(&mut object["status"], &["phase"]);
            }
        }
        "replicasets" | "statefulsets" => remove(&mut object, &["status"]),
        _ => {}
    }
    object
}

/// The merge patch that makes `new` of `old`; null if they are alike. Lists are replaced.
fn merge_patch(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return if old == new { Value::Null } else { new.clone() };
    };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) => drop(patch.insert(key.clone(), merge_patch(before, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    if patch.is_empty() { Value::Null } else { patch.into() }
}
