//! Elections on the embedded API server, by a clock that stands still unless it is moved.

mod candidacy;
mod coordinated;

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use kube_scheduler::apiserver::{ApiServer, Fault, Gate, Options};
use kube_scheduler::client::{Call, RestClient, Sending, Target};
use kube_scheduler::clock::{Rng, SimClock};
use kube_scheduler::config;
use kube_scheduler::election::{Elector, LeaseLock, Term, Times};
use kube_scheduler::events::{EventBroadcaster, EventsApi};
use kube_scheduler::metrics::ElectionMetrics;
use serde_json::Value;
use tokio::task::{JoinHandle, yield_now};

const TIMES: Times = Times {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
};

const LEASE: Target<'static> = Target {
    group: "coordination.k8s.io",
    version: "v1",
    namespace: "kube-system",
    resource: "leases",
    name: "kube-scheduler",
    subresource: "",
};

/// A server, its clock, and who asks it.
struct World {
    time: SimClock,
    server: ApiServer,
}

/// A candidate and its term.
struct Candidate {
    elector: Elector,
    term: Term,
    metrics: prometheus::Registry,
}

impl World {
    fn new() -> Self {
        let time = SimClock::new(Timestamp::UNIX_EPOCH);
        let gates = config::FeatureGates::default().with(config::Gate::CoordinatedLeaderElection, true);
        let server = ApiServer::new(Options { gates, ..Options::by_clock(&time.clock()) });
        Self { time, server }
    }

    fn rest(&self) -> RestClient {
        RestClient::new(self.server.client(), None, self.time.clock())
    }

    fn candidate(&self, name: &str) -> Candidate {
        let clock = self.time.clock();
        let term = Term::new(clock.clone(), TIMES.lease_duration, "kube-scheduler");
        // Nobody runs its task: events are not what these tests are about.
        let (events, _) = EventBroadcaster::new(self.rest(), EventsApi::CoreV1, "host", Rng::from_seed(1));
        let lock = LeaseLock::new(self.rest(), "kube-system", "kube-scheduler", TIMES.request_timeout());
        let metrics = prometheus::Registry::new();
        let families = ElectionMetrics::new(&metrics, "kube-scheduler").expect("a new registry");
        let (rng, recorder) = (Rng::from_seed(7), events.recorder("default-scheduler"));
        let elector = Elector::new(lock, name.to_owned(), TIMES, term.clone(), clock, rng, recorder, families);
        Candidate { elector, term, metrics }
    }

    /// One that has the lease.
    async fn leader(&self, name: &str) -> Candidate {
        let mut candidate = self.candidate(name);
        candidate.acquire().await;
        candidate
    }

    /// Lets everything run that can, then moves the clock, second by second.
    async fn pass(&self, seconds: u64) {
        for _ in 0..seconds {
            self.settle().await;
            self.time.advance(Duration::from_secs(1));
        }
        self.settle().await;
    }

    async fn settle(&self) {
        for _ in 0..50 {
            yield_now().await;
        }
    }

    async fn lease(&self) -> Value {
        let lease = self.rest().send(&Call::Get, &LEASE).await.expect("there is a lease");
        serde_json::from_slice::<Value>(&lease).expect("JSON")["spec"].take()
    }

    /// Refuses what comes with this method from now on.
    fn refuse(&self, method: http::Method) {
        let hook = move |parts: &http::request::Parts| (parts.method == method).then_some(Fault::Status(500, None));
        self.server.faults().set(hook);
    }
}

impl Candidate {
    fn leads(&self) -> i64 {
        let families = self.metrics.gather();
        let family = families.iter().find(|family| family.name() == "leader_election_master_status");
        #[expect(clippy::cast_possible_truncation, reason = "0 or 1")]
        family.map_or(-1, |family| family.get_metric()[0].get_gauge().get_value() as i64)
    }

    async fn acquire(&mut self) {
        let Ok(()) = self.elector.acquire(pending::<Infallible>()).await;
    }

    /// Acquires the lease, then keeps it, in a task.
    fn run(mut self) -> JoinHandle<Self> {
        tokio::spawn(async move {
            self.acquire().await;
            self.elector.renew().await;
            self
        })
    }
}

#[tokio::test]
async fn standby_takes_the_lease_after_it_expires() {
    let world = World::new();
    let mut first = world.candidate("first");
    assert!(!first.term.lasts() && first.leads() == 0);
    first.acquire().await;
    assert!(first.term.lasts() && first.term.leads() && first.leads() == 1);
    let spec = world.lease().await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&"first".into(), &15.into()));
    assert_eq!(spec["leaseTransitions"], 0);

    let second = world.candidate("second");
    let term = second.term.clone();
    let task = second.run();
    // It is the second's own clock that counts, from when it saw the lease first.
    world.pass(14).await;
    assert_eq!(world.lease().await["holderIdentity"], "first");
    assert!(!first.term.lasts() || world.time.now().mono.as_nanos() < 15_000_000_000);
    // A try comes at least every 2 × 2.2 seconds.
    world.pass(6).await;
    let spec = world.lease().await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseTransitions"]), (&"second".into(), &1.into()));
    assert!(term.lasts() && !first.term.lasts(), "never both");
    task.abort();
}

#[tokio::test]
async fn released_lease_is_acquired_at_once() {
    let world = World::new();
    let mut first = world.leader("first").await;
    first.elector.release().await;
    assert!(!first.term.lasts() && !first.term.leads() && first.leads() == 0);
    let spec = world.lease().await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&"".into(), &1.into()));
    world.leader("second").await;
    assert_eq!(world.lease().await["leaseTransitions"], 1);
}

/// Has a candidate acquire the lease; it is told to stop while the write that gets it is on its way, which comes through then.
/// Gives what came of it.
async fn told_while_it_wins(world: &World, mut candidate: Candidate) -> (Result<(), &'static str>, Candidate) {
    let (held, gate) = (Arc::new(AtomicBool::new(false)), Gate::new());
    let (holds, waits) = (held.clone(), gate.clone());
    world.server.faults().set(move |parts| {
        let is_write = parts.method != http::Method::GET;
        is_write.then(|| {
            holds.store(true, Ordering::Relaxed);
            Fault::Delay(waits.clone())
        })
    });
    let (tell, told) = tokio::sync::oneshot::channel();
    let acquiring = tokio::spawn(async move {
        let outcome = candidate.elector.acquire(async { told.await.expect("somebody tells") }).await;
        (outcome, candidate)
    });
    world.settle().await;
    assert!(held.load(Ordering::Relaxed), "the write is on its way");
    tell.send("told").expect("it listens");
    world.settle().await;
    assert!(!acquiring.is_finished(), "it does not know yet whether it leads");
    gate.open();
    acquiring.await.expect("no panic")
}

#[tokio::test]
async fn lease_acquired_during_shutdown_is_released() {
    let world = World::new();
    let (outcome, mut first) = told_while_it_wins(&world, world.candidate("first")).await;
    assert_eq!((outcome, first.elector.leads()), (Err("told"), true));
    assert_eq!(world.lease().await["holderIdentity"], "first");
    first.elector.release().await;
    assert!(!first.elector.leads() && first.leads() == 0);
    let spec = world.lease().await;
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&"".into(), &1.into()));
}

#[tokio::test]
async fn standby_stops_at_once_on_shutdown() {
    let world = World::new();
    world.leader("first").await;
    let mut second = world.candidate("second");
    let told = world.time.clock().sleep(Duration::from_secs(1));
    let standing_by = tokio::spawn(async move { (second.elector.acquire(told).await, second.elector.leads()) });
    world.pass(1).await;
    assert!(standing_by.is_finished());
    assert_eq!(standing_by.await.expect("no panic"), (Err(()), false));
}

#[tokio::test]
async fn lease_is_released_despite_a_concurrent_update() {
    let world = World::new();
    let mut first = world.leader("first").await;
    // Somebody writes the lease between its being read and its being given up.
    let (gate, other) = (Gate::new(), world.rest());
    let waits = std::sync::Mutex::new(Some(gate.clone()));
    let hook = move |parts: &http::request::Parts| {
        let is_put = parts.method == http::Method::PUT;
        is_put.then(|| waits.lock().expect("no panic").take().map(Fault::Delay)).flatten()
    };
    world.server.faults().set(hook);
    let releasing = tokio::spawn(async move {
        first.elector.release().await;
    });
    world.settle().await;
    let lease = other.send(&Call::Get, &LEASE).await.expect("there is a lease");
    other.send(&Call::Put(lease), &LEASE).await.expect("it is written as it is");
    gate.open();
    releasing.await.expect("no panic");
    assert_eq!(world.lease().await["holderIdentity"], "");
}

#[tokio::test]
async fn failed_leader_releases_only_its_own_lease() {
    let world = World::new();
    let task = world.candidate("first").run();
    world.pass(1).await;
    world.refuse(http::Method::PUT);
    world.pass(13).await;
    let mut first = task.await.expect("it has given up");
    world.server.faults().clear();
    first.elector.release().await;
    assert_eq!(world.lease().await["holderIdentity"], "", "nobody else has it yet");

    let task = world.candidate("second").run();
    world.pass(1).await;
    world.refuse(http::Method::PUT);
    world.pass(13).await;
    let mut second = task.await.expect("it has given up");
    world.server.faults().clear();
    world.pass(15).await;
    let third = world.candidate("third").run();
    world.pass(20).await;
    assert_eq!(world.lease().await["holderIdentity"], "third");
    second.elector.release().await;
    assert_eq!(world.lease().await["holderIdentity"], "third");
    third.abort();
}

#[tokio::test]
async fn leader_stops_before_its_lease_expires() {
    let world = World::new();
    let first = world.candidate("first");
    let term = first.term.clone();
    let task = first.run();
    world.pass(1).await;
    assert!(term.lasts());
    world.refuse(http::Method::PUT);
    world.pass(9).await;
    assert!(!task.is_finished(), "it has ten seconds");
    world.pass(4).await;
    assert!(task.is_finished(), "it has given up");
    let first = task.await.expect("no panic");
    assert_eq!(first.leads(), 0);
    assert!(!term.lasts() && !term.leads());
}

#[tokio::test]
async fn resumed_process_with_expired_lease_rejects_writes() {
    let world = World::new();
    let first = world.leader("first").await;
    let term = first.term.clone();
    let fenced = world.rest().sending(Sending { fence: Some(Arc::new(move || term.lasts())), ..Sending::default() });
    let write = Call::Delete(bytes::Bytes::new());
    let pod = Target::pod("default", "p");
    assert!(fenced.send(&write, &pod).await.expect_err("no such pod").is_not_found());
    // No task has run meanwhile: nobody has noticed yet.
    world.time.advance(Duration::from_secs(16));
    assert!(first.term.leads());
    assert_eq!(
        fenced.send(&write, &pod).await.expect_err("refused").to_string(),
        "this process no longer holds the lease"
    );
    assert!(fenced.send(&Call::Get, &pod).await.expect_err("no such pod").is_not_found(), "reading is harmless");
}

#[tokio::test]
async fn leader_with_long_expired_lease_is_unhealthy() {
    let world = World::new();
    let mut first = world.candidate("first");
    assert_eq!(first.term.check(), Ok(()), "who stands by is healthy");
    first.acquire().await;
    world.time.advance(Duration::from_secs(35));
    assert_eq!(first.term.check(), Ok(()));
    world.time.advance(Duration::from_secs(1));
    let text = "failed election to renew leadership on lease kube-scheduler";
    assert_eq!(first.term.check(), Err(text.to_owned()));
}

#[tokio::test]
async fn lost_response_is_recovered_by_reading_the_lease() {
    let world = World::new();
    let first = world.candidate("first");
    let registry = first.metrics.clone();
    let task = first.run();
    world.pass(1).await;
    // One update whose answer is lost: the next one comes with a version that is not current, and the one after reads first.
    let lost = AtomicBool::new(false);
    let hook = move |parts: &http::request::Parts| {
        let lose = parts.method == http::Method::PUT && !lost.swap(true, Ordering::Relaxed);
        lose.then_some(Fault::DropConnectionAfterCommit)
    };
    world.server.faults().set(hook);
    world.pass(20).await;
    assert!(!task.is_finished());
    let families = registry.gather();
    let slow = families.iter().find(|family| family.name() == "leader_election_slowpath_total").expect("counted");
    assert!(slow.get_metric()[0].get_counter().get_value() > 0.0);
    assert_eq!(world.lease().await["leaseTransitions"], 0);
    task.abort();
}

#[test]
fn invalid_durations_give_upstreams_errors() {
    let gates = config::FeatureGates::default();
    let check = |lock: &str, times: [&str; 3], expected: Result<(), &str>| {
        let mut config = config::Config::defaults(&gates, kube_scheduler::plugins::registry().catalog());
        let [lease, renew, retry] = times.map(|time| time.parse().expect("a duration"));
        let election = &mut config.leader_election;
        election.resource_lock = lock.to_owned();
        (election.lease_duration, election.renew_deadline, election.retry_period) = (lease, renew, retry);
        assert_eq!(Times::checked(election).map(drop), expected.map_err(str::to_owned), "{lock} {times:?}");
    };
    check("leases", ["15s", "10s", "2s"], Ok(()));
    let removed = "couldn't create resource lock: endpoints lock is removed, migrate to leases";
    check("endpoints", ["15s", "10s", "2s"], Err(removed));
    check("x", ["15s", "10s", "2s"], Err("couldn't create resource lock: Invalid lock-type x"));
    let lease = "couldn't create leader elector: leaseDuration must be greater than renewDeadline";
    check("leases", ["10s", "10s", "2s"], Err(lease));
    let retry = "couldn't create leader elector: renewDeadline must be greater than retryPeriod*JitterFactor";
    check("leases", ["15s", "12s", "10s"], Err(retry));
    let zero = "couldn't create leader elector: retryPeriod must be greater than zero";
    check("leases", ["15s", "10s", "0s"], Err(zero));
}
