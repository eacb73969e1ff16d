//! Everything that a profile says of one pod: each node's verdict, each plugin's score. For people and programs that want
//! to know why; the scheduling cycle itself stops as early as it can and keeps only what it needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::runtime::NodeVerdict;
use super::{
    BlockRun, Code, CycleContext, CycleState, Diagnosis, Framework, NodeOutcome, NodeRejection, PluginError,
    PodsToActivate, PreFilterRun, Rank, Ranking, Rejection, ScratchBoard, Verdict, filter_error,
};
use crate::clock::Now;
use crate::model::{NodeInfo, PodInfo, Snapshot};

/// A plugin's answer, in the names that messages and metrics give it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusEvaluation {
    /// Whose answer it is; empty where it is nobody's in particular.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub plugin: Arc<str>,
    /// `Success`, `Unschedulable`, `UnschedulableAndUnresolvable`, `Pending` or `Error`.
    pub code: &'static str,
    /// Why.
    pub reasons: Vec<String>,
}

/// What all `PreFilter` plugins came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreFilterEvaluation {
    /// Their answer.
    #[serde(flatten)]
    pub status: StatusEvaluation,
    /// The nodes that come into question, sorted; `None` for all.
    pub nodes: Option<Vec<String>>,
    /// The plugins that `Filter` leaves out, sorted.
    pub skip: Vec<Arc<str>>,
}

/// One plugin's score of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScoreEvaluation {
    /// As `Score` gave it.
    pub raw: i64,
    /// After `NormalizeScore`: 0 to 100.
    pub normalized: i64,
    /// Times the plugin's weight.
    pub weighted: i64,
}

/// What is said of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeEvaluation {
    /// The node.
    pub node: Arc<str>,
    /// The filters' verdict.
    #[serde(flatten)]
    pub status: StatusEvaluation,
    /// Whether the node did not come into question, so that no filter saw it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
    /// Each plugin's score; only where the node can take the pod.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scores: BTreeMap<Arc<str>, ScoreEvaluation>,
    /// Their weighted sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
}

/// Everything that a profile says of one pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// `namespace/name`.
    pub pod: Arc<str>,
    /// The profile.
    pub scheduler: Arc<str>,
    /// Why the pod is not scheduled at all, if it is not; the rest is what would have been decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skipped: String,
    /// What keeps the pod out of activeQ.
    pub pre_enqueue: Option<StatusEvaluation>,
    /// The pod's signature; `None` if a plugin cannot sign it.
    pub signature: Option<String>,
    /// What `PreFilter` came to.
    pub pre_filter: PreFilterEvaluation,
    /// Every node, in the order in which they are tried from the first one on; none if `PreFilter` rejects the pod.
    pub nodes: Vec<NodeEvaluation>,
    /// The plugins that do not score this pod, sorted.
    pub score_skip: Vec<Arc<str>>,
    /// What went wrong in scoring.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub score_error: String,
    /// The node that is chosen; empty if none is.
    pub host: String,
    /// How many nodes the search has looked at when it found the host, one that is not cut short by
    /// `percentageOfNodesToScore`; 0 without a host.
    #[serde(skip_serializing_if = "is_zero")]
    pub evaluated_nodes: usize,
    /// How many of these can take the pod.
    #[serde(skip_serializing_if = "is_zero")]
    pub feasible_nodes: usize,
    /// Why no node can take the pod, as its condition says it but for the words of `PostFilter`, which is not run.
    pub message: String,
    /// The plugins whose events may help the pod, sorted.
    pub rejectors: Vec<Arc<str>>,
    /// Those of them that will say themselves when to try again, sorted.
    pub pending_plugins: Vec<Arc<str>>,
    /// What ends the attempt, if something breaks.
    pub error: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Asks every plugin of the profile about every node, scores all nodes that can take the pod, and says which node is
/// chosen when all are looked at from the first one on. `PostFilter` and extenders are left out: asking them changes
/// things. Follows the scheduling cycle, `pkg/scheduler/schedule_one.go#schedulePod @v1.36.3`, without its shortcuts.
pub fn evaluate(framework: &Framework, snapshot: &Snapshot, pod: &Arc<PodInfo>, now: Now) -> Evaluation {
    evaluate_then(framework, snapshot, pod, now, &mut |_, _| {})
}

/// The same; where no node can take the pod, `no_node` is called with the cycle as the filters left it and with what they
/// said, and may add to that what it makes of it, such as what `PostFilter` says.
pub fn evaluate_then(
    framework: &Framework,
    snapshot: &Snapshot,
    pod: &Arc<PodInfo>,
    now: Now,
    no_node: &mut dyn FnMut(&mut CycleContext<'_>, &mut Diagnosis),
) -> Evaluation {
    let mut state = CycleState::default();
    state.set(framework.handle().pods_to_activate(), PodsToActivate::default());
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now };
    let run = framework.pre_filter_by_name(&mut cx);
    let mut evaluation = Evaluation {
        pod: pod.key().clone(),
        scheduler: framework.name().clone(),
        skipped: skipped(pod),
        pre_enqueue: pre_enqueue(framework, pod),
        signature: framework.sign_pod(pod),
        pre_filter: pre_filter(framework, &run, cx.state),
        nodes: Vec::new(),
        score_skip: Vec::new(),
        score_error: String::new(),
        host: String::new(),
        evaluated_nodes: 0,
        feasible_nodes: 0,
        message: String::new(),
        rejectors: Vec::new(),
        pending_plugins: Vec::new(),
        error: String::new(),
    };
    if snapshot.is_empty() {
        super::NO_NODES_AVAILABLE.clone_into(&mut evaluation.message);
        return evaluation;
    }
    match run {
        Ok(run) => Search::new(framework, &mut cx, run).settle(&mut evaluation, no_node),
        Err((_, error)) => evaluation.error = error.to_string(),
    }
    evaluation
}

/// The nodes that can take the pod, by position in the snapshot; none if `PreFilter` rejects the pod or something breaks.
pub fn feasible_nodes(framework: &Framework, snapshot: &Snapshot, pod: &Arc<PodInfo>, now: Now) -> Vec<usize> {
    let mut state = CycleState::default();
    state.set(framework.handle().pods_to_activate(), PodsToActivate::default());
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now };
    let Ok(PreFilterRun { rejection: None, nodes: kept, .. }) = framework.run_pre_filter(&mut cx) else {
        return Vec::new();
    };
    let can_take = |(_, node): &(usize, &Arc<NodeInfo>)| {
        kept.as_ref().is_none_or(|kept| kept.contains(node.name()))
            && matches!(verdict(framework, &cx, node, 0, &mut ScratchBoard::default()), Ok(None))
    };
    snapshot.nodes().iter().enumerate().filter(can_take).map(|(position, _)| position).collect()
}

/// Every filter's verdict on one node, in the order in which they run: also of those behind the first that rejects it,
/// which a cycle does not ask. Empty if `PreFilter` rejects the pod or fails. Pods nominated to the node are not taken into
/// account.
pub fn evaluate_filters(
    framework: &Framework,
    snapshot: &Snapshot,
    pod: &Arc<PodInfo>,
    node: &NodeInfo,
    now: Now,
) -> Vec<StatusEvaluation> {
    let mut state = CycleState::default();
    state.set(framework.handle().pods_to_activate(), PodsToActivate::default());
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now };
    if !matches!(framework.run_pre_filter(&mut cx), Ok(PreFilterRun { rejection: None, .. })) {
        return Vec::new();
    }
    let verdicts = framework.filter_by_all(&cx, node);
    verdicts
        .into_iter()
        .map(|(plugin, verdict)| match verdict {
            Ok(Verdict::Pass) => StatusEvaluation { plugin, ..success() },
            Ok(Verdict::Reject(rejection)) => rejected(&plugin, &rejection),
            Err(error) => failed(&plugin, &error),
        })
        .collect()
}

/// A complete look at the nodes.
struct Search<'a, 'c, 's> {
    framework: &'a Framework,
    cx: &'a mut CycleContext<'c>,
    diagnosis: Diagnosis,
    /// The first error of a filter, which ends the attempt.
    error: Option<PluginError>,
    nodes: Vec<NodeEvaluation>,
    feasible: Vec<&'s NodeInfo>,
    scratch: ScratchBoard,
    /// The node that is held for the pod, if it can take it.
    nominated: Option<&'s NodeInfo>,
    /// Where it is, if it cannot and is looked at again with the others.
    tried: Option<usize>,
}

impl<'a, 'c> Search<'a, 'c, 'c> {
    fn new(framework: &'a Framework, cx: &'a mut CycleContext<'c>, run: PreFilterRun) -> Self {
        let mut search = Self {
            framework,
            cx,
            diagnosis: Diagnosis { unschedulable_plugins: run.plugins_with_nodes.clone(), ..Diagnosis::default() },
            error: None,
            nodes: Vec::new(),
            feasible: Vec::new(),
            scratch: ScratchBoard::default(),
            nominated: None,
            tried: None,
        };
        match run.rejection {
            Some((plugin, rejection)) => {
                search.diagnosis.pre_filter_message = rejection.reasons.to_string();
                search.diagnosis.unschedulable_plugins.extend(plugin);
                search.diagnosis.absent = Some(rejection);
            }
            None => search.look(&run),
        }
        search
    }

    fn look(&mut self, run: &PreFilterRun) {
        let keeps = |node: &NodeInfo| run.nodes.as_ref().is_none_or(|kept| kept.contains(node.name()));
        let held = self.cx.pod.pod().nominated_node_name().and_then(|name| self.cx.snapshot.position(name));
        if let Some(position) = held {
            self.try_held(position, keeps(&self.cx.snapshot.nodes()[position]));
        }
        if run.nodes.is_some() {
            let plugins: Vec<&str> = self.diagnosis.unschedulable_plugins.iter().map(|name| &**name).collect();
            let reason = format!("node(s) didn't satisfy plugin(s) [{}]", plugins.join(" "));
            self.diagnosis.absent = Some(Rejection::unresolvable(reason));
        }
        for (position, node) in self.cx.snapshot.nodes().iter().enumerate() {
            if keeps(node) {
                self.look_at(position);
            } else if let Some(absent) = &self.diagnosis.absent {
                self.nodes.push(NodeEvaluation::new(node, rejected(&Arc::default(), absent), true));
            }
        }
    }

    /// Tries the node that is held for the pod, before all others and even if `PreFilter` does not keep it. Of what this
    /// finds out, errors and that a plugin is pending are forgotten.
    fn try_held(&mut self, position: usize, kept: bool) {
        let node: &'c NodeInfo = &self.cx.snapshot.nodes()[position];
        match verdict(self.framework, self.cx, node, 0, &mut ScratchBoard::default()) {
            Ok(None) => self.nominated = Some(node),
            Ok(Some((plugin, rejection))) => {
                self.diagnosis.unschedulable_plugins.insert(plugin.clone());
                if kept {
                    self.tried = Some(position);
                } else {
                    self.diagnosis.nodes.push(NodeRejection { position, plugin, rejection });
                }
            }
            Err(_) => {}
        }
    }

    /// Filters one node.
    fn look_at(&mut self, position: usize) {
        let node: &'c NodeInfo = &self.cx.snapshot.nodes()[position];
        let mut slots = ScratchBoard::default();
        let status = match verdict(self.framework, self.cx, node, self.feasible.len(), &mut slots) {
            Ok(None) => {
                self.feasible.push(node);
                self.scratch.append(slots);
                success()
            }
            Ok(Some((plugin, rejection))) => {
                let status = rejected(&plugin, &rejection);
                self.diagnosis.record(NodeRejection { position, plugin, rejection });
                status
            }
            Err((plugin, error)) => {
                let status = failed(&plugin, &error);
                self.error.get_or_insert(error);
                status
            }
        };
        self.nodes.push(NodeEvaluation::new(node, status, false));
    }

    /// Scores the nodes that can take the pod and writes everything down.
    fn settle(mut self, evaluation: &mut Evaluation, no_node: &mut dyn FnMut(&mut CycleContext<'_>, &mut Diagnosis)) {
        let totals = if self.feasible.is_empty() { Ok(Vec::new()) } else { self.score(evaluation) };
        if let Err(error) = &totals {
            evaluation.score_error = error.to_string();
        }
        let processed = self.diagnosis.nodes.len() + self.feasible.len();
        if let Some(node) = self.nominated {
            (evaluation.evaluated_nodes, evaluation.feasible_nodes) = (1, 1);
            node.name().clone_into(&mut evaluation.host);
        } else if let Some(error) = self.error {
            evaluation.error = error.to_string();
        } else if self.feasible.is_empty() {
            no_node(self.cx, &mut self.diagnosis);
            evaluation.message = self.diagnosis.message(self.cx.snapshot.len());
            evaluation.rejectors = self.diagnosis.unschedulable_plugins.into_iter().collect();
            evaluation.pending_plugins = self.diagnosis.pending_plugins.into_iter().collect();
        } else {
            // A single node is chosen without being scored.
            let totals = if self.feasible.len() == 1 { Ok(vec![0]) } else { totals };
            match totals {
                Ok(totals) => {
                    let ranks: Vec<Rank> = totals.into_iter().map(|total| Rank { total, randomizer: 0 }).collect();
                    let best = Ranking::new(ranks).best().expect("there is a feasible node");
                    self.feasible[best].name().clone_into(&mut evaluation.host);
                    (evaluation.evaluated_nodes, evaluation.feasible_nodes) = if self.framework.has_score_plugins() {
                        (processed, self.feasible.len())
                    } else {
                        (processed - self.beyond_the_first(), 1)
                    };
                }
                Err(error) => evaluation.error = error.to_string(),
            }
        }
        evaluation.nodes = self.nodes;
    }

    /// How many of the nodes that were looked at a search would not have looked at, or not have kept, that wants a single
    /// one, as there are no plugins that score: it goes on to the second node that can take the pod, and drops that.
    /// Follows `pkg/scheduler/schedule_one.go#findNodesThatPassFilters @v1.36.3` with a single worker.
    fn beyond_the_first(&self) -> usize {
        let seen = || self.nodes.iter().enumerate().filter(|(_, node)| !node.absent);
        let fits = |node: &NodeEvaluation| node.status.code == Code::Success.as_str();
        let Some((second, _)) = seen().filter(|(_, node)| fits(node)).nth(1) else { return 0 };
        seen().filter(|(position, _)| *position >= second && Some(*position) != self.tried).count()
    }

    /// The weighted sums of the feasible nodes; all the same without plugins that score.
    fn score(&mut self, evaluation: &mut Evaluation) -> Result<Vec<i64>, PluginError> {
        if !self.framework.has_score_plugins() {
            return Ok(vec![1; self.feasible.len()]);
        }
        self.framework.run_pre_score(self.cx, &self.feasible)?;
        evaluation.score_skip = self.framework.skipped_scores(self.cx.state);
        let run = self.framework.run_score(self.cx, &self.feasible, &self.scratch, true)?;
        let passed = self.nodes.iter_mut().filter(|node| node.status.code == Code::Success.as_str());
        for (at, node) in passed.enumerate() {
            node.total = Some(run.totals[at]);
            node.scores = run
                .plugins
                .iter()
                .map(|plugin| {
                    let (raw, normalized) = (plugin.raw[at], plugin.normalized[at]);
                    let weighted = normalized.wrapping_mul(plugin.weight);
                    (plugin.plugin.clone(), ScoreEvaluation { raw, normalized, weighted })
                })
                .collect();
        }
        Ok(run.totals)
    }
}

impl NodeEvaluation {
    fn new(node: &NodeInfo, status: StatusEvaluation, absent: bool) -> Self {
        Self { node: node.name_arc().clone(), status, absent, scores: BTreeMap::new(), total: None }
    }
}

/// The filters' verdict on one node, with the pods nominated to it, and what they leave for scoring under position `at`.
fn verdict(
    framework: &Framework,
    cx: &CycleContext<'_>,
    node: &NodeInfo,
    at: usize,
    slots: &mut ScratchBoard,
) -> NodeVerdict {
    if framework.is_crowded(node) {
        let (verdict, mut passes) = framework.run_passes(cx, node);
        for pass in &passes {
            framework.count_pass(cx.state, pass);
        }
        if let (Ok(None), Some(last)) = (&verdict, passes.pop()) {
            for (filter, slot) in last.scratch {
                slots.push(at, framework.filter_index(filter), slot);
            }
        }
        return verdict;
    }
    let BlockRun { mut outcomes, scratch, .. } = framework.run_filter_block(cx, &[node]);
    match outcomes.pop() {
        Some(NodeOutcome::Rejected(filter, rejection)) => Ok(Some((framework.filter_name(filter).clone(), rejection))),
        Some(NodeOutcome::Failed(filter, error)) => {
            let plugin = framework.filter_name(filter);
            Err((plugin.clone(), filter_error(plugin, &error)))
        }
        Some(NodeOutcome::Feasible) | None => {
            for (_, plugin, slot) in scratch {
                slots.push(at, framework.filter_index(plugin), slot);
            }
            Ok(None)
        }
    }
}

fn skipped(pod: &PodInfo) -> String {
    if pod.pod().is_terminating() { format!("skip schedule deleting pod: {}", pod.key()) } else { String::new() }
}

fn pre_enqueue(framework: &Framework, pod: &PodInfo) -> Option<StatusEvaluation> {
    framework.pre_enqueue_plugins().iter().find_map(|entry| match entry.plugin.pre_enqueue(pod) {
        Verdict::Pass => None,
        Verdict::Reject(rejection) => Some(rejected(&entry.name, &rejection)),
    })
}

fn pre_filter(
    framework: &Framework,
    run: &Result<PreFilterRun, (Arc<str>, PluginError)>,
    state: &CycleState,
) -> PreFilterEvaluation {
    let status = match run {
        Ok(PreFilterRun { rejection: None, .. }) => success(),
        Ok(PreFilterRun { rejection: Some((plugin, rejection)), .. }) => {
            rejected(&plugin.clone().unwrap_or_default(), rejection)
        }
        Err((plugin, error)) => failed(plugin, error),
    };
    let nodes = run.as_ref().ok().and_then(|run| run.nodes.as_ref());
    PreFilterEvaluation {
        status,
        nodes: nodes.map(|nodes| nodes.iter().cloned().collect()),
        skip: framework.skipped_filters(state),
    }
}

fn success() -> StatusEvaluation {
    StatusEvaluation { plugin: Arc::default(), code: Code::Success.as_str(), reasons: Vec::new() }
}

fn rejected(plugin: &Arc<str>, rejection: &Rejection) -> StatusEvaluation {
    StatusEvaluation {
        plugin: plugin.clone(),
        code: rejection.code().as_str(),
        reasons: rejection.reasons.iter().map(str::to_owned).collect(),
    }
}

fn failed(plugin: &Arc<str>, error: &PluginError) -> StatusEvaluation {
    StatusEvaluation { plugin: plugin.clone(), code: Code::Error.as_str(), reasons: vec![error.to_string()] }
}

#[cfg(test)]
mod tests;
