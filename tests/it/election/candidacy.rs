//! Lease candidates, as a server sees them that has nothing else.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::channel::mpsc;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1beta1::LeaseCandidate;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::client::Body;
use kube_scheduler::client::RestClient;
use kube_scheduler::clock::SimClock;
use kube_scheduler::election::{Candidacy, CandidateEvent, Versions};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, yield_now};

/// A write that came, and when, in milliseconds.
#[derive(Clone, Debug, PartialEq)]
struct Write {
    at: u64,
    line: String,
    body: Value,
}

/// A candidacy and all around it.
struct World {
    time: SimClock,
    writes: Arc<Mutex<Vec<Write>>>,
    /// The next writes are refused with these codes.
    refused: Arc<Mutex<Vec<u16>>>,
    seen: mpsc::UnboundedSender<CandidateEvent>,
    is_synced: Box<dyn Fn() -> bool>,
    task: JoinHandle<()>,
}

impl World {
    fn new() -> Self {
        let time = SimClock::new(Timestamp::UNIX_EPOCH);
        let writes: Arc<Mutex<Vec<Write>>> = Arc::default();
        let refused: Arc<Mutex<Vec<u16>>> = Arc::default();
        let (clock, heard, refusing) = (time.clock(), writes.clone(), refused.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (clock, heard, refusing) = (clock.clone(), heard.clone(), refusing.clone());
            async move {
                let (parts, body) = request.into_parts();
                assert_ne!(parts.method, Method::GET);
                let body = body.collect().await.expect("a whole body").to_bytes();
                heard.lock().expect("no panic").push(Write {
                    at: clock.now().mono.as_nanos() / 1_000_000,
                    line: format!("{} {}", parts.method, parts.uri.path()),
                    body: serde_json::from_slice(&body).expect("JSON"),
                });
                let code = refusing.lock().expect("no panic").pop().unwrap_or(200);
                let answer = Response::builder().status(code).body(Body::from(body.to_vec()));
                Ok::<_, Infallible>(answer.expect("an answer"))
            }
        });
        let rest = RestClient::new(kube::Client::new(service, "kube-system"), None, time.clock());
        let versions = Versions { binary: "1.36.3".to_owned(), emulation: "1.35.0".to_owned() };
        let candidacy = Candidacy::new(rest, "host_1", versions);
        let (seen, stream) = mpsc::unbounded();
        let is_synced = Box::new(candidacy.synced());
        let task = tokio::spawn(candidacy.run(stream));
        Self { time, writes, refused, seen, is_synced, task }
    }

    async fn see(&self, seen: CandidateEvent) {
        self.seen.unbounded_send(seen).expect("it listens");
        self.settle().await;
    }

    async fn settle(&self) {
        for _ in 0..50 {
            yield_now().await;
        }
    }

    async fn pass(&self, time: Duration) {
        self.time.advance(time);
        self.settle().await;
    }

    /// Writes since the last call of this function.
    fn writes(&self) -> Vec<Write> {
        std::mem::take(&mut *self.writes.lock().expect("no panic"))
    }

    /// The candidate as the server has it: renewed and pinged at these seconds.
    fn candidate(renewed: i64, pinged: Option<i64>) -> Box<LeaseCandidate> {
        let time = |second| MicroTime(Timestamp::from_second(second).expect("a time"));
        let mut candidate = LeaseCandidate::default();
        candidate.metadata.name = Some("host_1".to_owned());
        candidate.metadata.resource_version = Some("7".to_owned());
        candidate.spec.renew_time = Some(time(renewed));
        candidate.spec.ping_time = pinged.map(time);
        Box::new(candidate)
    }
}

const ALL: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates";

#[tokio::test]
async fn a_candidate_is_made_once_it_is_known_that_there_is_none() {
    let world = World::new();
    world.settle().await;
    assert!(world.writes().is_empty() && !(world.is_synced)());
    world.see(CandidateEvent::Listed(None)).await;
    assert!((world.is_synced)());
    let expected = json!({
        "apiVersion": "coordination.k8s.io/v1beta1", "kind": "LeaseCandidate",
        "metadata": {"name": "host_1", "namespace": "kube-system"},
        "spec": {
            "leaseName": "kube-scheduler", "binaryVersion": "1.36.3", "emulationVersion": "1.35.0",
            "strategy": "OldestEmulationVersion", "renewTime": "1970-01-01T00:00:00.000000Z",
        },
    });
    assert_eq!(world.writes(), [Write { at: 0, line: format!("POST {ALL}"), body: expected }]);
    drop(world.seen);
    world.task.await.expect("it ends with what there is to be seen");
}

#[tokio::test]
async fn who_pings_is_answered_and_nobody_else_before_five_minutes() {
    let world = World::new();
    world.see(CandidateEvent::Listed(None)).await;
    world.see(CandidateEvent::Applied(World::candidate(0, None))).await;
    assert_eq!(world.writes().len(), 1);
    world.pass(Duration::from_secs(100)).await;
    world.see(CandidateEvent::Applied(World::candidate(0, Some(99)))).await;
    let [write] = world.writes().try_into().expect("one answer");
    assert_eq!((write.at, write.line), (100_000, format!("PUT {ALL}/host_1")));
    let times = (&write.body["spec"]["renewTime"], &write.body["spec"]["pingTime"]);
    assert_eq!(times, (&"1970-01-01T00:01:40.000000Z".into(), &"1970-01-01T00:01:39.000000Z".into()));
    assert_eq!(write.body["metadata"]["resourceVersion"], "7");
    // Its own answer is not answered.
    world.see(CandidateEvent::Applied(World::candidate(100, Some(99)))).await;
    world.pass(Duration::from_secs(199)).await;
    assert!(world.writes().is_empty());
    // Five minutes after the first write, not after the answer.
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.writes().iter().map(|write| write.at).collect::<Vec<_>>(), [300_000]);
    // One that is gone is made anew when its time comes.
    world.see(CandidateEvent::Deleted).await;
    assert!(world.writes().is_empty());
    world.pass(Duration::from_mins(5)).await;
    assert_eq!(world.writes()[0].line, format!("POST {ALL}"));
}

#[tokio::test]
async fn writes_that_fail_are_tried_again_each_time_later() {
    let world = World::new();
    world.refused.lock().expect("no panic").extend([409; 3]);
    world.see(CandidateEvent::Listed(None)).await;
    for _ in 0..100 {
        world.pass(Duration::from_millis(1)).await;
    }
    let at = |writes: Vec<Write>| writes.iter().map(|write| write.at).collect::<Vec<_>>();
    assert_eq!(at(world.writes()), [0, 5, 15, 35]);
    // What has failed is not forgotten.
    world.refused.lock().expect("no panic").push(409);
    world.see(CandidateEvent::Applied(World::candidate(0, Some(1)))).await;
    for _ in 0..100 {
        world.pass(Duration::from_millis(1)).await;
    }
    assert_eq!(at(world.writes()), [100, 140]);
}
