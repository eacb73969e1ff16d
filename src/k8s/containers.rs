//! Values derived from a pod's containers: host ports, quality of service class and image names.

use std::borrow::Cow;
use std::fmt;

use super::{ContainerPort, Pod, Quantity, ResourceList, ResourceRequirements};

/// The quality of service class of a pod, which follows from its requests and limits.
/// From `api/core/v1/types.go#PodQOSClass @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QosClass {
    /// All containers have limits for CPU and memory, and requests equal to them.
    Guaranteed,
    /// CPU or memory is requested or limited, but the pod is not `Guaranteed`.
    Burstable,
    /// Neither CPU nor memory is requested or limited.
    BestEffort,
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guaranteed => "Guaranteed",
            Self::Burstable => "Burstable",
            Self::BestEffort => "BestEffort",
        })
    }
}

impl Pod {
    /// Iterates over the host ports that the pod occupies while it runs: those of restartable init containers, then those of
    /// containers. Follows `pkg/scheduler/util/utils.go#GetHostPorts @v1.36.3`.
    pub fn host_ports(&self) -> impl Iterator<Item = &ContainerPort> {
        let restartable = self.spec.init_containers.iter().filter(|container| container.is_restartable_init());
        let ports = restartable.chain(&self.spec.containers).flat_map(|container| &container.ports);
        ports.filter(|port| port.host_port > 0)
    }

    /// Iterates over the host ports of all containers and init containers, including negative ones. Used for a pod's signature,
    /// not for the ports that it occupies.
    /// Follows `kube-scheduler/framework/signers.go#HostPortsSigner @v1.36.3`.
    pub fn all_host_ports(&self) -> impl Iterator<Item = &ContainerPort> {
        let containers = self.spec.containers.iter().chain(&self.spec.init_containers);
        containers.flat_map(|container| &container.ports).filter(|port| port.host_port != 0)
    }

    /// Computes the pod's quality of service class from its specification. If `pod_level_resources` (the feature gate
    /// `PodLevelResources`) is set, pod-level resources replace the resources of the containers.
    /// Follows `pkg/apis/core/v1/helper/qos/qos.go#ComputePodQOS @v1.36.3`.
    pub fn qos_class(&self, pod_level_resources: bool) -> QosClass {
        let mut totals = QosTotals::default();
        match self.spec.resources.as_deref().filter(|_| pod_level_resources) {
            Some(resources) => {
                totals.add(resources);
                totals.is_limited &= resources.limits.is_empty() || limits_both(&resources.limits);
            }
            None => {
                for container in self.spec.containers.iter().chain(&self.spec.init_containers) {
                    totals.add(&container.resources);
                    totals.is_limited &= limits_both(&container.resources.limits);
                }
            }
        }
        totals.class()
    }
}

/// Resources that determine the quality of service class.
const QOS_RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Sums of requests and limits for each of [`QOS_RESOURCES`]. Amounts that are not positive do not count.
struct QosTotals {
    requests: [Option<Quantity>; 2],
    limits: [Option<Quantity>; 2],
    /// Whether every container has limits for both resources.
    is_limited: bool,
}

impl Default for QosTotals {
    fn default() -> Self {
        Self { requests: [None; 2], limits: [None; 2], is_limited: true }
    }
}

impl QosTotals {
    fn add(&mut self, resources: &ResourceRequirements) {
        for (at, name) in QOS_RESOURCES.into_iter().enumerate() {
            if let Some(request) = positive(&resources.requests, name) {
                *self.requests[at].get_or_insert_default() += request;
            }
            if let Some(limit) = positive(&resources.limits, name) {
                *self.limits[at].get_or_insert_default() += limit;
            }
        }
    }

    fn class(&self) -> QosClass {
        if self.requests.iter().chain(&self.limits).all(Option::is_none) {
            QosClass::BestEffort
        } else if self.is_limited && self.requests == self.limits {
            QosClass::Guaranteed
        } else {
            QosClass::Burstable
        }
    }
}

fn positive(list: &ResourceList, name: &str) -> Option<Quantity> {
    list.get(name).copied().filter(|quantity| quantity.signum() > 0)
}

fn limits_both(limits: &ResourceList) -> bool {
    QOS_RESOURCES.into_iter().all(|name| positive(limits, name).is_some())
}

/// Normalizes an image name to the form that nodes report: appends `:latest` if it has no tag.
/// Follows `pkg/scheduler/framework/plugins/imagelocality/image_locality.go#normalizedImageName @v1.36.3`.
pub fn normalized_image_name(name: &str) -> Cow<'_, str> {
    // A colon before the last slash separates the registry's port.
    if name.rfind(':') <= name.rfind('/') { format!("{name}:latest").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Pod, normalized_image_name};

    fn pod(spec: &Value) -> Pod {
        serde_json::from_value(json!({"spec": spec})).expect("a pod")
    }

    #[test]
    fn host_ports_include_containers_and_sidecars() {
        let container = |ports: &[i32], policy: &str| {
            let ports: Vec<_> = ports.iter().map(|port| json!({"containerPort": 1, "hostPort": port})).collect();
            json!({"name": "c", "ports": ports, "restartPolicy": policy})
        };
        let pod = pod(&json!({
            "containers": [container(&[80, 0], ""), container(&[81], "")],
            "initContainers": [container(&[90], ""), container(&[91, 0, -1], "Always")],
        }));
        assert_eq!(pod.host_ports().map(|port| port.host_port).collect::<Vec<_>>(), [91, 80, 81]);
        assert_eq!(pod.all_host_ports().map(|port| port.host_port).collect::<Vec<_>>(), [80, 81, 90, 91, -1]);
    }

    #[test]
    fn images_without_a_tag_get_latest() {
        let check = |name: &str, expected: &str| assert_eq!(normalized_image_name(name), expected);
        check("nginx", "nginx:latest");
        check("nginx:1", "nginx:1");
        check("registry:5000/nginx", "registry:5000/nginx:latest");
        check("registry:5000/nginx:1", "registry:5000/nginx:1");
        check("nginx@sha256:abc", "nginx@sha256:abc");
        check("", ":latest");
    }

    #[test]
    fn qos_class_follows_requests_and_limits() {
        let resources = |requests: Value, limits: Value| json!({"name": "c", "resources": {"requests": requests, "limits": limits}});
        let check = |spec: Value, pod_level: bool, expected: &str| {
            assert_eq!(pod(&spec).qos_class(pod_level).to_string(), expected, "{spec}");
        };
        let both = || json!({"cpu": "1", "memory": "1Gi"});
        let one = |container: Value| json!({"containers": [container]});
        check(one(resources(json!({}), json!({}))), true, "BestEffort");
        check(one(resources(json!({"cpu": "0"}), json!({"example.com/x": 1}))), true, "BestEffort");
        check(one(resources(both(), both())), true, "Guaranteed");
        check(one(resources(both(), json!({"cpu": "1", "memory": "2Gi"}))), true, "Burstable");
        check(one(resources(json!({"cpu": "1"}), json!({"cpu": "1"}))), true, "Burstable");
        check(one(resources(json!({}), both())), true, "Burstable");
        check(one(resources(json!({"cpu": "1", "memory": "1024Mi"}), both())), true, "Guaranteed");
        check(
            json!({"containers": [resources(both(), both())], "initContainers": [resources(json!({}), json!({}))]}),
            true,
            "Burstable",
        );

        let pod_level = |own: Value| json!({"containers": [resources(both(), both())], "resources": own});
        check(pod_level(json!({"requests": {"cpu": "1"}})), true, "Burstable");
        check(pod_level(json!({"requests": {"cpu": "1"}})), false, "Guaranteed");
        check(pod_level(json!({"requests": both(), "limits": both()})), true, "Guaranteed");
        check(pod_level(json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}})), true, "Burstable");
        check(pod_level(json!({})), true, "BestEffort");
    }
}
