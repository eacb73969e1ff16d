//! The kinds to watch: those with a lister, and those for which plugins registered events.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment};
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Starter;
use super::decode::Read;
use super::feed::{Feed, feed};
use super::reflector::Source;
use super::sinks::{Other, Scheduled};
use crate::config::{FeatureGates, Gate};
use crate::k8s::{Node, Original, Pod};
use crate::listers::{AnyStore, Kind, Listers, Sealed, Store};
use crate::model::{ActionType, EventResource};

/// Field selector for pods that have not terminated, URL-escaped: `status.phase!=Succeeded,status.phase!=Failed`.
/// Follows `pkg/scheduler/scheduler.go#newPodInformer @v1.36.3`.
const NOT_ENDED: &str = "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

/// A kind that is watched.
pub(super) struct Watched {
    /// The kind as it appears in URLs.
    pub(super) kind: Kind,
    /// The name in logs: the plural, or `<plural>.<version>.<group>` for a kind that only plugins know.
    pub(super) name: String,
    /// The name of the task that watches the kind.
    pub(super) task: &'static str,
    /// Whether the kind has a lister. For other kinds, plugins only receive events.
    pub(super) is_looked_up: bool,
    target: Target,
}

/// The store of the kind's objects.
enum Target {
    Pods(Arc<Store<Pod>>),
    Nodes(Arc<Store<Node>>),
    /// Any other kind, with its name in events and the actions that plugins registered.
    Other(Arc<dyn AnyStore>, Option<(EventResource, ActionType)>),
}

/// A kind for which there is a Rust type. The kinds are read in the order of the rows.
struct Row {
    name: &'static str,
    object_type: TypeId,
    /// The kind's name in events, if plugins can register events of it.
    resource: Option<EventResource>,
    /// The feature gate that must be enabled for events of the kind.
    gate: Option<Gate>,
    ask: fn(&Listers) -> Result<(), Sealed>,
}

impl Row {
    fn of<K>(name: &'static str, resource: Option<EventResource>) -> Self
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let ask = |listers: &Listers| listers.ask::<K>().map(drop);
        Self { name, object_type: TypeId::of::<K>(), resource, gate: None, ask }
    }

    fn gated(self, gate: Gate) -> Self {
        Self { gate: Some(gate), ..self }
    }

    /// Returns the kind's name in events with the actions that plugins registered.
    fn registered(&self, events: &Events<'_>) -> Option<(EventResource, ActionType)> {
        let resource = self.resource.clone().filter(|_| self.gate.is_none_or(|gate| events.gates.enabled(gate)))?;
        let actions = *events.registered.get(&resource)?;
        Some((resource, actions))
    }
}

/// The events that plugins and extenders registered.
struct Events<'a> {
    registered: &'a BTreeMap<EventResource, ActionType>,
    gates: &'a FeatureGates,
}

/// Returns the kinds with a Rust type, except pods and nodes.
fn rows() -> [Row; 16] {
    use EventResource as R;
    const DEVICES: Gate = Gate::DynamicResourceAllocation;
    [
        Row::of::<Namespace>("namespaces", None),
        Row::of::<Service>("services", None),
        Row::of::<ReplicationController>("replicationcontrollers", None),
        Row::of::<ReplicaSet>("replicasets", None),
        Row::of::<StatefulSet>("statefulsets", None),
        Row::of::<PodDisruptionBudget>("poddisruptionbudgets", None),
        Row::of::<PersistentVolume>("persistentvolumes", Some(R::PersistentVolume)),
        Row::of::<PersistentVolumeClaim>("persistentvolumeclaims", Some(R::PersistentVolumeClaim)),
        Row::of::<StorageClass>("storageclasses", Some(R::StorageClass)),
        Row::of::<CSINode>("csinodes", Some(R::CsiNode)),
        Row::of::<CSIDriver>("csidrivers", Some(R::CsiDriver)),
        Row::of::<CSIStorageCapacity>("csistoragecapacities", Some(R::CsiStorageCapacity)),
        Row::of::<VolumeAttachment>("volumeattachments", Some(R::VolumeAttachment)),
        Row::of::<ResourceClaim>("resourceclaims", Some(R::ResourceClaim)).gated(DEVICES),
        Row::of::<ResourceSlice>("resourceslices", Some(R::ResourceSlice)).gated(DEVICES),
        Row::of::<DeviceClass>("deviceclasses", Some(R::DeviceClass)).gated(DEVICES),
    ]
}

/// Returns the kinds to watch, and seals the listers. Nodes come first and pods last.
///
/// # Panics
///
/// If the listers were sealed before, and a kind with registered events has no store.
pub(super) fn watched(
    listers: &Listers,
    registered: &BTreeMap<EventResource, ActionType>,
    gates: &FeatureGates,
) -> Vec<Watched> {
    const OPEN: &str = "watching begins here";
    let (rows, events) = (rows(), Events { registered, gates });
    for row in rows.iter().filter(|row| row.registered(&events).is_some()) {
        (row.ask)(listers).expect(OPEN);
    }
    let dynamic: BTreeMap<Kind, (EventResource, ActionType)> = events.of_dynamic_kinds().collect();
    let is_dynamic = |store: &dyn AnyStore| store.object_type() == TypeId::of::<DynamicObject>();
    let asked_for = listers.stores();
    for kind in dynamic.keys() {
        listers.ask_dynamic(kind.clone()).expect(OPEN);
    }
    listers.seal();
    let of = |store: Arc<dyn AnyStore>| -> (usize, Watched) {
        let kind = store.kind().clone();
        let position = rows.iter().position(|row| row.object_type == store.object_type());
        let known = |name: &'static str, target| Watched {
            kind: kind.clone(),
            name: name.to_owned(),
            task: name,
            is_looked_up: true,
            target,
        };
        if store.object_type() == TypeId::of::<Pod>() {
            (usize::MAX, known("pods", Target::Pods(listers.store().expect("it is one of the stores"))))
        } else if store.object_type() == TypeId::of::<Node>() {
            (0, known("nodes", Target::Nodes(listers.store().expect("it is one of the stores"))))
        } else if let Some(at) = position {
            (at + 2, known(rows[at].name, Target::Other(store, rows[at].registered(&events))))
        } else {
            let registered = dynamic.get(&kind).filter(|_| is_dynamic(&*store)).cloned();
            let is_looked_up = asked_for.iter().any(|asked| Arc::ptr_eq(asked, &store));
            let (name, task) = (kind.to_string(), "kind of a plugin");
            (1, Watched { kind, name, task, is_looked_up, target: Target::Other(store, registered) })
        }
    };
    let mut watched: Vec<(usize, Watched)> = listers.stores().into_iter().map(of).collect();
    watched.sort_by_key(|(position, _)| *position);
    watched.into_iter().map(|(_, watched)| watched).collect()
}

impl Events<'_> {
    /// Returns the registered kinds without a Rust type, with their names in events.
    fn of_dynamic_kinds(&self) -> impl Iterator<Item = (Kind, (EventResource, ActionType))> {
        let kind = |(resource, actions): (&EventResource, &ActionType)| {
            let name = match resource {
                EventResource::Other(name) => name,
                EventResource::WildCard => resource.name(),
                EventResource::PodGroup if self.gates.enabled(Gate::GenericWorkload) => {
                    "podgroups.v1alpha2.scheduling.k8s.io"
                }
                _ => return None,
            };
            let Ok(kind) = name.parse::<Kind>() else {
                tracing::error!(gvk = name, "Incorrect event registration");
                return None;
            };
            Some((kind, (resource.clone(), *actions)))
        };
        self.registered.iter().filter_map(kind)
    }
}

impl Watched {
    /// Creates the feed of the kind, from the API server to the kind's store.
    pub(super) fn feed(&self, starter: &Starter) -> Box<dyn Feed> {
        let handlers = starter.handlers.clone();
        let source = |field_selector| Source { path: self.kind.path(), field_selector };
        match &self.target {
            Target::Pods(store) => {
                feed(&self.name, source(NOT_ENDED), Scheduled::pods(handlers, store.clone()), starter.pod_reader())
            }
            Target::Nodes(store) => {
                feed(&self.name, source(""), Scheduled::nodes(handlers, store.clone()), starter.node_reader())
            }
            Target::Other(store, registered) => {
                let sink = Other { handlers, store: store.clone(), registered: registered.clone() };
                let store = store.clone();
                feed(&self.name, source(""), sink, Box::new(move |raw: &RawValue| store.read(raw.get())))
            }
        }
    }
}

impl Starter {
    /// Returns the decoder of pods. It keeps the JSON of pods that extenders receive: pending pods for filtering, and assigned
    /// pods for the choice of victims.
    fn pod_reader(&self) -> Read<Pod> {
        let (pending, assigned) = (self.whole.pending_pods, self.whole.assigned_pods);
        Box::new(move |raw| {
            let mut pod: Pod = serde_json::from_str(raw.get())?;
            if assigned || (pending && pod.node_name().is_none()) {
                pod.original = Some(Original::of_pod(raw)?);
            }
            Ok(pod)
        })
    }

    /// Returns the decoder of nodes. It keeps the JSON if extenders receive whole nodes.
    fn node_reader(&self) -> Read<Node> {
        let whole = self.whole.nodes;
        Box::new(move |raw| {
            let mut node: Node = serde_json::from_str(raw.get())?;
            if whole {
                node.original = Some(Original::of_node(raw)?);
            }
            Ok(node)
        })
    }
}

#[cfg(test)]
mod tests;
