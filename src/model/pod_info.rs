//! A pod with what is derived from it once and used in every attempt.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Affinity;

use super::{AffinityTerms, HostPort, LabelClass, LabelClasses, Resources};
use crate::k8s::requests::{are_pod_level_requests_set, non_missing_requests};
use crate::k8s::{Pod, RequestOptions, VolumeSource, pod_requests};

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

/// The feature gates that decide what of a pod's resources counts. The default has them as they are by default.
#[expect(clippy::struct_excessive_bools, reason = "independent switches, one a feature gate")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceGates {
    /// `InPlacePodVerticalScaling`: what the status of containers says is allocated and in effect counts.
    pub resize: bool,
    /// `PodLevelResources`: what the pod asks for as a whole counts.
    pub pod_level: bool,
    /// `InPlacePodLevelResourcesVerticalScaling`: so does what its status says of it as a whole.
    pub pod_level_resize: bool,
    /// `DRANodeAllocatableResources`: so does what its claims take of the node.
    pub claims: bool,
}

impl Default for ResourceGates {
    fn default() -> Self {
        Self { resize: true, pod_level: true, pod_level_resize: true, claims: false }
    }
}

/// A pod with what is derived from it once and used in every attempt; shared by queue, cache and snapshots.
/// Follows `pkg/scheduler/framework/types.go#PodInfo @v1.36.3`.
#[derive(Clone, Debug)]
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
    affinity_terms: Option<Arc<AffinityTerms>>,
}

impl PodInfo {
    /// Derives everything from `pod`, with the gates as they are by default.
    pub fn new(pod: Arc<Pod>, classes: &LabelClasses) -> Self {
        Self::with_gates(pod, classes, ResourceGates::default())
    }

    /// Derives everything from `pod`.
    /// Follows `pkg/scheduler/framework/types.go#PodInfo.CalculateResource @v1.36.3`, and for what its specification asks for
    /// `pkg/scheduler/framework/plugins/noderesources/fit.go#computePodResourceRequest @v1.36.3`.
    pub fn with_gates(pod: Arc<Pod>, classes: &LabelClasses, gates: ResourceGates) -> Self {
        let spec_options = RequestOptions { skip_pod_level: !gates.pod_level, ..RequestOptions::default() };
        let node_options = RequestOptions {
            use_status: gates.resize,
            use_pod_level_status: gates.pod_level_resize,
            use_claim_status: gates.claims,
            ..spec_options
        };
        let spec_requests = Resources::from_quantities(pod_requests(&pod, &spec_options).iter()).floored();
        let node_requests = pod_requests(&pod, &node_options);
        let requests = Resources::from_quantities(node_requests.iter());
        let non_missing = non_missing_requests(&node_requests, gates.pod_level && are_pod_level_requests_set(&pod));
        let non_zero = if non_missing.is_empty() {
            NonZeroRequest { milli_cpu: requests.milli_cpu, memory: requests.memory }
        } else {
            let filled = pod_requests(&pod, &RequestOptions { non_missing, ..node_options });
            NonZeroRequest { milli_cpu: filled.units("cpu"), memory: filled.units("memory") }
        };
        let host_ports = pod.host_ports().filter_map(HostPort::of).collect();
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
            non_zero,
            host_ports,
            claims,
            class: classes.intern(pod.namespace(), pod.labels()),
            affinity_terms: classes.affinity_terms(&pod),
            pod,
        }
    }

    /// The pod as it will be on `node`, before the API server says so: a copy with its node name set.
    #[must_use]
    pub fn assumed_on(&self, node: &str) -> Self {
        let mut pod = (*self.pod).clone();
        pod.spec.node_name = Some(node.to_owned());
        Self { pod: Arc::new(pod), ..self.clone() }
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

    /// Its pod affinity and anti-affinity, compiled and interned; `None` if it has neither. One that is there and empty
    /// counts.
    pub fn affinity_terms(&self) -> Option<&Arc<AffinityTerms>> {
        self.affinity_terms.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::pod;

    const DEFAULT: NonZeroRequest = NonZeroRequest { milli_cpu: 100, memory: 200 << 20 };

    #[test]
    fn containers_that_request_nothing_count_in_scores() {
        let check = |info: Arc<PodInfo>, requests: (i64, i64), non_zero: NonZeroRequest| {
            assert_eq!((info.requests().milli_cpu, info.requests().memory), requests);
            assert_eq!(info.non_zero_request(), non_zero);
        };
        check(pod("a").info(), (0, 0), DEFAULT);
        check(pod("a").cpu("0").info(), (0, 0), NonZeroRequest { milli_cpu: 0, ..DEFAULT });
        check(pod("a").cpu("2").info(), (2000, 0), NonZeroRequest { milli_cpu: 2000, ..DEFAULT });
        let whole = pod("a").set("spec.resources", json!({"requests": {"cpu": "1"}}));
        check(whole.clone().info(), (1000, 0), NonZeroRequest { milli_cpu: 1000, ..DEFAULT });
        let gates = ResourceGates { pod_level: false, ..ResourceGates::default() };
        check(Arc::new(PodInfo::with_gates(whole.build(), &LabelClasses::default(), gates)), (0, 0), DEFAULT);
    }

    #[test]
    fn a_pod_being_resized_takes_what_it_has_and_asks_for_what_it_says() {
        let status =
            json!([{"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}]);
        let info = pod("a").cpu("1").set("status.containerStatuses", status).info();
        assert_eq!((info.requests().milli_cpu, info.spec_requests().milli_cpu), (3000, 1000));
    }

    #[test]
    fn ports_of_containers_and_sidecars() {
        let init = json!([
            {"name": "i", "ports": [{"hostPort": 1}]},
            {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 2}, {"containerPort": 9}]},
        ]);
        let info = pod("a").host_port(3).set("spec.initContainers", init).info();
        assert_eq!(info.host_ports().iter().map(|port| port.port).collect::<Vec<_>>(), [2, 3]);
    }
}
