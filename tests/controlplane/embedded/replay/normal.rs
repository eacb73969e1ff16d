//! Answers without what two servers cannot have in common: UIDs, times, versions and made-up names become what they are
//! relative to the others of the same scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::side::Answer;

/// Times within a day of now are told by how far they are from now.
const DAY: i64 = 24 * 60 * 60;

/// Words before a version in messages.
const BEFORE_VERSION: [&str; 4] =
    ["current: ", "match the ResourceVersion in record (", "ResourceVersion in object meta: ", "resource version: 1 ("];

/// What is known of one server's answers.
struct Normal {
    /// The versions of objects, in their order.
    versions: BTreeSet<u64>,
    uids: BTreeMap<String, usize>,
    /// Names that the server has made up.
    names: BTreeMap<String, String>,
    now: Timestamp,
}

/// Makes the answers of a scenario comparable; those that `is_odd` says the other server has refused, or this one, have no
/// part in it.
pub(super) fn normalise(answers: &mut [Answer], now: Timestamp, is_odd: impl Fn(usize) -> bool) {
    let mut normal = Normal { versions: BTreeSet::new(), uids: BTreeMap::new(), names: BTreeMap::new(), now };
    let mut answers: Vec<&mut Answer> =
        answers.iter_mut().enumerate().filter(|(at, _)| !is_odd(*at)).map(|(_, answer)| answer).collect();
    answers.iter().for_each(|answer| normal.learn(&answer.body));
    for answer in &mut answers {
        normal.rewrite(&mut answer.body, "");
        order_by_field(&mut answer.body);
    }
}

/// Puts several complaints about one field in order: where upstream walks a map, such as that of requests, there is none.
fn order_by_field(status: &mut Value) {
    let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return };
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    for same in causes.chunk_by_mut(|a, b| a["field"] == b["field"]) {
        same.sort_by_key(|cause| text(cause, "message"));
    }
    let mut parts: Vec<String> = Vec::new();
    for cause in causes.iter() {
        let part = format!("{}: {}", text(cause, "field"), text(cause, "message"));
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let (Some(message), true) = (status["message"].as_str(), parts.len() > 1) else { return };
    if let Some((head, _)) =
        message.split_once(" is invalid: [").filter(|_| parts.iter().all(|part| message.contains(part)))
    {
        status["message"] = format!("{head} is invalid: [{}]", parts.join(", ")).into();
    }
}

impl Normal {
    /// Collects the versions of objects and made-up names.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let metadata = &value["metadata"];
                let is_object = metadata["uid"].is_string();
                if let Some(version) = metadata["resourceVersion"].as_str().filter(|_| is_object) {
                    self.versions.extend(version.parse::<u64>());
                }
                if let (Some(prefix), Some(name)) = (metadata["generateName"].as_str(), metadata["name"].as_str())
                    && name.len() > 5
                    && name.starts_with(&prefix[..prefix.len().min(58)])
                {
                    let at = self.names.len();
                    self.names.entry(name.to_owned()).or_insert_with(|| format!("{prefix}<made up {at}>"));
                }
                members.values().for_each(|member| self.learn(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn rewrite(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(members) => {
                members.iter_mut().for_each(|(key, member)| self.rewrite(member, key));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item, key)),
            Value::String(text) => {
                let new = match key {
                    "resourceVersion" => text.parse().map_or_else(|_| text.clone(), |version| self.version(version)),
                    "continue" => "<token>".to_owned(),
                    _ => self.text(text),
                };
                *value = json!(new);
            }
            _ => {}
        }
    }

    /// Which of the known versions it is, or comes after.
    fn version(&self, version: u64) -> String {
        let before = self.versions.range(..=version).count();
        format!("<version {before}>")
    }

    fn text(&mut self, text: &str) -> String {
        if let Ok(time) = text.parse::<Timestamp>() {
            let seconds = time.as_second() - self.now.as_second();
            if seconds.abs() < DAY {
                let rounded = (seconds + 5).div_euclid(10) * 10;
                let micros = if text.contains('.') { " with microseconds" } else { "" };
                return format!("<now + {rounded}s{micros}>");
            }
        }
        // What follows a line break is a difference of Go values as a library prints it, which says itself that it is not
        // to be relied on.
        let text = text.split('\n').next().unwrap_or_default();
        let mut text = self.without_uids(&without_patched(text));
        for (name, made_up) in &self.names {
            text = text.replace(name.as_str(), made_up);
        }
        for marker in BEFORE_VERSION {
            if let Some(at) = text.find(marker) {
                let start = at + marker.len();
                let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
                if let Ok(version) = text[start..start + digits].parse() {
                    text.replace_range(start..start + digits, &self.version(version));
                }
            }
        }
        text
    }

    fn without_uids(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = (0..rest.len()).find(|at| is_uid(&rest.as_bytes()[*at..])) {
            out.push_str(&rest[..at]);
            let next = self.uids.len();
            let number = *self.uids.entry(rest[at..at + 36].to_owned()).or_insert(next);
            write!(out, "<uid {number}>").expect("a String takes every write");
            rest = &rest[at + 36..];
        }
        out.push_str(rest);
        out
    }
}

/// A message without the patched object that it shows: its members stand in the order of Go's types.
fn without_patched(text: &str) -> String {
    const OPENS: &str = "Invalid value: \"{\\\"apiVersion";
    // What a strategic merge patch has made is read by what has its own words for wrong types.
    if let Some(at) = text.find("Invalid value: \"map[") {
        return format!("{}<patched>", &text[..at]);
    }
    match (text.find(OPENS), text.rfind("}\": ")) {
        (Some(start), Some(end)) if start < end => format!("{}<patched>{}", &text[..start], &text[end + 2..]),
        _ => text.to_owned(),
    }
}

fn is_uid(bytes: &[u8]) -> bool {
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        })
}

/// Where two values differ, with both.
pub(super) fn differences(path: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let keys: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
            for key in keys {
                // Who manages which field is compared where both say it.
                if key == "managedFields" && (theirs.get(key).is_none() || ours.get(key).is_none()) {
                    continue;
                }
                let absent = json!("<absent>");
                let (one, other) = (theirs.get(key).unwrap_or(&absent), ours.get(key).unwrap_or(&absent));
                differences(&format!("{path}/{key}"), one, other, found);
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (at, (one, other)) in theirs.iter().zip(ours).enumerate() {
                differences(&format!("{path}/{at}"), one, other, found);
            }
        }
        _ if theirs == ours => {}
        _ => found.push(format!("{path}\n  real: {theirs}\n  ours: {ours}")),
    }
}
