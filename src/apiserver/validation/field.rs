//! Field paths, the list of errors, and checks that several kinds use.

use std::fmt;

use serde_json::Value;

use crate::apimachinery::FieldError;
use crate::config::{FeatureGates, Gate};

/// Validation errors in the order in which they were found, with the feature gates that decide which rules apply.
pub(super) struct Errors {
    gates: FeatureGates,
    found: Vec<FieldError>,
}

impl Errors {
    /// Creates an empty list.
    pub(super) fn new(gates: &FeatureGates) -> Self {
        Self { gates: *gates, found: Vec::new() }
    }

    /// Whether a feature gate is on.
    pub(super) fn enabled(&self, gate: Gate) -> bool {
        self.gates.enabled(gate)
    }

    /// Turns a gate on, for an object that already uses its feature.
    pub(super) fn enable(&mut self, gate: Gate) {
        self.gates = self.gates.with(gate, true);
    }

    /// Adds an error to the list.
    pub(super) fn push(&mut self, error: FieldError) {
        self.found.push(error);
    }

    /// Returns the number of errors.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are no errors.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the errors that were added after the first `count`.
    pub(super) fn after(&mut self, count: usize) -> &mut [FieldError] {
        &mut self.found[count..]
    }

    /// Returns the errors as a list.
    pub(super) fn into_list(self) -> Vec<FieldError> {
        self.found
    }
}

impl Extend<FieldError> for Errors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        self.found.extend(errors);
    }
}

/// Path of a field, formatted only when an error needs it.
#[derive(Clone, Copy)]
pub(super) enum Path<'a> {
    Root(&'a str),
    Child(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    pub(super) fn child(&'a self, name: &'a str) -> Self {
        Self::Child(self, name)
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Child(parent, name) => write!(f, "{parent}.{name}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

/// Returns a string member of an object, or "" if the member is absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Adds an error if the number at `key` is negative.
/// Follows `apimachinery/pkg/api/validation/generic.go#ValidateNonnegativeField @v1.36.3`.
pub(super) fn non_negative(owner: &Value, key: &str, path: Path<'_>, errors: &mut Errors) {
    if owner[key].as_i64().is_some_and(|number| number < 0) {
        errors.push(FieldError::invalid(path.child(key), &owner[key], "must be greater than or equal to 0"));
    }
}

/// Adds an error if a field has changed.
/// Follows `apimachinery/pkg/api/validation/objectmeta.go#ValidateImmutableField @v1.36.3`.
pub(super) fn immutable(path: impl fmt::Display, new: &Value, old: &Value, errors: &mut Errors) {
    if new != old {
        errors.push(FieldError::invalid(path, new, "field is immutable"));
    }
}

/// Writes the difference of two values to `out`. Each removed and each added member is one line.
///
/// Upstream prints Go values. These lines show the same members as JSON.
pub(super) fn difference(path: &str, old: &Value, new: &Value, out: &mut String) {
    use std::fmt::Write as _;
    if old == new {
        return;
    }
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            difference(&inner, old.get(key).unwrap_or(&Value::Null), new.get(key).unwrap_or(&Value::Null), out);
        }
        return;
    }
    for (sign, value) in [('-', old), ('+', new)] {
        if !value.is_null() {
            writeln!(out, "{sign} {path}: {value}").expect("a String takes every write");
        }
    }
}
