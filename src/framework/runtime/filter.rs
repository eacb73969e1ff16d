//! `PreFilter`, `Filter` and `PostFilter`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::FilterPlugin;
use super::super::context::NodeOutcome;
use super::super::{
    Candidates, Code, CycleContext, CycleState, FilterRunner, PluginError, PostFilterContext, PostFilterOutcome,
    PreFilterOutcome, Rejection, RejectionKind, Scratch, Verdict,
};
use super::{Entry, Framework, PreFilterEntry, sampled};
use crate::metrics::{PluginDurations, Point};
use crate::model::{NodeInfo, PodInfo};

/// What `PreFilter` came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreFilterRun {
    /// The nodes that come into question, if plugins narrowed them down.
    pub nodes: Option<BTreeSet<String>>,
    /// The plugins that did.
    pub plugins_with_nodes: BTreeSet<Arc<str>>,
    /// The rejection, and whose it was; nobody's if the plugins' nodes have none in common.
    pub rejection: Option<(Option<Arc<str>>, Rejection)>,
}

/// What `PostFilter` came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostFilterRun {
    /// `Success` once a plugin may have made the pod schedulable; a rejection otherwise.
    pub code: Code,
    /// What the plugins said.
    pub message: String,
    /// The node to hold, empty to clear the nomination; `None` keeps it.
    pub nominated: Option<String>,
}

/// What the filters said of a block of nodes.
#[derive(Debug)]
pub struct BlockRun {
    /// What became of each node; empty if all are feasible.
    pub(crate) outcomes: Vec<NodeOutcome>,
    /// Filled scratch slots: node position, filter position, slot.
    pub(crate) scratch: Vec<(u32, usize, Scratch)>,
    /// How long one call of each filter took, by position; empty unless this attempt is sampled.
    pub(crate) seconds: Vec<f64>,
}

/// Which filters upstream would have called how often for the nodes of a block.
pub(crate) struct FilterCalls {
    /// Nodes that passed every filter.
    pub(crate) passed: usize,
    /// Nodes that did not, by the position of their last filter, then by its status.
    ended: Vec<[usize; Code::ALL.len()]>,
}

impl FilterCalls {
    /// No calls, of this many filters.
    pub(crate) fn new(filters: usize) -> Self {
        Self { passed: 0, ended: vec![[0; Code::ALL.len()]; filters] }
    }

    /// One more node whose last filter was the one at `position`.
    pub(crate) fn ended_at(&mut self, position: usize, code: Code) {
        self.ended[position][code.index()] += 1;
    }
}

/// The filters that were called for one node.
#[derive(Debug, Default)]
pub(crate) struct FilterPass {
    /// Position, the status that it ended with, and how long it took if this attempt is sampled.
    calls: Vec<(usize, Code, Option<f64>)>,
    /// Filled scratch slots, by filter position.
    pub(crate) scratch: Vec<(usize, Scratch)>,
}

/// `AddPod` or `RemovePod`.
struct Extension {
    name: &'static str,
    durations: fn(&PreFilterEntry) -> &PluginDurations,
}

const ADD_POD: Extension = Extension { name: "AddPod", durations: |plugin| &plugin.add_pod };

const REMOVE_POD: Extension = Extension { name: "RemovePod", durations: |plugin| &plugin.remove_pod };

/// Which plugin rejected a node, or failed on it.
pub(crate) type NodeVerdict = Result<Option<(Arc<str>, Rejection)>, (Arc<str>, PluginError)>;

impl Framework {
    /// Runs `PreFilter`. Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterPlugins @v1.36.3`.
    pub fn run_pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterRun, PluginError> {
        self.pre_filter_by_name(cx).map_err(|(_, error)| error)
    }

    /// The same, with the plugin that failed.
    pub(crate) fn pre_filter_by_name(
        &self,
        cx: &mut CycleContext<'_>,
    ) -> Result<PreFilterRun, (Arc<str>, PluginError)> {
        let started = self.mono();
        cx.state.skip_filter.clear();
        let run = self.pre_filter(cx);
        let code = match &run {
            Ok(run) => run.rejection.as_ref().map_or(Code::Success, |(_, rejection)| rejection.code()),
            Err(_) => Code::Error,
        };
        self.observe_point(Point::PreFilter, code, started);
        run
    }

    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterRun, (Arc<str>, PluginError)> {
        let mut run = PreFilterRun::default();
        for PreFilterEntry { entry, .. } in &self.pre_filter {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.pre_filter(cx),
                |outcome| pre_filter_code(outcome.as_ref()),
            );
            let failed = |error: &PluginError| {
                let error = error.context(format_args!("running PreFilter plugin {:?}", entry.name));
                (entry.name.clone(), error)
            };
            if !matches!(outcome, Ok(PreFilterOutcome::Skip)) {
                entry.count(1);
            }
            match outcome.map_err(|error| failed(&error))? {
                PreFilterOutcome::Pass => {}
                PreFilterOutcome::Skip => cx.state.skip_filter.insert(entry.index),
                PreFilterOutcome::Nodes(nodes) => {
                    run.plugins_with_nodes.insert(entry.name.clone());
                    let common = match run.nodes.take() {
                        Some(before) => before.intersection(&nodes).cloned().collect(),
                        None => nodes,
                    };
                    let nothing_left = common.is_empty();
                    run.nodes = Some(common);
                    if nothing_left {
                        run.rejection = Some((None, nothing_in_common(&run.plugins_with_nodes)));
                        return Ok(run);
                    }
                }
                PreFilterOutcome::Reject(rejection) => {
                    let last = rejection.kind == RejectionKind::Unresolvable;
                    if rejection.kind == RejectionKind::Pending {
                        return Err(failed(&PluginError::new(rejection.reasons.to_string())));
                    }
                    run.rejection = Some((Some(entry.name.clone()), rejection));
                    if last {
                        run.nodes = None;
                        run.plugins_with_nodes.clear();
                        return Ok(run);
                    }
                }
            }
        }
        Ok(run)
    }

    /// Runs the filters on a block of nodes, plugin by plugin. Calls are counted by [`Self::count_block`], once it is known
    /// how far upstream would have come.
    pub fn run_filter_block(&self, cx: &CycleContext<'_>, nodes: &[&NodeInfo]) -> BlockRun {
        let mut block = Candidates::new(nodes);
        let mut seconds = Vec::new();
        for (position, entry) in self.filter.iter().enumerate() {
            if block.is_empty() {
                break;
            }
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            block.begin(position);
            let started = sampled(cx.state).then(|| (self.mono(), block.len()));
            if let Err(error) = entry.plugin.filter_block(cx, &mut block) {
                block.fail(error);
            }
            if let Some((started, calls)) = started {
                seconds.resize(position, 0.0);
                // A block's time is shared out evenly among its nodes, since plugins decide them together.
                #[expect(clippy::cast_precision_loss, reason = "a block has few nodes")]
                seconds.push(self.mono().seconds_since(started) / calls as f64);
            }
        }
        let (outcomes, scratch) = block.finish();
        BlockRun { outcomes, scratch, seconds }
    }

    /// Counts what upstream would have called for a block's nodes: `scheduler_plugin_evaluation_total`, and the calls'
    /// durations if this attempt is sampled.
    pub(crate) fn count_block(&self, state: &CycleState, calls: &FilterCalls, seconds: &[f64]) {
        let mut reached = calls.passed + calls.ended.iter().flatten().sum::<usize>();
        for (position, entry) in self.filter.iter().enumerate() {
            if reached == 0 {
                break;
            }
            let ended = &calls.ended[position];
            let stayed = ended.iter().sum::<usize>();
            if !state.skip_filter.contains(entry.index) {
                entry.count(reached);
                if let Some(seconds) = seconds.get(position) {
                    self.recorder.observe_each(entry.durations.series(Code::Success), *seconds, reached - stayed);
                    for (code, calls) in Code::ALL.into_iter().zip(ended) {
                        self.recorder.observe_each(entry.durations.series(code), *seconds, *calls);
                    }
                }
            }
            reached -= stayed;
        }
    }

    /// The plugins whose `Filter` has nothing to say in this cycle, sorted.
    pub(crate) fn skipped_filters(&self, state: &CycleState) -> Vec<Arc<str>> {
        super::names(
            self.pre_filter.iter().map(|plugin| &plugin.entry).filter(|entry| state.skip_filter.contains(entry.index)),
        )
    }

    /// The pods that are nominated to the node.
    fn nominated_to(&self, node: &NodeInfo) -> Vec<Arc<PodInfo>> {
        match self.handle.nominator() {
            Some(nominator) if nominator.has_nominated_pods() => nominator.nominated_pods_for_node(node.name()),
            _ => Vec::new(),
        }
    }

    /// Whether pods of other cycles are nominated to the node.
    pub(crate) fn is_crowded(&self, node: &NodeInfo) -> bool {
        !self.nominated_to(node).is_empty()
    }

    /// How many filters there are.
    pub fn filter_count(&self) -> usize {
        self.filter.len()
    }

    /// The name of the filter at this position.
    pub fn filter_name(&self, position: usize) -> &Arc<str> {
        &self.filter[position].name
    }

    /// The plugin's index by its filter's position.
    pub(crate) fn filter_index(&self, position: usize) -> usize {
        self.filter[position].index
    }

    /// Runs the filters on one node and says which one rejected it.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunFilterPlugins @v1.36.3`.
    pub fn run_filters_on(
        &self,
        cx: &CycleContext<'_>,
        node: &NodeInfo,
    ) -> Result<Option<(Arc<str>, Rejection)>, PluginError> {
        let (verdict, pass) = self.filter_node(cx, node);
        self.count_pass(cx.state, &pass);
        verdict.map_err(|(_, error)| error)
    }

    /// The filters' verdict on one node. Calls are counted by [`Self::count_pass`].
    fn filter_node(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> (NodeVerdict, FilterPass) {
        let mut pass = FilterPass::default();
        for (position, entry) in self.filter.iter().enumerate() {
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            let started = sampled(cx.state).then(|| self.mono());
            let mut slot = Scratch::default();
            let verdict = entry.plugin.filter(cx, node, &mut slot);
            if !slot.is_empty() {
                pass.scratch.push((position, slot));
            }
            let seconds = started.map(|started| self.mono().seconds_since(started));
            pass.calls.push((position, verdict.as_ref().map_or(Code::Error, Verdict::code), seconds));
            let verdict = match verdict {
                Ok(Verdict::Pass) => continue,
                Ok(Verdict::Reject(rejection)) => Ok(Some((entry.name.clone(), rejection))),
                Err(error) => Err((entry.name.clone(), filter_error(&entry.name, &error))),
            };
            return (verdict, pass);
        }
        (Ok(None), pass)
    }

    /// The same where nothing but the verdict is wanted and calls are not timed. There are thousands of what-ifs in a cycle
    /// that tries to make room.
    fn filter_what_if(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> Result<Verdict, PluginError> {
        for entry in self.filter.iter().filter(|entry| !cx.state.skip_filter.contains(entry.index)) {
            entry.count(1);
            match entry.plugin.filter(cx, node, &mut Scratch::default()) {
                Ok(Verdict::Pass) => {}
                Ok(rejected) => return Ok(rejected),
                Err(error) => return Err(filter_error(&entry.name, &error)),
            }
        }
        Ok(Verdict::Pass)
    }

    /// Counts the calls for one node as [`Self::count_block`] does those for a block.
    pub(crate) fn count_pass(&self, state: &CycleState, pass: &FilterPass) {
        debug_assert!(pass.calls.iter().all(|(.., seconds)| seconds.is_some() == sampled(state)));
        for (position, code, seconds) in &pass.calls {
            let entry = &self.filter[*position];
            entry.count(1);
            if let Some(seconds) = seconds {
                self.recorder.observe(entry.durations.series(*code), *seconds);
            }
        }
    }

    /// Every filter's own verdict on one node; a filter that is left out in this cycle passes.
    pub(crate) fn filter_by_all(
        &self,
        cx: &CycleContext<'_>,
        node: &NodeInfo,
    ) -> Vec<(Arc<str>, Result<Verdict, PluginError>)> {
        let verdict = |entry: &Entry<dyn FilterPlugin>| {
            let skips = cx.state.skip_filter.contains(entry.index);
            let verdict =
                if skips { Ok(Verdict::Pass) } else { entry.plugin.filter(cx, node, &mut Scratch::default()) };
            (entry.name.clone(), verdict)
        };
        self.filter.iter().map(verdict).collect()
    }

    /// Runs the filters on one node, once with the pods nominated to it that are as important as this one, and if there
    /// were any and it passed, once without. Says which plugin rejected it.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunFilterPluginsWithNominatedPods @v1.36.3`.
    pub fn run_filters_with_nominated(
        &self,
        cx: &CycleContext<'_>,
        node: &NodeInfo,
    ) -> Result<Option<(Arc<str>, Rejection)>, PluginError> {
        self.filter_crowded_node(cx, node).map_err(|(_, error)| error)
    }

    /// The same, with the plugin that failed.
    pub(crate) fn filter_crowded_node(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> NodeVerdict {
        let (verdict, passes) = self.run_passes(cx, node);
        for pass in &passes {
            self.count_pass(cx.state, pass);
        }
        verdict
    }

    /// The same, with the calls of both passes, which the caller has to count by [`Self::count_pass`]. What the last pass
    /// left in scratch slots is what counts for a node that passes.
    pub(crate) fn run_passes(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> (NodeVerdict, Vec<FilterPass>) {
        let yields_to = |other: &Arc<PodInfo>| other.priority() >= cx.pod.priority() && other.uid() != cx.pod.uid();
        let mut nominated = self.nominated_to(node);
        nominated.retain(yields_to);
        if nominated.is_empty() {
            let (verdict, pass) = self.filter_node(cx, node);
            return (verdict, vec![pass]);
        }
        let mut state = cx.state.clone();
        let mut crowded = node.clone();
        let mut what_if = CycleContext { pod: cx.pod, snapshot: cx.snapshot, state: &mut state, now: cx.now };
        for pod in nominated {
            crowded.add_pod(pod.clone());
            if let Err(error) = self.run_add_pod(&mut what_if, &pod, &crowded) {
                return (Err((Arc::default(), error)), Vec::new());
            }
        }
        let (verdict, with) = self.filter_node(&what_if, &crowded);
        if !matches!(verdict, Ok(None)) {
            return (verdict, vec![with]);
        }
        let (verdict, without) = self.filter_node(cx, node);
        (verdict, vec![with, without])
    }

    /// Tells the plugins that `added` came to the node.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterExtensionAddPod @v1.36.3`.
    pub fn run_add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: &NodeInfo) -> Result<(), PluginError> {
        self.extend(&ADD_POD, cx, |extensions, cx| extensions.add_pod(cx, added, node))
    }

    /// Tells the plugins that `removed` left the node.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterExtensionRemovePod @v1.36.3`.
    pub fn run_remove_pod(
        &self,
        cx: &mut CycleContext<'_>,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError> {
        self.extend(&REMOVE_POD, cx, |extensions, cx| extensions.remove_pod(cx, removed, node))
    }

    fn extend(
        &self,
        what: &Extension,
        cx: &mut CycleContext<'_>,
        call: impl Fn(&dyn super::super::PreFilterExtensions, &mut CycleContext<'_>) -> Result<Verdict, PluginError>,
    ) -> Result<(), PluginError> {
        for plugin in &self.pre_filter {
            let entry = &plugin.entry;
            let Some(extensions) = entry.plugin.extensions() else { continue };
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            let started = sampled(cx.state).then(|| self.mono());
            let verdict = call(extensions, cx);
            if let Some(started) = started {
                let code = verdict.as_ref().map_or(Code::Error, Verdict::code);
                let seconds = self.mono().seconds_since(started);
                self.recorder.observe((what.durations)(plugin).series(code), seconds);
            }
            let error = match verdict {
                Ok(Verdict::Pass) => continue,
                Ok(Verdict::Reject(rejection)) => PluginError::new(rejection.reasons.to_string()),
                Err(error) => error,
            };
            return Err(error.context(format_args!("running {} on PreFilter plugin {:?}", what.name, entry.name)));
        }
        Ok(())
    }

    /// Runs `PostFilter`. An error is no error of the attempt: its text becomes the message.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPostFilterPlugins @v1.36.3`.
    pub fn run_post_filter(&self, cx: &mut CycleContext<'_>, failed: &PostFilterContext<'_>) -> PostFilterRun {
        let started = self.mono();
        let run = self.post_filter(cx, failed);
        self.observe_point(Point::PostFilter, run.code, started);
        run
    }

    fn post_filter(&self, cx: &mut CycleContext<'_>, failed: &PostFilterContext<'_>) -> PostFilterRun {
        let mut said: Vec<String> = Vec::new();
        let mut kept = None;
        for entry in &self.post_filter {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.post_filter(cx, failed),
                |outcome| match outcome {
                    Ok(PostFilterOutcome::Success { .. }) => Code::Success,
                    Ok(PostFilterOutcome::Reject { rejection, .. }) => rejection.code(),
                    Err(_) => Code::Error,
                },
            );
            match outcome {
                Ok(PostFilterOutcome::Success { nominated }) => {
                    return PostFilterRun { code: Code::Success, message: String::new(), nominated };
                }
                Ok(PostFilterOutcome::Reject { rejection, nominated }) => {
                    if rejection.kind == RejectionKind::Unresolvable {
                        let message = rejection.reasons.to_string();
                        return PostFilterRun { code: rejection.code(), message, nominated };
                    }
                    said.extend(rejection.reasons.iter().map(str::to_owned));
                    kept = nominated.or(kept);
                }
                Err(error) => return PostFilterRun { code: Code::Error, message: error.to_string(), nominated: None },
            }
        }
        PostFilterRun { code: Code::Unschedulable, message: said.join(", "), nominated: kept }
    }
}

impl FilterRunner for Framework {
    fn run_filters(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> Result<Verdict, PluginError> {
        Ok(self.run_filters_on(cx, node)?.map_or(Verdict::Pass, |(_, rejection)| Verdict::Reject(rejection)))
    }

    fn run_filters_with_nominated_pods(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> Result<Verdict, PluginError> {
        if !sampled(cx.state) && !self.is_crowded(node) {
            return self.filter_what_if(cx, node);
        }
        Ok(self
            .run_filters_with_nominated(cx, node)?
            .map_or(Verdict::Pass, |(_, rejection)| Verdict::Reject(rejection)))
    }

    fn add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: &NodeInfo) -> Result<(), PluginError> {
        self.run_add_pod(cx, added, node)
    }

    fn remove_pod(&self, cx: &mut CycleContext<'_>, removed: &PodInfo, node: &NodeInfo) -> Result<(), PluginError> {
        self.run_remove_pod(cx, removed, node)
    }
}

/// The text that a failing filter ends the attempt with.
pub(crate) fn filter_error(plugin: &str, error: &PluginError) -> PluginError {
    error.context(format_args!("running {plugin:?} filter plugin"))
}

fn pre_filter_code(outcome: Result<&PreFilterOutcome, &PluginError>) -> Code {
    match outcome {
        Ok(PreFilterOutcome::Pass | PreFilterOutcome::Nodes(_)) => Code::Success,
        Ok(PreFilterOutcome::Skip) => Code::Skip,
        Ok(PreFilterOutcome::Reject(rejection)) => rejection.code(),
        Err(_) => Code::Error,
    }
}

fn nothing_in_common(plugins: &BTreeSet<Arc<str>>) -> Rejection {
    let names: Vec<&str> = plugins.iter().map(|name| &**name).collect();
    Rejection::unresolvable(match names[..] {
        [only] => format!("node(s) didn't satisfy plugin {only}"),
        _ => format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", names.join(" ")),
    })
}
