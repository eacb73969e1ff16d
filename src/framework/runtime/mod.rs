//! A profile at work: its plugins in order at each extension point, and the functions that run them.

mod binding;
mod block;
mod build;
mod filter;
mod post_filter;
mod pre_filter;
mod score;
mod sign;

use std::fmt;
use std::sync::Arc;

use prometheus::IntCounter;

pub use binding::{PermitRun, PreFlight};
pub(crate) use block::BlockRun;
pub use build::BuildError;
pub use post_filter::PostFilterRun;
pub use pre_filter::PreFilterRun;
pub use score::{MAX_NODE_SCORE, PluginScores, ScoreRun};

use super::{
    BindPlugin, Code, CycleState, EnqueueExtensions, FilterPlugin, Handle, NormalizeScore, PermitPlugin,
    PostBindPlugin, PostFilterPlugin, PreBindPlugin, PreEnqueuePlugin, PreFilterPlugin, PreScorePlugin,
    QueueSortPlugin, ReservePlugin, ScorePlugin, SignPlugin,
};
use crate::clock::Mono;
use crate::config::ExpandedPlugins;
use crate::metrics::{PluginDurations, Point, ProfileMetrics, Recorder};

/// A plugin at one extension point of a profile.
pub struct Entry<P: ?Sized> {
    /// The plugin's place among all plugins of the profile, in the order of their names.
    pub(crate) index: usize,
    /// The plugin's name.
    pub name: Arc<str>,
    /// The plugin.
    pub plugin: Arc<P>,
    /// How long its calls take, in the attempts that are sampled.
    durations: PluginDurations,
    /// How often it was asked, where that is counted.
    evaluations: Option<IntCounter>,
}

/// A plugin that looks at the pod before nodes are filtered, with the durations of its extensions.
struct PreFilterEntry {
    entry: Entry<dyn PreFilterPlugin>,
    add_pod: PluginDurations,
    remove_pod: PluginDurations,
}

/// A plugin that works before a pod is bound, with the durations of its announcement.
struct PreBindEntry {
    entry: Entry<dyn PreBindPlugin>,
    pre_flight: PluginDurations,
}

/// A plugin that scores, with what is done to its scores.
pub struct ScoreEntry {
    /// The plugin.
    pub entry: Entry<dyn ScorePlugin>,
    normalize: Option<Arc<dyn NormalizeScore>>,
    normalize_durations: PluginDurations,
    /// What its scores are multiplied with.
    pub weight: i64,
}

/// A plugin that rejects pods, by name, with what it says of events; `None` stands for every event.
pub type EventPlugin = (Arc<str>, Option<Arc<dyn EnqueueExtensions>>);

/// A profile at work. Follows `pkg/scheduler/framework/runtime/framework.go#frameworkImpl @v1.36.3`.
pub struct Framework {
    name: Arc<str>,
    percentage_of_nodes_to_score: Option<i32>,
    handle: Handle,
    metrics: ProfileMetrics,
    recorder: Recorder,
    queue_sort: Entry<dyn QueueSortPlugin>,
    expanded: ExpandedPlugins,
    pre_enqueue: Vec<Entry<dyn PreEnqueuePlugin>>,
    pre_filter: Vec<PreFilterEntry>,
    filter: Vec<Entry<dyn FilterPlugin>>,
    post_filter: Vec<Entry<dyn PostFilterPlugin>>,
    pre_score: Vec<Entry<dyn PreScorePlugin>>,
    score: Vec<ScoreEntry>,
    reserve: Vec<Entry<dyn ReservePlugin>>,
    permit: Vec<Entry<dyn PermitPlugin>>,
    pre_bind: Vec<PreBindEntry>,
    bind: Vec<Entry<dyn BindPlugin>>,
    post_bind: Vec<Entry<dyn PostBindPlugin>>,
    /// The signers of every plugin that decides about nodes; none if one of them cannot sign, or extenders decide, too.
    signers: Option<Vec<Entry<dyn SignPlugin>>>,
    /// What wakes the pods that a plugin rejects; `None` for a plugin that does not say, which is told of everything.
    events: Vec<EventPlugin>,
}

impl Framework {
    /// The profile's schedulerName.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The profile's own percentage of nodes to score, if it has one.
    pub fn percentage_of_nodes_to_score(&self) -> Option<i32> {
        self.percentage_of_nodes_to_score
    }

    /// What the profile's plugins may ask of the scheduler.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The profile's metrics.
    pub fn metrics(&self) -> &ProfileMetrics {
        &self.metrics
    }

    /// What orders activeQ.
    pub fn queue_sort(&self) -> &Arc<dyn QueueSortPlugin> {
        &self.queue_sort.plugin
    }

    /// The `PreEnqueue` plugins in order.
    pub fn pre_enqueue_plugins(&self) -> &[Entry<dyn PreEnqueuePlugin>] {
        &self.pre_enqueue
    }

    /// Each plugin that rejects pods, with what it says of events; `None` stands for every event.
    pub fn event_plugins(&self) -> &[EventPlugin] {
        &self.events
    }

    /// Whether there are filters.
    pub fn has_filter_plugins(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Whether anything can be done for a pod that fits nowhere.
    pub fn has_post_filter_plugins(&self) -> bool {
        !self.post_filter.is_empty()
    }

    /// Whether nodes are scored.
    pub fn has_score_plugins(&self) -> bool {
        !self.score.is_empty()
    }

    fn mono(&self) -> Mono {
        self.handle.clock().mono()
    }

    /// Observes a whole extension point that began at `started`.
    fn observe_point(&self, point: Point, code: Code, started: Mono) {
        self.metrics.point(point, code, self.mono().seconds_since(started));
    }

    /// Calls a plugin, timing it if this attempt is sampled.
    fn timed<P: ?Sized, T>(
        &self,
        entry: &Entry<P>,
        record: bool,
        call: impl FnOnce(&P) -> T,
        code: impl FnOnce(&T) -> Code,
    ) -> T {
        if !record {
            return call(&entry.plugin);
        }
        let started = self.mono();
        let outcome = call(&entry.plugin);
        let seconds = self.mono().seconds_since(started);
        self.recorder.observe(entry.durations.series(code(&outcome)), seconds);
        outcome
    }
}

impl<P: ?Sized> Entry<P> {
    fn count(&self, calls: usize) {
        if let Some(evaluations) = &self.evaluations {
            evaluations.inc_by(calls as u64);
        }
    }
}

impl<P: ?Sized> fmt::Debug for Entry<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Framework({})", self.name)
    }
}

/// The plugins' names, sorted.
fn names<'a, P: ?Sized + 'a>(entries: impl Iterator<Item = &'a Entry<P>>) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = entries.map(|entry| entry.name.clone()).collect();
    names.sort_unstable();
    names
}

/// Whether this attempt's plugin calls are timed.
fn sampled(state: &CycleState) -> bool {
    state.record_plugin_metrics
}
