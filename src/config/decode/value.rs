//! A JSON value as it was written: numbers as their literal, objects in order, repeated keys kept.

use std::fmt;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// The literal, since messages quote it and only the target decides how it is read.
    Number(String),
    String(String),
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// What messages call it.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }

    /// The same as a `serde_json` value; of repeated keys the last counts.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Number(literal) => number(literal),
            Self::String(text) => Json::String(text.clone()),
            Self::Array(items) => Json::Array(items.iter().map(Self::to_json).collect()),
            Self::Object(entries) => {
                Json::Object(entries.iter().map(|(key, value)| (key.clone(), value.to_json())).collect())
            }
        }
    }
}

/// An integer where the literal is one that fits 64 bits, otherwise a float.
fn number(literal: &str) -> serde_json::Value {
    if let Ok(integer) = literal.parse::<i64>() {
        return integer.into();
    }
    if let Ok(integer) = literal.parse::<u64>() {
        return integer.into();
    }
    literal.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map_or(serde_json::Value::Null, Into::into)
}

/// Why a document cannot be read; the text upstream prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodeError(pub(crate) String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for DecodeError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for DecodeError {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
