//! Says that this process is there to be chosen, and answers who asks whether it still is.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::coordination::v1beta1::{LeaseCandidate, LeaseCandidateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use tracing::{debug, error};

use super::watch::CandidateChange;
use crate::clock::{Clock, Mono};
use crate::dispatcher::{ApiError, Call, RestClient, Target};

/// Where candidates are, whatever the lease's own namespace. Follows `cmd/kube-scheduler/app/server.go#Run @v1.36.3`.
pub(super) const NAMESPACE: &str = "kube-system";

/// The lease that they are candidates for, whatever it is called in the configuration. Likewise.
const LEASE: &str = "kube-scheduler";

/// How the one is chosen that gets the lease. Likewise.
const STRATEGY: &str = "OldestEmulationVersion";

/// After how long a candidate is renewed that nobody asks for.
/// Follows `client-go/tools/leaderelection/leasecandidate.go#requeueInterval @v1.36.3`.
const RENEWAL: Duration = Duration::from_mins(5);

/// Waits after failed writes: the first, twice as long each time, up to the longest.
/// Follows `client-go/util/workqueue/default_rate_limiters.go#DefaultTypedControllerRateLimiter @v1.36.3`.
const WAITS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1000));

/// The versions that a candidate is chosen by, such as `1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// What the program is.
    pub binary: String,
    /// What it behaves as.
    pub emulation: String,
}

/// A candidate for being chosen: an object of the API that has to be there, and to be renewed whenever it is pinged.
pub struct Candidacy {
    rest: RestClient,
    clock: Clock,
    name: String,
    versions: Versions,
    seen: Option<Box<LeaseCandidate>>,
    is_synced: Arc<AtomicBool>,
    /// Writes that have failed. Upstream's queue never forgets one either.
    failures: i32,
}

impl Candidacy {
    /// A candidate of this name, which is the identity of its [`Elector`](super::Elector). Its requests must not depend on
    /// who leads.
    pub fn new(rest: RestClient, name: &str, versions: Versions) -> Self {
        let (clock, name) = (rest.clock().clone(), name.to_owned());
        Self { rest, clock, name, versions, seen: None, is_synced: Arc::default(), failures: 0 }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Says whether it is known what there is of the candidate, for a health check.
    pub fn synced(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let is_synced = self.is_synced.clone();
        move || is_synced.load(Ordering::Acquire)
    }

    /// Keeps the candidate for as long as there is something to be seen of it.
    /// Follows `client-go/tools/leaderelection/leasecandidate.go#LeaseCandidate.Run @v1.36.3`.
    pub async fn run(mut self, seen: impl Stream<Item = CandidateChange>) {
        let mut seen = pin!(seen);
        while !self.is_synced.load(Ordering::Acquire) {
            let Some(news) = seen.next().await else { return };
            self.take(news);
        }
        let mut next = Mono::MAX;
        loop {
            let wait = self.renew().await;
            // A renewal that is due before stays due.
            next = next.min(self.clock.mono() + wait);
            loop {
                tokio::select! {
                    biased;
                    news = seen.next() => {
                        let Some(news) = news else { return };
                        if self.take(news) {
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

    /// Takes in what is seen; says whether an answer is waited for.
    fn take(&mut self, seen: CandidateChange) -> bool {
        self.seen = match seen {
            CandidateChange::All(candidate) => {
                self.is_synced.store(true, Ordering::Release);
                candidate
            }
            CandidateChange::Now(candidate) => Some(candidate),
            CandidateChange::Gone => None,
        };
        self.seen.as_ref().is_some_and(|candidate| is_pinged(&candidate.spec))
    }

    /// Makes the candidate, or renews it. Gives the time after which to do so again.
    async fn renew(&mut self) -> Duration {
        match self.write().await {
            Ok(()) => RENEWAL,
            Err(why) => {
                error!(err = %why, "Ensuring lease failed");
                let wait = WAITS.0.as_secs_f64() * 2_f64.powi(self.failures);
                self.failures = self.failures.saturating_add(1);
                Duration::from_secs_f64(wait.min(WAITS.1.as_secs_f64()))
            }
        }
    }

    /// Follows `client-go/tools/leaderelection/leasecandidate.go#LeaseCandidate.ensureLease @v1.36.3`.
    async fn write(&self) -> Result<(), ApiError> {
        let now = Some(MicroTime(self.clock.now().wall));
        let Some(seen) = &self.seen else {
            debug!("Creating lease candidate");
            let candidate = self.candidate(now);
            self.send(Call::Post(body(&candidate)?), "").await?;
            debug!("Created lease candidate");
            return Ok(());
        };
        debug!("Lease candidate exists. Renewing.");
        let mut candidate = seen.clone();
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

/// Whether somebody has asked since it was renewed last.
fn is_pinged(spec: &LeaseCandidateSpec) -> bool {
    let renewed = spec.renew_time.as_ref().map(|time| time.0);
    spec.ping_time.as_ref().is_some_and(|time| Some(time.0) > renewed)
}

fn body(candidate: &LeaseCandidate) -> Result<bytes::Bytes, ApiError> {
    serde_json::to_vec(candidate).map(Into::into).map_err(|error| ApiError::Request(error.to_string()))
}
