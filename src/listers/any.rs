//! Stores of kinds whose Rust type the caller does not know. `ingest` fills them.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;

use super::{Change, Changes, Kind, Store};

/// A change of an object of any kind.
pub type AnyChange = Change<dyn Any + Send + Sync>;

/// An object of any kind, decoded for the store that it goes into.
pub struct AnyObject(Arc<dyn Object>);

/// A store for objects of any kind.
pub trait AnyStore: Send + Sync {
    /// Returns the kind of the objects.
    fn kind(&self) -> &Kind;
    /// Returns the Rust type of the objects.
    fn object_type(&self) -> TypeId;
    /// Decodes an object of the kind from JSON.
    fn read(&self, json: &str) -> Result<AnyObject, serde_json::Error>;
    /// Returns all keys, sorted.
    fn keys(&self) -> Vec<String>;
    /// Adds or replaces an object, like [`Store::apply`].
    fn apply(&self, object: AnyObject) -> Changes<dyn Any + Send + Sync>;
    /// Removes a deleted object, like [`Store::delete`].
    fn delete(&self, last: AnyObject) -> AnyChange;
    /// Removes the object with this key, like [`Store::remove`].
    fn remove(&self, key: &str) -> Option<AnyChange>;
    /// Returns the store for a downcast to its type.
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

trait Object: Send + Sync {
    fn meta(&self) -> &ObjectMeta;
    fn meta_mut(&mut self) -> &mut ObjectMeta;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: kube::Resource + Send + Sync + 'static> Object for K {
    fn meta(&self) -> &ObjectMeta {
        kube::Resource::meta(self)
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        kube::Resource::meta_mut(self)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl AnyObject {
    fn into_typed<K: Send + Sync + 'static>(self) -> Arc<K> {
        self.0.into_any().downcast().unwrap_or_else(|_| panic!("an object goes into the store that it was read for"))
    }
}

impl kube::Resource for AnyObject {
    type DynamicType = Kind;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(_: &Kind) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn group(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }

    fn version(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }

    fn plural(kind: &Kind) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        Arc::get_mut(&mut self.0).expect("an object is not shared before it is stored").meta_mut()
    }
}

impl<K> AnyStore for Store<K>
where
    K: kube::Resource + DeserializeOwned + Send + Sync + 'static,
{
    fn kind(&self) -> &Kind {
        Self::kind(self)
    }

    fn object_type(&self) -> TypeId {
        TypeId::of::<K>()
    }

    fn read(&self, json: &str) -> Result<AnyObject, serde_json::Error> {
        serde_json::from_str::<K>(json).map(|object| AnyObject(Arc::new(object)))
    }

    fn keys(&self) -> Vec<String> {
        Self::keys(self)
    }

    fn apply(&self, object: AnyObject) -> Changes<dyn Any + Send + Sync> {
        let Changes(changes) = Self::apply(self, object.into_typed());
        Changes(changes.map(|change| change.map(erased)))
    }

    fn delete(&self, last: AnyObject) -> AnyChange {
        erased(Self::delete(self, last.into_typed()))
    }

    fn remove(&self, key: &str) -> Option<AnyChange> {
        Self::remove(self, key).map(erased)
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

fn erased<K: Send + Sync + 'static>(change: Change<K>) -> AnyChange {
    match change {
        Change::Added(new) => Change::Added(new),
        Change::Updated { old, new } => Change::Updated { old, new },
        Change::Deleted { last, missed } => Change::Deleted { last, missed },
    }
}
