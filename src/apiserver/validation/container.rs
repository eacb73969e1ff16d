//! Validation of the containers of pods. Fields that only the kubelet reads (environment, mounts, probes, security contexts) are
//! not checked.
//!
//! Follows `pkg/apis/core/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::{invalid_each, required_name};
use super::resources;
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::config::Gate;
use crate::k8s::names;

/// Maximum numbers of restart rules of a container, and of exit codes of a rule. `#validateContainerRestartPolicy`.
const MAX_RESTART_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

const NO_RESTART_POLICY: &str = "must specify restartPolicy when restart rules are used";

/// Checks the containers of a pod spec. Follows `#validateContainers`.
pub(super) fn regular(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let list_path = path.child("containers");
    if meta::is_empty(&spec["containers"]) {
        errors.push(FieldError::required(list_path, ""));
    }
    let mut known: Vec<&str> = Vec::new();
    for (at, container) in meta::list(&spec["containers"]).enumerate() {
        let path = list_path.index(at);
        common(container, spec, path, errors);
        let name = text(container, "name");
        if known.contains(&name) {
            errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
        }
        known.push(name);
        restart_policy(container, path, errors);
    }
    let mut ports = Vec::new();
    for (at, container) in meta::list(&spec["containers"]).enumerate() {
        host_port_conflicts(container, list_path.index(at), &mut ports, errors);
    }
}

/// Checks the init containers of a pod spec. Follows `#validateInitContainers`.
pub(super) fn initial(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let list_path = path.child("initContainers");
    let mut known: Vec<&str> = meta::list(&spec["containers"]).map(|container| text(container, "name")).collect();
    for (at, container) in meta::list(&spec["initContainers"]).enumerate() {
        let path = list_path.index(at);
        common(container, spec, path, errors);
        initial_restart_policy(container, path, errors);
        let name = text(container, "name");
        if known.contains(&name) {
            errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
        } else if !name.is_empty() {
            known.push(name);
        }
        // Init containers run one after another, so their host ports cannot conflict. Upstream's messages give each of them index
        // 0.
        host_port_conflicts(container, list_path.index(0), &mut Vec::new(), errors);
    }
}

/// Checks the fields that containers and init containers share. Follows `#validateContainerCommon`.
fn common(container: &Value, spec: &Value, path: Path<'_>, errors: &mut Errors) {
    let name = text(container, "name");
    required_name(name, names::dns1123_label_errors, path.child("name"), errors);
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(path.child("image"), ""));
    }
    one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, errors);
    ports(container, path, errors);
    one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
    resources::of_container(&container["resources"], &spec["resourceClaims"], path.child("resources"), errors);
}

/// Checks that a field is set to one of the `known` values. Follows `#validatePullPolicy` and similar functions.
pub(super) fn one_of(owner: &Value, key: &str, known: &[&str], path: Path<'_>, errors: &mut Errors) {
    let value = text(owner, key);
    if value.is_empty() {
        errors.push(FieldError::required(path.child(key), ""));
    } else if !known.contains(&value) {
        errors.push(FieldError::not_supported(path.child(key), &json!(value), known));
    }
}

/// Checks the restart policy of an init container. Follows `#validateInitContainerRestartPolicy`.
fn initial_restart_policy(container: &Value, path: Path<'_>, errors: &mut Errors) {
    let has_rules = !meta::is_empty(&container["restartPolicyRules"]);
    let Some(policy) = container["restartPolicy"].as_str() else {
        if has_rules {
            errors.push(FieldError::required(path.child("restartPolicy"), NO_RESTART_POLICY));
        }
        return;
    };
    let is_sidecar = policy == "Always";
    if !errors.enabled(Gate::ContainerRestartRules) {
        if !is_sidecar {
            errors.push(FieldError::not_supported(path.child("restartPolicy"), &json!(policy), &["Always"]));
        }
    } else if is_sidecar && !errors.enabled(Gate::RestartAllContainersOnContainerExits) {
        if has_rules {
            let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
            errors.push(FieldError::forbidden(path.child("restartPolicyRules"), detail));
        }
    } else {
        restart_policy(container, path, errors);
    }
}

/// Checks a container's restart policy and its rules. Follows `#validateContainerRestartPolicy`.
fn restart_policy(container: &Value, path: Path<'_>, errors: &mut Errors) {
    const KNOWN: [&str; 3] = ["Always", "Never", "OnFailure"];
    let (policy, rules) = (&container["restartPolicy"], &container["restartPolicyRules"]);
    match policy.as_str() {
        None if !meta::is_empty(rules) => {
            errors.push(FieldError::required(path.child("restartPolicy"), NO_RESTART_POLICY));
        }
        Some(policy) if !KNOWN.contains(&policy) => {
            errors.push(FieldError::not_supported(path.child("restartPolicy"), &json!(policy), &KNOWN));
        }
        _ => {}
    }
    let list = path.child("restartPolicyRules");
    let count = meta::list(rules).len();
    if count > MAX_RESTART_RULES {
        errors.push(FieldError::too_many(list, count, MAX_RESTART_RULES));
    }
    for (at, rule) in meta::list(rules).enumerate() {
        restart_rule(rule, list.index(at), errors);
    }
}

/// Checks a restart rule of a container. Follows `#validateContainerRestartPolicy`.
fn restart_rule(rule: &Value, path: Path<'_>, errors: &mut Errors) {
    let all = ["Restart", "RestartAllContainers"];
    let known = if errors.enabled(Gate::RestartAllContainersOnContainerExits) { &all[..] } else { &all[..1] };
    let action = text(rule, "action");
    if !known.contains(&action) {
        errors.push(FieldError::not_supported(path.child("action"), &json!(action), known));
    }
    let (codes, path) = (&rule["exitCodes"], path.child("exitCodes"));
    if codes.is_null() {
        errors.push(FieldError::required(path, "must be specified"));
        return;
    }
    let operator = text(codes, "operator");
    if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::not_supported(path.child("operator"), &json!(operator), &["In", "NotIn"]));
    }
    let count = meta::list(&codes["values"]).len();
    if count > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(path.child("values"), count, MAX_EXIT_CODES));
    }
}

/// Checks a container's ports. Follows `#validateContainerPorts`.
fn ports(container: &Value, path: Path<'_>, errors: &mut Errors) {
    let list = path.child("ports");
    let mut known: Vec<&str> = Vec::new();
    for (at, port) in meta::list(&container["ports"]).enumerate() {
        let path = list.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let complaints = port_name_errors(name);
            if !complaints.is_empty() {
                invalid_each(path.child("name"), name, complaints, errors);
            } else if known.contains(&name) {
                errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
            } else {
                known.push(name);
            }
        }
        if meta::is_empty(&port["containerPort"]) {
            errors.push(FieldError::required(path.child("containerPort"), ""));
        }
        for key in ["containerPort", "hostPort"] {
            if let Some(number) = port[key].as_i64().filter(|number| *number != 0 && !(1..=65535).contains(number)) {
                let detail = "must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(path.child(key), &json!(number), detail));
            }
        }
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], path, errors);
    }
}

/// Returns the rules that a port name breaks.
/// Follows `apimachinery/pkg/util/validation/validation.go#IsValidPortName @v1.36.3`.
pub(super) fn port_name_errors(name: &str) -> Vec<String> {
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    let rules = [
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            name.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'-'),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (name.bytes().any(is_letter), "must contain at least one letter (a-z)"),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (!name.starts_with('-') && !name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    rules.iter().filter(|(holds, _)| !holds).map(|(_, text)| (*text).to_owned()).collect()
}

/// Reports host ports that are already in `known`, and adds the other host ports to it. Follows `#AccumulateUniqueHostPorts`.
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

/// Checks that no image has surrounding whitespace. Follows `#validateContainersOnlyForPod`.
pub(super) fn images(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let list_path = path.child(list);
        for (at, container) in meta::list(&spec[list]).enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let path = list_path.index(at);
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(path.child("image"), &json!(image), detail));
            }
        }
    }
}

/// Checks that each host port equals its container port. Follows `#validatePodHostNetworkDeps`.
pub(super) fn host_network_ports(spec: &Value, path: Path<'_>, errors: &mut Errors) {
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
