//! From the API server's watches into cache, queue and listers.
//!
//! ```text
//!  kube-apiserver ──▶ reflector, one a kind ──▶ deliver ──▶ store (listers) ──▶ handlers ──▶ cache, queue
//!    lists, watches     resume, start over       what changed                     what it means
//! ```
//!
//! Each kind has a task of its own and is told in order; between kinds there is no order, as upstream. Everything from
//! `deliver` on is synchronous. Kinds are watched if a plugin looks them up or registered events of them; see [`Ingest`].
//! An object that cannot be read is logged, counted, and left as it was.

mod decode;
mod deliver;
mod handlers;
mod kinds;
mod reflector;
mod sinks;
mod synced;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::de::DeserializeOwned;

pub use handlers::{HandlerParts, Handlers, NodeCheck};

use crate::clock::{Clock, Rng};
use crate::config::{ExtensionPoint, FeatureGates};
use crate::framework::{BoxFuture, Framework};
use crate::listers::Listers;
use crate::scheduler::{Shared, WholeObjects};
use decode::{Keep, Reading, Unreadable};
use deliver::Sink;
use kinds::Watched;
use reflector::{Parts, Reflector, Source};
use synced::Pending;

/// What a reflector is started with.
struct Starter {
    client: kube::Client,
    handlers: Arc<Handlers>,
    listers: Arc<Listers>,
    clock: Clock,
    seed: u64,
    unreadable: Unreadable,
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
    /// Gets ready to watch what `profiles` need. Nothing is asked of the API server before [`Self::start`].
    pub fn new(shared: &Shared, profiles: &[Arc<Framework>], gates: &FeatureGates, client: kube::Client) -> Self {
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
        let watched = kinds::watched(&plugin_names(profiles), &shared.queue.registered_events(), gates);
        let starter = Starter {
            client,
            handlers,
            listers: shared.listers.clone(),
            clock: shared.clock.clone(),
            seed: 0,
            unreadable: Unreadable::default(),
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
            spawn(kind.task, kind.start(&self.starter));
        }
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

impl Starter {
    fn reflect<S>(&self, kind: &str, source: Source, sink: S, keep: Option<Keep<S::Object>>) -> BoxFuture<'static, ()>
    where
        S: Sink,
        S::Object: DeserializeOwned,
    {
        let (pending, kind) = (self.pending.clone(), kind.to_owned());
        let name = kind.clone();
        let reflector = Reflector::new(Parts {
            client: self.client.clone(),
            source,
            rng: Rng::from_seed(self.seed ^ seed_of(&kind)),
            reading: Reading { kind, unreadable: self.unreadable.clone(), keep },
            sink,
            clock: self.clock.clone(),
            synced: Box::new(move || pending.done(&name)),
        });
        Box::pin(async move {
            let error = reflector.run().await;
            tracing::error!(%error, "The scheduler has to end");
        })
    }
}

/// A seed for each kind, so that their waits differ. FNV-1a.
fn seed_of(kind: &str) -> u64 {
    kind.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Every plugin that runs at some point of some profile.
fn plugin_names(profiles: &[Arc<Framework>]) -> BTreeSet<String> {
    let points = |profile: &Arc<Framework>| {
        let profile = profile.clone();
        ExtensionPoint::ALL.into_iter().flat_map(move |point| {
            let plugins = profile.expanded().point(point).iter();
            plugins.map(|plugin| plugin.name.clone()).collect::<Vec<String>>()
        })
    };
    profiles.iter().flat_map(points).collect()
}
