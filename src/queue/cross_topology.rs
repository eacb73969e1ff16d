//! With hints off: which pods an assigned pod's coming or changing could help, as far as in-tree plugins say.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodAffinityTerm;

use super::pods::Slot;
use super::state::State;
use super::{Place, QueuedPodInfo};
use crate::clock::Mono;
use crate::k8s::{ParseSelectorError, Pod, Selector, StringMap};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};

/// The plugin of which a pod's spreading is the business.
/// From `pkg/scheduler/framework/plugins/names/names.go#PodTopologySpread @v1.36.3`.
const POD_TOPOLOGY_SPREAD: &str = "PodTopologySpread";

impl State {
    /// A pod with a node came.
    /// Follows `pkg/scheduler/eventhandlers.go#addAssignedPodToCache @v1.36.3` and, with hints off,
    /// `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.AssignedPodAdded @v1.36.3`.
    pub(super) fn assigned_pod_added(&mut self, pod: &Arc<Pod>, now: Mono) {
        let objects = EventObjects::of_pods(None, Some(pod));
        self.move_for_assigned(&ClusterEvent::ASSIGNED_POD_ADD, &objects, pod, self.modes.hints, now);
    }

    /// A pod with a node changed; `event` is one of the changes.
    /// Follows `pkg/scheduler/eventhandlers.go#updateAssignedPodInCache @v1.36.3` and, with hints off,
    /// `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.AssignedPodUpdated @v1.36.3`.
    pub(super) fn assigned_pod_updated(&mut self, old: &Arc<Pod>, new: &Arc<Pod>, event: &ClusterEvent, now: Mono) {
        let scale_down = ClusterEvent::new(EventResource::Pod, ActionType::UPDATE_POD_SCALE_DOWN);
        let objects = EventObjects::of_pods(Some(old), Some(new));
        self.move_for_assigned(event, &objects, new, self.modes.hints || scale_down.matches(event), now);
    }

    fn move_for_assigned(&mut self, event: &ClusterEvent, objects: &EventObjects, pod: &Pod, all: bool, now: Mono) {
        if all {
            self.move_all(event, objects, None, now);
            return;
        }
        let plan = self.plan(event);
        let slots = self.with_cross_topology_term(pod);
        self.move_pods(slots, &plan, objects, None, now);
    }

    /// The pods in unschedulablePods that spread over topologies in the pod's namespace, or have a required affinity term
    /// that the pod matches, in order of arrival.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.getUnschedulablePodsWithCrossTopologyTerm @v1.36.3`.
    fn with_cross_topology_term(&self, pod: &Pod) -> Vec<Slot> {
        let namespace = self.listers.namespaces.get(pod.namespace());
        let namespace_labels = namespace.as_deref().and_then(|namespace| namespace.metadata.labels.clone());
        let namespace_labels = namespace_labels.unwrap_or_default();
        let concerns = |info: &QueuedPodInfo| {
            let spreads = info.unschedulable_plugins.contains(POD_TOPOLOGY_SPREAD);
            (spreads && info.pod.namespace() == pod.namespace())
                || required_terms(&info.pod).iter().any(|term| term.matches(pod, &namespace_labels))
        };
        self.pods.slots(Place::Unschedulable).into_iter().filter(|slot| concerns(&self.pods.get(*slot).info)).collect()
    }
}

/// A required affinity term, compiled.
struct Term {
    namespaces: Vec<String>,
    namespace_selector: Selector,
    selector: Selector,
}

impl Term {
    /// Follows `kube-scheduler/framework/types.go#newAffinityTerm @v1.36.3`.
    fn new(term: &PodAffinityTerm, owner: &PodInfo) -> Result<Self, ParseSelectorError> {
        let listed = term.namespaces.clone().unwrap_or_default();
        let own = listed.is_empty() && term.namespace_selector.is_none();
        Ok(Self {
            namespaces: if own { vec![owner.namespace().to_owned()] } else { listed },
            namespace_selector: Selector::from_label_selector(term.namespace_selector.as_ref())?,
            selector: Selector::from_label_selector(term.label_selector.as_ref())?,
        })
    }

    /// Follows `kube-scheduler/framework/types.go#AffinityTerm.Matches @v1.36.3`.
    fn matches(&self, pod: &Pod, namespace_labels: &StringMap) -> bool {
        let in_namespace = self.namespaces.iter().any(|namespace| namespace == pod.namespace());
        (in_namespace || self.namespace_selector.matches(namespace_labels)) && self.selector.matches(pod.labels())
    }
}

/// The pod's required affinity terms; none at all if one of them cannot be read.
/// Follows `kube-scheduler/framework/types.go#GetAffinityTerms @v1.36.3`.
fn required_terms(pod: &PodInfo) -> Vec<Term> {
    let affinity = pod.affinity().and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    let compiled: Result<Vec<Term>, _> = terms.into_iter().flatten().map(|term| Term::new(term, pod)).collect();
    compiled.unwrap_or_default()
}
