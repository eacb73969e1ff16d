//! Tests of [`super`].

use super::parse;

fn check(text: &str, expected: &serde_json::Value) {
    let document = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(&document.value.to_json(), expected, "{text}");
    assert_eq!(document.repeated, None, "{text}");
}

fn check_error(text: &str, expected: &str) {
    assert_eq!(parse(text).map(|document| document.value).map_err(|error| error.0), Err(expected.to_owned()), "{text}");
}

fn check_repeated(text: &str, value: &serde_json::Value, expected: &str) {
    let document = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(&document.value.to_json(), value, "{text}");
    assert_eq!(document.repeated.map(|error| error.0).as_deref(), Some(expected), "{text}");
}

#[test]
fn only_plain_scalars_are_resolved() {
    check(
        "a: yes\nb: 'yes'\nc: \"0755\"\nd: 0755\n",
        &serde_json::json!({"a": true, "b": "yes", "c": "0755", "d": 493}),
    );
    check("a: !!str 5\nb: !!float 1\nc: !mine 5\nd: ! 5", &serde_json::json!({"a": "5", "b": 1, "c": "5", "d": "5"}));
    check_error("a: !!int x", "yaml: cannot decode !!str `x` as a !!int");
    check_error("a: !!null 5", "yaml: cannot decode !!int `5` as a !!null");
    check_error("a: !!binary \"?\"", "yaml: !!binary value contains invalid base64 data");
    check("é: [\"yes\", yes, \'no\', ü, no]\n", &serde_json::json!({"é": ["yes", true, "no", "ü", false]}));
    check("a: yes\r\nb: \"a\\\n  yes\"\nc: a\n  yes\n", &serde_json::json!({"a": true, "b": "ayes", "c": "a yes"}));
    check("a: !!binary aGk=", &serde_json::json!({"a": "hi"}));
    check("a: |\n  yes\n", &serde_json::json!({"a": "yes\n"}));
}

#[test]
fn empty_texts_are_null_and_later_documents_unread() {
    check("", &serde_json::Value::Null);
    check("# nothing\n", &serde_json::Value::Null);
    check("---\n", &serde_json::Value::Null);
    check("a: 1\n---\nb: [\n", &serde_json::json!({"a": 1}));
}

#[test]
fn keys_become_strings_in_order() {
    check("b: 1\n1: u\ntrue: v\n1.5: w\n", &serde_json::json!({"b": 1, "1": "u", "true": "v", "1.5": "w"}));
    let document = parse("z: 1\na: 2").expect("reads");
    let super::Value::Object(entries) = document.value else { panic!("an object") };
    assert_eq!(entries.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["a", "z"]);
}

#[test]
fn anchors_and_merges() {
    check("a: &x {k: 1}\nb: *x\n", &serde_json::json!({"a": {"k": 1}, "b": {"k": 1}}));
    check(
        "a: &x {k: 1, l: 2}\nb: {<<: *x, m: 3}\n",
        &serde_json::json!({"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 2, "m": 3}}),
    );
    check("a: {<<: [{k: 1}, {l: 2}]}", &serde_json::json!({"a": {"k": 1, "l": 2}}));
    check_error("a: *x", "yaml: unknown anchor 'x' referenced");
    check_error("a: &x [*x]", "yaml: exceeded max depth");
    check_error("a: {<<: 5}", "yaml: map merge requires map or sequence of maps as the value");
}

#[test]
fn repeated_keys_are_told_by_line() {
    let text = "yaml: unmarshal errors:\n  line 3: key \"a\" already set in map\n  line 4: key 7 already set in map";
    check_repeated("a: 1\n7: v\na: 2\n7: w\n", &serde_json::json!({"a": 2, "7": "w"}), text);
    let text = "yaml: unmarshal errors:\n  line 2: key \"k\" already set in map";
    check_repeated("a: &x {k: 1}\nb: {<<: *x, k: 2}\n", &serde_json::json!({"a": {"k": 1}, "b": {"k": 2}}), text);
}

#[test]
fn syntax_errors_read_as_go_yamls() {
    check_error("a: b: c\n", "yaml: mapping values are not allowed in this context");
    check_error("x: 1\na: b: c\n", "yaml: line 2: mapping values are not allowed in this context");
    check_error("a: [1\n", "yaml: line 1: did not find expected ',' or ']'");
    check_error("\ta: 1\n", "yaml: found character that cannot start any token");
    check_error("a: \u{1}\n", "yaml: control characters are not allowed");
    check_error("a: .nan", "json: unsupported value: NaN");
    check_error("? [a, 1]\n: b", "yaml: invalid map key: []interface {}{\"a\", 1}");
    check_error(
        "~: {a: x}",
        "unsupported map key of type: %!s(<nil>), key: <nil>, value: \
                 map[interface {}]interface {}{\"a\":\"x\"}",
    );
}

#[test]
fn nesting_and_aliasing_are_bounded() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    check_error(&deep, "yaml: exceeded max depth");
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..8 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb = format!("{bomb}a{level}: &a{level} [{items}]\n");
    }
    check_error(&bomb, "yaml: document contains excessive aliasing");
}
