//! The server without HTTP: what loads a cluster, and what the controllers of a simulation use.
//!
//! Each call is the code of the request of the same name, less the reading and writing of bytes.

use std::sync::Arc;

use serde_json::Value;

use super::delete::{DeleteOptions, Deleted};
use super::kinds::{self, Kind};
use super::meta;
use super::object::Object;
use super::origin::Origin;
use super::part::Part;
use super::patch::Patch;
use super::selectors::Selection;
use super::{ApiServer, decode, events};
use crate::apimachinery::Status;

impl ApiServer {
    /// Creates an object, as a POST does. Its namespace is its own, or `default`.
    pub fn create(&self, value: Value) -> Result<Arc<Object>, Status> {
        self.add(value, Origin::Client)
    }

    /// Takes in an object as a dump of a cluster, or a manifest that describes half a cluster, has it: UID, times, status,
    /// node and priority are kept where it has them, and made up as for a new object where it has not. One without a UID
    /// comes from no cluster and has to be valid. What every cluster has from the start, such as the namespace `default`, is
    /// replaced.
    /// Classes and nodes have to be there before the pods that name them.
    pub fn load(&self, value: Value) -> Result<Arc<Object>, Status> {
        let is_dump = !meta::text(&value, "uid").is_empty();
        let kind = kind_of(&value)?;
        self.with(|state| {
            state.yield_built_in(kind, &value);
            state.create(kind, "", value, if is_dump { Origin::Dump } else { Origin::Manifest }, false)
        })
    }

    /// Checks the types of all of an object's members, also of those that no scheduler reads. Gives the paths of those that
    /// the API does not know, such as `spec.nodeSelectors`: they count for nothing, as with a real server that is not told
    /// to be strict.
    pub fn check_members(value: &Value) -> Result<Vec<String>, Status> {
        let kind = kind_of(value)?;
        decode::read(kind, value.clone(), true).map(|(_, unknown)| unknown)
    }

    fn add(&self, value: Value, origin: Origin) -> Result<Arc<Object>, Status> {
        let kind = kind_of(&value)?;
        self.with(|state| state.create(kind, "", value, origin, false))
    }

    /// An object; `namespace` is empty for cluster-scoped kinds.
    pub fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.with(|state| state.existing(kind, namespace, name).ok())
    }

    /// All objects of a kind, in the order of their keys.
    pub fn list(&self, kind: &'static Kind) -> Vec<Arc<Object>> {
        self.with(|state| state.shelf(kind).objects.values().cloned().collect())
    }

    /// The objects of a kind in one namespace that match a label selector.
    pub fn select(&self, kind: &'static Kind, namespace: &str, labels: &str) -> Result<Vec<Arc<Object>>, Status> {
        let selection = Selection::parse(kind, namespace, labels, "")?;
        self.with(|state| {
            Ok(state.shelf(kind).objects.values().filter(|object| selection.matches(object)).cloned().collect())
        })
    }

    /// Replaces an object, as a PUT does.
    pub fn update(&self, value: Value) -> Result<Arc<Object>, Status> {
        self.put(value, Part::Main)
    }

    /// Replaces an object's status, as a PUT of the subresource does.
    pub fn update_status(&self, value: Value) -> Result<Arc<Object>, Status> {
        self.put(value, Part::Status)
    }

    fn put(&self, value: Value, part: Part) -> Result<Arc<Object>, Status> {
        let kind = kind_of(&value)?;
        let (namespace, name) = (meta::text(&value, "namespace").to_owned(), meta::text(&value, "name").to_owned());
        self.with(|state| state.put(kind, (&namespace, &name), part, value, false)).map(|updated| updated.object)
    }

    /// Patches an object with a strategic merge patch.
    pub fn patch(&self, kind: &'static Kind, namespace: &str, name: &str, patch: Value) -> Result<Arc<Object>, Status> {
        self.with(|state| state.patch(kind, (namespace, name), Part::Main, &Patch::Strategic(patch), false))
    }

    /// Patches an object's status with a strategic merge patch, such as `{"status": {"phase": "Running"}}`.
    pub fn patch_status(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        patch: Value,
    ) -> Result<Arc<Object>, Status> {
        self.with(|state| state.patch(kind, (namespace, name), Part::Status, &Patch::Strategic(patch), false))
    }

    /// Deletes an object.
    pub fn delete(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.with(|state| state.delete(kind, (namespace, name), options))
    }

    /// How often pods were deleted so far: a cheap way to learn whether there is something to look at.
    pub fn pod_deletions(&self) -> u64 {
        self.with(|state| state.pod_deletions)
    }

    /// Binds a pod to a node, as a POST of a `Binding` does.
    pub fn bind(&self, namespace: &str, binding: &Value) -> Result<(), Status> {
        self.with(|state| state.bind(namespace, None, binding, false))
    }

    /// An object in the form of `kind`, which for core events is not the stored one.
    pub fn value_as(&self, kind: &'static Kind, object: &Object) -> Value {
        let mut value = object.value();
        events::to_view(kind, &mut value);
        value
    }
}

/// The kind that an object says it is.
fn kind_of(value: &Value) -> Result<&'static Kind, Status> {
    let (version, name) =
        (value["apiVersion"].as_str().unwrap_or_default(), value["kind"].as_str().unwrap_or_default());
    kinds::by_name(version, name)
        .ok_or_else(|| Status::bad_request(format!("no kind {name:?} is registered for version {version:?}")))
}
