//! Matching of tolerations against taints.

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// Returns whether `toleration` tolerates `taint`. An empty effect matches every effect, and an empty key every key. `Lt` and
/// `Gt` compare the taint's value with the toleration's as integers, and match only if `comparison_operators` (the feature gate
/// `TaintTolerationComparisonOperators`) is set. Unknown operators match nothing.
/// Follows `api/core/v1/toleration.go#Toleration.ToleratesTaint @v1.36.3`.
pub fn tolerates(toleration: &Toleration, taint: &Taint, comparison_operators: bool) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    let key = toleration.key.as_deref().unwrap_or_default();
    if !key.is_empty() && key != taint.key {
        return false;
    }
    let value = toleration.value.as_deref().unwrap_or_default();
    let taint_value = taint.value.as_deref().unwrap_or_default();
    match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => value == taint_value,
        "Exists" => true,
        "Lt" if comparison_operators => compare(value, taint_value, |limit, actual| actual < limit),
        "Gt" if comparison_operators => compare(value, taint_value, |limit, actual| actual > limit),
        _ => false,
    }
}

/// Returns whether any of `tolerations` tolerates `taint`.
/// Follows `component-helpers/scheduling/corev1/helpers.go#TolerationsTolerateTaint @v1.36.3`.
pub fn tolerated(tolerations: &[Toleration], taint: &Taint, comparison_operators: bool) -> bool {
    tolerations.iter().any(|toleration| tolerates(toleration, taint, comparison_operators))
}

/// Returns the first taint for which `counts` is true and that no toleration tolerates.
/// Follows `component-helpers/scheduling/corev1/helpers.go#FindMatchingUntoleratedTaint @v1.36.3`.
pub fn find_untolerated_taint<'a>(
    taints: &'a [Taint],
    tolerations: &[Toleration],
    counts: impl Fn(&Taint) -> bool,
    comparison_operators: bool,
) -> Option<&'a Taint> {
    taints.iter().find(|taint| counts(taint) && !tolerated(tolerations, taint, comparison_operators))
}

/// Returns whether the taint prevents scheduling: its effect is `NoSchedule` or `NoExecute`.
/// Follows `pkg/scheduler/framework/plugins/helper/taint.go#DoNotScheduleTaintsFilterFunc @v1.36.3`.
pub fn do_not_schedule(taint: &Taint) -> bool {
    matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
}

fn compare(limit: &str, actual: &str, holds: fn(i64, i64) -> bool) -> bool {
    matches!((decimal_integer(limit), decimal_integer(actual)), (Some(limit), Some(actual)) if holds(limit, actual))
}

/// Parses an integer in canonical decimal form: no plus sign, no leading zeros, no `-0`.
/// Follows `apimachinery/pkg/api/validate/content/decimal_int.go#IsDecimalInteger @v1.36.3`.
fn decimal_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = match digits.as_bytes() {
        [b'0'] => text == "0",
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if is_canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{Taint, Toleration, decimal_integer, do_not_schedule, find_untolerated_taint, tolerates};

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint { key: key.to_owned(), value: Some(value.to_owned()), effect: effect.to_owned(), time_added: None }
    }

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Toleration {
            key: some(key),
            operator: some(operator),
            value: some(value),
            effect: some(effect),
            ..Toleration::default()
        }
    }

    #[test]
    fn key_effect_and_value_must_match() {
        let check = |toleration: Toleration, taint: Taint, expected: bool| {
            assert_eq!(tolerates(&toleration, &taint, false), expected, "{toleration:?} {taint:?}");
        };
        let gpu = || taint("gpu", "a", "NoSchedule");
        check(toleration("gpu", "", "a", "NoSchedule"), gpu(), true);
        check(toleration("gpu", "Equal", "a", ""), gpu(), true);
        check(toleration("gpu", "Equal", "b", ""), gpu(), false);
        check(toleration("gpu", "Exists", "", "NoExecute"), gpu(), false);
        check(toleration("gpu", "Exists", "", "NoSchedule"), gpu(), true);
        check(toleration("cpu", "Exists", "", ""), gpu(), false);
        check(toleration("", "Exists", "", ""), gpu(), true);
        check(toleration("", "", "a", ""), gpu(), true);
        check(toleration("", "", "", ""), taint("gpu", "", "NoSchedule"), true);
        check(toleration("gpu", "Equal", "", ""), Taint { value: None, ..gpu() }, true);
        check(toleration("gpu", "In", "a", ""), gpu(), false);
    }

    #[test]
    fn comparison_operators_need_their_gate_and_integers() {
        let check = |operator: &str, limit: &str, actual: &str, expected: bool| {
            let (toleration, taint) = (toleration("k", operator, limit, ""), taint("k", actual, "NoSchedule"));
            assert_eq!(tolerates(&toleration, &taint, true), expected, "{actual} {operator} {limit}");
            assert!(!tolerates(&toleration, &taint, false), "{actual} {operator} {limit} without the feature");
        };
        check("Gt", "5", "6", true);
        check("Gt", "5", "5", false);
        check("Lt", "5", "4", true);
        check("Lt", "5", "5", false);
        check("Lt", "-5", "-6", true);
        check("Gt", "05", "6", false);
        check("Gt", "5", "6.0", false);
        check("Gt", "", "6", false);
        check("Gt", "9223372036854775808", "6", false);
        check("Lt", "9223372036854775807", "-9223372036854775808", true);
    }

    #[test]
    fn only_canonical_integers_are_parsed() {
        for (text, expected) in [("0", Some(0)), ("-1", Some(-1)), ("10", Some(10))] {
            assert_eq!(decimal_integer(text), expected, "{text}");
        }
        for text in ["", "-", "-0", "00", "+1", "1a", "é", "--1", "99999999999999999999"] {
            assert_eq!(decimal_integer(text), None, "{text}");
        }
    }

    #[test]
    fn first_untolerated_taint_with_a_counted_effect_is_found() {
        let taints = [taint("a", "", "PreferNoSchedule"), taint("b", "", "NoSchedule"), taint("c", "", "NoExecute")];
        let find = |tolerations: &[Toleration]| {
            find_untolerated_taint(&taints, tolerations, do_not_schedule, false).map(|taint| taint.key.as_str())
        };
        assert_eq!(find(&[]), Some("b"));
        assert_eq!(find(&[toleration("b", "Exists", "", "")]), Some("c"));
        assert_eq!(find(&[toleration("", "Exists", "", "")]), None);
        assert_eq!(find(&[toleration("b", "Exists", "", ""), toleration("c", "Exists", "", "")]), None);
    }
}
