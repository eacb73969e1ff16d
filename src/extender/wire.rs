//! Requests to extenders, and their replies.
//!
//! Requests contain every member, in upstream's spelling. Replies are parsed as by Go's decoder. Keys are case-insensitive,
//! the last of equal keys counts, unknown keys are ignored, `null` is the same as absent, and bytes after the first value are
//! ignored. Follows `kube-scheduler/extender/v1/types.go @v1.36.3`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{Deserialize, DeserializeOwned, Error as _};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use serde_json::value::RawValue;

use crate::go::json::{Source, syntax_error};
use crate::k8s::Members;

/// Request to filter or score nodes.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Args<'a> {
    pub(super) pod: &'a RawValue,
    /// Whole nodes, for an extender that does not cache nodes.
    pub(super) nodes: Option<NodeList<'a>>,
    /// Names of nodes, for an extender that caches nodes.
    pub(super) node_names: Option<Vec<&'a str>>,
}

/// A `NodeList` with whole nodes.
#[derive(Serialize)]
pub(super) struct NodeList<'a> {
    pub(super) metadata: Empty,
    pub(super) items: Vec<&'a RawValue>,
}

/// A JSON object without members.
#[derive(Serialize)]
pub(super) struct Empty {}

/// Request to choose victims for preemption.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PreemptionArgs<'a> {
    pub(super) pod: &'a RawValue,
    /// Whole victims by node, for an extender that does not cache nodes.
    pub(super) node_name_to_victims: Option<BTreeMap<&'a str, VictimsOf<Cow<'a, RawValue>>>>,
    /// UIDs of victims by node, for an extender that caches nodes.
    pub(super) node_name_to_meta_victims: Option<BTreeMap<&'a str, VictimsOf<MetaPod<'a>>>>,
}

/// Victims on one node.
#[derive(Serialize)]
pub(super) struct VictimsOf<P> {
    #[serde(rename = "Pods")]
    pub(super) pods: Vec<P>,
    #[serde(rename = "NumPDBViolations")]
    pub(super) num_pdb_violations: i64,
}

/// A pod, identified by its UID.
#[derive(Serialize)]
pub(super) struct MetaPod<'a> {
    #[serde(rename = "UID")]
    pub(super) uid: &'a str,
}

/// Request to bind a pod.
#[derive(Serialize)]
pub(super) struct BindingArgs<'a> {
    #[serde(rename = "PodName")]
    pub(super) pod_name: &'a str,
    #[serde(rename = "PodNamespace")]
    pub(super) pod_namespace: &'a str,
    #[serde(rename = "PodUID")]
    pub(super) pod_uid: &'a str,
    #[serde(rename = "Node")]
    pub(super) node: &'a str,
}

/// Reply to a filter request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FilterResult {
    /// Whole nodes that are kept, each as raw JSON.
    pub(super) nodes: Option<Vec<Box<str>>>,
    pub(super) node_names: Option<Vec<String>>,
    pub(super) failed_nodes: BTreeMap<String, String>,
    pub(super) failed_and_unresolvable_nodes: BTreeMap<String, String>,
    /// Error of the extender. Empty if the filter succeeded.
    pub(super) error: String,
}

/// Reply to a preemption request: UIDs of victims and the number of violated budgets, by node.
pub(super) type PreemptionResult = BTreeMap<String, (Vec<String>, i64)>;

/// Members of an object with case-insensitive keys.
struct Fields<'a>(Members<'a>);

impl<'a> Fields<'a> {
    /// Parses the members of an object. `null` has none.
    fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::from_str::<Option<Members<'a>>>(text)?.unwrap_or_default()))
    }

    /// Returns the member's raw text, unless it is absent or `null`.
    fn text(&self, name: &str) -> Option<&str> {
        let mut named = self.0.0.iter().rev().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.get()).filter(|text| *text != "null")
    }

    fn get<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, serde_json::Error> {
        let read = |text| serde_json::from_str(text).map_err(|error| in_field(name, &error));
        self.text(name).map_or_else(|| Ok(T::default()), read)
    }
}

fn in_field(name: &str, error: &serde_json::Error) -> serde_json::Error {
    serde_json::Error::custom(format!("{name}: {error}"))
}

/// Returns the raw elements of a list, some of which may be `null`.
fn elements(text: &str) -> Result<Vec<&str>, serde_json::Error> {
    Ok(serde_json::from_str::<Vec<&RawValue>>(text)?.into_iter().map(RawValue::get).collect())
}

/// A map of strings. A `null` value becomes an empty string.
#[derive(Default)]
struct Strings(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let strings = BTreeMap::<String, Option<String>>::deserialize(deserializer)?;
        Ok(Self(strings.into_iter().map(|(key, value)| (key, value.unwrap_or_default())).collect()))
    }
}

/// Returns the first JSON value of a reply. Errors have Go's texts. Invalid UTF-8 becomes U+FFFD, as in Go.
pub(super) fn first_value(body: &[u8]) -> Result<Box<RawValue>, serde_json::Error> {
    let text = String::from_utf8_lossy(body);
    match serde_json::Deserializer::from_str(&text).into_iter::<Box<RawValue>>().next() {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(syntax_error(body, Source::Stream).map_or(error, serde_json::Error::custom)),
        None => Err(serde_json::Error::custom("EOF")),
    }
}

/// Parses the reply to a filter request.
pub(super) fn filter_result(reply: &str) -> Result<FilterResult, serde_json::Error> {
    let fields = Fields::read(reply)?;
    let nodes = match fields.text("Nodes") {
        None => None,
        Some(list) => {
            let list = Fields::read(list).map_err(|error| in_field("Nodes", &error))?;
            let items = list.text("items").map_or_else(|| Ok(Vec::new()), elements);
            let items = items.map_err(|error| in_field("Nodes.items", &error))?;
            Some(items.into_iter().map(Box::from).collect())
        }
    };
    let names: Option<Vec<Option<String>>> = fields.get("NodeNames")?;
    Ok(FilterResult {
        nodes,
        node_names: names.map(|names| names.into_iter().map(Option::unwrap_or_default).collect()),
        failed_nodes: fields.get::<Strings>("FailedNodes")?.0,
        failed_and_unresolvable_nodes: fields.get::<Strings>("FailedAndUnresolvableNodes")?.0,
        error: fields.get("Error")?,
    })
}

/// Parses the reply to a prioritize request: names of nodes and scores.
pub(super) fn host_priorities(reply: &str) -> Result<Vec<(String, i64)>, serde_json::Error> {
    let Some(list) = Some(reply).filter(|text| *text != "null") else { return Ok(Vec::new()) };
    elements(list)?
        .into_iter()
        .map(|element| {
            let fields = Fields::read(element)?;
            Ok((fields.get("Host")?, fields.get("Score")?))
        })
        .collect()
}

/// Parses the reply to a preemption request.
pub(super) fn preemption_result(reply: &str) -> Result<PreemptionResult, serde_json::Error> {
    #[derive(Default, DeriveDeserialize)]
    #[serde(transparent)]
    struct Nodes(BTreeMap<String, Box<RawValue>>);
    let nodes: Nodes = Fields::read(reply)?.get("NodeNameToMetaVictims")?;
    let victims = |(node, victims): (String, Box<RawValue>)| {
        let fields = Fields::read(victims.get()).map_err(|error| in_field(&node, &error))?;
        let pods = fields.text("Pods").map_or_else(|| Ok(Vec::new()), elements)?;
        let uid = |pod: &str| Fields::read(pod)?.get("UID");
        let uids = pods.into_iter().map(uid).collect::<Result<_, serde_json::Error>>()?;
        Ok((node, (uids, fields.get("NumPDBViolations")?)))
    };
    nodes.0.into_iter().map(victims).collect()
}

/// Parses the reply to a bind request. Returns the error's text, which is empty on success.
pub(super) fn binding_error(reply: &str) -> Result<String, serde_json::Error> {
    Fields::read(reply)?.get("Error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filter_responses_are_decoded() {
        let check = |reply: &str, expected: FilterResult| {
            assert_eq!(filter_result(reply).expect("it can be read"), expected, "{reply}");
        };
        check("null", FilterResult::default());
        check(r#"{"Nodes":null,"NodeNames":null,"FailedNodes":null,"Error":null,"other":{}}"#, FilterResult::default());
        let strings = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let names = Some(vec!["a".to_owned(), String::new()]);
        check(
            r#"{"nodenames":["b"],"NODENAMES":["a",null],"failedNodes":{"b":"full"},"failedAndUnresolvableNodes":{"c":null}}"#,
            FilterResult {
                node_names: names,
                failed_nodes: strings("b", "full"),
                failed_and_unresolvable_nodes: strings("c", ""),
                ..FilterResult::default()
            },
        );
        let nodes = Some(vec![r#"{"metadata": {}}"#.into(), "null".into()]);
        check(r#"{"nodes":{"Items":[{"metadata": {}}, null]}}"#, FilterResult { nodes, ..FilterResult::default() });
        check(r#"{"nodes":{}}"#, FilterResult { nodes: Some(Vec::new()), ..FilterResult::default() });
        check(r#"{"error":"no"}"#, FilterResult { error: "no".to_owned(), ..FilterResult::default() });
        for malformed in
            ["[]", "7", r#"{"NodeNames":{}}"#, r#"{"Nodes":[]}"#, r#"{"Error":1}"#, r#"{"FailedNodes":[]}"#]
        {
            assert!(filter_result(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn prioritize_responses_are_decoded() {
        let read = |reply: &str| host_priorities(reply).ok();
        assert_eq!(read("null"), Some(vec![]));
        assert_eq!(
            read(r#"[{"host":"a","SCORE":-3},{"Host":"b"},null]"#),
            Some(vec![("a".to_owned(), -3), ("b".to_owned(), 0), (String::new(), 0)])
        );
        assert_eq!(read(r#"[{"Host":"a","Score":1.5}]"#), None);
        assert_eq!(read(r#"{"Host":"a"}"#), None);
    }

    #[test]
    fn preempt_responses_are_decoded() {
        let read = |reply: &str| preemption_result(reply).ok();
        assert_eq!(read("{}"), Some(BTreeMap::new()));
        assert_eq!(
            read(r#"{"nodeNameToMetaVictims":{"n":{"pods":[{"uid":"1"},{}],"numPDBViolations":2},"m":{}}}"#),
            Some(BTreeMap::from([
                ("m".to_owned(), (vec![], 0)),
                ("n".to_owned(), (vec!["1".to_owned(), String::new()], 2)),
            ]))
        );
        assert_eq!(read(r#"{"NodeNameToMetaVictims":{"n":{"Pods":7}}}"#), None);
    }

    #[test]
    fn only_the_first_json_value_is_read() {
        let first = |body: &[u8]| first_value(body).map(|value| value.get().to_owned()).map_err(|e| e.to_string());
        assert_eq!(first(b" {} garbage"), Ok("{}".to_owned()));
        assert_eq!(first(b"\"\xff\""), Ok("\"\u{fffd}\"".to_owned()));
        assert_eq!(first(b""), Err("EOF".to_owned()));
        assert_eq!(first(b"{\"a\": ["), Err("unexpected EOF".to_owned()));
        assert_eq!(first(b"<html>"), Err("invalid character '<' looking for beginning of value".to_owned()));
    }
}
