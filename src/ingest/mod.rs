//! Watches the API server and updates cache, queue and listers.
//!
//! ```text
//!  kube-apiserver ──▶ reflector of a kind ──▶ deliver ──▶ store (listers) ──▶ handlers ──▶ cache, queue
//!    lists, watches     resume, relist          changes                          effects
//! ```
//!
//! Each kind has its own task, which delivers changes in order. There is no order between kinds, as in upstream. All code from
//! `deliver` on is synchronous. A kind is watched if it has a lister or if plugins registered events of it. `ingest` does not
//! know the plugins.
//!
//! If an object cannot be decoded, this is logged and counted, and the store keeps its old version. [`Ingest::read`] lists
//! each kind that has a lister once instead of watching it, for commands that do not need changes. The code from `deliver` on is
//! the same.

mod decode;
mod deliver;
mod feed;
mod handlers;
mod kinds;
mod reflector;
mod sinks;
mod synced;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

pub use feed::Unread;
pub use handlers::{HandlerParts, Handlers, NodeCheck};

use crate::cache::CacheError;
use crate::clock::Clock;
use crate::config::FeatureGates;
use crate::framework::{BoxFuture, Framework};
use crate::scheduler::{SchedulerContext, WholeObjects};
use decode::Unreadable;
use kinds::Watched;
use reflector::Refusals;
use synced::Pending;

/// The parts that the feeds of all kinds share.
struct Starter {
    client: kube::Client,
    handlers: Arc<Handlers>,
    clock: Clock,
    seed: u64,
    unreadable: Unreadable,
    refusals: Refusals,
    pending: Pending,
    /// The objects whose JSON is kept for extenders.
    whole: WholeObjects,
}

/// Watches the cluster for a scheduler.
pub struct Ingest {
    starter: Starter,
    watched: Vec<Watched>,
}

impl Ingest {
    /// Prepares to watch the kinds that have listers or registered events, and seals the listers. No request is sent before
    /// [`Self::start`].
    pub fn new(
        shared: &SchedulerContext,
        profiles: &[Arc<Framework>],
        gates: &FeatureGates,
        client: kube::Client,
    ) -> Self {
        let handlers = Arc::new(Handlers::new(HandlerParts {
            cache: shared.cache.clone(),
            queue: shared.queue.clone(),
            waiting_pods: shared.waiting_pods.clone(),
            classes: shared.classes.clone(),
            resource_gates: shared.resource_gates,
            gates: *gates,
            profiles: profiles.iter().map(|profile| profile.name().to_string()).collect(),
            metrics: shared.metrics.clone(),
            clock: shared.clock.clone(),
            node_check: None,
        }));
        let watched = kinds::watched(&shared.listers, &shared.queue.registered_events(), gates);
        let starter = Starter {
            client,
            handlers,
            clock: shared.clock.clone(),
            seed: 0,
            unreadable: Unreadable::default(),
            refusals: Refusals::default(),
            whole: shared.extenders.iter().map(|extender| extender.whole_objects()).collect(),
            pending: Pending::new(watched.iter().map(|kind| kind.name.clone())),
        };
        Self { starter, watched }
    }

    /// Sets the check of added and updated nodes, which is used if queueing hints are disabled. Must be called before
    /// [`Self::start`].
    #[must_use]
    pub fn with_node_check(mut self, check: NodeCheck) -> Self {
        let handlers = Arc::get_mut(&mut self.starter.handlers).expect("nothing was started yet");
        handlers.set_node_check(check);
        self
    }

    /// Sets the seed that spreads watch timeouts and backoffs, so that not all schedulers of a cluster send requests at the
    /// same time.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.starter.seed = seed;
        self
    }

    /// Starts the reflectors of all kinds. `spawn` receives each reflector with its name, and must own the task and observe its
    /// end. A reflector ends only if the process must exit with code 1, and logs the reason.
    pub fn start(&self, mut spawn: impl FnMut(&'static str, BoxFuture<'static, ()>)) {
        for kind in &self.watched {
            spawn(kind.task, kind.feed(&self.starter).watch(&self.starter));
        }
    }

    /// Lists all objects of the kinds with listers once, instead of watching them. All kinds are listed in parallel, and
    /// handled one after another in a fixed order. `counted` is called with the number of objects on each page. Returns the
    /// kinds that could not be listed, which are treated as empty.
    pub async fn read(&self, counted: impl Fn(usize) + Send + Sync + 'static) -> Result<Vec<Unread>, CacheError> {
        let counted: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(counted);
        let kinds = self.watched.iter().filter(|kind| kind.is_looked_up);
        // Decoding takes most of the time, and separate tasks spread it over the CPUs.
        let reads: Vec<_> = kinds
            .map(|kind| (kind, tokio::spawn(kind.feed(&self.starter).read(&self.starter, counted.clone()))))
            .collect();
        let mut unread = Vec::new();
        for (kind, read) in reads {
            match read.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())) {
                Ok(deliver) => deliver(self.starter.clock.now())?,
                Err(failure) => unread.push(Unread::new(&kind.name, &failure)),
            }
        }
        Ok(unread)
    }

    /// Returns the watched resources, sorted and separated by commas, in the form for `kubectl create clusterrole --resource`.
    pub fn resources(&self) -> String {
        let resources: BTreeSet<String> = self.watched.iter().map(|kind| kind.kind.resource()).collect();
        resources.into_iter().collect::<Vec<_>>().join(",")
    }

    /// Waits until all initial objects of every kind have been handled.
    /// Follows `pkg/scheduler/eventhandlers.go#Scheduler.WaitForHandlersSync @v1.36.3`.
    pub async fn synced(&self) {
        self.starter.pending.none().await;
    }

    /// Returns the plurals of the kinds whose initial objects have not all been handled.
    pub fn unsynced(&self) -> Vec<String> {
        self.starter.pending.kinds()
    }

    /// Returns the number of objects that could not be decoded so far.
    pub fn unreadable(&self) -> u64 {
        self.starter.unreadable.count()
    }
}
