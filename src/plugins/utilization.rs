//! Curves that map utilization to scores, in the arguments of plugins.
//!
//! Follows `pkg/scheduler/apis/config/types_pluginargs.go#UtilizationShapePoint @v1.36.3`.

use serde::Serialize;

use crate::apimachinery::{FieldErrors, FieldPath};
use crate::config::decode::wire_struct;

/// The highest score that a point of a curve can have.
/// Follows `pkg/scheduler/apis/config/types.go#MaxCustomPriorityScore @v1.36.3`.
pub(super) const MAX_CURVE_SCORE: i32 = 10;

/// One point of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UtilizationShapePoint {
    /// Utilization as a percentage, 0–100.
    pub utilization: i32,
    /// Score at this utilization, 0–10.
    pub score: i32,
}

wire_struct!(UtilizationShapePoint, "v1.UtilizationShapePoint", {
    "utilization" => utilization,
    "score" => score,
});

/// Adds an error for each invalid point of the curve at `path`.
/// Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go#validateFunctionShape @v1.36.3`.
pub(super) fn validate_shape(path: &FieldPath, shape: &[UtilizationShapePoint], errors: &mut FieldErrors) {
    if shape.is_empty() {
        errors.required(path, "at least one point must be specified");
        return;
    }
    if let Some(at) = shape.windows(2).position(|pair| pair[0].utilization >= pair[1].utilization) {
        let detail = "values must be sorted in increasing order";
        errors.invalid(&path.index(at + 1).child("utilization"), shape[at + 1].utilization, detail);
    }
    for (i, point) in shape.iter().enumerate() {
        if !(0..=100).contains(&point.utilization) {
            errors.invalid(&path.index(i).child("utilization"), point.utilization, "not in valid range [0, 100]");
        }
        if !(0..=MAX_CURVE_SCORE).contains(&point.score) {
            errors.invalid(&path.index(i).child("score"), point.score, "not in valid range [0, 10]");
        }
    }
}
