//! The simulated world: a cluster in memory, a scheduler on it, and a clock that jumps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::controllers::Controllers;
use super::load::{Loaded, Origin, title};
use super::progress::Progress;
use super::workloads::{self, ExpandError};
use super::{EPOCH_SECONDS, Loading, SimulateError, generate, say};
use crate::apimachinery::Status;
use crate::apiserver::{ApiServer, Options, kinds};
use crate::clock::{Mono, Now, SimClock};
use crate::config::{Config, FeatureGates};
use crate::engine::Engine;
use crate::extender;
use crate::framework::Registry;
use crate::framework::preemption::MinCandidates;
use crate::ingest::Ingest;
use crate::plugins::admission::node_check;
use crate::plugins::{default_preemption, node_resources};
use crate::queue::Place;

/// Number of rounds without any work after which the runtime counts as idle. The number is larger than the longest chain of
/// wake-ups between tasks that neither the server nor the writers count as pending work.
const IDLE_ROUNDS: usize = 16;

/// Number of rounds without work for the server after which unsettled writes are assumed to wait for a later time.
const QUIET_ROUNDS: usize = 256;

/// Time after which a pod leaves unschedulablePods without an event.
/// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#DefaultPodMaxInUnschedulablePodsDuration @v1.36.3`.
const MAX_IN_UNSCHEDULABLE: Duration = Duration::from_mins(5);

/// Time without a newly scheduled or deleted pod after which the simulation ends, although pods with errors would be retried
/// for ever.
const GIVE_UP_AFTER: Duration = Duration::from_mins(10);

/// Period of the checks for pods that were in unschedulablePods for too long (30 s), plus one second.
const FLUSH_PERIOD: Duration = Duration::from_secs(31);

/// Maximum virtual time of a simulation that only waits for terminating pods: a hundred years.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// Settings of a simulated world.
pub(super) struct WorldOptions {
    pub(super) config: Config,
    pub(super) gates: FeatureGates,
    pub(super) plugins: Registry,
    pub(super) seed: u64,
}

/// A cluster in memory, a scheduler on it, and a clock that jumps. One thread runs everything, so the same input and seed
/// give the same history.
pub(super) struct World {
    runtime: Arc<tokio::runtime::Runtime>,
    clock: SimClock,
    pub(super) server: ApiServer,
    options: Option<WorldOptions>,
    /// Origins of objects, by UID.
    origins: BTreeMap<String, Origin>,
}

/// A world with a started scheduler whose informers have synced.
pub(super) struct Running {
    world: World,
    pub(super) engine: Engine,
    /// Kubelets and controllers of the cluster.
    pub(super) controllers: Controllers,
    /// The number of candidates that `DefaultPreemption` looks for, by profile.
    preemption: BTreeMap<String, MinCandidates>,
    start: Mono,
    /// The last number of scheduled pods, and when it changed.
    last_change: (usize, Mono),
    /// The last numbers of scheduled pods and of pod deletions, and when either changed.
    last_event: ((usize, u64), Mono),
}

impl World {
    /// Creates an empty cluster.
    pub(super) fn new(options: WorldOptions) -> Result<Self, SimulateError> {
        let start = Timestamp::from_second(i64::try_from(EPOCH_SECONDS).unwrap_or(0)).expect("a time in this century");
        let clock = SimClock::new(start);
        let now = clock.clone();
        let server = ApiServer::new(Options {
            seed: options.seed,
            create_namespaces: true,
            gates: options.gates,
            // The report lists all events, however long the simulation is.
            event_ttl: None,
            ..Options::new(move || now.now().wall)
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| SimulateError::Runtime(error.to_string()))?;
        let runtime = Arc::new(runtime);
        Ok(Self { runtime, clock, server, options: Some(options), origins: BTreeMap::new() })
    }

    /// Loads objects, and creates the missing pods of workloads.
    pub(super) fn load(&mut self, objects: Vec<Loaded>) -> Result<(), SimulateError> {
        let mut unknown = UnknownMembers::default();
        let loaded = self.load_objects(objects, &mut unknown);
        // The warnings come first, because a misspelt field may have caused the error.
        unknown.warn();
        loaded?;
        workloads::expand(&self.server).map_err(|error| self.name_owner(error))?;
        Ok(())
    }

    /// Loads objects into the server, and records their origins.
    fn load_objects(&mut self, objects: Vec<Loaded>, unknown: &mut UnknownMembers) -> Result<(), SimulateError> {
        let mut progress = Progress::new(objects.len(), "objects taken in");
        for (number, Loaded { object, origin }) in objects.into_iter().enumerate() {
            progress.show(number);
            let name = title(&object);
            // A dump comes from a server, which has validated it and may be newer.
            let is_manifest = object.pointer("/metadata/uid").is_none();
            let members = if is_manifest { ApiServer::check_members(&object) } else { Ok(Vec::new()) };
            let members = members.map(|paths| unknown.add(&name, &origin, paths));
            let loaded = self.server.load(object).and_then(|loaded| members.map(|()| loaded));
            let loaded = loaded.map_err(|status| SimulateError::Object {
                origin: origin.to_string(),
                error: self.with_first(status, &name),
                object: name,
            })?;
            self.origins.insert(loaded.uid().to_owned(), origin);
        }
        drop(progress);
        Ok(())
    }

    /// Adds the origin of the workload to the error.
    fn name_owner(&self, ExpandError { owner, message }: ExpandError) -> SimulateError {
        SimulateError::Object {
            origin: self.origins.get(owner.uid()).map(ToString::to_string).unwrap_or_default(),
            object: title(&owner.value()),
            error: message,
        }
    }

    /// Returns the server's message, with the origin of the first object if the object already exists.
    fn with_first(&self, status: Status, name: &str) -> String {
        let first = (status.reason == "AlreadyExists").then(|| {
            let (kind, path) = name.split_once(' ')?;
            let kind = kinds::ALL.iter().find(|known| known.kind == kind)?;
            let (namespace, name) =
                path.split_once('/').unwrap_or((if kind.namespaced { "default" } else { "" }, path));
            self.origins.get(self.server.get(kind, namespace, name)?.uid())
        });
        match first.flatten() {
            Some(origin) => format!("{}, first defined in {origin}", status.message),
            None => status.message,
        }
    }

    /// Generates the objects of a cluster.
    pub(super) fn generate(&self, nodes: usize, pods: usize) -> Result<(), SimulateError> {
        let objects = (0..nodes).map(generate::node).chain((0..pods).map(generate::pod));
        let mut progress = Progress::new(nodes + pods, "objects created");
        for (number, object) in objects.enumerate() {
            progress.show(number);
            self.server.load(object).map_err(|status| SimulateError::Generate(status.message))?;
        }
        drop(progress);
        Ok(())
    }

    /// Starts a scheduler, and runs it until it has seen the cluster.
    pub(super) fn start(mut self) -> Result<Running, SimulateError> {
        let options = self.options.take().expect("a world is started once");
        let preemption = default_preemption::min_candidates(&options.config);
        let handle = self.runtime.handle().clone();
        let client = {
            let _inside = handle.enter();
            self.server.client()
        };
        let mut config = unthrottled(options.config);
        // An extender with a bind verb would bind pods in a real cluster, which may have pods with the same names. So the
        // scheduler itself binds the pods here.
        config.extenders.iter_mut().for_each(|extender| extender.bind_verb.clear());
        let extenders = extender::build(&mut config, node_resources::ignore_resources)
            .map_err(|error| SimulateError::Engine(error.to_string()))?;
        let building = Engine::builder(client.clone(), config, options.plugins)
            .gates(options.gates)
            .extenders(extenders)
            .clock(self.clock.clock())
            .seed(options.seed)
            .hostname("simulation")
            .max_in_unschedulable(MAX_IN_UNSCHEDULABLE)
            .build();
        let engine = self.runtime.block_on(building).map_err(|error| SimulateError::Engine(error.to_string()))?;
        engine.tasks.drive(&self.runtime);
        let mut controllers = Controllers::new(&self.server, self.clock.now().wall);
        controllers.refresh(&self.server, self.clock.now().wall);
        let check = node_check(engine.profiles[0].handle());
        let check = check.map_err(|error| SimulateError::Engine(error.to_string()))?;
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client).with_node_check(check);
        ingest.start(|name, task| engine.tasks.serve(name, task));
        let start = self.clock.now().mono;
        let (last_change, last_event) = ((0, start), ((0, 0), start));
        let mut running = Running { world: self, engine, controllers, preemption, start, last_change, last_event };
        running.settle()?;
        running.engine.shared.queue.run(running.now());
        Ok(running)
    }
}

/// Unknown fields in manifests, grouped by kind and path.
#[derive(Default)]
struct UnknownMembers {
    /// First occurrence and number of occurrences, by kind and path.
    found: BTreeMap<(String, String), (String, usize)>,
}

impl UnknownMembers {
    /// Maximum number of warnings.
    const SHOWN: usize = 20;

    fn add(&mut self, name: &str, origin: &Origin, paths: Vec<String>) {
        let kind = name.split(' ').next().unwrap_or_default();
        for path in paths {
            let first = || (format!("{origin}: {name}"), 0);
            self.found.entry((kind.to_owned(), path)).or_insert_with(first).1 += 1;
        }
    }

    fn warn(&self) {
        for ((_, path), (first, count)) in self.found.iter().take(Self::SHOWN) {
            let others = if *count > 1 { format!(" (and {} others)", count - 1) } else { String::new() };
            say(format_args!("warning: {first}{others}: {path}: unknown field, ignored"));
        }
        if let Some(more @ 1..) = self.found.len().checked_sub(Self::SHOWN) {
            say(format_args!("warning: {more} more unknown fields, ignored"));
        }
    }
}

/// Removes the rate limit, because a simulated API server needs none.
fn unthrottled(mut config: Config) -> Config {
    config.client_connection.qps = -1.0;
    config
}

impl Running {
    /// Returns the current virtual time.
    pub(super) fn now(&self) -> Now {
        self.world.clock.now()
    }

    /// Returns the virtual time from the start until the number of scheduled pods last changed.
    pub(super) fn elapsed(&self) -> Duration {
        self.last_change.1 - self.start
    }

    /// Returns the simulated API server.
    pub(super) fn server(&self) -> &ApiServer {
        &self.world.server
    }

    /// Returns the cluster as the scheduler sees it now.
    pub(super) fn look(&self) -> Result<Loading, SimulateError> {
        Loading::of(&self.engine, self.preemption.clone(), self.now())
    }

    /// Schedules until nothing changes any more. Then no pod is queued for an attempt, in flight or terminating, and
    /// unschedulable pods have been retried once more. Also ends if nothing has changed for long although some pods are still
    /// retried.
    pub(super) fn run(&mut self, progress: &mut Progress) -> Result<(), SimulateError> {
        let most_victims = 100 + 10 * self.world.server.list(&kinds::PODS).len();
        loop {
            while self.engine.scheduler.schedule_one(self.now()) {
                self.settle()?;
                progress.show(self.last_change.0);
            }
            if self.control()? {
                continue;
            }
            if self.controllers.preempted().len() > most_victims {
                say(format_args!(
                    "warning: simulation stopped after {} preemptions: preempted pods are replaced and preempted again",
                    self.controllers.preempted().len()
                ));
                return Ok(());
            }
            let queue = &self.engine.shared.queue;
            let (underway, ending) = (self.engine.tasks.running(), self.controllers.ending());
            let waiting = queue.len(Place::Backoff) + queue.len(Place::ErrorBackoff);
            let idle_for = self.now().mono - self.last_event.1;
            // After this time, every pod has been tried on the unchanged cluster.
            let is_flushed = queue.len(Place::Unschedulable) == 0 || idle_for > MAX_IN_UNSCHEDULABLE + FLUSH_PERIOD;
            if waiting + underway + self.engine.unsettled() + ending == 0 && is_flushed {
                return Ok(());
            }
            if underway == 0 && idle_for > GIVE_UP_AFTER {
                if ending == 0 {
                    return Ok(());
                }
                // Nothing happens before the next terminating pod ends, however long that takes.
                match self.next_end() {
                    Some(end) if end - self.start < LONGEST => self.advance(Some(end))?,
                    _ => return Ok(()),
                }
                continue;
            }
            let flushed = self.last_event.1 + MAX_IN_UNSCHEDULABLE + FLUSH_PERIOD + Duration::from_nanos(1);
            self.advance(self.next_deadline().or((!is_flushed).then_some(flushed)))?;
        }
    }

    /// Runs the kubelets and controllers. Returns whether they did anything.
    fn control(&mut self) -> Result<bool, SimulateError> {
        let now = self.now().wall;
        let acted = self.controllers.act(&self.world.server, now).map_err(|error| self.world.name_owner(error))?;
        if acted {
            self.settle()?;
        }
        Ok(acted)
    }

    fn placed(&self) -> usize {
        self.engine.shared.cache.counts().pods
    }

    /// Returns when the next terminating pod ends.
    fn next_end(&self) -> Option<Mono> {
        self.controllers.next_deadline().map(|at| self.mono_at(at))
    }

    /// Converts a wall time to monotonic time. A wall time in the past becomes the current time.
    fn mono_at(&self, at: Timestamp) -> Mono {
        let now = self.now();
        now.mono + Duration::try_from(at.duration_since(now.wall)).unwrap_or_default()
    }

    /// Returns the time of the next scheduled event.
    fn next_deadline(&self) -> Option<Mono> {
        let server = self.world.server.next_deadline().map(|at| self.mono_at(at));
        [self.engine.shared.queue.next_deadline(), self.world.clock.next_deadline(), server, self.next_end()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Advances the clock to a time, by at least 1 ns, and lets everything that is due happen.
    fn advance(&mut self, to: Option<Mono>) -> Result<(), SimulateError> {
        let now = self.now().mono;
        let Some(to) = to else { return Err(SimulateError::Stuck) };
        self.world.clock.advance_to(to.max(now + Duration::from_nanos(1)));
        self.world.server.tick();
        self.settle()?;
        self.engine.shared.queue.flush(self.now());
        Ok(())
    }

    /// Runs the runtime until it is idle.
    fn settle(&mut self) -> Result<(), SimulateError> {
        let Self { world, engine, .. } = self;
        world.runtime.block_on(async {
            let (mut idle, mut quiet) = (0, 0);
            while idle < IDLE_ROUNDS && quiet < QUIET_ROUNDS {
                tokio::task::yield_now().await;
                quiet = if world.server.pending() == 0 { quiet + 1 } else { 0 };
                idle = if quiet > 0 && engine.unsettled() == 0 { idle + 1 } else { 0 };
            }
        });
        let (placed, now) = (self.placed(), self.now().mono);
        if placed != self.last_change.0 {
            self.last_change = (placed, now);
        }
        let seen = (placed, self.world.server.pod_deletions());
        if seen != self.last_event.0 {
            self.last_event = (seen, now);
        }
        match self.engine.fatal.try_recv() {
            Ok(end) => Err(SimulateError::Task(Arc::new(end))),
            Err(_) => Ok(()),
        }
    }
}
