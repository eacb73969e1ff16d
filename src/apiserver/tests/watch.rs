//! Tests of watches: the events of a stream, their order, and a real watcher that survives every interruption.

use std::collections::BTreeMap;
use std::pin::pin;

use futures::{Stream, StreamExt as _};
use http::Method;
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};

use super::super::{ApiServer, ReplyBody, kinds};
use super::{PODS, World, binding, pod, with};

/// Returns the lines that a stream has ready.
async fn ready(world: &World, body: &mut ReplyBody) -> Vec<Value> {
    let mut text = Vec::new();
    while world.server.pending() > 0 {
        let Some(frame) = body.frame().await else { break };
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Formats each line as the type, the name, `@` and the version.
fn brief(lines: &[Value]) -> Vec<String> {
    lines
        .iter()
        .map(|line| {
            let metadata = &line["object"]["metadata"];
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            format!("{} {}@{}", text(&line["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]))
        })
        .collect()
}

async fn watch(world: &World, query: &str) -> ReplyBody {
    let response = world.open(Method::GET, &format!("/api/v1/pods?watch=true&{query}"), "", "").await;
    assert_eq!(response.status(), 200);
    response.into_body()
}

fn version(value: &Value) -> u64 {
    value["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_streaming_list_ends_with_a_bookmark() {
    let world = World::new();
    let first = version(&world.create(pod("a")));
    let query = "allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut body = watch(&world, query).await;
    assert_eq!(world.server.pending(), 2);
    let lines = ready(&world, &mut body).await;
    assert_eq!(brief(&lines), [format!("ADDED a@{first}"), format!("BOOKMARK -@{first}")]);
    assert_eq!(
        lines[1]["object"],
        json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": first.to_string(),
            "annotations": {"k8s.io/initial-events-end": "true"}}, "spec": {"containers": null}, "status": {}})
    );
    let second = version(&world.create(pod("b")));
    assert_eq!(brief(&ready(&world, &mut body).await), [format!("ADDED b@{second}")]);
    let (code, status) = world.get("/api/v1/pods?watch=true&sendInitialEvents=true").await;
    assert_eq!((code.as_u16(), status["details"]["kind"].as_str().unwrap()), (422, "ListOptions"));
}

#[tokio::test]
async fn selector_changes_become_added_and_deleted() {
    let world = World::new();
    let from = world.server.version();
    let mut body = watch(
        &world,
        &format!("resourceVersion={from}&fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed"),
    )
    .await;
    let mut unbound = watch(&world, &format!("resourceVersion={from}&fieldSelector=spec.nodeName%3D")).await;
    let made = version(&world.create(pod("a")));
    world.post(&format!("{PODS}/a/binding"), &binding("a", "n")).await;
    let bound = world.server.version();
    let change = json!({"status": {"phase": "Failed"}});
    world.server.patch_status(&kinds::PODS, "default", "a", change).unwrap();
    let failed = world.server.version();
    world.server.patch_status(&kinds::PODS, "default", "a", json!({"status": {"reason": "x"}})).unwrap();
    world.server.patch_status(&kinds::PODS, "default", "a", json!({"status": {"phase": "Pending"}})).unwrap();
    let back = world.server.version();
    let mut text = Vec::new();
    while text.split(|byte| *byte == b'\n').count() < 5 {
        text.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    let lines: Vec<Value> = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(
        brief(&lines),
        [
            format!("ADDED a@{made}"),
            format!("MODIFIED a@{bound}"),
            format!("DELETED a@{failed}"),
            format!("ADDED a@{back}")
        ]
    );
    assert_eq!(lines[2]["object"]["status"]["phase"], "Pending", "the state before, under the new version");
    let lines = ready(&world, &mut unbound).await;
    assert_eq!(brief(&lines), [format!("ADDED a@{made}"), format!("DELETED a@{bound}")]);
    assert_eq!(lines[1]["object"]["spec"]["nodeName"], Value::Null);
}

#[tokio::test]
async fn watch_replays_history_until_compaction() {
    let world = World::new();
    let first = version(&world.create(pod("a")));
    let second = version(&world.create(pod("b")));
    let mut body = watch(&world, &format!("resourceVersion={first}")).await;
    assert_eq!(brief(&ready(&world, &mut body).await), [format!("ADDED b@{second}")]);
    world.server.faults().compact(&kinds::PODS);
    let mut body = watch(&world, &format!("resourceVersion={first}")).await;
    let lines = ready(&world, &mut body).await;
    assert_eq!(lines[0]["type"], "ERROR");
    assert_eq!((&lines[0]["object"]["code"], &lines[0]["object"]["reason"]), (&json!(410), &json!("Expired")));
    assert_eq!(lines[0]["object"]["message"], format!("too old resource version: {first} ({second})"));
    assert!(body.frame().await.is_none(), "the stream ends");
}

#[tokio::test]
async fn watch_older_than_the_history_gets_410() {
    let world = World::with(|options| options.history = 2);
    let versions: Vec<u64> = ["a", "b", "c"].into_iter().map(|name| version(&world.create(pod(name)))).collect();
    let mut body = watch(&world, &format!("resourceVersion={}", versions[0])).await;
    assert_eq!(brief(&ready(&world, &mut body).await).len(), 2);
    let mut body = watch(&world, &format!("resourceVersion={}", versions[0] - 1)).await;
    assert_eq!(ready(&world, &mut body).await[0]["object"]["code"], 410);
}

#[tokio::test]
async fn watch_sends_bookmarks_and_times_out() {
    let world = World::new();
    let mut body = watch(&world, "resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=90").await;
    world.pass(59);
    assert_eq!(world.server.pending(), 0);
    world.pass(1);
    let lines = ready(&world, &mut body).await;
    assert_eq!(brief(&lines), [format!("BOOKMARK -@{}", world.server.version())]);
    world.pass(28);
    assert_eq!(brief(&ready(&world, &mut body).await).len(), 1, "one more shortly before the end");
    world.pass(1);
    assert_eq!(world.server.pending(), 0);
    world.pass(1);
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn watch_at_a_future_version_waits_for_it() {
    let world = World::new();
    let soon = world.server.version() + 2;
    let mut body = watch(&world, &format!("resourceVersion={soon}")).await;
    world.create(pod("a"));
    world.create(pod("b"));
    assert_eq!(world.server.pending(), 0);
    world.create(pod("c"));
    assert_eq!(brief(&ready(&world, &mut body).await), [format!("ADDED c@{}", soon + 1)]);
    let (code, status) = world.get("/api/v1/pods?watch=true&resourceVersion=abc").await;
    assert_eq!((code.as_u16(), status["status"].as_str().unwrap()), (500, "Failure"));
}

#[tokio::test]
async fn pending_counts_unread_watch_events() {
    let world = World::new();
    let mut body = watch(&world, "resourceVersion=0").await;
    world.create(pod("a"));
    assert_eq!(world.server.pending(), 1);
    let _prefix = body.frame().await.unwrap().unwrap();
    let _object = body.frame().await.unwrap().unwrap();
    assert_eq!(world.server.pending(), 1, "the line is not over");
    let _end = body.frame().await.unwrap().unwrap();
    assert_eq!(world.server.pending(), 0);
    world.create(pod("b"));
    world.create(pod("c"));
    let _prefix = body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(world.server.pending(), 0, "a dropped stream takes its events with it");
    let response = world.open(Method::GET, "/api/v1/pods", "", "").await;
    assert_eq!(world.server.pending(), 1, "a reply that has not been read");
    drop(response);
    assert_eq!(world.server.pending(), 0);
}

/// Applies a watcher's events to a map until the map equals the server's state. Returns the number of errors.
async fn follow(
    server: &ApiServer,
    events: &mut (impl Stream<Item = watcher::Result<Event<Pod>>> + Unpin),
    seen: &mut BTreeMap<String, String>,
) -> usize {
    let expected: BTreeMap<String, String> = server
        .list(&kinds::PODS)
        .iter()
        .map(|object| (object.name().to_owned(), object.version().to_string()))
        .collect();
    let mut errors = 0;
    let mut fresh = None;
    for _ in 0..10_000 {
        if fresh.is_none() && *seen == expected {
            return errors;
        }
        let entry = |pod: Pod| (pod.metadata.name.unwrap(), pod.metadata.resource_version.unwrap());
        match events.next().await.unwrap() {
            Ok(Event::Init) => fresh = Some(BTreeMap::new()),
            Ok(Event::InitApply(pod)) => {
                fresh.as_mut().unwrap().extend([entry(pod)]);
            }
            Ok(Event::InitDone) => *seen = fresh.take().unwrap(),
            Ok(Event::Apply(pod)) => seen.extend([entry(pod)]),
            Ok(Event::Delete(pod)) => {
                seen.remove(&pod.metadata.name.unwrap());
            }
            Err(_) => errors += 1,
        }
    }
    panic!("never caught up: {seen:?} is not {expected:?}");
}

#[tokio::test]
async fn kube_watcher_survives_drops_and_compaction() {
    let world = World::new();
    world.create(pod("a"));
    let api: Api<Pod> = Api::all(world.server.client());
    let mut events = pin!(watcher::watcher(api, watcher::Config::default().streaming_lists()));
    let mut seen = BTreeMap::new();
    follow(&world.server, &mut events, &mut seen).await;
    world.create(pod("b"));
    follow(&world.server, &mut events, &mut seen).await;

    world.server.faults().drop_watches(&kinds::PODS);
    world.create(pod("c"));
    follow(&world.server, &mut events, &mut seen).await;

    world.create(pod("d"));
    world.server.delete(&kinds::PODS, "default", "a", &super::super::DeleteOptions::default()).unwrap();
    world.server.faults().drop_watches(&kinds::PODS);
    world.server.faults().compact(&kinds::PODS);
    let errors = follow(&world.server, &mut events, &mut seen).await;
    assert!(errors >= 1, "the 410 shows as an error and is survived");

    world.create(with(pod("e"), json!({"metadata": {"labels": {"x": "y"}}})));
    follow(&world.server, &mut events, &mut seen).await;
    assert_eq!(world.server.pending(), 0);
}

#[tokio::test]
async fn paging_kube_watcher_gets_every_object() {
    let world = World::new();
    for number in 0..25 {
        world.create(pod(&format!("p{number}")));
    }
    let api: Api<Pod> = Api::all(world.server.client());
    let config = watcher::Config { page_size: Some(10), ..watcher::Config::default() };
    let mut events = pin!(watcher::watcher(api, config));
    let mut seen = BTreeMap::new();
    follow(&world.server, &mut events, &mut seen).await;
    assert_eq!(seen.len(), 25);
    world.create(pod("later"));
    follow(&world.server, &mut events, &mut seen).await;
}
