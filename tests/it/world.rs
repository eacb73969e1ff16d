//! A small world for tests of whole schedulers: an engine on the embedded API server, a clock that only the test moves, and
//! one thread. Probe plugins and fake extenders say what the test wants; what happened is in the log, in the requests that
//! the server got, and in what the server then holds.

pub(crate) mod extender;
pub(crate) mod probe;
pub(crate) mod webhook;

use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use kube_scheduler::apiserver::{ApiServer, DeleteOptions, Options, ReplyBody, kinds};
use kube_scheduler::clock::{Now, SimClock};
use kube_scheduler::config::{Config, FeatureGates, Gate};
use kube_scheduler::engine::Engine;
use kube_scheduler::framework::Handle;
use kube_scheduler::ingest::Ingest;
use kube_scheduler::plugins;
use kube_scheduler::queue::{DumpedPod, Place};
use kube_scheduler::testing::PodFixture;
use serde_json::{Value, json};

use extender::FakeExtender;
use probe::{Log, Probe};

/// How often the runtime has to find the server without work before it counts as idle: more than any chain of wake-ups
/// between tasks has links. What waits for a time or for the test may go on waiting.
const IDLE_ROUNDS: usize = 64;

/// A world in the making.
#[must_use]
pub(crate) struct WorldBuilder {
    gates: FeatureGates,
    probes: Vec<Probe>,
    extenders: Vec<FakeExtender>,
    /// Extenders of the configuration, which are real ones.
    configured: Vec<Value>,
    profile: Value,
    percentage: i32,
    binder: bool,
    in_tree: &'static [&'static str],
    seed: u64,
}

/// A world whose scheduler runs.
pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) server: ApiServer,
    clock: SimClock,
    log: Log,
    sent: Sent,
    runtime: Arc<tokio::runtime::Runtime>,
}

/// Writes, in the order in which they were sent.
type Sent = Arc<Mutex<Vec<Write>>>;

/// A request that wants to change something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Write {
    /// Method and path.
    pub(crate) what: String,
    /// The bytes.
    pub(crate) body: String,
}

/// A world with these plugins in the profile `default-scheduler`, in this order, and none of the in-tree ones but those
/// that a profile cannot be without.
pub(crate) fn world(probes: impl IntoIterator<Item = Probe>) -> WorldBuilder {
    WorldBuilder {
        gates: FeatureGates::default(),
        probes: probes.into_iter().collect(),
        extenders: Vec::new(),
        configured: Vec::new(),
        profile: json!({"schedulerName": "default-scheduler"}),
        percentage: 0,
        binder: true,
        in_tree: &[],
        seed: 0,
    }
}

impl WorldBuilder {
    /// Leaves the default binder out.
    pub(crate) fn without_binder(mut self) -> Self {
        self.binder = false;
        self
    }

    /// Adds these in-tree plugins to the profile, before the ones that it cannot be without.
    pub(crate) fn in_tree(mut self, names: &'static [&'static str]) -> Self {
        self.in_tree = names;
        self
    }

    /// Turns a feature gate on or off.
    pub(crate) fn gate(mut self, gate: Gate, on: bool) -> Self {
        self.gates = self.gates.with(gate, on);
        self
    }

    /// Adds an extender.
    pub(crate) fn extender(mut self, extender: FakeExtender) -> Self {
        self.extenders.push(extender);
        self
    }

    /// Adds an extender to the configuration.
    pub(crate) fn configured(mut self, extender: Value) -> Self {
        self.configured.push(extender);
        self
    }

    /// Sets the percentage of nodes to score, for all profiles.
    pub(crate) fn percentage(mut self, percentage: i32) -> Self {
        self.percentage = percentage;
        self
    }

    /// Sets the profile's own.
    pub(crate) fn profile_percentage(mut self, percentage: i32) -> Self {
        self.profile["percentageOfNodesToScore"] = percentage.into();
        self
    }

    /// Seeds chance.
    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    fn config(&self) -> Config {
        let names = self.probes.iter().map(Probe::name);
        let own: &[&str] = if self.binder { &["PrioritySort", "DefaultBinder"] } else { &["PrioritySort"] };
        let mut profile = self.profile.clone();
        let list = |names: Vec<&str>| names.into_iter().map(|name| json!({"name": name})).collect::<Value>();
        // A probe that binds goes before the binder of every profile.
        let enabled = names.chain(self.in_tree.iter().copied()).chain(own.iter().copied()).collect();
        profile["plugins"]["multiPoint"] = json!({"enabled": list(enabled), "disabled": list(vec!["*"])});
        let file = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"qps": -1},
            "parallelism": 1,
            "percentageOfNodesToScore": self.percentage,
            "profiles": [profile],
            "extenders": self.configured,
        });
        Config::parse(file.to_string().as_bytes(), &self.gates, plugins::registry().catalog())
            .expect("a valid configuration")
    }

    /// Starts the scheduler on an empty cluster.
    pub(crate) fn start(self) -> World {
        let mut config = self.config();
        config.validate(&self.gates, plugins::registry().catalog()).expect("a valid configuration");
        let configured = kube_scheduler::extender::build(&mut config, plugins::node_resources::ignore_resources)
            .expect("extenders can be built");
        let wall: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let (clock, log, sent) = (SimClock::new(wall), Log::default(), Sent::default());
        let server = ApiServer::new(Options { create_namespaces: true, ..Options::by_clock(&clock.clock()) });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = Arc::new(runtime.expect("a runtime"));
        let inside = runtime.enter();
        let client = kube::Client::new(Recorded { server: server.clone(), sent: sent.clone() }, "default");
        drop(inside);
        let mut registry = plugins::registry();
        for probe in self.probes {
            probe.register(&mut registry, &log);
        }
        let fakes = self.extenders.into_iter().map(|extender| extender.into_dyn(&log));
        let extenders = fakes.chain(configured).collect();
        let building = Engine::builder(client.clone(), config, registry)
            .gates(self.gates)
            .extenders(extenders)
            .clock(clock.clock())
            .seed(self.seed)
            .build();
        let engine = runtime.block_on(building).expect("an engine");
        engine.tasks.drive(&runtime);
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, client);
        ingest.start(|name, task| engine.tasks.serve(name, task));
        let mut world = World { engine, server, clock, log, sent, runtime };
        world.settle();
        world.engine.shared.queue.run(world.now());
        world
    }
}

impl World {
    /// The time.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Adds nodes with these names.
    pub(crate) fn nodes<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> &mut Self {
        for name in names {
            self.server.load(kube_scheduler::testing::node(name).json()).expect("a node");
        }
        self.settle();
        self
    }

    /// Adds a pod.
    pub(crate) fn pod(&mut self, pod: PodFixture) -> &mut Self {
        self.load(pod.json())
    }

    /// Adds an object.
    pub(crate) fn load(&mut self, object: Value) -> &mut Self {
        self.server.load(object).expect("an object that a server would take");
        self.settle();
        self
    }

    /// Deletes a pod at once, and lets the scheduler see it.
    pub(crate) fn delete(&mut self, pod: &str) -> &mut Self {
        self.delete_unseen(pod);
        self.settle();
        self
    }

    /// Deletes a pod at once; the scheduler sees it with what comes next.
    pub(crate) fn delete_unseen(&self, pod: &str) {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        self.server.delete(&kinds::PODS, "default", pod, &options).expect("the pod can be deleted");
    }

    /// Schedules the pod at the head of the queue, and lets everything come to rest. Says whether there was one.
    pub(crate) fn schedule(&mut self) -> bool {
        let scheduled = self.cycle();
        self.settle();
        scheduled
    }

    /// One scheduling cycle, with nothing after it.
    pub(crate) fn cycle(&mut self) -> bool {
        let now = self.now();
        self.engine.scheduler.schedule_one(now)
    }

    /// Schedules until nothing is in activeQ or can be taken from podBackoffQ.
    pub(crate) fn schedule_all(&mut self) -> &mut Self {
        while self.schedule() {}
        self
    }

    /// Lets time pass, and everything that is due happen.
    pub(crate) fn advance(&mut self, time: Duration) -> &mut Self {
        self.clock.advance(time);
        self.server.tick();
        self.settle();
        self.engine.shared.queue.flush(self.now());
        self
    }

    /// Runs every task until nothing moves any more.
    pub(crate) fn settle(&mut self) {
        let Self { server, runtime, .. } = self;
        runtime.block_on(async {
            let mut idle = 0;
            while idle < IDLE_ROUNDS {
                tokio::task::yield_now().await;
                idle = if server.pending() == 0 { idle + 1 } else { 0 };
            }
        });
        assert!(self.engine.fatal.try_recv().is_err(), "a task ended as it must not");
        assert_eq!(self.engine.shared.bugs.load(std::sync::atomic::Ordering::Relaxed), 0, "a reservation was dropped");
    }

    /// Calls of plugins since the last call of this function.
    pub(crate) fn take_log(&self) -> Vec<String> {
        self.log.take()
    }

    /// The writes of pods since this was last taken, those of events left out.
    pub(crate) fn take_writes(&self) -> Vec<Write> {
        let mut sent = self.sent.lock().expect("no test panicked under the lock");
        std::mem::take(&mut *sent).into_iter().filter(|write| !write.what.contains("/events")).collect()
    }

    /// A pod as the server holds it.
    pub(crate) fn held(&self, pod: &str) -> Value {
        self.server.get(&kinds::PODS, "default", pod).expect("the server holds the pod").value()
    }

    /// The pod's node; empty if it has none.
    pub(crate) fn node_of(&self, pod: &str) -> String {
        self.held(pod)["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()
    }

    /// The node that is held for the pod, as the server knows it; empty if there is none.
    pub(crate) fn nominated(&self, pod: &str) -> String {
        self.held(pod)["status"]["nominatedNodeName"].as_str().unwrap_or_default().to_owned()
    }

    /// `reason: message` of the pod's condition `PodScheduled`.
    pub(crate) fn condition(&self, pod: &str) -> String {
        let held = self.held(pod);
        let conditions = held["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let condition = conditions.iter().find(|condition| condition["type"] == "PodScheduled");
        let text = |key: &str| condition.and_then(|condition| condition[key].as_str()).unwrap_or_default().to_owned();
        format!("{}: {}", text("reason"), text("message"))
    }

    /// `type reason/action object: note` of each event, in order of time.
    pub(crate) fn events(&self) -> Vec<String> {
        let mut events: Vec<_> = self.server.list(&kinds::EVENTS);
        events.sort_by_key(|event| event.version());
        let text =
            |event: &Value, path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let line = |event: Value| {
            let said = |path| text(&event, path);
            let (reason, action) = (said("/reason"), said("/action"));
            format!("{} {reason}/{action} {}: {}", said("/type"), said("/regarding/name"), said("/note"))
        };
        events.iter().map(|event| line(event.value())).collect()
    }

    /// The pod as the queue has it.
    pub(crate) fn queued(&self, pod: &str) -> Option<DumpedPod> {
        self.engine.shared.queue.dump().pods.into_iter().find(|queued| queued.pod.name() == pod)
    }

    /// Queue of the pod, and the plugins that rejected it.
    pub(crate) fn waits(&self, pod: &str) -> Option<(Place, Vec<String>)> {
        let queued = self.queued(pod)?;
        Some((queued.place, queued.rejectors.iter().map(ToString::to_string).collect()))
    }

    /// UIDs of pods that are marked as being scheduled.
    pub(crate) fn in_flight(&self) -> Vec<String> {
        self.engine.shared.queue.in_flight_pods().iter().map(|pod| pod.uid().to_owned()).collect()
    }

    /// The handle of the first profile's plugins.
    pub(crate) fn handle(&self) -> &Handle {
        self.engine.profiles[0].handle()
    }

    /// All metrics as text, durations that are sampled included.
    pub(crate) fn metrics(&self) -> String {
        self.engine.shared.observe_sizes();
        self.engine.shared.metrics.gather_text()
    }

    /// The value of one series: `name` or `name{a="b"}` as the text has it; none if there is no such series.
    pub(crate) fn metric(&self, series: &str) -> Option<f64> {
        let text = self.metrics();
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map(|value| value.parse().expect("a number"))
    }
}

/// The embedded server, with a list of the writes that it was asked for.
#[derive(Clone)]
struct Recorded {
    server: ApiServer,
    sent: Sent,
}

impl tower::Service<Request<Body>> for Recorded {
    type Response = Response<ReplyBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<ReplyBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { mut server, sent } = self.clone();
        if request.method() == Method::GET {
            return server.call(request).boxed();
        }
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await.map_err(io::Error::other)?;
            let text = String::from_utf8_lossy(&body).into_owned();
            let what = format!("{} {}", parts.method, parts.uri.path());
            sent.lock().expect("no test panicked under the lock").push(Write { what, body: text });
            server.call(Request::from_parts(parts, Body::from(body.to_vec()))).await
        }
        .boxed()
    }
}
