//! The one search for nodes: from `PreFilter` to the host.
//!
//! The scheduling cycle runs it without an observer. `explain` and the comparison with upstream run the same code with an
//! observer that is shown every node.

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

/// A search for nodes: its inputs besides the cycle.
pub(super) struct NodeSearch<'s> {
    pub(super) framework: &'s Framework,
    pub(super) extenders: &'s [Arc<dyn Extender>],
    /// The share of the nodes that is enough. 0 adapts it to their number.
    pub(super) percentage_of_nodes_to_score: i32,
    /// The index of the node to begin with. Each search moves it past the nodes that it looked at.
    pub(super) next_start_node_index: &'s mut usize,
    /// Decides between equals where extenders have a say.
    pub(super) rng: &'s mut Rng,
}

/// The nodes that can take the pod, and why the others cannot.
pub(super) struct Found<'a> {
    pub(super) feasible: Feasible<'a>,
    pub(super) diagnosis: Diagnosis,
    /// The node that an equal pod's results named.
    hint: Option<Arc<str>>,
}

/// The outcome of a search that found a host.
/// Follows `pkg/scheduler/scheduler.go#ScheduleResult @v1.36.3`.
pub(super) struct Choice<'a> {
    /// The nodes that can take the pod.
    pub(super) feasible: Feasible<'a>,
    /// Position of the host among them.
    pub(super) host: usize,
    /// The other nodes by rank; none if there was a single node and nothing to rank.
    pub(super) others: Option<Ranking>,
    /// The node that an equal pod's results named.
    pub(super) hint: Option<Arc<str>>,
    /// Number of nodes that the search looked at.
    pub(super) evaluated_nodes: usize,
}

/// The nodes to filter.
pub(super) enum Nodes {
    /// All nodes of the snapshot, of which there are so many.
    All(usize),
    /// The nodes that `PreFilter` narrowed the search to.
    Only(Vec<NodeOrdinal>),
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Only(nodes) => nodes.len(),
        }
    }

    /// The `at`-th node, counted from `start`, which is one of them, and around the end.
    pub(super) fn ordinal(&self, start: usize, at: usize) -> NodeOrdinal {
        let index = start + at;
        let index = if index < self.len() { index } else { index - self.len() };
        match self {
            Self::All(_) => NodeOrdinal::new(index),
            Self::Only(nodes) => nodes[index],
        }
    }
}

/// The outcome of trying the node that is held for the pod.
enum Nominated<'a> {
    Fits(Feasible<'a>),
    /// The node's rejection, of which there may be none if an extender dropped the node.
    Rejected(Vec<NodeRejection>),
}

impl NodeSearch<'_> {
    /// Finds the nodes that can take the pod and chooses among them. `hint` names the node of an equal pod's results; it is
    /// asked after `PreFilter` has passed.
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

    /// Finds the nodes that can take the pod: `PreFilter`, first the node that is nominated or that an equal pod's results
    /// name, then as many nodes as are enough, and last the extenders.
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
        // Asked for even if another node is nominated: the next pod gets the next one.
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

    /// Records the rejected nodes, moves the start of the next search on, and asks the extenders about the feasible nodes.
    /// `tried` is the rejection by the nominated node.
    fn take_filtered<'a>(
        &mut self,
        cx: &CycleContext<'a>,
        filtered: Filtered,
        mut tried: Vec<NodeRejection>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Feasible<'a>, Failure> {
        let Filtered { feasible, scratch, rejected, failed } = filtered;
        rejected.into_iter().for_each(|rejection| diagnosis.record(rejection));
        // The nominated node's rejection counts too, unless the search came across that node again.
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

    /// Tries a node before all others: the one that is held for the pod, or that an equal pod's results name.
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
        // Of what this try found out only the plugin lasts: that it is pending is forgotten, as upstream forgets it.
        diagnosis.unschedulable_plugins.extend(rejected.iter().map(|rejection| rejection.plugin.clone()));
        let feasible = Feasible::new(cx.snapshot, &feasible, scratch);
        let feasible = self.filter_by_extenders(cx, feasible, &mut rejected)?;
        Ok(if feasible.is_empty() { Nominated::Rejected(rejected) } else { Nominated::Fits(feasible) })
    }
}

/// The nodes to filter: all, or those that `PreFilter` narrowed the search to. All others are rejected in the name of the
/// plugins that are known to reject the pod so far.
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
