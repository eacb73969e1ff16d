//! A plugin declares what it needs in its factory: listers, indexes, and state that all profiles share.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{LimitRange, PersistentVolume, Service};
use kube::api::DynamicObject;
use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::SimClock;
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::engine::Engine;
use kube_scheduler::framework::{
    CycleContext, Handle, NodeRef, Plugin, PluginError, Registration, Registry, ScorePlugin, Scratch,
};
use kube_scheduler::ingest::Ingest;
use kube_scheduler::listers::{Change, Index, IndexBy, Kind, Lister, Observer};
use kube_scheduler::plugins;
use serde_json::{Value, json};

/// Volumes by class.
struct ByClass;

impl IndexBy<PersistentVolume> for ByClass {
    type Key = String;

    fn keys(volume: &PersistentVolume) -> Vec<String> {
        volume.spec.iter().filter_map(|spec| spec.storage_class_name.clone()).collect()
    }
}

/// The names of the volumes that were added and deleted, in order.
#[derive(Default)]
struct History(Mutex<Vec<String>>);

impl Observer<PersistentVolume> for History {
    fn changed(&self, change: &Change<PersistentVolume>) {
        let (sign, volume) = match change {
            Change::Added(volume) => ('+', volume),
            Change::Updated { new, .. } => ('~', new),
            Change::Deleted { last, .. } => ('-', last),
        };
        let name = volume.metadata.name.as_deref().unwrap_or_default();
        self.0.lock().expect("no test panics under it").push(format!("{sign}{name}"));
    }
}

/// The plugin of one profile, with the listers, index and shared state that its factory asked for.
#[derive(Clone)]
struct Needs {
    services: Lister<Service>,
    classes: Lister<DynamicObject>,
    by_class: Index<PersistentVolume, ByClass>,
    history: Arc<History>,
    handle: Handle,
}

impl Plugin for Needs {
    fn name(&self) -> &'static str {
        "Needs"
    }
}

impl ScorePlugin for Needs {
    fn score(&self, _: &CycleContext<'_>, _: NodeRef<'_>, _: Option<&Scratch>) -> Result<i64, PluginError> {
        Ok(0)
    }
}

impl Needs {
    fn new(handle: &Handle) -> Result<Self, PluginError> {
        let volumes = handle.lister::<PersistentVolume>()?;
        let history = handle.shared(|| {
            let history = Arc::new(History::default());
            volumes.observe(history.clone())?;
            Ok(history)
        })?;
        Ok(Self {
            services: handle.lister()?,
            classes: handle.dynamic_lister(Kind::new("storage.k8s.io", "v1", "storageclasses"))?,
            by_class: volumes.index()?,
            history,
            handle: handle.clone(),
        })
    }
}

/// Two profiles that have the plugin, and no other that reads anything.
fn config(plugins: &Registry) -> Config {
    let enabled = ["PrioritySort", "DefaultBinder", "Needs"].map(|name| json!({"name": name, "weight": 1}));
    let enabled = json!({"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}});
    let profiles = ["one", "two"].map(|name| json!({"schedulerName": name, "plugins": enabled}));
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": profiles,
    });
    Config::parse(config.to_string().as_bytes(), &FeatureGates::default(), plugins.catalog()).expect("a configuration")
}

async fn settle(server: &ApiServer) {
    let mut quiet = 0;
    while quiet < 64 {
        tokio::task::yield_now().await;
        quiet = if server.pending() == 0 { quiet + 1 } else { 0 };
    }
}

fn volume(name: &str, class: &str) -> Value {
    let spec = json!({
        "storageClassName": class, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
    });
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})
}

async fn a_plugin_gets_what_its_factory_asks_for() {
    let clock = SimClock::new("2026-01-01T00:00:00Z".parse().expect("a time"));
    let server = ApiServer::new(Options { create_namespaces: true, ..Options::by_clock(&clock.clock()) });
    let load = |object: Value| server.load(object).map(drop).expect("an object that a server would take");
    load(volume("before", "fast"));
    let built: Arc<Mutex<Vec<Needs>>> = Arc::default();
    let mut registry = plugins::registry();
    let keep = built.clone();
    let factory = move |(), handle: &Handle| {
        let needs = Needs::new(handle)?;
        keep.lock().expect("no test panics under it").push(needs.clone());
        Ok(Registration::new("Needs").score(&Arc::new(needs)))
    };
    registry.register("Needs", factory).expect("the name is new");
    let config = config(&registry);
    let engine = Engine::builder(server.client(), config, registry).clock(clock.clock()).build().await;
    let engine = engine.expect("an engine");
    let ingest = Ingest::new(&engine.shared, &engine.profiles, &engine.gates, server.client());
    assert_eq!(
        ingest.resources(),
        "csinodes.storage.k8s.io,deviceclasses.resource.k8s.io,namespaces,nodes,persistentvolumes,pods,\
         resourceclaims.resource.k8s.io,resourceslices.resource.k8s.io,services,storageclasses.storage.k8s.io"
    );
    ingest.start(|name, task| engine.tasks.serve(name, task));
    ingest.synced().await;
    load(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"clusterIP": "None"}}));
    load(
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "p"}),
    );
    load(volume("after", "fast"));
    load(volume("other", "slow"));
    settle(&server).await;

    let profiles = built.lock().expect("no test panics under it").clone();
    for needs in &profiles {
        assert!(needs.services.get_in("default", "web").is_some());
        assert_eq!(needs.classes.keys(), ["fast"]);
        let names = needs.by_class.get("fast").into_iter().filter_map(|volume| volume.metadata.name.clone());
        assert_eq!(names.collect::<Vec<_>>(), ["after", "before"]);
        let error = needs.handle.lister::<LimitRange>().expect_err("nobody asked for limit ranges in a factory");
        let expected =
            "a lister of limitranges.v1 was requested after watches had started; request it in the plugin's factory";
        assert_eq!(error.to_string(), expected);
    }
    assert!(profiles.len() == 2 && Arc::ptr_eq(&profiles[0].history, &profiles[1].history), "one for all profiles");
    let history = profiles[0].history.0.lock().expect("no test panics under it").join(" ");
    assert_eq!(history, "+before +after +other");
}

#[test]
fn plugins_get_the_listers_they_request() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(a_plugin_gets_what_its_factory_asks_for());
}
