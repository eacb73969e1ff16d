//! The flags `--feature-gates`, `--emulated-version` and `--min-compatibility-version`.
//!
//! Follows `component-base/compatibility/registry.go#componentGlobalsRegistry.Set`, `#componentGlobalsRegistry.Validate`,
//! `component-base/compatibility/version.go#effectiveVersion.Validate` and
//! `component-base/featuregate/feature_gate.go#unsafeSetFromMap @v1.36.3`. Names are sorted where upstream iterates maps in
//! random order.

use std::collections::BTreeMap;

use super::{BINARY_MINOR, FeatureGates, Gate, OLDEST_MINOR, Stage};
use crate::apimachinery::field_error::aggregate;
use crate::go::quote::quote;

/// The error of invalid flags. Several errors are joined to `[a, b]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

/// The values of the flags, one item for each occurrence of a flag.
#[derive(Clone, Copy, Debug, Default)]
pub struct GateFlags<'a> {
    /// `--feature-gates`: comma lists of `[component:]Name=bool`.
    pub feature_gates: &'a [String],
    /// `--emulated-version`: comma lists of `[component=]major.minor`.
    pub emulated_version: &'a [String],
    /// `--min-compatibility-version`: comma lists of `[component=]major.minor`.
    pub min_compatibility_version: &'a [String],
}

/// Major and minor version.
type Version = (u64, u64);

impl FeatureGates {
    /// Applies the flags to the default gates.
    pub fn from_flags(flags: GateFlags<'_>) -> Result<Self, GateError> {
        let emulated = component_version(flags.emulated_version)?;
        let oldest: Version = (1, u64::from(OLDEST_MINOR));
        let binary: Version = (1, u64::from(BINARY_MINOR));
        let emulated = emulated.unwrap_or(binary);
        let lowest = (emulated.0, emulated.1.saturating_sub(1)).max(oldest);
        let compatible = component_version(flags.min_compatibility_version)?.unwrap_or(lowest);
        let values = split_gates(flags.feature_gates)?;
        check_versions(emulated, compatible)?;
        let minor = u8::try_from(emulated.1).unwrap_or(BINARY_MINOR);
        apply(&parse_values(&values)?, minor, compatible)
    }
}

/// The `Name=bool` pairs of component `kube`, as written. The component may be omitted, but only in all pairs or in none.
fn split_gates(flags: &[String]) -> Result<Vec<String>, GateError> {
    let mut by_component: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for pair in flags.iter().flat_map(|flag| flag.split(',')).filter(|pair| !pair.is_empty()) {
        let (component, value) = pair.split_once(':').unwrap_or(("", pair));
        by_component.entry(component.trim()).or_default().push(value.trim().to_owned());
    }
    if by_component.contains_key("") && by_component.contains_key("kube") {
        let text = "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use";
        return Err(GateError(text.to_owned()));
    }
    if let Some(other) = by_component.keys().find(|component| !matches!(**component, "" | "kube")) {
        return Err(GateError(format!("component not registered: {other}")));
    }
    Ok(by_component.into_values().next().unwrap_or_default())
}

/// Parses a list of `Name=bool` pairs. If a name is repeated, its last value is used.
fn parse_values(pairs: &[String]) -> Result<BTreeMap<&str, bool>, GateError> {
    let mut values = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(GateError(format!("missing bool value for {}", pair.trim())));
        };
        let (name, value) = (name.trim(), value.trim());
        let on = crate::go::number::parse_bool(value)
            .map_err(|error| GateError(format!("invalid value of {name}={value}, err: {error}")))?;
        values.insert(name, on);
    }
    Ok(values)
}

fn apply(values: &BTreeMap<&str, bool>, minor: u8, compatible: Version) -> Result<FeatureGates, GateError> {
    let mut wanted = BTreeMap::new();
    let mut errors = Vec::new();
    for (name, on) in values {
        let Some(gate) = Gate::find(name) else {
            return Err(GateError(format!("unrecognized feature gate: {name}")));
        };
        let spec = gate.spec(minor);
        if spec.locked && spec.default != *on {
            let text = format!("cannot set feature gate {name} to {on}, feature is locked to {}", spec.default);
            errors.push(text);
        } else if spec.stage == Stage::PreAlpha {
            errors.push(format!(
                "cannot set feature gate {name} to {on}, feature is PreAlpha at emulated version 1.{minor}, \
                 min compatibility version {}.{}",
                compatible.0, compatible.1
            ));
        } else {
            wanted.insert(gate, *on);
        }
    }
    finish(errors)?;
    switch_stages(&mut wanted, minor);
    let mut gates = FeatureGates::at(minor);
    for (gate, on) in &wanted {
        gates.set(*gate, *on);
    }
    finish(unmet_dependencies(&gates))?;
    finish(unsupported(&wanted))?;
    Ok(gates)
}

/// Applies `AllAlpha` and `AllBeta` to each gate of their stage that is not set explicitly.
fn switch_stages(wanted: &mut BTreeMap<Gate, bool>, minor: u8) {
    for (switch, stage) in [(Gate::AllAlpha, Stage::Alpha), (Gate::AllBeta, Stage::Beta)] {
        let Some(on) = wanted.get(&switch).copied() else { continue };
        for gate in Gate::ALL.iter().filter(|gate| !matches!(gate, Gate::AllAlpha | Gate::AllBeta)) {
            if gate.stage(minor) == stage {
                wanted.entry(*gate).or_insert(on);
            }
        }
    }
}

fn unmet_dependencies(gates: &FeatureGates) -> Vec<String> {
    let mut errors = Vec::new();
    for gate in Gate::ALL.iter().filter(|gate| gates.enabled(**gate)) {
        let off = gate.row().needs.iter().filter(|need| !gates.enabled(**need)).map(|need| need.name());
        let off: Vec<&str> = off.collect();
        if !off.is_empty() {
            let name = gate.name();
            errors.push(format!("{name} is enabled, but depends on features that are disabled: [{}]", off.join(" ")));
        }
    }
    errors
}

/// Errors for requested values that are not implemented yet, so that nobody relies on them.
fn unsupported(wanted: &BTreeMap<Gate, bool>) -> Vec<String> {
    let refused = wanted.iter().filter(|(gate, on)| !gate.row().supported && **on != gate.default_on());
    let texts = refused.map(|(gate, on)| match on {
        true => format!("{} is not supported yet", gate.name()),
        false => format!("{}=false is not supported yet", gate.name()),
    });
    texts.collect()
}

fn finish(errors: Vec<String>) -> Result<(), GateError> {
    match errors.len() {
        0 => Ok(()),
        _ => Err(GateError(aggregate(errors))),
    }
}

/// The version of component `kube` in a list of `[component=]major.minor` pairs.
fn component_version(flags: &[String]) -> Result<Option<Version>, GateError> {
    let mut found: BTreeMap<&str, Version> = BTreeMap::new();
    for pair in flags.iter().filter(|flag| !flag.is_empty()).flat_map(|flag| flag.split(',')) {
        let (component, text) = match pair.split_once('=') {
            Some((component, text)) => (component.trim(), text.trim()),
            None => ("kube", pair),
        };
        let version = parse_version(component, text)?;
        if let Some(earlier) = found.insert(component, version) {
            let print = |version: Version| format!("{component}={}.{}", version.0, version.1);
            return Err(GateError(format!("duplicate version flag, {} and {}", print(earlier), print(version))));
        }
    }
    match found.keys().find(|component| **component != "kube") {
        Some(other) => Err(GateError(format!("component not registered: {other}"))),
        None => Ok(found.get("kube").copied()),
    }
}

/// Parses a version without pre-release parts. Follows `apimachinery/pkg/util/version/version.go#Parse @v1.36.3`.
fn parse_version(component: &str, text: &str) -> Result<Version, GateError> {
    let illegal = || GateError(format!("illegal version string {}", quote(text)));
    let trimmed = text.trim();
    let digits = trimmed.strip_prefix('v').unwrap_or(trimmed);
    let end = digits.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(digits.len());
    let parts: Vec<&str> = digits[..end].trim_end_matches('.').split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(GateError(format!("could not parse {} as version", quote(text))));
    }
    let [major, minor, rest @ ..] = parts.as_slice() else { return Err(illegal()) };
    if major.len() > 1 && major.starts_with('0') {
        let texts = format!("illegal zero-prefixed version component {} in {}", quote(major), quote(text));
        return Err(GateError(texts));
    }
    let number = |part: &str| part.parse::<u64>().map_err(|_| illegal());
    let version = (number(major)?, number(minor)?);
    if rest.first().is_some_and(|patch| number(patch).is_ok_and(|patch| patch != 0)) {
        let full = parts.join(".");
        return Err(GateError(format!("patch version not allowed, got: {component}={full}")));
    }
    Ok(version)
}

fn check_versions(emulated: Version, compatible: Version) -> Result<(), GateError> {
    let oldest = (1, u64::from(OLDEST_MINOR));
    let mut errors = Vec::new();
    if emulated > (1, u64::from(BINARY_MINOR)) || emulated < oldest {
        let (major, minor) = emulated;
        errors.push(format!("emulation version {major}.{minor} is not between [1.{OLDEST_MINOR}, 1.{BINARY_MINOR}.0]"));
    }
    if compatible > emulated || compatible < oldest {
        errors.push(format!(
            "minCompatibilityVersion version {}.{} is not between [1.{OLDEST_MINOR}, {}.{}]",
            compatible.0, compatible.1, emulated.0, emulated.1
        ));
    }
    finish(errors)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
