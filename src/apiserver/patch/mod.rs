//! Patches in requests, applied to the newest version of the object.

mod keys;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use super::create::set_namespace;
use super::kinds::Kind;
use super::object::Object;
use super::part::Part;
use super::schema::sort_of;
use super::store::State;
use super::update::{UpdateBase, check_name};
use super::{events, meta};
use crate::apimachinery::patch::{self, strategic};
use crate::apimachinery::{FieldError, Status};
use crate::go::json::{Source, syntax_error};
use crate::go::print;

/// A parsed patch of one of the supported types.
#[derive(Debug)]
pub(super) enum Patch {
    /// A JSON merge patch (RFC 7386).
    Merge(Value),
    /// A strategic merge patch of the Kubernetes API, which merges lists by keys.
    Strategic(Value),
    /// A JSON patch (RFC 6902).
    Json(Value),
}

impl Patch {
    /// Parses a body according to its content type.
    pub(super) fn parse(content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let wrap = match content_type {
            "application/merge-patch+json" => Self::Merge,
            "application/strategic-merge-patch+json" => Self::Strategic,
            "application/json-patch+json" => Self::Json,
            _ => {
                return Err(Status::unsupported_patch());
            }
        };
        let refuse = |why: &str| {
            // Upstream decodes strategic merge patches in another function, and its errors have no prefix.
            let prefix =
                if content_type == "application/strategic-merge-patch+json" { "" } else { "error decoding patch: " };
            Status::bad_request(format!("{prefix}{why}"))
        };
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| refuse(&syntax_error(body, Source::Unmarshal).unwrap_or_else(|| error.to_string())))?;
        let unmarshal =
            |value: &Value, go: &str| format!("json: cannot unmarshal {} into Go value of type {go}", sort_of(value));
        if content_type == "application/json-patch+json" {
            let operations = value.as_array().ok_or_else(|| refuse(&unmarshal(&value, "[]handlers.jsonPatchOp")))?;
            if let Some(wrong) = operations.iter().find(|operation| !operation.is_object()) {
                return Err(refuse(&unmarshal(wrong, "handlers.jsonPatchOp")));
            }
        } else if value.is_null() && content_type == "application/merge-patch+json" {
            return Err(Status::bad_request("Invalid JSON Patch"));
        } else if !value.is_object() && !value.is_null() {
            return Err(refuse(&unmarshal(&value, "map[string]interface {}")));
        }
        Ok(wrap(value))
    }

    /// Returns the text that stands for the patch in an error about its result: the patch itself or the result.
    fn shown(&self, result: &Value) -> String {
        match self {
            Self::Strategic(patch) => print::plain(patch),
            Self::Merge(_) | Self::Json(_) => result.to_string(),
        }
    }

    /// Returns the object with the patch applied.
    pub(super) fn apply(&self, kind: &Kind, mut target: Value) -> Result<Value, Status> {
        match self {
            Self::Merge(patch) => json_patch::merge(&mut target, patch),
            Self::Strategic(patch) => strategic::apply(kind, &mut target, patch)?,
            Self::Json(patch) => patch::json::apply(&mut target, patch)?,
        }
        Ok(target)
    }
}

/// Returns the error for a patch whose result is not an object of the kind. For a strategic merge patch, upstream shows the
/// patch as Go prints maps. For other patches, it shows the patched object with its members in Go's order.
fn unreadable(shown: &str, status: &Status) -> Status {
    let why = status.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    let why = why.map_or(status.message.as_str(), |(_, why)| why);
    Status::invalid("", "", "", &[FieldError::invalid("patch", shown, why)])
}

impl State {
    /// Patches the newest version of an object.
    pub(super) fn patch(
        &mut self,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        part: Part,
        patch: &Patch,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        let old = self.existing(kind, namespace, name)?;
        // A JSON patch may test any field, so all fields must be read.
        let before = UpdateBase::read(old, part, matches!(patch, Patch::Json(_)) || self.settings.exact)?;
        let mut target = before.value().clone();
        events::to_view(kind, &mut target);
        let version = meta::text(&target, "resourceVersion").to_owned();
        let mut value = patch.apply(kind, target)?;
        if meta::text(&value, "resourceVersion").is_empty() {
            meta::metadata(&mut value).insert("resourceVersion".to_owned(), version.into());
        }
        let shown = patch.shown(&value);
        value = match self.oddities.typed(kind, value) {
            Ok(value) => value,
            Err(status) => return Err(unreadable(&shown, &status)),
        };
        check_name(&value, name)?;
        set_namespace(kind, namespace, &mut value)?;
        events::to_storage(kind, &mut value);
        self.update(kind, &before, part, value, dry_run)
    }
}
