//! Builds an engine: profiles, cache, queue, listers, API writes and event recorders around one client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::kinds::ask_for_upstream_kinds;
use super::{Engine, EngineError, Tasks};
use crate::cache::Cache;
use crate::client::{RateLimiter, RestClient, Sending};
use crate::clock::{Clock, Rng};
use crate::config::{Config, FeatureGates, Gate, ProfileChecker};
use crate::dispatcher::ApiWrites;
use crate::events::{EventBroadcaster, EventsApi};
use crate::framework::{Framework, HandleParts, Parallelizer, Registry, resource_gates};
use crate::metrics::Metrics;
use crate::queue::{Queue, QueueOptions};
use crate::scheduler::{ApiEffects, Extender, Scheduler, SchedulerContext};

/// Longest time for which a pod stays in unschedulablePods without an event that helps it.
/// From `pkg/scheduler/backend/queue/scheduling_queue.go#DefaultPodMaxInUnschedulablePodsDuration @v1.36.3`.
const MAX_IN_UNSCHEDULABLE: Duration = Duration::from_mins(5);

/// The parts of an [`Engine`]. Each setter names its default.
#[must_use]
pub struct EngineBuilder {
    client: kube::Client,
    config: Config,
    plugins: Registry,
    gates: FeatureGates,
    extenders: Vec<Arc<dyn Extender>>,
    clock: Clock,
    sending: Sending,
    metrics: prometheus::Registry,
    seed: u64,
    hostname: String,
    max_in_unschedulable: Duration,
}

impl EngineBuilder {
    pub(super) fn new(client: kube::Client, config: Config, plugins: Registry) -> Self {
        Self {
            client,
            config,
            plugins,
            gates: FeatureGates::default(),
            extenders: Vec::new(),
            clock: Clock::real(),
            sending: Sending::default(),
            metrics: prometheus::Registry::new(),
            seed: 0,
            hostname: "localhost".to_owned(),
            max_in_unschedulable: MAX_IN_UNSCHEDULABLE,
        }
    }

    /// Sets the feature gates. Default: the defaults of upstream.
    pub fn gates(mut self, gates: FeatureGates) -> Self {
        self.gates = gates;
        self
    }

    /// Sets the extenders, in the order of the configuration. Ignorable extenders are called last. Default: none.
    pub fn extenders(mut self, extenders: Vec<Arc<dyn Extender>>) -> Self {
        self.extenders = extenders;
        self
    }

    /// Sets the engine's clock. Default: the system's clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the fence and the metrics of API requests. Default: no fence and no metrics.
    pub fn sending(mut self, sending: Sending) -> Self {
        self.sending = sending;
        self
    }

    /// Sets the registry of the metric families. Default: a new registry.
    pub fn metrics(mut self, metrics: prometheus::Registry) -> Self {
        self.metrics = metrics;
        self
    }

    /// Sets the seed of all random decisions: ties between nodes, and the jitter of retries. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the hostname, which becomes part of each event's reporting instance. Default: `localhost`.
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.hostname = hostname.into();
        self
    }

    /// Sets the longest time for which a pod stays in unschedulablePods without an event that helps it. Default: five minutes.
    pub fn max_in_unschedulable(mut self, duration: Duration) -> Self {
        self.max_in_unschedulable = duration;
        self
    }

    /// Connects the parts, and starts the tasks that write to the API on the current tokio runtime. The caller must start the
    /// informers and the scheduling.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub async fn build(self) -> Result<Engine, EngineError> {
        let mut rng = Rng::from_seed(self.seed);
        let (tasks, fatal) = Tasks::new(tokio::runtime::Handle::current());
        let enabled = |name: &str| Gate::find(name).is_some_and(|gate| self.gates.enabled(gate));
        let metrics = Metrics::new(&self.metrics, enabled)?;
        let Writers { writes, effects, broadcaster } = self.start_writers(&tasks, &mut rng).await;
        let Self { client, config, plugins, gates, extenders, clock, .. } = self;

        let workers = usize::try_from(config.parallelism).unwrap_or(1);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let parts = Arc::new(HandleParts {
            client: Some(client),
            has_extenders: !extenders.is_empty(),
            parallelizer: Arc::new(Parallelizer::new(workers.min(processors))),
            ..HandleParts::new(gates, metrics.clone(), clock.clone(), effects.clone())
        });
        let kinds = ask_for_upstream_kinds(&parts.listers, &gates);
        let (pods, nodes) = kinds.expect("nothing is watched before there is an engine");
        let profiles = build_profiles(&config, &plugins, &parts)?;
        let queue = Queue::new(
            &profiles,
            QueueOptions {
                initial_backoff: seconds(config.pod_initial_backoff_seconds),
                max_backoff: seconds(config.pod_max_backoff_seconds),
                max_in_unschedulable: self.max_in_unschedulable,
                extenders: !extenders.is_empty(),
            },
            clock.now(),
        )
        .map_err(EngineError::Events)?;
        // Plugin factories run before this point. Their documentation says that they find neither nominator nor activator.
        let _ = parts.nominator.set(queue.nominator().clone());
        let _ = parts.activator.set(queue.clone());

        let shared = Arc::new(SchedulerContext {
            cache: Arc::new(Cache::new()),
            queue,
            pods,
            nodes,
            listers: parts.listers.clone(),
            writes,
            effects,
            metrics: metrics.clone(),
            clock: clock.clone(),
            classes: parts.classes.clone(),
            resource_gates: resource_gates(&gates),
            waiting_pods: parts.waiting_pods.clone(),
            pods_in_pre_bind: parts.pods_in_pre_bind.clone(),
            extenders: ignorable_last(extenders),
            tasks: Arc::new(tasks.clone()),
            nominates_expected_node: gates.enabled(Gate::NominatedNodeNameForExpectation),
            batches: gates.enabled(Gate::OpportunisticBatching),
            bugs: AtomicUsize::new(0),
        });
        let percentage = config.percentage_of_nodes_to_score;
        let scheduler = Scheduler::new(shared.clone(), profiles.iter().cloned(), percentage, rng.split());
        Ok(Engine { scheduler, shared, profiles, gates, tasks, fatal, broadcaster })
    }

    /// Starts the tasks that write to the API.
    async fn start_writers(&self, tasks: &Tasks, rng: &mut Rng) -> Writers {
        let connection = &self.config.client_connection;
        let rest = || {
            let limiter = RateLimiter::of_client(connection.qps, connection.burst);
            RestClient::new(self.client.clone(), limiter, self.clock.clone()).sending(self.sending.clone())
        };
        let (writes, dispatcher) = ApiWrites::new(rest(), rng.split());
        tasks.serve("dispatcher", dispatcher.run());
        // Events have a rate limit of their own, so that they do not delay bindings.
        let events = rest();
        let api = EventsApi::discover(&events).await;
        let (broadcaster, recording) = EventBroadcaster::new(events, api, &self.hostname, rng.split());
        tasks.serve("event recorder", recording.run());
        let names = self.config.profiles.iter().map(|profile| profile.scheduler_name.clone());
        let recorders = names.map(|name| (name.clone(), broadcaster.recorder(&name))).collect::<BTreeMap<_, _>>();
        let effects = Arc::new(ApiEffects::new(writes.clone(), recorders, Arc::new(tasks.clone())));
        Writers { writes, effects, broadcaster }
    }
}

/// The parts of an engine that write to the API.
struct Writers {
    writes: ApiWrites,
    effects: Arc<ApiEffects>,
    broadcaster: EventBroadcaster,
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

/// Moves ignorable extenders to the end. Follows `pkg/scheduler/scheduler.go#buildExtenders @v1.36.3`.
fn ignorable_last(mut extenders: Vec<Arc<dyn Extender>>) -> Arc<[Arc<dyn Extender>]> {
    extenders.sort_by_key(|extender| extender.is_ignorable());
    extenders.into()
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}
