//! Tests of queries and `LabelSelector`s: matches, canonical texts and upstream's error texts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::{Operator, Requirement, Selector};
use crate::k8s::StringMap;

fn labels(pairs: &[(&str, &str)]) -> StringMap {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn parse(text: &str) -> Selector {
    Selector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn compile(selector: Value) -> Result<Selector, String> {
    let selector: Option<LabelSelector> = serde_json::from_value(selector).expect("a label selector");
    Selector::from_label_selector(selector.as_ref()).map_err(|error| error.to_string())
}

#[test]
fn queries_match_labels() {
    let labels = labels(&[("a", "1"), ("b", "x"), ("empty", "")]);
    let check = |text: &str, expected: bool| assert_eq!(parse(text).matches(&labels), expected, "{text}");
    check("", true);
    check("a", true);
    check("c", false);
    check("!c", true);
    check("!a", false);
    check("a=1", true);
    check("a==1", true);
    check("a = 2", false);
    check("a!=2,c!=2", true);
    check("a!=1", false);
    check("empty=", true);
    check("empty=,a=1", true);
    check("c=", false);
    check("b in (x, y)", true);
    check("b in (y)", false);
    check("c in (y)", false);
    check("b notin (y),c notin (y)", true);
    check("b notin (x)", false);
    check("empty in ()", true);
    check("empty in (,x)", true);
    check("a>0", true);
    check("a>1", false);
    check("a<2", true);
    check("a<1", false);
    check("b>0", false);
    check("c<5", false);
    check("in in (in,notin),notin", false);
    check(" a ,\tb\r\n", true);
}

#[test]
fn queries_are_printed_in_canonical_form() {
    let check = |text: &str, expected: &str| assert_eq!(parse(text).to_string(), expected);
    check("", "");
    check("b=2,a=1", "a=1,b=2");
    check("a in (z, y,y)", "a in (y,z)");
    check("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z notin ()");
    check("a==b,c!=d,!e,f>5,g<6", "a==b,c!=d,!e,f>5,g<6");
    check("a=2,a=1", "a=2,a=1");
    check("a in (,)", "a in ()");
}

#[test]
fn malformed_queries_are_rejected_with_upstreams_errors() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Selector::parse(text).map_err(|error| error.to_string()), Err(expected.to_owned()), "{text:?}");
    };
    let in_requirement = |text: &str, expected: &str| check(text, &format!("unable to parse requirement: {expected}"));
    check(",", "found ',', expected: !, identifier, or 'end of string'");
    check("a,", "found '', expected: identifier after ','");
    check("a,,b", "found ',', expected: identifier after ','");
    check("!a=b", "found '=', expected: ',' or 'end of string'");
    check("a=b c", "found 'c', expected: ',' or 'end of string'");
    in_requirement("!", "found '', expected: identifier");
    in_requirement("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt");
    in_requirement("a in", "found '' expected: '('");
    in_requirement("a in (", "found '', expected: ',', ')' or identifier");
    in_requirement("a in (b", "found '', expected: ',' or ')'");
    in_requirement("a in (b c)", "found 'c', expected: ',' or ')'");
    in_requirement("a in (b,", "found '', expected: ',', or identifier");
    in_requirement("a=(", "found '(', expected: identifier");
    in_requirement("a>x", "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer");
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    in_requirement("a=-b", &format!("values[0][a]: Invalid value: \"-b\": {value}"));
    let key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    in_requirement("-a=b", &format!("<nil>: Invalid value: \"-a\": {key}"));
}

#[test]
fn a_zero_byte_ends_a_word_or_the_text() {
    assert_eq!(parse("a\0").to_string(), "a");
    assert_eq!(parse("a=\0b").to_string(), "a=b");
    assert_eq!(parse("a, b \0 ignored").to_string(), "a,b");
    assert!(parse("\0a").is_empty());
}

#[test]
fn label_selectors_compile() {
    assert_eq!(compile(Value::Null), Ok(Selector::Nothing));
    assert_eq!(compile(json!({})), Ok(Selector::everything()));
    let selector = compile(json!({"matchLabels": {"b": "2"}, "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "NotIn", "values": ["z"]},
        {"key": "d", "operator": "Exists"}, {"key": "e", "operator": "DoesNotExist", "values": []},
    ]}));
    assert_eq!(selector.map(|selector| selector.to_string()), Ok("a in (x,y),b=2,c notin (z),d,!e".to_owned()));
}

#[test]
fn malformed_label_selectors_are_rejected_with_upstreams_errors() {
    let check = |expression: Value, expected: &str| {
        assert_eq!(compile(json!({"matchExpressions": [expression]})), Err(expected.to_owned()));
    };
    check(json!({"key": "a", "operator": "Near"}), "\"Near\" is not a valid label selector operator");
    check(
        json!({"key": "a", "operator": "In", "values": []}),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    );
    check(
        json!({"key": "a", "operator": "Exists", "values": ["x", "y"]}),
        "values: Invalid value: [\"x\",\"y\"]: values set must be empty for exists and does not exist",
    );
    let errors = compile(json!({"matchLabels": {"": "-"}})).expect_err("two complaints");
    assert!(errors.starts_with("[key: Invalid value: \"\": name part must be non-empty; name part must"), "{errors}");
    assert!(errors.contains(", values[0][]: Invalid value: \"-\": a valid label"), "{errors}");
}

#[test]
fn operators_limit_the_number_of_values() {
    let check = |operator: Operator, values: &[&str], expected: &str| {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let result = Requirement::new("k", operator, Some(values), "at[0]").map_err(|errors| errors.to_string());
        assert_eq!(result, Err(expected.to_owned()));
    };
    let single = "exact-match compatibility requires one single value";
    check(Operator::Equals, &[], &format!("at[0].values: Invalid value: []: {single}"));
    check(Operator::NotEquals, &["a", "b"], &format!("at[0].values: Invalid value: [\"a\",\"b\"]: {single}"));
    let one = "for 'Gt', 'Lt' operators, exactly one value is required";
    check(Operator::LessThan, &["1", "2"], &format!("at[0].values: Invalid value: [\"1\",\"2\"]: {one}"));
}

#[test]
fn nothing_matches_no_labels_and_everything_matches_all() {
    let some = labels(&[("a", "1")]);
    assert!(!Selector::Nothing.matches(&some) && !Selector::Nothing.is_empty());
    assert!(Selector::everything().matches(&some) && Selector::default().is_empty());
    assert_eq!(Selector::Nothing.requirements(), None);
    assert_eq!(Selector::Nothing.and(Requirement::equals("a", "1")), Selector::Nothing);
    let both = Selector::from_labels(&some).and(Requirement::equals("0", "x"));
    assert_eq!(both.to_string(), "0=x,a=1");
    assert_eq!(both.exact_match("a"), Some("1"));
    assert_eq!(both.exact_match("b"), None);
    assert_eq!(parse("a in (x,y)").exact_match("a"), None);
    assert_eq!(parse("a,a=1").exact_match("a"), None);
}

#[test]
fn printed_queries_select_the_same_objects() {
    let seed = 0x5eed_0010_u64;
    let mut state = seed;
    let mut pick = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % bound as u64).unwrap_or_default()
    };
    let pieces =
        ["a", "b", "in", "notin", "(", ")", ",", "=", "==", "!=", "!", ">", "<", " ", "1", "-5", "é", "\0", "x"];
    let mut parsed = 0;
    for round in 0..100_000 {
        let text: String = (0..pick(12)).map(|_| pieces[pick(pieces.len())]).collect();
        let Ok(selector) = Selector::parse(&text) else { continue };
        parsed += 1;
        let again = parse(&selector.to_string());
        assert_eq!(again.to_string(), selector.to_string(), "seed {seed:#x} round {round}: {text:?}");
        for value in ["1", "-5", "x", ""] {
            let labels = labels(&[("a", value), ("in", "b")]);
            assert_eq!(again.matches(&labels), selector.matches(&labels), "seed {seed:#x} round {round}: {text:?}");
        }
    }
    assert!(parsed > 1000, "only {parsed} texts were queries");
}
