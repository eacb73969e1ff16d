//! `InterPodAffinity`: places a pod by its required affinity and anti-affinity and the required anti-affinity of existing pods,
//! and scores nodes by preferred terms.
//!
//! The plugin does not iterate over pods. A selector of the incoming pod is matched once per label class, and a term of
//! existing pods once per set of terms. The matches are counted by topology domain in arrays, so the cost per node is one index
//! per key.
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

/// Name of the plugin.
pub const NAME: &str = "InterPodAffinity";

/// The in-tree plugin `InterPodAffinity`.
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

/// A namespace, of which only the labels are used. An unknown namespace counts as having no labels.
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

/// Pods with affinity terms are not signed, because their placement depends on other pods.
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
