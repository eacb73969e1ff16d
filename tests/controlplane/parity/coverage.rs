//! Coverage of the compared cases: a comparison that never reaches a branch proves nothing about it.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::case::{BUILT, Case};
use super::reach::REQUIRED;
use super::{spread, terms};

/// How often each outcome was compared.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    pods: usize,
    counts: BTreeMap<String, usize>,
}

impl Coverage {
    /// What one case reaches.
    pub(crate) fn of(case: &Case, answer: &Value) -> Self {
        let mut coverage = Self::default();
        coverage.add(case, answer);
        coverage
    }

    /// The outcomes, each once, in order.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = &str> {
        self.counts.keys().map(String::as_str)
    }

    /// How many pods were compared.
    pub(crate) fn pods(&self) -> usize {
        self.pods
    }

    /// Counts what an answer shows.
    pub(crate) fn add(&mut self, case: &Case, answer: &Value) {
        self.bump(format!("gates {}", case.gates.split(',').next().unwrap_or_default()).trim_end().to_owned());
        for feature in terms::features(&case.objects) {
            self.bump(feature);
        }
        for pod in list(&answer["pods"]) {
            self.pods += 1;
            self.pod(pod);
            if preempts_in_a_crowd(case, pod) {
                self.bump("PostFilter Success: a choice among more than twelve pods".to_owned());
            }
            self.scores(&strategy(case, text(&pod["scheduler"])), list(&pod["nodes"]));
            spread::reached(case, pod).into_iter().for_each(|feature| self.bump(feature));
        }
        for hint in list(&answer["events"]).iter().flat_map(|event| list(&event["hints"])) {
            let failed = if text(&hint["error"]).is_empty() { "" } else { " (error)" };
            self.count("hint", &hint["plugin"], &format!("{} {}{failed}", text(&hint["event"]), text(&hint["hint"])));
        }
    }

    fn pod(&mut self, pod: &Value) {
        if !pod["preEnqueue"].is_null() {
            self.status("PreEnqueue", &pod["preEnqueue"]);
        }
        let pre_filter = &pod["preFilter"];
        if !pre_filter.is_null() && text(&pre_filter["code"]) != "Success" {
            self.status("PreFilter", pre_filter);
        }
        if pre_filter["nodes"].is_array() {
            self.bump("PreFilter narrows the nodes".to_owned());
        }
        for (point, names) in [("PreFilter skips", &pre_filter["skip"]), ("PreScore skips", &pod["scoreSkip"])] {
            for plugin in list(names) {
                self.count(point, plugin, "");
            }
        }
        for node in list(&pod["nodes"]).iter().filter(|node| text(&node["code"]) != "Success") {
            self.status("Filter", node);
        }
        self.signature(text(&pod["signature"]));
        self.post_filter(&pod["postFilter"]);
        for field in ["error", "scoreError", "skipped"] {
            if !text(&pod[field]).is_empty() {
                self.bump(format!("{field}: {}", beginning(text(&pod[field]))));
            }
        }
        match (text(&pod["host"]), text(&pod["message"])) {
            ("", "") => {}
            ("", _) => self.bump("no host".to_owned()),
            _ => self.bump("host".to_owned()),
        }
    }

    /// A score counts where it tells nodes apart.
    fn scores(&mut self, strategy: &str, nodes: &[Value]) {
        let scored: Vec<&Value> =
            nodes.iter().filter(|node| node["scores"].is_object()).map(|node| &node["scores"]).collect();
        let Some(first) = scored.first() else { return };
        let plugins: Vec<String> = first.as_object().into_iter().flat_map(|scores| scores.keys().cloned()).collect();
        for plugin in plugins {
            for kind in ["raw", "normalized"] {
                if scored.iter().any(|scores| scores[&plugin][kind] != first[&plugin][kind]) {
                    let how = if plugin == "NodeResourcesFit" { format!(" {strategy}") } else { String::new() };
                    self.bump(format!("Score {plugin}{how}: {kind} differs"));
                }
            }
        }
    }

    fn signature(&mut self, signature: &str) {
        let Ok(Value::Object(fragments)) = serde_json::from_str(signature) else { return };
        for (name, value) in fragments {
            let empty = match &value {
                Value::Null => true,
                Value::String(text) => text.is_empty(),
                Value::Array(list) => list.is_empty(),
                Value::Object(fields) => fields.is_empty(),
                _ => false,
            };
            self.bump(format!("signature {name}{}", if empty { " (empty)" } else { "" }));
        }
    }

    /// What preemption came to: what it says, or what its choice was among.
    fn post_filter(&mut self, answer: &Value) {
        let code = text(&answer["code"]);
        if code.is_empty() {
            return;
        }
        self.bump(format!("PostFilter {code}"));
        for words in [
            "not found",
            "preemptionPolicy=Never",
            "a terminating pod on the nominated node",
            "No preemption victims found",
            "Preemption is not helpful",
            "Insufficient cpu",
            "Too many pods",
        ] {
            if text(&answer["message"]).contains(words) {
                self.bump(format!("PostFilter {code}: {words}"));
            }
        }
        if code != "Success" {
            return;
        }
        let candidates = list(&answer["candidates"]);
        let chosen = candidates.iter().find(|candidate| candidate["node"] == answer["nominated"]);
        let violations = |candidate: &Value| candidate["pdbViolations"].as_i64().unwrap_or(0);
        let reached = [
            ("one candidate", candidates.len() == 1),
            ("a choice", candidates.len() > 1),
            ("a tie", !list(&answer["ties"]).is_empty()),
            ("several victims", list(&answer["victims"]).len() > 1),
            ("a budget is violated", chosen.is_some_and(|chosen| violations(chosen) > 0)),
            ("a violation is avoided", candidates.iter().any(|candidate| violations(candidate) > 0)),
        ];
        for (what, _) in reached.into_iter().filter(|(_, reached)| *reached) {
            self.bump(format!("PostFilter {code}: {what}"));
        }
    }

    fn status(&mut self, point: &str, status: &Value) {
        for reason in list(&status["reasons"]) {
            let absent = if status["absent"] == true { " (absent)" } else { "" };
            let reason = general(text(reason));
            self.count(point, &status["plugin"], &format!("{} {reason}{absent}", text(&status["code"])));
        }
    }

    /// Counts what a built plugin, or none, did.
    fn count(&mut self, what: &str, plugin: &Value, how: &str) {
        let plugin = text(plugin);
        if plugin.is_empty() || BUILT.iter().any(|(name, _)| *name == plugin) {
            self.bump(format!("{what} {plugin} {how}").trim_end().to_owned());
        }
    }

    fn bump(&mut self, outcome: String) {
        *self.counts.entry(outcome).or_default() += 1;
    }

    /// What has to be reached and was not.
    pub(crate) fn missing(&self) -> Vec<String> {
        let required = REQUIRED.iter().map(|outcome| (*outcome).to_owned()).chain(terms::all_features());
        required.filter(|outcome| !self.counts.contains_key(outcome)).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>9} pods compared", self.pods)?;
        for (outcome, count) in &self.counts {
            writeln!(f, "{count:>9} {outcome}")?;
        }
        Ok(())
    }
}

/// The first words, up to the name of a node.
fn beginning(error: &str) -> String {
    let words: Vec<&str> = error.split(' ').take(4).collect();
    if let [plugin, "on", ..] = words[..] { format!("{plugin} on a node") } else { words.join(" ") }
}

/// Whether the node that is nominated has more pods for preemption to choose from than Go's sort keeps in order.
fn preempts_in_a_crowd(case: &Case, answer: &Value) -> bool {
    let priority = |pod: &Value| pod["spec"]["priority"].as_i64().unwrap_or(0);
    let nominated = &answer["postFilter"]["nominated"];
    let pods = || case.objects.iter().filter(|object| object["kind"] == "Pod");
    let is_asked = |pod: &&Value| {
        let (namespace, name) = (text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        answer["pod"] == format!("{namespace}/{name}")
    };
    let preemptor = pods().find(is_asked).map_or(0, priority);
    let less = |pod: &&Value| pod["spec"]["nodeName"] == *nominated && priority(pod) < preemptor;
    nominated.as_str().is_some_and(|node| !node.is_empty()) && pods().filter(less).count() > 12
}

/// How the profile's `NodeResourcesFit` scores.
fn strategy(case: &Case, profile: &str) -> String {
    let profiles = list(&case.config["profiles"]);
    let profile = profiles.iter().find(|entry| entry["schedulerName"] == profile).unwrap_or(&Value::Null);
    let args = list(&profile["pluginConfig"]).iter().find(|entry| entry["name"] == "NodeResourcesFit");
    let given = args.and_then(|entry| entry["args"]["scoringStrategy"]["type"].as_str());
    given.unwrap_or("LeastAllocated").to_owned()
}

/// A reason without the names in it.
fn general(reason: &str) -> String {
    if let Some((before, _)) = reason.split_once(" values[").filter(|(before, _)| !before.contains('[')) {
        return before.to_owned();
    }
    match reason.split_once('[') {
        Some((before, _)) if before.ends_with(' ') => format!("{before}[…]"),
        _ => reason.to_owned(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
