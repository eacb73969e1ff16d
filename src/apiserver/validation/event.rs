//! Validation of new and updated events.

use serde_json::{Value, json};

use crate::apimachinery::FieldError;
use crate::apiserver::kinds::Kind;
use crate::apiserver::meta;
use crate::k8s::names;

/// Returns the errors of a new `events.k8s.io` event in its stored form, without the errors of [`always`].
/// Follows `pkg/apis/core/validation/events.go#ValidateEventCreate @v1.36.3`.
pub(super) fn on_create(event: &Value) -> Vec<FieldError> {
    let mut errors = series_errors(event);
    if meta::is_empty(&event["eventTime"]) {
        errors.push(FieldError::required("eventTime", ""));
    }
    let sort = event["type"].as_str().unwrap_or_default();
    if !matches!(sort, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &json!(""), format!("has invalid value: {sort}")));
    }
    let unset = |field: &str| meta::is_empty(&event[field]);
    let source = &event["deprecatedSource"];
    for (field, is_unset) in [
        ("firstTimestamp", unset("deprecatedFirstTimestamp")),
        ("lastTimestamp", unset("deprecatedLastTimestamp")),
        ("count", unset("deprecatedCount")),
        ("source", meta::is_empty(&source["component"]) && meta::is_empty(&source["host"])),
    ] {
        if !is_unset {
            errors.push(FieldError::invalid(field, &json!(""), "needs to be unset"));
        }
    }
    errors
}

/// Returns the errors of an updated event. Follows `pkg/apis/core/validation/events.go#ValidateEventUpdate @v1.36.3`.
pub(super) fn on_update(event: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if event["series"] != old["series"] {
        errors.extend(series_errors(event));
    }
    let fixed = [
        ("involvedObject", "regarding"),
        ("reason", "reason"),
        ("message", "note"),
        ("source", "deprecatedSource"),
        ("firstTimestamp", "deprecatedFirstTimestamp"),
        ("lastTimestamp", "deprecatedLastTimestamp"),
        ("count", "deprecatedCount"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ];
    for (field, stored) in fixed {
        let (new, old) = (&event[stored], &old[stored]);
        if new != old && !(meta::is_empty(new) && meta::is_empty(old)) {
            errors.push(FieldError::invalid(field, new, "field is immutable"));
        }
    }
    errors
}

fn series_errors(event: &Value) -> Vec<FieldError> {
    let series = &event["series"];
    let mut errors = Vec::new();
    if series.is_object() {
        if series["count"].as_i64().unwrap_or(0) < 2 {
            errors.push(FieldError::invalid("series.count", &json!(""), "should be at least 2"));
        }
        if meta::is_empty(&series["lastObservedTime"]) {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    errors
}

/// Returns the errors of a new or updated event, by the rules that `v1` and `events.k8s.io` share.
/// Follows `pkg/apis/core/validation/events.go#legacyValidateEvent @v1.36.3`.
pub(super) fn always(kind: &Kind, event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = meta::text(event, "namespace");
    let about = event["regarding"]["namespace"].as_str().unwrap_or_default();
    let has_time = !meta::is_empty(&event["eventTime"]);
    let fits = match (has_time, about) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, about) => namespace == about,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !fits {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", &json!(about), detail));
    }
    if !has_time {
        return errors;
    }
    let controller = if kind.is_view() { "reportingComponent" } else { "reportingController" };
    let rules = [
        (controller, "reportingController", true, usize::MAX),
        ("reportingInstance", "reportingInstance", true, 128),
        ("action", "action", true, 128),
        ("reason", "reason", true, 128),
        ("message", "note", false, 1024),
    ];
    for (field, stored, required, limit) in rules {
        let text = event[stored].as_str().unwrap_or_default();
        if required && text.is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        if stored == "reportingController" {
            let complaints = names::qualified_name_errors(text);
            errors.extend(complaints.into_iter().map(|detail| FieldError::invalid(field, &json!(text), detail)));
        }
        if text.len() > limit {
            let detail = format!("can have at most {limit} characters");
            errors.push(FieldError::invalid(field, &json!(""), detail));
        }
    }
    errors
}
