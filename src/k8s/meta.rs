//! Object metadata: decoding without managed fields, and accessors without `Option`s.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

use super::StringMap;

static NO_STRINGS: StringMap = StringMap::new();

/// Implements `kube::Resource` for a slim type of the core API. The kind is the type's name.
macro_rules! core_resource {
    ($type:ident, $scope:ident, $plural:literal) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = k8s_openapi::$scope;

            fn kind((): &()) -> std::borrow::Cow<'_, str> {
                stringify!($type).into()
            }

            fn group((): &()) -> std::borrow::Cow<'_, str> {
                "".into()
            }

            fn version((): &()) -> std::borrow::Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
pub(super) use core_resource;

/// Metadata as on the wire, without fields that the scheduler never reads. Slim decoding is fast mainly because `managedFields`
/// is skipped while decoding instead of dropped afterwards.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta {
    annotations: Option<StringMap>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    generation: Option<i64>,
    labels: Option<StringMap>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

/// Decodes [`ObjectMeta`] without `managedFields`, `finalizers`, `generateName` and `selfLink`.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let wire = WireMeta::deserialize(deserializer)?;
    Ok(ObjectMeta {
        annotations: wire.annotations.filter(|map| !map.is_empty()),
        creation_timestamp: wire.creation_timestamp,
        deletion_grace_period_seconds: wire.deletion_grace_period_seconds,
        deletion_timestamp: wire.deletion_timestamp,
        generation: wire.generation,
        labels: wire.labels.filter(|map| !map.is_empty()),
        name: wire.name,
        namespace: wire.namespace,
        owner_references: wire.owner_references.filter(|list| !list.is_empty()),
        resource_version: wire.resource_version,
        uid: wire.uid,
        ..ObjectMeta::default()
    })
}

/// Decodes a list or map that may also be `null`, which clients of the API may write.
pub(super) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Returns the labels of an object; empty if it has none.
pub fn labels(meta: &ObjectMeta) -> &StringMap {
    meta.labels.as_ref().unwrap_or(&NO_STRINGS)
}

/// Returns the annotations of an object; empty if it has none.
pub fn annotations(meta: &ObjectMeta) -> &StringMap {
    meta.annotations.as_ref().unwrap_or(&NO_STRINGS)
}

/// Returns the key of an object for queues, stores and messages: `namespace/name`, or the name alone without a namespace.
/// Follows `client-go/tools/cache/store.go#MetaNamespaceKeyFunc @v1.36.3`.
pub fn object_key(meta: &ObjectMeta) -> String {
    let name = meta.name.as_deref().unwrap_or_default();
    match meta.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}
