//! `PreEnqueue` plugins, which keep gated pods out of activeQ.

use std::sync::Arc;

use super::QueuedPodInfo;
use super::state::State;
use crate::clock::Rng;
use crate::framework::{Code, Framework, PreEnqueuePlugin, Verdict};
use crate::metrics::{Metrics, PLUGIN_SAMPLE_PERCENT, PluginDurations, Point};

/// Seed of the generator that chooses the runs whose plugins are timed. It is used for nothing else.
const SAMPLING_SEED: u64 = 0x5c4e_d01e;

/// The `PreEnqueue` plugins of all profiles.
pub(super) struct PreEnqueue {
    /// The plugins by profile, in the profile's order.
    profiles: Vec<Arc<[GatePlugin]>>,
    sampler: Rng,
}

struct GatePlugin {
    name: Arc<str>,
    plugin: Arc<dyn PreEnqueuePlugin>,
    durations: PluginDurations,
}

impl PreEnqueue {
    pub(super) fn new(profiles: &[Arc<Framework>], metrics: &Metrics) -> Self {
        let plugins = |profile: &Arc<Framework>| {
            let plugins = profile.pre_enqueue_plugins().iter().map(|entry| GatePlugin {
                name: entry.name.clone(),
                plugin: entry.plugin.clone(),
                durations: metrics.plugin_durations(&entry.name, Point::PreEnqueue),
            });
            plugins.collect()
        };
        Self { profiles: profiles.iter().map(plugins).collect(), sampler: Rng::from_seed(SAMPLING_SEED) }
    }
}

impl State {
    /// Runs the plugins of the pod's profile until one rejects the pod, beginning with the plugin that gates it now. The
    /// rejecting plugin then gates the pod and is added to its rejectors. If no plugin rejects the pod, it is no longer gated.
    ///
    /// The metrics always record the status `Success`, as in upstream.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.runPreEnqueuePlugins @v1.36.3`, which runs the
    /// other plugins in random order. Here they run in the configured order.
    pub(super) fn run_pre_enqueue(&mut self, info: &mut QueuedPodInfo) {
        let Some(profile) = self.profile_of(&info.pod) else {
            info.gating_plugin = None;
            return;
        };
        let started = self.clock.mono();
        let sampled = self.pre_enqueue.sampler.chance(PLUGIN_SAMPLE_PERCENT, 100);
        let plugins = self.pre_enqueue.profiles[profile].clone();
        let gate = info.gating_plugin.take();
        let gates_now = |plugin: &&GatePlugin| gate.as_ref() == Some(&plugin.name);
        let first = plugins.iter().find(gates_now);
        let others = plugins.iter().filter(|plugin| !gates_now(plugin));
        let closed = first.into_iter().chain(others).find(|plugin| self.is_gated_by(plugin, info, sampled));
        if let Some(plugin) = closed {
            info.gating_plugin = Some(plugin.name.clone());
            info.unschedulable_plugins.insert(plugin.name.clone());
        }
        let seconds = self.clock.mono().seconds_since(started);
        self.profiles[profile].metrics().point(Point::PreEnqueue, Code::Success, seconds);
    }

    /// Whether the plugin rejects the pod.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.runPreEnqueuePlugin @v1.36.3`.
    fn is_gated_by(&self, plugin: &GatePlugin, info: &QueuedPodInfo, sampled: bool) -> bool {
        let started = sampled.then(|| self.clock.mono());
        let verdict = plugin.plugin.pre_enqueue(&info.pod);
        if let Some(started) = started {
            let seconds = self.clock.mono().seconds_since(started);
            self.recorder.observe(plugin.durations.series(verdict.code()), seconds);
        }
        match verdict {
            Verdict::Pass => false,
            Verdict::Reject(rejection) => {
                tracing::debug!(
                    pod = &**info.pod.key(),
                    plugin = &*plugin.name,
                    reasons = %rejection.reasons,
                    "Status after running PreEnqueue plugin"
                );
                true
            }
        }
    }
}
