//! Tests of reflectors of pods with the embedded API server, on one thread and in virtual time.

mod lists;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::request::Parts as Head;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::decode::{Reading, Unreadable};
use super::super::deliver::Sink;
use super::super::deliver::tests::Recorder;
use super::{Parts, Reflector, Refusals, Source};
use crate::apiserver::{ApiServer, DeleteOptions, Fault, Options, kinds};
use crate::cache::{CacheError, PodRef};
use crate::clock::{Now, Rng, SimClock};
use crate::k8s::Pod;
use crate::testing::pod;

struct World {
    server: ApiServer,
    time: SimClock,
    sink: Arc<Recorder>,
    /// The reflector's requests in short form: `watch-list`, `list 0`, `watch 7`.
    requests: Arc<Mutex<Vec<String>>>,
    synced: Arc<AtomicBool>,
    unreadable: Unreadable,
}

impl World {
    fn new() -> Self {
        let time = SimClock::new("2026-01-01T00:00:00Z".parse().expect("a time"));
        let clock = time.clock();
        let server = ApiServer::new(Options::new(move || clock.now().wall));
        let world = Self {
            server,
            time,
            sink: Arc::default(),
            requests: Arc::default(),
            synced: Arc::default(),
            unreadable: Unreadable::default(),
        };
        world.inject(|_| None);
        world
    }

    /// Returns a world in which a reflector has delivered these pods and watches.
    async fn watching(pods: &[&str]) -> Self {
        let world = Self::new();
        pods.iter().for_each(|name| world.create(name));
        let _task = world.start(world.sink.clone());
        world.heard().await;
        world
    }

    /// Records every request, and lets `fault` choose a fault by the request's short form.
    fn inject(&self, fault: impl Fn(&str) -> Option<Fault> + Send + Sync + 'static) {
        let requests = self.requests.clone();
        self.server.faults().set(move |head| {
            let short = shorten(head);
            let fault = fault(&short);
            requests.lock().expect("no test panics under it").push(short);
            fault
        });
    }

    /// Starts a reflector of the pods that have not terminated.
    fn start<S: Sink<Object = Pod>>(&self, sink: S) -> JoinHandle<CacheError> {
        self.start_with(self.server.client(), sink)
    }

    fn start_with<S: Sink<Object = Pod>>(&self, client: kube::Client, sink: S) -> JoinHandle<CacheError> {
        let synced = self.synced.clone();
        let reflector = Reflector::new(Parts {
            client,
            source: Source {
                path: "/api/v1/pods".into(),
                field_selector: "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
            },
            reading: Reading {
                kind: "pods".into(),
                unreadable: self.unreadable.clone(),
                read: Box::new(|raw| serde_json::from_str(raw.get())),
            },
            sink,
            clock: self.time.clock(),
            rng: Rng::from_seed(1),
            refusals: Refusals::default(),
            synced: Box::new(move || assert!(!synced.swap(true, Ordering::Relaxed), "synced once")),
        });
        tokio::spawn(reflector.run())
    }

    /// Runs all tasks until none can make progress at this time.
    async fn settle(&self) {
        let mut quiet = 0;
        while quiet < 20 {
            tokio::task::yield_now().await;
            quiet = if self.server.pending() == 0 { quiet + 1 } else { 0 };
        }
    }

    /// Returns the deliveries and the requests since the last call.
    async fn heard(&self) -> (String, String) {
        self.settle().await;
        let requests = std::mem::take(&mut *self.requests.lock().expect("no test panics under it"));
        (self.sink.take(), requests.join(", "))
    }

    #[track_caller]
    fn expect(heard: &(String, String), changes: &str, requests: &str) {
        assert_eq!((heard.0.as_str(), heard.1.as_str()), (changes, requests));
    }

    async fn pass(&self, seconds: u64) {
        self.time.advance(Duration::from_secs(seconds));
        self.server.tick();
        self.settle().await;
    }

    fn create(&self, name: &str) {
        self.server.create(pod(name).json()).unwrap_or_else(|status| panic!("{status:?}"));
    }

    fn set_phase(&self, name: &str, phase: &str) {
        let patch = json!({"status": {"phase": phase}});
        self.server.patch_status(&kinds::PODS, "default", name, patch).unwrap_or_else(|status| panic!("{status:?}"));
    }

    /// Deletes a pod without grace period. Watches see an update with a deletion timestamp, and then the deletion.
    fn delete(&self, name: &str) {
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        self.server.delete(&kinds::PODS, "default", name, &options).unwrap_or_else(|status| panic!("{status:?}"));
    }

    fn version_of(&self, name: &str) -> u64 {
        self.server.get(&kinds::PODS, "default", name).expect("it exists").version()
    }
}

fn shorten(head: &Head) -> String {
    let query = head.uri.query().unwrap_or_default();
    let parameter = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next().unwrap_or_default()
    };
    let verb = match (&*parameter("watch"), &*parameter("sendInitialEvents")) {
        ("true", "true") => "watch-list",
        ("true", _) => "watch",
        _ => "list",
    };
    let rest = [parameter("limit"), parameter("resourceVersion")].join(" ");
    let next = if parameter("continue").is_empty() { "" } else { " continued" };
    format!("{verb} {}{next}", rest.trim()).trim().to_owned()
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(test);
}

#[test]
fn a_watch_that_begins_with_all_objects() {
    run(async {
        let world = World::new();
        world.create("b");
        world.create("a");
        let _task = world.start(world.sink.clone());
        World::expect(&world.heard().await, "+default/a, +default/b", "watch-list");
        assert!(world.synced.load(Ordering::Relaxed));
        world.create("c");
        let before = world.version_of("a");
        world.set_phase("a", "Running");
        world.delete("b");
        let change = format!("~default/a {before}>{}", world.version_of("a"));
        let (changes, requests) = world.heard().await;
        assert!(changes.starts_with(&format!("+default/c, {change}, ~default/b")), "{changes}");
        assert!(changes.ends_with(", -default/b") && requests.is_empty(), "{changes}");
        assert_eq!(world.sink.store.keys(), ["default/a", "default/c"]);
    });
}

#[test]
fn nothing_to_tell_is_synced_too() {
    run(async {
        let world = World::new();
        let _task = world.start(world.sink.clone());
        World::expect(&world.heard().await, "", "watch-list");
        assert!(world.synced.load(Ordering::Relaxed));
    });
}

#[test]
fn pods_that_end_are_gone() {
    run(async {
        let world = World::new();
        world.create("a");
        world.create("b");
        world.set_phase("b", "Failed");
        let _task = world.start(world.sink.clone());
        World::expect(&world.heard().await, "+default/a", "watch-list");
        world.set_phase("a", "Succeeded");
        World::expect(&world.heard().await, "-default/a", "");
    });
}

#[test]
fn a_broken_watch_goes_on_where_it_was() {
    run(async {
        let world = World::watching(&["a"]).await;
        world.create("b");
        world.settle().await;
        let (first, last) = (world.version_of("a"), world.version_of("b"));
        world.server.faults().drop_watches(&kinds::PODS);
        world.set_phase("a", "Running");
        let changes = format!("+default/b, ~default/a {first}>{}", world.version_of("a"));
        World::expect(&world.heard().await, &changes, &format!("watch {last}"));
    });
}

#[test]
fn bookmarks_move_the_version() {
    run(async {
        let world = World::watching(&["a"]).await;
        for name in ["x", "y"] {
            world
                .server
                .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .expect("new");
        }
        let newest = world.server.version();
        assert!(newest > world.version_of("a"));
        world.pass(61).await;
        world.server.faults().drop_watches(&kinds::PODS);
        World::expect(&world.heard().await, "", &format!("watch {newest}"));
    });
}

#[test]
fn a_watch_that_times_out_is_renewed() {
    run(async {
        let world = World::watching(&["a"]).await;
        // Watch timeouts are between five and ten minutes.
        world.pass(300).await;
        World::expect(&world.heard().await, "", "");
        world.pass(301).await;
        World::expect(&world.heard().await, "", &format!("watch {}", world.server.version()));
        world.create("b");
        World::expect(&world.heard().await, "+default/b", "");
    });
}

#[test]
fn a_forgotten_version_starts_over_and_finds_what_is_gone() {
    run(async {
        let world = World::watching(&["a", "b", "c"]).await;
        let last = world.version_of("c");
        world.server.faults().drop_watches(&kinds::PODS);
        world.delete("b");
        world.create("d");
        world.server.faults().compact(&kinds::PODS);
        World::expect(&world.heard().await, "", &format!("watch {last}"));
        // The backoff is between 0.8 and 1.6 s.
        world.pass(2).await;
        World::expect(&world.heard().await, "-default/b (missed), +default/d", &format!("watch-list {last}"));
        world.delete("d");
        assert!(world.heard().await.0.ends_with(", -default/d"));
    });
}

#[test]
fn a_pod_replaced_while_nobody_watched_is_another_pod() {
    run(async {
        let world = World::watching(&["a"]).await;
        world.server.faults().drop_watches(&kinds::PODS);
        world.delete("a");
        world.create("a");
        world.server.faults().compact(&kinds::PODS);
        world.settle().await;
        world.pass(2).await;
        assert_eq!(world.heard().await.0, "-default/a (missed), +default/a");
    });
}

#[test]
fn a_busy_server_is_asked_again_later_for_the_same_watch() {
    run(async {
        let world = World::watching(&["a"]).await;
        let last = world.version_of("a");
        world.inject(|request| request.starts_with("watch").then_some(Fault::Status(429, None)));
        world.server.faults().drop_watches(&kinds::PODS);
        World::expect(&world.heard().await, "", &format!("watch {last}"));
        world.pass(2).await;
        World::expect(&world.heard().await, "", &format!("watch {last}"));
        world.inject(|_| None);
        world.create("b");
        world.pass(4).await;
        World::expect(&world.heard().await, "+default/b", &format!("watch {last}"));
    });
}

#[test]
fn a_broken_connection_before_anything_was_told() {
    run(async {
        let world = World::new();
        world.create("a");
        world.inject(|_| Some(Fault::DropConnectionBeforeReply));
        let _task = world.start(world.sink.clone());
        World::expect(&world.heard().await, "", "watch-list, list 500 0");
        world.inject(|_| None);
        world.pass(2).await;
        World::expect(&world.heard().await, "+default/a", "watch-list");
    });
}

#[test]
fn a_watch_that_ends_at_once_is_no_watch() {
    run(async {
        let world = World::watching(&["a"]).await;
        let last = world.version_of("a");
        world.inject(|request| request.starts_with("watch ").then_some(Fault::DropWatch));
        world.server.faults().drop_watches(&kinds::PODS);
        World::expect(&world.heard().await, "", &format!("watch {last}"));
        world.pass(2).await;
        World::expect(&world.heard().await, "", &format!("watch-list {last}"));
    });
}

#[test]
fn objects_that_cannot_be_read_fail_nothing() {
    run(async {
        let world = World::new();
        let raw = |name: &str, version: &str| -> Value {
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"namespace": "default", "name": name, "uid": name, "resourceVersion": version},
                "spec": {"containers": "none"},
            })
        };
        world.create("a");
        let version = (world.server.version() + 1).to_string();
        world.server.faults().inject_raw(&kinds::PODS, "default", "broken", raw("broken", &version).to_string());
        let _task = world.start(world.sink.clone());
        World::expect(&world.heard().await, "+default/a", "watch-list");
        assert_eq!(world.unreadable.count(), 1);
        let version = world.server.version() + 1;
        let bytes = raw("worse", &version.to_string()).to_string();
        assert_eq!(world.server.faults().inject_raw(&kinds::PODS, "default", "worse", bytes), version);
        world.settle().await;
        world.server.faults().drop_watches(&kinds::PODS);
        world.create("b");
        World::expect(&world.heard().await, "+default/b", &format!("watch {version}"));
        assert_eq!(world.unreadable.count(), 2);
    });
}

/// A sink that fails as if the cache was corrupted.
struct Failing;

fn corrupted() -> CacheError {
    let pod = PodRef { uid: "u".into(), key: "default/a".into() };
    CacheError::Corrupted { doing: "test", pod, cached: "x".into(), claimed: "y".into() }
}

impl Sink for Failing {
    type Object = Pod;

    fn keys(&self) -> Vec<String> {
        Vec::new()
    }

    fn apply(&self, _: Pod, _: Now) -> Result<(), CacheError> {
        Err(corrupted())
    }

    fn delete(&self, _: Pod, _: Now) -> Result<(), CacheError> {
        Err(corrupted())
    }

    fn remove(&self, _: &str, _: Now) -> Result<(), CacheError> {
        Err(corrupted())
    }
}

#[test]
fn a_corrupted_cache_ends_the_reflector() {
    run(async {
        let world = World::new();
        world.create("a");
        let task = world.start(Failing);
        assert_eq!(task.await.expect("it does not panic"), corrupted());
        let world = World::new();
        let task = world.start(Failing);
        world.settle().await;
        assert!(!task.is_finished());
        world.create("a");
        assert_eq!(task.await.expect("it does not panic"), corrupted());
    });
}
