//! The apiVersion and kind of an object. Follows `apimachinery/pkg/runtime/serializer/json/meta.go @v1.36.3`.

use super::DecodeError;
use crate::go::json::Value;
use crate::go::quote::quote;

/// Group and version of the configuration API.
pub(in super::super) const GROUP_VERSION: &str = "kubescheduler.config.k8s.io/v1";
/// Group of the configuration API.
pub(in super::super) const GROUP: &str = "kubescheduler.config.k8s.io";
/// Source position of upstream's scheme, which its messages contain.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Go's name for the type into which apiVersion and kind are decoded.
const META_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The group, version and kind of an object.
#[derive(Debug)]
pub(in super::super) struct Meta {
    pub(in super::super) group: String,
    pub(in super::super) version: String,
    pub(in super::super) kind: String,
}

impl Meta {
    /// Reads apiVersion and kind; the keys are case-insensitive. Follows
    /// `apimachinery/pkg/runtime/serializer/json/meta.go#SimpleMetaFactory.Interpret @v1.36.3`.
    pub(in super::super) fn of(value: &Value) -> Result<Self, DecodeError> {
        let failed = |text: String| DecodeError(format!("couldn't get version/kind; json parse error: {text}"));
        let (mut api_version, mut kind) = ("", "");
        match value {
            Value::Null => {}
            Value::Object(entries) => {
                for (key, value) in entries {
                    let (slot, field) = match key.to_ascii_lowercase().as_str() {
                        "apiversion" => (&mut api_version, "apiVersion"),
                        "kind" => (&mut kind, "kind"),
                        _ => continue,
                    };
                    match value {
                        Value::String(text) => *slot = text,
                        Value::Null => {}
                        other => {
                            let what = other.describe();
                            let text =
                                format!("json: cannot unmarshal {what} into Go struct field .{field} of type string");
                            return Err(failed(text));
                        }
                    }
                }
            }
            other => {
                let text = format!("json: cannot unmarshal {} into Go value of type {META_TYPE}", other.describe());
                return Err(failed(text));
            }
        }
        let (group, version) = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => {
                return Err(DecodeError(format!("unexpected GroupVersion string: {api_version}")));
            }
            Some((group, version)) => (group, version),
            None => ("", api_version),
        };
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }

    pub(in super::super) fn group_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    pub(in super::super) fn not_registered(&self) -> DecodeError {
        let (kind, version) = (quote(&self.kind), quote(&self.group_version()));
        DecodeError(format!("no kind {kind} is registered for version {version} in scheme \"{SCHEME}\""))
    }

    pub(in super::super) fn check_group_version(&self) -> Result<(), DecodeError> {
        if self.group_version() == GROUP_VERSION { Ok(()) } else { Err(self.not_registered()) }
    }
}

/// Checks that a value has this kind and this version of the core group. Missing fields are accepted.
/// Follows `apimachinery/pkg/runtime/serializer/json/json.go#gvkWithDefaults @v1.36.3`.
pub(crate) fn check_meta(value: &Value, version: &str, kind: &str) -> Result<(), DecodeError> {
    let mut meta = Meta::of(value)?;
    if meta.kind.is_empty() {
        kind.clone_into(&mut meta.kind);
    }
    if meta.version.is_empty() && meta.group.is_empty() {
        version.clone_into(&mut meta.version);
    }
    if meta.kind == kind && meta.group_version() == version { Ok(()) } else { Err(meta.not_registered()) }
}
