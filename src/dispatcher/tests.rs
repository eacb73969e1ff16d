//! Tests of the order, merging and retries of writes, against a scripted server and on a simulated clock.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::client::RateLimiter;
use crate::client::testing::{Answer, FakeApi, settle, sim_clock};
use crate::clock::SimClock;

struct World {
    api: FakeApi,
    sim: SimClock,
    writes: ApiWrites,
}

fn world() -> World {
    world_with(|rest| rest)
}

fn world_with(change: impl FnOnce(RestClient) -> RestClient) -> World {
    let (api, sim) = (FakeApi::default(), sim_clock());
    let (writes, dispatcher) = ApiWrites::new(change(api.rest(&sim)), Rng::from_seed(1));
    tokio::spawn(dispatcher.run());
    World { api, sim, writes }
}

impl World {
    /// Writes the status of pod `p`. The patch stays in flight until the returned sender sends.
    async fn patch_in_flight(&self, message: &str) -> oneshot::Sender<()> {
        let (held, release) = Answer::held();
        self.api.script([held]);
        self.writes.patch_status(&pod("p"), failed(&pod("p"), message));
        settle().await;
        release
    }

    /// Starts to bind pod `p`.
    fn start_binding(&self) -> JoinHandle<Result<(), ApiError>> {
        let writes = self.writes.clone();
        tokio::spawn(async move { writes.bind(&pod("p"), "n1").await })
    }
}

fn pod(name: &str) -> Arc<Pod> {
    let pod = json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "generation": 1}});
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn failed(pod: &Pod, message: &str) -> StatusUpdate {
    StatusUpdate::not_scheduled(pod, "Unschedulable", message, None)
}

const PATCH: &str = "PATCH /api/v1/namespaces/ns/pods/p/status";
const BIND: &str = "POST /api/v1/namespaces/ns/pods/p/binding";

#[tokio::test]
async fn a_binding_is_posted_with_the_pods_uid() {
    let World { api, writes, .. } = world();
    writes.bind(&pod("p"), "n1").await.unwrap();
    let request = &api.requests()[0];
    assert_eq!(api.lines(), [BIND]);
    assert_eq!(request.content_type, "application/json");
    let expected = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "p", "namespace": "ns", "uid": "uid-p"},
        "target": {"kind": "Node", "name": "n1"},
    });
    assert_eq!(request.body, expected);
    assert_eq!(writes.pending(), 0);
}

#[tokio::test]
async fn a_refused_binding_says_what_the_server_said() {
    let World { api, writes, .. } = world();
    api.script([Answer::status(409, "Conflict")]);
    let error = writes.bind(&pod("p"), "n1").await.unwrap_err();
    assert_eq!(error.to_string(), "Conflict it is");
    assert_eq!(api.lines(), [BIND], "a binding is not tried again");
}

#[tokio::test]
async fn patches_are_sent_without_being_waited_for() {
    let World { api, writes, .. } = world();
    writes.patch_status(&pod("p"), failed(&pod("p"), "m1"));
    writes.patch_status(&pod("q"), failed(&pod("q"), "m2"));
    assert_eq!(writes.pending(), 2);
    settle().await;
    assert_eq!(writes.pending(), 0);
    assert_eq!(api.lines(), [PATCH, "PATCH /api/v1/namespaces/ns/pods/q/status"]);
    assert_eq!(api.requests()[0].content_type, "application/strategic-merge-patch+json");
    let condition = &api.requests()[0].body["status"]["conditions"][0];
    assert_eq!(condition["lastTransitionTime"], "2026-02-03T04:05:06Z");
    assert_eq!(condition["message"], "m1");
}

#[tokio::test]
async fn what_has_not_been_sent_is_merged() {
    let world = world();
    let release = world.patch_in_flight("first").await;
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "second"));
    world.writes.patch_status(&pod("p"), StatusUpdate::nominate("n1"));
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "third"));
    settle().await;
    assert_eq!((world.writes.pending(), world.api.lines().len()), (2, 1));
    release.send(()).unwrap();
    settle().await;
    assert_eq!(world.writes.pending(), 0);
    let expected = json!({"status": {
        "$setElementOrder/conditions": [{"type": "PodScheduled"}],
        "conditions": [{"message": "third", "type": "PodScheduled"}],
        "nominatedNodeName": "n1",
    }});
    assert_eq!(world.api.requests()[1].body, expected, "and the first patch is known to have been written");
}

#[tokio::test]
async fn repeating_what_is_in_flight_writes_nothing() {
    let world = world();
    let release = world.patch_in_flight("same").await;
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "same"));
    release.send(()).unwrap();
    settle().await;
    assert_eq!((world.writes.pending(), world.api.lines().len()), (0, 1));
}

#[tokio::test]
async fn a_binding_waits_for_a_patch_in_flight_and_drops_one_that_waits() {
    let world = world();
    let release = world.patch_in_flight("in flight").await;
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "dropped"));
    let binding = world.start_binding();
    settle().await;
    assert_eq!((world.api.lines(), world.writes.pending()), (vec![PATCH.to_owned()], 3));
    release.send(()).unwrap();
    binding.await.unwrap().unwrap();
    settle().await;
    assert_eq!((world.api.lines(), world.writes.pending()), (vec![PATCH.to_owned(), BIND.to_owned()], 0));
}

#[tokio::test]
async fn a_binding_that_is_given_up_leaves_the_line() {
    let world = world();
    let release = world.patch_in_flight("in flight").await;
    let binding = world.start_binding();
    settle().await;
    binding.abort();
    settle().await;
    assert_eq!(world.writes.pending(), 1);
    release.send(()).unwrap();
    settle().await;
    assert_eq!((world.api.lines(), world.writes.pending()), (vec![PATCH.to_owned()], 0));
}

#[tokio::test]
async fn a_victim_is_marked_and_then_deleted() {
    let World { api, writes, .. } = world();
    let victim = pod("p");
    let update = StatusUpdate::disruption_target(&victim, "default-scheduler");
    assert!(writes.patch_status_and_wait(&victim, update).await.unwrap());
    writes.delete(&victim).await.unwrap();
    assert_eq!(api.lines(), [PATCH, "DELETE /api/v1/namespaces/ns/pods/p"]);
    assert_eq!(api.requests()[1].body, json!({"kind": "DeleteOptions", "apiVersion": "v1"}));
}

/// Moves the clock from deadline to deadline, and returns the time at which each request was sent.
async fn request_times(world: &World) -> Vec<Duration> {
    let mut times = Vec::new();
    loop {
        settle().await;
        let now = world.sim.now().mono.since(crate::clock::Mono::ZERO);
        times.resize(world.api.lines().len(), now);
        let Some(deadline) = world.sim.next_deadline() else { return times };
        world.sim.advance_to(deadline);
    }
}

#[tokio::test]
async fn a_status_patch_is_tried_four_times() {
    let world = world();
    let refused = || Answer::Broken(io::ErrorKind::ConnectionRefused);
    world.api.script([
        Answer::status(500, "InternalError"),
        Answer::status(409, "Conflict"),
        refused(),
        Answer::status(503, "ServiceUnavailable"),
        refused(),
    ]);
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "m"));
    let times = request_times(&world).await;
    let waits: Vec<u128> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_millis()).collect();
    assert_eq!((times.len(), world.writes.pending()), (4, 0));
    for (wait, base) in waits.into_iter().zip([10, 50, 250]) {
        assert!((base..=base + base / 10).contains(&wait), "{wait} for {base}");
    }
}

#[tokio::test]
async fn other_failures_of_a_patch_end_it() {
    let world = world();
    world.api.script([Answer::status(404, "NotFound")]);
    let result = world.writes.patch_status_and_wait(&pod("p"), StatusUpdate::nominate("n")).await;
    assert!(result.unwrap_err().is_not_found());
    world.api.script([Answer::status(403, "Forbidden")]);
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "m"));
    assert_eq!(request_times(&world).await.len(), 2);
    assert_eq!(world.writes.pending(), 0);
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_ten_times() {
    let world = world();
    world.api.script((0..11).map(|_| Answer::retry_after(429, "2")));
    let binding = world.start_binding();
    let times = request_times(&world).await;
    let seconds: Vec<u64> = times.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
    let error = binding.await.unwrap().unwrap_err();
    let expected = "the server has received too many requests and has asked us to try again later (post pods p)";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn only_reads_survive_a_broken_connection() {
    let world = world();
    world.api.script((0..3).map(|_| Answer::Broken(io::ErrorKind::ConnectionReset)));
    assert!(world.writes.bind(&pod("p"), "n1").await.is_err());
    let read = tokio::spawn({
        let rest = world.writes.rest().clone();
        async move { rest.send(&Call::Get, &Target::pod("ns", "p")).await }
    });
    let times = request_times(&world).await;
    assert_eq!(read.await.unwrap().unwrap(), "{}");
    assert_eq!(times.iter().map(Duration::as_secs).collect::<Vec<_>>(), [0, 0, 1, 2]);
}

#[tokio::test]
async fn requests_keep_to_the_limit() {
    let world = world_with(|rest| {
        let clock = rest.clock().clone();
        let api = FakeApi::default();
        drop(rest);
        RestClient::new(api.client(), RateLimiter::new(10.0, 2), clock)
    });
    for name in ["a", "b", "c", "d"] {
        world.writes.patch_status(&pod(name), failed(&pod(name), "m"));
    }
    let mut left = Vec::new();
    loop {
        settle().await;
        left.push((world.sim.now().mono.as_nanos() / 1_000_000, world.writes.pending()));
        let Some(deadline) = world.sim.next_deadline() else { break };
        world.sim.advance_to(deadline);
    }
    assert_eq!(left, [(0, 2), (100, 1), (200, 0)]);
}

#[tokio::test]
async fn closing_drops_what_waits_and_lets_go_what_runs() {
    let world = world();
    let release = world.patch_in_flight("in flight").await;
    world.writes.patch_status(&pod("p"), failed(&pod("p"), "dropped"));
    let binding = world.start_binding();
    settle().await;
    world.writes.close();
    assert!(matches!(binding.await.unwrap(), Err(ApiError::Closed)));
    world.writes.patch_status(&pod("q"), failed(&pod("q"), "too late"));
    release.send(()).unwrap();
    settle().await;
    assert_eq!((world.api.lines(), world.writes.pending()), (vec![PATCH.to_owned()], 0));
}

#[tokio::test]
async fn the_dispatcher_ends_with_its_last_handle() {
    let (api, sim) = (FakeApi::default(), sim_clock());
    let (writes, dispatcher) = ApiWrites::new(api.rest(&sim), Rng::from_seed(1));
    let task = tokio::spawn(dispatcher.run());
    writes.clone().patch_status(&pod("p"), failed(&pod("p"), "m"));
    drop(writes);
    task.await.unwrap();
    assert_eq!(api.lines(), [PATCH], "what was asked for is still sent");
}
