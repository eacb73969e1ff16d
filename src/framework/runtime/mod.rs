//! A built profile: its plugins in order at each extension point, and the functions that run them.

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
    /// Index of the plugin among all plugins of the profile, sorted by name.
    pub(crate) index: usize,
    /// Name of the plugin.
    pub name: Arc<str>,
    /// The plugin behind its trait.
    pub plugin: Arc<P>,
    /// Durations of the plugin's calls in sampled attempts.
    durations: PluginDurations,
    /// Counter of the plugin's calls, at the extension points that have one.
    evaluations: Option<IntCounter>,
}

/// A `PreFilter` plugin with the durations of its `AddPod` and `RemovePod` calls.
struct PreFilterEntry {
    entry: Entry<dyn PreFilterPlugin>,
    add_pod: PluginDurations,
    remove_pod: PluginDurations,
}

/// A `PreBind` plugin with the durations of its `PreBindPreFlight` calls.
struct PreBindEntry {
    entry: Entry<dyn PreBindPlugin>,
    pre_flight: PluginDurations,
}

/// A `Score` plugin with its normalization and weight.
pub struct ScoreEntry {
    /// The plugin that scores.
    pub entry: Entry<dyn ScorePlugin>,
    normalize: Option<Arc<dyn NormalizeScore>>,
    normalize_durations: PluginDurations,
    /// Weight by which the normalized scores are multiplied.
    pub weight: i64,
}

/// Name of a plugin that can reject pods, with its event registrations. `None` stands for all events.
pub type EventPlugin = (Arc<str>, Option<Arc<dyn EnqueueExtensions>>);

/// A profile with its plugins, ready to run. Follows `pkg/scheduler/framework/runtime/framework.go#frameworkImpl @v1.36.3`.
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
    /// The signers of all plugins that filter or score nodes. `None` if one of them cannot sign, or if extenders are
    /// configured.
    signers: Option<Vec<Entry<dyn SignPlugin>>>,
    /// The plugins that can reject pods, with their event registrations. Plugins without registrations count as registered for
    /// all events.
    events: Vec<EventPlugin>,
}

impl Framework {
    /// Returns the profile's schedulerName.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the profile's own `percentageOfNodesToScore`, if it is set.
    pub fn percentage_of_nodes_to_score(&self) -> Option<i32> {
        self.percentage_of_nodes_to_score
    }

    /// Returns the handle that the profile's plugins got.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Returns the profile's metrics.
    pub fn metrics(&self) -> &ProfileMetrics {
        &self.metrics
    }

    /// Returns the plugin that orders activeQ.
    pub fn queue_sort(&self) -> &Arc<dyn QueueSortPlugin> {
        &self.queue_sort.plugin
    }

    /// Returns the `PreEnqueue` plugins in order.
    pub fn pre_enqueue_plugins(&self) -> &[Entry<dyn PreEnqueuePlugin>] {
        &self.pre_enqueue
    }

    /// Returns the plugins that can reject pods, with their event registrations. `None` stands for all events.
    pub fn event_plugins(&self) -> &[EventPlugin] {
        &self.events
    }

    /// Whether the profile has `Filter` plugins.
    pub fn has_filter_plugins(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Whether the profile has `PostFilter` plugins.
    pub fn has_post_filter_plugins(&self) -> bool {
        !self.post_filter.is_empty()
    }

    /// Whether the profile has `Score` plugins.
    pub fn has_score_plugins(&self) -> bool {
        !self.score.is_empty()
    }

    fn mono(&self) -> Mono {
        self.handle.clock().mono()
    }

    /// Observes the duration of an extension point that began at `started`.
    fn observe_point(&self, point: Point, code: Code, started: Mono) {
        self.metrics.point(point, code, self.mono().seconds_since(started));
    }

    /// Calls a plugin, and measures the call if `record` is set.
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

/// Returns the plugins' names, sorted.
fn names<'a, P: ?Sized + 'a>(entries: impl Iterator<Item = &'a Entry<P>>) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = entries.map(|entry| entry.name.clone()).collect();
    names.sort_unstable();
    names
}

/// Whether this attempt's plugin calls are measured.
fn sampled(state: &CycleState) -> bool {
    state.record_plugin_metrics
}
