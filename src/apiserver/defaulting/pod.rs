//! Defaults of pods, and of the pod templates of workloads.
//!
//! A symbol cited without a path is in `pkg/apis/core/v1/defaults.go @v1.36.3`.

use serde_json::{Map, Value, json};

use super::{default, default_absent, resource_list};
use crate::apiserver::amounts;
use crate::apiserver::meta;
use crate::k8s::names::is_huge_page_resource;
use crate::k8s::requests::is_pod_level_resource;

const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Fills in the defaults of a pod. Follows `pkg/apis/core/v1/defaults.go#SetDefaults_Pod @v1.36.3`.
pub(super) fn apply(pod: &mut Value) {
    let spec = meta::child(pod, "spec");
    self::spec(spec);
    for list in CONTAINERS {
        for container in elements(spec, list) {
            let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) else { continue };
            let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { continue };
            let requests = resources.entry("requests").or_insert_with(|| json!({}));
            if let Some(requests) = requests.as_object_mut() {
                limits.into_iter().for_each(|(name, limit)| {
                    requests.entry(name).or_insert(limit);
                });
            }
        }
    }
    pod_level(spec);
    default_absent(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork") == Some(&json!(true)) {
        host_ports(spec);
    }
}

/// Fills in the defaults of a pod spec. Follows `#SetDefaults_PodSpec` and `#SetDefaults_Container`.
pub(super) fn spec(spec: &mut Map<String, Value>) {
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "restartPolicy", "Always");
    default_absent(spec, "securityContext", json!({}));
    default_absent(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "schedulerName", "default-scheduler");
    for list in CONTAINERS {
        elements(spec, list).for_each(container);
    }
    elements(spec, "volumes").for_each(volume);
    resource_list(spec.get_mut("overhead"));
    if let Some(resources) = spec.get_mut("resources") {
        resource_list(resources.get_mut("requests"));
        resource_list(resources.get_mut("limits"));
    }
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), json!(1));
    }
    // `serviceAccount` is the deprecated name of `serviceAccountName`. If the two differ, `serviceAccountName` wins.
    for (from, to) in [("serviceAccountName", "serviceAccount"), ("serviceAccount", "serviceAccountName")] {
        if let Some(account) = spec.get(from).filter(|name| !meta::is_empty(name)).cloned() {
            spec.insert(to.to_owned(), account);
        }
    }
}

/// Fills in the defaults of a pod's volume. Follows `#SetDefaults_Volume` and the functions for the sources of volumes.
fn volume(volume: &mut Map<String, Value>) {
    if volume.len() == 1 && volume.contains_key("name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default_absent(source, "defaultMode", 0o644);
            field_references(source, "items");
            for part in elements(source, "sources") {
                if let Some(part) = part.get_mut("downwardAPI").and_then(Value::as_object_mut) {
                    field_references(part, "items");
                }
                if let Some(token) = part.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
                    default_absent(token, "expirationSeconds", 3600);
                }
            }
        }
    }
    if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default();
        let policy = if is_latest(reference) { "Always" } else { "IfNotPresent" };
        default(image, "pullPolicy", policy);
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default_absent(path, "type", "");
    }
    let template = volume.get_mut("ephemeral").and_then(|ephemeral| ephemeral.get_mut("volumeClaimTemplate"));
    if let Some(template) = template {
        super::storage::claim_spec(meta::child(template, "spec"));
    }
}

/// Defaults the API version of references to pod fields to `v1`. Follows `#SetDefaults_ObjectFieldSelector`.
fn field_references(owner: &mut Map<String, Value>, list: &str) {
    for item in elements(owner, list) {
        if let Some(field) = item.get_mut("fieldRef").and_then(Value::as_object_mut) {
            default(field, "apiVersion", "v1");
        }
    }
}

/// Fills in the defaults of a probe. Follows `#SetDefaults_Probe` and `#SetDefaults_HTTPGetAction`.
fn probe(probe: &mut Map<String, Value>) {
    for (key, number) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        default(probe, key, number);
    }
    http_get(probe);
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        default_absent(grpc, "service", "");
    }
}

fn http_get(handler: &mut Map<String, Value>) {
    if let Some(action) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        default(action, "path", "/");
        default(action, "scheme", "HTTP");
    }
}

fn container(container: &mut Map<String, Value>) {
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(key).and_then(Value::as_object_mut) {
            self::probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        let handler = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook)?.as_object_mut());
        if let Some(handler) = handler {
            http_get(handler);
        }
    }
    for variable in elements(container, "env") {
        let source = variable.get_mut("valueFrom").and_then(|from| from.get_mut("fieldRef")?.as_object_mut());
        if let Some(field) = source {
            default(field, "apiVersion", "v1");
        }
    }
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", policy);
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    resource_list(resources.get_mut("requests"));
    resource_list(resources.get_mut("limits"));
    for port in elements(container, "ports") {
        default(port, "protocol", "TCP");
    }
}

/// Whether an image reference has the tag `latest`, or neither a tag nor a digest.
/// Follows `pkg/util/parsers/parsers.go#ParseImageName @v1.36.3`.
fn is_latest(image: &str) -> bool {
    let (name, has_digest) = match image.split_once('@') {
        Some((name, _)) => (name, true),
        None => (image, false),
    };
    let last = name.rsplit_once('/').map_or(name, |(_, last)| last);
    let (repository, tag) = last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
    // Upstream finds no tag in an invalid reference, not even `latest`.
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let can_be_read = repository.starts_with(is_part) && repository.chars().all(|c| is_part(c) || "._-".contains(c));
    can_be_read && tag.map_or(!has_digest, |tag| tag == "latest")
}

/// Fills in missing pod-level requests and limits if the pod has pod-level resources.
/// Follows `#defaultHugePagePodLimits` and `#defaultPodRequests`.
fn pod_level(spec: &mut Map<String, Value>) {
    let Some(resources) = spec.get("resources").and_then(Value::as_object) else { return };
    let part = |name: &str| resources.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut requests, mut limits) = (part("requests"), part("limits"));
    if !(requests.is_empty() && limits.is_empty()) {
        for (name, sum) in amounts::of_containers(spec, "limits") {
            if is_huge_page_resource(&name) && !requests.contains_key(&name) {
                limits.entry(name).or_insert_with(|| json!(sum.to_string()));
            }
        }
    }
    if !limits.is_empty() {
        for (name, sum) in amounts::of_containers(spec, "requests") {
            if matches!(&*name, "cpu" | "memory") {
                requests.entry(name).or_insert_with(|| json!(sum.to_string()));
            }
        }
        for (name, limit) in limits.iter().filter(|(name, _)| is_pod_level_resource(name)) {
            requests.entry(name.as_str()).or_insert_with(|| limit.clone());
        }
    }
    if let Some(resources) = spec.get_mut("resources").and_then(Value::as_object_mut) {
        for (name, list) in [("requests", requests), ("limits", limits)] {
            if !list.is_empty() {
                resources.insert(name.to_owned(), Value::Object(list));
            }
        }
    }
}

/// Sets missing host ports to the container ports. Follows `#defaultHostNetworkPorts`.
fn host_ports(spec: &mut Map<String, Value>) {
    for list in CONTAINERS {
        for container in elements(spec, list) {
            for port in elements(container, "ports") {
                if let Some(number) = port.get("containerPort").cloned() {
                    default(port, "hostPort", number);
                }
            }
        }
    }
}

/// Returns the objects of a list as mutable references.
fn elements<'a>(map: &'a mut Map<String, Value>, list: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaulted(spec: &Value) -> Value {
        let mut pod = json!({"spec": spec});
        apply(&mut pod);
        pod["spec"].take()
    }

    #[test]
    fn missing_requests_default_to_limits() {
        let spec = defaulted(&json!({"containers": [{"image": "a", "resources": {
            "limits": {"cpu": "0.5", "memory": "1Gi"}, "requests": {"cpu": 0.1}}}]}));
        assert_eq!(
            spec["containers"][0]["resources"],
            json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "1Gi"}})
        );
        assert_eq!(spec["schedulerName"], "default-scheduler");
        assert_eq!(spec["terminationGracePeriodSeconds"], 30);
    }

    #[test]
    fn pull_policy_default_follows_the_tag() {
        for (image, latest) in [
            ("a", true),
            ("a:latest", true),
            ("a:1", false),
            ("r:5000/a", true),
            ("r:5000/a:2", false),
            ("a@sha256:0", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn host_network_defaults_host_ports() {
        let spec = defaulted(&json!({"hostNetwork": true, "containers": [{"ports": [
            {"containerPort": 80}, {"containerPort": 81, "hostPort": 90}]}]}));
        assert_eq!(spec["containers"][0]["ports"][0], json!({"containerPort": 80, "hostPort": 80, "protocol": "TCP"}));
        assert_eq!(spec["containers"][0]["ports"][1]["hostPort"], 90);
    }

    #[test]
    fn pod_level_requests_are_defaulted() {
        let spec = defaulted(&json!({
            "resources": {"limits": {"memory": "4Gi"}},
            "initContainers": [{"resources": {"requests": {"cpu": "3"}}}],
            "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"requests": {"cpu": "1"}}}]}));
        assert_eq!(spec["resources"]["requests"], json!({"cpu": "3", "memory": "4Gi"}));
    }
}
