//! JSON values as they were written: numbers as literals, members in order, with repeated keys.

/// A JSON value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The value of the word `null`.
    Null,
    /// The word `true` or `false`.
    Bool(bool),
    /// The literal of a number. Messages quote it, and the target type decides how to parse it.
    Number(String),
    /// A string with its escapes resolved.
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

    /// Converts to a `serde_json` value. The last of repeated keys wins.
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

/// Parses a number as an integer if it fits into 64 bits, otherwise as a float.
fn number(literal: &str) -> serde_json::Value {
    if let Ok(integer) = literal.parse::<i64>() {
        return integer.into();
    }
    if let Ok(integer) = literal.parse::<u64>() {
        return integer.into();
    }
    literal.parse::<f64>().ok().and_then(serde_json::Number::from_f64).map_or(serde_json::Value::Null, Into::into)
}
