//! Tests that read the embedded API server, on one thread.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use http::request::Parts;
use serde_json::{Value, json};

use super::*;
use crate::apiserver::{ApiServer, Fault, Options, kinds};
use crate::clock::SimClock;
use crate::plugins;
use crate::testing::{node, pod};

struct World {
    server: ApiServer,
    time: SimClock,
    /// The requests so far, as `GET /path?query`.
    requests: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// Creates a cluster with two nodes, a pod on one of them and a pending pod.
    fn new() -> Self {
        let time = SimClock::new("2026-01-01T00:00:00Z".parse().expect("a time"));
        let clock = time.clock();
        let server = ApiServer::new(Options::new(move || clock.now().wall));
        let world = Self { server, time, requests: Arc::default() };
        for object in [node("a").json(), node("b").json(), pod("there").on("a").json(), pod("p").json()] {
            world.load(object);
        }
        world.inject(|_| None);
        world
    }

    fn load(&self, object: Value) {
        self.server.load(object).unwrap_or_else(|status| panic!("{status:?}"));
    }

    /// Records every request, and injects the fault that `fault` returns for the request's path.
    fn inject(&self, fault: impl Fn(&str) -> Option<Fault> + Send + Sync + 'static) {
        let requests = self.requests.clone();
        self.server.faults().set(move |Parts { method, uri, .. }| {
            requests.lock().expect("no test panics under it").push(format!("{method} {uri}"));
            fault(uri.path())
        });
    }

    /// Returns the nodes, pending pods and other pods, or the error.
    async fn read(&self) -> Result<String, String> {
        let gates = FeatureGates::default();
        let reader = Reader {
            client: self.server.client(),
            url: "https://server".to_owned(),
            config: Config::defaults(&gates, plugins::registry().catalog()),
            gates,
            plugins: plugins::registry(),
            clock: self.time.clock(),
        };
        let loading = reader.read().await.map_err(|error| error.to_string())?;
        let nodes: Vec<&str> = loading.snapshot.nodes().iter().map(|node| node.name()).collect();
        let pending: Vec<&str> = loading.pending.iter().map(|pod| &**pod.key()).collect();
        let others: Vec<&str> = loading.others.iter().map(|pod| pod.name()).collect();
        Ok(format!("{}; {}; {}", nodes.join(" "), pending.join(" "), others.join(" ")))
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(test);
}

/// Returns the paths that the role in `deploy` permits to list.
fn allowed() -> BTreeSet<String> {
    let role: Value = serde_yaml::from_str(include_str!("../../../deploy/explain-role.yaml")).expect("a manifest");
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut paths = BTreeSet::new();
    for rule in role["rules"].as_array().expect("rules") {
        assert_eq!(texts(&rule["verbs"]), ["list"]);
        for group in texts(&rule["apiGroups"]) {
            let root = if group.is_empty() { "/api/v1".to_owned() } else { format!("/apis/{group}/v1") };
            paths.extend(texts(&rule["resources"]).iter().map(|resource| format!("{root}/{resource}")));
        }
    }
    paths
}

#[test]
fn what_the_role_allows_is_listed_and_nothing_else() {
    run(async {
        let world = World::new();
        world.load(pod("ended").json());
        let ended = json!({"status": {"phase": "Succeeded"}});
        world.server.patch_status(&kinds::PODS, "default", "ended", ended).expect("it is there");
        assert_eq!(world.read().await.as_deref(), Ok("a b; default/p; there"));
        let requests = world.requests.lock().expect("no test panics under it");
        let mut paths = BTreeSet::new();
        for request in &*requests {
            let path = request.strip_prefix("GET ").expect("nothing but reading");
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            if !matches!(path, "/version" | "/apis/events.k8s.io/v1") {
                assert!(query.ends_with("limit=500") && !query.contains("watch"), "{request}");
                paths.insert(path.to_owned());
            }
        }
        assert_eq!(paths, allowed());
    });
}

#[test]
fn many_objects_come_in_pages() {
    run(async {
        let world = World::new();
        for number in 0..1100 {
            world.load(pod(&format!("q{number:04}")).scheduler("other").json());
        }
        let read = world.read().await.expect("a cluster");
        assert_eq!(read.split(' ').filter(|name| name.starts_with('q')).count(), 1100);
        let requests = world.requests.lock().expect("no test panics under it");
        assert_eq!(requests.iter().filter(|request| request.starts_with("GET /api/v1/pods?")).count(), 3);
    });
}

#[test]
fn what_can_be_done_without_is_left_out() {
    run(async {
        let world = World::new();
        world.inject(|path| match path {
            path if path.ends_with("/poddisruptionbudgets") => Some(Fault::Status(403, None)),
            path if path.ends_with("/resourceslices") => Some(Fault::Status(404, None)),
            path if path.ends_with("/namespaces") => Some(Fault::Status(500, None)),
            path if path.ends_with("/services") => Some(Fault::DropConnectionBeforeReply),
            _ => None,
        });
        assert_eq!(world.read().await.as_deref(), Ok("a b; default/p; there"));
    });
}

#[test]
fn nodes_and_pods_are_required() {
    run(async {
        let check = async |kind: &'static str, code: u16, expected: &str| {
            let world = World::new();
            world.inject(move |path| path.ends_with(kind).then_some(Fault::Status(code, None)));
            let error = world.read().await.expect_err("nothing can be said");
            assert!(error.starts_with(&format!("cannot list {kind}: ")) && error.ends_with(expected), "{error}");
        };
        check("nodes", 403, "; deploy/explain-role.yaml has a ClusterRole with the required permissions").await;
        check("pods", 401, "").await;
    });
}

#[test]
fn objects_are_taken_as_they_are() {
    run(async {
        let world = World::new();
        let raw = |name: &str, spec: Value| {
            let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}).to_string();
            world.server.faults().inject_raw(&kinds::PODS, "default", name, object);
        };
        // An API server would reject the first pod today. The second one cannot be parsed.
        raw("odd", json!({"schedulerName": "default-scheduler", "containers": []}));
        raw("broken", json!({"priority": "high"}));
        assert_eq!(world.read().await.as_deref(), Ok("a b; default/odd default/p; there"));
    });
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    run(async {
        let world = World::new();
        world.inject(|_| Some(Fault::Delay(crate::apiserver::Gate::new())));
        let reading = world.read();
        let passing = async {
            while world.requests.lock().expect("no test panics under it").is_empty() {
                tokio::task::yield_now().await;
            }
            world.time.advance(REACHED);
            std::future::pending::<()>().await;
        };
        let outcome = tokio::select! { outcome = reading => outcome, () = passing => unreachable!("it never ends") };
        assert_eq!(
            outcome.expect_err("nobody answers"),
            "the API server https://server is unreachable: no response within 10 s"
        );
    });
}

#[test]
fn nothing_is_written() {
    run(async {
        let world = World::new();
        let client = read_only(world.server.client());
        let request = Request::delete("/api/v1/namespaces/default/pods/p").body(Vec::new()).expect("a request");
        let error = client.request_text(request).await.expect_err("it is refused");
        assert!(
            error.to_string().ends_with("DELETE /api/v1/namespaces/default/pods/p: this client is read-only"),
            "{error}"
        );
        assert!(world.requests.lock().expect("no test panics under it").is_empty());
    });
}
