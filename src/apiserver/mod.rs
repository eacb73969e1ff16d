//! An in-memory API server with the API of kube-apiserver 1.36, for schedulers, kubectl and tests. A socket is optional.
//!
//! ```text
//!  kube::Client ──▶ service ──▶ route ─┬─▶ create ─▶ defaulting ▶ admission ▶ strategy ▶ validation ─┐
//!                   (faults)           ├─▶ update, patch, delete, binding ──────────────────────────┤
//!                      ▲               └─▶ list, watch ◀── bytes of the stored objects ─────────────┤
//!                      └── watch lines ◀── queues ◀────────────────────────────────────────── store ◀
//! ```
//!
//! Objects are stored as JSON bytes with a small index. Lists and watches send slices of those bytes. Only writes parse
//! them. One mutex guards all state ([`store::State`]). It is held for one synchronous step and never across an await.
//! The time and the random seed come from the server's [`Options`] only, so the same requests at the same times give the
//! same bytes. The server is for simulation and tests, never a place to keep data.
//!
//! Without a socket, time does not pass by itself: the caller advances the clock, then calls [`ApiServer::tick`].
//! [`ApiServer::next_deadline`] returns when the next tick is due. On a port ([`ApiServer::listen`]) the server ticks in
//! real time.

mod accept;
mod admission;
mod amounts;
mod binding;
mod body;
mod call;
mod change;
mod create;
mod decode;
mod defaulting;
mod delete;
mod direct;
mod discovery;
mod events;
mod eviction;
mod expiry;
pub mod faults;
mod gated;
pub mod kinds;
mod list;
mod listen;
mod meta;
mod names;
mod namespaces;
mod object;
mod openapi;
mod origin;
mod owners;
mod part;
mod patch;
mod pods;
mod reply;
mod route;
mod scale;
mod schema;
mod selectors;
mod service;
mod services;
mod status;
mod store;
mod strategy;
mod table;
mod update;
mod validation;
mod watch;
mod watcher;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch as signal;

pub use body::ReplyBody;
pub use delete::{DeleteOptions, Deleted};
pub use faults::{Fault, Faults, Gate};
pub use kinds::Kind;
pub use listen::{Ended, Listener};
pub use object::Object;

use crate::clock::Clock;
use crate::config::FeatureGates;
use faults::FaultHook;
use store::{Settings, State};

/// Default time for which an event is kept.
/// The default of `--event-ttl`, `pkg/controlplane/apiserver/options/options.go#NewOptions @v1.36.3`.
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

/// Clock function that returns the current time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Settings of a new server.
#[derive(Clone)]
pub struct Options {
    /// Clock that gives the time of each request.
    pub now: Now,
    /// Seed of UIDs and generated names.
    pub seed: u64,
    /// Number of changes kept per kind, for watches and lists from an older version.
    pub history: usize,
    /// Whether a create in a missing namespace also creates the namespace, for simulations of a partial cluster.
    pub create_namespaces: bool,
    /// Whether the objects that every cluster has, such as namespaces and priority classes, exist from the start.
    pub built_in_objects: bool,
    /// Feature gates of the server. They decide about admission, defaults and validation, as those of kube-apiserver do.
    pub gates: FeatureGates,
    /// Time for which an event is kept after its last write. With `None`, events do not expire, for simulations that report them.
    pub event_ttl: Option<SignedDuration>,
    /// Whether objects are stored exactly as a real server stores them, including data that no scheduler reads: addresses of
    /// services, and `managedFields`, which server-side apply requires. Objects become larger and writes slower, so
    /// simulations leave this option off. A server for kubectl needs it.
    pub exact: bool,
}

/// An in-memory API server. Clones share all state.
#[derive(Clone)]
pub struct ApiServer(Arc<ServerState>);

/// State that all clones of a server share.
struct ServerState {
    now: Now,
    state: Mutex<State>,
    hook: FaultHook,
    /// Current version and time, sent after each transaction while a request is held.
    progress: signal::Sender<(u64, Timestamp)>,
}

impl Options {
    /// Returns default options with this clock: seed 0, 10,000 changes per kind, namespaces must exist, built-in objects exist,
    /// default feature gates, and one hour for events.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            seed: 0,
            history: 10_000,
            create_namespaces: false,
            built_in_objects: true,
            gates: FeatureGates::default(),
            event_ttl: Some(EVENT_TTL),
            exact: false,
        }
    }

    /// Sets [`exact`](Self::exact), for a server that clients cannot tell from a real server.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// Returns default options with the wall time of `clock`.
    pub fn by_clock(clock: &Clock) -> Self {
        let clock = clock.clone();
        Self::new(move || clock.now().wall)
    }
}

impl ApiServer {
    /// Creates a server with no objects except the built-in ones.
    pub fn new(options: Options) -> Self {
        let settings = Settings {
            gates: options.gates,
            event_ttl: options.event_ttl,
            history: options.history,
            create_namespaces: options.create_namespaces,
            exact: options.exact,
        };
        let time = (options.now)();
        let mut state = State::new(settings, options.seed, time);
        if options.built_in_objects {
            state.add_built_in_objects();
        }
        let progress = signal::Sender::new((state.version, time));
        Self(Arc::new(ServerState { now: options.now, state: Mutex::new(state), hook: FaultHook::default(), progress }))
    }

    /// Returns a client that calls the server directly, without a socket. Must be called inside a tokio runtime, which then
    /// runs the requests.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// Returns the server as a `tower` service.
    #[must_use]
    pub fn service(&self) -> Self {
        self.clone()
    }

    /// Returns the handle with which a test injects faults.
    pub fn faults(&self) -> Faults {
        Faults::new(self.clone())
    }

    /// Returns the number of requests being served plus watch events that no client has read yet. Held requests (see
    /// [`held`](Self::held)) are not counted, because another request, a test or the passing of time has to end them.
    pub fn pending(&self) -> usize {
        self.with(|state| state.open + state.undelivered - state.held)
    }

    /// Returns the number of requests that a [`Gate`] holds, or that wait for a version that the server has not reached.
    pub fn held(&self) -> usize {
        self.with(|state| state.held)
    }

    /// Returns the newest resource version.
    pub fn version(&self) -> u64 {
        self.with(|state| state.version)
    }

    /// Does the work that has become due: ends watches, sends bookmarks, removes expired events, and lets requests time out
    /// that wait for a version.
    pub fn tick(&self) {
        self.with(|state| {
            state.expire_events();
            state.tick_watches();
        });
    }

    /// Returns the time at which [`tick`](Self::tick) next has work to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.with(|state| {
            let expiry = state.expiries.front().map(|(at, ..)| *at);
            [state.next_watch_deadline(), expiry, state.deadlines.iter().min().copied()].into_iter().flatten().min()
        })
    }

    /// Runs one transaction under the lock, then wakes the waiting tasks that it affects.
    fn with<T>(&self, transaction: impl FnOnce(&mut State) -> T) -> T {
        let now = (self.0.now)();
        let (result, wakers, mark, held) = {
            let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.now = now;
            state.author = None;
            let result = transaction(&mut state);
            (result, std::mem::take(&mut state.wakers), (state.version, now), state.held)
        };
        for waker in wakers {
            waker.wake();
        }
        if held > 0 {
            self.0.progress.send_if_modified(|seen| std::mem::replace(seen, mark) != mark);
        }
        result
    }

    fn hook(&self) -> &FaultHook {
        &self.0.hook
    }

    fn progress(&self) -> signal::Receiver<(u64, Timestamp)> {
        self.0.progress.subscribe()
    }
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (version, pending) = self.with(|state| (state.version, state.open + state.undelivered));
        f.debug_struct("ApiServer").field("version", &version).field("pending", &pending).finish_non_exhaustive()
    }
}
