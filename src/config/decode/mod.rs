//! A configuration file's text into wire types, with upstream's strictness and error texts.
//!
//! Text that begins with `{` is JSON, anything else YAML; both become [`Value`]s, which a [`Reader`] puts into the wire
//! types. Follows `apimachinery/pkg/runtime/serializer/json/json.go#Decode`,
//! `apimachinery/pkg/runtime/serializer/versioning/versioning.go#Decode` and
//! `kube-scheduler/config/v1/types.go#DecodeNestedObjects @v1.36.3`.

mod error;
mod nesting;
mod nodes;
mod reader;
mod scalar;
mod size;
mod syntax;
mod tag;
mod yaml;

pub(super) use error::DecodeError;
pub(super) use reader::{Bytes, Raw, Reader, Wire, wire_struct};

use super::wire;
pub(super) use crate::go::json::Value;
use crate::go::json::{self, text as json_text};
use crate::go::quote::quote;

/// The group and version of the configuration API.
pub(super) const GROUP_VERSION: &str = "kubescheduler.config.k8s.io/v1";
const GROUP: &str = "kubescheduler.config.k8s.io";
const KIND: &str = "KubeSchedulerConfiguration";
/// Where upstream registers its kinds, as its messages have it.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// The type that apiVersion and kind are read into, as Go prints it.
const META_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Reads a configuration file's bytes.
pub(super) fn decode(data: &[u8]) -> Result<wire::KubeSchedulerConfiguration, DecodeError> {
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
        let Some(result) = wire::WireArgs::read(&meta.kind, &value) else { return Err(meta.not_registered()) };
        strict.extend(result?.1);
        strict_error(&strict)?;
        return Err(DecodeError(format!("couldn't decode as {KIND}, got {GROUP_VERSION}, Kind={}: ", meta.kind)));
    }
    let (mut config, faults) = Reader::read::<wire::KubeSchedulerConfiguration>(&value)?;
    strict.extend(faults);
    strict.extend(decode_args(&mut config)?);
    strict_error(&strict)?;
    Ok(config)
}

/// The text of `data`, which may be UTF-8 or, with a byte order mark, UTF-16.
pub(super) fn to_text(data: &[u8]) -> Result<String, DecodeError> {
    let wide = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        if bytes.len() % 2 == 1 {
            return Err(DecodeError::from("yaml: incomplete UTF-16 character"));
        }
        let text: Result<String, _> = char::decode_utf16(units).collect();
        text.map_err(|_| DecodeError::from("yaml: unexpected low surrogate area"))
    };
    match data {
        [0xff, 0xfe, rest @ ..] => return wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => return wide(rest, u16::from_be_bytes),
        _ => {}
    }
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    match std::str::from_utf8(data) {
        Ok(text) => Ok(text.to_owned()),
        // Go replaces what is not UTF-8 in JSON, and refuses it in YAML.
        Err(_) if is_json(&String::from_utf8_lossy(data)) => Ok(String::from_utf8_lossy(data).into_owned()),
        Err(error) => {
            let valid = String::from_utf8_lossy(&data[..error.valid_up_to()]);
            // What is no text at all usually fails on an earlier byte.
            let control = valid.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'));
            Err(match (control, error.error_len()) {
                (true, _) => "yaml: control characters are not allowed".into(),
                (false, None) => "yaml: incomplete UTF-8 octet sequence".into(),
                (false, Some(1)) if !matches!(data[error.valid_up_to()], 0xc2..=0xf4) => {
                    "yaml: invalid leading UTF-8 octet".into()
                }
                (false, Some(_)) => "yaml: invalid trailing UTF-8 octet".into(),
            })
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads the YAML documents of a text one after another, each with what strict reading holds against it.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Result<(Value, Option<DecodeError>), DecodeError>> {
    yaml::parse_all(text).map(|document| document.map(|document| (document.value, document.repeated)))
}

/// The value of a text that is YAML even if it looks like JSON; repeated keys are passed over.
pub(super) fn parse_yaml(text: &str) -> Result<Value, DecodeError> {
    yaml::parse(text).map(|document| document.value)
}

/// Whether a value is of a version of the core group and a kind, or does not say.
/// Follows `apimachinery/pkg/runtime/serializer/json/json.go#gvkWithDefaults @v1.36.3`.
pub(super) fn check_meta(value: &Value, version: &str, kind: &str) -> Result<(), DecodeError> {
    let mut meta = Meta::of(value)?;
    if meta.kind.is_empty() {
        kind.clone_into(&mut meta.kind);
    }
    if meta.version.is_empty() && meta.group.is_empty() {
        version.clone_into(&mut meta.version);
    }
    if meta.kind == kind && meta.group_version() == version { Ok(()) } else { Err(meta.not_registered()) }
}

/// The value, and what is held against repeated keys in YAML.
fn parse(text: &str) -> Result<(Value, Option<DecodeError>), DecodeError> {
    if is_json(text) {
        let value = json::parse(text.as_bytes())
            .map_err(|error| DecodeError(format!("couldn't get version/kind; json parse error: {error}")))?;
        return Ok((value, None));
    }
    yaml::parse(text).map(|document| (document.value, document.repeated))
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

/// What an object says it is.
#[derive(Debug)]
struct Meta {
    group: String,
    version: String,
    kind: String,
}

impl Meta {
    /// Reads apiVersion and kind, whatever the case of their keys. Follows
    /// `apimachinery/pkg/runtime/serializer/json/meta.go#SimpleMetaFactory.Interpret @v1.36.3`.
    fn of(value: &Value) -> Result<Self, DecodeError> {
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

    fn group_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn not_registered(&self) -> DecodeError {
        let (kind, version) = (quote(&self.kind), quote(&self.group_version()));
        DecodeError(format!("no kind {kind} is registered for version {version} in scheme \"{SCHEME}\""))
    }

    fn check_group_version(&self) -> Result<(), DecodeError> {
        if self.group_version() == GROUP_VERSION { Ok(()) } else { Err(self.not_registered()) }
    }
}

/// Reads the args of every plugin that has a kind of its own, and returns the faults of strictness. Other plugins' stay
/// as written.
fn decode_args(config: &mut wire::KubeSchedulerConfiguration) -> Result<Vec<String>, DecodeError> {
    let mut strict = Vec::new();
    for (i, profile) in config.profiles.iter_mut().enumerate() {
        for (j, plugin) in profile.plugin_config.iter_mut().enumerate() {
            let place = format!("decoding .profiles[{i}].pluginConfig[{j}]");
            let faults = decode_plugin_args(plugin).map_err(|error| DecodeError(format!("{place}: {error}")))?;
            if let Some(text) = faults {
                strict.push(format!("{place}: {text}"));
            }
        }
    }
    Ok(strict)
}

/// Reads one plugin's args in place; returns what strictness holds against them.
fn decode_plugin_args(plugin: &mut wire::PluginConfig) -> Result<Option<String>, DecodeError> {
    let wanted = format!("{}Args", plugin.name);
    if !wire::WireArgs::KINDS.contains(&wanted.as_str()) {
        return Ok(None);
    }
    let place = format!("decoding args for plugin {}", plugin.name);
    let failed = |error: DecodeError| DecodeError(format!("{place}: {error}"));
    let empty = Value::Object(Vec::new());
    let value = plugin.args.0.as_ref().unwrap_or(&empty);
    let mut meta = Meta::of(value).map_err(failed)?;
    if meta.kind.is_empty() {
        meta.kind.clone_from(&wanted);
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
    let Some(result) = wire::WireArgs::read(&meta.kind, value) else { return Err(failed(meta.not_registered())) };
    let (args, faults) = result.map_err(failed)?;
    if meta.kind != wanted {
        let (name, kind) = (&plugin.name, &meta.kind);
        return Err(DecodeError(format!(
            "args for plugin {name} were not of type {wanted}.{GROUP}, got {kind}.{GROUP}"
        )));
    }
    plugin.typed = Some(args);
    // Upstream wraps the fault of strictness a second time, so its words come twice.
    Ok((!faults.is_empty()).then(|| strict_text(&[format!("{place}: {}", strict_text(&faults))])))
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
