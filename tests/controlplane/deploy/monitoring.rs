//! What rules and dashboards ask Prometheus for.

use std::collections::BTreeSet;

use serde_json::Value;

use super::pod::{list, text};

/// Names that Prometheus makes itself.
const PROMETHEUS: &[&str] = &["up"];

/// The expressions of a `PrometheusRule`, and the names that its recording rules make.
pub(super) fn of_rules(rule: &Value) -> (Vec<String>, BTreeSet<String>) {
    let rules = || list(&rule["spec"]["groups"]).flat_map(|group| list(&group["rules"]));
    let expressions = rules().map(|rule| text(&rule["expr"]).to_owned()).collect();
    (expressions, rules().filter_map(|rule| rule["record"].as_str()).map(str::to_owned).collect())
}

/// The expressions of all dashboards of a `ConfigMap`.
pub(super) fn of_dashboards(map: &Value) -> Result<Vec<String>, String> {
    let mut expressions = Vec::new();
    for (file, dashboard) in map["data"].as_object().into_iter().flatten() {
        let dashboard: Value = serde_json::from_str(text(dashboard)).map_err(|error| format!("{file}: {error}"))?;
        let targets = list(&dashboard["panels"]).flat_map(|panel| list(&panel["targets"]));
        expressions.extend(targets.map(|target| text(&target["expr"]).to_owned()));
    }
    Ok(expressions)
}

/// The families of a scrape.
pub(super) fn families(scrape: &str) -> BTreeSet<String> {
    let mut families = BTreeSet::new();
    for line in scrape.lines() {
        let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) else { continue };
        families.insert(name.to_owned());
        if kind == "histogram" {
            families.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}")));
        }
    }
    families
}

/// Checks that there is an expression, and that each names series that there are, and no others.
pub(super) fn check(expressions: &[String], known: &BTreeSet<String>) -> Result<(), String> {
    for expression in expressions {
        let names: Vec<&str> = names(expression).collect();
        let unknown = names.iter().find(|name| !known.contains(**name) && !PROMETHEUS.contains(name));
        match (names.is_empty(), unknown) {
            (false, None) => {}
            (true, _) => return Err(format!("no series in {expression:?}")),
            (_, Some(unknown)) => return Err(format!("nobody has {unknown}, which {expression:?} is about")),
        }
    }
    if expressions.is_empty() { Err("no expressions".to_owned()) } else { Ok(()) }
}

/// The names of series in an expression: what stands before a selector or a range, in `{…}` or `[…]`, or has a colon in it.
fn names(expression: &str) -> impl Iterator<Item = &str> {
    let mut rest = expression;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
            let word = &rest[start..];
            let end = word.find(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
            let (word, after) = word.split_at(end.unwrap_or(word.len()));
            let is_name = after.starts_with(['{', '[']) || word.contains(':');
            // What stands in a selector are labels and their values.
            rest = match after.strip_prefix('{') {
                Some(selector) => selector.split_once('}').map_or("", |(_, after)| after),
                None => after,
            };
            if is_name {
                return Some(word);
            }
        }
    })
}
