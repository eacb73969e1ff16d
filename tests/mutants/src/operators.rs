//! Mutation operators: the tokens that can be changed, and their replacements.

use syn::{BinOp, ExprPath, Lit};

/// Returns the replacements of a binary operator. For a comparison of order, these are the operator that differs in the case of
/// equality, and the negation. For any other operator, this is an opposite operator.
pub fn binary(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Lt(_) => &["<=", ">="],
        BinOp::Le(_) => &["<", ">"],
        BinOp::Gt(_) => &[">=", "<="],
        BinOp::Ge(_) => &[">", "<"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) | BinOp::Rem(_) => &["+"],
        BinOp::Mul(_) => &["/"],
        BinOp::Div(_) => &["*"],
        BinOp::BitAnd(_) | BinOp::BitXor(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::MulAssign(_) => &["/="],
        BinOp::DivAssign(_) => &["*="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        _ => &[],
    }
}

/// Pairs of methods that replace each other.
const SWAPPED: &[(&str, &str)] = &[
    ("all", "any"),
    ("and", "or"),
    ("ceil", "floor"),
    ("checked_add", "checked_sub"),
    ("first", "last"),
    ("is_err", "is_ok"),
    ("is_none", "is_some"),
    ("is_none_or", "is_some_and"),
    ("max", "min"),
    ("max_by", "min_by"),
    ("max_by_key", "min_by_key"),
    ("round", "trunc"),
    ("saturating_add", "saturating_sub"),
    ("starts_with", "ends_with"),
    ("wrapping_add", "wrapping_sub"),
];

/// Returns the replacement of a method's name.
pub fn method(name: &str) -> Option<&'static str> {
    SWAPPED.iter().find_map(|(one, other)| match name {
        _ if name == *one => Some(*other),
        _ if name == *other => Some(*one),
        _ => None,
    })
}

/// Methods that return a bool, which is negated.
pub const NEGATED: &[&str] =
    &["contains", "contains_key", "enabled", "eq", "is_empty", "is_subset", "is_subset_of", "is_superset", "matches"];

/// Methods whose calls are removed from a chain: methods of numbers and iterators, and registrations of a plugin.
pub const LEFT_OUT: &[&str] = &[
    "abs",
    "bind",
    "events",
    "filter",
    "ln",
    "post_filter",
    "pre_enqueue",
    "pre_filter",
    "pre_score",
    "queue_sort",
    "rev",
    "reverse",
    "score",
    "sign",
    "sqrt",
    "trim",
];

/// Methods of a bool, which is negated.
pub const OF_BOOL: &[&str] = &["then", "then_some"];

/// Methods that take a predicate, which is replaced by `true` and by `false`.
pub const WITH_PREDICATE: &[&str] = &[
    "all",
    "any",
    "filter",
    "find",
    "is_none_or",
    "is_some_and",
    "partition",
    "position",
    "retain",
    "skip_while",
    "take_while",
];

/// Pairs of enum variants or functions that replace each other, with their type.
const VARIANTS: &[(&str, &str, &str)] = &[
    ("BindOutcome", "Bound", "Skip"),
    ("Ordering", "Greater", "Less"),
    ("PreFilterOutcome", "Pass", "Skip"),
    ("PreScoreOutcome", "Pass", "Skip"),
    ("QueueingHint", "Queue", "Skip"),
    ("Rejection", "unresolvable", "unschedulable"),
    ("RejectionKind", "Unresolvable", "Unschedulable"),
    ("Verdict", "unresolvable", "unschedulable"),
    ("f64", "max", "min"),
    ("i64", "max", "min"),
    ("usize", "max", "min"),
];

/// Returns the replacements of a path. A variant is replaced by another variant. A constant is replaced by its value plus or
/// minus one, and by the empty string. Only one of these two compiles.
pub fn path(path: &ExprPath) -> Vec<String> {
    if path.qself.is_some() || path.path.segments.iter().any(|segment| !segment.arguments.is_none()) {
        return Vec::new();
    }
    let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let Some((last, before)) = names.split_last() else { return Vec::new() };
    if let Some(swapped) = before.last().and_then(|kind| variant(kind, last)) {
        return vec![format!("{}::{swapped}", before.join("::"))];
    }
    let is_constant = last.len() > 1 && last.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let of_a_module = before.iter().all(|name| name.chars().all(|c| !c.is_ascii_uppercase()));
    if !is_constant || !of_a_module {
        return Vec::new();
    }
    let neighbour = format!("{} {} 1", names.join("::"), if last == "MAX" { "-" } else { "+" });
    vec![neighbour, "\"\"".to_owned()]
}

fn variant(kind: &str, name: &str) -> Option<&'static str> {
    VARIANTS.iter().find_map(|(of, one, other)| match name {
        _ if *of != kind => None,
        _ if name == *one => Some(*other),
        _ if name == *other => Some(*one),
        _ => None,
    })
}

/// Returns the replacement of a literal.
pub fn literal(literal: &Lit) -> Option<String> {
    match literal {
        Lit::Bool(value) => Some((!value.value).to_string()),
        Lit::Int(number) => {
            let value: u128 = number.base10_parse().ok()?;
            let other = if value == 1 { 0 } else { value + 1 };
            Some(format!("{other}{}", number.suffix()))
        }
        Lit::Float(number) => {
            let value: f64 = number.base10_parse().ok()?;
            Some(format!("{:?}{}", if value == 0.0 { 1.0 } else { value * 2.0 }, number.suffix()))
        }
        Lit::Str(text) => Some(if text.value().is_empty() { "\"mutant\"" } else { "\"\"" }.to_owned()),
        _ => None,
    }
}
