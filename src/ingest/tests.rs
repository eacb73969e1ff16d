//! Tests of a scheduler's informers with the embedded API server, on one thread and in virtual time.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::Ingest;
use crate::apiserver::{ApiServer, Options, kinds};
use crate::clock::SimClock;
use crate::config::{Config, FeatureGates};
use crate::engine::{Engine, TaskEnd};
use crate::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, EnqueueExtensions, EventRegistration, Plugin, PluginError,
    PreEnqueuePlugin, QueueSortKey, QueueSortPlugin, Registration, Registry, Verdict,
};
use crate::model::{ActionType, ClusterEvent, EventResource, PodInfo};
use crate::testing::{PodFixture, node, pod};

/// A plugin that accepts every pod and registers for events of one kind.
struct Passing(EventResource);

impl Plugin for Passing {
    fn name(&self) -> &'static str {
        "Passing"
    }
}

impl QueueSortPlugin for Passing {
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool {
        a.timestamp < b.timestamp
    }
}

impl PreEnqueuePlugin for Passing {
    fn pre_enqueue(&self, _: &PodInfo) -> Verdict {
        Verdict::Pass
    }
}

impl BindPlugin for Passing {
    fn bind<'a>(&'a self, _: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
        Box::pin(async { Ok(BindOutcome::Skip) })
    }
}

impl EnqueueExtensions for Passing {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        Ok(vec![EventRegistration::new(ClusterEvent::new(self.0.clone(), ActionType::ALL))])
    }
}

const CONFIG: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Passing}], disabled: [{name: '*'}]}
";

struct World {
    server: ApiServer,
    time: SimClock,
    engine: Engine,
    ingest: Ingest,
}

impl World {
    /// Starts a scheduler that watches `server`.
    async fn start(server: ApiServer, time: SimClock, listens_to: EventResource) -> Self {
        let gates = FeatureGates::default();
        let mut plugins = Registry::default();
        let factory = move |(), _: &crate::framework::Handle| {
            let plugin = Arc::new(Passing(listens_to.clone()));
            let registration = Registration::new("Passing").queue_sort(&plugin).bind(&plugin);
            Ok(registration.pre_enqueue(&plugin).events(&plugin))
        };
        plugins.register("Passing", factory).expect("the name is new");
        let config = Config::parse(CONFIG.as_bytes(), &gates, plugins.catalog()).expect("the configuration is good");
        let building = Engine::builder(server.client(), config, plugins).gates(gates).clock(time.clock()).seed(1);
        let engine = building.build().await.expect("its parts fit");
        let ingest = Ingest::new(&engine.shared, &engine.profiles, &gates, server.client()).with_seed(7);
        ingest.start(|name, task| engine.tasks.serve(name, task));
        let world = Self { server, time, engine, ingest };
        world.settle().await;
        world
    }

    async fn settle(&self) {
        let mut quiet = 0;
        while quiet < 20 {
            tokio::task::yield_now().await;
            quiet = if self.server.pending() == 0 { quiet + 1 } else { 0 };
        }
    }

    /// Prints the pods in cache and queue, and the nodes in the cache: `a@n b:Active; n`.
    fn print(&self) -> String {
        let shared = &self.engine.shared;
        let cached = shared.cache.pods().into_iter().map(|cached| format!("{}@{}", cached.pod.name(), cached.node));
        let queued = shared.queue.places().into_iter().map(|(pod, place)| format!("{}:{place:?}", pod.name()));
        let mut pods: Vec<String> = cached.chain(queued).collect();
        pods.sort();
        let nodes: Vec<String> = shared.cache.nodes().iter().map(|node| node.name().to_owned()).collect();
        format!("{}; {}", pods.join(" "), nodes.join(" "))
    }

    fn is_synced(&self) -> bool {
        self.ingest.synced().now_or_never().is_some()
    }
}

fn server() -> (ApiServer, SimClock) {
    let time = SimClock::new("2026-01-01T00:00:00Z".parse().expect("a time"));
    let clock = time.clone();
    (ApiServer::new(Options::new(move || clock.now().wall)), time)
}

fn create(server: &ApiServer, value: Value) {
    server.load(value).unwrap_or_else(|status| panic!("{status:?}"));
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(test);
}

fn pods(fixtures: &[PodFixture]) -> impl Iterator<Item = Value> + '_ {
    fixtures.iter().map(|fixture| fixture.clone().json())
}

#[test]
fn caches_and_queue_follow_the_cluster() {
    run(async {
        let (server, time) = server();
        create(&server, node("n").json());
        for value in pods(&[pod("a").on("n"), pod("b"), pod("c").on("m"), pod("d").scheduler("other")]) {
            create(&server, value);
        }
        let world = World::start(server, time, EventResource::Node).await;
        assert!(world.is_synced() && world.ingest.unsynced().is_empty());
        assert_eq!(world.print(), "a@n b:Active c@m; m n");
        let shared = &world.engine.shared;
        assert_eq!(shared.pods.len(), 4);
        let namespaces = shared.listers.ask::<Namespace>().expect("the queue asked for namespaces");
        assert!(namespaces.get("kube-system").is_some(), "the queue and plugins look namespaces up");
        let target = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"}, "target": {"kind": "Node", "name": "n"}});
        world.server.bind("default", &target).unwrap_or_else(|status| panic!("{status:?}"));
        create(&world.server, node("o").json());
        world.settle().await;
        assert_eq!(world.print(), "a@n b@n c@m; m n o");
        assert!(world.engine.check_places(&crate::engine::UnfinishedCycles::default()).is_empty());
    });
}

#[test]
fn changes_without_an_open_watch_are_caught_up() {
    run(async {
        let (server, time) = server();
        for name in ["n", "o"] {
            create(&server, node(name).json());
        }
        for value in pods(&[pod("a").on("n"), pod("b"), pod("c").on("o")]) {
            create(&server, value);
        }
        let world = World::start(server, time, EventResource::Node).await;
        let delete = |kind, namespace, name| {
            let options = crate::apiserver::DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
            world.server.delete(kind, namespace, name, &options).unwrap_or_else(|status| panic!("{status:?}"));
        };
        world.server.faults().drop_all_watches();
        for name in ["a", "b"] {
            delete(&kinds::PODS, "default", name);
        }
        delete(&kinds::NODES, "", "o");
        // Another pod with the same name is created on another node.
        delete(&kinds::PODS, "default", "c");
        create(&world.server, pod("c").uid("other").on("n").json());
        world.server.faults().compact(&kinds::PODS);
        world.server.faults().compact(&kinds::NODES);
        world.settle().await;
        world.time.advance(Duration::from_secs(2));
        world.server.tick();
        world.settle().await;
        assert_eq!(world.print(), "c@n; n");
    });
}

#[test]
fn unknown_kind_keeps_the_ingest_unsynced() {
    run(async {
        let (server, time) = server();
        create(&server, pod("a").json());
        let world = World::start(server, time, EventResource::Other("foos.v1.example.com".into())).await;
        assert!(!world.is_synced());
        assert_eq!(world.ingest.unsynced(), ["foos.v1.example.com"]);
        assert_eq!(world.print(), "a:Active; ");
    });
}

#[test]
fn a_corrupted_cache_ends_the_process() {
    run(async {
        let (server, time) = server();
        create(&server, pod("a").on("n").json());
        let mut world = World::start(server, time, EventResource::Node).await;
        let version = (world.server.version() + 1).to_string();
        let moved = pod("a").on("m").set("metadata.resourceVersion", version.into()).json();
        world.server.faults().inject_raw(&kinds::PODS, "default", "a", moved.to_string());
        assert_eq!(world.engine.fatal.recv().await, Some(TaskEnd::Ended { name: "pods" }));
    });
}

#[test]
fn unreadable_objects_are_counted() {
    run(async {
        let (server, time) = server();
        let broken =
            json!({"metadata": {"name": "n", "resourceVersion": "9"}, "status": {"allocatable": {"cpu": "much"}}});
        server.faults().inject_raw(&kinds::NODES, "", "n", broken.to_string());
        let world = World::start(server, time, EventResource::Node).await;
        assert!(world.is_synced());
        assert_eq!((world.ingest.unreadable(), world.print()), (1, "; ".to_owned()));
    });
}
