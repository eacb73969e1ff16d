//! Validation of storage classes, and of updates of persistent volumes and claims.

use serde_json::{Value, json};

use super::field::{Errors, Path, difference, immutable, text};
use super::metadata::{invalid_each, label_name};
use crate::apimachinery::FieldError;
use crate::apiserver::amounts::quantity;
use crate::apiserver::meta;
use crate::apiserver::strategy::copy;
use crate::config::Gate;
use crate::k8s::names;

/// Checks a new storage class. Follows `pkg/apis/storage/validation/validation.go#ValidateStorageClass @v1.36.3`.
pub(super) fn on_class(class: &Value, errors: &mut Errors) {
    on_class_members(class, errors);
    topologies(&class["allowedTopologies"], errors);
}

/// Checks the allowed topologies of a storage class.
/// Follows `pkg/apis/core/validation/validation.go#ValidateTopologySelectorTerm @v1.36.3` for each term.
fn topologies(terms: &Value, errors: &mut Errors) {
    let root = Path::Root("allowedTopologies");
    let mut known: Vec<Value> = Vec::new();
    for (at, term) in meta::list(terms).enumerate() {
        let term_path = root.index(at);
        let list = term_path.child("matchLabelExpressions");
        let mut keys: Vec<&str> = Vec::new();
        for (at, expression) in meta::list(&term["matchLabelExpressions"]).enumerate() {
            let path = list.index(at);
            let values_path = path.child("values");
            let values: Vec<&str> = meta::list(&expression["values"]).filter_map(Value::as_str).collect();
            if values.is_empty() {
                errors.push(FieldError::required(values_path, ""));
            }
            for (at, value) in values.iter().enumerate().filter(|(at, value)| values[..*at].contains(value)) {
                errors.push(FieldError::duplicate(values_path.index(at), &json!(value)));
            }
            let key = text(expression, "key");
            label_name(key, path.child("key"), errors);
            if keys.contains(&key) {
                errors.push(FieldError::duplicate(path.child("key"), &json!(key)));
            }
            keys.push(key);
        }
        let whole = json!(meta::list(&term["matchLabelExpressions"]).collect::<Vec<_>>());
        if keys.is_empty() || known.contains(&whole) {
            errors.push(FieldError::duplicate(list, &json!("")));
        }
        known.push(whole);
    }
}

fn on_class_members(class: &Value, errors: &mut Errors) {
    let provisioner = text(class, "provisioner");
    let path = Path::Root("provisioner");
    if provisioner.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        let lower = provisioner.to_lowercase();
        invalid_each(path, &lower, names::qualified_name_errors(&lower), errors);
    }
    for (key, _) in class["parameters"].as_object().into_iter().flatten().filter(|(key, _)| key.is_empty()) {
        errors.push(FieldError::invalid("parameters", &json!(key), "field can not be empty."));
    }
    let lists = [("reclaimPolicy", ["Delete", "Retain"]), ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"])];
    for (key, known) in lists {
        let value = text(class, key);
        // Upstream accepts an empty reclaim policy, but no empty binding mode.
        let is_allowed_to_be_empty = key == "reclaimPolicy";
        let is_known = known.contains(&value) || (is_allowed_to_be_empty && value.is_empty());
        if !is_known {
            errors.push(FieldError::not_supported(key, &json!(value), &known));
        }
    }
}

/// Checks an update of a storage class.
/// Follows `pkg/apis/storage/validation/validation.go#ValidateStorageClassUpdate`.
pub(super) fn on_class_update(class: &Value, before: &Value, errors: &mut Errors) {
    for key in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        immutable(key, &class[key], &before[key], errors);
    }
}

/// Members of a persistent volume's spec that do not name its source.
const NO_SOURCE: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Checks an update of a persistent volume.
/// Follows `pkg/apis/core/validation/validation.go#ValidatePersistentVolumeUpdate @v1.36.3`.
pub(super) fn on_volume_update(volume: &Value, before: &Value, errors: &mut Errors) {
    let source = |volume: &Value| -> Value {
        let spec = volume["spec"].as_object().cloned().unwrap_or_default();
        spec.into_iter().filter(|(key, _)| !NO_SOURCE.contains(&&**key)).collect()
    };
    let (new, old) = (source(volume), source(before));
    if new != old {
        let mut lines = String::new();
        difference("", &old, &new, &mut lines);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{lines}");
        errors.push(FieldError::forbidden("spec.persistentvolumesource", detail));
    }
    immutable("volumeMode", &volume["spec"]["volumeMode"], &before["spec"]["volumeMode"], errors);
    let (new, old) = (&volume["spec"]["nodeAffinity"], &before["spec"]["nodeAffinity"]);
    let is_fixed = !old.is_null() && !errors.enabled(Gate::MutablePVNodeAffinity);
    if is_fixed && with_stable_labels(new) != with_stable_labels(old) {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(FieldError::invalid("nodeAffinity", new, detail));
    }
    attributes_class(volume, before, errors);
}

/// Checks an update of the attributes class of a volume or claim.
fn attributes_class(value: &Value, before: &Value, errors: &mut Errors) {
    const KEY: &str = "volumeAttributesClassName";
    if value["spec"][KEY] != before["spec"][KEY] && !errors.enabled(Gate::VolumeAttributesClass) {
        let detail = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        errors.push(FieldError::forbidden(format!("spec.{KEY}"), detail));
    }
}

/// Beta labels and their stable replacements. An update may replace beta labels in a volume's node affinity.
/// `pkg/apis/core/validation/validation.go#betaToGALabel @v1.36.3`.
const RENAMED: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

fn with_stable_labels(affinity: &Value) -> Value {
    let mut affinity = affinity.clone();
    let terms = affinity.get_mut("required").and_then(|required| required.get_mut("nodeSelectorTerms"));
    for term in terms.and_then(Value::as_array_mut).into_iter().flatten() {
        for expression in term.get_mut("matchExpressions").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some((_, stable)) = RENAMED.iter().find(|(beta, _)| expression["key"] == *beta) {
                expression["key"] = json!(stable);
            }
        }
    }
    affinity
}

/// Checks an update of a persistent volume claim.
/// Follows `pkg/apis/core/validation/validation.go#ValidatePersistentVolumeClaimUpdate @v1.36.3`.
pub(super) fn on_claim_update(claim: &Value, before: &Value, errors: &mut Errors) {
    let (mut new, mut old) = (claim["spec"].clone(), before["spec"].clone());
    if meta::is_empty(&old["volumeName"]) {
        copy(&mut old, &new, "volumeName");
    }
    if old["storageClassName"].is_null() {
        // A claim without a class may get the default class later.
        copy(&mut old, &new, "storageClassName");
    }
    let size = |spec: &Value| quantity(&spec["resources"]["requests"]["storage"]);
    let (new_size, old_size) = (size(&new), size(&old));
    if claim["status"]["phase"] == "Bound" {
        copy(&mut new, &old, "volumeAttributesClassName");
        if new["resources"]["requests"].is_object() {
            copy(&mut new["resources"]["requests"], &old["resources"]["requests"], "storage");
        }
    }
    if new != old {
        let mut lines = String::new();
        difference("", &old, &new, &mut lines);
        let detail =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden("spec", format!("{detail}\n{lines}")));
    }
    let capacity = quantity(&before["status"]["capacity"]["storage"]);
    let size_path = "spec.resources.requests.storage";
    let status = &before["status"];
    let may_shrink = errors.enabled(Gate::RecoverVolumeExpansionFailure)
        || !meta::is_empty(&status["allocatedResources"])
        || !meta::is_empty(&status["allocatedResourceStatuses"]);
    if new_size < old_size && !may_shrink {
        errors.push(FieldError::forbidden(size_path, "field can not be less than previous value"));
    } else if new_size < old_size && new_size <= capacity {
        let detail = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(size_path, detail));
    }
    immutable("volumeMode", &claim["spec"]["volumeMode"], &before["spec"]["volumeMode"], errors);
    attributes_class(claim, before, errors);
}
