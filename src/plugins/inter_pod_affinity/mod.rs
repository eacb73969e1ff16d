//! `InterPodAffinity`: a pod goes to where pods are that it has to be near, not to where those are that it or they have to
//! be away from, and rather to where preferences, its own and those of others, draw it.
//!
//! Nothing here walks over pods. A selector of the incoming pod is matched once a label class, a term of the pods on nodes
//! once a set of terms; what they found is counted by topology domain in arrays, so that a node costs an index for each key.
//!
//! Follows `pkg/scheduler/framework/plugins/interpodaffinity @v1.36.3`.

mod args;
mod counts;
mod filter;
mod hints;
mod own;
mod score;

use std::sync::Arc;

pub use args::InterPodAffinityArgs;

use k8s_openapi::api::core::v1::Namespace;

use super::event::{hints_enabled, node_event};
use super::json;
use crate::framework::{
    EnqueueExtensions, EventRegistration, Handle, Plugin, PluginError, Registration, Rejection, SignOutcome,
    SignPlugin, Slot,
};
use crate::k8s::{StringMap, labels};
use crate::listers::Lister;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};

/// The plugin's name.
pub const NAME: &str = "InterPodAffinity";

/// The plugin.
struct InterPodAffinity {
    args: InterPodAffinityArgs,
    hints: bool,
    namespaces: Lister<Namespace>,
    filters: Slot<filter::State>,
    scores: Slot<score::State>,
}

/// Builds the plugin for a profile.
pub fn factory(args: InterPodAffinityArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(InterPodAffinity {
        args,
        hints: hints_enabled(handle),
        namespaces: handle.lister()?,
        filters: handle.slot(),
        scores: handle.slot(),
    });
    Ok(Registration::new(NAME)
        .events(&plugin)
        .pre_filter(&plugin)
        .filter(&plugin)
        .pre_score(&plugin)
        .score(&plugin)
        .normalize(&plugin)
        .sign(&plugin))
}

/// A namespace, for its labels; one that is not known has none.
/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go#GetNamespaceLabelsSnapshot @v1.36.3`.
#[derive(Clone, Debug)]
struct NamespaceLabels(Arc<Namespace>);

impl NamespaceLabels {
    fn of(namespaces: &Lister<Namespace>, pod: &PodInfo) -> Self {
        Self(namespaces.get(pod.namespace()).unwrap_or_default())
    }

    fn get(&self) -> &StringMap {
        labels(&self.0.metadata)
    }
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &str {
        NAME
    }
}

/// Where a pod with terms may go depends on where others are, so such pods are not signed.
/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go#InterPodAffinity.SignPod @v1.36.3`.
impl SignPlugin for InterPodAffinity {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(if pod.affinity_terms().is_some() {
            SignOutcome::Refuse(Rejection::unschedulable("pods with InterPodAffinity are not signable"))
        } else if self.args.ignore_preferred_terms_of_existing_pods {
            SignOutcome::Fragments(Vec::new())
        } else {
            SignOutcome::Fragments(vec![json::labels(pod.pod())])
        })
    }
}

impl EnqueueExtensions for InterPodAffinity {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let pod_changed =
            ClusterEvent::new(EventResource::Pod, ActionType::ADD | ActionType::UPDATE_POD_LABEL | ActionType::DELETE);
        let node_changed = node_event(self.hints, ActionType::ADD | ActionType::UPDATE_NODE_LABEL);
        Ok(vec![
            EventRegistration::with_hint(pod_changed, |pod: &PodInfo, objects: &EventObjects| {
                hints::after_pod_change(pod, objects)
            }),
            EventRegistration::with_hint(node_changed, |pod: &PodInfo, objects: &EventObjects| {
                hints::after_node_change(pod, objects)
            }),
        ])
    }
}

#[cfg(test)]
mod tests;
