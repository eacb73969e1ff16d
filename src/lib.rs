//! A scheduler for Kubernetes 1.36, as a library and a binary. It reads the configuration of kube-scheduler, makes the same
//! decisions, and sends the same requests to the API server.
//!
//! ```text
//!  kube-apiserver ──watch──▶ ingest ──┬──▶ cache    nodes and the pods on them, including assumed pods
//!    ▲                                ├──▶ queue    activeQ · backoffQ · unschedulablePods · in-flight events
//!    │                                └──▶ listers  objects that plugins look up
//!    │                                        │ pop
//!    │         ┌───────── one thread ─────────▼────────────────────────────────────────┐
//!    │         │ scheduler::Scheduler::schedule_one: snapshot ▶ PreFilter ▶ Filter ▶   │
//!    │         │ PreScore ▶ Score ▶ pick ▶ assume ▶ Reserve ▶ Permit   (or PostFilter) │
//!    │         └─────────┬─────────────────────────────────────────────────────────────┘
//!    │                   ▼ one task per pod
//!    │         WaitOnPermit ▶ PreBind ▶ Bind ▶ PostBind
//!    │                   │
//!  client ◀──┬── dispatcher   the scheduler's writes to pods: status patches, bindings, deletions
//!            └── events       Events about pods
//! ```
//!
//! Two modules hold code that the others share. [`go`] reproduces the output of Go's standard library byte for byte, and
//! [`apimachinery`] has the parts of the API that clients and servers have in common.
//!
//! The modules, from vocabulary to process: [`k8s`] and [`model`] have the data types, and [`config`] the configuration.
//! [`framework`] is the contract with plugins, and [`plugins`] has the in-tree ones. [`cache`], [`queue`] and [`listers`] hold
//! state, and [`scheduler`] acts on it. [`engine`] builds a complete scheduler from these parts. [`app`], [`simulate`] and
//! [`explain`] are the commands. The scheduler process also has leader [`election`] and the HTTPS server of [`serve`], and
//! [`version`] has the versions that it reports. [`apiserver`] is an API server in memory, for [`simulate`] and tests.
//!
//! All requests to an API server go through [`client`]. [`dispatcher`] queues the scheduler's writes to pods: it merges writes
//! to the same pod and sends them in order. `tests/tidy` has the table of permitted imports between modules.
//!
//! Some things are absent on purpose. The scheduling cycle uses neither the network nor an async runtime: it never awaits, and
//! it hands writes to tasks. The only exception is a call to an [`extender`], for which the cycle waits, as in upstream. The
//! scheduler reads the system's clock only through [`clock`], except for the timeouts of extenders, and randomness is always an
//! argument. So [`simulate`] runs the same code in virtual time, and prints the same output for the same seed. Nothing is
//! global: metrics, clients and clocks are passed as arguments.
//!
//! [`app::App::with_plugin`] adds an out-of-tree plugin. `tests/examples` has two of them.

pub mod apimachinery;
pub mod apiserver;
pub mod app;
pub mod cache;
pub mod client;
pub mod clock;
pub mod config;
pub mod dispatcher;
pub mod election;
pub mod engine;
pub mod events;
pub mod explain;
pub mod extender;
pub mod framework;
pub mod go;
pub mod ingest;
pub mod k8s;
pub mod listers;
pub mod metrics;
pub mod model;
pub mod plugins;
pub mod queue;
pub mod scheduler;
pub mod serve;
pub mod simulate;
pub mod testing;
pub mod version;
