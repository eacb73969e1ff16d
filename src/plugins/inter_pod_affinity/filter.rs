//! Filtering by required terms: affinity and anti-affinity of the incoming pod, and anti-affinity of existing pods.
//!
//! Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go @v1.36.3`.

use std::sync::Arc;

use super::counts::TopologyCounts;
use super::own::OwnTerms;
use super::{InterPodAffinity, NamespaceLabels};
use crate::framework::{
    Candidates, CycleContext, FilterPlugin, NodeRef, PluginError, PreFilterExtensions, PreFilterOutcome,
    PreFilterPlugin, Rejection, Scratch, Verdict,
};
use crate::model::{AffinityTerm, AffinityTerms, NodeOrdinal, PodInfo, Snapshot};

const REASON_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const REASON_ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";
const REASON_EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// The part of the state that does not change during a cycle.
#[derive(Debug)]
struct Incoming {
    /// The incoming pod's terms. `None` if it has neither affinity nor anti-affinity.
    terms: Option<Arc<AffinityTerms>>,
    affinity: OwnTerms,
    anti_affinity: OwnTerms,
    namespace_labels: NamespaceLabels,
    /// Whether all required affinity terms select the incoming pod itself. Such a pod can be placed even if no existing pod is
    /// selected by all terms.
    matches_itself: bool,
}

impl Incoming {
    fn required_affinity(&self) -> &[AffinityTerm] {
        self.terms.as_deref().map_or(&[], AffinityTerms::required_affinity)
    }

    fn required_anti_affinity(&self) -> &[AffinityTerm] {
        self.terms.as_deref().map_or(&[], AffinityTerms::required_anti_affinity)
    }
}

/// The state that `PreFilter` computes for `Filter`.
#[derive(Clone, Debug)]
pub(super) struct State {
    incoming: Arc<Incoming>,
    /// Pods that all required affinity terms select, counted once per term. Every topology key of a term has an entry.
    affinity: TopologyCounts,
    /// Pods that a required anti-affinity term of the incoming pod selects.
    anti_affinity: TopologyCounts,
    /// Pods with a required anti-affinity term that selects the incoming pod.
    existing: TopologyCounts,
}

impl State {
    fn new(incoming: Incoming, snapshot: &Snapshot) -> Self {
        let mut affinity = TopologyCounts::default();
        for term in incoming.required_affinity() {
            affinity.prepare(snapshot, term.topology_key());
        }
        let (anti_affinity, existing) = (TopologyCounts::default(), TopologyCounts::default());
        Self { incoming: Arc::new(incoming), affinity, anti_affinity, existing }
    }

    /// Counts the existing pods whose required anti-affinity selects the incoming pod.
    /// Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#InterPodAffinity.getExistingAntiAffinityCounts
    /// @v1.36.3`.
    fn count_existing(&mut self, pod: &PodInfo, snapshot: &Snapshot) {
        let namespace_labels = self.incoming.namespace_labels.get();
        for set in snapshot.affinity_terms() {
            for term in set.shared().required_anti_affinity() {
                if term.matches(pod.namespace(), pod.class().labels(), namespace_labels) {
                    self.existing.add(snapshot, term.topology_key(), set.nodes(), 1);
                }
            }
        }
    }

    /// Counts the existing pods that the incoming pod's required terms select.
    /// Follows
    /// `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#InterPodAffinity.getIncomingAffinityAntiAffinityCounts
    /// @v1.36.3`.
    fn count_own(&mut self, snapshot: &Snapshot) {
        let incoming = &*self.incoming;
        let (near, away) = (incoming.required_affinity(), incoming.required_anti_affinity());
        if near.is_empty() && away.is_empty() {
            return;
        }
        for class in snapshot.classes() {
            if incoming.affinity.all_match(near, class.shared()) {
                for term in near {
                    self.affinity.add(snapshot, term.topology_key(), class.nodes(), 1);
                }
            }
            for (at, term) in away.iter().enumerate() {
                if incoming.anti_affinity.matches(at, term, class.shared()) {
                    self.anti_affinity.add(snapshot, term.topology_key(), class.nodes(), 1);
                }
            }
        }
    }

    /// Updates the counts after the pod `other` was added to `node` (`by` is 1) or removed from it (`by` is -1).
    /// Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#preFilterState.updateWithPod @v1.36.3`.
    fn update(&mut self, snapshot: &Snapshot, pod: &PodInfo, other: &PodInfo, node: NodeOrdinal, by: i64) {
        let incoming = &*self.incoming;
        let here = || std::iter::once((node, 1));
        for term in other.affinity_terms().map_or(&[][..], |terms| terms.required_anti_affinity()) {
            if term.matches(pod.namespace(), pod.class().labels(), incoming.namespace_labels.get()) {
                self.existing.add(snapshot, term.topology_key(), here(), by);
            }
        }
        let near = incoming.required_affinity();
        if incoming.affinity.all_match(near, other.class()) {
            for term in near {
                self.affinity.add(snapshot, term.topology_key(), here(), by);
            }
        }
        for (at, term) in incoming.required_anti_affinity().iter().enumerate() {
            if incoming.anti_affinity.matches(at, term, other.class()) {
                self.anti_affinity.add(snapshot, term.topology_key(), here(), by);
            }
        }
    }

    /// Decides whether the pod may run on the node.
    /// Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#InterPodAffinity.Filter @v1.36.3`.
    fn decide(&self, node: NodeRef<'_>) -> Verdict {
        if !self.is_near(node) {
            return Verdict::unresolvable(REASON_AFFINITY);
        }
        let is_hit = |counts: &TopologyCounts| counts.keys().iter().any(|key| key.of(node).unwrap_or(0) > 0);
        if is_hit(&self.anti_affinity) {
            Verdict::unschedulable(REASON_ANTI_AFFINITY)
        } else if is_hit(&self.existing) {
            Verdict::unschedulable(REASON_EXISTING)
        } else {
            Verdict::Pass
        }
    }

    /// Whether the node satisfies the required affinity. The node must have the topology key of every term, and each of its
    /// domains must have a pod that all terms select. If the cluster has no such pod and all terms select the incoming pod, the
    /// topology keys are enough.
    /// Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#satisfyPodAffinity @v1.36.3`.
    fn is_near(&self, node: NodeRef<'_>) -> bool {
        let mut everywhere = true;
        for key in self.affinity.keys() {
            let Some(count) = key.of(node) else { return false };
            everywhere &= count > 0;
        }
        everywhere || (self.incoming.matches_itself && self.affinity.is_zero())
    }
}

fn not_found() -> PluginError {
    PluginError::new("error reading \"PreFilterInterPodAffinity\" from cycleState: not found")
}

impl PreFilterPlugin for InterPodAffinity {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        let pod = &**cx.pod;
        let terms = pod.affinity_terms().cloned();
        if let Some(error) = terms.as_ref().and_then(|terms| terms.error()) {
            return Ok(PreFilterOutcome::Reject(Rejection::unresolvable(format!("parsing pod: {error}"))));
        }
        let near = terms.as_deref().map_or(&[][..], AffinityTerms::required_affinity);
        let away = terms.as_deref().map_or(&[][..], AffinityTerms::required_anti_affinity);
        let (affinity, anti_affinity) =
            (OwnTerms::new(near.iter(), &self.namespaces), OwnTerms::new(away.iter(), &self.namespaces));
        let incoming = Incoming {
            matches_itself: affinity.all_match(near, pod.class()),
            affinity,
            anti_affinity,
            namespace_labels: NamespaceLabels::of(&self.namespaces, pod),
            terms,
        };
        let is_free = incoming.required_affinity().is_empty() && incoming.required_anti_affinity().is_empty();
        let mut state = State::new(incoming, cx.snapshot);
        state.count_existing(pod, cx.snapshot);
        state.count_own(cx.snapshot);
        if is_free && state.existing.is_zero() {
            return Ok(PreFilterOutcome::Skip);
        }
        cx.state.set(self.filters, state);
        Ok(PreFilterOutcome::Pass)
    }

    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        Some(self)
    }
}

impl InterPodAffinity {
    fn update(
        &self,
        cx: &mut CycleContext<'_>,
        other: &PodInfo,
        node: NodeRef<'_>,
        by: i64,
    ) -> Result<Verdict, PluginError> {
        let state = cx.state.get_mut(self.filters).ok_or_else(not_found)?;
        // Pods are added and removed on nodes of the snapshot only.
        if let Some(node) = node.ordinal {
            state.update(cx.snapshot, cx.pod, other, node, by);
        }
        Ok(Verdict::Pass)
    }
}

impl PreFilterExtensions for InterPodAffinity {
    fn add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: NodeRef<'_>) -> Result<Verdict, PluginError> {
        self.update(cx, added, node, 1)
    }

    fn remove_pod(
        &self,
        cx: &mut CycleContext<'_>,
        removed: &PodInfo,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError> {
        self.update(cx, removed, node, -1)
    }
}

impl FilterPlugin for InterPodAffinity {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        let state = cx.state.get(self.filters).ok_or_else(not_found)?;
        Ok(state.decide(node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        let state = cx.state.get(self.filters).ok_or_else(not_found)?;
        block.retain(|node, _| Ok(state.decide(node)));
        Ok(())
    }
}
