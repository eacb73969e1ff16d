//! Validation of metadata: names, labels, annotations, finalizers and owner references.
//!
//! Follows `apimachinery/pkg/api/validation/objectmeta.go @v1.36.3`.

use serde_json::Value;

use super::field::{Errors, Path, immutable, non_negative, text};
use crate::apimachinery::FieldError;
use crate::apiserver::kinds::{Kind, LEASES, NAMESPACES, POD_DISRUPTION_BUDGETS, SERVICES, STATEFUL_SETS};
use crate::apiserver::meta;
use crate::config::Gate;
use crate::k8s::names;

const PATH: Path<'static> = Path::Root("metadata");

/// Whether upstream's validation of this kind checks metadata itself. For a kind without its own checks, only the checks for
/// objects of all kinds apply.
fn has_own_rules(kind: &Kind) -> bool {
    kind.slot != POD_DISRUPTION_BUDGETS.slot && !kind.is_view()
}

/// Checks a new object's metadata as the validation of its kind does, before other fields.
pub(super) fn on_create(kind: &Kind, value: &Value, errors: &mut Errors) {
    if has_own_rules(kind) {
        let is_label = [&NAMESPACES, &SERVICES, &STATEFUL_SETS].iter().any(|other| other.slot == kind.slot);
        let rule = if kind.slot == SERVICES.slot && !errors.enabled(Gate::RelaxedServiceNameValidation) {
            dns1035_label_errors
        } else if is_label {
            names::dns1123_label_errors
        } else {
            names::dns1123_subdomain_errors
        };
        new(value, rule, errors);
        if kind.slot != LEASES.slot {
            known_finalizers(value, errors);
        }
    }
}

/// Returns the rules that a name of a service breaks while `RelaxedServiceNameValidation` is off.
/// Follows `apimachinery/pkg/util/validation/validation.go#IsDNS1035Label @v1.36.3`.
fn dns1035_label_errors(name: &str) -> Vec<String> {
    const MOST: usize = 63;
    let mut errors = Vec::new();
    if name.len() > MOST {
        errors.push(format!("must be no more than {MOST} characters"));
    }
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(is_inner) && !name.ends_with('-')) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                    character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        errors.push(rule.to_owned());
    }
    errors
}

/// Checks a new object's metadata with the rules for all kinds. The caller does so only if the kind's own validation found no
/// errors. Kinds that check metadata themselves are skipped: their checks are stricter.
/// Follows `apiserver/pkg/registry/rest/create.go#BeforeCreate @v1.36.3`.
pub(super) fn of_any_kind(kind: &Kind, value: &Value, errors: &mut Errors) {
    if !has_own_rules(kind) {
        new(value, path_segment_errors, errors);
    }
}

/// Checks that a name can be a segment of a URL path. Every kind has this rule, and most kinds have a stricter rule.
pub(super) fn path_segment(value: &Value, errors: &mut Errors) {
    name_errors(value, path_segment_errors, errors);
}

/// Returns the reasons why a name cannot be a path segment.
/// Follows `apimachinery/pkg/api/validate/content/path.go#IsPathSegmentName @v1.36.3`.
fn path_segment_errors(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|part| name.contains(**part))
            .map(|part| format!("may not contain '{part}'"))
            .collect(),
    }
}

fn name_errors(value: &Value, rule: impl Fn(&str) -> Vec<String>, errors: &mut Errors) {
    let metadata = &value["metadata"];
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        // A trailing dash is valid here, because a generated suffix follows it.
        let masked = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |start| format!("{start}a"));
        invalid_each(PATH.child("generateName"), prefix, rule(&masked), errors);
    }
    let name = text(metadata, "name");
    if name.is_empty() {
        errors.push(FieldError::required(PATH.child("name"), "name or generateName is required"));
    } else {
        invalid_each(PATH.child("name"), name, rule(name), errors);
    }
}

/// Checks a new object's metadata. `rule` checks the name. Follows `#ValidateObjectMetaAccessor`.
fn new(value: &Value, rule: impl Fn(&str) -> Vec<String>, errors: &mut Errors) {
    name_errors(value, rule, errors);
    common(value, errors);
    finalizers(value, errors);
}

/// Checks an updated object's metadata. As in upstream, a kind that checks metadata itself repeats the checks for all kinds, so
/// that their errors occur twice.
/// Follows `apiserver/pkg/registry/rest/update.go#BeforeUpdate @v1.36.3`.
pub(super) fn on_update(kind: &Kind, value: &Value, before: &Value, errors: &mut Errors) {
    on_update_of_any_kind(value, before, errors);
    if has_own_rules(kind) {
        changed(value, before, errors);
    }
}

/// Checks an updated object's metadata with the rules for all kinds.
pub(super) fn on_update_of_any_kind(value: &Value, before: &Value, errors: &mut Errors) {
    path_segment(value, errors);
    common(value, errors);
    finalizers(value, errors);
    changed(value, before, errors);
}

/// Checks an update of metadata. Follows `#ValidateObjectMetaAccessorUpdate`.
pub(super) fn changed(value: &Value, before: &Value, errors: &mut Errors) {
    let (new, old) = (&value["metadata"], &before["metadata"]);
    if !old["deletionTimestamp"].is_null() {
        let known: Vec<&Value> = meta::list(&old["finalizers"]).collect();
        let added = meta::list(&new["finalizers"]).filter(|finalizer| !known.contains(finalizer));
        let added: Vec<String> = added.map(ToString::to_string).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(FieldError::forbidden(PATH.child("finalizers"), detail));
        }
    }
    if new["generation"].as_i64().unwrap_or(0) < old["generation"].as_i64().unwrap_or(0) {
        errors.push(FieldError::invalid(PATH.child("generation"), &new["generation"], "must not be decremented"));
    }
    for key in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        immutable(PATH.child(key), &new[key], &old[key], errors);
    }
    common(value, errors);
}

/// Checks the rules that new and updated objects share.
fn common(value: &Value, errors: &mut Errors) {
    let metadata = &value["metadata"];
    non_negative(metadata, "generation", PATH, errors);
    labels(&metadata["labels"], PATH.child("labels"), errors);
    annotations(&metadata["annotations"], PATH.child("annotations"), errors);
    owners(&metadata["ownerReferences"], PATH.child("ownerReferences"), errors);
}

/// Checks the keys of annotations. Follows `#ValidateAnnotations`, without the limit on their size.
pub(super) fn annotations(annotations: &Value, path: Path<'_>, errors: &mut Errors) {
    for (key, _) in annotations.as_object().into_iter().flatten() {
        invalid_each(path, key, names::qualified_name_errors(&key.to_lowercase()), errors);
    }
}

/// Checks the names of finalizers, and that `orphan` and `foregroundDeletion` are not both set.
/// Follows `#ValidateFinalizers`.
fn finalizers(value: &Value, errors: &mut Errors) {
    let path = PATH.child("finalizers");
    for finalizer in meta::finalizers(value) {
        invalid_each(path, finalizer, names::qualified_name_errors(finalizer), errors);
    }
    if ["orphan", "foregroundDeletion"].iter().all(|name| meta::finalizers(value).any(|known| known == *name)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(path, &value["metadata"]["finalizers"], detail));
    }
}

/// Checks that finalizers without a domain are standard finalizers.
/// Follows `pkg/apis/core/validation/validation.go#validateKubeFinalizerName @v1.36.3`.
fn known_finalizers(value: &Value, errors: &mut Errors) {
    let list = PATH.child("finalizers");
    for (at, finalizer) in meta::finalizers(value).enumerate() {
        if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(list.index(at), finalizer, detail));
        }
    }
}

/// Checks the owner references of an object. Follows `#ValidateOwnerReferences`.
fn owners(owners: &Value, path: Path<'_>, errors: &mut Errors) {
    for owner in meta::list(owners) {
        let api_version = text(owner, "apiVersion");
        let version = match api_version.matches('/').count() {
            0 => api_version,
            1 => api_version.split_once('/').map_or("", |(_, version)| version),
            _ => "",
        };
        if version.is_empty() {
            errors.push(FieldError::invalid(path.child("apiVersion"), api_version, "version must not be empty"));
        }
        for key in ["kind", "name", "uid"] {
            if text(owner, key).is_empty() {
                errors.push(FieldError::invalid(path.child(key), "", "must not be empty"));
            }
        }
        if api_version == "v1" && text(owner, "kind") == "Event" {
            let mut error = FieldError::invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner");
            error.value = owner_text(owner);
            errors.push(error);
        }
    }
    let mut controllers = meta::list(owners).filter(|owner| owner["controller"] == true);
    if let (Some(first), Some(second)) = (controllers.next(), controllers.next()) {
        let name = |owner: &Value| format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            name(first),
            name(second)
        );
        let mut error = FieldError::invalid(path, owners, detail);
        let shown: Vec<String> = meta::list(owners).map(owner_text).collect();
        error.value = format!("[{}]", shown.join(","));
        errors.push(error);
    }
}

/// Formats an owner reference as JSON with its members in the order of Go's type.
fn owner_text(owner: &Value) -> String {
    let members = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let shown: Vec<String> =
        members.iter().filter(|key| !owner[**key].is_null()).map(|key| format!("{key:?}:{}", owner[*key])).collect();
    format!("{{{}}}", shown.join(","))
}

/// Checks the keys and values of labels.
/// Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateLabels @v1.36.3`.
pub(super) fn labels(labels: &Value, path: Path<'_>, errors: &mut Errors) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        label_name(key, path, errors);
        let value = value.as_str().unwrap_or_default();
        invalid_each(path, value, names::label_value_errors(value), errors);
    }
}

/// Checks the key of a label. Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateLabelName`.
pub(super) fn label_name(name: &str, path: Path<'_>, errors: &mut Errors) {
    invalid_each(path, name, names::qualified_name_errors(name), errors);
}

/// Checks that a name is set and follows `rule`.
pub(super) fn required_name(name: &str, rule: fn(&str) -> Vec<String>, path: Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        invalid_each(path, name, rule(name), errors);
    }
}

/// Adds an error for each of the `complaints` about a value.
pub(super) fn invalid_each(path: Path<'_>, value: &str, complaints: Vec<String>, errors: &mut Errors) {
    errors.extend(complaints.into_iter().map(|detail| FieldError::invalid(path, value, detail)));
}
