//! Validation, as far as scheduling depends on it, with upstream's texts.
//!
//! Follows `pkg/apis/core/validation/validation.go` and its siblings `@v1.36.3`.

use serde_json::Value;

use super::create::Origin;
use super::events;
use super::kinds::{EVENTS, Kind};
use super::status::FieldError;
use super::update::Part;

/// What is wrong with a new object.
pub(super) fn on_create(kind: &Kind, value: &Value, origin: Origin) -> Vec<FieldError> {
    if origin == Origin::Dump {
        return Vec::new();
    }
    if kind.slot == EVENTS.slot {
        return events::validate_create(kind, value);
    }
    Vec::new()
}

/// What is wrong with a changed object.
pub(super) fn on_update(kind: &Kind, part: Part, value: &mut Value, before: &Value) -> Vec<FieldError> {
    if kind.slot == EVENTS.slot && part == Part::Main {
        return events::validate_update(kind, value, before);
    }
    Vec::new()
}
