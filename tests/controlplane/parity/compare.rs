//! Compares two answers to one case.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::case::{BUILT, Case};

/// Where two answers differ, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// The place, such as `pods[team/pending-1].nodes[node-3].reasons`.
    pub(crate) path: String,
    theirs: String,
    ours: String,
}

impl Mismatch {
    /// The place without the names of objects: what stays the same while a case shrinks.
    pub(crate) fn kind(&self) -> String {
        let mut kind = String::new();
        let mut depth = 0;
        for letter in self.path.chars() {
            match letter {
                '[' => depth += 1,
                ']' => depth -= 1,
                letter if depth == 0 => kind.push(letter),
                _ => {}
            }
        }
        kind
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\n  upstream {}\n  ours     {}", self.path, self.theirs, self.ours)
    }
}

/// Where our answer differs from upstream's.
pub(crate) fn compare(case: &Case, theirs: &Value, ours: &Value) -> Vec<Mismatch> {
    let mut found = Vec::new();
    let ending = case.objects.iter().filter(|object| object["metadata"]["deletionTimestamp"].is_string());
    let ending: Vec<String> = ending.map(key).collect();
    let ending: BTreeSet<&str> = ending.iter().map(String::as_str).collect();
    let (their_pods, our_pods) = (list(&theirs["pods"]), list(&ours["pods"]));
    differ(&mut found, "pods", &names(their_pods, "pod"), &names(our_pods, "pod"));
    for (theirs, ours) in their_pods.iter().zip(our_pods) {
        pod(&mut found, theirs, ours);
        let path = format!("pods[{}]", theirs["pod"].as_str().unwrap_or_default());
        post_filter(&mut found, &path, &theirs["postFilter"], &ours["postFilter"], &ending);
    }
    let (their_events, our_events) = (list(&theirs["events"]), list(&ours["events"]));
    differ(&mut found, "events", &names(their_events, "index"), &names(our_events, "index"));
    for (theirs, ours) in their_events.iter().zip(our_events) {
        let path = format!("events[{}]", theirs["index"]);
        differ(&mut found, &format!("{path}.clusterEvents"), &theirs["clusterEvents"], &ours["clusterEvents"]);
        differ(&mut found, &format!("{path}.hints"), &hints(theirs), &hints(ours));
        differ(&mut found, &format!("{path}.error"), &theirs["error"], &ours["error"]);
    }
    differ(&mut found, "registered", &built_fields(&theirs["registered"]), &built_fields(&ours["registered"]));
    found
}

fn key(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn names(list: &[Value], key: &str) -> Value {
    list.iter().map(|entry| entry[key].clone()).collect()
}

fn differ(found: &mut Vec<Mismatch>, path: &str, theirs: &Value, ours: &Value) {
    if theirs != ours {
        let mismatch = Mismatch { path: path.to_owned(), theirs: theirs.to_string(), ours: ours.to_string() };
        found.push(mismatch);
    }
}

fn pod(found: &mut Vec<Mismatch>, theirs: &Value, ours: &Value) {
    let path = format!("pods[{}]", theirs["pod"].as_str().unwrap_or_default());
    let mut field = |name: &str, theirs: Value, ours: Value| {
        differ(found, &format!("{path}.{name}"), &filled(theirs), &filled(ours));
    };
    for name in ["scheduler", "skipped", "signature", "pendingPlugins", "error"] {
        field(name, theirs[name].clone(), ours[name].clone());
    }
    // Without plugins that score, upstream's search ends early, and where PreFilter narrows the nodes, after some or other.
    let scores = list(&theirs["nodes"]).iter().any(|node| node["total"].is_number());
    if scores || !is_narrowed(theirs) {
        for name in ["evaluatedNodes", "feasibleNodes"] {
            field(name, theirs[name].clone(), ours[name].clone());
        }
    }
    field("preEnqueue", status(&theirs["preEnqueue"]), status(&ours["preEnqueue"]));
    field("preFilter", pre_filter(&theirs["preFilter"]), pre_filter(&ours["preFilter"]));
    field("scoreSkip", built_only(&theirs["scoreSkip"]), built_only(&ours["scoreSkip"]));
    field("rejectors", theirs["rejectors"].clone(), ours["rejectors"].clone());
    field("message", theirs["message"].clone(), ours["message"].clone());
    field("scoreError", score_error(theirs), score_error(ours));
    let (their_nodes, our_nodes) = (list(&theirs["nodes"]), list(&ours["nodes"]));
    field("nodes", names(their_nodes, "node"), names(our_nodes, "node"));
    // Where scoring fails, the oracle keeps what it had so far.
    let scored = filled(theirs["scoreError"].clone()).is_null();
    for (theirs, ours) in their_nodes.iter().zip(our_nodes) {
        node(found, &path, theirs, ours, scored);
    }
    host(found, &path, theirs, ours);
}

/// What is absent counts as empty: answers leave out what they have nothing to say of.
fn filled(value: Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::String(text) if text.is_empty() => Value::Null,
        Value::Array(list) if list.is_empty() => Value::Null,
        Value::Number(number) if number.as_i64() == Some(0) => Value::Null,
        value => value,
    }
}

/// A status; several reasons of one node are upstream's in no order, where scalar resources are concerned.
fn status(answer: &Value) -> Value {
    if answer.is_null() {
        return Value::Null;
    }
    let mut reasons: Vec<&str> = list(&answer["reasons"]).iter().filter_map(Value::as_str).collect();
    reasons.sort_unstable();
    let plugin = answer["plugin"].as_str().unwrap_or_default();
    Value::from(vec![Value::from(plugin), answer["code"].clone(), Value::from(reasons)])
}

fn pre_filter(answer: &Value) -> Value {
    if answer.is_null() {
        return Value::Null;
    }
    Value::from(vec![status(answer), answer["nodes"].clone(), built_only(&answer["skip"])])
}

fn is_built(plugin: &str) -> bool {
    BUILT.iter().any(|(name, _)| *name == plugin)
}

/// Names of plugins, those that are not built left out.
fn built_only(names: &Value) -> Value {
    list(names).iter().filter(|name| name.as_str().is_some_and(is_built)).cloned().collect()
}

/// An object by plugin, those that are not built left out.
fn built_fields(object: &Value) -> Value {
    let fields = object.as_object().cloned().unwrap_or_default();
    fields.into_iter().filter(|(name, _)| is_built(name)).collect::<Map<_, _>>().into()
}

fn hints(answer: &Value) -> Value {
    list(&answer["hints"]).iter().filter(|hint| hint["plugin"].as_str().is_some_and(is_built)).cloned().collect()
}

/// What `PostFilter` came to. Of nodes that upstream's ranking cannot tell apart, any may be nominated.
fn post_filter(found: &mut Vec<Mismatch>, pod: &str, theirs: &Value, ours: &Value, ending: &BTreeSet<&str>) {
    let path = format!("{pod}.postFilter");
    differ(found, &format!("{path}.ran"), &theirs.is_object().into(), &ours.is_object().into());
    for name in ["code", "message"] {
        differ(found, &format!("{path}.{name}"), &theirs[name], &ours[name]);
    }
    let candidates = list(&theirs["candidates"]);
    differ(
        found,
        &format!("{path}.candidates"),
        &filled(theirs["candidates"].clone()),
        &filled(ours["candidates"].clone()),
    );
    if !list(&theirs["ties"]).contains(&ours["nominated"]) {
        differ(found, &format!("{path}.nominated"), &theirs["nominated"], &ours["nominated"]);
    }
    let nominated = candidates.iter().find(|candidate| candidate["node"] == ours["nominated"]);
    let victims = nominated.map_or(&[][..], |candidate| list(&candidate["victims"]));
    let evicted: Value =
        victims.iter().filter(|victim| !victim.as_str().is_some_and(|key| ending.contains(key))).cloned().collect();
    differ(found, &format!("{path}.evicted"), &filled(evicted), &filled(ours["evicted"].clone()));
}

/// The error of `PreScore`; of Score only that there is one, since the oracle runs it by itself.
fn score_error(answer: &Value) -> Value {
    let text = answer["scoreError"].as_str().unwrap_or_default();
    if text.is_empty() || text.starts_with("running PreScore") { text.into() } else { "an error of Score".into() }
}

fn node(found: &mut Vec<Mismatch>, pod: &str, theirs: &Value, ours: &Value, scored: bool) {
    let name = theirs["node"].as_str().unwrap_or_default();
    let plugin = |answer: &Value| answer["plugin"].as_str().unwrap_or("Success").to_owned();
    let path = format!("{pod}.nodes[{name}]");
    // The words for nodes that no filter saw are the oracle's own, and upstream's in the message.
    if theirs["absent"] != true {
        differ(found, &format!("{path}.{}", plugin(theirs)), &status(theirs), &status(ours));
    }
    differ(found, &format!("{path}.absent"), &theirs["absent"], &ours["absent"]);
    if !scored {
        return;
    }
    differ(found, &format!("{path}.total"), &theirs["total"], &ours["total"]);
    let (their_scores, our_scores) = (built_fields(&theirs["scores"]), built_fields(&ours["scores"]));
    let plugins: BTreeSet<&String> =
        [&their_scores, &our_scores].into_iter().filter_map(Value::as_object).flat_map(Map::keys).collect();
    for plugin in plugins {
        differ(found, &format!("{path}.scores.{plugin}"), &their_scores[plugin], &our_scores[plugin]);
    }
}

/// Whether `PreFilter` leaves but some of the nodes.
fn is_narrowed(answer: &Value) -> bool {
    answer["preFilter"]["nodes"].is_array()
}

/// Where `PreFilter` narrows the nodes, upstream tries them in the order of a map: of equals, any may be chosen.
fn host(found: &mut Vec<Mismatch>, pod: &str, theirs: &Value, ours: &Value) {
    let total = |answer: &Value| {
        let nodes = list(&answer["nodes"]);
        nodes.iter().find(|node| node["node"] == answer["host"]).map(|node| node["total"].clone())
    };
    if is_narrowed(theirs) && theirs["host"] != ours["host"] && total(theirs).is_some() && total(theirs) == total(ours)
    {
        return;
    }
    differ(found, &format!("{pod}.host"), &filled(theirs["host"].clone()), &filled(ours["host"].clone()));
}
