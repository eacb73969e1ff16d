//! Evaluation of a pod: runs every plugin of a profile on every node, to explain the decision. It uses the search of the
//! scheduling cycle, with an observer that records everything.

use std::sync::Arc;

use super::Failure;
use super::evaluation::{Evaluation, NodeEvaluation, PreFilterEvaluation, ScoreEvaluation, StatusEvaluation};
use super::observer::SearchObserver;
use super::scoring::score;
use super::search::NodeSearch;
use crate::clock::{Now, Rng};
use crate::framework::{
    CycleContext, CycleState, Diagnosis, Framework, NO_NODES_AVAILABLE, NodeOutcome, NodeRef, PluginError,
    PodsToActivate, PreFilterRun, Rejection, ScoreRun, Scratch, ScratchBoard, Verdict,
};
use crate::model::{NodeOrdinal, PodInfo, Snapshot};

/// Percentage of nodes to score at which the search examines every node.
const ALL_NODES: i32 = 100;

/// Runs the filters on every node, scores all feasible nodes, and returns the results. The chosen node is the one that a search
/// from the first node on would choose. `PostFilter` and extenders do not run, because they have side effects.
pub fn evaluate(framework: &Framework, snapshot: &Snapshot, pod: &Arc<PodInfo>, now: Now) -> Evaluation {
    evaluate_then(framework, snapshot, pod, now, &mut |_, _| {})
}

/// Evaluates the pod like [`evaluate`]. If the snapshot has nodes but none is feasible, this function calls `no_node` with the
/// cycle's context after the filters and with the diagnosis. `no_node` may add to the diagnosis, such as the message of
/// `PostFilter`.
pub fn evaluate_then(
    framework: &Framework,
    snapshot: &Snapshot,
    pod: &Arc<PodInfo>,
    now: Now,
    no_node: &mut dyn FnMut(&mut CycleContext<'_>, &mut Diagnosis),
) -> Evaluation {
    let mut state = new_state(framework);
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now };
    let mut recorder = Recorder::new(framework, snapshot);
    let choice = alone(framework, |mut search| search.choose(&mut cx, |_| None, &mut recorder));
    recorder.complete(&mut cx);
    let mut evaluation = Evaluation {
        pod: pod.key().clone(),
        scheduler: framework.name().clone(),
        skipped: skipped(pod),
        pre_enqueue: pre_enqueue(framework, pod),
        signature: framework.sign_pod(pod),
        pre_filter: recorder.pre_filter.take().expect("PreFilter has been run"),
        nodes: recorder.nodes(snapshot),
        score_skip: recorder.score_skip,
        score_error: recorder.score_error.map(|error| error.to_string()).unwrap_or_default(),
        host: String::new(),
        evaluated_nodes: 0,
        feasible_nodes: 0,
        message: String::new(),
        rejectors: Vec::new(),
        pending_plugins: Vec::new(),
        error: String::new(),
    };
    match choice {
        Ok(choice) => {
            choice.feasible.nodes()[choice.host].name().clone_into(&mut evaluation.host);
            (evaluation.evaluated_nodes, evaluation.feasible_nodes) = (choice.evaluated_nodes, choice.feasible.len());
        }
        Err(Failure::NoNodes) => NO_NODES_AVAILABLE.clone_into(&mut evaluation.message),
        Err(Failure::Fit { mut diagnosis, num_all_nodes }) => {
            no_node(&mut cx, &mut diagnosis);
            evaluation.message = diagnosis.message(num_all_nodes);
            evaluation.rejectors = diagnosis.unschedulable_plugins.into_iter().collect();
            evaluation.pending_plugins = diagnosis.pending_plugins.into_iter().collect();
        }
        Err(failure) => evaluation.error = failure.message(),
    }
    evaluation
}

/// Returns the feasible nodes, in the order of the snapshot. The list is empty if `PreFilter` rejects the pod or fails. A node
/// on which a filter fails is not feasible.
pub fn feasible_nodes(framework: &Framework, snapshot: &Snapshot, pod: &Arc<PodInfo>, now: Now) -> Vec<NodeOrdinal> {
    if snapshot.is_empty() {
        return Vec::new();
    }
    let mut state = new_state(framework);
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now };
    let mut passed = Passed::default();
    // The outcome is not needed, because the observer collects the nodes.
    let _ = alone(framework, |mut search| search.find(&mut cx, |_| None, &mut passed));
    passed.0.sort_unstable();
    passed.0
}

/// Returns the verdict of every filter on one node, in running order. Filters after the first rejection run too, unlike in a
/// cycle. The list is empty if `PreFilter` rejects the pod or fails. Nominated pods are not taken into account.
pub fn evaluate_filters(
    framework: &Framework,
    snapshot: &Snapshot,
    pod: &Arc<PodInfo>,
    node: NodeOrdinal,
    now: Now,
) -> Vec<StatusEvaluation> {
    let mut state = new_state(framework);
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now };
    if !matches!(framework.run_pre_filter(&mut cx), Ok(PreFilterRun { rejection: None, .. })) {
        return Vec::new();
    }
    let verdicts = framework.filter_by_all(&cx, NodeRef::new(snapshot, node));
    verdicts
        .into_iter()
        .map(|(plugin, verdict)| match verdict {
            Ok(Verdict::Pass) => StatusEvaluation { plugin, ..StatusEvaluation::success() },
            Ok(Verdict::Reject(rejection)) => StatusEvaluation::rejected(&plugin, &rejection),
            Err(error) => StatusEvaluation::failed(&plugin, &error),
        })
        .collect()
}

/// Runs a search outside of a scheduler: without extenders, from the first node, and over all nodes.
fn alone<T>(framework: &Framework, run: impl FnOnce(NodeSearch<'_>) -> T) -> T {
    run(NodeSearch {
        framework,
        extenders: &[],
        percentage_of_nodes_to_score: ALL_NODES,
        next_start_node_index: &mut 0,
        // Randomness matters only with extenders.
        rng: &mut Rng::from_seed(0),
    })
}

fn new_state(framework: &Framework) -> CycleState {
    let mut state = CycleState::default();
    state.set(framework.handle().pods_to_activate(), PodsToActivate::default());
    state
}

fn skipped(pod: &PodInfo) -> String {
    if pod.pod().is_terminating() { format!("skip schedule deleting pod: {}", pod.key()) } else { String::new() }
}

fn pre_enqueue(framework: &Framework, pod: &PodInfo) -> Option<StatusEvaluation> {
    framework.pre_enqueue_plugins().iter().find_map(|entry| match entry.plugin.pre_enqueue(pod) {
        Verdict::Pass => None,
        Verdict::Reject(rejection) => Some(StatusEvaluation::rejected(&entry.name, &rejection)),
    })
}

/// Collects the nodes that pass the filters.
#[derive(Default)]
struct Passed(Vec<NodeOrdinal>);

impl SearchObserver for Passed {
    const EVERY_NODE: bool = true;

    fn filtered(&mut self, node: NodeOrdinal, outcome: &NodeOutcome, _scratch: &[(usize, Scratch)]) {
        if matches!(outcome, NodeOutcome::Feasible) {
            self.0.push(node);
        }
    }
}

/// Observer that records all results of a search.
struct Recorder<'f> {
    framework: &'f Framework,
    pre_filter: Option<PreFilterEvaluation>,
    /// The rejection that applies to all nodes that `PreFilter` excluded.
    absent: Option<Rejection>,
    /// The verdicts by node ordinal. `None` for a node that was not filtered.
    verdicts: Vec<Option<StatusEvaluation>>,
    /// The feasible nodes, in the order of the search.
    passed: Vec<NodeOrdinal>,
    /// Scratch slots that the filters filled for the feasible nodes, by position.
    scratch: ScratchBoard,
    score_skip: Vec<Arc<str>>,
    score_error: Option<PluginError>,
    /// The scored nodes with their scores.
    scores: Option<(Vec<NodeOrdinal>, ScoreRun)>,
}

impl<'f> Recorder<'f> {
    fn new(framework: &'f Framework, snapshot: &Snapshot) -> Self {
        Self {
            framework,
            pre_filter: None,
            absent: None,
            verdicts: vec![None; snapshot.len()],
            passed: Vec::new(),
            scratch: ScratchBoard::default(),
            score_skip: Vec::new(),
            score_error: None,
            scores: None,
        }
    }

    /// Runs the plugins that the search did not need: `PreFilter` if the snapshot has no nodes, and `Score` if there was only
    /// one feasible node.
    fn complete(&mut self, cx: &mut CycleContext<'_>) {
        if self.pre_filter.is_none() {
            let run = self.framework.pre_filter_by_name(cx);
            self.pre_filtered(run.as_ref().map_err(|(plugin, error)| (&**plugin, error)), cx.state);
        }
        let is_scored = self.scores.is_some() || self.score_error.is_some();
        if is_scored || self.passed.is_empty() || !self.framework.has_score_plugins() {
            return;
        }
        let nodes: Vec<NodeRef<'_>> = self.passed.iter().map(|node| NodeRef::new(cx.snapshot, *node)).collect();
        let scratch = std::mem::take(&mut self.scratch);
        // The result is not needed, because `self` receives it as the observer.
        let _ = score(self.framework, cx, &nodes, &scratch, self);
    }

    /// Returns the verdicts and scores of all nodes, in the order of the snapshot. The list is empty if no node was filtered or
    /// excluded.
    fn nodes(&self, snapshot: &Snapshot) -> Vec<NodeEvaluation> {
        let status = |node: NodeOrdinal| match (&self.verdicts[node.index()], &self.absent) {
            (Some(status), _) => Some((status.clone(), false)),
            (None, Some(absent)) => Some((StatusEvaluation::rejected(&Arc::default(), absent), true)),
            (None, None) => None,
        };
        let mut nodes: Vec<Option<NodeEvaluation>> = snapshot
            .ordinals()
            .map(|node| status(node).map(|(status, absent)| NodeEvaluation::new(snapshot.node(node), status, absent)))
            .collect();
        for (at, node) in self.scores.iter().flat_map(|(scored, _)| scored.iter().enumerate()) {
            let Some(node) = &mut nodes[node.index()] else { continue };
            let Some((_, run)) = &self.scores else { continue };
            node.total = Some(run.totals[at]);
            let scores = run.plugins.iter().map(|plugin| {
                let (raw, normalized) = (plugin.raw[at], plugin.normalized[at]);
                let weighted = normalized.wrapping_mul(plugin.weight);
                (plugin.plugin.clone(), ScoreEvaluation { raw, normalized, weighted })
            });
            node.scores = scores.collect();
        }
        nodes.into_iter().flatten().collect()
    }
}

impl SearchObserver for Recorder<'_> {
    const EVERY_NODE: bool = true;

    fn pre_filtered(&mut self, run: Result<&PreFilterRun, (&str, &PluginError)>, state: &CycleState) {
        let status = match run {
            Ok(PreFilterRun { rejection: None, .. }) => StatusEvaluation::success(),
            Ok(PreFilterRun { rejection: Some((plugin, rejection)), .. }) => {
                StatusEvaluation::rejected(&plugin.clone().unwrap_or_default(), rejection)
            }
            Err((plugin, error)) => StatusEvaluation::failed(&Arc::from(plugin), error),
        };
        let nodes = run.ok().and_then(|run| run.nodes.as_ref());
        self.pre_filter = Some(PreFilterEvaluation {
            status,
            nodes: nodes.map(|nodes| nodes.iter().cloned().collect()),
            skip: self.framework.skipped_filters(state),
        });
    }

    fn narrowed(&mut self, absent: &Rejection) {
        self.absent = Some(absent.clone());
    }

    fn filtered(&mut self, node: NodeOrdinal, outcome: &NodeOutcome, scratch: &[(usize, Scratch)]) {
        let status = match outcome {
            NodeOutcome::Feasible => {
                for (filter, slot) in scratch {
                    self.scratch.push(self.passed.len(), self.framework.filter_index(*filter), slot.clone());
                }
                self.passed.push(node);
                StatusEvaluation::success()
            }
            NodeOutcome::Rejected(filter, rejection) => {
                StatusEvaluation::rejected(self.framework.filter_name(*filter), rejection)
            }
            NodeOutcome::Failed(filter, error) => {
                let plugin = filter.map(|filter| self.framework.filter_name(filter).clone()).unwrap_or_default();
                StatusEvaluation::failed(&plugin, &self.framework.filter_error(*filter, error))
            }
        };
        self.verdicts[node.index()] = Some(status);
    }

    fn pre_scored(&mut self, state: &CycleState) {
        self.score_skip = self.framework.skipped_scores(state);
    }

    fn scored(&mut self, nodes: &[NodeRef<'_>], run: Result<&ScoreRun, &PluginError>) {
        match run {
            Ok(run) => {
                let nodes = nodes.iter().filter_map(|node| node.ordinal).collect();
                self.scores = Some((nodes, run.clone()));
            }
            Err(error) => self.score_error = Some(error.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
