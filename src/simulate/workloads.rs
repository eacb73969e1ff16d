//! Pods of workloads that have none: what the controllers would have made of them.
//!
//! The rules are those of kube-controller-manager: `pkg/controller/{replicaset,deployment,statefulset,daemon,job}`
//! `@v1.36.3`, as far as which pods there are and what scheduling sees of them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::daemon;
use super::hash::template_hash;
use crate::apiserver::{ApiServer, Kind, Object, Status, kinds};

/// The owner of a pod in the making.
struct Owner<'a> {
    kind: &'static Kind,
    name: &'a str,
    uid: &'a str,
    namespace: &'a str,
}

impl Owner<'_> {
    fn of<'a>(kind: &'static Kind, object: &'a Object) -> Owner<'a> {
        Owner { kind, name: object.name(), uid: object.uid(), namespace: object.namespace() }
    }

    /// The one owner reference that a controller sets.
    fn reference(&self) -> Value {
        json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// A pod from the template, without a name.
    fn pod(&self, template: &Value) -> Value {
        let mut metadata = Map::new();
        for key in ["labels", "annotations", "finalizers"] {
            if let Some(value) = template.pointer(&format!("/metadata/{key}")).filter(|value| !value.is_null()) {
                metadata.insert(key.into(), value.clone());
            }
        }
        metadata.insert("namespace".into(), self.namespace.into());
        metadata.insert("generateName".into(), format!("{}-", self.name).into());
        metadata.insert("ownerReferences".into(), json!([self.reference()]));
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        })
    }
}

/// Makes the pods that workloads lack, in the order of kinds and names, and returns how many.
pub(super) fn expand(server: &ApiServer) -> Result<usize, Status> {
    for object in server.list(&kinds::CRON_JOBS) {
        cron_job(server, &object)?;
    }
    for object in server.list(&kinds::DEPLOYMENTS) {
        deployment(server, &object)?;
    }
    let mut made = 0;
    for kind in [&kinds::REPLICA_SETS, &kinds::REPLICATION_CONTROLLERS] {
        for object in server.list(kind) {
            made += replicas(server, kind, &object)?;
        }
    }
    for object in server.list(&kinds::STATEFUL_SETS) {
        made += stateful_set(server, &object)?;
    }
    for object in server.list(&kinds::DAEMON_SETS) {
        made += daemon_set(server, &object)?;
    }
    for object in server.list(&kinds::JOBS) {
        made += job(server, &object)?;
    }
    Ok(made)
}

/// Whether the object's controller is the one with this UID.
fn is_controlled(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|owner| owner["uid"] == *uid && owner["controller"] == true)
}

/// The pods that an owner has and that count: neither ended nor being deleted.
fn active_pods(server: &ApiServer, uid: &str) -> Vec<Value> {
    let counts = |pod: &Value| {
        !matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
            && pod.pointer("/metadata/deletionTimestamp").is_none()
    };
    server
        .list(&kinds::PODS)
        .iter()
        .map(|pod| pod.value())
        .filter(|pod| is_controlled(pod, uid) && counts(pod))
        .collect()
}

fn count(object: &Value, path: &str, default: u64) -> usize {
    let count = object.pointer(path).and_then(Value::as_u64).unwrap_or(default);
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A replica set for a deployment that has none.
fn deployment(server: &ApiServer, object: &Object) -> Result<(), Status> {
    let owner = Owner::of(&kinds::DEPLOYMENTS, object);
    if server.list(&kinds::REPLICA_SETS).iter().any(|set| is_controlled(&set.value(), owner.uid)) {
        return Ok(());
    }
    let value = object.value();
    let mut template = value.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
    let hash = template_hash(&template);
    let mut selector = value.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({}));
    label(&mut template["metadata"]["labels"], "pod-template-hash", &hash);
    label(&mut selector["matchLabels"], "pod-template-hash", &hash);
    server.create(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", owner.name), "namespace": owner.namespace,
            "labels": template["metadata"]["labels"].clone(),
            "ownerReferences": [owner.reference()],
            "annotations": {"deployment.kubernetes.io/revision": "1"},
        },
        "spec": {
            "replicas": count(&value, "/spec/replicas", 1),
            "minReadySeconds": count(&value, "/spec/minReadySeconds", 0),
            "selector": selector, "template": template,
        },
    }))?;
    Ok(())
}

fn label(labels: &mut Value, key: &str, value: &str) {
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[key] = value.into();
}

/// Replica sets and replication controllers.
fn replicas(server: &ApiServer, kind: &'static Kind, object: &Object) -> Result<usize, Status> {
    let value = object.value();
    let missing = count(&value, "/spec/replicas", 1).saturating_sub(active_pods(server, object.uid()).len());
    let Some(template) = value.pointer("/spec/template").filter(|_| missing > 0) else { return Ok(0) };
    let pod = Owner::of(kind, object).pod(template);
    for _ in 0..missing {
        server.create(pod.clone())?;
    }
    Ok(missing)
}

/// Ordinals in order, each with its claims.
fn stateful_set(server: &ApiServer, object: &Object) -> Result<usize, Status> {
    let value = object.value();
    let owner = Owner::of(&kinds::STATEFUL_SETS, object);
    let Some(template) = value.pointer("/spec/template") else { return Ok(0) };
    let first = count(&value, "/spec/ordinals/start", 0);
    let revision = format!("{}-{}", owner.name, template_hash(template));
    let mut made = 0;
    for ordinal in first..first + count(&value, "/spec/replicas", 1) {
        let name = format!("{}-{ordinal}", owner.name);
        if server.get(&kinds::PODS, owner.namespace, &name).is_some() {
            continue;
        }
        let mut pod = owner.pod(template);
        pod["metadata"]["name"] = name.as_str().into();
        let labels = &mut pod["metadata"]["labels"];
        label(labels, "statefulset.kubernetes.io/pod-name", &name);
        label(labels, "apps.kubernetes.io/pod-index", &ordinal.to_string());
        label(labels, "controller-revision-hash", &revision);
        pod["spec"]["hostname"] = name.as_str().into();
        if let Some(service) = value.pointer("/spec/serviceName") {
            pod["spec"]["subdomain"] = service.clone();
        }
        claims(server, &value, &owner, ordinal, &mut pod)?;
        server.create(pod)?;
        made += 1;
    }
    Ok(made)
}

/// The claims of one ordinal, and the volumes for them: first, replacing those of the template with the same name.
fn claims(server: &ApiServer, set: &Value, owner: &Owner<'_>, ordinal: usize, pod: &mut Value) -> Result<(), Status> {
    let templates = set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut volumes = Vec::new();
    for template in &templates {
        let volume = template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let claim = format!("{volume}-{}-{ordinal}", owner.name);
        volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
        if server.get(&kinds::PERSISTENT_VOLUME_CLAIMS, owner.namespace, &claim).is_none() {
            let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
            let selected = set.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
            for (key, value) in selected.into_iter().flatten() {
                label(&mut labels, key, value.as_str().unwrap_or_default());
            }
            server.create(json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": claim, "namespace": owner.namespace, "labels": labels},
                "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
            }))?;
        }
    }
    let named: Vec<Value> = volumes.iter().map(|volume| volume["name"].clone()).collect();
    let others = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    volumes.extend(others.into_iter().filter(|volume| !named.contains(&volume["name"])));
    if !volumes.is_empty() {
        pod["spec"]["volumes"] = volumes.into();
    }
    Ok(())
}

/// One pod for each node that the set wants and that has none of it.
fn daemon_set(server: &ApiServer, object: &Object) -> Result<usize, Status> {
    let value = object.value();
    let owner = Owner::of(&kinds::DAEMON_SETS, object);
    let Some(template) = value.pointer("/spec/template") else { return Ok(0) };
    let taken: Vec<String> = active_pods(server, owner.uid).iter().filter_map(daemon::node_of).collect();
    let hash = template_hash(template);
    let generation = object.value().pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or(1);
    let mut made = 0;
    for node in server.list(&kinds::NODES) {
        if taken.iter().any(|name| name == node.name()) {
            continue;
        }
        let mut pod = owner.pod(template);
        daemon::add_tolerations(&mut pod);
        if !daemon::wants(&pod, &node.value()) {
            continue;
        }
        daemon::pin(&mut pod, node.name());
        let labels = &mut pod["metadata"]["labels"];
        label(labels, "controller-revision-hash", &hash);
        label(labels, "pod-template-generation", &generation.to_string());
        server.create(pod)?;
        made += 1;
    }
    Ok(made)
}

/// As many pods as run at once, by index where the job is indexed.
fn job(server: &ApiServer, object: &Object) -> Result<usize, Status> {
    let value = object.value();
    let owner = Owner::of(&kinds::JOBS, object);
    let Some(template) = value.pointer("/spec/template") else { return Ok(0) };
    if value.pointer("/spec/suspend") == Some(&Value::Bool(true)) {
        return Ok(0);
    }
    let parallelism = count(&value, "/spec/parallelism", 1);
    let succeeded = count(&value, "/status/succeeded", 0);
    let wanted = match value.pointer("/spec/completions").and_then(Value::as_u64) {
        Some(completions) => {
            parallelism.min(usize::try_from(completions).unwrap_or(usize::MAX).saturating_sub(succeeded))
        }
        None => parallelism,
    };
    let active = active_pods(server, owner.uid);
    let missing = wanted.saturating_sub(active.len());
    let indexed = value.pointer("/spec/completionMode").and_then(Value::as_str) == Some("Indexed");
    let index = |pod: &Value| -> Option<usize> {
        let annotation = pod.pointer("/metadata/annotations/batch.kubernetes.io~1job-completion-index")?;
        annotation.as_str()?.parse().ok()
    };
    let taken: Vec<usize> = active.iter().filter_map(index).collect();
    let mut indexes = (0_usize..).filter(|index| !taken.contains(index));
    for _ in 0..missing {
        let mut pod = owner.pod(template);
        pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
        if indexed {
            let index = indexes.next().expect("there is always a next index").to_string();
            let prefix: String = format!("{}-{index}", owner.name).chars().take(57).collect();
            label(&mut pod["metadata"]["labels"], "batch.kubernetes.io/job-completion-index", &index);
            label(&mut pod["metadata"]["annotations"], "batch.kubernetes.io/job-completion-index", &index);
            pod["metadata"]["generateName"] = format!("{prefix}-").into();
            pod["spec"]["hostname"] = format!("{}-{index}", owner.name).into();
        }
        server.create(pod)?;
    }
    Ok(missing)
}

/// One job for a cron job that has none: the next one due.
fn cron_job(server: &ApiServer, object: &Object) -> Result<(), Status> {
    let value = object.value();
    let owner = Owner::of(&kinds::CRON_JOBS, object);
    let suspended = value.pointer("/spec/suspend") == Some(&Value::Bool(true));
    if suspended || server.list(&kinds::JOBS).iter().any(|job| is_controlled(&job.value(), owner.uid)) {
        return Ok(());
    }
    let template = value.pointer("/spec/jobTemplate").cloned().unwrap_or_else(|| json!({}));
    let mut metadata: BTreeMap<&str, Value> = BTreeMap::new();
    for key in ["labels", "annotations"] {
        if let Some(value) = template.pointer(&format!("/metadata/{key}")) {
            metadata.insert(key, value.clone());
        }
    }
    metadata.insert("namespace", owner.namespace.into());
    metadata.insert("name", format!("{}-{}", owner.name, super::EPOCH_SECONDS / 60).into());
    metadata.insert("ownerReferences", json!([owner.reference()]));
    server.create(json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
        "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
    }))?;
    Ok(())
}
