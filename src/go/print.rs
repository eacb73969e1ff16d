//! Values as Go's `%v` prints them.

use serde_json::Value;

/// Formats a JSON value as `%v` prints it after `encoding/json` has decoded it: `map[a:1 b:[x <nil>]]`.
pub fn plain(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn values_are_printed_without_quotes() {
        let value = json!({"b": ["x", null, true], "a": {"c": 1}});
        assert_eq!(super::plain(&value), "map[a:map[c:1] b:[x <nil> true]]");
    }
}
