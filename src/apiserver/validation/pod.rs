//! Validation of new pods, and of the pod templates of workloads.

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::{invalid_each, labels};
use super::{container, resources, scheduling, volumes};
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::config::Gate;
use crate::k8s::names;

/// Checks a new pod, except its metadata. Follows `pkg/apis/core/validation/validation.go#ValidatePodCreate @v1.36.3`.
pub(super) fn on_create(pod: &Value, errors: &mut Errors) {
    let spec = &pod["spec"];
    let path = Path::Root("spec");
    whole(pod, errors);
    if !meta::is_empty(&spec["ephemeralContainers"]) {
        errors.push(FieldError::forbidden(path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !text(spec, "nodeName").is_empty() && !meta::is_empty(&spec["schedulingGates"]) {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(path.child("nodeName"), detail));
    }
}

/// Checks a new or updated pod, except its metadata.
/// Follows `pkg/apis/core/validation/validation.go#validatePodMetadataAndSpec`.
pub(super) fn whole(pod: &Value, errors: &mut Errors) {
    let path = Path::Root("spec");
    annotations(pod, errors);
    self::spec(&pod["spec"], path, errors);
    container::images(&pod["spec"], path, errors);
}

/// Checks the annotations of a pod that the API server reads.
/// Follows `pkg/apis/core/validation/validation.go#ValidatePodSpecificAnnotations`, without security profiles.
fn annotations(pod: &Value, errors: &mut Errors) {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let metadata = Path::Root("metadata");
    let path = metadata.child("annotations");
    let value = |key: &str| pod["metadata"]["annotations"][key].as_str();
    if let Some(mirror) = value(MIRROR)
        && text(&pod["spec"], "nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(path.key(MIRROR), &json!(mirror), detail));
    }
    if let Some(cost) = value(DELETION_COST)
        && errors.enabled(Gate::PodDeletionCost)
        && !is_deletion_cost(cost)
    {
        errors.push(FieldError::invalid(path.key(DELETION_COST), &json!(cost), "must be a 32bit integer"));
    }
}

/// Whether a text is the cost of a pod's deletion.
/// Follows `pkg/apis/core/helper/helpers.go#GetDeletionCostFromPodAnnotations @v1.36.3`.
fn is_deletion_cost(text: &str) -> bool {
    let starts_well = text == "0" || text.starts_with(|c: char| c == '-' || ('1'..='9').contains(&c));
    starts_well && text.parse::<i32>().is_ok()
}

/// Checks the spec of a pod or of a pod template. Follows `pkg/apis/core/validation/validation.go#ValidatePodSpec`.
pub(super) fn spec(spec: &Value, path: Path<'_>, errors: &mut Errors) {
    volumes::names(&spec["volumes"], path.child("volumes"), errors);
    resources::claims(&spec["resourceClaims"], path.child("resourceClaims"), errors);
    container::regular(spec, path, errors);
    container::initial(spec, path, errors);
    resources::of_pod(spec, path.child("resources"), errors);
    if spec["hostNetwork"] == true {
        container::host_network_ports(spec, path, errors);
    }
    container::one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    container::one_of(spec, "dnsPolicy", &policies, path, errors);
    labels(&spec["nodeSelector"], path.child("nodeSelector"), errors);
    scheduling::affinity(&spec["affinity"], path.child("affinity"), errors);
    if text(spec, "dnsPolicy") == "None" && meta::is_empty(&spec["dnsConfig"]["nameservers"]) {
        let (config, here) = (&spec["dnsConfig"], path.child("dnsConfig"));
        let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
        errors.push(if config.is_null() {
            FieldError::required(here, detail)
        } else {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            FieldError::required(here.child("nameservers"), detail)
        });
    }
    let gates = path.child("readinessGates");
    for (at, gate) in meta::list(&spec["readinessGates"]).enumerate() {
        let (name, path) = (text(gate, "conditionType"), gates.index(at));
        invalid_each(path.child("conditionType"), name, names::qualified_name_errors(name), errors);
    }
    scheduling::gates(&spec["schedulingGates"], path.child("schedulingGates"), errors);
    scheduling::spread(&spec["topologySpreadConstraints"], path.child("topologySpreadConstraints"), errors);
    if spec["hostUsers"] == false {
        let has_network = errors.enabled(Gate::UserNamespacesHostNetworkSupport);
        for (key, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
            if spec[key] == true && !(has_network && key == "hostNetwork") {
                errors.push(FieldError::forbidden(path.child(shown), "when `hostUsers` is false"));
            }
        }
    }
    for key in ["serviceAccountName", "nodeName"] {
        subdomain(spec, key, path, errors);
    }
    let deadline = &spec["activeDeadlineSeconds"];
    if deadline.as_i64().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        let detail = format!("must be between 1 and {}, inclusive", i32::MAX);
        errors.push(FieldError::invalid(path.child("activeDeadlineSeconds"), deadline, detail));
    }
    for key in ["hostname", "subdomain"] {
        let name = text(spec, key);
        if !name.is_empty() {
            invalid_each(path.child(key), name, names::dns1123_label_errors(name), errors);
        }
    }
    scheduling::tolerations(&spec["tolerations"], path.child("tolerations"), errors);
    subdomain(spec, "priorityClassName", path, errors);
    if let Some(name) = spec["runtimeClassName"].as_str() {
        invalid_each(path.child("runtimeClassName"), name, names::dns1123_subdomain_errors(name), errors);
    }
    if !spec["preemptionPolicy"].is_null() {
        container::one_of(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path, errors);
    }
    resources::overhead(&spec["overhead"], path.child("overhead"), errors);
    if let Some(os) = spec["os"]["name"].as_str() {
        let here = path.child("os");
        match os {
            "linux" | "windows" => {}
            "" => errors.push(FieldError::required(here.child("name"), "cannot be empty")),
            _ => errors.push(FieldError::not_supported(here, &json!(os), &["linux", "windows"])),
        }
    }
}

fn subdomain(spec: &Value, key: &str, path: Path<'_>, errors: &mut Errors) {
    let name = text(spec, key);
    if !name.is_empty() {
        invalid_each(path.child(key), name, names::dns1123_subdomain_errors(name), errors);
    }
}
