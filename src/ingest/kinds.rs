//! Which kinds are watched, and why: a table.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment};
use kube::api::{ApiResource, DynamicObject};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::Starter;
use super::decode::Keep;
use super::feed::{Feed, feed};
use super::reflector::Source;
use super::sinks::{Nodes, Others, Pods, StoreOf};
use crate::config::{FeatureGates, Gate};
use crate::k8s::{Node, Original, Pod};
use crate::listers::{Listers, Store};
use crate::model::{ActionType, EventResource};

/// Pods that have not ended, escaped for a URL: `status.phase!=Succeeded,status.phase!=Failed`.
/// Follows `pkg/scheduler/scheduler.go#newPodInformer @v1.36.3`.
const NOT_ENDED: &str = "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

/// A watched kind, by its plural, and what makes its feed.
pub(super) struct Watched {
    /// The plural; what a dynamic kind was registered as.
    pub(super) name: String,
    /// The name of its task.
    pub(super) task: &'static str,
    start: Start,
}

enum Start {
    /// By its row's function, with what plugins registered.
    Row(fn(&Starter, Option<ActionType>) -> Box<dyn Feed>, Option<ActionType>),
    /// A kind that only plugins know.
    Dynamic(ApiResource, EventResource, ActionType),
}

/// When a kind is needed even if no plugin registered events of it.
enum Needed {
    Always,
    /// With this feature gate.
    Gate(Gate),
    /// By these plugins.
    Plugins(&'static [&'static str]),
}

/// A kind that this scheduler knows.
struct Row {
    name: &'static str,
    /// What it is called in events, if it can be registered.
    resource: Option<EventResource>,
    needed: Needed,
    start: fn(&Starter, Option<ActionType>) -> Box<dyn Feed>,
}

/// What each plugin's factory asks the informers for, upstream; the claims, slices, classes and `CSINodes` of managers that
/// all profiles share; namespaces for the queue.
fn rows() -> [Row; 17] {
    use EventResource as R;
    use Needed::{Always, Gate as On, Plugins};
    const VOLUMES: &[&str] = &["VolumeBinding", "VolumeZone", "NodeVolumeLimits"];
    const CLAIMS: &[&str] = &["VolumeBinding", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions"];
    const SPREAD: &[&str] = &["PodTopologySpread"];
    const DRA: Gate = Gate::DynamicResourceAllocation;
    let row = |name, resource, needed, start| Row { name, resource, needed, start };
    [
        row("namespaces", None, Always, |s, a| s.other::<Namespace>(None, a, |l| &l.namespaces)),
        row("services", None, Plugins(SPREAD), |s, a| s.other::<Service>(None, a, |l| &l.services)),
        row("replicationcontrollers", None, Plugins(SPREAD), |s, a| {
            s.other::<ReplicationController>(None, a, |l| &l.replication_controllers)
        }),
        row("replicasets", None, Plugins(SPREAD), |s, a| s.other::<ReplicaSet>(None, a, |l| &l.replica_sets)),
        row("statefulsets", None, Plugins(SPREAD), |s, a| s.other::<StatefulSet>(None, a, |l| &l.stateful_sets)),
        row("poddisruptionbudgets", None, Plugins(&["DefaultPreemption"]), |s, a| {
            s.other::<PodDisruptionBudget>(None, a, |l| &l.pod_disruption_budgets)
        }),
        row("persistentvolumes", Some(R::PersistentVolume), Plugins(VOLUMES), |s, a| {
            s.other::<PersistentVolume>(Some(R::PersistentVolume), a, |l| &l.persistent_volumes)
        }),
        row("persistentvolumeclaims", Some(R::PersistentVolumeClaim), Plugins(CLAIMS), |s, a| {
            s.other::<PersistentVolumeClaim>(Some(R::PersistentVolumeClaim), a, |l| &l.persistent_volume_claims)
        }),
        row("storageclasses", Some(R::StorageClass), Plugins(VOLUMES), |s, a| {
            s.other::<StorageClass>(Some(R::StorageClass), a, |l| &l.storage_classes)
        }),
        row("csinodes", Some(R::CsiNode), Always, |s, a| s.other::<CSINode>(Some(R::CsiNode), a, |l| &l.csi_nodes)),
        row("csidrivers", Some(R::CsiDriver), Plugins(&["VolumeBinding", "NodeVolumeLimits"]), |s, a| {
            s.other::<CSIDriver>(Some(R::CsiDriver), a, |l| &l.csi_drivers)
        }),
        row("csistoragecapacities", Some(R::CsiStorageCapacity), Plugins(&["VolumeBinding"]), |s, a| {
            s.other::<CSIStorageCapacity>(Some(R::CsiStorageCapacity), a, |l| &l.csi_storage_capacities)
        }),
        row("volumeattachments", Some(R::VolumeAttachment), Plugins(&["NodeVolumeLimits"]), |s, a| {
            s.other::<VolumeAttachment>(Some(R::VolumeAttachment), a, |l| &l.volume_attachments)
        }),
        row("resourceclaims", Some(R::ResourceClaim), On(DRA), |s, a| {
            s.other::<ResourceClaim>(Some(R::ResourceClaim), a, |l| &l.resource_claims)
        }),
        row("resourceslices", Some(R::ResourceSlice), On(DRA), |s, a| {
            s.other::<ResourceSlice>(Some(R::ResourceSlice), a, |l| &l.resource_slices)
        }),
        row("deviceclasses", Some(R::DeviceClass), On(DRA), |s, a| {
            s.other::<DeviceClass>(Some(R::DeviceClass), a, |l| &l.device_classes)
        }),
        row("pods", None, Always, |s, _| s.pods()),
    ]
}

/// The kinds to watch: nodes and pods, what enabled plugins look up, and what they registered events of.
pub(super) fn watched(
    plugins: &BTreeSet<String>,
    registered: &BTreeMap<EventResource, ActionType>,
    gates: &FeatureGates,
) -> Vec<Watched> {
    let nodes = Watched { name: "nodes".to_owned(), task: "nodes", start: Start::Row(|s, _| s.nodes(), None) };
    let known = rows().into_iter().filter_map(|row| {
        let actions = row.resource.as_ref().and_then(|resource| registered.get(resource)).copied();
        let needed = match row.needed {
            Needed::Always => true,
            // Without the gate they are not watched, whatever is registered.
            Needed::Gate(gate) => gates.enabled(gate),
            Needed::Plugins(names) => actions.is_some() || names.iter().any(|name| plugins.contains(*name)),
        };
        needed.then(|| Watched { name: row.name.to_owned(), task: row.name, start: Start::Row(row.start, actions) })
    });
    let dynamic = registered.iter().filter_map(|(resource, actions)| dynamic(resource, *actions, gates));
    std::iter::once(nodes).chain(dynamic).chain(known).collect()
}

/// A kind that this scheduler does not know itself, registered as `<plural>.<version>.<group>`.
fn dynamic(resource: &EventResource, actions: ActionType, gates: &FeatureGates) -> Option<Watched> {
    let name: Arc<str> = match resource {
        EventResource::Other(name) => name.clone(),
        EventResource::WildCard => Arc::from(resource.name()),
        EventResource::PodGroup if gates.enabled(Gate::GenericWorkload) => {
            "podgroups.v1alpha2.scheduling.k8s.io".into()
        }
        _ => return None,
    };
    let mut parts = name.splitn(3, '.');
    let (Some(plural), Some(version), Some(group)) = (parts.next(), parts.next(), parts.next()) else {
        tracing::error!(gvk = &*name, "Incorrect event registration");
        return None;
    };
    let api = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: String::new(),
        plural: plural.to_owned(),
    };
    let start = Start::Dynamic(api, resource.clone(), actions);
    Some(Watched { name: name.to_string(), task: "kind of a plugin", start })
}

impl Watched {
    /// Whether somebody looks the objects up; of other kinds plugins only hear.
    pub(super) fn is_looked_up(&self) -> bool {
        matches!(self.start, Start::Row(..))
    }

    /// Where the objects of this kind come from and go to.
    pub(super) fn feed(&self, starter: &Starter) -> Box<dyn Feed> {
        match &self.start {
            Start::Row(start, actions) => start(starter, *actions),
            Start::Dynamic(api, resource, actions) => {
                let sink = Others {
                    handlers: starter.handlers.clone(),
                    store: StoreOf::Own(Store::<DynamicObject>::default()),
                    registered: Some((resource.clone(), *actions)),
                };
                feed(&self.name, source::<DynamicObject>(api, ""), sink, None)
            }
        }
    }
}

fn source<K: kube::Resource>(api: &K::DynamicType, field_selector: &'static str) -> Source {
    Source { path: K::url_path(api, None), field_selector }
}

fn keep_pod(pod: &mut Pod, raw: &RawValue) -> Result<(), serde_json::Error> {
    Original::of_pod(raw).map(|original| pod.original = Some(original))
}

impl Starter {
    fn pods(&self) -> Box<dyn Feed> {
        let sink = Pods { handlers: self.handlers.clone(), listers: self.listers.clone() };
        // An extender is sent pods that it may have a say about, and, when it chooses victims, those that run.
        let keep: Option<Keep<Pod>> = match (self.whole.pending_pods, self.whole.assigned_pods) {
            (false, false) => None,
            (_, true) => Some(keep_pod),
            (true, false) => Some(|pod, raw| if pod.node_name().is_none() { keep_pod(pod, raw) } else { Ok(()) }),
        };
        feed("pods", source::<Pod>(&(), NOT_ENDED), sink, keep)
    }

    fn nodes(&self) -> Box<dyn Feed> {
        let sink = Nodes { handlers: self.handlers.clone(), listers: self.listers.clone() };
        let keep: Keep<Node> = |node, raw| Original::of_node(raw).map(|original| node.original = Some(original));
        feed("nodes", source::<Node>(&(), ""), sink, self.whole.nodes.then_some(keep))
    }

    fn other<K>(
        &self,
        resource: Option<EventResource>,
        actions: Option<ActionType>,
        store: fn(&Listers) -> &Store<K>,
    ) -> Box<dyn Feed>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Any + Send + Sync,
    {
        let sink = Others {
            handlers: self.handlers.clone(),
            store: StoreOf::Lister(self.listers.clone(), store),
            registered: resource.zip(actions),
        };
        feed(&K::plural(&()), source::<K>(&(), ""), sink, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(plugins: &[&str], registered: &[EventResource], gates: &FeatureGates, expected: &str) {
        let plugins = plugins.iter().map(|name| (*name).to_owned()).collect();
        let registered = registered.iter().map(|resource| (resource.clone(), ActionType::ADD)).collect();
        let names: Vec<String> = watched(&plugins, &registered, gates).into_iter().map(|kind| kind.name).collect();
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn what_is_watched() {
        use EventResource as R;
        let always = "namespaces csinodes resourceclaims resourceslices deviceclasses pods";
        let default = FeatureGates::default();
        check(&[], &[], &default, &format!("nodes {always}"));
        check(
            &["NodeName", "InterPodAffinity"],
            &[R::Node, R::Pod, R::AssignedPod],
            &default,
            &format!("nodes {always}"),
        );
        check(
            &["PodTopologySpread"],
            &[],
            &default,
            "nodes namespaces services replicationcontrollers replicasets statefulsets csinodes resourceclaims \
             resourceslices deviceclasses pods",
        );
        check(
            &["DefaultPreemption", "VolumeRestrictions"],
            &[R::StorageClass],
            &default,
            "nodes namespaces poddisruptionbudgets persistentvolumeclaims storageclasses csinodes resourceclaims \
             resourceslices deviceclasses pods",
        );
        check(
            &[],
            &[R::Other("foos.v1.example.com".into()), R::Other("bad.v1".into()), R::WildCard, R::PodGroup],
            &default,
            &format!("nodes foos.v1.example.com {always}"),
        );
        let workloads = default.with(Gate::GenericWorkload, true);
        let no_devices = default.with(Gate::DynamicResourceAllocation, false);
        check(&[], &[R::ResourceClaim], &no_devices, "nodes namespaces csinodes pods");
        check(&[], &[R::PodGroup], &workloads, &format!("nodes podgroups.v1alpha2.scheduling.k8s.io {always}"));
    }

    #[test]
    fn paths() {
        let path = |source: Source| source.path;
        assert_eq!(path(source::<Pod>(&(), "")), "/api/v1/pods");
        assert_eq!(path(source::<ReplicaSet>(&(), "")), "/apis/apps/v1/replicasets");
        let resource = EventResource::Other("foos.v1beta1.a.b.c".into());
        let watched = dynamic(&resource, ActionType::ADD, &FeatureGates::default()).expect("three parts");
        let Start::Dynamic(api, ..) = &watched.start else { panic!("it is dynamic") };
        assert_eq!(path(source::<DynamicObject>(api, "")), "/apis/a.b.c/v1beta1/foos");
    }
}
