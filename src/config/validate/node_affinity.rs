//! Node selectors and preferred scheduling terms.
//!
//! Follows `component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go` and
//! `apimachinery/pkg/labels/selector.go#NewRequirement @v1.36.3`.

use k8s_openapi::api::core::v1::{NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm};

use super::super::text::quote;
use super::field;
use super::names::{label_key, label_value};

const OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const FIELD_OPERATORS: [&str; 2] = ["In", "NotIn"];

/// What is wrong with `affinity`, which is at `path`.
pub(super) fn faults(path: &str, affinity: &NodeAffinity) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(required) = &affinity.required_during_scheduling_ignored_during_execution {
        let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
        for (i, selector) in required.node_selector_terms.iter().enumerate() {
            faults.extend(term(&format!("{path}[{i}]"), selector));
        }
    }
    let preferred = affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten();
    for (i, preferred) in preferred.enumerate().filter(|(_, preferred)| preferred.weight != 0) {
        let path = format!("{path}.preferredDuringSchedulingIgnoredDuringExecution[{i}]");
        faults.extend(term(&path, &preferred.preference));
    }
    faults
}

fn term(path: &str, term: &NodeSelectorTerm) -> Vec<String> {
    let mut faults = Vec::new();
    for (i, requirement) in term.match_expressions.iter().flatten().enumerate() {
        faults.extend(label_requirement(&format!("{path}.matchExpressions[{i}]"), requirement));
    }
    for (i, requirement) in term.match_fields.iter().flatten().enumerate() {
        faults.extend(field_requirement(&format!("{path}.matchFields[{i}]"), requirement));
    }
    faults
}

fn label_requirement(path: &str, requirement: &NodeSelectorRequirement) -> Vec<String> {
    let operator = requirement.operator.as_str();
    if !OPERATORS.contains(&operator) {
        return vec![field::unsupported(&format!("{path}.operator"), operator, &OPERATORS)];
    }
    let mut faults = Vec::new();
    let key = requirement.key.as_str();
    let key_faults = label_key(key);
    if !key_faults.is_empty() {
        faults.push(field::invalid(&format!("{path}.key"), quote(key), &key_faults.join("; ")));
    }
    let values: &[String] = requirement.values.as_deref().unwrap_or_default();
    let path = format!("{path}.values");
    let shown = || field::json_list(requirement.values.as_ref());
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "for 'in', 'notin' operators, values set can't be empty";
            faults.push(field::invalid(&path, shown(), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            faults.push(field::invalid(&path, shown(), "values set must be empty for exists and does not exist"));
        }
        "Gt" | "Lt" => {
            if values.len() != 1 {
                let detail = "for 'Gt', 'Lt' operators, exactly one value is required";
                faults.push(field::invalid(&path, shown(), detail));
            }
            for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                faults.push(field::invalid(&format!("{path}[{i}]"), quote(value), detail));
            }
        }
        _ => {}
    }
    for (i, value) in values.iter().enumerate() {
        let value_faults = label_value(value);
        if !value_faults.is_empty() {
            let detail = value_faults.join("; ");
            faults.push(field::invalid(&format!("{path}[{i}][{key}]"), quote(value), &detail));
        }
    }
    faults
}

fn field_requirement(path: &str, requirement: &NodeSelectorRequirement) -> Option<String> {
    let operator = requirement.operator.as_str();
    if !FIELD_OPERATORS.contains(&operator) {
        return Some(field::unsupported(&format!("{path}.operator"), operator, &FIELD_OPERATORS));
    }
    if requirement.values.as_ref().map_or(0, Vec::len) == 1 {
        return None;
    }
    let shown = field::json_list(requirement.values.as_ref());
    Some(field::invalid(&format!("{path}.values"), shown, "must have one element"))
}
