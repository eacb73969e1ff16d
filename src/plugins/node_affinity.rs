//! `NodeAffinity`: a pod runs only on nodes that match its node selector and required terms, and prefers nodes that match its
//! preferred terms. The profile may add required and preferred terms.
//!
//! Follows `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go @v1.36.3`.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeAffinity as Affinity, NodeSelectorTerm};
use serde::Serialize;

use super::event::{changed_node, hint, hints_enabled, node_event};
use super::json;
use super::normalize::default_normalize_score;
use crate::apimachinery::field_error::{FieldErrors, FieldPath, aggregate};
use crate::config::decode::wire_args;
use crate::config::{FeatureGates, PluginArgs};
use crate::framework::{
    Candidates, CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, MAX_NODE_SCORE, NodeRef,
    NodeScores, NormalizeScore, Plugin, PluginError, PreFilterOutcome, PreFilterPlugin, PreScoreOutcome,
    PreScorePlugin, QueueingHint, Registration, Rejection, ScorePlugin, Scratch, SignOutcome, SignPlugin, Slot,
    Verdict,
};
use crate::k8s::{Node, NodeSelector, Pod, PreferredTerms, RequiredNodeAffinity};
use crate::model::{ActionType, EventObjects, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "NodeAffinity";

const REASON_POD: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

/// Arguments of the plugin `NodeAffinity`.
/// Follows `pkg/scheduler/apis/config/types_pluginargs.go#NodeAffinityArgs @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeAffinityArgs {
    /// Node affinity that applies to every pod of the profile in addition to the pod's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_affinity: Option<Affinity>,
}

wire_args!(NodeAffinityArgs, { "addedAffinity" => added_affinity });

impl PluginArgs for NodeAffinityArgs {
    const KIND: &'static str = "NodeAffinityArgs";

    /// Adds an error for each invalid term.
    /// Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go#ValidateNodeAffinityArgs @v1.36.3`.
    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        let Some(affinity) = &self.added_affinity else { return };
        let path = path.child("addedAffinity");
        if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
            let path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
            errors.extend(NodeSelector::strict(selector, path.as_str()));
        }
        if let Some(terms) = &affinity.preferred_during_scheduling_ignored_during_execution {
            let path = path.child("preferredDuringSchedulingIgnoredDuringExecution");
            errors.extend(PreferredTerms::new(terms, path.as_str()));
        }
    }
}

/// The profile's terms, which apply in addition to each pod's own.
#[derive(Debug, Default)]
struct Added {
    required: Option<NodeSelector>,
    preferred: Option<PreferredTerms>,
}

/// The in-tree plugin `NodeAffinity`.
#[derive(Debug)]
struct NodeAffinity {
    hints: bool,
    added: Added,
    required: Slot<Arc<RequiredNodeAffinity>>,
    /// The pod's preferred terms. `None` if only the profile has preferred terms.
    preferred: Slot<Option<Arc<PreferredTerms>>>,
}

/// Builds the plugin for a profile. Fails if a term cannot be compiled.
#[expect(clippy::needless_pass_by_value, reason = "every factory is called alike")]
pub fn factory(args: NodeAffinityArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(NodeAffinity {
        hints: hints_enabled(handle),
        added: Added::compile(args.added_affinity.as_ref())?,
        required: handle.slot(),
        preferred: handle.slot(),
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

impl Added {
    /// Compiles the profile's terms, and reports all errors at once.
    /// Follows `pkg/scheduler/apis/config/validation/validation_pluginargs.go#ValidateNodeAffinityArgs @v1.36.3`, which
    /// upstream runs before it compiles anything.
    fn compile(affinity: Option<&Affinity>) -> Result<Self, PluginError> {
        let Some(affinity) = affinity else { return Ok(Self::default()) };
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
        let required = required.map(|selector| {
            NodeSelector::strict(selector, "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution")
        });
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.as_deref();
        let preferred = preferred
            .filter(|terms| !terms.is_empty())
            .map(|terms| PreferredTerms::new(terms, "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"));
        match (required.transpose(), preferred.transpose()) {
            (Ok(required), Ok(preferred)) => Ok(Self { required, preferred }),
            (required, preferred) => Err(complaint(&[required.err(), preferred.err()])),
        }
    }
}

/// Returns one error for all these errors. Several errors are listed in brackets, without duplicates.
fn complaint(errors: &[Option<FieldErrors>; 2]) -> PluginError {
    PluginError::new(aggregate(errors.iter().flatten().flat_map(FieldErrors::iter)))
}

fn affinity(pod: &Pod) -> Option<&Affinity> {
    pod.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref())
}

fn preferred(pod: &Pod) -> Result<Option<Arc<PreferredTerms>>, PluginError> {
    let terms = affinity(pod).and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
    let compiled = terms.map(|terms| PreferredTerms::new(terms, "")).transpose();
    compiled.map(|terms| terms.map(Arc::new)).map_err(|errors| PluginError::new(errors.to_string()))
}

/// Returns the names of the nodes that the terms can match. `None` if a term has no requirement on the name, so that it can match
/// any node.
fn named_nodes(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<String>> {
    let mut named = BTreeSet::new();
    for term in terms {
        named.extend(named_by_term(term)?);
    }
    Some(named)
}

/// Returns the node names that satisfy every requirement of the term on the name. `None` if there is no such requirement.
fn named_by_term(term: &NodeSelectorTerm) -> Option<BTreeSet<String>> {
    let mut named: Option<BTreeSet<String>> = None;
    for requirement in term.match_fields.iter().flatten() {
        if requirement.key == "metadata.name" && requirement.operator == "In" {
            let values: BTreeSet<String> = requirement.values.iter().flatten().cloned().collect();
            named = Some(match named {
                Some(before) => &before & &values,
                None => values,
            });
        }
    }
    named
}

impl NodeAffinity {
    /// Returns the terms that `PreFilter` compiled. If the profile does not run `PreFilter`, the terms are compiled here.
    fn required(&self, cx: &CycleContext<'_>) -> Arc<RequiredNodeAffinity> {
        let compiled = cx.state.get(self.required).cloned();
        compiled.unwrap_or_else(|| Arc::new(RequiredNodeAffinity::new(cx.pod.pod())))
    }

    /// Returns the terms that `PreScore` compiled. If the profile does not run `PreScore`, the terms are compiled here.
    fn preferred(&self, cx: &CycleContext<'_>) -> Result<Option<Arc<PreferredTerms>>, PluginError> {
        cx.state.get(self.preferred).cloned().map_or_else(|| preferred(cx.pod.pod()), Ok)
    }

    /// Decides whether the pod may run on the node. Terms that cannot be compiled match no node, and their error is not
    /// reported here.
    fn decide(&self, required: &RequiredNodeAffinity, node: &Node) -> Verdict {
        if self.added.required.as_ref().is_some_and(|added| !added.matches(node).unwrap_or(false)) {
            Verdict::unresolvable(REASON_ENFORCED)
        } else if required.matches(node).unwrap_or(false) {
            Verdict::Pass
        } else {
            Verdict::unresolvable(REASON_POD)
        }
    }

    fn sum(&self, preferred: Option<&PreferredTerms>, node: &Node) -> i64 {
        self.added.preferred.iter().chain(preferred).map(|terms| terms.score(node)).sum()
    }

    /// Returns the hint for an added or updated node.
    /// Follows `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go#isSchedulableAfterNodeChange @v1.36.3`.
    fn after_node_change(&self, pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let (old, new) = changed_node(objects)?;
        if self.added.required.as_ref().is_some_and(|added| !added.matches(new).unwrap_or(false)) {
            return Ok(QueueingHint::Skip);
        }
        let required = RequiredNodeAffinity::new(pod.pod());
        let matches = |node: &Node| required.matches(node).map_err(|errors| PluginError::new(errors.to_string()));
        let helps = matches(new)? && !old.map_or(Ok(false), |old| matches(old))?;
        Ok(hint(helps))
    }
}

impl Plugin for NodeAffinity {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreFilterPlugin for NodeAffinity {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        let pod = cx.pod.pod();
        let terms = affinity(pod).and_then(|own| own.required_during_scheduling_ignored_during_execution.as_ref());
        if terms.is_none() && self.added.required.is_none() && pod.spec.node_selector.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        cx.state.set(self.required, Arc::new(RequiredNodeAffinity::new(pod)));
        let terms = terms.map_or(&[][..], |selector| &selector.node_selector_terms);
        if terms.is_empty() {
            return Ok(PreFilterOutcome::Pass);
        }
        Ok(match named_nodes(terms) {
            None => PreFilterOutcome::Pass,
            Some(named) if named.is_empty() => PreFilterOutcome::Reject(Rejection::unresolvable(REASON_CONFLICT)),
            Some(named) => PreFilterOutcome::Nodes(named),
        })
    }
}

impl FilterPlugin for NodeAffinity {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(self.decide(&self.required(cx), node.node()))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        let required = self.required(cx);
        block.retain(|node, _| Ok(self.decide(&required, node.node())));
        Ok(())
    }
}

impl PreScorePlugin for NodeAffinity {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let preferred = preferred(cx.pod.pod())?;
        if preferred.is_none() && self.added.preferred.is_none() {
            return Ok(PreScoreOutcome::Skip);
        }
        cx.state.set(self.preferred, preferred);
        Ok(PreScoreOutcome::Pass)
    }
}

impl ScorePlugin for NodeAffinity {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        Ok(self.sum(self.preferred(cx)?.as_deref(), node.node()))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let preferred = self.preferred(cx)?;
        for (node, score) in scores.nodes.iter().zip(&mut *scores.scores) {
            *score = self.sum(preferred.as_deref(), node.node());
        }
        Ok(())
    }
}

impl NormalizeScore for NodeAffinity {
    fn normalize(&self, _cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        default_normalize_score(MAX_NODE_SCORE, false, scores);
        Ok(())
    }
}

impl SignPlugin for NodeAffinity {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        let pod = pod.pod();
        Ok(SignOutcome::Fragments(vec![json::node_affinity(pod), json::node_selector(pod)]))
    }
}

impl EnqueueExtensions for NodeAffinity {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let node_changed = node_event(self.hints, ActionType::ADD | ActionType::UPDATE_NODE_LABEL);
        let hint = move |pod: &PodInfo, objects: &EventObjects| self.after_node_change(pod, objects);
        Ok(vec![EventRegistration::with_hint(node_changed, hint)])
    }
}

#[cfg(test)]
mod tests;
