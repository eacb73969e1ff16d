//! Decodes a configuration file into wire types.
//!
//! Follows `apimachinery/pkg/runtime/serializer/json/json.go#Decode`,
//! `apimachinery/pkg/runtime/serializer/versioning/versioning.go#Decode` and
//! `kube-scheduler/config/v1/types.go#DecodeNestedObjects @v1.36.3`.

use super::catalog::PluginCatalog;
use super::decode::{DecodeError, GROUP, GROUP_VERSION, Meta, Reader, parse, to_text};
use super::plugin_args::WrittenArgs;
use super::wire;
use crate::go::json::Value;
use crate::go::json::text as json_text;

/// Kind of the object in a configuration file.
const KIND: &str = "KubeSchedulerConfiguration";

/// Decodes a configuration file. Arguments are decoded into the types that `plugins` has for them.
pub(super) fn decode(data: &[u8], plugins: &PluginCatalog) -> Result<wire::KubeSchedulerConfiguration, DecodeError> {
    let (value, repeated) = parse(&to_text(data)?)?;
    let meta = Meta::of(&value)?;
    let text = String::from_utf8_lossy(data);
    if meta.kind.is_empty() {
        return Err(DecodeError(format!("Object 'Kind' is missing in '{text}'")));
    }
    if meta.version.is_empty() {
        return Err(DecodeError(format!("Object 'apiVersion' is missing in '{text}'")));
    }
    meta.check_group_version()?;
    let mut strict: Vec<String> = repeated.map(|error| error.0).into_iter().collect();
    if meta.kind != KIND {
        let Some(args) = plugins.kind(&meta.kind) else { return Err(meta.not_registered()) };
        strict.extend(args.read(&WrittenArgs(&value))?.1);
        strict_error(&strict)?;
        return Err(DecodeError(format!("couldn't decode as {KIND}, got {GROUP_VERSION}, Kind={}: ", meta.kind)));
    }
    let (mut config, faults) = Reader::read::<wire::KubeSchedulerConfiguration>(&value)?;
    strict.extend(faults);
    strict.extend(decode_args(&mut config, plugins)?);
    strict_error(&strict)?;
    Ok(config)
}

fn strict_error(faults: &[String]) -> Result<(), DecodeError> {
    match faults {
        [] => Ok(()),
        faults => Err(DecodeError(strict_text(faults))),
    }
}

fn strict_text(faults: &[String]) -> String {
    format!("strict decoding error: {}", faults.join(", "))
}

/// Decodes the args of every plugin that has a type for them, and returns the errors of strict decoding. Other plugins' args
/// stay as written.
fn decode_args(
    config: &mut wire::KubeSchedulerConfiguration,
    plugins: &PluginCatalog,
) -> Result<Vec<String>, DecodeError> {
    let mut strict = Vec::new();
    for (i, profile) in config.profiles.iter_mut().enumerate() {
        for (j, plugin) in profile.plugin_config.iter_mut().enumerate() {
            let place = format!("decoding .profiles[{i}].pluginConfig[{j}]");
            let faults =
                decode_plugin_args(plugin, plugins).map_err(|error| DecodeError(format!("{place}: {error}")))?;
            if let Some(text) = faults {
                strict.push(format!("{place}: {text}"));
            }
        }
    }
    Ok(strict)
}

/// Decodes one plugin's args in place. Returns the error of strict decoding, if any.
fn decode_plugin_args(plugin: &mut wire::PluginConfig, plugins: &PluginCatalog) -> Result<Option<String>, DecodeError> {
    let Some(args_type) = plugins.args_of(&plugin.name) else { return Ok(None) };
    let wanted = args_type.kind();
    let place = format!("decoding args for plugin {}", plugin.name);
    let failed = |error: DecodeError| DecodeError(format!("{place}: {error}"));
    let empty = Value::Object(Vec::new());
    let value = plugin.args.0.as_ref().unwrap_or(&empty);
    let mut meta = Meta::of(value).map_err(failed)?;
    if meta.kind.is_empty() {
        wanted.clone_into(&mut meta.kind);
    }
    if meta.group.is_empty() && meta.version.is_empty() {
        GROUP.clone_into(&mut meta.group);
    }
    if meta.group == GROUP && meta.version.is_empty() {
        "v1".clone_into(&mut meta.version);
    }
    if meta.version.is_empty() {
        return Err(failed(DecodeError(format!(
            "Object 'apiVersion' is missing in '{}'",
            json_text(&value.to_json())
        ))));
    }
    meta.check_group_version().map_err(failed)?;
    let given = if meta.kind == wanted { Some(args_type) } else { plugins.kind(&meta.kind) };
    let Some(given) = given else { return Err(failed(meta.not_registered())) };
    let (args, faults) = given.read(&WrittenArgs(value)).map_err(|error| failed(error.into()))?;
    if meta.kind != wanted {
        let (name, kind) = (&plugin.name, &meta.kind);
        return Err(DecodeError(format!(
            "args for plugin {name} were not of type {wanted}.{GROUP}, got {kind}.{GROUP}"
        )));
    }
    plugin.typed = Some(args);
    // Upstream wraps the strict decoding error twice, so its prefix occurs twice.
    Ok((!faults.is_empty()).then(|| strict_text(&[format!("{place}: {}", strict_text(&faults))])))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
