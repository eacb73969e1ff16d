//! New pods.

use serde_json::{Value, json};

use super::metadata::{invalid_each, labels};
use super::{Errors, Path, resources, scheduling, text};
use crate::apiserver::field_error::FieldError;
use crate::apiserver::meta;
use crate::k8s::names;

/// Follows `pkg/apis/core/validation/validation.go#ValidatePodCreate @v1.36.3`.
pub(super) fn on_create(pod: &Value, errors: &mut Errors) {
    let spec = &pod["spec"];
    let path = Path::Root("spec");
    self::spec(spec, path, errors);
    if !meta::is_empty(&spec["ephemeralContainers"]) {
        errors.push(FieldError::forbidden(path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && !meta::is_empty(&spec["schedulingGates"]) {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(path.child("nodeName"), detail));
    }
}

/// Follows `#ValidatePodSpec`.
pub(super) fn spec(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    if meta::is_empty(&spec["containers"]) {
        errors.push(FieldError::required(path.child("containers"), ""));
    }
    containers(spec, "containers", path, errors);
    containers(spec, "initContainers", path, errors);
    if spec["hostNetwork"] == true {
        host_network_ports(spec, path, errors);
    }
    let restart = text(spec, "restartPolicy");
    if !matches!(restart, "Always" | "OnFailure" | "Never") {
        let known = ["Always", "Never", "OnFailure"];
        errors.push(FieldError::not_supported(path.child("restartPolicy"), &json!(restart), &known));
    }
    labels(&spec["nodeSelector"], path.child("nodeSelector"), errors);
    scheduling::affinity(&spec["affinity"], path.child("affinity"), errors);
    scheduling::gates(&spec["schedulingGates"], path.child("schedulingGates"), errors);
    scheduling::spread(&spec["topologySpreadConstraints"], path.child("topologySpreadConstraints"), errors);
    for key in ["nodeName", "priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            invalid_each(path.child(key), name, names::dns1123_subdomain_errors(name), errors);
        }
    }
    scheduling::tolerations(&spec["tolerations"], path.child("tolerations"), errors);
    if let Some(policy) = spec["preemptionPolicy"].as_str()
        && !matches!(policy, "PreemptLowerPriority" | "Never")
    {
        let known = ["PreemptLowerPriority", "Never"];
        errors.push(FieldError::not_supported(path.child("preemptionPolicy"), &json!(policy), &known));
    }
}

/// Follows `#validateContainers` and `#validateInitContainers`.
fn containers(spec: &Value, list: &str, path: Path<'_>, errors: &mut Errors) {
    let list_path = path.child(list);
    let mut known: Vec<&str> = Vec::new();
    if list == "initContainers" {
        known.extend(meta::list(&spec["containers"]).map(|container| text(container, "name")));
    }
    let mut ports: Vec<String> = Vec::new();
    for (at, container) in meta::list(&spec[list]).enumerate() {
        let path = list_path.index(at);
        let name = text(container, "name");
        if name.is_empty() {
            errors.push(FieldError::required(path.child("name"), ""));
        } else {
            invalid_each(path.child("name"), name, names::dns1123_label_errors(name), errors);
        }
        if text(container, "image").is_empty() {
            errors.push(FieldError::required(path.child("image"), ""));
        }
        container_ports(container, path, errors);
        resources::requirements(&container["resources"], path.child("resources"), errors);
        if !name.is_empty() && known.contains(&name) {
            errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
        }
        known.push(name);
    }
    // Host ports are compared once all containers have been looked at, init containers each on their own.
    for (at, container) in meta::list(&spec[list]).enumerate() {
        if list == "initContainers" {
            ports.clear();
        }
        host_port_conflicts(container, list_path.index(at), &mut ports, errors);
    }
}

/// Follows `#validateContainerPorts`.
fn container_ports(container: &Value, path: Path<'_>, errors: &mut Errors) {
    let list = path.child("ports");
    for (at, port) in meta::list(&container["ports"]).enumerate() {
        let path = list.index(at);
        if meta::is_empty(&port["containerPort"]) {
            errors.push(FieldError::required(path.child("containerPort"), ""));
        }
        for key in ["containerPort", "hostPort"] {
            if let Some(number) = port[key].as_i64().filter(|number| *number != 0 && !(1..=65535).contains(number)) {
                let detail = "must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(path.child(key), &json!(number), detail));
            }
        }
        let protocol = text(port, "protocol");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            let known = ["SCTP", "TCP", "UDP"];
            errors.push(FieldError::not_supported(path.child("protocol"), &json!(protocol), &known));
        }
    }
}

/// Follows `#AccumulateUniqueHostPorts`.
fn host_port_conflicts(container: &Value, path: Path<'_>, known: &mut Vec<String>, errors: &mut Errors) {
    let list = path.child("ports");
    for (at, port) in meta::list(&container["ports"]).enumerate() {
        let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) else { continue };
        let shown = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
        if known.contains(&shown) {
            let path = list.index(at);
            errors.push(FieldError::duplicate(path.child("hostPort"), &json!(shown)));
        } else {
            known.push(shown);
        }
    }
}

/// Follows `#validateHostNetwork`.
fn host_network_ports(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let list = path.child("containers");
    for (at, container) in meta::list(&spec["containers"]).enumerate() {
        let container_path = list.index(at);
        let ports = container_path.child("ports");
        for (at, port) in meta::list(&container["ports"]).enumerate() {
            let number = |key: &str| port[key].as_i64().unwrap_or(0);
            if number("hostPort") != number("containerPort") {
                let path = ports.index(at);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(path.child("hostPort"), &json!(number("hostPort")), detail));
            }
        }
    }
}
