//! Queueing hints for pods that `PodTopologySpread` rejected.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Taint, Toleration};

use super::PodTopologySpread;
use super::constraints::{Action, Constraint};
use crate::framework::{EnqueueExtensions, EventRegistration, PluginError, QueueingHint};
use crate::k8s::{Node, Pod};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};
use crate::plugins::event::{hint, unexpected};

/// Whether a change of `changed` can affect the spreading of `waiting`. This is so if they are the same pod, or if `changed` is
/// in the same namespace and has a node or a nominated node.
/// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#involvedInTopologySpreading @v1.36.3`.
fn is_involved(changed: &Pod, waiting: &Pod) -> bool {
    changed.uid() == waiting.uid()
        || (changed.node_name().is_some() || changed.nominated_node_name().is_some())
            && changed.namespace() == waiting.namespace()
}

/// Returns the text of an optional field. The API treats absent and empty text alike.
fn text(field: Option<&String>) -> &str {
    field.map_or("", String::as_str)
}

fn texts(toleration: &Toleration) -> [&str; 4] {
    [&toleration.key, &toleration.operator, &toleration.value, &toleration.effect].map(|field| text(field.as_ref()))
}

fn is_same_toleration(a: &Toleration, b: &Toleration) -> bool {
    texts(a) == texts(b) && a.toleration_seconds == b.toleration_seconds
}

fn is_same_taint(a: &Taint, b: &Taint) -> bool {
    a.key == b.key
        && a.effect == b.effect
        && a.time_added == b.time_added
        && text(a.value.as_ref()) == text(b.value.as_ref())
}

fn is_same_list<T>(a: &[T], b: &[T], is_same: fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

fn has_every_key(node: &Node, constraints: &[Constraint]) -> bool {
    constraints.iter().all(|constraint| node.labels().contains_key(&*constraint.topology_key))
}

/// Whether the update of a pod may make the waiting pod schedulable.
fn pod_update_helps(waiting: &Pod, old: &Pod, new: &Pod, constraints: &[Constraint]) -> bool {
    let is_own = waiting.uid() == new.uid();
    let tolerates_else = !is_same_list(&old.spec.tolerations, &new.spec.tolerations, is_same_toleration);
    if is_own && tolerates_else && constraints.iter().any(|constraint| constraint.honors_taints) {
        return true;
    }
    old.labels() != new.labels()
        && constraints
            .iter()
            .any(|constraint| constraint.selector.matches(old.labels()) != constraint.selector.matches(new.labels()))
}

/// Whether the update of a node may make the waiting pod schedulable.
fn node_update_helps(old: &Node, new: &Node, constraints: &[Constraint]) -> bool {
    let (had_every_key, has_every_key) = (has_every_key(old, constraints), has_every_key(new, constraints));
    if had_every_key != has_every_key {
        return true;
    }
    let has_moved = |constraint: &Constraint| {
        old.labels().get(&*constraint.topology_key) != new.labels().get(&*constraint.topology_key)
    };
    has_every_key
        && (constraints.iter().any(has_moved) || !is_same_list(&old.spec.taints, &new.spec.taints, is_same_taint))
}

impl PodTopologySpread {
    /// Returns the hint for an added, updated or deleted pod.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#PodTopologySpread.isSchedulableAfterPodChange
    /// @v1.36.3`.
    fn after_pod_change(&self, waiting: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let waiting = waiting.pod();
        let (old, new) = objects.pods();
        if old.into_iter().chain(new).any(|changed| !is_involved(changed, waiting)) {
            return Ok(QueueingHint::Skip);
        }
        let constraints = self.constraints(waiting, Action::DoNotSchedule)?;
        let helps = match (old, new) {
            (Some(old), Some(new)) => pod_update_helps(waiting, old, new, &constraints),
            (Some(only), None) | (None, Some(only)) => {
                constraints.iter().any(|constraint| constraint.selector.matches(only.labels()))
            }
            (None, None) => return Err(unexpected("a pod")),
        };
        Ok(hint(helps))
    }

    /// Returns the hint for an added, updated or deleted node.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#PodTopologySpread.isSchedulableAfterNodeChange
    /// @v1.36.3`.
    fn after_node_change(&self, waiting: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let constraints = self.constraints(waiting.pod(), Action::DoNotSchedule)?;
        let helps = match objects.nodes() {
            (Some(old), Some(new)) => node_update_helps(old, new, &constraints),
            (Some(only), None) | (None, Some(only)) => has_every_key(only, &constraints),
            (None, None) => return Err(unexpected("a node")),
        };
        Ok(hint(helps))
    }
}

impl EnqueueExtensions for PodTopologySpread {
    /// Registers the same events as upstream.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go#PodTopologySpread.EventsToRegister @v1.36.3`.
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let mut pod_changed = ActionType::ADD | ActionType::UPDATE_POD_LABEL | ActionType::DELETE;
        if self.hints {
            // Without hints, every update of the pod itself moves it back to the queue.
            pod_changed = pod_changed | ActionType::UPDATE_POD_TOLERATION;
        }
        let node_changed =
            ActionType::ADD | ActionType::DELETE | ActionType::UPDATE_NODE_LABEL | ActionType::UPDATE_NODE_TAINT;
        let plugin = self.clone();
        Ok(vec![
            EventRegistration::with_hint(
                ClusterEvent::new(EventResource::Pod, pod_changed),
                move |pod: &PodInfo, objects: &EventObjects| plugin.after_pod_change(pod, objects),
            ),
            EventRegistration::with_hint(
                ClusterEvent::new(EventResource::Node, node_changed),
                move |pod: &PodInfo, objects: &EventObjects| self.after_node_change(pod, objects),
            ),
        ])
    }
}

#[cfg(test)]
mod tests;
