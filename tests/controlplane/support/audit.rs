//! The audit log's entries of a scheduler, made comparable.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::support::stage::FENCE;

/// Members whose values are times.
const TIMES: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "eventTime",
    "lastObservedTime",
    "lastProbeTime",
    "lastTransitionTime",
    "time",
];

/// What a scheduler wrote, by the object that it is about: the writes of one object have an order, those of several have none.
/// Events count as written about what they tell of, apart from its other writes, and in no order: each is sent by itself.
#[derive(PartialEq)]
pub(crate) struct Written {
    by_object: BTreeMap<String, Vec<Value>>,
}

impl Written {
    /// Takes the log in. A request that was denied is an error: nothing is asked for that the role does not allow.
    pub(crate) fn read(entries: &[Value]) -> Result<Self, String> {
        Self::read_namespace(entries, "", "")
    }

    /// The same, of one namespace only, which is called `alias`; empty for all of them.
    pub(crate) fn read_namespace(entries: &[Value], only: &str, alias: &str) -> Result<Self, String> {
        let mut by_object: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut denied = BTreeSet::new();
        for entry in entries {
            let text = |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            if entry["responseStatus"]["code"] == 403 {
                denied.insert(format!("{} {}", text("/verb"), text("/requestURI")));
            }
            if matches!(text("/verb").as_str(), "get" | "list" | "watch") {
                continue;
            }
            let (resource, mut namespace) = (text("/objectRef/resource"), text("/objectRef/namespace"));
            if !only.is_empty() && namespace != only {
                continue;
            }
            let mut body = entry["requestObject"].clone();
            tidy(&mut body);
            if !only.is_empty() {
                let renamed = body.to_string().replace(only, alias);
                body = serde_json::from_str(&renamed).map_err(|error| error.to_string())?;
                alias.clone_into(&mut namespace);
            }
            let regarding = body["regarding"]["name"].as_str().map(str::to_owned);
            // The name of a patched event begins with what it is about.
            let name = regarding.unwrap_or_else(|| match resource.as_str() {
                "events" => {
                    text("/objectRef/name").rsplit_once('.').map_or_else(String::new, |(name, _)| name.to_owned())
                }
                _ => text("/objectRef/name"),
            });
            if name.starts_with(FENCE) {
                continue;
            }
            let write = json!({
                "verb": text("/verb"), "subresource": text("/objectRef/subresource"),
                "code": entry["responseStatus"]["code"], "body": body,
            });
            by_object.entry(format!("{resource} {namespace}/{name}")).or_default().push(write);
        }
        for (_, writes) in by_object.iter_mut().filter(|(object, _)| object.starts_with("events ")) {
            writes.sort_by_cached_key(Value::to_string);
        }
        if denied.is_empty() { Ok(Self { by_object }) } else { Err(format!("denied: {denied:#?}")) }
    }

    pub(crate) fn count(&self) -> usize {
        self.by_object.values().map(Vec::len).sum()
    }

    pub(crate) fn objects(&self) -> usize {
        self.by_object.len()
    }
}

/// Replaces what differs between two runs of one scheduler: UIDs, versions, times, the random part of names.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => tidy_fields(fields),
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::String(text) => *text = without_uids(text),
        _ => {}
    }
}

fn tidy_fields(fields: &mut Map<String, Value>) {
    let is_event = fields.get("kind").is_some_and(|kind| kind == "Event");
    for (key, value) in fields.iter_mut() {
        match key.as_str() {
            "uid" if value.is_string() => *value = "uid".into(),
            "resourceVersion" if value.is_string() => *value = "version".into(),
            time if TIMES.contains(&time) && value.is_string() => *value = "time".into(),
            _ => tidy(value),
        }
        if is_event && key == "metadata" {
            let name = value["name"].as_str().unwrap_or_default();
            let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_owned();
            value["name"] = format!("{stem}.<time>").into();
        }
    }
}

/// The text with every UID in it replaced.
fn without_uids(text: &str) -> String {
    text.split(' ').map(|word| if is_uid(word) { "<uid>" } else { word }).collect::<Vec<_>>().join(" ")
}

fn is_uid(word: &str) -> bool {
    let groups: Vec<&str> = word.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.chars().all(|letter| letter.is_ascii_hexdigit()))
}

/// Returns the differences, object by object.
pub(crate) fn compare(theirs: &Written, ours: &Written) -> Vec<String> {
    let none = Vec::new();
    let objects: BTreeSet<&String> = theirs.by_object.keys().chain(ours.by_object.keys()).collect();
    let mut found = Vec::new();
    for object in objects {
        let [theirs, ours] = [theirs, ours].map(|written| written.by_object.get(object).unwrap_or(&none));
        if theirs != ours {
            let show = |writes: &[Value]| writes.iter().map(Value::to_string).collect::<Vec<_>>().join("\n    ");
            found.push(format!("{object}:\n  upstream\n    {}\n  ours\n    {}", show(theirs), show(ours)));
        }
    }
    found
}
