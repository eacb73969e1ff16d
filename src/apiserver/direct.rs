//! Direct calls without HTTP, for loading a cluster and for the controllers of a simulation.
//!
//! Each call runs the same code as the corresponding request, without encoding and decoding.

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
    /// Creates an object, as a POST does. The namespace is the object's own, or `default`.
    pub fn create(&self, value: Value) -> Result<Arc<Object>, Status> {
        self.add(value, Origin::Client)
    }

    /// Loads an object from a dump of a cluster, or from a manifest that describes part of a cluster. UID, times, status, node
    /// and priority are kept if the object has them. Otherwise they are filled in as for a new object. An object without a UID
    /// is taken to come from a manifest, and must be valid. The loaded object replaces a built-in object of the same name, such
    /// as the namespace `default`. Classes and nodes must be loaded before the pods that name them.
    pub fn load(&self, value: Value) -> Result<Arc<Object>, Status> {
        let is_dump = !meta::text(&value, "uid").is_empty();
        let kind = kind_of(&value)?;
        self.with(|state| {
            state.yield_built_in(kind, &value);
            state.create(kind, "", value, if is_dump { Origin::Dump } else { Origin::Manifest }, false)
        })
    }

    /// Checks the types of all members of an object, including members that no scheduler reads. Returns the paths of members
    /// that the API does not know, such as `spec.nodeSelectors`. Like a real server without strict field validation, this server
    /// ignores unknown members.
    pub fn check_members(value: &Value) -> Result<Vec<String>, Status> {
        let kind = kind_of(value)?;
        decode::read(kind, value.clone(), true).map(|(_, unknown)| unknown)
    }

    fn add(&self, value: Value, origin: Origin) -> Result<Arc<Object>, Status> {
        let kind = kind_of(&value)?;
        self.with(|state| state.create(kind, "", value, origin, false))
    }

    /// Returns an object of a kind. `namespace` is empty for cluster-scoped kinds.
    pub fn get(&self, kind: &'static Kind, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.with(|state| state.existing(kind, namespace, name).ok())
    }

    /// Returns all objects of a kind, in the order of their keys.
    pub fn list(&self, kind: &'static Kind) -> Vec<Arc<Object>> {
        self.with(|state| state.shelf(kind).objects.values().cloned().collect())
    }

    /// Returns the objects of a kind in one namespace that match a label selector.
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

    /// Deletes an object, as a DELETE does.
    pub fn delete(
        &self,
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        self.with(|state| state.delete(kind, (namespace, name), options))
    }

    /// Returns the number of delete requests for pods so far, without rejected requests and dry runs. A cheap way to learn
    /// whether pods were deleted.
    pub fn pod_deletions(&self) -> u64 {
        self.with(|state| state.pod_deletions)
    }

    /// Binds a pod to a node, as a POST of a `Binding` does.
    pub fn bind(&self, namespace: &str, binding: &Value) -> Result<(), Status> {
        self.with(|state| state.bind(namespace, None, binding, false))
    }

    /// Returns an object in the form of `kind`. For core events, this is not the stored form.
    pub fn value_as(&self, kind: &'static Kind, object: &Object) -> Value {
        let mut value = object.value();
        events::to_view(kind, &mut value);
        value
    }
}

/// Returns the kind that an object names in `apiVersion` and `kind`.
fn kind_of(value: &Value) -> Result<&'static Kind, Status> {
    let (version, name) =
        (value["apiVersion"].as_str().unwrap_or_default(), value["kind"].as_str().unwrap_or_default());
    kinds::by_name(version, name)
        .ok_or_else(|| Status::bad_request(format!("no kind {name:?} is registered for version {version:?}")))
}
