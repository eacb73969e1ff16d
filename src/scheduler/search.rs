//! The search for a node, from `PreFilter` to the host.
//!
//! The scheduling cycle runs the search without an observer. `explain` and the comparison with upstream run the same code with
//! an observer that receives the results of every node.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::feasible::Feasible;
use super::filtering::Filtered;
use super::observer::SearchObserver;
use super::{Extender, Failure};
use crate::clock::Rng;
use crate::framework::{
    CycleContext, Diagnosis, EXTENDER, Framework, NodeRejection, PluginError, PreFilterRun, Ranking, Rejection,
};
use crate::model::{NodeOrdinal, Snapshot};

/// The inputs of a search besides the cycle.
pub(super) struct NodeSearch<'s> {
    pub(super) framework: &'s Framework,
    pub(super) extenders: &'s [Arc<dyn Extender>],
    /// Percentage of the nodes that must be found feasible before the search may stop. 0 adapts to the number of nodes.
    pub(super) percentage_of_nodes_to_score: i32,
    /// Index of the node at which the search starts. Each search moves it past the nodes that it examined.
    pub(super) next_start_node_index: &'s mut usize,
    /// Random numbers that break ties if extenders score nodes.
    pub(super) rng: &'s mut Rng,
}

/// The feasible nodes, and the reasons why the other nodes are not feasible.
pub(super) struct Found<'a> {
    pub(super) feasible: Feasible<'a>,
    pub(super) diagnosis: Diagnosis,
    /// The node named by an equal pod's results.
    hint: Option<Arc<str>>,
}

/// The outcome of a search that found a host.
/// Follows `pkg/scheduler/scheduler.go#ScheduleResult @v1.36.3`.
pub(super) struct Choice<'a> {
    /// The feasible nodes in order.
    pub(super) feasible: Feasible<'a>,
    /// Position of the host among the feasible nodes.
    pub(super) host: usize,
    /// The other nodes by rank. `None` if there was only one feasible node, so that nothing was ranked.
    pub(super) others: Option<Ranking>,
    /// The node named by an equal pod's results.
    pub(super) hint: Option<Arc<str>>,
    /// Number of nodes that the search examined.
    pub(super) evaluated_nodes: usize,
}

/// The nodes to filter.
pub(super) enum Nodes {
    /// All nodes of the snapshot, with their number.
    All(usize),
    /// The nodes to which `PreFilter` restricted the search.
    Only(Vec<NodeOrdinal>),
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Only(nodes) => nodes.len(),
        }
    }

    /// Returns the node at position `at`, counted from `start` and wrapping around at the end. `start` is a valid position.
    pub(super) fn ordinal(&self, start: usize, at: usize) -> NodeOrdinal {
        let index = start + at;
        let index = if index < self.len() { index } else { index - self.len() };
        match self {
            Self::All(_) => NodeOrdinal::new(index),
            Self::Only(nodes) => nodes[index],
        }
    }
}

/// The outcome of trying the nominated node.
enum Nominated<'a> {
    Fits(Feasible<'a>),
    /// Rejections of the node. Empty if an extender dropped the node without a reason.
    Rejected(Vec<NodeRejection>),
}

impl NodeSearch<'_> {
    /// Finds the feasible nodes and chooses one of them. `hint` returns the node named by an equal pod's results, and is called
    /// after `PreFilter` has passed.
    /// Follows `pkg/scheduler/schedule_one.go#schedulePod @v1.36.3`.
    pub(super) fn choose<'a, O: SearchObserver>(
        &mut self,
        cx: &mut CycleContext<'a>,
        hint: impl FnOnce(&CycleContext<'_>) -> Option<Arc<str>>,
        observer: &mut O,
    ) -> Result<Choice<'a>, Failure> {
        if cx.snapshot.is_empty() {
            return Err(Failure::NoNodes);
        }
        let Found { feasible, diagnosis, hint } = self.find(cx, hint, observer)?;
        if feasible.is_empty() {
            return Err(Failure::Fit { diagnosis: Box::new(diagnosis), num_all_nodes: cx.snapshot.len() });
        }
        let evaluated_nodes = feasible.len() + diagnosis.nodes.len();
        let (mut host, mut others) = (0, None);
        // A single node need not be scored.
        if feasible.len() > 1 {
            let mut ranking = self.rank(cx, &feasible.nodes(), &feasible.scratch, observer)?;
            host = ranking.pop().expect("there is a feasible node");
            others = Some(ranking);
        }
        debug_assert!(host < feasible.len(), "the host is one of the feasible nodes");
        debug_assert!(evaluated_nodes >= feasible.len(), "every feasible node was evaluated");
        Ok(Choice { feasible, host, others, hint, evaluated_nodes })
    }

    /// Finds the feasible nodes. Runs `PreFilter` and tries the nominated node or the node of an equal pod's results. Then
    /// filters nodes until enough are feasible, and calls the extenders.
    /// Follows `pkg/scheduler/schedule_one.go#findNodesThatFitPod @v1.36.3`.
    pub(super) fn find<'a, O: SearchObserver>(
        &mut self,
        cx: &mut CycleContext<'a>,
        hint: impl FnOnce(&CycleContext<'_>) -> Option<Arc<str>>,
        observer: &mut O,
    ) -> Result<Found<'a>, Failure> {
        let pre_filter = self.pre_filter(cx, observer)?;
        let mut diagnosis = Diagnosis { unschedulable_plugins: pre_filter.plugins_with_nodes, ..Diagnosis::default() };
        if let Some((plugin, rejection)) = pre_filter.rejection {
            diagnosis.pre_filter_message = rejection.reasons.to_string();
            diagnosis.unschedulable_plugins.extend(plugin);
            diagnosis.absent = Some(rejection);
            return Ok(Found { feasible: Feasible::default(), diagnosis, hint: None });
        }
        // The hint is taken even if a node is nominated, so that the next pod gets the next node.
        let hint = hint(cx);
        let mut tried = Vec::new();
        if let Some(nominated) = cx.pod.pod().nominated_node_name().or(hint.as_deref()) {
            match self.try_nominated(cx, nominated, &mut diagnosis) {
                Ok(Nominated::Fits(feasible)) => {
                    if O::EVERY_NODE {
                        let nodes = narrow(cx.snapshot, pre_filter.nodes, &mut diagnosis, observer);
                        self.filter(cx, &nodes, observer);
                    }
                    return Ok(Found { feasible, diagnosis, hint });
                }
                Ok(Nominated::Rejected(rejected)) => tried = rejected,
                Err(error) => {
                    let pod = &**cx.pod.key();
                    tracing::error!(pod, node = nominated, %error, "Evaluation failed on nominated node");
                }
            }
        }
        let nodes = narrow(cx.snapshot, pre_filter.nodes, &mut diagnosis, observer);
        let filtered = self.filter(cx, &nodes, observer);
        let feasible = self.take_filtered(cx, filtered, tried, &mut diagnosis)?;
        Ok(Found { feasible, diagnosis, hint })
    }

    fn pre_filter<O: SearchObserver>(
        &self,
        cx: &mut CycleContext<'_>,
        observer: &mut O,
    ) -> Result<PreFilterRun, PluginError> {
        let _span = tracing::debug_span!("PreFilter").entered();
        let run = self.framework.pre_filter_by_name(cx);
        observer.pre_filtered(run.as_ref().map_err(|(plugin, error)| (&**plugin, error)), cx.state);
        let run = run.map_err(|(_, error)| error)?;
        debug_assert!(
            run.rejection.is_some() || run.nodes.as_ref().is_none_or(|nodes| !nodes.is_empty()),
            "a pod that PreFilter does not reject has nodes left"
        );
        Ok(run)
    }

    /// Records the rejected nodes, moves the start of the next search, and calls the extenders with the feasible nodes. `tried`
    /// is the rejection of the nominated node.
    fn take_filtered<'a>(
        &mut self,
        cx: &CycleContext<'a>,
        filtered: Filtered,
        mut tried: Vec<NodeRejection>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Feasible<'a>, Failure> {
        let Filtered { feasible, scratch, rejected, failed } = filtered;
        rejected.into_iter().for_each(|rejection| diagnosis.record(rejection));
        // The nominated node's rejection counts too, unless the search examined that node again.
        tried.retain(|tried| diagnosis.nodes.iter().all(|rejected| rejected.node != tried.node));
        diagnosis.nodes.extend(tried);
        let processed = feasible.len() + diagnosis.nodes.len();
        *self.next_start_node_index = (*self.next_start_node_index + processed) % cx.snapshot.len();
        if let Some(error) = failed {
            return Err(Failure::Error(error));
        }
        let feasible = Feasible::new(cx.snapshot, &feasible, scratch);
        let before = feasible.len();
        let feasible = self.filter_by_extenders(cx, feasible, &mut diagnosis.nodes)?;
        if feasible.len() != before {
            diagnosis.unschedulable_plugins.insert(Arc::from(EXTENDER));
        }
        Ok(feasible)
    }

    /// Tries a node before all others: the pod's nominated node, or the node of an equal pod's results.
    /// Follows `pkg/scheduler/schedule_one.go#evaluateNominatedNode @v1.36.3`.
    fn try_nominated<'a>(
        &self,
        cx: &CycleContext<'a>,
        nominated: &str,
        diagnosis: &mut Diagnosis,
    ) -> Result<Nominated<'a>, PluginError> {
        let Some(ordinal) = cx.snapshot.ordinal(nominated) else {
            return Err(PluginError::new(format!("nodeinfo not found for node name {nominated:?}")));
        };
        let Filtered { feasible, scratch, mut rejected, failed } =
            self.filter(cx, &Nodes::Only(vec![ordinal]), &mut ());
        if let Some(error) = failed {
            return Err(error);
        }
        // Only the names of the plugins are kept. As in upstream, a plugin that returned `Pending` is not recorded as pending.
        diagnosis.unschedulable_plugins.extend(rejected.iter().map(|rejection| rejection.plugin.clone()));
        let feasible = Feasible::new(cx.snapshot, &feasible, scratch);
        let feasible = self.filter_by_extenders(cx, feasible, &mut rejected)?;
        Ok(if feasible.is_empty() { Nominated::Rejected(rejected) } else { Nominated::Fits(feasible) })
    }
}

/// Returns the nodes to filter: all nodes, or the nodes to which `PreFilter` restricted the search. All other nodes count as
/// rejected by the plugins that are in `unschedulable_plugins` of the diagnosis at this point.
fn narrow<O: SearchObserver>(
    snapshot: &Snapshot,
    narrowed: Option<BTreeSet<String>>,
    diagnosis: &mut Diagnosis,
    observer: &mut O,
) -> Nodes {
    let Some(names) = narrowed else { return Nodes::All(snapshot.len()) };
    let plugins: Vec<&str> = diagnosis.unschedulable_plugins.iter().map(|name| &**name).collect();
    let absent = Rejection::unresolvable(format!("node(s) didn't satisfy plugin(s) [{}]", plugins.join(" ")));
    observer.narrowed(&absent);
    diagnosis.absent = Some(absent);
    Nodes::Only(names.iter().filter_map(|name| snapshot.ordinal(name)).collect())
}
