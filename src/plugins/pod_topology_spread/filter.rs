//! Filtering by hard constraints: pod counts by domain, and rejection of nodes that would violate the skew.

use std::sync::Arc;

use super::constraints::{Action, Constraint};
use super::counts::{Eligibility, Selected};
use super::{NAME, PodTopologySpread};
use crate::framework::{
    Candidates, CycleContext, CycleState, FilterPlugin, NodeRef, PluginError, PreFilterExtensions, PreFilterOutcome,
    PreFilterPlugin, Scratch, Verdict,
};
use crate::model::{Domains, NodeOrdinal, PodInfo};

const REASON_SKEW: &str = "node(s) didn't match pod topology spread constraints";
const REASON_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// Upstream's initial minimum count. It has an effect only if a constraint with `minDomains` 0 has no domains, and the API does
/// not allow 0.
const NO_DOMAIN: i64 = i32::MAX as i64;

/// The number of pods in a domain.
#[derive(Clone, Copy, Debug)]
struct Count {
    domain: usize,
    pods: i64,
}

/// The two domains of a constraint with the fewest pods. Preemption and nominated pods change a clone of the state on one node
/// only, and thus in one domain of each constraint. At least one of the two domains has then not changed, so the minimum is
/// known without a search.
/// Follows `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go#criticalPaths @v1.36.3`.
#[derive(Clone, Copy, Debug)]
struct Emptiest([Count; 2]);

impl Emptiest {
    fn new() -> Self {
        Self([Count { domain: usize::MAX, pods: NO_DOMAIN }; 2])
    }

    /// Updates the pair after the count of a domain changed.
    fn update(&mut self, new: Count) {
        let Self([first, second]) = self;
        if first.domain == new.domain {
            *first = new;
        } else if second.domain == new.domain {
            *second = new;
        } else if new.pods < first.pods {
            *second = *first;
            *first = new;
        } else if new.pods < second.pods {
            *second = new;
        }
        if first.pods > second.pods {
            std::mem::swap(first, second);
        }
    }
}

/// A hard constraint with the pod counts of its domains.
#[derive(Debug)]
struct Counted {
    constraint: Constraint,
    domains: Arc<Domains>,
    /// The pod counts by domain. `None` for a domain in which no node counts.
    pods: Vec<Option<i64>>,
    /// Number of domains in which a node counts.
    known: usize,
    /// Whether the constraint selects the incoming pod itself.
    matches_itself: bool,
}

/// The part of the state that does not change during a cycle.
#[derive(Debug)]
struct Base {
    counted: Vec<Counted>,
    eligibility: Eligibility,
}

/// A count that changed when a pod was added or removed.
#[derive(Clone, Copy, Debug)]
struct Changed {
    constraint: usize,
    count: Count,
}

/// The state that `PreFilter` computes for `Filter`. Preemption clones the state and adds or removes a few pods. So clones
/// share the counts, and each keeps its changes in `changed`.
/// Follows `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go#preFilterState @v1.36.3`.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    base: Arc<Base>,
    /// The domains with the fewest pods, by constraint.
    emptiest: Vec<Emptiest>,
    changed: Vec<Changed>,
}

impl Spread {
    /// Counts pods on all nodes that have every topology key.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go#PodTopologySpread.calPreFilterState @v1.36.3`.
    fn new(cx: &CycleContext<'_>, constraints: Vec<Constraint>, comparisons: bool) -> Self {
        let pod = cx.pod.pod();
        let eligibility = Eligibility::new(pod, &constraints, comparisons);
        let eligible = eligibility.of_all(pod, cx.snapshot);
        let selected = Selected::by_each(pod.namespace(), cx.snapshot, &constraints);
        let counted = constraints.into_iter().map(|constraint| {
            let domains = cx.snapshot.domains(&constraint.topology_key);
            let matches_itself = constraint.selector.matches(pod.labels());
            Counted { pods: vec![None; domains.len()], domains, known: 0, matches_itself, constraint }
        });
        let mut counted: Vec<Counted> = counted.collect();
        let has_all = |node| counted.iter().all(|counted| counted.domains.of(node).is_some());
        let has_all: Vec<bool> = cx.snapshot.ordinals().map(has_all).collect();
        for (counted, selected) in counted.iter_mut().zip(&selected) {
            let Counted { constraint, domains, pods, .. } = counted;
            let domain = |node: NodeOrdinal| {
                let counts = has_all[node.index()] && eligible.count_for(constraint, node);
                if counts { domains.of(node) } else { None }
            };
            cx.snapshot.ordinals().filter_map(domain).for_each(|domain| pods[domain] = Some(0));
            for (node, more) in selected.nodes() {
                if let Some(domain) = domain(node) {
                    *pods[domain].get_or_insert(0) += more;
                }
            }
        }
        let emptiest = counted.iter_mut().map(Counted::finish).collect();
        Self { base: Arc::new(Base { counted, eligibility }), emptiest, changed: Vec::new() }
    }

    fn pods(&self, constraint: usize, domain: usize) -> i64 {
        // There are few changes, and none unless pods were added or removed.
        let changed =
            self.changed.iter().find(|changed| changed.constraint == constraint && changed.count.domain == domain);
        match changed {
            Some(changed) => changed.count.pods,
            None => self.base.counted[constraint].pods.get(domain).copied().flatten().unwrap_or(0),
        }
    }

    /// Returns the minimum pod count of the domains, for the calculation of the skew.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go#preFilterState.minMatchNum @v1.36.3`.
    fn minimum(&self, constraint: usize) -> i64 {
        let counted = &self.base.counted[constraint];
        let wanted = usize::try_from(counted.constraint.min_domains).unwrap_or(0);
        if counted.known < wanted { 0 } else { self.emptiest[constraint].0[0].pods }
    }

    /// Decides whether the pod may run on the node.
    fn decide(&self, node: NodeRef<'_>) -> Verdict {
        for (at, counted) in self.base.counted.iter().enumerate() {
            let pods = match counted.domain(node) {
                Domain::Missing => return Verdict::unresolvable(REASON_LABEL),
                Domain::Known(domain) => self.pods(at, domain),
                Domain::Unknown => 0,
            };
            let skew = pods + i64::from(counted.matches_itself) - self.minimum(at);
            if skew > i64::from(counted.constraint.max_skew) {
                return Verdict::unschedulable(REASON_SKEW);
            }
        }
        Verdict::Pass
    }

    /// Updates the counts after a pod was added to the node (`by` is 1) or removed (-1). Unlike the initial count, this
    /// includes pods that are being deleted, and an empty selector selects all pods.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go#PodTopologySpread.updateWithPod @v1.36.3`.
    fn update(&mut self, pod: &PodInfo, moved: &PodInfo, node: NodeRef<'_>, by: i64) {
        let pod = pod.pod();
        if moved.namespace() != pod.namespace() {
            return;
        }
        let base = self.base.clone();
        let domains: Option<Vec<usize>> = base.counted.iter().map(|counted| counted.domain(node).known()).collect();
        let Some(domains) = domains else { return };
        let eligible = base.eligibility.of(pod, node.node());
        for (at, (counted, domain)) in base.counted.iter().zip(domains).enumerate() {
            let constraint = &counted.constraint;
            if constraint.selector.matches(moved.class().labels()) && eligible.counts_for(constraint) {
                let count = Count { domain, pods: self.pods(at, domain) + by };
                self.change(at, count);
                self.emptiest[at].update(count);
            }
        }
    }

    fn change(&mut self, constraint: usize, count: Count) {
        let is_same = |changed: &&mut Changed| changed.constraint == constraint && changed.count.domain == count.domain;
        match self.changed.iter_mut().find(is_same) {
            Some(changed) => changed.count = count,
            None => self.changed.push(Changed { constraint, count }),
        }
    }
}

/// The domain of a node for one constraint.
#[derive(Clone, Copy, Debug)]
enum Domain {
    /// The node does not have the label.
    Missing,
    Known(usize),
    /// No node of the snapshot has this value of the label.
    Unknown,
}

impl Domain {
    fn known(self) -> Option<usize> {
        match self {
            Self::Known(domain) => Some(domain),
            Self::Missing | Self::Unknown => None,
        }
    }
}

impl Counted {
    /// Counts the domains and returns the two with the fewest pods. Called after all pods are counted.
    fn finish(&mut self) -> Emptiest {
        let mut emptiest = Emptiest::new();
        for (domain, pods) in self.pods.iter().enumerate() {
            if let Some(pods) = *pods {
                self.known += 1;
                emptiest.update(Count { domain, pods });
            }
        }
        emptiest
    }

    /// Returns the domain of the node, by its ordinal, or by its labels if it has no ordinal.
    fn domain(&self, node: NodeRef<'_>) -> Domain {
        match node.ordinal {
            Some(ordinal) => self.domains.of(ordinal).map_or(Domain::Missing, Domain::Known),
            None => match node.node().labels().get(&*self.constraint.topology_key) {
                None => Domain::Missing,
                Some(value) => self.domains.find(value).map_or(Domain::Unknown, Domain::Known),
            },
        }
    }
}

impl PodTopologySpread {
    /// Returns the state of `PreFilter`. Like upstream, fails if the profile runs `Filter` without `PreFilter`.
    fn spread<'a>(&self, state: &'a CycleState) -> Result<&'a Spread, PluginError> {
        state.get(self.hard).ok_or_else(missing_state)
    }

    fn update(
        &self,
        cx: &mut CycleContext<'_>,
        moved: &PodInfo,
        node: NodeRef<'_>,
        by: i64,
    ) -> Result<Verdict, PluginError> {
        let pod = cx.pod;
        cx.state.get_mut(self.hard).ok_or_else(missing_state)?.update(pod, moved, node, by);
        Ok(Verdict::Pass)
    }
}

fn missing_state() -> PluginError {
    PluginError::new(format!("reading \"PreFilter{NAME}\" from cycleState: not found"))
}

impl PreFilterPlugin for PodTopologySpread {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        let constraints = self
            .constraints(cx.pod.pod(), Action::DoNotSchedule)
            .map_err(|error| error.context("get constraints from pod"))?;
        if constraints.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        let spread = Spread::new(cx, constraints, self.comparisons);
        cx.state.set(self.hard, spread);
        Ok(PreFilterOutcome::Pass)
    }

    fn extensions(&self) -> Option<&dyn PreFilterExtensions> {
        Some(self)
    }
}

impl PreFilterExtensions for PodTopologySpread {
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

impl FilterPlugin for PodTopologySpread {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(self.spread(cx.state)?.decide(node))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        let spread = self.spread(cx.state)?;
        block.retain(|node, _| Ok(spread.decide(node)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
