//! The traits for plugin arguments. The types of arguments are defined with their plugins.
//!
//! ```text
//! pluginConfig[].args ──read_args──▶ A ──set_defaults──▶ A ──validate──▶ factory(A, handle)
//!                        strict          by gates          field errors
//! ```
//!
//! A type of arguments implements [`PluginArgs`], for in-tree and out-of-tree plugins alike. A factory accepts any type that
//! implements [`FactoryArgs`]: a type of arguments, [`RawArgs`] for arguments without a type, or `()` for no arguments.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::any_args::{AnyArgs, ArgsType};
use super::decode::DecodeError;
use super::gates::FeatureGates;
use crate::apimachinery::{FieldErrors, FieldPath};
use crate::go::json::Value;

/// A plugin's type of arguments: its kind in files, its defaults, and its validation.
///
/// The type of an out-of-tree plugin derives `Deserialize` and `Serialize`, with field names in camel case and
/// `#[serde(default)]`, so that missing fields get their values from `Default`. Decoding is strict: an unknown or repeated
/// field is an error that names the field's path. `/configz` and the file of `--write-config-to` show the arguments that the
/// factory gets, with all defaults.
///
/// ```
/// use kube_scheduler::config::{FeatureGates, PluginArgs};
/// use kube_scheduler::apimachinery::{FieldErrors, FieldPath};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
/// #[serde(rename_all = "camelCase", default)]
/// struct SpreadArgs {
///     max_pods: i32,
/// }
///
/// impl Default for SpreadArgs {
///     fn default() -> Self {
///         Self { max_pods: 10 }
///     }
/// }
///
/// impl PluginArgs for SpreadArgs {
///     const KIND: &'static str = "SpreadArgs";
///
///     fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
///         if self.max_pods < 1 {
///             errors.invalid(&path.child("maxPods"), self.max_pods, "must be greater than 0");
///         }
///     }
/// }
/// ```
pub trait PluginArgs: ReadArgs + Clone + fmt::Debug + Default + PartialEq + Serialize + Send + Sync + 'static {
    /// Kind of the arguments, such as `NodeResourcesFitArgs`. By convention it is the plugin's name followed by `Args`. A file
    /// may set this kind, beside `apiVersion: kubescheduler.config.k8s.io/v1`, but no other kind.
    const KIND: &'static str;

    /// Whether the configuration's validation skips these arguments, because the plugin's factory validates them.
    const VALIDATED_BY_FACTORY: bool = false;

    /// Fills in the defaults that depend on feature gates or on other fields.
    #[expect(unused_variables, reason = "names for implementors")]
    fn set_defaults(&mut self, gates: &FeatureGates) {}

    /// Adds an error for each invalid value, in the order of the fields. `path` is the path of the arguments.
    #[expect(unused_variables, reason = "names for implementors")]
    fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors) {}
}

/// Strict decoding of arguments from a file. Implemented for every type that serde can deserialize.
pub trait ReadArgs: Sized {
    /// Decodes the arguments from a file.
    fn read_args(written: &WrittenArgs<'_>) -> ReadArgsResult<Self>;
}

/// The arguments, with an error text for each unknown or repeated field. `Err` means that a value has the wrong type or
/// is malformed.
pub type ReadArgsResult<A> = Result<(A, Vec<String>), ArgsError>;

/// Arguments as written in a file, including `apiVersion` and `kind`.
#[derive(Debug)]
pub struct WrittenArgs<'a>(pub(crate) &'a Value);

/// The type of a factory's first parameter: a type of arguments, [`RawArgs`], or `()` for a plugin without arguments.
pub trait FactoryArgs: Sized + 'static {
    /// The type with which a configuration's arguments are decoded and validated, if there is one.
    fn args_type() -> Option<ArgsType>;

    /// Gets the arguments from a configuration.
    fn from_config(args: &AnyArgs) -> Result<Self, ArgsError>;
}

/// Arguments as written in a file, for a plugin without a type of arguments. They are neither validated nor defaulted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawArgs(pub Option<serde_json::Value>);

/// The error of arguments that do not fit the plugin's type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgsError(String);

impl From<DecodeError> for ArgsError {
    fn from(error: DecodeError) -> Self {
        Self(error.0)
    }
}

impl From<ArgsError> for DecodeError {
    fn from(error: ArgsError) -> Self {
        Self(error.0)
    }
}

impl<T: DeserializeOwned> ReadArgs for T {
    fn read_args(written: &WrittenArgs<'_>) -> ReadArgsResult<Self> {
        let mut faults = Vec::new();
        repeated_fields(written.0, &FieldPath::default(), &mut faults);
        let mut json = written.0.to_json();
        if let Some(fields) = json.as_object_mut() {
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        let mut unknown = |path: serde_ignored::Path<'_>| faults.push(fault("unknown field", &field_path(&path)));
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(json, &mut track);
        match T::deserialize(serde_ignored::Deserializer::new(tracked, &mut unknown)) {
            Ok(args) => Ok((args, faults)),
            Err(error) => Err(ArgsError(match track.path().to_string().as_str() {
                "." => error.to_string(),
                path => format!("{path}: {error}"),
            })),
        }
    }
}

fn fault(what: &str, path: &FieldPath) -> String {
    format!("{what} {}", crate::go::quote::quote(path.as_str()))
}

/// The path of a field that the type of arguments does not have.
fn field_path(path: &serde_ignored::Path<'_>) -> FieldPath {
    use serde_ignored::Path;
    match path {
        Path::Root => FieldPath::default(),
        Path::Seq { parent, index } => field_path(parent).index(*index),
        Path::Map { parent, key } => field_path(parent).child(key),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => field_path(parent),
    }
}

/// Adds an error text for each repeated field in the objects at or under `path`.
fn repeated_fields(value: &Value, path: &FieldPath, faults: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (at, (key, value)) in entries.iter().enumerate() {
                let path = path.child(key);
                if entries[..at].iter().any(|(earlier, _)| earlier == key) {
                    faults.push(fault("duplicate field", &path));
                }
                repeated_fields(value, &path, faults);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                repeated_fields(item, &path.index(index), faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl<A: PluginArgs> FactoryArgs for A {
    fn args_type() -> Option<ArgsType> {
        Some(ArgsType::of::<A>())
    }

    fn from_config(args: &AnyArgs) -> Result<Self, ArgsError> {
        let wrong = || ArgsError(format!("want args to be of type {}, got {}", A::KIND, args.kind()));
        args.get::<A>().cloned().ok_or_else(wrong)
    }
}

impl FactoryArgs for RawArgs {
    fn args_type() -> Option<ArgsType> {
        None
    }

    fn from_config(args: &AnyArgs) -> Result<Self, ArgsError> {
        let json = || args.to_json().map_err(|error| ArgsError(error.to_string()));
        Ok(Self(if *args == AnyArgs::None { None } else { Some(json()?) }))
    }
}

impl FactoryArgs for () {
    fn args_type() -> Option<ArgsType> {
        None
    }

    fn from_config(_args: &AnyArgs) -> Result<Self, ArgsError> {
        Ok(())
    }
}

impl RawArgs {
    /// Decodes the arguments into `T`. Absent arguments are decoded as `null` or, if `T` does not accept null, as an empty
    /// object. So `()`, `Option<T>` and structs whose fields all have defaults work.
    pub fn decode<T: DeserializeOwned>(self) -> Result<T, ArgsError> {
        let decoded = match self.0 {
            None => serde_json::from_value(serde_json::Value::Null).or_else(|_| serde_json::from_str("{}")),
            Some(json) => serde_json::from_value(json),
        };
        decoded.map_err(|error| ArgsError(format!("cannot read args (raw): {error}")))
    }
}

#[cfg(test)]
mod tests;
