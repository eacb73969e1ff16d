//! Recorded cases: upstream's answers for small clusters. Each case is one file, with one object or answer per line.
//!
//! The program `tests/controlplane/cmd/oracle` produced the answers. Scores are stored as `[raw, normalized, weighted]`. Empty
//! values are left out where the comparison treats them like absent ones.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::case::{Case, GATES};

/// A case, and upstream's answer for it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) case: Case,
    /// The answer in the format of the oracle.
    pub(crate) answer: Value,
}

/// Returns the folder of the recorded cases.
pub(crate) fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "parity", "cases"].iter().collect()
}

/// Returns the path of the list of outcomes that the cases reach, each with the number of cases.
pub(crate) fn outcomes_file() -> PathBuf {
    folder().with_file_name("outcomes.tsv")
}

/// Returns the path of the case with this seed.
pub(crate) fn file(seed: u64) -> PathBuf {
    folder().join(format!("{seed}.json"))
}

/// Reads all recorded cases, sorted by seed.
pub(crate) fn all() -> Result<Vec<Recorded>, String> {
    let entries = std::fs::read_dir(folder()).map_err(|error| format!("{}: {error}", folder().display()))?;
    let mut cases = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        cases.push(read.and_then(|text| parse(&text)).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    cases.sort_by_key(|recorded| recorded.case.seed);
    Ok(cases)
}

/// Parses a text that [`render`] returned.
pub(crate) fn parse(text: &str) -> Result<Recorded, String> {
    let mut file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let gates = file["gates"].as_str().unwrap_or_default();
    let gates = *GATES.iter().find(|known| **known == gates).ok_or_else(|| format!("unknown gates {gates:?}"))?;
    let mut list = |name: &str| match file[name].take() {
        Value::Array(list) => list,
        _ => Vec::new(),
    };
    let (objects, events, pods, answers) = (list("objects"), list("events"), list("pods"), list("answers"));
    let mut answer = json!({"registered": file["registered"].take(), "pods": pods, "events": answers});
    for_each_scores(&mut answer, &|scores| {
        for score in scores.values_mut() {
            *score = json!({"raw": score[0], "normalized": score[1], "weighted": score[2]});
        }
    });
    let seed = file["seed"].as_u64().ok_or("no seed")?;
    Ok(Recorded { case: Case { seed, gates, objects, config: file["config"].take(), events }, answer })
}

/// Returns the text of the file for a recorded case.
pub(crate) fn render(recorded: &Recorded) -> String {
    let Recorded { case, answer } = recorded;
    let mut answer = answer.clone();
    for_each_scores(&mut answer, &|scores| {
        for score in scores.values_mut() {
            *score = json!([score["raw"], score["normalized"], score["weighted"]]);
        }
    });
    if let Some(pods) = answer["pods"].as_array_mut() {
        pods.iter_mut().for_each(trim);
    }
    let mut text = format!("{{\"seed\": {}, \"gates\": {},\n", case.seed, Value::from(case.gates));
    let _ = writeln!(text, "\"config\": {},", case.config);
    lines(&mut text, "objects", &case.objects);
    lines(&mut text, "events", &case.events);
    lines(&mut text, "pods", answer["pods"].as_array().map_or(&[], Vec::as_slice));
    lines(&mut text, "answers", answer["events"].as_array().map_or(&[], Vec::as_slice));
    let _ = writeln!(text, "\"registered\": {}}}", answer["registered"]);
    text
}

fn lines(text: &mut String, name: &str, values: &[Value]) {
    let values: Vec<String> = values.iter().map(|value| format!("  {value}")).collect();
    let _ = writeln!(text, "\"{name}\": [\n{}\n],", values.join(",\n"));
}

/// Removes empty values from the answer for a pod. They mean the same as absent ones.
fn trim(pod: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    if let Some(fields) = pod.as_object_mut() {
        fields.retain(|_, value| !is_empty(value));
    }
    for node in pod["nodes"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        node.retain(|_, value| !is_empty(value));
    }
}

fn for_each_scores(answer: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    for pod in answer["pods"].as_array_mut().into_iter().flatten() {
        for node in pod["nodes"].as_array_mut().into_iter().flatten() {
            if let Some(scores) = node.get_mut("scores").and_then(Value::as_object_mut) {
                change(scores);
            }
        }
    }
}
