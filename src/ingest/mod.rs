//! From the API server's watches into cache, queue and listers.
//!
//! ```text
//!  kube-apiserver ──▶ reflector, one a kind ──▶ deliver ──▶ store (listers) ──▶ handlers ──▶ cache, queue
//!    lists, watches     resume, start over       what changed                     what it means
//! ```
//!
//! Each kind has a task of its own and is told in order; between kinds there is no order, as upstream. Everything from
//! `deliver` on is synchronous. A kind is watched if somebody asked for its lister or registered events of it; `ingest`
//! itself knows no plugin.
//! An object that cannot be read is logged, counted, and left as it was. [`Ingest::read`] reads every kind once instead of
//! watching it, for commands that only look; from `deliver` on it is the same.

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

/// What kinds are watched or read with.
struct Starter {
    client: kube::Client,
    handlers: Arc<Handlers>,
    clock: Clock,
    seed: u64,
    unreadable: Unreadable,
    refusals: Refusals,
    pending: Pending,
    /// Whose JSON is kept for extenders.
    whole: WholeObjects,
}

/// Watches the cluster for a scheduler.
pub struct Ingest {
    starter: Starter,
    watched: Vec<Watched>,
}

impl Ingest {
    /// Gets ready to watch the kinds that were asked for, and ends the asking. Nothing is requested of the API server before
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

    /// Sets what says of a node that came or changed whether a pod might fit on it, for when hints are off. Before
    /// [`Self::start`] only.
    #[must_use]
    pub fn with_node_check(mut self, check: NodeCheck) -> Self {
        let handlers = Arc::get_mut(&mut self.starter.handlers).expect("nothing was started yet");
        handlers.set_node_check(check);
        self
    }

    /// Sets what spreads watch timeouts and waits, so that not all schedulers of a cluster ask at the same time.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.starter.seed = seed;
        self
    }

    /// Starts the reflectors: hands each, with a name for it, to `spawn`, whose caller owns it and observes its end. One ends
    /// only when the process has to, with code 1, and has said why.
    pub fn start(&self, mut spawn: impl FnMut(&'static str, BoxFuture<'static, ()>)) {
        for kind in &self.watched {
            spawn(kind.task, kind.feed(&self.starter).watch(&self.starter));
        }
    }

    /// Reads all objects of the kinds that are looked up, once and instead of watching them: with lists alone, all kinds at the
    /// same time, and handled kind by kind in one order. `counted` is told how many objects came with each page. Returns the
    /// kinds that could not be read; it is as if there were no object of them.
    pub async fn read(&self, counted: impl Fn(usize) + Send + Sync + 'static) -> Result<Vec<Unread>, CacheError> {
        let counted: Arc<dyn Fn(usize) + Send + Sync> = Arc::new(counted);
        let kinds = self.watched.iter().filter(|kind| kind.is_looked_up);
        // Decoding is most of the work, and tasks of their own spread it over the processors.
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

    /// The watched resources, sorted and separated by commas, as `kubectl create clusterrole --resource` takes them.
    pub fn resources(&self) -> String {
        let resources: BTreeSet<String> = self.watched.iter().map(|kind| kind.kind.resource()).collect();
        resources.into_iter().collect::<Vec<_>>().join(",")
    }

    /// Waits until all objects that there were at first have been handled, of every kind.
    /// Follows `pkg/scheduler/eventhandlers.go#Scheduler.WaitForHandlersSync @v1.36.3`.
    pub async fn synced(&self) {
        self.starter.pending.none().await;
    }

    /// The kinds of which that is not so yet, by their plurals.
    pub fn unsynced(&self) -> Vec<String> {
        self.starter.pending.kinds()
    }

    /// How many objects could not be read so far.
    pub fn unreadable(&self) -> u64 {
        self.starter.unreadable.count()
    }
}
