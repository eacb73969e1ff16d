//! A complete scheduler: profiles, cache, queue, listers, API writes and event recorders around one client.
//!
//! Only [`EngineBuilder::build`] connects the parts. The production process, the simulator and the tests build the same engine.
//! They differ in the client, the clock and the caller of [`Scheduler::schedule_one`].

mod builder;
mod kinds;
mod places;
mod tasks;

use std::sync::Arc;

pub use builder::EngineBuilder;
#[cfg(test)]
pub(crate) use kinds::ask_for_upstream_kinds;
pub use places::{Misplaced, PlaceCheck, UnfinishedCycles};
pub use tasks::{Fatal, TaskEnd, Tasks};

use crate::config::{Config, ExpandError, FeatureGates};
use crate::events::EventBroadcaster;
use crate::framework::{BuildError, Framework, PluginError, Registry};
use crate::metrics::FLUSH_INTERVAL;
use crate::scheduler::{Scheduler, SchedulerContext};

/// Reasons why an engine cannot be built, with upstream's texts.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A profile cannot be built.
    #[error("initializing profiles: creating profile for scheduler name {profile}: {error}")]
    Profile {
        /// The schedulerName of the profile.
        profile: String,
        /// Error of a plugin or of the configuration.
        error: BuildError,
    },
    /// The profiles contradict each other.
    #[error("initializing profiles: {0}")]
    Profiles(ExpandError),
    /// A plugin failed to register its events.
    #[error(transparent)]
    Events(PluginError),
    /// A metric family is registered already.
    #[error("registering metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// A complete scheduler, ready to start.
pub struct Engine {
    /// Takes pods from the queue and finds nodes for them.
    pub scheduler: Scheduler,
    /// State that the parts of the scheduler share.
    pub shared: Arc<SchedulerContext>,
    /// The profiles, in the order of the configuration.
    pub profiles: Vec<Arc<Framework>>,
    /// The feature gates in force.
    pub gates: FeatureGates,
    /// Owner of all spawned tasks.
    pub tasks: Tasks,
    /// Receives the end of a task that must not end.
    pub fatal: Fatal,
    broadcaster: EventBroadcaster,
}

impl Engine {
    /// Creates a builder for a scheduler with these plugins and this client.
    ///
    /// The scheduler retries and throttles its own requests, so the client must do neither.
    pub fn builder(client: kube::Client, config: Config, plugins: Registry) -> EngineBuilder {
        EngineBuilder::new(client, config, plugins)
    }

    /// Returns the number of API writes and events that are not finished. If it is 0, the scheduler is idle, except for pods
    /// that wait for a time or a plugin.
    pub fn unsettled(&self) -> usize {
        self.shared.writes.pending() + self.broadcaster.pending()
    }

    /// Starts the task that updates the gauges of the cache's sizes and flushes buffered durations, once a second.
    /// Follows `pkg/scheduler/backend/cache/cache.go#updateMetrics @v1.36.3`.
    pub fn start_metrics(&self) {
        let (shared, clock) = (self.shared.clone(), self.shared.clock.clone());
        self.tasks.serve("metrics", async move {
            loop {
                clock.sleep(FLUSH_INTERVAL).await;
                shared.observe_sizes();
            }
        });
    }

    /// Allows the tasks to end, drops the API writes that have not been started, and closes the queue, in upstream's order.
    pub fn close(&self) {
        self.tasks.stop();
        self.shared.writes.close();
        self.shared.queue.close();
    }
}
