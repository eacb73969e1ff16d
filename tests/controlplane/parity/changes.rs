//! Changes that wake waiting pods: the cluster events of a change, and the answer of each plugin's queueing hint.

use std::sync::Arc;

use k8s_openapi::api::resource::v1::DeviceClass;
use kube_scheduler::framework::QueueingHint;
use kube_scheduler::k8s::{Node, Pod};
use kube_scheduler::model::{ActionType, ClusterEvent, EventObjects, EventResource, Object, PodInfo};
use kube_scheduler::queue::{node_events, pod_events, registrations};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::ours::Cluster;

/// A cluster event with the objects that go to the hints.
struct Delivery {
    event: ClusterEvent,
    objects: EventObjects,
    /// Only for pods of this priority or a lower one.
    up_to_priority: Option<i32>,
}

/// A registered event, as the oracle prints it.
pub(crate) fn label(event: &ClusterEvent) -> String {
    format!("{}/{}", event.resource.name(), event.action.bits())
}

/// The answer to the event request at this place.
pub(crate) fn answer(cluster: &Cluster, index: usize, request: &Value) -> Result<Value, String> {
    let key = request["pod"].as_str().unwrap_or_default();
    let refuse = |error: String| json!({"pod": key, "index": index, "clusterEvents": [], "hints": [], "error": error});
    let Some(pod) = cluster.pending.iter().find(|pod| &**pod.key() == key) else {
        return Ok(refuse(format!("pod {key:?} is not among the objects")));
    };
    let Some(framework) = cluster.profiles.get(pod.pod().scheduler_name()) else {
        return Ok(refuse(format!("profile not found for scheduler name {:?}", pod.pod().scheduler_name())));
    };
    let registered = registrations(framework, false).map_err(|errors| format!("{errors:?}"))?;
    let (mut events, mut hints) = (Vec::new(), Vec::new());
    for delivery in deliveries(cluster, pod, request)? {
        if delivery.up_to_priority.is_some_and(|priority| pod.priority() > priority) {
            continue;
        }
        events.push(delivery.event.label().to_string());
        // The queue replaces its copy before it asks.
        let asked = match delivery.objects.pods().1 {
            Some(updated) if updated.uid() == pod.uid() => cluster.info(updated.clone()),
            _ => pod.clone(),
        };
        for (plugin, registration) in registered.iter().filter(|(_, entry)| entry.event.matches(&delivery.event)) {
            let hint =
                registration.hint.as_ref().map_or(Ok(QueueingHint::Queue), |hint| hint(&asked, &delivery.objects));
            let (hint, error) = match hint {
                Ok(hint) => (hint, String::new()),
                Err(error) => (QueueingHint::Queue, error.to_string()),
            };
            hints.push(json!({
                "plugin": &**plugin, "event": delivery.event.label().to_string(),
                "registered": label(&registration.event), "hint": hint.name(), "error": error,
            }));
        }
    }
    Ok(json!({"pod": key, "index": index, "clusterEvents": events, "hints": hints}))
}

/// Whether some plugin registered the event or one like it: kinds other than pods and nodes are not watched otherwise.
pub(crate) fn watches(cluster: &Cluster, event: &ClusterEvent) -> Result<bool, String> {
    for profile in cluster.profiles.values() {
        let registered = registrations(profile, false).map_err(|errors| format!("{errors:?}"))?;
        let is_like = |entry: &ClusterEvent| entry.resource == event.resource && entry.action.intersects(event.action);
        if registered.iter().any(|(_, entry)| is_like(&entry.event)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The change as cluster events, as the informers' handlers announce it.
fn deliveries(cluster: &Cluster, pod: &PodInfo, request: &Value) -> Result<Vec<Delivery>, String> {
    let side = |name: &str| Some(&request[name]).filter(|object| !object.is_null());
    match request["kind"].as_str() {
        Some("Node") => {
            let node = |object: &Value| Node::deserialize(object).map(Arc::new).map_err(|error| error.to_string());
            let (old, new) = (side("old").map(node).transpose()?, side("new").map(node).transpose()?);
            let events = match (&old, &new) {
                (Some(old), Some(new)) => node_events(old, new, &cluster.gates),
                (None, _) => vec![ClusterEvent::new(EventResource::Node, ActionType::ADD)],
                (_, None) => vec![ClusterEvent::new(EventResource::Node, ActionType::DELETE)],
            };
            let objects = EventObjects { old: old.map(Object::Node), new: new.map(Object::Node) };
            Ok(deliver(events, &objects))
        }
        Some("Pod") => {
            let pod_of = |object: &Value| Pod::deserialize(object).map(Arc::new).map_err(|error| error.to_string());
            let (old, new) = (side("old").map(pod_of).transpose()?, side("new").map(pod_of).transpose()?);
            Ok(pod_deliveries(cluster, pod, old.as_ref(), new.as_ref()))
        }
        Some("DeviceClass") => {
            let class = |object: &Value| {
                let class = DeviceClass::deserialize(object).map_err(|error| error.to_string())?;
                Ok::<_, String>(Object::Other(Arc::new(class)))
            };
            let objects =
                EventObjects { old: side("old").map(class).transpose()?, new: side("new").map(class).transpose()? };
            let action = match (&objects.old, &objects.new) {
                (None, _) => ActionType::ADD,
                (_, None) => ActionType::DELETE,
                _ => ActionType::UPDATE,
            };
            let event = ClusterEvent::new(EventResource::DeviceClass, action);
            Ok(if watches(cluster, &event)? { deliver(vec![event], &objects) } else { Vec::new() })
        }
        kind => Err(format!("changes of {kind:?} are not compared")),
    }
}

fn deliver(events: Vec<ClusterEvent>, objects: &EventObjects) -> Vec<Delivery> {
    events.into_iter().map(|event| Delivery { event, objects: objects.clone(), up_to_priority: None }).collect()
}

/// Pods on a node concern everybody; those that wait concern themselves, and their nomination whoever ranks no higher.
fn pod_deliveries(
    cluster: &Cluster,
    pending: &PodInfo,
    old: Option<&Arc<Pod>>,
    new: Option<&Arc<Pod>>,
) -> Vec<Delivery> {
    let on_node = |pod: Option<&Arc<Pod>>| pod.is_some_and(|pod| pod.node_name().is_some());
    let assigned = |action| vec![ClusterEvent::new(EventResource::AssignedPod, action)];
    let objects = |old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>| EventObjects {
        old: old.cloned().map(Object::Pod),
        new: new.cloned().map(Object::Pod),
    };
    match (old, new) {
        (Some(_), None) if on_node(old) => return deliver(assigned(ActionType::DELETE), &objects(old, None)),
        (Some(before), Some(after)) if on_node(old) => {
            return deliver(pod_events(before, after, &cluster.gates), &objects(old, new));
        }
        _ if on_node(new) => return deliver(assigned(ActionType::ADD), &objects(None, new)),
        _ => {}
    }
    let Some(before) = old else { return Vec::new() };
    let mut all = Vec::new();
    if let Some(after) = new.filter(|after| after.uid() == pending.uid()) {
        all = deliver(pod_events(before, after, &cluster.gates), &objects(old, new));
    }
    let still = new.and_then(|after| after.nominated_node_name());
    if before.nominated_node_name().is_some_and(|node| still != Some(node)) {
        let mut lost = deliver(assigned(ActionType::DELETE), &objects(old, None));
        lost[0].up_to_priority = Some(before.priority());
        all.append(&mut lost);
    }
    all
}
