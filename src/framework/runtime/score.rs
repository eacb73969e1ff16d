//! Extension points `PreScore` and `Score`, with normalization and weights.

use std::sync::Arc;

use super::super::{Code, CycleContext, CycleState, NodeRef, NodeScores, PluginError, PreScoreOutcome, ScratchBoard};
use super::{Framework, ScoreEntry, sampled};
use crate::metrics::{Operation, Point};

/// The lowest normalized score. Follows `kube-scheduler/framework/interface.go#MinNodeScore @v1.36.3`.
const MIN_NODE_SCORE: i64 = 0;

/// The highest normalized score. Follows `kube-scheduler/framework/interface.go#MaxNodeScore @v1.36.3`.
pub const MAX_NODE_SCORE: i64 = 100;

/// Number of nodes that a thread scores at a time. The data that plugins read about this many nodes fits into the CPU cache.
const CHUNK: usize = 256;

/// Number of chunks up to which one thread scores all nodes, because waking another thread would take longer than it saves.
const FEW_CHUNKS: usize = 3;

/// One plugin's scores of all nodes, recorded to explain a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginScores {
    /// Name of the plugin.
    pub plugin: Arc<str>,
    /// Scores returned by `Score`, one per node.
    pub raw: Vec<i64>,
    /// Scores after `NormalizeScore`, one per node.
    pub normalized: Vec<i64>,
    /// Weight by which the normalized scores are multiplied.
    pub weight: i64,
}

/// The result of scoring all feasible nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScoreRun {
    /// The weighted sum of all scores, one per node.
    pub totals: Vec<i64>,
    /// The scores of each plugin. Empty unless they were asked for.
    pub plugins: Vec<PluginScores>,
}

/// The scores of a chunk of nodes.
#[derive(Debug, Default)]
struct Chunk {
    /// Scores by plugin and node, for all plugins before the one that failed.
    scores: Vec<Vec<i64>>,
    /// Duration of each plugin's call, including the one that failed. Empty unless this attempt is sampled.
    seconds: Vec<f64>,
    /// Error of the plugin that failed. It is the plugin after the last one in `scores`.
    failure: Option<PluginError>,
}

impl Framework {
    /// Runs the `PreScore` plugins. Follows `pkg/scheduler/framework/runtime/framework.go#RunPreScorePlugins @v1.36.3`.
    pub fn run_pre_score(&self, cx: &mut CycleContext<'_>, nodes: &[NodeRef<'_>]) -> Result<(), PluginError> {
        let started = self.mono();
        cx.state.skip_score.clear();
        let run = self.pre_score(cx, nodes);
        self.observe_point(Point::PreScore, if run.is_ok() { Code::Success } else { Code::Error }, started);
        run
    }

    fn pre_score(&self, cx: &mut CycleContext<'_>, nodes: &[NodeRef<'_>]) -> Result<(), PluginError> {
        for entry in &self.pre_score {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.pre_score(cx, nodes),
                |outcome| match outcome {
                    Ok(PreScoreOutcome::Pass) => Code::Success,
                    Ok(PreScoreOutcome::Skip) => Code::Skip,
                    Err(_) => Code::Error,
                },
            );
            if !matches!(outcome, Ok(PreScoreOutcome::Skip)) {
                entry.count(1);
            }
            let outcome =
                outcome.map_err(|error| error.context(format_args!("running PreScore plugin {:?}", entry.name)))?;
            if outcome == PreScoreOutcome::Skip {
                cx.state.skip_score.insert(entry.index);
            }
        }
        Ok(())
    }

    /// Returns the plugins whose `Score` is skipped in this cycle, sorted.
    pub(crate) fn skipped_scores(&self, state: &CycleState) -> Vec<Arc<str>> {
        super::names(self.pre_score.iter().filter(|entry| state.skip_score.contains(entry.index)))
    }

    /// Runs the `Score` plugins, normalizes the scores and adds them up by weight. With `detailed`, each plugin's scores are
    /// kept.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunScorePlugins @v1.36.3`.
    pub(crate) fn run_score(
        &self,
        cx: &CycleContext<'_>,
        nodes: &[NodeRef<'_>],
        scratch: &ScratchBoard,
        detailed: bool,
    ) -> Result<ScoreRun, PluginError> {
        let _running = self.handle.metrics().running(Operation::Score);
        let started = self.mono();
        let run = self.score(cx, nodes, scratch, detailed);
        self.observe_point(Point::Score, if run.is_ok() { Code::Success } else { Code::Error }, started);
        run
    }

    /// Scores nodes without scratch slots, and keeps each plugin's scores. For the tests of plugins.
    pub fn run_score_detailed(&self, cx: &CycleContext<'_>, nodes: &[NodeRef<'_>]) -> Result<ScoreRun, PluginError> {
        self.run_score(cx, nodes, &ScratchBoard::default(), true)
    }

    fn score(
        &self,
        cx: &CycleContext<'_>,
        nodes: &[NodeRef<'_>],
        scratch: &ScratchBoard,
        detailed: bool,
    ) -> Result<ScoreRun, PluginError> {
        let active = self.score.iter().filter(|score| !cx.state.skip_score.contains(score.entry.index));
        let active: Vec<&ScoreEntry> = active.collect();
        let chunks = self.score_nodes(cx, &active, nodes, scratch)?;
        let mut run = ScoreRun { totals: vec![0; nodes.len()], plugins: Vec::new() };
        let mut scores = Vec::with_capacity(nodes.len());
        let mut failure: Option<Failure> = None;
        for (at, score) in active.into_iter().enumerate() {
            scores.clear();
            chunks.iter().for_each(|chunk| scores.extend_from_slice(&chunk.scores[at]));
            let raw = if detailed { scores.clone() } else { Vec::new() };
            let slots = scratch.slots(score.entry.index);
            let mut list = NodeScores { nodes, scores: &mut scores, scratch: slots };
            let outcome = match self.normalize(cx, score, &mut list) {
                Ok(()) => weigh(score, &scores, &mut run.totals),
                Err(error) => Err((Phase::Normalize, failed("running Normalize on Score plugins", score, &error))),
            };
            // An error does not end the loop: the error to return is the one that upstream would meet first, and a later
            // plugin may have it.
            if let Err(found) = outcome
                && failure.as_ref().is_none_or(|earlier| found.0 < earlier.0)
            {
                failure = Some(found);
            }
            if detailed {
                let plugin = score.entry.name.clone();
                run.plugins.push(PluginScores { plugin, raw, normalized: scores.clone(), weight: score.weight });
            }
        }
        failure.map_or(Ok(run), |(_, error)| Err(error))
    }

    /// Scores all nodes with all plugins, in chunks. Fails with the first plugin's error.
    fn score_nodes(
        &self,
        cx: &CycleContext<'_>,
        plugins: &[&ScoreEntry],
        nodes: &[NodeRef<'_>],
        scratch: &ScratchBoard,
    ) -> Result<Vec<Chunk>, PluginError> {
        // Scratch slots are found by the node's position among all nodes, so the nodes must not be split.
        let size = if scratch.is_empty() && nodes.len() > FEW_CHUNKS * CHUNK { CHUNK } else { nodes.len().max(1) };
        let chunks: Vec<&[NodeRef<'_>]> = nodes.chunks(size).collect();
        let mut done =
            self.handle.parallelizer().map(chunks.len(), |at| self.score_chunk(cx, plugins, chunks[at], scratch));
        let first_to_fail = done.iter().filter(|chunk| chunk.failure.is_some()).map(|chunk| chunk.scores.len()).min();
        for (at, score) in plugins.iter().enumerate().take(first_to_fail.map_or(plugins.len(), |at| at + 1)) {
            score.entry.count(nodes.len());
            if sampled(cx.state) {
                #[expect(clippy::cast_precision_loss, reason = "a cluster has few nodes")]
                let seconds =
                    done.iter().filter_map(|chunk| chunk.seconds.get(at)).sum::<f64>() / nodes.len().max(1) as f64;
                let code = if first_to_fail == Some(at) { Code::Error } else { Code::Success };
                self.recorder.observe_each(score.entry.durations.series(code), seconds, nodes.len());
            }
        }
        let Some(first) = first_to_fail else { return Ok(done) };
        let failures =
            done.iter_mut().filter(|chunk| chunk.scores.len() == first).find_map(|chunk| chunk.failure.take());
        let error = failures.expect("the plugin failed on one of them");
        Err(failed("running Score plugins", plugins[first], &error))
    }

    /// Scores a chunk of nodes with all plugins, while the nodes are in the CPU cache.
    fn score_chunk(
        &self,
        cx: &CycleContext<'_>,
        plugins: &[&ScoreEntry],
        nodes: &[NodeRef<'_>],
        scratch: &ScratchBoard,
    ) -> Chunk {
        let mut chunk = Chunk { scores: Vec::with_capacity(plugins.len()), ..Chunk::default() };
        for score in plugins {
            let started = sampled(cx.state).then(|| self.mono());
            let mut scores = vec![0; nodes.len()];
            let slots = scratch.slots(score.entry.index);
            let outcome =
                score.entry.plugin.score_block(cx, &mut NodeScores { nodes, scores: &mut scores, scratch: slots });
            chunk.seconds.extend(started.map(|started| self.mono().seconds_since(started)));
            if let Err(error) = outcome {
                chunk.failure = Some(error);
                break;
            }
            chunk.scores.push(scores);
        }
        chunk
    }

    fn normalize(
        &self,
        cx: &CycleContext<'_>,
        score: &ScoreEntry,
        scores: &mut NodeScores<'_>,
    ) -> Result<(), PluginError> {
        let Some(normalize) = &score.normalize else { return Ok(()) };
        if !sampled(cx.state) {
            return normalize.normalize(cx, scores);
        }
        let started = self.mono();
        let outcome = normalize.normalize(cx, scores);
        let code = if outcome.is_ok() { Code::Success } else { Code::Error };
        self.recorder.observe(score.normalize_durations.series(code), self.mono().seconds_since(started));
        outcome
    }
}

/// Step at which upstream would meet a failure. Upstream normalizes the scores of all plugins before it adds up any scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Normalize,
    /// The failure occurs when the scores of this node are added up. Upstream adds up the scores node by node.
    Weigh(usize),
}

type Failure = (Phase, PluginError);

fn failed(doing: &str, score: &ScoreEntry, error: &PluginError) -> PluginError {
    error.context(format_args!("{doing}: plugin {:?} failed with", score.entry.name))
}

fn weigh(score: &ScoreEntry, scores: &[i64], totals: &mut [i64]) -> Result<(), Failure> {
    for (at, (&value, total)) in scores.iter().zip(totals).enumerate() {
        if !(MIN_NODE_SCORE..=MAX_NODE_SCORE).contains(&value) {
            let error = PluginError::new(format!(
                "applying score defaultWeights on Score plugins: plugin {:?} returns an invalid score {value}, it should in \
                 the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
                score.entry.name
            ));
            return Err((Phase::Weigh(at), error));
        }
        *total = total.wrapping_add(value * score.weight);
    }
    Ok(())
}
