//! Scoring of the feasible nodes.

use std::collections::BTreeMap;

use super::Extender;
use super::observer::SearchObserver;
use super::search::NodeSearch;
use crate::framework::{CycleContext, Framework, NodeRef, PluginError, Rank, Ranking, ScoreRun, ScratchBoard};
use crate::metrics::Operation;

/// Factor from extenders' scores, at most 10, to plugins' scores, at most 100.
/// Follows `kube-scheduler/extender/v1/types.go#MaxExtenderPriority @v1.36.3`.
const EXTENDER_SCALE: i64 = 100 / 10;

impl NodeSearch<'_> {
    /// Ranks the feasible nodes by their scores. There must be at least two nodes.
    /// Follows `pkg/scheduler/schedule_one.go#prioritizeNodes @v1.36.3`.
    pub(super) fn rank<O: SearchObserver>(
        &mut self,
        cx: &mut CycleContext<'_>,
        nodes: &[NodeRef<'_>],
        scratch: &ScratchBoard,
        observer: &mut O,
    ) -> Result<Ranking, PluginError> {
        let _span = tracing::debug_span!("Score").entered();
        if self.extenders.is_empty() && !self.framework.has_score_plugins() {
            return Ok(Ranking::new(vec![Rank { total: 1, randomizer: 0 }; nodes.len()]));
        }
        let run = score(self.framework, cx, nodes, scratch, observer)?;
        debug_assert_eq!(run.totals.len(), nodes.len(), "every feasible node has a total score");
        let mut ranks: Vec<Rank> = run.totals.into_iter().map(|total| Rank { total, randomizer: 0 }).collect();
        self.add_extender_scores(cx, nodes, &mut ranks);
        Ok(Ranking::new(ranks))
    }

    /// Adds the extenders' scores. Each node that an interested extender lists also gets a random number that breaks ties.
    fn add_extender_scores(&mut self, cx: &CycleContext<'_>, nodes: &[NodeRef<'_>], ranks: &mut [Rank]) {
        if self.extenders.is_empty() {
            return;
        }
        let mut listed: BTreeMap<String, i64> = BTreeMap::new();
        let interested = self.extenders.iter().filter(|extender| extender.is_interested(cx.pod));
        let metrics = self.framework.handle().metrics();
        let ask = |extender: &dyn Extender| {
            let _running = metrics.running(Operation::PrioritizingExtender);
            extender.prioritize(cx.pod, nodes)
        };
        for (extender, said) in all_at_once(interested.map(|extender| &**extender).collect(), ask) {
            match said {
                Ok((scores, weight)) => {
                    for (name, score) in scores {
                        let total = listed.entry(name).or_default();
                        *total = total.wrapping_add(score.wrapping_mul(weight).wrapping_mul(EXTENDER_SCALE));
                    }
                }
                Err(error) => log_ignored(cx, extender.name(), &error),
            }
        }
        for (node, rank) in nodes.iter().zip(ranks) {
            if let Some(score) = listed.get(node.name()) {
                rank.total = rank.total.wrapping_add(*score);
                rank.randomizer = self.rng.next_u64();
            }
        }
    }
}

/// Runs the profile's `PreScore` and `Score` plugins on the feasible nodes.
pub(super) fn score<O: SearchObserver>(
    framework: &Framework,
    cx: &mut CycleContext<'_>,
    nodes: &[NodeRef<'_>],
    scratch: &ScratchBoard,
    observer: &mut O,
) -> Result<ScoreRun, PluginError> {
    let run = framework.run_pre_score(cx, nodes).and_then(|()| {
        observer.pre_scored(cx.state);
        framework.run_score(cx, nodes, scratch, O::EVERY_NODE)
    });
    observer.scored(nodes, run.as_ref());
    run
}

/// Calls `ask` for each extender, and returns the results in the order of the extenders. Two or more extenders are called in
/// parallel, because all replies are needed.
fn all_at_once<T: Send>(
    extenders: Vec<&dyn Extender>,
    ask: impl Fn(&dyn Extender) -> T + Sync,
) -> Vec<(&dyn Extender, T)> {
    let ask = &ask;
    if let [only] = *extenders {
        return vec![(only, ask(only))];
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            extenders.into_iter().map(|extender| (extender, scope.spawn(move || ask(extender)))).collect();
        let answer = |(extender, thread): (_, std::thread::ScopedJoinHandle<'_, T>)| {
            (extender, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        };
        asked.into_iter().map(answer).collect()
    })
}

fn log_ignored(cx: &CycleContext<'_>, extender: &str, error: &PluginError) {
    let pod = &**cx.pod.key();
    tracing::debug!(pod, extender, %error, "Failed to run extender's priority function. No score given by this extender.");
}
