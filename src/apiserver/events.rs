//! Events: one storage that two groups show in different words, and that forgets after an hour.
//!
//! Stored is the form of `events.k8s.io/v1`, which is what a scheduler writes; `core/v1` is the other view.

use bytes::Bytes;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::field_error::FieldError;
use super::kinds::Kind;
use super::meta;
use super::object::Object;
use super::schema;
use super::store::State;
use crate::k8s::names;

/// How long an event is kept. `--event-ttl`, `pkg/controlplane/apiserver/options/options.go#NewOptions @v1.36.3`.
const TTL: SignedDuration = SignedDuration::from_hours(1);

/// What the two groups call the same field: stored name, core name, and whether the core form always prints it.
const NAMES: [(&str, &str); 7] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// The object's bytes as `kind` shows them.
pub(super) fn view(kind: &Kind, object: &Object) -> Bytes {
    if !kind.is_view() || object.raw {
        return object.bytes.clone();
    }
    let mut value = object.value();
    to_view(kind, &mut value);
    value.to_string().into()
}

/// Turns a stored object into `kind`'s form.
pub(super) fn to_view(kind: &Kind, value: &mut Value) {
    if kind.is_view() {
        rename(value, |(stored, core)| (stored, core));
        value["apiVersion"] = json!(kind.api_version());
        schema::complete(schema::Object::of(kind), value);
    }
}

/// Turns an object in `kind`'s form into the stored one.
pub(super) fn to_storage(kind: &Kind, value: &mut Value) {
    if kind.is_view() {
        rename(value, |(stored, core)| (core, stored));
        value["apiVersion"] = json!(kind.storage().api_version());
    }
}

fn rename(value: &mut Value, direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(map) = value.as_object_mut() else { return };
    for names in NAMES {
        let (from, to) = direction(names);
        if let Some(field) = map.remove(from) {
            map.insert(to.to_owned(), field);
        }
    }
}

impl State {
    /// Notes when a written event goes.
    pub(super) fn note_expiry(&mut self, event: &Object) {
        self.expiries.push_back((self.now + TTL, event.key.clone(), event.version));
    }

    /// Removes the events whose time is up.
    pub(super) fn expire_events(&mut self) {
        while let Some((at, key, version)) = self.expiries.front() {
            if *at > self.now {
                break;
            }
            let event = self.find(&super::kinds::EVENTS, key).filter(|event| event.version == *version).cloned();
            self.expiries.pop_front();
            if let Some(event) = event {
                self.remove(&event);
            }
        }
    }
}

/// What is wrong with a new event (in stored form) of `events.k8s.io`, besides what is wrong with any.
/// Follows `pkg/apis/core/validation/events.go#ValidateEventCreate @v1.36.3`.
pub(super) fn validate_create(event: &Value) -> Vec<FieldError> {
    let mut errors = validate_series(event);
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

/// What is wrong with a changed event. Follows `pkg/apis/core/validation/events.go#ValidateEventUpdate`.
pub(super) fn validate_update(event: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if event["series"] != old["series"] {
        errors.extend(validate_series(event));
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

fn validate_series(event: &Value) -> Vec<FieldError> {
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

/// Follows `pkg/apis/core/validation/events.go#legacyValidateEvent`: rules of both groups.
pub(super) fn validate_always(kind: &Kind, event: &Value) -> Vec<FieldError> {
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
