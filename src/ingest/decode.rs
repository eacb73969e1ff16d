//! Decodes objects one by one. An object that cannot be decoded is logged and counted. Its list or watch continues.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::k8s::object_key;

/// An object of a list or of a watch event.
#[derive(Debug)]
pub(super) enum Item<K> {
    /// The object could be decoded.
    Read(K),
    /// Only the key could be decoded. The object exists, but its content is unknown.
    Unreadable {
        /// The key `namespace/name` of the object.
        key: String,
        /// The resource version, empty if it cannot be decoded either.
        version: String,
    },
}

/// A decoded line of a watch.
#[derive(Debug)]
pub(super) enum Line<K> {
    /// An object was added or modified.
    Applied(Item<K>),
    /// An object was deleted. The item is its last state.
    Deleted(Item<K>),
    /// All events up to this resource version have been sent.
    Bookmark {
        /// The resource version of the bookmark.
        version: String,
        /// Whether this bookmark ends the initial events of a watch-list.
        ends_initial_events: bool,
    },
    /// The watch has failed.
    Error(Box<Status>),
    /// The line has an object without a readable name, or an unknown event type.
    Ignored,
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page<K> {
    pub(super) items: Vec<Item<K>>,
    pub(super) version: String,
    /// Continue token of the next page, if there is one.
    pub(super) next: Option<String>,
}

/// The decoding of objects of one kind.
pub(super) struct Reading<K> {
    /// Name of the kind in logs.
    pub(super) kind: String,
    pub(super) unreadable: Unreadable,
    /// Decodes an object from JSON.
    pub(super) read: Read<K>,
}

/// Function that decodes an object from JSON.
pub(super) type Read<K> = Box<dyn Fn(&RawValue) -> Result<K, serde_json::Error> + Send + Sync>;

/// Counts objects that could not be decoded. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(super) struct Unreadable(Arc<AtomicU64>);

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct WirePage<'a> {
    #[serde(default)]
    metadata: WirePageMeta,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WirePageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

/// The fields that must be readable to identify an object.
#[derive(Deserialize)]
struct Identified {
    metadata: Identity,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity {
    namespace: String,
    name: String,
    resource_version: String,
    annotations: Option<std::collections::BTreeMap<String, String>>,
}

impl Unreadable {
    /// Returns the number of objects that could not be decoded.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self, kind: &str, object: &str, error: &serde_json::Error) {
        self.0.fetch_add(1, Ordering::Relaxed);
        tracing::error!(kind, object, %error, "Failed to decode object, keeping its previous version");
    }
}

impl<K> Item<K>
where
    K: kube::Resource,
{
    /// Returns the key `namespace/name` of the object.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Read(object) => object_key(object.meta()),
            Self::Unreadable { key, .. } => key.clone(),
        }
    }

    /// Returns the object's resource version, empty if it has none.
    pub(super) fn version(&self) -> &str {
        match self {
            Self::Read(object) => object.meta().resource_version.as_deref().unwrap_or_default(),
            Self::Unreadable { version, .. } => version,
        }
    }
}

/// Decodes an object and drops its managed fields. Returns `None` if not even the name of the object is readable.
fn item<K: kube::Resource>(raw: &RawValue, reading: &Reading<K>) -> Option<Item<K>> {
    let error = match (reading.read)(raw) {
        Ok(mut object) if object.meta().name.is_some() => {
            object.meta_mut().managed_fields = None;
            return Some(Item::Read(object));
        }
        Ok(_) => serde::de::Error::custom("object has no name"),
        Err(error) => error,
    };
    let identity =
        serde_json::from_str(raw.get()).map_or_else(|_| Identity::default(), |Identified { metadata }| metadata);
    let Identity { namespace, name, resource_version: version, .. } = identity;
    let key = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
    reading.unreadable.note(&reading.kind, &key, &error);
    (!name.is_empty()).then_some(Item::Unreadable { key, version })
}

/// Decodes a line of a watch. Fails if the line is not an event.
pub(super) fn line<K: kube::Resource>(text: &str, reading: &Reading<K>) -> Result<Line<K>, serde_json::Error> {
    let WireLine { kind: event, object } = serde_json::from_str(text)?;
    Ok(match &*event {
        "ADDED" | "MODIFIED" => item(object, reading).map_or(Line::Ignored, Line::Applied),
        "DELETED" => item(object, reading).map_or(Line::Ignored, Line::Deleted),
        "BOOKMARK" => {
            let Identified { metadata } = serde_json::from_str(object.get())?;
            let annotations = metadata.annotations.unwrap_or_default();
            let ends_initial_events = annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true");
            Line::Bookmark { version: metadata.resource_version, ends_initial_events }
        }
        "ERROR" => Line::Error(serde_json::from_str(object.get())?),
        _ => Line::Ignored,
    })
}

/// Decodes a page of a list. Fails if the text is not a list.
pub(super) fn page<K: kube::Resource>(text: &str, reading: &Reading<K>) -> Result<Page<K>, serde_json::Error> {
    let WirePage { metadata, items } = serde_json::from_str(text)?;
    let items = items.unwrap_or_default().into_iter().filter_map(|raw| item(raw, reading)).collect();
    let next = Some(metadata.next).filter(|next| !next.is_empty());
    Ok(Page { items, version: metadata.resource_version, next })
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::k8s::{Original, Pod};

    /// Prints the type of the line, the object and its resource version.
    fn print(line: &Line<Pod>) -> String {
        let item = |item: &Item<Pod>| {
            let kind = if matches!(item, Item::Read(_)) { "read" } else { "unreadable" };
            format!("{kind} {} at {:?}", item.key(), item.version())
        };
        match line {
            Line::Applied(object) => format!("applied: {}", item(object)),
            Line::Deleted(object) => format!("deleted: {}", item(object)),
            Line::Bookmark { version, ends_initial_events } => format!("bookmark {version} {ends_initial_events}"),
            Line::Error(status) => format!("error {} {}", status.code, status.message),
            Line::Ignored => "ignored".to_owned(),
        }
    }

    fn reading<K: DeserializeOwned>(unreadable: &Unreadable) -> Reading<K> {
        let read = Box::new(|raw: &RawValue| serde_json::from_str(raw.get()));
        Reading { kind: "pods".to_owned(), unreadable: unreadable.clone(), read }
    }

    #[test]
    fn lines() {
        let check = |text: &str, expected: &str, unreadable_objects: u64| {
            let unreadable = Unreadable::default();
            let line =
                line::<Pod>(text, &reading(&unreadable)).map_or_else(|error| error.to_string(), |line| print(&line));
            assert_eq!((line.as_str(), unreadable.count()), (expected, unreadable_objects), "{text}");
        };
        let pod = r#"{"metadata":{"namespace":"a","name":"p","resourceVersion":"7"},"spec":{}}"#;
        check(&format!(r#"{{"type":"ADDED","object":{pod}}}"#), r#"applied: read a/p at "7""#, 0);
        check(&format!(r#"{{"type":"MODIFIED","object":{pod}}}"#), r#"applied: read a/p at "7""#, 0);
        check(&format!(r#"{{"type":"DELETED","object":{pod}}}"#), r#"deleted: read a/p at "7""#, 0);
        // The order of `object` and `type` does not matter.
        check(&format!(r#"{{"object":{pod},"type":"DELETED"}}"#), r#"deleted: read a/p at "7""#, 0);
        let broken = r#"{"metadata":{"namespace":"a","name":"p","resourceVersion":"7"},"spec":{"priority":"high"}}"#;
        check(&format!(r#"{{"type":"ADDED","object":{broken}}}"#), r#"applied: unreadable a/p at "7""#, 1);
        check(&format!(r#"{{"type":"DELETED","object":{broken}}}"#), r#"deleted: unreadable a/p at "7""#, 1);
        check(r#"{"type":"ADDED","object":{"metadata":{"name":4}}}"#, "ignored", 1);
        check(r#"{"type":"ADDED","object":{"metadata":{}}}"#, "ignored", 1);
        check(r#"{"type":"ADDED","object":3}"#, "ignored", 1);
        check(r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#, "bookmark 9 false", 0);
        check(
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
            "bookmark 9 true",
            0,
        );
        check(r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#, "error 410 too old", 0);
        check(r#"{"type":"MERGED","object":{}}"#, "ignored", 0);
        check(r#"{"type":"ADDED","obj"#, "EOF while parsing a string at line 1 column 20", 0);
    }

    #[test]
    fn pages() {
        let unreadable = Unreadable::default();
        let text = r#"{"kind":"PodList","metadata":{"resourceVersion":"5","continue":"more"},"items":[
            {"metadata":{"name":"p","managedFields":[{"manager":"m"}]}}, {"metadata":{"name":"q"},"spec":4}, 7]}"#;
        let page = page::<Pod>(text, &reading(&unreadable)).expect("it is a list");
        let keys: Vec<String> = page.items.iter().map(Item::key).collect();
        assert_eq!((keys, page.version, page.next), (vec!["p".into(), "q".into()], "5".into(), Some("more".into())));
        assert_eq!(unreadable.count(), 2);
        let empty = super::page::<Pod>(r#"{"metadata":{"resourceVersion":"5"},"items":null}"#, &reading(&unreadable));
        assert!(empty.is_ok_and(|page| page.items.is_empty() && page.next.is_none()));
    }

    #[test]
    fn managed_fields_are_not_kept() {
        let text = r#"{"type":"ADDED","object":{"metadata":{"name":"n","managedFields":[{"manager":"m"}]}}}"#;
        let line = line::<k8s_openapi::api::core::v1::Namespace>(text, &reading(&Unreadable::default()));
        let Ok(Line::Applied(Item::Read(namespace))) = line else { panic!("it is a namespace: {line:?}") };
        assert_eq!(namespace.metadata.managed_fields, None);
    }

    #[test]
    fn an_object_is_kept_whole_where_that_is_asked_for() {
        let text = r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"p"},"unknown":1}}"#;
        let whole = |raw: &RawValue| {
            let mut pod: Pod = serde_json::from_str(raw.get())?;
            pod.original = Some(Original::of_pod(raw)?);
            Ok(pod)
        };
        let original = |reading: &Reading<Pod>| {
            let line = line(text, reading);
            let Ok(Line::Applied(Item::Read(pod))) = line else { panic!("it is a pod: {line:?}") };
            pod.original.map(|original| original.json().get().to_owned())
        };
        let slim = reading(&Unreadable::default());
        assert_eq!(original(&slim), None);
        let whole = Reading { read: Box::new(whole), ..slim };
        assert_eq!(original(&whole).as_deref(), Some(r#"{"metadata":{"name":"p"},"unknown":1}"#));
    }
}
