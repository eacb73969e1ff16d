//! An API server in memory: what a scheduler, kubectl and tests see of kube-apiserver 1.36, with a socket or without.
//!
//! ```text
//!  kube::Client ──▶ service ──▶ route ─┬─▶ create ─▶ defaulting ▶ admission ▶ strategy ▶ validation ─┐
//!                   (faults)           ├─▶ update, patch, delete, binding ──────────────────────────┤
//!                      ▲               └─▶ list, watch ◀── bytes of the stored objects ─────────────┤
//!                      └── watch lines ◀── queues ◀────────────────────────────────────────── store ◀
//! ```
//!
//! Objects are kept as JSON bytes with a small index; lists and watches hand out slices of those bytes, and only a write
//! parses. One mutex guards everything ([`store::State`]); it is held for one synchronous step and never across an await.
//! The server reads no clock and draws no random number but from what its [`Options`] give it, so the same requests at
//! the same times give the same bytes. It is for simulation and tests, never a place to keep data.
//!
//! Time does not pass in it by itself: whoever moves the clock calls [`ApiServer::tick`] and learns from
//! [`ApiServer::next_deadline`] when that is next due. On a port ([`ApiServer::listen`]), time is real and passes by itself.

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

use jiff::Timestamp;
use tokio::sync::watch as signal;

pub use body::ReplyBody;
pub use delete::{DeleteOptions, Deleted};
pub use faults::{Fault, Faults, Gate};
pub use kinds::Kind;
pub use listen::{Ended, Listener};
pub use object::Object;

use crate::clock::Clock;
use faults::FaultHook;
use store::{Settings, State};

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a server is made.
#[derive(Clone)]
pub struct Options {
    /// Tells the time of each request.
    pub now: Now,
    /// Seeds UIDs and generated names.
    pub seed: u64,
    /// Changes kept a kind, for watches and lists from an older version.
    pub history: usize,
    /// Whether a create in a missing namespace makes the namespace, as a simulation of half a cluster needs it.
    pub create_namespaces: bool,
    /// Whether the namespaces, priority classes and so on that every cluster has are there from the start.
    pub built_in_objects: bool,
    /// Whether objects are kept just as a real server would keep them, also where no scheduler can tell: with addresses of
    /// services, and with `managedFields`, without which there is no server-side apply. It makes objects larger and writes
    /// slower, so simulations go without; a server that kubectl is to see needs it.
    pub exact: bool,
}

/// The server. Clones share everything.
#[derive(Clone)]
pub struct ApiServer(Arc<ServerState>);

/// State that all clones of a server share.
struct ServerState {
    now: Now,
    state: Mutex<State>,
    hook: FaultHook,
    /// Changes when the version or the time has moved and a request waits for that.
    progress: signal::Sender<(u64, Timestamp)>,
}

impl Options {
    /// Options with this clock: seed 0, 10,000 changes a kind, namespaces must exist, built-in objects are there.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            seed: 0,
            history: 10_000,
            create_namespaces: false,
            built_in_objects: true,
            exact: false,
        }
    }

    /// The same for a server that is to be taken for a real one (see [`exact`](Self::exact)).
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.exact = true;
        self
    }

    /// The same, by the wall time of `clock`.
    pub fn by_clock(clock: &Clock) -> Self {
        let clock = clock.clone();
        Self::new(move || clock.now().wall)
    }
}

impl ApiServer {
    /// A server without objects but the built-in ones.
    pub fn new(options: Options) -> Self {
        let settings =
            Settings { history: options.history, create_namespaces: options.create_namespaces, exact: options.exact };
        let time = (options.now)();
        let mut state = State::new(settings, options.seed, time);
        if options.built_in_objects {
            state.add_built_in_objects();
        }
        let progress = signal::Sender::new((state.version, time));
        Self(Arc::new(ServerState { now: options.now, state: Mutex::new(state), hook: FaultHook::default(), progress }))
    }

    /// A client whose requests go straight to the server. Has to be called inside a tokio runtime, which then carries
    /// the requests.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    /// The server as a `tower` service.
    #[must_use]
    pub fn service(&self) -> Self {
        self.clone()
    }

    /// A test's handle for faults.
    pub fn faults(&self) -> Faults {
        Faults::new(self.clone())
    }

    /// Requests that are being served plus watch events that no client has read yet. Requests that a gate or the future
    /// holds are not among them (see [`held`](Self::held)), since nothing but a test or the passing of time can end them.
    pub fn pending(&self) -> usize {
        self.with(|state| state.open + state.undelivered - state.held)
    }

    /// Requests that a [`Gate`] holds, or that wait for a version which the server has not reached.
    pub fn held(&self) -> usize {
        self.with(|state| state.held)
    }

    /// The newest resource version.
    pub fn version(&self) -> u64 {
        self.with(|state| state.version)
    }

    /// Does what the passing of time does: ends watches, sends bookmarks, forgets events.
    pub fn tick(&self) {
        self.with(|state| {
            state.expire_events();
            state.tick_watches();
        });
    }

    /// When [`tick`](Self::tick) next has something to do.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.with(|state| {
            let expiry = state.expiries.front().map(|(at, ..)| *at);
            [state.next_watch_deadline(), expiry, state.deadlines.iter().min().copied()].into_iter().flatten().min()
        })
    }

    /// Runs one transaction, then wakes whom it concerns.
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
