//! `PreFilter`, `Filter` and `PostFilter`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::FilterPlugin;
use super::super::context::NodeOutcome;
use super::super::{
    Candidates, Code, CycleContext, CycleState, FilterRunner, PluginError, PostFilterContext, PostFilterOutcome,
    PreFilterOutcome, Rejection, RejectionKind, Scratch, Verdict,
};
use super::{Entry, Framework, sampled};
use crate::metrics::Point;
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
    outcomes: Vec<NodeOutcome>,
    scratch: Vec<(u32, usize, Scratch)>,
}

impl BlockRun {
    pub(crate) fn into_parts(self) -> (Vec<NodeOutcome>, Vec<(u32, usize, Scratch)>) {
        (self.outcomes, self.scratch)
    }
}

/// Which plugin rejected a node, or failed on it.
pub(crate) type NodeVerdict = Result<Option<(Arc<str>, Rejection)>, (Arc<str>, PluginError)>;

impl Framework {
    /// Runs `PreFilter`. Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterPlugins @v1.36.3`.
    pub fn run_pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterRun, PluginError> {
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

    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterRun, PluginError> {
        let mut run = PreFilterRun::default();
        for entry in &self.pre_filter {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.pre_filter(cx),
                |outcome| pre_filter_code(outcome.as_ref()),
            );
            let outcome =
                outcome.map_err(|error| error.context(format_args!("running PreFilter plugin {:?}", entry.name)));
            if !matches!(outcome, Ok(PreFilterOutcome::Skip)) {
                entry.count(1);
            }
            match outcome? {
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
                        let doing = format_args!("running PreFilter plugin {:?}", entry.name);
                        return Err(PluginError::new(rejection.reasons.to_string()).context(doing));
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

    /// Runs the filters on a block of nodes, plugin by plugin. Calls are counted by [`Self::count_filter_calls`], once it
    /// is known how far upstream would have come.
    pub fn run_filter_block(&self, cx: &CycleContext<'_>, nodes: &[&NodeInfo]) -> BlockRun {
        let mut block = Candidates::new(nodes);
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
                self.observe_filter_calls(position, started, calls, block.len());
            }
        }
        let (outcomes, scratch) = block.finish();
        BlockRun { outcomes, scratch }
    }

    /// A block's time is shared out evenly among its nodes, since plugins decide them together.
    fn observe_filter_calls(&self, position: usize, started: crate::clock::Mono, calls: usize, passed: usize) {
        let entry = &self.filter[position];
        #[expect(clippy::cast_precision_loss, reason = "a block has few nodes")]
        let seconds = self.mono().seconds_since(started) / calls as f64;
        self.recorder.observe_each(entry.durations.series(Code::Success), seconds, passed);
        self.recorder.observe_each(entry.durations.series(Code::Unschedulable), seconds, calls - passed);
    }

    /// Counts `scheduler_plugin_evaluation_total` for nodes that passed every filter, and for nodes whose last filter was
    /// the one at each position.
    pub fn count_filter_calls(&self, skipped: &CycleState, passed: usize, ended_at: &[usize]) {
        let mut reached = passed + ended_at.iter().sum::<usize>();
        for (position, entry) in self.filter.iter().enumerate() {
            if reached == 0 {
                break;
            }
            if !skipped.skip_filter.contains(entry.index) {
                entry.count(reached);
            }
            reached -= ended_at.get(position).copied().unwrap_or(0);
        }
    }

    /// The plugins whose `Filter` has nothing to say in this cycle, sorted.
    pub(crate) fn skipped_filters(&self, state: &CycleState) -> Vec<Arc<str>> {
        super::names(self.pre_filter.iter().filter(|entry| state.skip_filter.contains(entry.index)))
    }

    /// Whether pods of other cycles are nominated to the node.
    pub(crate) fn is_crowded(&self, node: &NodeInfo) -> bool {
        self.handle.nominator().is_some_and(|nominator| {
            nominator.has_nominated_pods() && !nominator.nominated_pods_for_node(node.name()).is_empty()
        })
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
        self.filter_node(cx, node).map_err(|(_, error)| error)
    }

    fn filter_node(&self, cx: &CycleContext<'_>, node: &NodeInfo) -> NodeVerdict {
        for entry in &self.filter {
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            let mut scratch = Scratch::default();
            entry.count(1);
            let verdict = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.filter(cx, node, &mut scratch),
                |verdict| verdict.as_ref().map_or(Code::Error, Verdict::code),
            );
            match verdict {
                Ok(Verdict::Pass) => {}
                Ok(Verdict::Reject(rejection)) => return Ok(Some((entry.name.clone(), rejection))),
                Err(error) => return Err((entry.name.clone(), filter_error(&entry.name, &error))),
            }
        }
        Ok(None)
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
        let yields_to = |other: &Arc<PodInfo>| other.priority() >= cx.pod.priority() && other.uid() != cx.pod.uid();
        let mut nominated = match self.handle.nominator() {
            Some(nominator) if nominator.has_nominated_pods() => nominator.nominated_pods_for_node(node.name()),
            _ => Vec::new(),
        };
        nominated.retain(yields_to);
        if nominated.is_empty() {
            return self.filter_node(cx, node);
        }
        let mut state = cx.state.clone();
        let mut crowded = node.clone();
        let mut what_if = CycleContext { pod: cx.pod, snapshot: cx.snapshot, state: &mut state, now: cx.now };
        for pod in nominated {
            crowded.add_pod(pod.clone());
            self.run_add_pod(&mut what_if, &pod, &crowded).map_err(|error| (Arc::default(), error))?;
        }
        match self.filter_node(&what_if, &crowded)? {
            None => self.filter_node(cx, node),
            rejected => Ok(rejected),
        }
    }

    /// Tells the plugins that `added` came to the node.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterExtensionAddPod @v1.36.3`.
    pub fn run_add_pod(&self, cx: &mut CycleContext<'_>, added: &PodInfo, node: &NodeInfo) -> Result<(), PluginError> {
        self.extend("AddPod", cx, |extensions, cx| extensions.add_pod(cx, added, node))
    }

    /// Tells the plugins that `removed` left the node.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterExtensionRemovePod @v1.36.3`.
    pub fn run_remove_pod(
        &self,
        cx: &mut CycleContext<'_>,
        removed: &PodInfo,
        node: &NodeInfo,
    ) -> Result<(), PluginError> {
        self.extend("RemovePod", cx, |extensions, cx| extensions.remove_pod(cx, removed, node))
    }

    fn extend(
        &self,
        what: &str,
        cx: &mut CycleContext<'_>,
        call: impl Fn(&dyn super::super::PreFilterExtensions, &mut CycleContext<'_>) -> Result<Verdict, PluginError>,
    ) -> Result<(), PluginError> {
        for entry in &self.pre_filter {
            let Some(extensions) = entry.plugin.extensions() else { continue };
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            let verdict = match call(extensions, cx) {
                Ok(Verdict::Pass) => continue,
                Ok(Verdict::Reject(rejection)) => PluginError::new(rejection.reasons.to_string()),
                Err(error) => error,
            };
            return Err(verdict.context(format_args!("running {what} on PreFilter plugin {:?}", entry.name)));
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
