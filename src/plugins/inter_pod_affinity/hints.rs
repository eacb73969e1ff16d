//! Queueing hints for pods that `InterPodAffinity` rejected.
//!
//! As in upstream, namespace labels are not looked up here: every namespace counts as having no labels. So a namespace selector
//! matches either all namespaces or none.

use crate::framework::{PluginError, QueueingHint};
use crate::k8s::{ParseSelectorError, Pod, StringMap};
use crate::model::{AffinityTerm, EventObjects, PodInfo, required_anti_affinity};
use crate::plugins::event::{changed_node, hint, unexpected};

/// Returns the required affinity terms of the waiting pod.
fn own_affinity(pod: &PodInfo) -> Result<&[AffinityTerm], PluginError> {
    let terms = pod.affinity_terms().map_or(Ok(&[][..]), |terms| terms.checked_required_affinity());
    terms.map_err(malformed)
}

/// Returns the required anti-affinity terms of the waiting pod.
fn own_anti_affinity(pod: &PodInfo) -> Result<&[AffinityTerm], PluginError> {
    let terms = pod.affinity_terms().map_or(Ok(&[][..]), |terms| terms.checked_required_anti_affinity());
    terms.map_err(malformed)
}

fn malformed(error: &ParseSelectorError) -> PluginError {
    PluginError::new(error.to_string())
}

/// Whether there are terms and all of them select the pod.
fn all_match(terms: &[AffinityTerm], pod: &Pod) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches_unlabelled(pod.namespace(), pod.labels()))
}

fn has_place(pod: &Pod) -> bool {
    pod.node_name().is_some() || pod.nominated_node_name().is_some()
}

/// Returns the hint for an added, updated or deleted pod.
/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go#InterPodAffinity.isSchedulableAfterPodChange @v1.36.3`.
pub(super) fn after_pod_change(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (old, new) = objects.pods();
    if old.is_some() && new.is_some_and(|new| new.uid() == pod.uid()) {
        return Ok(QueueingHint::Queue);
    }
    if [old, new].into_iter().flatten().any(|changed| !has_place(changed)) {
        return Ok(QueueingHint::Skip);
    }
    let (near, away) = (own_affinity(pod)?, own_anti_affinity(pod)?);
    let helps = match (old, new) {
        (Some(old), Some(new)) => {
            (!all_match(near, old) && all_match(near, new)) || (all_match(away, old) && !all_match(away, new))
        }
        (None, Some(added)) => all_match(near, added),
        (Some(deleted), None) => all_match(away, deleted) || kept_away(deleted, pod.pod())?,
        (None, None) => return Err(unexpected("a pod")),
    };
    Ok(hint(helps))
}

/// Whether `other` has required anti-affinity terms and all of them select the pod.
fn kept_away(other: &Pod, pod: &Pod) -> Result<bool, PluginError> {
    let terms = required_anti_affinity(other.spec.affinity.as_deref());
    let terms = AffinityTerm::compile_all(other.namespace(), terms);
    terms.map(|terms| all_match(&terms, pod)).map_err(|error| malformed(&error))
}

/// The change of a node label: unchanged, added, removed, or set to another value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Same,
    Came,
    Went,
    Changed,
}

fn change(old: &StringMap, new: &StringMap, key: &str) -> Label {
    match (old.get(key), new.get(key)) {
        (None, Some(_)) => Label::Came,
        (Some(_), None) => Label::Went,
        (Some(old), Some(new)) if old != new => Label::Changed,
        _ => Label::Same,
    }
}

/// Returns the hint for an added or updated node. An added node may be in a domain that satisfies the affinity, and has no pods
/// that violate the anti-affinity. A node that gains a label joins a domain that may satisfy the affinity. A node that loses a
/// label leaves a domain that may violate the anti-affinity.
/// Follows `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go#InterPodAffinity.isSchedulableAfterNodeChange @v1.36.3`.
pub(super) fn after_node_change(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let (old, new) = changed_node(objects)?;
    let none = StringMap::new();
    let before = old.map_or(&none, |old| old.labels());
    let changed = |term: &AffinityTerm| change(before, new.labels(), term.topology_key());
    if own_affinity(pod)?.iter().any(|term| matches!(changed(term), Label::Came | Label::Changed)) {
        return Ok(QueueingHint::Queue);
    }
    let leaves = |term: &AffinityTerm| old.is_none() || matches!(changed(term), Label::Went | Label::Changed);
    Ok(hint(own_anti_affinity(pod)?.iter().any(leaves)))
}
