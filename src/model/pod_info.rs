//! A pod with what is derived from it once and used in every attempt.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Affinity;

use super::{HostPort, LabelClass, LabelClasses, Resources};
use crate::k8s::{Pod, VolumeSource, requests};

/// CPU and memory that count for scoring: containers that request none are assumed to use some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZeroRequest {
    /// Thousandths of a core.
    pub milli_cpu: i64,
    /// Bytes.
    pub memory: i64,
}

impl NonZeroRequest {
    /// Adds another request.
    pub fn add(&mut self, other: Self) {
        self.milli_cpu = self.milli_cpu.wrapping_add(other.milli_cpu);
        self.memory = self.memory.wrapping_add(other.memory);
    }

    /// Takes another request away.
    pub fn sub(&mut self, other: Self) {
        self.milli_cpu = self.milli_cpu.wrapping_sub(other.milli_cpu);
        self.memory = self.memory.wrapping_sub(other.memory);
    }
}

/// A pod with what is derived from it once and used in every attempt; shared by queue, cache and snapshots.
/// Follows `pkg/scheduler/framework/types.go#PodInfo @v1.36.3`.
#[derive(Debug)]
pub struct PodInfo {
    pod: Arc<Pod>,
    key: Arc<str>,
    requests: Resources,
    /// Only if it differs from `requests`, as it does while a pod is being resized.
    spec_requests: Option<Box<Resources>>,
    non_zero: NonZeroRequest,
    host_ports: Box<[HostPort]>,
    claims: Box<[Arc<str>]>,
    class: Arc<LabelClass>,
}

impl PodInfo {
    /// Derives everything from `pod`.
    pub fn new(pod: Arc<Pod>, classes: &LabelClasses) -> Self {
        let requests = Resources::from_list(&requests::node_requests(&pod));
        let spec_requests = Resources::from_list(&requests::spec_requests(&pod));
        let host_ports = crate::k8s::host_ports(&pod).filter_map(HostPort::of).collect();
        let claims = pod
            .spec
            .volumes
            .iter()
            .filter_map(|volume| match &volume.source {
                VolumeSource::PersistentVolumeClaim { claim_name, .. } => {
                    Some(Arc::from(format!("{}/{claim_name}", pod.namespace())))
                }
                _ => None,
            })
            .collect();
        Self {
            key: Arc::from(pod.key()),
            spec_requests: (spec_requests != requests).then(|| Box::new(spec_requests)),
            requests,
            non_zero: NonZeroRequest::default(),
            host_ports,
            claims,
            class: classes.intern(pod.namespace(), pod.labels()),
            pod,
        }
    }

    /// The pod.
    pub fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    /// `namespace/name`.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// The pod's name.
    pub fn name(&self) -> &str {
        self.pod.name()
    }

    /// The pod's namespace.
    pub fn namespace(&self) -> &str {
        self.pod.namespace()
    }

    /// The pod's UID.
    pub fn uid(&self) -> &str {
        self.pod.uid()
    }

    /// The pod's priority, 0 when it has none.
    pub fn priority(&self) -> i32 {
        self.pod.priority()
    }

    /// What the pod takes of the node it is on: while it is being resized, the larger of what it asks for and what it has.
    pub fn requests(&self) -> &Resources {
        &self.requests
    }

    /// What the pod asks for in its specification: what a node must have for it.
    pub fn spec_requests(&self) -> &Resources {
        self.spec_requests.as_deref().unwrap_or(&self.requests)
    }

    /// CPU and memory that it counts for on its node when nodes are scored.
    pub fn non_zero_request(&self) -> NonZeroRequest {
        self.non_zero
    }

    /// The ports it takes on its node.
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// The claims that its volumes name, as `namespace/claim`; those made for ephemeral volumes are not among them.
    pub fn claims(&self) -> &[Arc<str>] {
        &self.claims
    }

    /// The pod's labels and namespace, interned.
    pub fn class(&self) -> &Arc<LabelClass> {
        &self.class
    }

    /// The pod's affinity.
    pub fn affinity(&self) -> Option<&Affinity> {
        self.pod.spec.affinity.as_deref()
    }

    /// Whether it has pod affinity or anti-affinity, be it empty.
    pub fn has_affinity(&self) -> bool {
        self.affinity().is_some_and(|affinity| affinity.pod_affinity.is_some() || affinity.pod_anti_affinity.is_some())
    }

    /// Whether it has required anti-affinity.
    pub fn has_required_anti_affinity(&self) -> bool {
        self.affinity().and_then(|affinity| affinity.pod_anti_affinity.as_ref()).is_some_and(|anti| {
            anti.required_during_scheduling_ignored_during_execution.as_ref().is_some_and(|terms| !terms.is_empty())
        })
    }
}
