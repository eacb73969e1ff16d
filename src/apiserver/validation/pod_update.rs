//! Validation of updates of pods and of their status.
//!
//! A symbol cited without a path is in `pkg/apis/core/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, difference, immutable, text};
use super::metadata::invalid_each;
use super::scheduling;
use crate::apimachinery::FieldError;
use crate::apiserver::kinds::PODS;
use crate::apiserver::meta;
use crate::config::Gate;
use crate::k8s::names;

/// Fields that a pod's update may change, as the error message lists them.
/// `pkg/apis/core/validation/validation.go#updatablePodSpecFields @v1.36.3`.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Condition types that are valid without a check of their names.
/// `pkg/apis/core/validation/validation.go#validatePodConditions @v1.36.3`.
const OWN_CONDITIONS: [&str; 4] = ["PodScheduled", "Ready", "Initialized", "ContainersReady"];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Checks an update of a pod, except its status. Follows `#ValidatePodUpdate`.
pub(super) fn check(pod: &Value, before: &Value, errors: &mut Errors) {
    let (spec, old) = (&pod["spec"], &before["spec"]);
    let path = Path::Root("spec");
    enable_what_is_used(old, errors);
    super::metadata::on_create(&PODS, pod, errors);
    super::pod::whole(pod, errors);
    for list in ["containers", "initContainers"] {
        if meta::list(&spec[list]).len() != meta::list(&old[list]).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(path.child(list), detail));
            return;
        }
        let list_path = path.child(list);
        for (at, container) in meta::list(&spec[list]).enumerate() {
            let (image, path) = (text(container, "image"), list_path.index(at));
            if image.is_empty() {
                errors.push(FieldError::required(path.child("image"), ""));
            } else if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(path.child("image"), &json!(image), detail));
            }
        }
    }
    active_deadline(spec, old, path, errors);
    only_added_tolerations(spec, old, path, errors);
    only_deleted_gates(spec, old, path, errors);
    if spec == old {
        return;
    }
    let mut munged = munge(spec, old);
    if !meta::is_empty(&old["schedulingGates"]) {
        gated(&mut munged, old, path, errors);
    }
    if munged != *old {
        let mut lines = String::new();
        difference("", old, &munged, &mut lines);
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n{lines}");
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Turns on the gates of features that the old pod uses, so that the pod can still be updated.
/// Follows `pkg/api/pod/util.go#GetValidationOptionsFromPodSpecAndMeta @v1.36.3`.
fn enable_what_is_used(old: &Value, errors: &mut Errors) {
    let compares = |toleration: &Value| matches!(toleration["operator"].as_str(), Some("Lt" | "Gt"));
    if meta::list(&old["tolerations"]).any(compares) {
        errors.enable(Gate::TaintTolerationComparisonOperators);
    }
    if old["hostNetwork"] == true && old["hostUsers"] == false {
        errors.enable(Gate::UserNamespacesHostNetworkSupport);
    }
}

/// Returns the new spec with every field that may change reset to its old value.
fn munge(spec: &Value, old: &Value) -> Value {
    let mut munged = spec.clone();
    for list in ["containers", "initContainers"] {
        for (at, container) in munged.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten().enumerate() {
            // The pull policy is not reset: defaulting sets it only if it is absent, so that a new image does not change it.
            container["image"] = old[list][at]["image"].clone();
        }
    }
    let Some(map) = munged.as_object_mut() else { return munged };
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        meta::set(map, key, old[key].clone());
    }
    let grace = "terminationGracePeriodSeconds";
    if old[grace].as_i64().is_some_and(|seconds| seconds < 0) && spec[grace] == 1 {
        meta::set(map, grace, old[grace].clone());
    }
    munged
}

fn active_deadline(spec: &Value, old: &Value, path: Path<'_>, errors: &mut Errors) {
    let key = "activeDeadlineSeconds";
    let detail = match (spec[key].as_i64(), old[key].as_i64()) {
        (Some(new), Some(old)) if new > old => "must be less than or equal to previous value",
        (None, Some(_)) => "must not update from a positive integer to nil value",
        _ => return,
    };
    errors.push(FieldError::invalid(path.child(key), &spec[key], detail));
}

/// Checks that an update only adds tolerations or changes their `tolerationSeconds`. Follows `#validateOnlyAddedTolerations`.
fn only_added_tolerations(spec: &Value, old: &Value, path: Path<'_>, errors: &mut Errors) {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        if let Some(map) = toleration.as_object_mut() {
            map.remove("tolerationSeconds");
        }
        toleration
    };
    let kept: Vec<Value> = meta::list(&spec["tolerations"]).map(without_seconds).collect();
    if meta::list(&old["tolerations"]).any(|toleration| !kept.contains(&without_seconds(toleration))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(path.child("tolerations"), detail));
        return;
    }
    scheduling::tolerations(&spec["tolerations"], path.child("tolerations"), errors);
}

/// Checks that an update adds no scheduling gates. Follows `#validateOnlyDeletedSchedulingGates`.
fn only_deleted_gates(spec: &Value, old: &Value, path: Path<'_>, errors: &mut Errors) {
    let known: Vec<&str> = meta::list(&old["schedulingGates"]).map(|gate| text(gate, "name")).collect();
    let list = path.child("schedulingGates");
    let gates: Vec<&str> = meta::list(&spec["schedulingGates"]).map(|gate| text(gate, "name")).collect();
    for (at, name) in gates.iter().enumerate() {
        // As in upstream, of several gates with the same name only the last one is reported.
        if !known.contains(name) && !gates[at + 1..].contains(name) {
            let path = list.index(at);
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.push(FieldError::forbidden(path.child("name"), detail));
        }
    }
}

/// Checks that the update of a gated pod only narrows its node selector and node affinity, and resets both in `munged`.
fn gated(munged: &mut Value, old: &Value, path: Path<'_>, errors: &mut Errors) {
    let selector = &munged["nodeSelector"];
    let mutated =
        old["nodeSelector"].as_object().into_iter().flatten().any(|(key, value)| selector.get(key) != Some(value));
    if mutated {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(path.child("nodeSelector"), selector, detail));
    }
    let (new_affinity, old_affinity) = (&munged["affinity"]["nodeAffinity"], &old["affinity"]["nodeAffinity"]);
    if new_affinity != old_affinity {
        affinity_mutation(new_affinity, old_affinity, path, errors);
    }
    let old_node = old_affinity.clone();
    let Some(map) = munged.as_object_mut() else { return };
    meta::set(map, "nodeSelector", old["nodeSelector"].clone());
    let affinity = map.entry("affinity").or_insert_with(|| json!({}));
    if let Some(affinity) = affinity.as_object_mut() {
        meta::set(affinity, "nodeAffinity", old_node);
        if affinity.is_empty() && old["affinity"].is_null() {
            map.remove("affinity");
        }
    }
}

/// Checks that an update only narrows the required node affinity. Follows `#validateNodeAffinityMutation`.
fn affinity_mutation(new: &Value, old: &Value, path: Path<'_>, errors: &mut Errors) {
    if old[REQUIRED].is_null() {
        return;
    }
    let affinity = path.child("affinity");
    let (node, required) = (affinity.child("nodeAffinity"), REQUIRED);
    let required_path = node.child(required);
    let list = required_path.child("nodeSelectorTerms");
    let terms = |affinity: &Value| meta::list(&affinity[REQUIRED]["nodeSelectorTerms"]).cloned().collect::<Vec<_>>();
    let (new_terms, old_terms) = (terms(new), terms(old));
    if !old_terms.is_empty() && new_terms.len() != old_terms.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let mut error = FieldError::invalid(list, &Value::Null, detail);
        if !new_terms.is_empty() {
            error.value = format!("[{}]", new_terms.iter().map(term_text).collect::<Vec<_>>().join(","));
        }
        errors.push(error);
        return;
    }
    for (at, (new, old)) in new_terms.iter().zip(&old_terms).enumerate() {
        let parts = ["matchExpressions", "matchFields"];
        let was_empty = parts.iter().all(|part| meta::is_empty(&old[part]));
        let only_adds = parts.iter().all(|part| {
            let (new, old) = (meta::list(&new[part]).as_slice(), meta::list(&old[part]).as_slice());
            if was_empty { new.is_empty() } else { new.starts_with(old) }
        });
        if !only_adds {
            let detail = "only additions are allowed (no mutations or deletions)";
            let mut error = FieldError::invalid(list.index(at), new, detail);
            error.value = term_text(new);
            errors.push(error);
        }
    }
}

/// Formats a node selector term with the field names of upstream's internal Go type.
fn term_text(term: impl std::borrow::Borrow<Value>) -> String {
    let requirements = |list: &Value| {
        if meta::is_empty(list) {
            return "null".to_owned();
        }
        let shown: Vec<String> = meta::list(list)
            .map(|one| {
                let values = if meta::is_empty(&one["values"]) { &Value::Null } else { &one["values"] };
                format!(r#"{{"Key":{},"Operator":{},"Values":{values}}}"#, one["key"], one["operator"])
            })
            .collect();
        format!("[{}]", shown.join(","))
    };
    let term = term.borrow();
    let (expressions, fields) = (requirements(&term["matchExpressions"]), requirements(&term["matchFields"]));
    format!(r#"{{"MatchExpressions":{expressions},"MatchFields":{fields}}}"#)
}

/// Checks an update of a pod's status. `node` is the node that the pod is bound to. Follows `#ValidatePodStatusUpdate`.
pub(super) fn check_status(pod: &Value, before: &Value, node: Option<&str>, errors: &mut Errors) {
    let (status, old) = (&pod["status"], &before["status"]);
    let path = Path::Root("status");
    let list = path.child("conditions");
    for (at, condition) in meta::list(&status["conditions"]).enumerate() {
        let path = list.index(at);
        let generation = &condition["observedGeneration"];
        if generation.as_i64().is_some_and(|generation| generation < 0) {
            let detail = "must be a non-negative integer";
            errors.push(FieldError::invalid(path.child("observedGeneration"), generation, detail));
        }
        if !OWN_CONDITIONS.contains(&text(condition, "type")) {
            let name = text(condition, "type");
            invalid_each(path.child("Type"), name, names::qualified_name_errors(name), errors);
        }
    }
    let nominated = text(status, "nominatedNodeName");
    if !nominated.is_empty() && nominated != text(old, "nominatedNodeName") {
        let field = path.child("nominatedNodeName");
        invalid_each(field, nominated, names::dns1123_subdomain_errors(nominated), errors);
        if node.is_some_and(|node| !node.is_empty()) && errors.enabled(Gate::ClearingNominatedNodeNameAfterBinding) {
            errors.push(FieldError::forbidden(field, "may not be set on pods that are already bound to a node"));
        }
    }
    if status["observedGeneration"].as_i64().is_some_and(|generation| generation < 0) {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(path.child("observedGeneration"), &status["observedGeneration"], detail));
    }
    immutable(path.child("qosClass"), &status["qosClass"], &old["qosClass"], errors);
}
