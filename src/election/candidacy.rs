//! Coordinated leader election: publishes this process as a `LeaseCandidate`, and answers the control plane's pings.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1beta1::{LeaseCandidate, LeaseCandidateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tracing::{debug, error};

use super::watch::CandidateEvent;
use crate::client::retry::DoublingWaits;
use crate::client::{ApiError, Call, RestClient, Target};
use crate::clock::{Clock, Mono};

/// Namespace of the `LeaseCandidate`, independent of the lease's namespace.
/// Follows `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.
pub(super) const NAMESPACE: &str = "kube-system";

/// Name of the lease in the `LeaseCandidate`, independent of the configured name.
/// Follows `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.
const LEASE: &str = "kube-scheduler";

/// Strategy by which the control plane chooses the leader. Follows `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.
const STRATEGY: &str = "OldestEmulationVersion";

/// Interval after which a candidate is renewed without a ping.
/// Follows `client-go/tools/leaderelection/leasecandidate.go#requeueInterval @v1.36.3`.
const RENEWAL: Duration = Duration::from_mins(5);

/// Backoff after failed writes.
/// Follows `client-go/util/workqueue/default_rate_limiters.go#DefaultTypedControllerRateLimiter @v1.36.3`.
const WAITS: DoublingWaits = DoublingWaits::new(Duration::from_millis(5), Duration::from_secs(1000));

/// Versions by which the control plane chooses among candidates, such as `1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Version of the binary.
    pub binary: String,
    /// Version that the binary emulates.
    pub emulation: String,
}

/// Keeps this process's `LeaseCandidate`: creates it if it is missing, and renews it whenever the control plane pings it.
pub struct Candidacy {
    rest: RestClient,
    clock: Clock,
    name: String,
    versions: Versions,
    /// The candidate as last observed; `None` if it does not exist.
    observed: Option<Box<LeaseCandidate>>,
    is_synced: Arc<AtomicBool>,
    /// Backoff of failed writes. It is never reset, because upstream's queue forgets no failure either.
    waits: DoublingWaits,
}

impl Candidacy {
    /// Creates the candidacy of this process. `name` is the identity of the [`Elector`](super::Elector). `rest` must send requests
    /// even while this process is not the leader.
    pub fn new(rest: RestClient, name: &str, versions: Versions) -> Self {
        let (clock, name) = (rest.clock().clone(), name.to_owned());
        Self { rest, clock, name, versions, observed: None, is_synced: Arc::default(), waits: WAITS }
    }

    /// Returns the candidate's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a function for health checks that tells whether the watch has listed the candidate.
    pub fn synced(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let is_synced = self.is_synced.clone();
        move || is_synced.load(Ordering::Acquire)
    }

    /// Creates and renews the candidate until the stream of `events` ends.
    /// Follows `client-go/tools/leaderelection/leasecandidate.go#LeaseCandidate.Run @v1.36.3`.
    pub async fn run(mut self, events: impl Stream<Item = CandidateEvent>) {
        let mut events = pin!(events);
        while !self.is_synced.load(Ordering::Acquire) {
            let Some(event) = events.next().await else { return };
            self.handle(event);
        }
        let mut next = Mono::MAX;
        loop {
            let wait = self.renew().await;
            // If a renewal is already scheduled for an earlier time, that time stays.
            next = next.min(self.clock.mono() + wait);
            loop {
                tokio::select! {
                    biased;
                    event = events.next() => {
                        let Some(event) = event else { return };
                        if self.handle(event) {
                            break;
                        }
                    }
                    () = self.clock.sleep_until(next) => {
                        next = Mono::MAX;
                        break;
                    }
                }
            }
        }
    }

    /// Records an event of the watch. Returns whether the candidate has an unanswered ping.
    fn handle(&mut self, event: CandidateEvent) -> bool {
        self.observed = match event {
            CandidateEvent::Listed(candidate) => {
                self.is_synced.store(true, Ordering::Release);
                candidate
            }
            CandidateEvent::Applied(candidate) => Some(candidate),
            CandidateEvent::Deleted => None,
        };
        self.observed.as_ref().is_some_and(|candidate| is_pinged(&candidate.spec))
    }

    /// Creates or renews the candidate. Returns the wait until the next renewal.
    async fn renew(&mut self) -> Duration {
        match self.write().await {
            Ok(()) => RENEWAL,
            Err(why) => {
                error!(err = %why, "Ensuring lease failed");
                self.waits.next_wait()
            }
        }
    }

    /// Creates or renews the candidate, with one request.
    /// Follows `client-go/tools/leaderelection/leasecandidate.go#LeaseCandidate.ensureLease @v1.36.3`.
    async fn write(&self) -> Result<(), ApiError> {
        let now = Some(MicroTime(self.clock.now().wall));
        let Some(observed) = &self.observed else {
            debug!("Creating lease candidate");
            let candidate = self.candidate(now);
            self.send(Call::Post(body(&candidate)?), "").await?;
            debug!("Created lease candidate");
            return Ok(());
        };
        debug!("Lease candidate exists. Renewing.");
        let mut candidate = observed.clone();
        candidate.spec.renew_time = now;
        self.send(Call::Put(body(&candidate)?), &self.name).await
    }

    fn candidate(&self, renew_time: Option<MicroTime>) -> LeaseCandidate {
        let metadata = ObjectMeta {
            name: Some(self.name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        };
        let spec = LeaseCandidateSpec {
            lease_name: LEASE.to_owned(),
            binary_version: self.versions.binary.clone(),
            emulation_version: Some(self.versions.emulation.clone()),
            strategy: STRATEGY.to_owned(),
            renew_time,
            ping_time: None,
        };
        LeaseCandidate { metadata, spec }
    }

    async fn send(&self, call: Call, name: &str) -> Result<(), ApiError> {
        let target = Target {
            group: "coordination.k8s.io",
            version: "v1beta1",
            namespace: NAMESPACE,
            resource: "leasecandidates",
            name,
            subresource: "",
        };
        self.rest.send(&call, &target).await.map(drop)
    }
}

/// Returns whether the candidate was pinged after its last renewal.
fn is_pinged(spec: &LeaseCandidateSpec) -> bool {
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    spec.ping_time.as_ref().is_some_and(|time| Some(time.0) > renewed)
}

fn body(candidate: &LeaseCandidate) -> Result<bytes::Bytes, ApiError> {
    serde_json::to_vec(candidate).map(Into::into).map_err(|error| ApiError::Request(error.to_string()))
}
