//! The contract for the arguments of plugins, which live with their plugins.
//!
//! ```text
//! pluginConfig[].args ──read_args──▶ A ──set_defaults──▶ A ──validate──▶ factory(A, handle)
//!                        strict          by gates          field errors
//! ```
//!
//! [`PluginArgs`] is a type of arguments. Plugins in the tree and plugins from outside implement it alike. A factory takes
//! anything that is [`FactoryArgs`]: such a type, [`RawArgs`] for arguments without a type, or `()` for none.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::any_args::{AnyArgs, ArgsType};
use super::decode::DecodeError;
use super::gates::FeatureGates;
use crate::apimachinery::{FieldErrors, FieldPath};
use crate::go::json::Value;

/// Arguments of a plugin: how they are called in files, their defaults, and which values are valid.
///
/// A type of a plugin from outside derives `Deserialize` and `Serialize`, with field names in camel case and
/// `#[serde(default)]`, so that fields which a file leaves out come from `Default`. Reading is strict: a field that the
/// type does not have is an error that names its path, and so is one that is given twice. The arguments in `/configz` and
/// in the file of `--write-config-to` are those that the factory gets, with all defaults.
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
    /// The kind of the arguments, such as `NodeResourcesFitArgs`. A file may give it beside
    /// `apiVersion: kubescheduler.config.k8s.io/v1`, and no other kind. By custom it is the plugin's name and `Args`.
    const KIND: &'static str;

    /// Whether the validation of a configuration passes these arguments over, because the plugin's factory validates them.
    const VALIDATED_BY_FACTORY: bool = false;

    /// Fills in the defaults that `Default` cannot know: those that depend on feature gates or on other fields.
    #[expect(unused_variables, reason = "names for implementors")]
    fn set_defaults(&mut self, gates: &FeatureGates) {}

    /// Adds an error for each value that is not valid, in the order of the fields. `path` is the path of the arguments.
    #[expect(unused_variables, reason = "names for implementors")]
    fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors) {}
}

/// Strict reading of arguments from a file. Every type that serde deserializes has it.
pub trait ReadArgs: Sized {
    /// Reads the arguments.
    fn read_args(written: &WrittenArgs<'_>) -> ReadArgsResult<Self>;
}

/// Arguments with a text for each field that is unknown or given twice. The error is that of a value with a wrong type.
pub type ReadArgsResult<A> = Result<(A, Vec<String>), ArgsError>;

/// Arguments as a file has them, `apiVersion` and `kind` included.
#[derive(Debug)]
pub struct WrittenArgs<'a>(pub(crate) &'a Value);

/// The type of a factory's first parameter: a type of arguments, [`RawArgs`], or `()` for a plugin without arguments.
pub trait FactoryArgs: Sized + 'static {
    /// The type of arguments that configurations are read and checked with, if there is one.
    fn args_type() -> Option<ArgsType>;

    /// Takes the arguments out of a configuration.
    fn from_config(args: &AnyArgs) -> Result<Self, ArgsError>;
}

/// Arguments as a file has them, for a plugin without a type of arguments. They are neither checked nor defaulted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawArgs(pub Option<serde_json::Value>);

/// Arguments that do not have the shape that a plugin wants.
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

/// The path of a field that serde did not ask for.
fn field_path(path: &serde_ignored::Path<'_>) -> FieldPath {
    use serde_ignored::Path;
    match path {
        Path::Root => FieldPath::default(),
        Path::Seq { parent, index } => field_path(parent).index(*index),
        Path::Map { parent, key } => field_path(parent).child(key),
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => field_path(parent),
    }
}

/// Adds a text for each field that an object at or under `path` has twice.
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
    /// The arguments as `T`. Absent arguments are read as `null`, and where `T` does not take that, as an empty object, so
    /// that `()`, `Option<T>` and structs whose fields all have defaults work.
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
