//! A scheduler on an embedded API server, on one thread and in virtual time, and everything that goes wrong with it.

use std::sync::Arc;
use std::time::Duration;

use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::{Mono, Now, Rng, SimClock};
use kube_scheduler::config::{Config, FeatureGates, GateFlags};
use kube_scheduler::engine::{Engine, TaskEnd};
use kube_scheduler::framework::Registry;
use kube_scheduler::ingest::Ingest;
use kube_scheduler::plugins;
use kube_scheduler::queue::Place;
use tokio::runtime::Runtime;

use super::cluster::Cluster;
use super::coverage::{Act, Step};
use super::probe;
use super::script::{Script, run};

const CONFIG: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 1
clientConnection: {qps: -1}
profiles:
- schedulerName: default-scheduler
  plugins: &plugins
    multiPoint: {enabled: [{name: Probe}]}
    bind: {enabled: [{name: Probe}, {name: DefaultBinder}], disabled: [{name: '*'}]}
- schedulerName: second
  plugins: *plugins
";

/// How long the world may take to come to rest once nothing goes wrong any more: Permit's longest patience is 31 s, an
/// event is given up after two minutes, and what nothing helped is tried again after five.
const REST: Duration = Duration::from_mins(12);

/// The world.
pub(super) struct World {
    pub(super) script: Arc<Script>,
    pub(super) engine: Engine,
    clock: SimClock,
    /// Goes last: what is dropped before may have tasks in it.
    runtime: Arc<Runtime>,
}

impl World {
    /// A cluster and a scheduler that has seen it, as the seed has it.
    pub(super) fn new(seed: u64) -> Self {
        Self::with(seed, |script| {
            let (nodes, pods) = script.with_rng(|rng| (2 + rng.below(4), 6 + rng.below(9)));
            for _ in 0..nodes {
                script.cluster.create_node(&mut script.with_rng(Rng::split));
            }
            for _ in 0..pods {
                script.cluster.create_pod(&mut script.with_rng(Rng::split));
            }
        })
    }

    /// One node, one plain pod, and nothing by chance.
    pub(super) fn plain() -> Self {
        Self::with(0, |script| {
            script.cluster.create_haven();
            script.cluster.create_plain_pod("p1");
        })
    }

    fn with(seed: u64, load: impl FnOnce(&Script)) -> Self {
        let clock = SimClock::new("2026-01-01T00:00:00Z".parse().expect("a time"));
        let now = clock.clone();
        let server = ApiServer::new(Options { seed, ..Options::new(move || now.now().wall) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let runtime = Arc::new(runtime);
        let script = Script::new(seed, Cluster::new(server.clone()), clock.clone(), Arc::downgrade(&runtime));
        load(&script);
        let engine = Self::engine(&runtime, &server, &clock, &script, seed);
        script.watch(engine.shared.clone(), engine.place_check(), engine.tasks.clone());
        let hook = script.clone();
        server.faults().set(move |parts| hook.hook(parts));
        let world = Self { script, engine, clock, runtime };
        world.settle("at the start");
        world.engine.shared.queue.run(world.clock.now());
        world
    }

    fn engine(runtime: &Runtime, server: &ApiServer, clock: &SimClock, script: &Arc<Script>, seed: u64) -> Engine {
        let _inside = runtime.enter();
        let gates = gates(seed);
        let mut plugins: Registry = plugins::registry();
        plugins.register(probe::NAME, probe::factory(script.clone())).expect("the name is free");
        let client = server.client();
        let config = Config::parse(CONFIG.as_bytes(), &gates, plugins.catalog()).expect("a configuration");
        let building = Engine::builder(client.clone(), config, plugins).gates(gates).clock(clock.clock()).seed(seed);
        let engine = run(runtime, building.build()).expect("its parts fit");
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client).with_seed(seed);
        ingest.start(|name, task| engine.tasks.serve(name, task));
        engine.start_metrics();
        engine
    }

    /// Lets the runtime run until it is idle, and checks everything.
    pub(super) fn settle(&self, when: &str) {
        run(&self.runtime, self.script.settle());
        self.script.check(false, when);
    }

    fn schedule_one(&mut self) -> bool {
        let tried = self.engine.scheduler.schedule_one(self.clock.now());
        self.script.cycle_ended();
        self.script.check(true, "after a cycle");
        tried
    }

    fn advance(&self, by: Duration) {
        self.script.advance(self.clock.now().mono + by);
        self.settle("after a jump");
        self.engine.shared.queue.flush(self.clock.now());
        self.script.check(false, "after a flush");
    }

    /// One step of the world: an attempt, a jump of the clock, or something that happens to the cluster.
    fn step(&mut self) {
        let (choice, lazy) = self.script.with_rng(|rng| (rng.below(10), rng.chance(1, 6)));
        match choice {
            0..5 => {
                self.schedule_one();
            }
            5 => {
                let next = [self.clock.next_deadline(), self.engine.shared.queue.next_deadline()];
                let now = self.clock.now().mono;
                let next = next.into_iter().flatten().min().unwrap_or(now);
                self.advance((next - now).max(Duration::from_nanos(1)));
            }
            6 => self.advance(Duration::from_millis(self.script.with_rng(|rng| rng.below(4_000)))),
            7 if self.script.with_rng(|rng| rng.chance(1, 8)) => self.advance(Duration::from_secs(75)),
            _ => self.script.strike_between(),
        }
        if lazy {
            self.script.check(true, "between, unsettled");
        } else {
            self.settle("between");
        }
    }

    /// Attempts until no pod is to be tried, and everything that follows from them.
    pub(super) fn try_all(&mut self) {
        while self.schedule_one() {
            self.settle("after a cycle");
        }
    }

    /// The ends of tasks that were heard of since the last call.
    pub(super) fn heard(&mut self) -> Vec<TaskEnd> {
        run(&self.runtime, self.script.settle());
        std::iter::from_fn(|| self.engine.fatal.try_recv().ok()).collect()
    }

    /// Everything that is wrong.
    fn wrong(&mut self) -> Vec<String> {
        let mut wrong = self.script.wrong();
        while let Ok(end) = self.engine.fatal.try_recv() {
            wrong.push(format!("fatal: {end}"));
        }
        wrong
    }

    /// A whole life, with everything that this seed has in it. What was wrong at the first moment at which anything was.
    pub(super) fn live(&mut self) -> Result<(), Vec<String>> {
        self.script.begin();
        for at in 0..self.script.with_rng(|rng| 40 + rng.below(110)) {
            self.script.note(format!("--- {at} at {:?}", self.clock.now().mono));
            self.step();
            let wrong = self.wrong();
            if !wrong.is_empty() {
                return Err(wrong);
            }
        }
        self.rest();
        let mut wrong = self.wrong();
        wrong.extend(self.leftovers());
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// A life in which only this happens, and that has to end well.
    pub(super) fn survive(&mut self, acts: &[(Step, Act)]) {
        self.script.happen(acts);
        self.try_all();
        self.rest();
        assert!(self.script.has_happened(), "a step was not reached: {:?}", self.script.trace().0);
        let wrong: Vec<String> = self.wrong().into_iter().chain(self.leftovers()).collect();
        assert!(wrong.is_empty(), "{:?}\n{wrong:#?}", self.script.trace().0);
    }

    /// Nothing goes wrong any more: everything has to find its end.
    fn rest(&mut self) {
        self.script.note("--- rest".to_owned());
        self.script.end();
        self.script.cluster.heal();
        self.settle("healed");
        let until = self.clock.now().mono + REST;
        while self.clock.now().mono < until {
            self.try_all();
            self.script.allow_all();
            self.settle("at rest");
            if self.leftovers().is_empty() {
                break;
            }
            let step = if self.clock.now().mono + Duration::from_mins(11) > until { 1 } else { 10 };
            self.advance(Duration::from_secs(step));
        }
    }

    /// Returns state that must not remain at the end.
    fn leftovers(&self) -> Vec<String> {
        let shared = &self.engine.shared;
        let mut left: Vec<String> =
            self.script.cluster.unbound().into_iter().map(|pod| format!("pod {pod} is not bound")).collect();
        let mut none = |count: usize, what: &str| {
            if count > 0 {
                left.push(format!("{count} {what} left"));
            }
        };
        none(Place::ALL.iter().map(|place| shared.queue.len(*place)).sum(), "queued pods");
        none(shared.cache.counts().assumed_pods, "assumed pods");
        none(shared.queue.in_flight_pods().len(), "pods in flight");
        none(shared.queue.dump().in_flight_events, "events in flight");
        none(shared.waiting_pods.all().len(), "waiting pods");
        none(self.engine.tasks.running(), "tasks");
        none(self.engine.unsettled(), "writes");
        none(self.script.cluster.server.held(), "held requests");
        left
    }

    pub(super) fn time(&self) -> Now {
        self.clock.now()
    }

    pub(super) fn now(&self) -> Mono {
        self.clock.now().mono
    }
}

/// Most seeds have the default gates; some the other ways through queue and binding cycle. Not without queueing hints, which
/// only an emulated version up to 1.33 can turn off: then, as upstream, a pod that changes during its cycle is queued at once.
fn gates(seed: u64) -> FeatureGates {
    let gates = match seed % 8 {
        3 => "SchedulerPopFromBackoffQ=false",
        5 => "NominatedNodeNameForExpectation=false",
        _ => "",
    };
    let gates = [gates.to_owned()];
    let flags = GateFlags { feature_gates: &gates, ..GateFlags::default() };
    FeatureGates::from_flags(flags).unwrap_or_else(|error| panic!("{error}"))
}
