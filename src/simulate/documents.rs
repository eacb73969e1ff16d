//! Splits a file's text into documents: a stream of JSON values, or YAML.

use serde_json::Value;

use super::json::UniqueKeys;
use super::yaml;

/// Parses the documents of a text, up to the first that is invalid.
///
/// A text that begins with `{` is a stream of JSON values. If it is not a valid stream, it is YAML, which may begin like that,
/// too: JSON values between lines of `---` are YAML documents. Follows
/// `apimachinery/pkg/util/yaml/decoder.go#YAMLOrJSONDecoder @v1.36.3`, which `kubectl` reads with. `read` is called with the
/// number of bytes read since the last call.
pub(super) fn documents<'a>(
    text: &'a str,
    read: &'a mut dyn FnMut(usize),
) -> Box<dyn Iterator<Item = Result<Value, String>> + 'a> {
    let Some(members) = text.trim_start().strip_prefix('{') else { return Box::new(yaml::documents(text, read)) };
    let values: Vec<Result<Value, String>> = json(text).collect();
    if values.iter().all(Result::is_ok) {
        return Box::new(values.into_iter());
    }
    // The text is neither valid JSON nor valid YAML. Quoted keys suggest that it is meant to be JSON.
    if members.trim_start().starts_with('"') && yaml::documents(text, |_| ()).any(|document| document.is_err()) {
        return Box::new(values.into_iter());
    }
    Box::new(yaml::documents(text, read))
}

/// Parses JSON values up to the first that is invalid. A repeated key is an error.
fn json(text: &str) -> impl Iterator<Item = Result<Value, String>> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<UniqueKeys>();
    let mut has_failed = false;
    std::iter::from_fn(move || {
        let value = stream.next().filter(|_| !has_failed)?;
        has_failed = value.is_err();
        Some(value.map(|UniqueKeys(value)| value).map_err(|error| error.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, expected: &[Result<Value, &str>]) {
        let found: Vec<Result<Value, String>> = documents(text, &mut |_| ()).collect();
        let expected: Vec<Result<Value, String>> =
            expected.iter().map(|document| document.clone().map_err(str::to_owned)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn json_and_yaml_are_distinguished() {
        let (a, b) = (|| Ok(json!({"a": 1})), || Ok(json!({"b": 2})));
        check("{\"a\": 1}\n{\"b\": 2}", &[a(), b()]);
        check("{\"a\": 1} {\"b\": 2}", &[a(), b()]);
        check("{\"a\": 1}\n---\n{\"b\": 2}\n", &[a(), b()]);
        check("{a: 1}\n---\nb: 2\n", &[a(), b()]);
        check("\n {a: 1}", &[a()]);
        check("a: 1\n---\n{\"b\": 2}\n", &[a(), b()]);
        check("[1]", &[Ok(json!([1]))]);
    }

    #[test]
    fn malformed_documents_fail_as_json_or_yaml() {
        check("{\"a\": 1}\n{\"b\":\n ]", &[Ok(json!({"a": 1})), Err("expected value at line 3 column 2")]);
        check("{\"a\": 1, \"a\": 2}", &[Err("duplicate key \"a\" at line 1 column 12")]);
        check("{a: 1}\n---\n{b: [}\n", &[Ok(json!({"a": 1})), Err("yaml: line 3: did not find expected node content")]);
    }
}
