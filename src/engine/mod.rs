//! A whole scheduler, wired: profiles, cache, queue, listers, API writes and event recorders around one client.
//!
//! [`Engine::new`] is the one place where the parts meet. The production process, the simulator and the tests build the
//! same engine; they differ in the client, the clock and who calls [`Scheduler::schedule_one`].

mod places;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

pub use places::{Misplaced, PlaceCheck, Underway};
pub use tasks::{Fatal, TaskEnd, Tasks};

use crate::cache::Cache;
use crate::client::{RateLimiter, RestClient, Sending};
use crate::clock::{Clock, Rng};
use crate::config::{Config, ExpandError, FeatureGates, Gate, ProfileChecker};
use crate::dispatcher::ApiWrites;
use crate::events::{EventBroadcaster, EventsApi};
use crate::framework::{BuildError, Framework, HandleParts, Parallelizer, PluginError, Registry, resource_gates};
use crate::metrics::{FLUSH_INTERVAL, Metrics};
use crate::queue::{Queue, QueueOptions};
use crate::scheduler::{ApiEffects, Extender, Scheduler, Shared};

/// What an engine is made of.
pub struct EngineOptions {
    /// Reaches the API server. Requests are retried and throttled by the engine, so the client must do neither.
    pub client: kube::Client,
    /// The configuration.
    pub config: Config,
    /// Feature gates.
    pub gates: FeatureGates,
    /// All plugins there are.
    pub plugins: Registry,
    /// Webhooks that take part, in the order of the configuration; those that may fail are asked last.
    pub extenders: Vec<Arc<dyn Extender>>,
    /// Time.
    pub clock: Clock,
    /// What else there is to sending requests.
    pub sending: Sending,
    /// Where metric families are registered.
    pub metrics: prometheus::Registry,
    /// Decides between equal nodes where extenders have a say; the jitter of retries and the like come from it, too.
    pub seed: u64,
    /// Becomes part of each event's reporting instance.
    pub hostname: String,
    /// Carries the tasks.
    pub runtime: tokio::runtime::Handle,
    /// How long a pod stays unschedulable without any event that helps it.
    pub max_in_unschedulable: Duration,
}

/// Why an engine cannot be built. Texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A profile cannot be built.
    #[error("initializing profiles: creating profile for scheduler name {profile}: {error}")]
    Profile {
        /// The profile's schedulerName.
        profile: String,
        /// Why.
        error: BuildError,
    },
    /// Profiles do not go together.
    #[error("initializing profiles: {0}")]
    Profiles(ExpandError),
    /// A plugin cannot say which events it wants.
    #[error(transparent)]
    Events(PluginError),
    /// A metric family exists already.
    #[error("registering metrics: {0}")]
    Metrics(#[from] prometheus::Error),
}

/// A whole scheduler.
pub struct Engine {
    /// Takes pods from the queue and finds nodes for them.
    pub scheduler: Scheduler,
    /// What its parts share.
    pub shared: Arc<Shared>,
    /// The profiles, in the order of the configuration.
    pub profiles: Vec<Arc<Framework>>,
    /// Feature gates.
    pub gates: FeatureGates,
    /// The owner of all tasks.
    pub tasks: Tasks,
    /// Where a task's wrong end is heard of.
    pub fatal: Fatal,
    broadcaster: EventBroadcaster,
}

impl Engine {
    /// Wires everything, and starts the tasks that write. Informers and scheduling are started by the caller.
    pub async fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let EngineOptions { client, config, gates, plugins, clock, seed, runtime, .. } = options;
        let mut rng = Rng::from_seed(seed);
        let metrics = Metrics::new(&options.metrics, |name| Gate::find(name).is_some_and(|gate| gates.enabled(gate)))?;
        let (tasks, fatal) = Tasks::new(runtime);

        let connection = &config.client_connection;
        let limiter = || RateLimiter::of_client(connection.qps, connection.burst);
        let rest = RestClient::new(client.clone(), limiter(), clock.clone()).sending(options.sending.clone());
        let (writes, dispatcher) = ApiWrites::new(rest, rng.split());
        tasks.serve("dispatcher", dispatcher.run());
        // Events have a limit of their own: they must not hold bindings up.
        let events = RestClient::new(client.clone(), limiter(), clock.clone()).sending(options.sending);
        let api = EventsApi::discover(&events).await;
        let (broadcaster, recording) = EventBroadcaster::new(events, api, &options.hostname, rng.split());
        tasks.serve("event recorder", recording.run());
        let names = config.profiles.iter().map(|profile| profile.scheduler_name.clone());
        let recorders = names.map(|name| (name.clone(), broadcaster.recorder(&name))).collect::<BTreeMap<_, _>>();
        let effects = Arc::new(ApiEffects::new(writes.clone(), recorders, Arc::new(tasks.clone())));

        let workers = usize::try_from(config.parallelism).unwrap_or(1);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = Arc::new(HandleParts {
            client: Some(client),
            has_extenders: !options.extenders.is_empty(),
            parallelizer: Arc::new(Parallelizer::new(workers.min(processors))),
            ..HandleParts::new(gates, metrics.clone(), clock.clone(), effects.clone())
        });
        let profiles = build_profiles(&config, &plugins, &parts)?;
        let queue = Queue::new(
            &profiles,
            QueueOptions {
                initial_backoff: seconds(config.pod_initial_backoff_seconds),
                max_backoff: seconds(config.pod_max_backoff_seconds),
                max_in_unschedulable: options.max_in_unschedulable,
                extenders: !options.extenders.is_empty(),
            },
            clock.now(),
        )
        .map_err(EngineError::Events)?;
        // Both were empty until now: plugins are told that there is neither while they are built.
        let _ = parts.nominator.set(queue.nominator().clone());
        let _ = parts.activator.set(queue.clone());

        let shared = Arc::new(Shared {
            cache: Arc::new(Cache::new()),
            queue,
            listers: parts.listers.clone(),
            writes,
            effects,
            metrics: metrics.clone(),
            clock: clock.clone(),
            classes: parts.classes.clone(),
            resource_gates: resource_gates(&gates),
            waiting_pods: parts.waiting_pods.clone(),
            pods_in_pre_bind: parts.pods_in_pre_bind.clone(),
            extenders: ignorable_last(options.extenders),
            tasks: Arc::new(tasks.clone()),
            nominates_expected_node: gates.enabled(Gate::NominatedNodeNameForExpectation),
            batches: gates.enabled(Gate::OpportunisticBatching),
            bugs: AtomicUsize::new(0),
        });
        let percentage = config.percentage_of_nodes_to_score;
        let scheduler = Scheduler::new(shared.clone(), profiles.iter().cloned(), percentage, rng.split());
        Ok(Self { scheduler, shared, profiles, gates, tasks, fatal, broadcaster })
    }

    /// Writes and tasks that have not come to an end: 0 once everything that was started is settled, except for pods that
    /// wait for a time or a plugin.
    pub fn unsettled(&self) -> usize {
        self.shared.writes.pending() + self.broadcaster.pending()
    }

    /// Keeps metrics up to date that are not counted where something happens.
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

    /// Drops what has not been written, and ends the queue: the order is upstream's.
    pub fn close(&self) {
        self.tasks.stop();
        self.shared.writes.close();
        self.shared.queue.close();
    }
}

fn build_profiles(
    config: &Config,
    plugins: &Registry,
    parts: &Arc<HandleParts>,
) -> Result<Vec<Arc<Framework>>, EngineError> {
    let mut checker = ProfileChecker::default();
    let mut profiles = Vec::new();
    for profile in &config.profiles {
        let built = Framework::new(plugins, profile, parts.clone())
            .map_err(|error| EngineError::Profile { profile: profile.scheduler_name.clone(), error })?;
        checker.check(profile, built.expanded()).map_err(EngineError::Profiles)?;
        profiles.push(Arc::new(built));
    }
    Ok(profiles)
}

/// Follows `pkg/scheduler/scheduler.go#buildExtenders @v1.36.3`.
fn ignorable_last(mut extenders: Vec<Arc<dyn Extender>>) -> Arc<[Arc<dyn Extender>]> {
    extenders.sort_by_key(|extender| extender.is_ignorable());
    extenders.into()
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}
