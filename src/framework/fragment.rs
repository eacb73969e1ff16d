//! Parts of pod signatures, as JSON with the same bytes that Go writes.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::PluginError;
use crate::go::json;

/// Part of a pod's signature, as JSON text. Struct fields are in declaration order, map keys are sorted, and the same
/// characters are escaped as in Go's `encoding/json`, so signatures are byte-for-byte equal to upstream's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fragment(Box<str>);

impl Fragment {
    /// Serializes `value` to JSON. Maps must be sorted and have string keys.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, PluginError> {
        json::to_string(value).map(|text| Self(text.into())).map_err(|error| PluginError::new(error.to_string()))
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Value> for Fragment {
    fn from(value: Value) -> Self {
        Self::of(&value).expect("JSON values can be written")
    }
}

impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn map_keys_are_sorted_and_markup_is_escaped() {
        assert_eq!(Fragment::from(json!({"b": "<", "a": []})).to_string(), r#"{"a":[],"b":"\u003c"}"#);
    }
}
