//! Complete objects as JSON, for extenders and plugins that need more than the slim types.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::Pod;

/// The members of a JSON object, in order and with their original text.
#[derive(Clone, Debug, Default)]
pub struct Members<'a>(pub Vec<(String, Cow<'a, RawValue>)>);

/// A complete object as JSON, as the API server sent it, without `kind` and `apiVersion`. The type has the size of one pointer,
/// because every pod and node has an `Option<Original>`, which is usually `None`. Clones share the text.
#[derive(Clone)]
pub struct Original(Arc<Box<RawValue>>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    members.push((key, Cow::Borrowed(map.next_value::<&'de RawValue>()?)));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, &**value)?;
        }
        map.end()
    }
}

impl Members<'_> {
    /// Replaces a member by the result of `change`. Does nothing if the member is missing.
    fn change(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Members<'_>) -> Result<(), serde_json::Error>,
    ) -> Result<(), serde_json::Error> {
        if let Some((_, value)) = self.0.iter_mut().find(|(key, _)| key == name) {
            let mut inner: Members<'_> = serde_json::from_str(value.get())?;
            change(&mut inner)?;
            let changed = to_raw_value(&inner)?;
            *value = Cow::Owned(changed);
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }
}

impl Original {
    /// Creates the original of a pod, without managed fields, which upstream's pod informer drops, too.
    /// Follows `pkg/scheduler/scheduler.go#newPodInformer @v1.36.3`.
    pub fn of_pod(raw: &RawValue) -> Result<Self, serde_json::Error> {
        Self::without(raw, |members| {
            members.change("metadata", |metadata| {
                metadata.remove("managedFields");
                Ok(())
            })
        })
    }

    /// Creates the original of a node, with its managed fields.
    pub fn of_node(raw: &RawValue) -> Result<Self, serde_json::Error> {
        Self::without(raw, |_| Ok(()))
    }

    fn without(
        raw: &RawValue,
        change: impl FnOnce(&mut Members<'_>) -> Result<(), serde_json::Error>,
    ) -> Result<Self, serde_json::Error> {
        let mut members: Members<'_> = serde_json::from_str(raw.get())?;
        members.remove("kind");
        members.remove("apiVersion");
        change(&mut members)?;
        Ok(Self(Arc::new(to_raw_value(&members)?)))
    }

    /// Returns the object's JSON.
    pub fn json(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for Original {
    fn eq(&self, other: &Self) -> bool {
        self.json().get() == other.json().get()
    }
}

/// Prints a placeholder instead of the JSON, because pods are printed in logs.
impl fmt::Debug for Original {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Original")
    }
}

impl Pod {
    /// Returns the complete pod as JSON, if it was kept. The node of an assumed pod is added, because the API server does not
    /// know it yet.
    pub fn whole(&self) -> Option<Cow<'_, RawValue>> {
        let original = self.original.as_ref()?.json();
        let Some(node) = self.node_name() else { return Some(Cow::Borrowed(original)) };
        let with_node = || {
            let mut members: Members<'_> = serde_json::from_str(original.get())?;
            members.change("spec", |spec| {
                spec.remove("nodeName");
                spec.0.push(("nodeName".to_owned(), Cow::Owned(to_raw_value(node)?)));
                Ok(())
            })?;
            to_raw_value(&members)
        };
        with_node().ok().map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","managedFields":[{"manager":"m"}],
        "finalizers":["f"]},"spec":{"priority":1,"containers":[{"name":"c","command":["\u003c"]}]},"status":{}}"#;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("JSON")
    }

    #[test]
    fn original_drops_only_type_and_managed_fields() {
        let pod = Original::of_pod(&raw(POD)).expect("an object");
        let expected = r#"{"metadata":{"name":"p","finalizers":["f"]},"spec":{"priority":1,"containers":[{"name":"c","command":["\u003c"]}]},"status":{}}"#;
        assert_eq!(pod.json().get(), expected);
        let node = Original::of_node(&raw(r#"{"metadata":{"managedFields":[]},"kind":"Node"}"#)).expect("an object");
        assert_eq!(node.json().get(), r#"{"metadata":{"managedFields":[]}}"#);
        assert!(Original::of_pod(&raw("[1]")).is_err());
        assert_eq!(size_of::<Option<Original>>(), size_of::<usize>());
    }

    #[test]
    fn original_of_an_assumed_pod_has_its_node() {
        let original = Original::of_pod(&raw(POD)).ok();
        let mut pod: Pod = serde_json::from_str(POD).expect("a pod");
        assert!(pod.whole().is_none());
        pod.original = original;
        let node_of = |pod: &Pod| {
            let whole: serde_json::Value = serde_json::from_str(pod.whole().expect("it was kept").get()).expect("JSON");
            assert_eq!(whole["spec"]["priority"], 1);
            whole["spec"]["nodeName"].clone()
        };
        assert_eq!(node_of(&pod), json!(null));
        pod.spec.node_name = Some("n".to_owned());
        assert_eq!(node_of(&pod), json!("n"));
    }
}
