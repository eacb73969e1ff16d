//! Events: their fields, names and JSON form.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::clock::Rng;
use crate::k8s::Pod;
use crate::k8s::names::dns1123_subdomain_errors;

/// Namespace of events about objects without a namespace.
/// Follows `apimachinery/pkg/apis/meta/v1/types.go#NamespaceDefault @v1.36.3`.
const DEFAULT_NAMESPACE: &str = "default";

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum EventType {
    /// Information only, no problem.
    Normal,
    /// Something may be wrong.
    Warning,
}

/// Reference to the object that an event is about. As in upstream's events, it has no field path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    pub(super) kind: Cow<'static, str>,
    pub(super) api_version: Cow<'static, str>,
}

/// The part of an event that the caller provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// Type of the event.
    pub kind: EventType,
    /// Reason in one word, such as `FailedScheduling`.
    pub reason: Cow<'static, str>,
    /// Action that was taken or failed, such as `Binding`.
    pub action: Cow<'static, str>,
    /// Human-readable description of what happened.
    pub note: String,
}

/// An event with all fields, as recorded.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) time: Timestamp,
    pub(super) controller: Arc<str>,
    pub(super) instance: Arc<str>,
    pub(super) regarding: ObjectRef,
    pub(super) related: Option<ObjectRef>,
    pub(super) note: EventNote,
}

/// Number of occurrences of an event, and the time of the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Series {
    pub(super) count: u32,
    #[serde(serialize_with = "micro_time")]
    pub(super) last_observed_time: Timestamp,
}

#[derive(Serialize)]
pub(super) struct Meta<'a> {
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventsV1<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Meta<'a>,
    #[serde(serialize_with = "micro_time")]
    event_time: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Series>,
    reporting_controller: &'a str,
    reporting_instance: &'a str,
    action: &'a str,
    reason: &'a str,
    regarding: &'a ObjectRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<&'a ObjectRef>,
    note: &'a str,
    #[serde(rename = "type")]
    event_type: EventType,
}

impl ObjectRef {
    /// Creates a reference to an object from its metadata.
    pub fn new(
        api_version: impl Into<Cow<'static, str>>,
        kind: impl Into<Cow<'static, str>>,
        meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    ) -> Self {
        Self {
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            kind: kind.into(),
            api_version: api_version.into(),
        }
    }

    /// Creates a reference to a pod.
    pub fn pod(pod: &Pod) -> Self {
        Self::new("v1", "Pod", &pod.metadata)
    }

    /// Returns the namespace in which events about the object are created.
    pub(super) fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { DEFAULT_NAMESPACE } else { &self.namespace }
    }
}

impl Event {
    /// Reconstructs the first event of a series from its repetition. The repetition has the same fields except `name`, `note` and
    /// `time`.
    pub(super) fn into_first(self, name: String, note: String, time: Timestamp) -> Self {
        let note = EventNote { note, ..self.note };
        Self { name, time, note, ..self }
    }

    /// Returns the body that creates the event as an events.k8s.io/v1 object.
    pub(super) fn create_body(&self, series: Option<Series>) -> Bytes {
        json(&EventsV1 {
            api_version: "events.k8s.io/v1",
            kind: "Event",
            metadata: Meta { name: &self.name, namespace: self.regarding.event_namespace() },
            event_time: self.time,
            series,
            reporting_controller: &self.controller,
            reporting_instance: &self.instance,
            action: &self.note.action,
            reason: &self.note.reason,
            regarding: &self.regarding,
            related: self.related.as_ref(),
            note: &self.note.note,
            event_type: self.note.kind,
        })
    }
}

impl Series {
    /// Returns the strategic merge patch that sets the event's series.
    pub(super) fn patch_body(self) -> Bytes {
        #[derive(Serialize)]
        struct Patch {
            series: Series,
        }
        json(&Patch { series: self })
    }
}

/// Returns the name of an event, `<object's name>.<nanoseconds since 1970 in hex>`, or a random UUID if that is not a valid name.
/// Follows `client-go/tools/record/util/util.go#GenerateEventName @v1.36.3`.
pub(super) fn event_name(regarding: &str, nanoseconds: u64, rng: impl FnOnce() -> Rng) -> String {
    let name = format!("{regarding}.{nanoseconds:x}");
    if dns1123_subdomain_errors(&name).is_empty() { name } else { rng().uuid() }
}

/// Serializes a value to JSON. This cannot fail, because the values have only strings, numbers and times.
pub(super) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

/// Serializes a time with microseconds. Follows `apimachinery/pkg/apis/meta/v1/micro_time.go#RFC3339Micro @v1.36.3`.
fn micro_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_name_is_the_objects_name_and_the_time() {
        let rng = || Rng::from_seed(1);
        assert_eq!(event_name("p", 0x18ab, rng), "p.18ab");
        for bad in ["System:x", "p_1", "-p", "p..q", "", &"x".repeat(250)] {
            let name = event_name(bad, 0x18ab, rng);
            assert_eq!(name.len(), 36, "{name}");
            assert!(dns1123_subdomain_errors(&name).is_empty() && name.as_bytes()[14] == b'4', "{name}");
        }
        assert_eq!(event_name(&"x".repeat(248), 0x18ab, rng).len(), 253);
    }

    #[test]
    fn json_has_upstreams_fields() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
        }))
        .unwrap();
        let note = EventNote {
            kind: EventType::Warning,
            reason: "FailedScheduling".into(),
            action: "Scheduling".into(),
            note: "0/1 nodes".to_owned(),
        };
        let event = Event {
            name: "p.1".to_owned(),
            time: "2026-02-03T04:05:06.7891239Z".parse().unwrap(),
            controller: "default-scheduler".into(),
            instance: "default-scheduler-host".into(),
            regarding: ObjectRef::pod(&pod),
            related: None,
            note,
        };
        let body: serde_json::Value = serde_json::from_slice(&event.create_body(None)).unwrap();
        let mut expected = serde_json::json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": "p.1", "namespace": "ns"},
            "eventTime": "2026-02-03T04:05:06.789123Z",
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-host",
            "action": "Scheduling", "reason": "FailedScheduling",
            "regarding": {
                "kind": "Pod", "namespace": "ns", "name": "p", "uid": "u", "apiVersion": "v1", "resourceVersion": "7",
            },
            "note": "0/1 nodes", "type": "Warning",
        });
        assert_eq!(body, expected);
        let series = Series { count: 2, last_observed_time: "2026-02-03T04:05:07Z".parse().unwrap() };
        let patch = r#"{"series":{"count":2,"lastObservedTime":"2026-02-03T04:05:07.000000Z"}}"#;
        assert_eq!(series.patch_body(), patch);
        expected["series"] = serde_json::json!({"count": 2, "lastObservedTime": "2026-02-03T04:05:07.000000Z"});
        let body: serde_json::Value = serde_json::from_slice(&event.create_body(Some(series))).unwrap();
        assert_eq!(body, expected);
    }
}
