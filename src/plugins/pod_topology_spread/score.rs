//! Scoring by soft constraints: the more pods a node's domains have, the lower its score.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::constraints::{Action, Constraint};
use super::counts::{Eligibility, EligibleNodes, Selected};
use super::topology::Topology;
use super::{NAME, PodTopologySpread};
use crate::framework::{
    CycleContext, CycleState, MAX_NODE_SCORE, NodeRef, NodeScores, NormalizeScore, PluginError, PreScoreOutcome,
    PreScorePlugin, ScorePlugin, Scratch,
};
use crate::k8s::Pod;
use crate::model::Snapshot;

/// The raw score of a feasible node, where lower is better. `None` for a node that is left out because it lacks a topology key.
type Raw = Option<i64>;

/// The raw scores of the feasible nodes. `PreScore` computes all of them after all domains are counted, and `Score` looks them
/// up.
/// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#preScoreState @v1.36.3` in the inputs.
#[derive(Clone, Debug)]
pub(super) struct Points {
    /// The raw scores of nodes in the snapshot, by ordinal.
    by_ordinal: Arc<[Raw]>,
    /// The raw scores of nodes outside the snapshot, by name.
    others: Arc<BTreeMap<Arc<str>, Raw>>,
}

impl Points {
    fn get(&self, node: NodeRef<'_>) -> Raw {
        match node.ordinal {
            Some(ordinal) => self.by_ordinal.get(ordinal.index()).copied().flatten(),
            None => self.others.get(node.name()).copied().flatten(),
        }
    }
}

/// The data from which `PreScore` computes the scores.
struct Scoring<'a> {
    topologies: Vec<Topology>,
    eligible: EligibleNodes,
    /// The selected pods, by constraint.
    selected: Vec<Selected<'a>>,
    /// Whether a node counts only if it has every topology key. False for the built-in constraints, so that nodes without a zone
    /// get scores too.
    requires_all: bool,
}

impl PodTopologySpread {
    /// Returns the state of `PreScore`. Like upstream, fails if the profile runs `Score` without `PreScore`.
    fn points<'a>(&self, state: &'a CycleState) -> Result<&'a Points, PluginError> {
        let missing = || PluginError::new(format!("error reading \"PreScore{NAME}\" from cycleState: not found"));
        state.get(self.soft).ok_or_else(missing)
    }

    fn scoring<'a>(&self, pod: &'a Pod, snapshot: &'a Snapshot, constraints: Vec<Constraint>) -> Scoring<'a> {
        let requires_all = !pod.spec.topology_spread_constraints.is_empty() || !self.defaults.system;
        Scoring {
            eligible: Eligibility::new(pod, &constraints, self.comparisons).of_all(pod, snapshot),
            selected: Selected::by_each(pod.namespace(), snapshot, &constraints),
            topologies: constraints
                .into_iter()
                .map(|constraint| Topology::new(constraint, snapshot, requires_all))
                .collect(),
            requires_all,
        }
    }
}

impl Scoring<'_> {
    /// Whether a feasible node is scored. A node that is not scored gets 0 in the end.
    fn scores(&self, node: NodeRef<'_>) -> bool {
        !self.requires_all || self.topologies.iter().all(|topology| topology.has(node))
    }

    /// Finds the domains of the scored nodes, and the weight of each constraint.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#PodTopologySpread.initPreScoreState @v1.36.3`.
    fn weigh(&mut self, scored: &[NodeRef<'_>]) {
        for topology in &mut self.topologies {
            topology.weigh(scored.iter().copied());
        }
    }

    /// Counts the selected pods by domain, on all nodes that count.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#PodTopologySpread.PreScore @v1.36.3`.
    fn count(&mut self) {
        let Self { topologies, eligible, selected, requires_all, .. } = self;
        for (at, selected) in selected.iter().enumerate() {
            for (node, more) in selected.nodes() {
                let has_all = || topologies.iter().all(|topology| topology.has_at(node));
                let counts = topologies[at].by_node
                    || ((!*requires_all || has_all()) && eligible.count_for(&topologies[at].constraint, node));
                if counts && let Some(pods) = topologies[at].pods_at(node) {
                    *pods += more;
                }
            }
        }
    }

    /// Returns the raw score of a scored node. A topology key that the node lacks adds nothing.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#PodTopologySpread.Score @v1.36.3`.
    fn points(&mut self, node: NodeRef<'_>) -> i64 {
        let mut sum = 0.0;
        for (at, topology) in self.topologies.iter_mut().enumerate() {
            if topology.has(node) {
                let by_itself = topology.by_node && node.ordinal.is_none();
                let pods = if by_itself { self.selected[at].on(node.info) } else { topology.pods(node) };
                sum += topology.points(pods);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "Go converts alike, short of numbers no cluster comes to")]
        let points = f64::round(sum) as i64;
        points
    }
}

impl PreScorePlugin for PodTopologySpread {
    fn pre_score(&self, cx: &mut CycleContext<'_>, nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let (pod, snapshot) = (cx.pod.pod(), cx.snapshot);
        if snapshot.is_empty() {
            return Ok(PreScoreOutcome::Skip);
        }
        let constraints = self
            .constraints(pod, Action::ScheduleAnyway)
            .map_err(|error| error.context("calculating preScoreState"))?;
        if constraints.is_empty() {
            return Ok(PreScoreOutcome::Skip);
        }
        let mut scoring = self.scoring(pod, snapshot, constraints);
        let scored: Vec<NodeRef<'_>> = nodes.iter().copied().filter(|node| scoring.scores(*node)).collect();
        scoring.weigh(&scored);
        scoring.count();
        let mut by_ordinal = vec![None; snapshot.len()];
        let mut others = BTreeMap::new();
        for node in scored {
            let points = Some(scoring.points(node));
            match node.ordinal {
                Some(ordinal) => by_ordinal[ordinal.index()] = points,
                None => {
                    others.insert(node.name_arc().clone(), points);
                }
            }
        }
        cx.state.set(self.soft, Points { by_ordinal: by_ordinal.into(), others: Arc::new(others) });
        Ok(PreScoreOutcome::Pass)
    }
}

impl ScorePlugin for PodTopologySpread {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        let points = self.points(cx.state)?;
        Ok(points.get(node).unwrap_or(0))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let points = self.points(cx.state)?;
        for (node, score) in scores.nodes.iter().zip(&mut *scores.scores) {
            *score = points.get(*node).unwrap_or(0);
        }
        Ok(())
    }
}

impl NormalizeScore for PodTopologySpread {
    /// Maps lower raw scores to higher scores, up to 100. Nodes that are left out get 0.
    /// Follows `pkg/scheduler/framework/plugins/podtopologyspread/scoring.go#PodTopologySpread.NormalizeScore @v1.36.3`.
    fn normalize(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let points = self.points(cx.state)?;
        let scored: Vec<bool> = scores.nodes.iter().map(|node| points.get(*node).is_some()).collect();
        let counting = || scores.scores.iter().zip(&scored).filter(|(_, scored)| **scored).map(|(score, _)| *score);
        let (least, greatest) = (counting().min().unwrap_or(0), counting().fold(0, i64::max));
        for (score, scored) in scores.scores.iter_mut().zip(scored) {
            *score = match (scored, greatest) {
                (false, _) => 0,
                (true, 0) => MAX_NODE_SCORE,
                (true, _) => MAX_NODE_SCORE.wrapping_mul(greatest.wrapping_add(least).wrapping_sub(*score)) / greatest,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
