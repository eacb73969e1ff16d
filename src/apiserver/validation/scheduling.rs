//! Validation of scheduling constraints: taints, tolerations, topology spread, affinity, selectors and scheduling gates.
//!
//! A symbol cited without a path is in `pkg/apis/core/validation/validation.go @v1.36.3`.

use std::num::IntErrorKind;

use serde_json::{Value, json};

use super::field::{Errors, Path, text};
use super::metadata::{invalid_each, label_name, labels};
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::config::Gate;
use crate::go::number::{invalid_syntax, out_of_range};
use crate::k8s::names;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Checks the effect of a taint or toleration.
/// Follows `pkg/apis/core/validation/validation.go#validateTaintEffect @v1.36.3`.
pub(super) fn taint_effect(effect: &str, path: Path<'_>, errors: &mut Errors) {
    if effect.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !EFFECTS.contains(&effect) {
        errors.push(FieldError::not_supported(path, &json!(effect), &EFFECTS));
    }
}

/// Checks the tolerations of a pod. Follows `#ValidateTolerations`.
pub(super) fn tolerations(list: &Value, path: Path<'_>, errors: &mut Errors) {
    let compares = errors.enabled(Gate::TaintTolerationComparisonOperators);
    for (at, one) in meta::list(list).enumerate() {
        toleration(one, compares, path.index(at), errors);
    }
}

/// Checks a single toleration. `compares` allows the operators `Lt` and `Gt`. Follows `#ValidateTolerations`.
pub(super) fn toleration(toleration: &Value, compares: bool, path: Path<'_>, errors: &mut Errors) {
    let (key, value) = (text(toleration, "key"), text(toleration, "value"));
    let (operator, effect) = (text(toleration, "operator"), text(toleration, "effect"));
    if !key.is_empty() {
        label_name(key, path.child("key"), errors);
    }
    if key.is_empty() && operator != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(path.child("operator"), &json!(operator), detail));
    }
    if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(path.child("effect"), &json!(effect), detail));
    }
    match operator {
        "Equal" | "" => {
            let complaints = names::label_value_errors(value);
            if !complaints.is_empty() {
                errors.push(FieldError::invalid(path.child("operator"), &json!(value), complaints.join(";")));
            }
        }
        "Exists" if value.is_empty() => {}
        "Exists" => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(path.child("operator"), &json!(value), detail));
        }
        "Lt" | "Gt" if compares => {
            invalid_each(path.child("value"), value, decimal_integer_errors(value), errors);
        }
        "Lt" | "Gt" => {
            let known = ["Equal", "Exists", "Lt", "Gt"];
            errors.push(FieldError::not_supported(path.child("operator"), &json!(operator), &known));
        }
        _ => {
            let known = ["Equal", "Exists"];
            errors.push(FieldError::not_supported(path.child("operator"), &json!(operator), &known));
        }
    }
    if !effect.is_empty() {
        taint_effect(effect, path.child("effect"), errors);
    }
}

/// Returns the errors of a value that `Lt` or `Gt` compares: it must be a plain decimal integer of 64 bits.
/// Follows `apimachinery/pkg/api/validate/content/decimal_int.go#IsDecimalInteger @v1.36.3`.
fn decimal_integer_errors(value: &str) -> Vec<String> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_canonical = value == "0"
        || (digits.starts_with(|c: char| ('1'..='9').contains(&c)) && digits.bytes().all(|byte| byte.is_ascii_digit()));
    let mut errors = Vec::new();
    if value.is_empty() {
        errors.push("must be non-empty".to_owned());
    } else if !is_canonical {
        errors.push("must be a valid decimal integer in canonical form".to_owned());
    }
    // Unlike the rule above, Go's parser accepts leading zeros and a plus sign.
    if let Err(error) = value.parse::<i64>() {
        errors.push(match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => out_of_range("ParseInt", value),
            _ => invalid_syntax("ParseInt", value),
        });
    }
    errors
}

/// Checks the scheduling gates of a pod. Follows `#validateSchedulingGates`.
pub(super) fn gates(list: &Value, path: Path<'_>, errors: &mut Errors) {
    let gates: Vec<&str> = meta::list(list).map(|gate| text(gate, "name")).collect();
    for (at, gate) in gates.iter().enumerate() {
        label_name(gate, path.index(at), errors);
        if gates[..at].contains(gate) {
            errors.push(FieldError::duplicate(path.index(at), &json!(gate)));
        }
    }
}

/// Checks the topology spread constraints of a pod. Follows `#validateTopologySpreadConstraints`.
pub(super) fn spread(list: &Value, path: Path<'_>, errors: &mut Errors) {
    let constraints: Vec<&Value> = meta::list(list).collect();
    for (at, constraint) in constraints.iter().enumerate() {
        let path = path.index(at);
        positive(&constraint["maxSkew"], path.child("maxSkew"), errors);
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if key.is_empty() {
            errors.push(FieldError::required(path.child("topologyKey"), "can not be empty"));
        }
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let known = ["DoNotSchedule", "ScheduleAnyway"];
            errors.push(FieldError::not_supported(path.child("whenUnsatisfiable"), &json!(action), &known));
        }
        let same = |other: &&&Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if constraints[at + 1..].iter().any(|other| same(&other)) {
            let pair = json!(format!("{{{key}, {action}}}"));
            errors.push(FieldError::duplicate(path.child("{topologyKey, whenUnsatisfiable}"), &pair));
        }
        let domains = &constraint["minDomains"];
        if !domains.is_null() {
            positive(domains, path.child("minDomains"), errors);
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(path.child("minDomains"), domains, detail));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(name) = constraint[policy].as_str().filter(|name| !matches!(*name, "Honor" | "Ignore")) {
                errors.push(FieldError::not_supported(path.child(policy), &json!(name), &["Honor", "Ignore"]));
            }
        }
        let merged = [Gate::MatchLabelKeysInPodTopologySpread, Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge];
        if merged.iter().all(|gate| errors.enabled(*gate)) {
            label_keys(constraint, path, errors);
        } else {
            unmerged_label_keys(constraint, path.child("matchLabelKeys"), errors);
        }
        label_selector(&constraint["labelSelector"], path.child("labelSelector"), errors);
    }
}

/// Checks that a number is positive. Follows `#ValidatePositiveField`.
fn positive(value: &Value, path: Path<'_>, errors: &mut Errors) {
    let number = value.as_i64().unwrap_or(0);
    if number <= 0 {
        errors.push(FieldError::invalid(path, &json!(number), "must be greater than zero"));
    }
}

/// Checks `matchLabelKeys` and `mismatchLabelKeys` of a constraint or an affinity term.
/// Follows `#ValidateMatchLabelKeysAndMismatchLabelKeys`.
///
/// The server has already added an expression for each key to the selector. A key that occurs twice in the selector was
/// therefore set by the client in both places.
fn label_keys(owner: &Value, path: Path<'_>, errors: &mut Errors) {
    let selector = &owner["labelSelector"];
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        if meta::is_empty(&owner[list]) {
            continue;
        }
        if selector.is_null() {
            let detail = "must not be specified when labelSelector is not set";
            errors.push(FieldError::forbidden(path.child(list), detail));
            continue;
        }
        let path = path.child(list);
        for (at, key) in meta::list(&owner[list]).enumerate() {
            label_name(key.as_str().unwrap_or_default(), path.index(at), errors);
        }
    }
    let keys: Vec<&str> = meta::list(&owner["matchLabelKeys"]).filter_map(Value::as_str).collect();
    let labels = selector["matchLabels"].as_object();
    let mut seen: Vec<&str> = labels.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for key in meta::list(&selector["matchExpressions"]).map(|expression| text(expression, "key")) {
        if let Some(at) = keys.iter().rposition(|known| *known == key)
            && seen.contains(&key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(path.index(at), &json!(key), detail));
        }
        seen.push(key);
    }
    let mismatch: Vec<&str> = meta::list(&owner["mismatchLabelKeys"]).filter_map(Value::as_str).collect();
    for (at, key) in keys.iter().enumerate().filter(|(_, key)| mismatch.contains(key)) {
        let list = path.child("matchLabelKeys");
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(list.index(at), &json!(key), detail));
    }
}

/// Checks the `matchLabelKeys` of a constraint to whose selector the server has added nothing.
/// Follows `#ValidateMatchLabelKeysInTopologySpread`.
fn unmerged_label_keys(constraint: &Value, path: Path<'_>, errors: &mut Errors) {
    let selector = &constraint["labelSelector"];
    if meta::is_empty(&constraint["matchLabelKeys"]) {
        return;
    }
    if selector.is_null() {
        errors.push(FieldError::forbidden(path, "must not be specified when labelSelector is not set"));
    }
    for (at, key) in meta::list(&constraint["matchLabelKeys"]).filter_map(Value::as_str).enumerate() {
        label_name(key, path.index(at), errors);
        let is_known = selector["matchLabels"].get(key).is_some()
            || meta::list(&selector["matchExpressions"]).any(|expression| text(expression, "key") == key);
        if is_known {
            let detail = "exists in both matchLabelKeys and labelSelector";
            errors.push(FieldError::invalid(path.index(at), &json!(key), detail));
        }
    }
}

/// Checks a label selector.
/// Follows `apimachinery/pkg/apis/meta/v1/validation/validation.go#ValidateLabelSelector @v1.36.3`.
pub(super) fn label_selector(selector: &Value, path: Path<'_>, errors: &mut Errors) {
    labels(&selector["matchLabels"], path.child("matchLabels"), errors);
    let list = path.child("matchExpressions");
    for (at, expression) in meta::list(&selector["matchExpressions"]).enumerate() {
        let path = list.index(at);
        values(expression, &["In", "NotIn"], &["Exists", "DoesNotExist"], &[], path, errors);
        label_name(text(expression, "key"), path.child("key"), errors);
        let list = path.child("values");
        for (at, value) in meta::list(&expression["values"]).enumerate() {
            let value = value.as_str().unwrap_or_default();
            invalid_each(list.index(at), value, names::label_value_errors(value), errors);
        }
    }
}

/// Checks the operator of an expression and its number of values: the operators in `some` need at least one value, those in
/// `none` no value, and those in `one` exactly one.
fn values(expression: &Value, some: &[&str], none: &[&str], one: &[&str], path: Path<'_>, errors: &mut Errors) {
    let operator = text(expression, "operator");
    let count = meta::list(&expression["values"]).len();
    if some.contains(&operator) {
        if count == 0 {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(path.child("values"), detail));
        }
    } else if none.contains(&operator) {
        if count > 0 {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(path.child("values"), detail));
        }
    } else if one.contains(&operator) {
        if count != 1 {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(path.child("values"), detail));
        }
    } else {
        errors.push(FieldError::invalid(path.child("operator"), &json!(operator), "not a valid selector operator"));
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks the affinity of a pod. Follows `#validateAffinity`.
pub(super) fn affinity(affinity: &Value, path: Path<'_>, errors: &mut Errors) {
    let node = &affinity["nodeAffinity"];
    let node_path = path.child("nodeAffinity");
    if !node[REQUIRED].is_null() {
        node_selector(&node[REQUIRED], node_path.child(REQUIRED), errors);
    }
    let list = node_path.child(PREFERRED);
    for (at, term) in meta::list(&node[PREFERRED]).enumerate() {
        let path = list.index(at);
        weight(term, path, errors);
        node_term(&term["preference"], false, path.child("preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let owner = path.child(kind);
        let list = owner.child(REQUIRED);
        for (at, term) in meta::list(&affinity[kind][REQUIRED]).enumerate() {
            pod_term(term, list.index(at), errors);
        }
        let list = owner.child(PREFERRED);
        for (at, term) in meta::list(&affinity[kind][PREFERRED]).enumerate() {
            let path = list.index(at);
            weight(term, path, errors);
            pod_term(&term["podAffinityTerm"], path.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: Path<'_>, errors: &mut Errors) {
    let weight = term["weight"].as_i64().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(path.child("weight"), &json!(weight), "must be in the range 1-100"));
    }
}

/// Checks a node selector of required terms. Follows `#ValidateNodeSelector`.
pub(super) fn node_selector(selector: &Value, path: Path<'_>, errors: &mut Errors) {
    let list = path.child("nodeSelectorTerms");
    if meta::is_empty(&selector["nodeSelectorTerms"]) {
        errors.push(FieldError::required(list, "must have at least one node selector term"));
    }
    for (at, term) in meta::list(&selector["nodeSelectorTerms"]).enumerate() {
        node_term(term, true, list.index(at), errors);
    }
}

/// Checks a node selector term. The values of preferred terms need not be valid label values.
/// Follows `#ValidateNodeSelectorTerm`.
fn node_term(term: &Value, is_required: bool, path: Path<'_>, errors: &mut Errors) {
    let list = path.child("matchExpressions");
    for (at, expression) in meta::list(&term["matchExpressions"]).enumerate() {
        let path = list.index(at);
        values(expression, &["In", "NotIn"], &["Exists", "DoesNotExist"], &["Gt", "Lt"], path, errors);
        label_name(text(expression, "key"), path.child("key"), errors);
        let list = path.child("values");
        for (at, value) in meta::list(&expression["values"]).enumerate().filter(|_| is_required) {
            let value = value.as_str().unwrap_or_default();
            invalid_each(list.index(at), value, names::label_value_errors(value), errors);
        }
    }
    let list = path.child("matchFields");
    for (at, field) in meta::list(&term["matchFields"]).enumerate() {
        node_field(field, list.index(at), errors);
    }
}

/// Checks an element of a term's `matchFields`. Follows `#ValidateNodeFieldSelectorRequirement`.
fn node_field(field: &Value, path: Path<'_>, errors: &mut Errors) {
    let (operator, key) = (text(field, "operator"), text(field, "key"));
    if !matches!(operator, "In" | "NotIn") {
        errors.push(FieldError::invalid(path.child("operator"), &json!(operator), "not a valid selector operator"));
    } else if meta::list(&field["values"]).len() != 1 {
        let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
        errors.push(FieldError::required(path.child("values"), detail));
    }
    if key != "metadata.name" {
        errors.push(FieldError::invalid(path.child("key"), &json!(key), "not a valid field selector key"));
        return;
    }
    let list = path.child("values");
    for (at, value) in meta::list(&field["values"]).enumerate() {
        let value = value.as_str().unwrap_or_default();
        invalid_each(list.index(at), value, names::dns1123_subdomain_errors(value), errors);
    }
}

/// Checks a pod affinity term. Follows `#validatePodAffinityTerm`.
fn pod_term(term: &Value, path: Path<'_>, errors: &mut Errors) {
    label_selector(&term["labelSelector"], path.child("labelSelector"), errors);
    label_selector(&term["namespaceSelector"], path.child("namespaceSelector"), errors);
    for namespace in meta::list(&term["namespaces"]).filter_map(Value::as_str) {
        invalid_each(path.child("namespace"), namespace, names::dns1123_label_errors(namespace), errors);
    }
    label_keys(term, path, errors);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(path.child("topologyKey"), "can not be empty"));
    }
    label_name(key, path.child("topologyKey"), errors);
}
