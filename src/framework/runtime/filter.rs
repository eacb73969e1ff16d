//! Filtering of single nodes. The search for nodes and the dry runs of preemption share this code.

use std::sync::Arc;

use super::super::{
    Code, CycleContext, CycleState, FilterRunner, NodeOutcome, NodeRef, PluginError, Rejection, Scratch, Verdict,
};
use super::{Framework, sampled};
use crate::model::PodInfo;

/// One run of the filters on one node.
#[derive(Debug)]
pub(crate) struct FilterPass<C = KeptCalls> {
    /// The verdict of this run.
    pub(super) outcome: NodeOutcome,
    /// Number of filters up to and including the one that decided. Filters that are skipped in this cycle count too.
    reached: usize,
    pub(super) calls: C,
}

/// The verdict on one node, with the pods nominated to it taken into account.
#[derive(Debug)]
pub(crate) struct NodeVerdict<C = KeptCalls> {
    /// The first run, with the nominated pods on the node, if it passed.
    with_nominated: Option<FilterPass<C>>,
    /// The run that decided. Only its scratch slots are used.
    pub(super) last: FilterPass<C>,
}

/// The calls that one run of the filters makes.
pub(super) trait FilterCalls: Default {
    /// Calls the filter at this position of the profile's filters.
    fn call(
        &mut self,
        framework: &Framework,
        cx: &CycleContext<'_>,
        position: usize,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError>;
}

/// Calls whose results are kept. [`Framework::count_pass`] counts them later, if upstream would have made them.
#[derive(Debug, Default)]
pub(crate) struct KeptCalls {
    /// Duration of each call in seconds, in order. Empty unless this attempt is sampled.
    seconds: Vec<f64>,
    /// Filled scratch slots, by filter position.
    pub(super) scratch: Vec<(usize, Scratch)>,
}

/// Calls that are counted at once, and of which nothing is kept. A preemption makes thousands of dry runs, so each of them has
/// to be cheap.
#[derive(Debug, Default)]
struct CountedCalls;

impl FilterCalls for KeptCalls {
    #[inline]
    fn call(
        &mut self,
        framework: &Framework,
        cx: &CycleContext<'_>,
        position: usize,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError> {
        let started = sampled(cx.state).then(|| framework.mono());
        let mut slot = Scratch::default();
        let verdict = framework.filter[position].plugin.filter(cx, node, &mut slot);
        if !slot.is_empty() {
            self.scratch.push((position, slot));
        }
        self.seconds.extend(started.map(|started| framework.mono().seconds_since(started)));
        verdict
    }
}

impl FilterCalls for CountedCalls {
    #[inline]
    fn call(
        &mut self,
        framework: &Framework,
        cx: &CycleContext<'_>,
        position: usize,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError> {
        let entry = &framework.filter[position];
        entry.count(1);
        entry.plugin.filter(cx, node, &mut Scratch::default())
    }
}

impl Framework {
    /// Runs the filters on one node, and returns the rejection with the name of its plugin.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunFilterPlugins @v1.36.3`.
    pub fn run_filters_on(
        &self,
        cx: &CycleContext<'_>,
        node: NodeRef<'_>,
    ) -> Result<Option<(Arc<str>, Rejection)>, PluginError> {
        let pass: FilterPass = self.filter_node(cx, node);
        self.count_pass(cx.state, &pass);
        match pass.outcome {
            NodeOutcome::Feasible => Ok(None),
            NodeOutcome::Rejected(filter, rejection) => Ok(Some((self.filter_name(filter).clone(), rejection))),
            NodeOutcome::Failed(filter, error) => Err(self.filter_error(filter, &error)),
        }
    }

    /// Runs the filters on one node with the pods nominated to it that have at least this pod's priority. If there are such
    /// pods and the node passes, the filters run again without them. [`Self::count_verdict`] counts kept calls.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunFilterPluginsWithNominatedPods @v1.36.3`.
    pub(super) fn verdict<C: FilterCalls>(&self, cx: &CycleContext<'_>, node: NodeRef<'_>) -> NodeVerdict<C> {
        let yields_to = |other: &Arc<PodInfo>| other.priority() >= cx.pod.priority() && other.uid() != cx.pod.uid();
        let mut nominated = self.nominated_to(node);
        nominated.retain(yields_to);
        if nominated.is_empty() {
            return NodeVerdict { with_nominated: None, last: self.filter_node(cx, node) };
        }
        let mut state = cx.state.clone();
        let mut crowded = node.info.clone();
        let mut what_if = CycleContext { pod: cx.pod, snapshot: cx.snapshot, state: &mut state, now: cx.now };
        for pod in nominated {
            crowded.add_pod(pod.clone());
            if let Err(error) = self.run_add_pod(&mut what_if, &pod, node.with_pods_of(&crowded)) {
                return NodeVerdict { with_nominated: None, last: FilterPass::not_begun(error) };
            }
        }
        let with = self.filter_node(&what_if, node.with_pods_of(&crowded));
        if !matches!(with.outcome, NodeOutcome::Feasible) {
            return NodeVerdict { with_nominated: None, last: with };
        }
        NodeVerdict { with_nominated: Some(with), last: self.filter_node(cx, node) }
    }

    /// Runs the filters on one node with exactly the pods that `node` has. [`Self::count_pass`] counts kept calls.
    fn filter_node<C: FilterCalls>(&self, cx: &CycleContext<'_>, node: NodeRef<'_>) -> FilterPass<C> {
        let mut calls = C::default();
        for (position, entry) in self.filter.iter().enumerate() {
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            let outcome = match calls.call(self, cx, position, node) {
                Ok(Verdict::Pass) => continue,
                Ok(Verdict::Reject(rejection)) => NodeOutcome::Rejected(position, rejection),
                Err(error) => NodeOutcome::Failed(Some(position), error),
            };
            return FilterPass { outcome, reached: position + 1, calls };
        }
        FilterPass { outcome: NodeOutcome::Feasible, reached: self.filter.len(), calls }
    }

    /// Counts the calls of all runs for one node.
    pub(crate) fn count_verdict(&self, state: &CycleState, verdict: &NodeVerdict) {
        verdict.with_nominated.iter().chain([&verdict.last]).for_each(|pass| self.count_pass(state, pass));
    }

    /// Adds the calls of one run to `scheduler_plugin_evaluation_total`. Also observes the durations of these calls if this
    /// attempt is sampled.
    fn count_pass(&self, state: &CycleState, pass: &FilterPass) {
        let mut seconds = pass.calls.seconds.iter();
        for (position, entry) in self.filter.iter().enumerate().take(pass.reached) {
            if state.skip_filter.contains(entry.index) {
                continue;
            }
            entry.count(1);
            if let Some(seconds) = seconds.next() {
                let code = if position + 1 == pass.reached { pass.outcome.code() } else { Code::Success };
                self.recorder.observe(entry.durations.series(code), *seconds);
            }
        }
        debug_assert!(seconds.next().is_none(), "each call is timed once");
    }

    /// Returns the verdict of every filter on one node. A filter that is skipped in this cycle passes.
    pub(crate) fn filter_by_all(
        &self,
        cx: &CycleContext<'_>,
        node: NodeRef<'_>,
    ) -> Vec<(Arc<str>, Result<Verdict, PluginError>)> {
        let verdict = |entry: &super::Entry<dyn super::FilterPlugin>| {
            let skips = cx.state.skip_filter.contains(entry.index);
            let verdict =
                if skips { Ok(Verdict::Pass) } else { entry.plugin.filter(cx, node, &mut Scratch::default()) };
            (entry.name.clone(), verdict)
        };
        self.filter.iter().map(verdict).collect()
    }

    /// Returns the pods that are nominated to the node.
    fn nominated_to(&self, node: NodeRef<'_>) -> Vec<Arc<PodInfo>> {
        match self.handle.nominator() {
            Some(nominator) if nominator.has_nominated_pods() => nominator.nominated_pods_for_node(node.name()),
            _ => Vec::new(),
        }
    }

    /// Returns the number of filters in the profile.
    pub fn filter_count(&self) -> usize {
        self.filter.len()
    }

    /// Returns the name of the filter at this position.
    pub fn filter_name(&self, position: usize) -> &Arc<str> {
        &self.filter[position].name
    }

    /// Returns the plugin index of the filter at this position.
    pub(crate) fn filter_index(&self, position: usize) -> usize {
        self.filter[position].index
    }

    /// Returns the error that ends the attempt when the filter at this position fails. Without a position, a plugin failed to
    /// add a nominated pod, and its error already names the operation.
    pub(crate) fn filter_error(&self, position: Option<usize>, error: &PluginError) -> PluginError {
        match position {
            Some(position) => error.context(format_args!("running {:?} filter plugin", self.filter_name(position))),
            None => error.clone(),
        }
    }
}

impl<C: FilterCalls> FilterPass<C> {
    /// Returns the result for a plugin that failed to add a nominated pod, so that no filter was called.
    fn not_begun(error: PluginError) -> Self {
        Self { outcome: NodeOutcome::Failed(None, error), reached: 0, calls: C::default() }
    }
}

impl FilterRunner for Framework {
    fn run_filters(&self, cx: &CycleContext<'_>, node: NodeRef<'_>) -> Result<Verdict, PluginError> {
        Ok(self.run_filters_on(cx, node)?.map_or(Verdict::Pass, |(_, rejection)| Verdict::Reject(rejection)))
    }

    fn run_filters_with_nominated_pods(
        &self,
        cx: &CycleContext<'_>,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError> {
        let outcome = if sampled(cx.state) {
            let verdict: NodeVerdict = self.verdict(cx, node);
            self.count_verdict(cx.state, &verdict);
            verdict.last.outcome
        } else {
            self.verdict::<CountedCalls>(cx, node).last.outcome
        };
        match outcome {
            NodeOutcome::Feasible => Ok(Verdict::Pass),
            NodeOutcome::Rejected(_, rejection) => Ok(Verdict::Reject(rejection)),
            NodeOutcome::Failed(filter, error) => Err(self.filter_error(filter, &error)),
        }
    }

    fn add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: NodeRef<'_>) -> Result<(), PluginError> {
        self.run_add_pod(cx, added, node)
    }

    fn remove_pod(&self, cx: &mut CycleContext<'_>, removed: &PodInfo, node: NodeRef<'_>) -> Result<(), PluginError> {
        self.run_remove_pod(cx, removed, node)
    }
}
