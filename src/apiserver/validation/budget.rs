//! Validation of pod disruption budgets.
//!
//! Follows `pkg/apis/policy/validation/validation.go#ValidatePodDisruptionBudgetSpec @v1.36.3`.

use serde_json::Value;

use super::field::{Errors, Path, non_negative};
use super::scheduling;
use crate::apimachinery::FieldError;

/// Error detail for a string that is not a percentage.
const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

const POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];

/// Checks a new or updated budget.
pub(super) fn check(value: &Value, errors: &mut Errors) {
    let (spec, path) = (&value["spec"], Path::Root("spec"));
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let mut error = FieldError::invalid(path, spec, "minAvailable and maxUnavailable cannot be both set");
        error.value = format!(
            r#"{{"MinAvailable":{},"Selector":{},"MaxUnavailable":{},"UnhealthyPodEvictionPolicy":{}}}"#,
            spec["minAvailable"], spec["selector"], spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]
        );
        errors.push(error);
    }
    for name in ["minAvailable", "maxUnavailable"] {
        non_negative(spec, name, path, errors);
        share(&spec[name], path.child(name), errors);
    }
    if !spec["selector"].is_null() {
        scheduling::label_selector(&spec["selector"], path.child("selector"), errors);
    }
    let policy = &spec["unhealthyPodEvictionPolicy"];
    if policy.as_str().is_some_and(|policy| !POLICIES.contains(&policy)) {
        errors.push(FieldError::not_supported(path.child("unhealthyPodEvictionPolicy"), policy, &POLICIES));
    }
}

/// Checks the updated status of a budget. Follows `#ValidatePodDisruptionBudgetStatusUpdate`.
pub(super) fn check_status(value: &Value, errors: &mut Errors) {
    for key in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        non_negative(&value["status"], key, Path::Root("status"), errors);
    }
}

/// Checks that a string amount is a percentage of at most 100%.
/// Follows `pkg/apis/apps/validation/validation.go#ValidatePositiveIntOrPercent` and `#IsNotMoreThan100Percent @v1.36.3`.
fn share(value: &Value, path: Path<'_>, errors: &mut Errors) {
    let Some(text) = value.as_str() else { return };
    match text.strip_suffix('%').filter(|share| !share.is_empty() && share.bytes().all(|byte| byte.is_ascii_digit())) {
        None => errors.push(FieldError::invalid(path, value, NO_PERCENT)),
        // A number that overflows `i32` is also more than 100.
        Some(share) if share.parse::<i32>().is_ok_and(|share| share <= 100) => {}
        Some(_) => errors.push(FieldError::invalid(path, value, "must not be greater than 100%")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::FeatureGates;

    #[track_caller]
    fn check_spec(spec: &Value, expected: &[&str]) {
        let mut errors = Errors::new(&FeatureGates::default());
        check(&json!({"spec": spec}), &mut errors);
        assert_eq!(errors.into_list().iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn amounts_are_integers_or_percentages() {
        for good in [json!(0), json!(7), json!("0%"), json!("100%")] {
            check_spec(&json!({"minAvailable": good}), &[]);
            check_spec(&json!({"maxUnavailable": good}), &[]);
        }
        for (bad, complaint) in [
            (json!(-1), "-1: must be greater than or equal to 0".to_owned()),
            (json!("many"), format!("\"many\": {NO_PERCENT}")),
            (json!("%"), format!("\"%\": {NO_PERCENT}")),
            (json!("101%"), "\"101%\": must not be greater than 100%".to_owned()),
        ] {
            check_spec(&json!({"minAvailable": bad}), &[&format!("spec.minAvailable: Invalid value: {complaint}")]);
        }
    }

    #[test]
    fn min_available_and_max_unavailable_are_exclusive() {
        check_spec(
            &json!({"minAvailable": 1, "maxUnavailable": 1}),
            &[
                r#"spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set"#,
            ],
        );
    }

    #[test]
    fn unknown_eviction_policies_are_rejected() {
        check_spec(&json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"}), &[]);
        check_spec(
            &json!({"unhealthyPodEvictionPolicy": "Never"}),
            &[
                "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", \"IfHealthyBudget\"",
            ],
        );
    }
}
