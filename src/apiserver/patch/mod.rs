//! Patches: three ways to say what to change, applied to the newest object.

mod json;
mod keys;
mod merge;
mod strategic;

use std::sync::Arc;

use serde_json::Value;

use super::field_error::FieldError;
use super::kinds::Kind;
use super::object::Object;
use super::status::Status;
use super::store::State;
use super::strict::Directive;
use super::update::{Before, Part};
use super::{events, meta};

/// A patch, parsed.
#[derive(Debug)]
pub(super) enum Patch {
    /// RFC 7386.
    Merge(Value),
    /// The API's own kind, which knows the keys of lists.
    Strategic(Value),
    /// RFC 6902.
    Json(Value),
}

impl Patch {
    /// Reads a body by its content type.
    pub(super) fn parse(content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let wrap = match content_type {
            "application/merge-patch+json" => Self::Merge,
            "application/strategic-merge-patch+json" => Self::Strategic,
            "application/json-patch+json" => Self::Json,
            _ => {
                return Err(Status::unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json",
                ));
            }
        };
        let value = serde_json::from_slice(body)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        Ok(wrap(value))
    }

    /// The object with the patch applied.
    pub(super) fn apply(&self, kind: &Kind, mut target: Value) -> Result<Value, Status> {
        match self {
            Self::Merge(patch) => merge::apply(&mut target, patch),
            Self::Strategic(patch) => strategic::apply(kind, &mut target, patch)?,
            Self::Json(patch) => json::apply(&mut target, patch)?,
        }
        Ok(target)
    }

    /// What messages about members that nobody knows show: the patch, or what it has made of the object.
    /// Follows `apiserver/pkg/endpoints/handlers/patch.go @v1.36.3`, which prints the one as JSON and the other as Go does.
    fn shown(&self, patched: &Value) -> String {
        match self {
            Self::Strategic(patch) => go_text(patch),
            Self::Merge(_) | Self::Json(_) => patched.to_string(),
        }
    }
}

/// A value as Go's `%+v` prints it.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        other => other.to_string(),
    }
}

impl State {
    /// Patches an object.
    pub(super) fn patch(
        &mut self,
        kind: &'static Kind,
        at: (&str, &str),
        part: Part,
        patch: &Patch,
        dry_run: bool,
    ) -> Result<Arc<Object>, Status> {
        self.patch_strictly(kind, at, part, patch, Directive::Unsaid, dry_run).map(|(object, _)| object)
    }

    /// Patches an object, and gives the warnings about members that no object of its kind has.
    pub(super) fn patch_strictly(
        &mut self,
        kind: &'static Kind,
        (namespace, name): (&str, &str),
        part: Part,
        patch: &Patch,
        directive: Directive,
        dry_run: bool,
    ) -> Result<(Arc<Object>, Vec<String>), Status> {
        let old = self.existing(kind, namespace, name)?;
        // A JSON patch may test any field, so it gets to see them all.
        let before = Before::read(old, part, matches!(patch, Patch::Json(_)) || self.settings.exact)?;
        let mut target = before.value().clone();
        events::to_view(kind, &mut target);
        let version = meta::text(&target, "resourceVersion").to_owned();
        let mut value = patch.apply(kind, target)?;
        let warnings = directive.apply(kind, &mut value).map_err(|unknown| unknown.in_patch(&patch.shown(&value)))?;
        if meta::text(&value, "resourceVersion").is_empty() {
            meta::metadata(&mut value).insert("resourceVersion".to_owned(), version.into());
        }
        let own_name = meta::text(&value, "name");
        if own_name != name {
            let error = FieldError::invalid("metadata.name", &own_name.into(), "field is immutable");
            return Err(Status::invalid(kind.group, kind.kind, name, &[error]));
        }
        value = super::decode::typed(kind, value)?;
        events::to_storage(kind, &mut value);
        Ok((self.update(kind, &before, part, value, dry_run)?, warnings))
    }
}
