//! Tests of series, retries and drops, against a scripted server and in simulated time.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::client::testing::{Answer, FakeApi, settle, sim_clock};
use crate::clock::{Mono, SimClock};

struct World {
    api: FakeApi,
    sim: SimClock,
    broadcaster: EventBroadcaster,
    recorder: EventRecorder,
}

fn world(events: EventsApi) -> World {
    let (api, sim) = (FakeApi::default(), sim_clock());
    let (broadcaster, task) = EventBroadcaster::new(api.rest(&sim), events, "host", Rng::from_seed(1));
    tokio::spawn(task.run());
    let recorder = broadcaster.recorder("default-scheduler");
    World { api, sim, broadcaster, recorder }
}

fn pod(name: &str) -> Pod {
    let pod =
        json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "7"}});
    serde_json::from_value(pod).unwrap()
}

impl World {
    /// Advances the clock from deadline to deadline up to `limit` seconds, and settles after each.
    async fn run_until(&self, limit: u64) {
        settle().await;
        while let Some(deadline) = self.sim.next_deadline().filter(|deadline| *deadline <= Mono::from_secs(limit)) {
            self.sim.advance_to(deadline);
            settle().await;
        }
        self.sim.advance_to(Mono::from_secs(limit));
        settle().await;
    }

    fn bodies(&self) -> Vec<Value> {
        self.api.requests().into_iter().map(|request| request.body).collect()
    }
}

const POSTED: &str = "POST /apis/events.k8s.io/v1/namespaces/ns/events";

#[tokio::test]
async fn event_is_created_in_the_namespace_of_its_object() {
    let world = world(EventsApi::EventsV1);
    world.recorder.scheduled(&pod("p"), "n1");
    assert_eq!(world.broadcaster.pending(), 1);
    settle().await;
    assert_eq!(world.broadcaster.pending(), 0);
    assert_eq!(world.api.lines(), [POSTED]);
    let body = &world.bodies()[0];
    assert_eq!(body["note"], "Successfully assigned ns/p to n1");
    let nanoseconds = world.sim.now().wall.as_nanosecond();
    assert_eq!(body["metadata"], json!({"name": format!("p.{nanoseconds:x}"), "namespace": "ns"}));
    assert_eq!(body["reportingInstance"], "default-scheduler-host");
    assert_eq!(
        (&body["reason"], &body["action"], &body["type"]),
        (&json!("Scheduled"), &json!("Binding"), &json!("Normal"))
    );
}

#[tokio::test]
async fn notes_equal_upstreams() {
    let world = world(EventsApi::EventsV1);
    world.recorder.failed_scheduling(&pod("a"), "0/1 nodes are available: 50% of them");
    world.recorder.failed_scheduling(&pod("b"), &"x".repeat(3000));
    world.recorder.skipped_deleting(&pod("c"));
    world.recorder.preempted(&pod("d"), "uid-1", "n1", true);
    settle().await;
    let notes: Vec<String> = world.bodies().iter().map(|body| body["note"].as_str().unwrap().to_owned()).collect();
    assert_eq!(notes[0], "0/1 nodes are available: 50%!o(MISSING)f them");
    assert_eq!((notes[1].len(), &notes[1][1018..]), (1024, "xx ..."));
    assert_eq!(notes[2], "skip schedule deleting pod: ns/c");
    assert_eq!(notes[3], "Preempted by pod uid-1 on node n1 (in kube-scheduler memory).");
    assert_eq!(world.bodies()[3]["related"], Value::Null);
}

#[tokio::test]
async fn names_differ_while_the_clock_stands_still() {
    let world = world(EventsApi::EventsV1);
    world.recorder.scheduled(&pod("p"), "n1");
    world.recorder.failed_scheduling(&pod("p"), "m");
    settle().await;
    let names: Vec<_> = world.bodies().iter().map(|body| body["metadata"]["name"].clone()).collect();
    assert_ne!(names[0], names[1]);
}

#[tokio::test]
async fn first_repetition_starts_a_series_and_later_ones_count() {
    let world = world(EventsApi::EventsV1);
    for note in ["a", "b", "c", "d"] {
        world.recorder.failed_scheduling(&pod("p"), note);
    }
    settle().await;
    let name = world.bodies()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let patched = format!("PATCH /apis/events.k8s.io/v1/namespaces/ns/events/{name}");
    assert_eq!(world.api.lines(), [POSTED, &patched], "events that differ only in the note are repetitions");
    assert_eq!(world.api.requests()[1].content_type, "application/strategic-merge-patch+json");
    let series = |count: u32, time: &str| json!({"series": {"count": count, "lastObservedTime": time}});
    assert_eq!(world.bodies()[1], series(2, "2026-02-03T04:05:06.789012Z"));

    // At the second tick, after twelve minutes, the last repetition is more than six minutes old.
    world.run_until(2000).await;
    assert_eq!(world.api.lines()[2..], [patched]);
    assert_eq!(world.bodies()[2], series(4, "2026-02-03T04:05:06.789012Z"));
    assert_eq!(world.sim.next_deadline(), None, "an empty cache needs no timer");

    world.recorder.failed_scheduling(&pod("p"), "anew");
    settle().await;
    assert_eq!(world.api.lines()[3..], [POSTED]);
}

#[tokio::test]
async fn wall_clock_steps_do_not_affect_series() {
    for step in [-1_000_000, 1_000_000] {
        let world = world(EventsApi::EventsV1);
        world.run_until(300).await;
        for note in ["a", "b"] {
            world.recorder.failed_scheduling(&pod("p"), note);
        }
        settle().await;
        world.sim.step_wall(step);
        // At the first tick, after six minutes, the series is one minute old.
        world.run_until(400).await;
        assert_eq!(world.api.lines().len(), 2, "{step}");
        world.run_until(2000).await;
        assert_eq!(world.api.lines().len(), 3, "{step}: the series was written a last time");
        assert_eq!(world.sim.next_deadline(), None, "{step}: the cache is empty");
    }
}

#[tokio::test]
async fn events_with_different_keys_are_no_series() {
    let world = world(EventsApi::EventsV1);
    let mut changed = pod("p");
    world.recorder.failed_scheduling(&changed, "m");
    world.recorder.scheduled(&changed, "n1");
    world.broadcaster.recorder("other").failed_scheduling(&changed, "m");
    changed.metadata.resource_version = Some("8".to_owned());
    world.recorder.failed_scheduling(&changed, "m");
    settle().await;
    assert_eq!(world.api.lines(), [POSTED; 4]);
    // Events without a repetition are forgotten after a while, without a write.
    world.run_until(1000).await;
    assert_eq!(world.api.lines().len(), 4);
    world.recorder.failed_scheduling(&changed, "m");
    settle().await;
    assert_eq!(world.api.lines(), [POSTED; 5]);
}

#[tokio::test]
async fn long_series_is_refreshed_every_half_hour() {
    let world = world(EventsApi::EventsV1);
    for minute in 0..65 {
        world.run_until(minute * 60).await;
        world.recorder.failed_scheduling(&pod("p"), "m");
    }
    settle().await;
    let counts: Vec<Value> = world.bodies().iter().map(|body| body["series"]["count"].clone()).collect();
    assert_eq!(counts, [Value::Null, json!(2), json!(30), json!(60)]);
}

#[tokio::test]
async fn deleted_event_of_a_series_is_created_again() {
    let world = world(EventsApi::EventsV1);
    world.recorder.failed_scheduling(&pod("p"), "m");
    settle().await;
    world.api.script([Answer::status(404, "NotFound")]);
    world.recorder.failed_scheduling(&pod("p"), "m");
    settle().await;
    assert_eq!(world.api.lines().len(), 3);
    let (first, again) = (&world.bodies()[0], &world.bodies()[2]);
    assert_eq!(world.api.lines()[2], POSTED);
    assert_eq!((&again["metadata"], &again["series"]["count"]), (&first["metadata"], &json!(2)));
    assert_eq!(
        (&again["note"], &again["eventTime"]),
        (&json!("m"), &first["eventTime"]),
        "the first event is written again"
    );
}

#[tokio::test]
async fn events_are_retried_only_if_the_server_is_unreachable() {
    let world = world(EventsApi::EventsV1);
    let broken = || Answer::Broken(io::ErrorKind::ConnectionRefused);
    world.api.script((0..12).map(|_| broken()));
    world.recorder.failed_scheduling(&pod("p"), "m");
    let mut times = Vec::new();
    loop {
        settle().await;
        times.resize(world.api.lines().len(), world.sim.now().mono);
        let Some(deadline) = world.sim.next_deadline().filter(|_| world.broadcaster.pending() > 0) else { break };
        world.sim.advance_to(deadline);
    }
    assert_eq!(times.len(), 12);
    for pair in times.windows(2) {
        let wait = pair[1] - pair[0];
        assert!((Duration::from_secs(10)..Duration::from_millis(12_500)).contains(&wait), "{wait:?}");
    }
    assert!(times[11] < Mono::from_secs(150));
    world.api.script([broken(), Answer::status(409, "AlreadyExists"), Answer::status(403, "Forbidden")]);
    for name in ["x", "y", "z"] {
        world.recorder.failed_scheduling(&pod(name), "m");
        settle().await;
    }
    assert_eq!(world.broadcaster.pending(), 1, "no event is retried after a response, even an error");
}

#[tokio::test]
async fn a_full_queue_drops_events() {
    let (api, sim) = (FakeApi::default(), sim_clock());
    let (broadcaster, task) = EventBroadcaster::new(api.rest(&sim), EventsApi::EventsV1, "host", Rng::from_seed(1));
    let recorder = broadcaster.recorder("s");
    for number in 0..1100 {
        recorder.scheduled(&pod(&format!("p{number}")), "n");
    }
    assert_eq!(broadcaster.pending(), 1000);
    drop((recorder, broadcaster));
    task.run().await;
    assert_eq!(api.lines().len(), 1000, "the task ends when all recorders are dropped");
}

#[tokio::test]
async fn discovery_chooses_the_events_api() {
    let (api, sim) = (FakeApi::default(), sim_clock());
    api.script([Answer::Reply(200, None, "{}".to_owned()), Answer::Reply(404, None, "404 page not found".to_owned())]);
    assert_eq!(EventsApi::discover(&api.rest(&sim)).await, EventsApi::EventsV1);
    assert_eq!(EventsApi::discover(&api.rest(&sim)).await, EventsApi::CoreV1);
    assert_eq!(api.lines(), ["GET /apis/events.k8s.io/v1"; 2]);
}

#[tokio::test]
async fn repeated_core_events_patch_the_count() {
    let world = world(EventsApi::CoreV1);
    world.recorder.failed_scheduling(&pod("p"), "m");
    settle().await;
    world.run_until(30).await;
    world.recorder.failed_scheduling(&pod("p"), "m");
    settle().await;
    let name = world.bodies()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let expected =
        ["POST /api/v1/namespaces/ns/events".to_owned(), format!("PATCH /api/v1/namespaces/ns/events/{name}")];
    assert_eq!(world.api.lines(), expected);
    let created = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "ns"},
        "involvedObject": {
            "kind": "Pod", "namespace": "ns", "name": "p", "uid": "uid-p", "apiVersion": "v1", "resourceVersion": "7",
        },
        "reason": "FailedScheduling", "message": "m", "source": {"component": "default-scheduler"},
        "firstTimestamp": "2026-02-03T04:05:06Z", "lastTimestamp": "2026-02-03T04:05:06Z", "count": 1,
        "type": "Warning", "eventTime": null,
        "reportingComponent": "default-scheduler", "reportingInstance": "",
    });
    assert_eq!(world.bodies()[0], created);
    assert_eq!(world.bodies()[1], json!({"count": 2, "lastTimestamp": "2026-02-03T04:05:36Z", "message": "m"}));
    assert_eq!(world.broadcaster.pending(), 0);
}

#[tokio::test]
async fn a_retried_core_event_delays_the_next_one() {
    let world = world(EventsApi::CoreV1);
    world.api.script([Answer::Broken(io::ErrorKind::ConnectionRefused)]);
    world.recorder.scheduled(&pod("p"), "n1");
    world.recorder.scheduled(&pod("q"), "n1");
    settle().await;
    assert_eq!((world.api.lines().len(), world.broadcaster.pending()), (1, 2));
    world.run_until(10).await;
    assert_eq!((world.api.lines().len(), world.broadcaster.pending()), (3, 0));
}
