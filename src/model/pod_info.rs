//! A pod with the values that scheduling derives from it once and uses in every attempt.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Affinity;

use super::{AffinityTerms, HostPort, LabelClass, LabelClasses, Resources};
use crate::k8s::requests::{are_pod_level_requests_set, non_missing_requests};
use crate::k8s::{Pod, RequestOptions, VolumeSource, pod_requests};

/// CPU and memory requests as scoring counts them: a container without a request counts with a default amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZeroRequest {
    /// CPU in thousandths of a core.
    pub milli_cpu: i64,
    /// Amount of memory in bytes.
    pub memory: i64,
}

impl NonZeroRequest {
    /// Adds another request to this one.
    pub fn add(&mut self, other: Self) {
        self.milli_cpu = self.milli_cpu.wrapping_add(other.milli_cpu);
        self.memory = self.memory.wrapping_add(other.memory);
    }

    /// Subtracts another request from this one.
    pub fn sub(&mut self, other: Self) {
        self.milli_cpu = self.milli_cpu.wrapping_sub(other.milli_cpu);
        self.memory = self.memory.wrapping_sub(other.memory);
    }
}

/// The feature gates that decide which sources a pod's requests come from. The default is each gate's default.
#[expect(clippy::struct_excessive_bools, reason = "independent switches, one a feature gate")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceGates {
    /// `InPlacePodVerticalScaling`: the allocated and actual resources in the container statuses count.
    pub resize: bool,
    /// `PodLevelResources`: the pod-level requests in the spec count.
    pub pod_level: bool,
    /// `InPlacePodLevelResourcesVerticalScaling`: the pod-level resources in the pod's status count.
    pub pod_level_resize: bool,
    /// `DRANodeAllocatableResources`: the node resources that the pod's resource claims consume count.
    pub claims: bool,
}

impl Default for ResourceGates {
    fn default() -> Self {
        Self { resize: true, pod_level: true, pod_level_resize: true, claims: false }
    }
}

/// A pod with the values that scheduling derives from it. The queue, the cache and snapshots share it.
/// Follows `pkg/scheduler/framework/types.go#PodInfo @v1.36.3`.
#[derive(Clone, Debug)]
pub struct PodInfo {
    pod: Arc<Pod>,
    key: Arc<str>,
    requests: Resources,
    /// The requests in the spec. Set only if they differ from `requests`, as they do while a pod is being resized.
    spec_requests: Option<Box<Resources>>,
    non_zero: NonZeroRequest,
    host_ports: Box<[HostPort]>,
    claims: Box<[Arc<str>]>,
    class: Arc<LabelClass>,
    affinity_terms: Option<Arc<AffinityTerms>>,
}

impl PodInfo {
    /// Derives all values from `pod`, with the default feature gates.
    pub fn new(pod: Arc<Pod>, classes: &LabelClasses) -> Self {
        Self::with_gates(pod, classes, ResourceGates::default())
    }

    /// Derives all values from `pod`. Follows `pkg/scheduler/framework/types.go#PodInfo.CalculateResource @v1.36.3`, and for
    /// the requests in the spec `pkg/scheduler/framework/plugins/noderesources/fit.go#computePodResourceRequest @v1.36.3`.
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

    /// Returns a copy of the pod with its node name set to `node`. It stands for the pod until the API server confirms the
    /// binding.
    #[must_use]
    pub fn assumed_on(&self, node: &str) -> Self {
        let mut pod = (*self.pod).clone();
        pod.spec.node_name = Some(node.to_owned());
        Self { pod: Arc::new(pod), ..self.clone() }
    }

    /// The pod as the API has it.
    pub fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    /// The pod's key, `namespace/name`.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// The name of the pod.
    pub fn name(&self) -> &str {
        self.pod.name()
    }

    /// The namespace of the pod.
    pub fn namespace(&self) -> &str {
        self.pod.namespace()
    }

    /// The UID of the pod.
    pub fn uid(&self) -> &str {
        self.pod.uid()
    }

    /// The pod's priority, or 0 if it has none.
    pub fn priority(&self) -> i32 {
        self.pod.priority()
    }

    /// The resources that the pod consumes on its node. While the pod is being resized, this is the larger of the resources that
    /// it requests and the resources that it has.
    pub fn requests(&self) -> &Resources {
        &self.requests
    }

    /// The requests in the pod's spec. A node must have this much free for the pod to fit.
    pub fn spec_requests(&self) -> &Resources {
        self.spec_requests.as_deref().unwrap_or(&self.requests)
    }

    /// The CPU and memory that scoring counts for the pod on its node.
    pub fn non_zero_request(&self) -> NonZeroRequest {
        self.non_zero
    }

    /// The host ports that the pod uses on its node.
    pub fn host_ports(&self) -> &[HostPort] {
        &self.host_ports
    }

    /// The claims that the pod's volumes name, as `namespace/claim`, without the claims that are created for ephemeral volumes.
    pub fn claims(&self) -> &[Arc<str>] {
        &self.claims
    }

    /// The pod's labels and namespace, interned.
    pub fn class(&self) -> &Arc<LabelClass> {
        &self.class
    }

    /// The affinity in the pod's spec.
    pub fn affinity(&self) -> Option<&Affinity> {
        self.pod.spec.affinity.as_deref()
    }

    /// The pod's affinity and anti-affinity terms, compiled and interned. `None` if the spec sets neither `podAffinity` nor
    /// `podAntiAffinity`. An empty `podAffinity` or `podAntiAffinity` counts as set.
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
    fn containers_without_requests_get_default_score_requests() {
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
    fn requests_of_a_resized_pod_include_its_status() {
        let status =
            json!([{"name": "c", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}]);
        let info = pod("a").cpu("1").set("status.containerStatuses", status).info();
        assert_eq!((info.requests().milli_cpu, info.spec_requests().milli_cpu), (3000, 1000));
    }

    #[test]
    fn host_ports_include_sidecars_but_no_init_containers() {
        let init = json!([
            {"name": "i", "ports": [{"hostPort": 1}]},
            {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 2}, {"containerPort": 9}]},
        ]);
        let info = pod("a").host_port(3).set("spec.initContainers", init).info();
        assert_eq!(info.host_ports().iter().map(|port| port.port).collect::<Vec<_>>(), [2, 3]);
    }
}
