//! Validation of priority classes.
//!
//! Follows `pkg/apis/scheduling/validation/validation.go @v1.36.3`.

use serde_json::{Value, json};

use super::field::{Errors, Path, immutable, text};
use crate::apimachinery::FieldError;

/// Highest value of a user-defined class, `pkg/apis/scheduling/types.go#HighestUserDefinablePriority @v1.36.3`.
const HIGHEST: i64 = 1_000_000_000;

/// Names and values of the built-in classes. `pkg/apis/scheduling/v1/helpers.go#SystemPriorityClasses @v1.36.3`.
const SYSTEM: [(&str, i64); 2] = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// Checks a new priority class. Follows `#ValidatePriorityClass`. The server creates the built-in classes at startup.
pub(super) fn on_priority_class(class: &Value, errors: &mut Errors) {
    let name = text(&class["metadata"], "name");
    if name.starts_with("system-") {
        let why = match SYSTEM.iter().find(|(known, _)| *known == name) {
            None => format!("{name} is not a known system priority class"),
            Some((_, value)) if class["value"] != *value => {
                format!("value of {name} PriorityClass must be {value}")
            }
            Some(_) if class["globalDefault"] == true => format!("globalDefault of {name} PriorityClass must be false"),
            Some(_) => return,
        };
        let detail =
            format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}");
        errors.push(FieldError::forbidden("metadata.name", detail));
    } else if class["value"].as_i64().is_some_and(|value| value > HIGHEST) {
        let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.push(FieldError::forbidden("value", detail));
    }
    let policy = text(class, "preemptionPolicy");
    if policy.is_empty() {
        errors.push(FieldError::required("preemptionPolicy", ""));
    } else if !matches!(policy, "PreemptLowerPriority" | "Never") {
        let known = ["PreemptLowerPriority", "Never"];
        errors.push(FieldError::not_supported("preemptionPolicy", &json!(policy), &known));
    }
}

/// Checks an updated priority class. Follows `#ValidatePriorityClassUpdate`.
pub(super) fn on_priority_class_update(class: &Value, before: &Value, errors: &mut Errors) {
    if class["value"].as_i64().unwrap_or(0) != before["value"].as_i64().unwrap_or(0) {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    let path = Path::Root("preemptionPolicy");
    immutable(path, &class["preemptionPolicy"], &before["preemptionPolicy"], errors);
}
