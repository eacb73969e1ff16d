//! Objects as the API server wrote them, for the few who have to be sent whole ones.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::Pod;

/// The members of a JSON object in its own order, each as it is written.
#[derive(Clone, Debug, Default)]
pub struct Members<'a>(pub Vec<(String, Cow<'a, RawValue>)>);

/// A whole object as JSON, as the API server wrote it, without `kind` and `apiVersion`. A pointer wide, since pods and nodes
/// have one beside them also while nobody asks for it; clones share the text.
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
    /// Replaces a member by what `change` makes of it; one that is missing is left out.
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
    /// A pod's, without its managed fields: upstream drops those of pods when they arrive.
    /// Follows `pkg/scheduler/scheduler.go#newPodInformer @v1.36.3`.
    pub fn of_pod(raw: &RawValue) -> Result<Self, serde_json::Error> {
        Self::without(raw, |members| {
            members.change("metadata", |metadata| {
                metadata.remove("managedFields");
                Ok(())
            })
        })
    }

    /// A node's, which keeps its managed fields.
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

    /// The JSON.
    pub fn json(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for Original {
    fn eq(&self, other: &Self) -> bool {
        self.json().get() == other.json().get()
    }
}

/// Only that there is one: pods are printed in logs.
impl fmt::Debug for Original {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Original")
    }
}

impl Pod {
    /// The whole pod as JSON, if that was kept, with the node that it is assumed on: that is the scheduler's own word, which
    /// the API server does not have yet.
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
    fn all_but_the_type_and_a_pods_managed_fields_is_kept_in_order() {
        let pod = Original::of_pod(&raw(POD)).expect("an object");
        let expected = r#"{"metadata":{"name":"p","finalizers":["f"]},"spec":{"priority":1,"containers":[{"name":"c","command":["\u003c"]}]},"status":{}}"#;
        assert_eq!(pod.json().get(), expected);
        let node = Original::of_node(&raw(r#"{"metadata":{"managedFields":[]},"kind":"Node"}"#)).expect("an object");
        assert_eq!(node.json().get(), r#"{"metadata":{"managedFields":[]}}"#);
        assert!(Original::of_pod(&raw("[1]")).is_err());
        assert_eq!(size_of::<Option<Original>>(), size_of::<usize>());
    }

    #[test]
    fn an_assumed_pod_has_its_node() {
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
