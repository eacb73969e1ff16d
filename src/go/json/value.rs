//! JSON values that keep how they were written: numbers by their literal, members in order, repeated keys.

/// A JSON value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The value of the word `null`.
    Null,
    /// The word `true` or `false`.
    Bool(bool),
    /// The literal, since messages quote it and only the target decides how it is read.
    Number(String),
    /// A text, without its escapes.
    String(String),
    /// The elements of an array.
    Array(Vec<Value>),
    /// The members of an object, in the order of the text.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// The name of the value's type in messages of `encoding/json`.
    pub fn describe(&self) -> &'static str {
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
    pub fn to_json(&self) -> serde_json::Value {
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
