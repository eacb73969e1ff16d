//! Scripts of requests, as they are written down: one step a line, with bodies in YAML.
//!
//! ```text
//! === title of a scenario, which gets the namespace $ns
//! # a comment
//! TRY pods spec/schedulingGates = [{name: a}] & metadata/labels = {a: b}
//! NEW nodes $ns-one
//! LET rv metadata/resourceVersion
//! MERGE pods/a {metadata: {labels: {x: "1"}}}
//! WATCH w pods?resourceVersion=$rv
//! EVENTS w 2
//! ```
//!
//! | step | request |
//! |---|---|
//! | `GET`, `POST`, `PUT`, `DELETE` path body | as it says; apiVersion and kind are the path's unless the body has them |
//! | `NEW` plural name sets | POST of the kind's plain object, with some members set |
//! | `TRY` plural sets | the same as a dry run, under the name `x` |
//! | `EDIT` path sets | GET, then PUT of what it gave, with some members set |
//! | `MERGE`, `SMP`, `JSON` path body | PATCH, by merge, strategic merge and JSON patch |
//! | `WATCH` name path | opens a watch |
//! | `EVENTS` name count | reads so many of its events; `END` name reads until it ends |
//! | `UNTIL` path = value | asks the request before again until a member has this value: what admission knows of other objects, it hears of late |
//! | `LET` name path | keeps a member of the last reply's body as `$name` |
//!
//! A path without `/` in front begins with a plural name, `coreevents` for events of the core group. Lines that are
//! indented belong to the step before: more of its body, more sets, `@Header: value`, or `@raw` for a body that is sent as
//! it stands. A step with `~ ` in front is one that the servers are known to answer differently; once they no longer do,
//! the mark has to go.

use kube_scheduler::apiserver::kinds::{self, Kind};
use serde_json::Value;

/// Requests that belong together.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) title: String,
    pub(super) steps: Vec<Step>,
}

/// One step, with its text for the report.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) text: String,
    pub(super) action: Action,
    /// Whether it is known that the servers differ.
    pub(super) is_open: bool,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Action {
    /// One request.
    Send(Call),
    /// A GET, then a PUT of the result with some members set.
    Edit(String, Vec<Set>),
    Watch(String, String),
    Events(String, Option<usize>),
    Let(String, String),
    /// Asks the last request again until a member has a value.
    Until(Set),
}

/// A request before its variables are known.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    None,
    /// YAML, sent as JSON.
    Object(String),
    /// Sent as it stands.
    Raw(String),
    /// The plain object of a kind, with members set.
    Base(String, Option<String>, Vec<Set>),
}

/// A member's path and its value in YAML.
pub(super) type Set = (String, String);

/// The scenarios of a file.
pub(super) fn parse(file: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    let mut lines = file.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("=== ") {
            scenarios.push(Scenario { title: title.to_owned(), steps: Vec::new() });
        } else if !line.trim().is_empty() && !line.starts_with('#') {
            let mut more = Vec::new();
            while let Some(next) = lines.next_if(|next| next.starts_with(' ')) {
                more.push(next);
            }
            let step = step(line, &more);
            scenarios.last_mut().unwrap_or_else(|| panic!("a step before the first scenario: {line}")).steps.push(step);
        }
    }
    scenarios
}

fn step(line: &str, more: &[&str]) -> Step {
    let whole = line;
    let (line, is_open) = line.strip_prefix("~ ").map_or((line, false), |line| (line, true));
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (headers, content): (Vec<&str>, Vec<&str>) = more.iter().partition(|line| line.trim().starts_with('@'));
    let is_raw = headers.iter().any(|line| line.trim() == "@raw");
    let mut headers: Vec<(String, String)> = headers
        .iter()
        .filter_map(|line| line.trim().strip_prefix('@')?.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let (first, inline) = rest.split_once(' ').unwrap_or((rest, ""));
    let indent = content.first().map_or(0, |line| line.len() - line.trim_start().len());
    let mut body = inline.to_owned();
    for line in &content {
        if !body.is_empty() {
            body.push('\n');
        }
        body.push_str(line.get(indent..).unwrap_or_default());
    }
    let mut patch = |content_type: &str| {
        if headers.iter().all(|(name, _)| name != "Content-Type") {
            headers.push(("Content-Type".to_owned(), content_type.to_owned()));
        }
        "PATCH"
    };
    let action = match verb {
        "LET" => Action::Let(first.to_owned(), inline.to_owned()),
        "WATCH" => Action::Watch(first.to_owned(), with_query(inline, "watch=true")),
        "EVENTS" => Action::Events(first.to_owned(), inline.parse().ok()),
        "END" => Action::Events(first.to_owned(), None),
        "UNTIL" => Action::Until(sets(rest).pop().expect("a member and its value")),
        "EDIT" => Action::Edit(first.to_owned(), sets(&body)),
        "TRY" | "NEW" => {
            let (plural, query) = first.split_once('?').unwrap_or((first, ""));
            let (name, body) =
                if verb == "NEW" { body.split_once([' ', '\n']).unwrap_or((&body, "")) } else { ("x", &*body) };
            let name = (name != "-").then(|| name.to_owned());
            let path = if verb == "TRY" { with_query(first, "dryRun=All") } else { first.to_owned() };
            let _ = query;
            Action::Send(Call { method: "POST", path, headers, body: Body::Base(plural.to_owned(), name, sets(body)) })
        }
        _ => {
            let method = match verb {
                "GET" => "GET",
                "POST" => "POST",
                "PUT" => "PUT",
                "DELETE" => "DELETE",
                "MERGE" => patch("application/merge-patch+json"),
                "SMP" => patch("application/strategic-merge-patch+json"),
                "JSON" => patch("application/json-patch+json"),
                "PATCH" => "PATCH",
                _ => panic!("no such step: {line}"),
            };
            let body = match body {
                body if is_raw => Body::Raw(body),
                body if body.is_empty() => Body::None,
                body => Body::Object(body),
            };
            Action::Send(Call { method, path: first.to_owned(), headers, body })
        }
    };
    let text = std::iter::once(whole).chain(more.iter().copied()).collect::<Vec<_>>().join("\n");
    Step { text, action, is_open }
}

fn with_query(path: &str, query: &str) -> String {
    format!("{path}{}{query}", if path.contains('?') { '&' } else { '?' })
}

/// `path = value & path = value`, on one line or several.
fn sets(text: &str) -> Vec<Set> {
    let parts = text.split('\n').flat_map(|line| line.split(" & ")).filter(|part| !part.trim().is_empty());
    parts
        .map(|part| {
            let (path, value) = part.split_once(" = ").unwrap_or_else(|| panic!("no ` = ` in {part:?}"));
            (path.trim().to_owned(), value.to_owned())
        })
        .collect()
}

/// The kind that a plural name stands for.
pub(super) fn kind(plural: &str) -> Option<&'static Kind> {
    if plural == "coreevents" {
        return Some(&kinds::CORE_EVENTS);
    }
    kinds::ALL.iter().copied().find(|kind| kind.plural == plural)
}

/// The kind that a path is about, and the path as it is sent.
pub(super) fn resolve(path: &str, namespace: &str) -> (Option<&'static Kind>, String) {
    if path.starts_with('/') {
        return (None, path.to_owned());
    }
    let end = path.find(['/', '?']).unwrap_or(path.len());
    let (plural, rest) = path.split_at(end);
    let (plural, everywhere) = plural.strip_suffix('*').map_or((plural, false), |plural| (plural, true));
    let kind = kind(plural).unwrap_or_else(|| panic!("no kind is called {plural:?}"));
    let group = if kind.group.is_empty() {
        format!("/api/{}", kind.version)
    } else {
        format!("/apis/{}/{}", kind.group, kind.version)
    };
    let scope = if kind.namespaced && !everywhere { format!("/namespaces/{namespace}") } else { String::new() };
    (Some(kind), format!("{group}{scope}/{}{rest}", kind.plural))
}

/// Sets a member, making what is missing on the way; `null` removes it.
pub(super) fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    let steps: Vec<&str> = path.split('/').collect();
    let (last, parents) = steps.split_last().expect("a path has a step");
    for step in parents {
        at = match at {
            Value::Array(items) => {
                let index: usize = step.parse().expect("a position");
                while items.len() <= index {
                    items.push(Value::Null);
                }
                &mut items[index]
            }
            other => &mut other[*step],
        };
    }
    match at {
        Value::Array(items) if *last == "-" => items.push(value),
        Value::Array(items) => items[last.parse::<usize>().expect("a position")] = value,
        Value::Object(map) if value.is_null() => drop(map.remove(*last)),
        other if value.is_null() && other.is_null() => {}
        other => other[*last] = value,
    }
}
