//! Creates the missing pods of workloads, as their controllers would.
//!
//! The rules are those of kube-controller-manager: `pkg/controller/{replicaset,deployment,statefulset,daemon,job}`
//! in Kubernetes 1.36.3, as far as they affect which pods exist and how they are scheduled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::MAX_MADE;
use super::daemon;
use super::hash::template_hash;
use super::owned::Owned;
use crate::apiserver::{ApiServer, Kind, Object, kinds};

/// Error while the pods of a workload are created.
#[derive(Debug)]
pub(super) struct ExpandError {
    /// The workload in the input, such as the deployment of a replica set or the cron job of a job.
    pub(super) owner: Arc<Object>,
    /// Why the pods cannot be created.
    pub(super) message: String,
}

/// The owner of a new pod.
struct Owner<'a> {
    kind: &'static Kind,
    name: &'a str,
    uid: &'a str,
    namespace: &'a str,
}

impl Owner<'_> {
    fn of(object: &Object) -> Owner<'_> {
        Owner { kind: object.kind(), name: object.name(), uid: object.uid(), namespace: object.namespace() }
    }

    /// Returns the controller's owner reference.
    fn reference(&self) -> Value {
        json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.kind, "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        })
    }

    /// Creates a pod from the template, without a name.
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

/// Creates the missing pods of workloads, in the order of kinds and names. Returns their number.
pub(super) fn expand(server: &ApiServer) -> Result<usize, ExpandError> {
    let steps: [(&'static Kind, Step<'_>); 7] = [
        (&kinds::CRON_JOBS, Expansion::cron_job),
        (&kinds::DEPLOYMENTS, Expansion::deployment),
        (&kinds::REPLICA_SETS, Expansion::replicas),
        (&kinds::REPLICATION_CONTROLLERS, Expansion::replicas),
        (&kinds::STATEFUL_SETS, Expansion::stateful_set),
        (&kinds::DAEMON_SETS, Expansion::daemon_set),
        (&kinds::JOBS, Expansion::job),
    ];
    // Without workloads, the owned objects need not be read.
    if steps.iter().all(|(kind, _)| server.list(kind).is_empty()) {
        return Ok(0);
    }
    let mut expansion = Expansion { server, owned: Owned::new(server), made: 0, roots: BTreeMap::new() };
    for (kind, step) in steps {
        for object in server.list(kind) {
            let value = object.value();
            // A workload that is being deleted gets no new pods.
            if !value["metadata"]["deletionTimestamp"].is_null() {
                continue;
            }
            step(&mut expansion, &object, &value).map_err(|message| ExpandError {
                owner: expansion.roots.get(object.uid()).unwrap_or(&object).clone(),
                message,
            })?;
        }
    }
    Ok(expansion.made)
}

/// Creates the missing objects of one workload.
type Step<'s> = fn(&mut Expansion<'s>, &Arc<Object>, &Value) -> Result<(), String>;

/// State of the creation of pods.
struct Expansion<'a> {
    server: &'a ApiServer,
    owned: Owned,
    /// Number of pods created so far.
    made: usize,
    /// The workload of each created replica set and job, by the UID of the created object.
    roots: BTreeMap<String, Arc<Object>>,
}

/// Returns the whole number at `path`, or `default` if it is absent.
fn count(object: &Value, path: &str, default: u64) -> Result<usize, String> {
    let count = match object.pointer(path) {
        None | Some(Value::Null) => default,
        Some(value) => value.as_u64().ok_or_else(|| {
            let field = path.trim_start_matches('/').replace('/', ".");
            format!("{field}: Invalid value: {value}: must be a whole number, 0 or greater")
        })?,
    };
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn label(labels: &mut Value, key: &str, value: &str) {
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[key] = value.into();
}

impl Expansion<'_> {
    fn create(&self, value: Value) -> Result<Arc<Object>, String> {
        self.server.create(value).map_err(|status| status.message)
    }

    fn create_pod(&mut self, pod: Value) -> Result<(), String> {
        self.create(pod)?;
        self.made += 1;
        Ok(())
    }

    /// Fails if `more` pods would exceed the maximum number of created pods.
    fn limit(&self, field: &str, more: usize) -> Result<(), String> {
        if more <= MAX_MADE - self.made {
            return Ok(());
        }
        Err(format!("{field}: {more} more pods would exceed the limit of {MAX_MADE} pods"))
    }

    /// Creates a replica set for a deployment that has none.
    fn deployment(&mut self, object: &Arc<Object>, value: &Value) -> Result<(), String> {
        let owner = Owner::of(object);
        if self.owned.has_replica_set(owner.uid) || value.pointer("/spec/paused") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        let mut template = value.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
        let hash = template_hash(&template);
        let mut selector = value.pointer("/spec/selector").cloned().unwrap_or_else(|| json!({}));
        label(&mut template["metadata"]["labels"], "pod-template-hash", &hash);
        label(&mut selector["matchLabels"], "pod-template-hash", &hash);
        let set = self.create(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{hash}", owner.name), "namespace": owner.namespace,
                "labels": template["metadata"]["labels"].clone(),
                "ownerReferences": [owner.reference()],
                "annotations": {"deployment.kubernetes.io/revision": "1"},
            },
            "spec": {
                "replicas": count(value, "/spec/replicas", 1)?,
                "minReadySeconds": count(value, "/spec/minReadySeconds", 0)?,
                "selector": selector, "template": template,
            },
        }))?;
        self.roots.insert(set.uid().to_owned(), object.clone());
        Ok(())
    }

    /// Creates the missing pods of a replica set or replication controller.
    fn replicas(&mut self, object: &Arc<Object>, value: &Value) -> Result<(), String> {
        let missing = count(value, "/spec/replicas", 1)?.saturating_sub(self.owned.active(object.uid()).len());
        let Some(template) = value.pointer("/spec/template").filter(|_| missing > 0) else { return Ok(()) };
        self.limit("spec.replicas", missing)?;
        let pod = Owner::of(object).pod(template);
        for _ in 0..missing {
            self.create_pod(pod.clone())?;
        }
        Ok(())
    }

    /// Creates the missing pods of a stateful set, in the order of ordinals, with their claims.
    fn stateful_set(&mut self, object: &Arc<Object>, value: &Value) -> Result<(), String> {
        let owner = Owner::of(object);
        let Some(template) = value.pointer("/spec/template") else { return Ok(()) };
        let (first, replicas) = (count(value, "/spec/ordinals/start", 0)?, count(value, "/spec/replicas", 1)?);
        self.limit("spec.replicas", replicas.saturating_sub(self.owned.active(owner.uid).len()))?;
        let revision = format!("{}-{}", owner.name, template_hash(template));
        for ordinal in first..first.saturating_add(replicas) {
            let name = format!("{}-{ordinal}", owner.name);
            if self.server.get(&kinds::PODS, owner.namespace, &name).is_some() {
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
            self.claims(value, &owner, ordinal, &mut pod)?;
            self.create_pod(pod)?;
        }
        Ok(())
    }

    /// Creates the missing claims of one ordinal and adds their volumes to the pod. These volumes come first, and replace the
    /// template's volumes with the same names.
    fn claims(&self, set: &Value, owner: &Owner<'_>, ordinal: usize, pod: &mut Value) -> Result<(), String> {
        let templates = set.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
        let mut volumes = Vec::new();
        for template in templates.into_iter().flatten() {
            let volume = template.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            let claim = format!("{volume}-{}-{ordinal}", owner.name);
            volumes.push(json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}));
            if self.server.get(&kinds::PERSISTENT_VOLUME_CLAIMS, owner.namespace, &claim).is_none() {
                let mut labels = template.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
                let selected = set.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
                for (key, value) in selected.into_iter().flatten() {
                    label(&mut labels, key, value.as_str().unwrap_or_default());
                }
                self.create(json!({
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

    /// Creates one pod for each matching node without a pod of the set.
    fn daemon_set(&mut self, object: &Arc<Object>, value: &Value) -> Result<(), String> {
        let owner = Owner::of(object);
        let Some(template) = value.pointer("/spec/template") else { return Ok(()) };
        // A new pod for a node is created only after the old one has been deleted.
        let taking = self.owned.active(owner.uid).iter().chain(self.owned.terminating(owner.uid));
        let taken: BTreeSet<String> = taking.filter_map(|pod| pod.node.clone()).collect();
        let hash = template_hash(template);
        let generation = value.pointer("/metadata/generation").and_then(Value::as_u64).unwrap_or(1);
        let mut template = owner.pod(template);
        daemon::add_tolerations(&mut template);
        let labels = &mut template["metadata"]["labels"];
        label(labels, "controller-revision-hash", &hash);
        label(labels, "pod-template-generation", &generation.to_string());
        let wanted = daemon::wanted_nodes(&template, self.owned.nodes(self.server));
        for node in wanted.into_iter().filter(|node| !taken.contains(node)) {
            let mut pod = template.clone();
            daemon::pin(&mut pod, &node);
            self.limit("spec", 1)?;
            self.create_pod(pod)?;
        }
        Ok(())
    }

    /// Creates the missing pods of a job, up to its parallelism, with indexes if the job is indexed.
    fn job(&mut self, object: &Arc<Object>, value: &Value) -> Result<(), String> {
        let owner = Owner::of(object);
        let Some(template) = value.pointer("/spec/template") else { return Ok(()) };
        if value.pointer("/spec/suspend") == Some(&Value::Bool(true)) || is_finished(value) {
            return Ok(());
        }
        let active = self.owned.active(owner.uid);
        let parallelism = count(value, "/spec/parallelism", 1)?;
        let succeeded = count(value, "/status/succeeded", 0)?;
        let wanted = match value.pointer("/spec/completions").and_then(Value::as_u64) {
            Some(completions) => {
                parallelism.min(usize::try_from(completions).unwrap_or(usize::MAX).saturating_sub(succeeded))
            }
            // Without a number of completions, no new pod is needed after the first success.
            None if succeeded > 0 => active.len(),
            None => parallelism,
        };
        // Whether a terminating pod is replaced only after it has finished.
        let patient = value.pointer("/spec/podReplacementPolicy").and_then(Value::as_str) == Some("Failed");
        let terminating = if patient { self.owned.terminating(owner.uid) } else { &[] };
        let missing = wanted.saturating_sub(active.len() + terminating.len());
        let indexed = value.pointer("/spec/completionMode").and_then(Value::as_str) == Some("Indexed");
        let taken: BTreeSet<usize> = active.iter().chain(terminating).filter_map(|pod| pod.index).collect();
        self.limit("spec.parallelism", missing)?;
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
            self.create_pod(pod)?;
        }
        Ok(())
    }

    /// Creates one job, the next one due, for a cron job that has none.
    fn cron_job(&mut self, object: &Arc<Object>, value: &Value) -> Result<(), String> {
        let owner = Owner::of(object);
        if value.pointer("/spec/suspend") == Some(&Value::Bool(true)) || self.owned.has_job(owner.uid) {
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
        let job = self.create(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
            "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})),
        }))?;
        self.roots.insert(job.uid().to_owned(), object.clone());
        Ok(())
    }
}

/// Whether a job has completed or failed.
/// Follows `pkg/controller/job/util/utils.go#IsJobFinished @v1.36.3`.
fn is_finished(job: &Value) -> bool {
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        matches!(condition["type"].as_str(), Some("Complete" | "Failed")) && condition["status"] == "True"
    })
}
