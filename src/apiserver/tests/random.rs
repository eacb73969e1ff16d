//! Tests with random requests: nothing panics, and the server's counters and replies stay consistent.

use std::collections::BTreeMap;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::super::{ReplyBody, kinds};
use super::World;
use crate::clock::Rng;

/// Generator of random requests. It draws from small sets, so that requests affect the same objects.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Returns a JSON value of any shape, with the names that the server looks for.
    fn value(&mut self, depth: usize) -> Value {
        const NAMES: [&str; 24] = [
            "metadata",
            "spec",
            "status",
            "name",
            "namespace",
            "labels",
            "annotations",
            "finalizers",
            "containers",
            "resources",
            "limits",
            "cpu",
            "conditions",
            "type",
            "nodeName",
            "tolerations",
            "affinity",
            "schedulingGates",
            "$patch",
            "$setElementOrder/conditions",
            "resourceVersion",
            "uid",
            "deletionTimestamp",
            "priorityClassName",
        ];
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(9)),
            3 => json!(self.of(&["", "a", "b", "1", "100m", "delete", "replace", "Exists", "2026-01-01T00:00:00Z"])),
            4 => json!(-1.5),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let entries: Vec<(String, Value)> =
                    (0..self.below(6)).map(|_| (self.of(&NAMES).to_owned(), self.value(depth - 1))).collect();
                entries.into_iter().collect()
            }
        }
    }

    fn body(&mut self) -> Value {
        let name = self.of(&["a", "b", "c"]);
        let mut value = match self.below(3) {
            0 => super::pod(name),
            1 => super::node(name),
            _ => super::binding(name, "n"),
        };
        value["metadata"]["labels"] = json!({"a": self.of(&["b", "c"])});
        if self.below(3) == 0 {
            let noise = self.value(4);
            for (key, noise) in noise.as_object().into_iter().flatten() {
                value[key.as_str()] = noise.clone();
            }
        }
        if self.below(8) == 0 { self.value(3) } else { value }
    }

    /// Returns a request of any type.
    fn request(&mut self) -> (Method, String, &'static str, String) {
        if self.below(2) == 0 {
            return self.sensible();
        }
        let method = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE][self.below(5)].clone();
        let (path, media_type) = (self.path(), self.of(&MEDIA_TYPES));
        let body = if self.below(10) == 0 { "{".to_owned() } else { self.body().to_string() };
        (method, path, media_type, body)
    }

    /// Returns a request that changes a pod.
    fn sensible(&mut self) -> (Method, String, &'static str, String) {
        const STRATEGIC: &str = "application/strategic-merge-patch+json";
        let name = self.of(&["a", "b", "c"]);
        let pods = COLLECTIONS[0];
        let label = json!({"metadata": {"labels": {"a": self.of(&["b", "c"])}}});
        let phase = json!({"status": {"phase": self.of(&["Pending", "Running", "Failed"])}});
        match self.below(6) {
            0 | 1 => {
                let made = super::with(super::pod(name), label);
                (Method::POST, pods.to_owned(), "application/json", made.to_string())
            }
            2 => (Method::PATCH, format!("{pods}/{name}"), STRATEGIC, label.to_string()),
            3 => (Method::PATCH, format!("{pods}/{name}/status"), STRATEGIC, phase.to_string()),
            4 => {
                let bound = super::binding(name, "n").to_string();
                (Method::POST, format!("{pods}/{name}/binding"), "application/json", bound)
            }
            _ => {
                let options = json!({"gracePeriodSeconds": self.below(2)}).to_string();
                (Method::DELETE, format!("{pods}/{name}"), "application/json", options)
            }
        }
    }

    fn path(&mut self) -> String {
        let (base, name) = (self.of(&COLLECTIONS), self.of(&["a", "b", "c", "default"]));
        let query = self.of(&QUERIES);
        match self.below(4) {
            0 => format!("{base}?{query}"),
            1 => format!("{base}/{name}?{query}"),
            2 => format!("{base}/{name}/status"),
            _ => format!("{base}/{name}/{}", self.of(&["binding", "finalize", "none"])),
        }
    }
}

const COLLECTIONS: [&str; 9] = [
    "/api/v1/namespaces/default/pods",
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/events",
    "/apis/events.k8s.io/v1/namespaces/default/events",
    "/apis/batch/v1/namespaces/default/jobs",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/default/deployments",
];
const QUERIES: [&str; 9] = [
    "",
    "watch=true",
    "watch=true&resourceVersion=3",
    "watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&timeoutSeconds=5",
    "limit=1",
    "labelSelector=a%3Db,c+in+(d",
    "fieldSelector=spec.nodeName%3Dn",
    "resourceVersion=5&resourceVersionMatch=Exact",
    "dryRun=All&gracePeriodSeconds=0&propagationPolicy=Orphan",
];
const MEDIA_TYPES: [&str; 6] = [
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/yaml",
    "",
];

/// Reads a watch to its end. Returns the names and versions of the objects that exist at its end, and the number of events.
async fn follow(world: &World, mut body: ReplyBody) -> (BTreeMap<String, String>, usize) {
    let mut text = Vec::new();
    while world.server.pending() > 0 {
        text.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    let (mut seen, mut told) = (BTreeMap::new(), 0);
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event: Value = serde_json::from_slice(line).unwrap();
        let metadata = &event["object"]["metadata"];
        let name = metadata["name"].as_str().unwrap().to_owned();
        let version = metadata["resourceVersion"].as_str().unwrap().to_owned();
        let known = match event["type"].as_str().unwrap() {
            "DELETED" => seen.remove(&name).is_some(),
            kind => seen.insert(name.clone(), version).is_some() == (kind == "MODIFIED"),
        };
        told += 1;
        assert!(known, "an event that does not fit what came before: {event}");
    }
    (seen, told)
}

/// Sends `steps` random requests. Returns a log of the replies and the number of events that a watcher received.
async fn run(seed: u64, steps: usize) -> (Vec<String>, usize) {
    let world = World::with(|options| options.history = 20);
    let mut draw = Draw(Rng::from_seed(seed));
    let query = "watch=true&labelSelector=a%3Db&fieldSelector=spec.nodeName%3D";
    let watched = world.open(Method::GET, &format!("/api/v1/pods?{query}"), "", "").await.into_body();
    let mut streams: Vec<ReplyBody> = Vec::new();
    let mut log = Vec::new();
    for _ in 0..steps {
        let (method, path, media_type, body) = draw.request();
        let response = world.open(method.clone(), &path, media_type, &body).await;
        log.push(format!("{method} {path} {}", response.status()));
        if path.contains("watch=") && method == Method::GET && response.status() == 200 {
            streams.push(response.into_body());
        } else {
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            log.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        if draw.below(20) == 0 {
            world.pass(i64::try_from(draw.below(40)).unwrap());
        }
        if !streams.is_empty() && draw.below(5) == 0 {
            let at = draw.below(streams.len());
            drop(streams.swap_remove(at));
        }
    }
    drop(streams);
    let (known, told) = follow(&world, watched).await;
    let listed: BTreeMap<String, String> = world
        .server
        .list(&kinds::PODS)
        .iter()
        .filter(|pod| pod.label("a") == Some("b") && pod.field("spec.nodeName") == Some(""))
        .map(|pod| (pod.name().to_owned(), pod.version().to_string()))
        .collect();
    assert_eq!(known, listed, "seed {seed}");
    assert_eq!((world.server.pending(), world.server.held()), (0, 0), "seed {seed}");
    for kind in kinds::ALL {
        for object in world.server.list(kind) {
            let value = object.value();
            assert_eq!(value["metadata"]["resourceVersion"], object.version().to_string(), "seed {seed}");
            assert_eq!(value["kind"], kind.kind, "seed {seed}");
        }
    }
    (log, told)
}

#[tokio::test]
async fn random_requests_never_panic_and_are_deterministic() {
    let mut told = 0;
    for seed in 0..20 {
        let first = run(seed, 300).await;
        assert_eq!(first, run(seed, 300).await, "seed {seed}");
        told += first.1;
    }
    assert!(told > 100, "only {told} events: the requests no longer meet each other");
}
