//! Tests of the YAML parser in [`super`].

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
fn empty_text_is_null_and_only_the_first_document_is_read() {
    check("", &serde_json::Value::Null);
    check("# nothing\n", &serde_json::Value::Null);
    check("---\n", &serde_json::Value::Null);
    check("a: 1\n---\nb: [\n", &serde_json::json!({"a": 1}));
}

#[test]
fn keys_become_sorted_strings() {
    check("b: 1\n1: u\ntrue: v\n1.5: w\n", &serde_json::json!({"b": 1, "1": "u", "true": "v", "1.5": "w"}));
    let document = parse("z: 1\na: 2").expect("reads");
    let super::Value::Object(entries) = document.value else { panic!("an object") };
    assert_eq!(entries.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["a", "z"]);
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
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
fn repeated_keys_are_reported_by_line() {
    let text = "yaml: unmarshal errors:\n  line 3: key \"a\" already set in map\n  line 4: key 7 already set in map";
    check_repeated("a: 1\n7: v\na: 2\n7: w\n", &serde_json::json!({"a": 2, "7": "w"}), text);
    let text = "yaml: unmarshal errors:\n  line 2: key \"k\" already set in map";
    check_repeated("a: &x {k: 1}\nb: {<<: *x, k: 2}\n", &serde_json::json!({"a": {"k": 1}, "b": {"k": 2}}), text);
}

#[test]
fn own_keys_override_merged_keys() {
    let check = |text: &str, expected: Result<serde_json::Value, &str>| {
        let mut documents = super::parse_all(text).map(|document| document.expect("reads"));
        let document = documents.next().expect("a document");
        let found = document.repeated.map_or(Ok(document.value.to_json()), |error| Err(error.0));
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    };
    check("a: &x {k: 1}\nb: {<<: *x, k: 2}\n", Ok(serde_json::json!({"a": {"k": 1}, "b": {"k": 2}})));
    check("a: {<<: [{k: 1, l: 2}, {l: 3}], k: 4}", Ok(serde_json::json!({"a": {"k": 4, "l": 2}})));
    let repeated = |line: usize| format!("yaml: unmarshal errors:\n  line {line}: key \"k\" already set in map");
    check("a: {<<: {l: 1}, k: 2, k: 3}", Err(&repeated(1)));
    check("a: {<<: {k: 1,\n k: 2}}", Err(&repeated(2)));
}

#[test]
fn syntax_errors_equal_go_yamls() {
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
fn excessive_nesting_and_aliasing_are_errors() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    check_error(&deep, "yaml: exceeded max depth");
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..8 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb = format!("{bomb}a{level}: &a{level} [{items}]\n");
    }
    check_error(&bomb, "yaml: document contains excessive aliasing");
}

#[test]
fn huge_nested_or_aliased_input_is_rejected_quickly() {
    let nested = |open: &str, close: &str| format!("a: {}{}", open.repeat(100_000), close.repeat(100_000));
    check_error(&nested("[", "]"), "yaml: exceeded max depth");
    check_error(&nested("{a: ", "}"), "yaml: exceeded max depth");
    let aliases = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), "*a, ".repeat(1000));
    check_error(&aliases, "yaml: document contains excessive aliasing");
    // The time for this input was once proportional to the product of spaces and aliases.
    let spaced = format!("a: &a{}v\nb: [{}]\n", " ".repeat(200_000), "*a, ".repeat(100_000));
    parse(&spaced).expect("reads");
    let document = parse(&"a: 1\n".repeat(20_000)).expect("reads");
    let faults = document.repeated.expect("repeated keys").0;
    assert!(faults.ends_with("\n  line 11: key \"a\" already set in map\n  and 19989 more"), "{faults}");
}

#[test]
fn brackets_in_block_scalars_do_not_count_as_nesting() {
    let block = "a: |\n".to_owned() + &"  log: [[ {\n".repeat(1000) + "b: 1\n";
    assert_eq!(parse(&block).expect("reads").value.to_json()["b"], 1);
}

fn check_all(text: &str, expected: &[Result<serde_json::Value, &str>]) {
    let documents: Vec<_> =
        super::parse_all(text).map(|document| document.map(|document| document.value.to_json())).collect();
    let documents: Vec<_> = documents.iter().map(|document| document.as_ref().map_err(|error| &*error.0)).collect();
    let expected: Vec<_> = expected.iter().map(|document| document.as_ref().map_err(|error| *error)).collect();
    assert_eq!(documents, expected, "{text:?}");
}

#[test]
fn documents_are_split_at_yaml_markers() {
    let (one, two) = (serde_json::json!({"a": 1}), serde_json::json!({"b": 2}));
    for between in ["---\n", "--- # two\n", "...\n---\n", "\u{85}---\u{2028}", "\r---\r", "...\n%YAML 1.1\n---\n"] {
        let both = [Ok(one.clone()), Ok(two.clone())];
        check_all(&format!("a: 1\n{between}b: 2\n").replace("\n\u{85}", "\u{85}").replace("\n\r", "\r"), &both);
    }
    check_all("# c\n---\n--- {b: 2}", &[Ok(serde_json::Value::Null), Ok(two.clone())]);
    check_all("a: 1\n...\nb: 2\n", &[Ok(one.clone()), Err("yaml: line 3: did not find expected <document start>")]);
    check_all(
        "a: 1\n---\na: [\n---\nb: 2\n",
        &[Ok(one.clone()), Err("yaml: line 4: did not find expected node content")],
    );
    let bad = Err("yaml: line 4: did not find expected <document start>");
    check_all("x: 1\n---\n  a: 1\n b: 2\n", &[Ok(serde_json::json!({"x": 1})), Ok(one), bad]);
}

#[test]
fn repeated_keys_in_later_documents_have_the_right_line() {
    let document = super::parse_all("a: 1\n---\nb: 1\nb: 2\n").nth(1).expect("two").expect("reads");
    let text = "yaml: unmarshal errors:\n  line 4: key \"b\" already set in map";
    assert_eq!(document.repeated.map(|error| error.0).as_deref(), Some(text));
}
