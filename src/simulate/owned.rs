//! Objects that controllers own, read once for all workloads.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde_json::Value;

use super::daemon;
use crate::apiserver::{ApiServer, Kind, kinds};
use crate::k8s::Node;

/// A pod that has not finished.
#[derive(Debug)]
pub(super) struct OwnedPod {
    /// The node that the pod is on or, for a daemon pod, has affinity to.
    pub(super) node: Option<String>,
    /// Completion index of a pod of an indexed job.
    pub(super) index: Option<usize>,
}

/// Pods and objects of each controller, by the controller's UID.
#[derive(Debug)]
pub(super) struct Owned {
    active: BTreeMap<String, Vec<OwnedPod>>,
    terminating: BTreeMap<String, Vec<OwnedPod>>,
    /// UIDs of controllers that have replica sets.
    of_replica_sets: BTreeSet<String>,
    /// UIDs of controllers that have jobs.
    of_jobs: BTreeSet<String>,
    /// The nodes, which are read when they are first needed.
    nodes: Option<Vec<Node>>,
}

impl Owned {
    /// Reads all owned objects.
    pub(super) fn new(server: &ApiServer) -> Self {
        let (mut active, mut terminating) = (BTreeMap::new(), BTreeMap::new());
        for object in server.list(&kinds::PODS) {
            let pod = object.value();
            if let Some(owner) = controller(&pod).filter(|_| !is_finished(&pod)) {
                let pods: &mut BTreeMap<String, Vec<OwnedPod>> =
                    if pod.pointer("/metadata/deletionTimestamp").is_none() { &mut active } else { &mut terminating };
                let pod = OwnedPod { node: daemon::node_of(&pod), index: completion_index(&pod) };
                pods.entry(owner.to_owned()).or_default().push(pod);
            }
        }
        let controllers = |kind: &'static Kind| {
            let objects = server.list(kind);
            objects.iter().filter_map(|object| controller(&object.value()).map(str::to_owned)).collect()
        };
        let (of_replica_sets, of_jobs) = (controllers(&kinds::REPLICA_SETS), controllers(&kinds::JOBS));
        Self { active, terminating, of_replica_sets, of_jobs, nodes: None }
    }

    /// Returns the active pods of a controller, which are neither finished nor terminating.
    pub(super) fn active(&self, uid: &str) -> &[OwnedPod] {
        self.active.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Returns the terminating pods of a controller that have not finished.
    pub(super) fn terminating(&self, uid: &str) -> &[OwnedPod] {
        self.terminating.get(uid).map_or(&[], Vec::as_slice)
    }

    /// Whether the controller has a replica set.
    pub(super) fn has_replica_set(&self, uid: &str) -> bool {
        self.of_replica_sets.contains(uid)
    }

    /// Whether the controller has a job.
    pub(super) fn has_job(&self, uid: &str) -> bool {
        self.of_jobs.contains(uid)
    }

    /// Returns the nodes, which are read at the first call.
    pub(super) fn nodes(&mut self, server: &ApiServer) -> &[Node] {
        self.nodes.get_or_insert_with(|| {
            let objects = server.list(&kinds::NODES);
            objects.iter().filter_map(|object| Node::deserialize(object.value()).ok()).collect()
        })
    }
}

/// Returns the UID of the object's controller.
pub(super) fn controller(object: &Value) -> Option<&str> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

fn is_finished(pod: &Value) -> bool {
    matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
}

fn completion_index(pod: &Value) -> Option<usize> {
    let annotation = pod.pointer("/metadata/annotations/batch.kubernetes.io~1job-completion-index")?;
    annotation.as_str()?.parse().ok()
}
