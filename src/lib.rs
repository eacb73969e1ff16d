//! A scheduler for Kubernetes 1.36: the configuration, decisions and API effects of its own kube-scheduler, as a library
//! and a binary.
//!
//! ```text
//!  kube-apiserver ──watch──▶ ingest ────┬──▶ cache    nodes, and the pods on them, assumed ones too
//!        ▲                              ├──▶ queue    activeQ · backoffQ · unschedulablePods · in flight
//!        │                              └──▶ listers  what plugins look up
//!        │                                     │ pop
//!        │       ┌───────── one thread ────────▼───────────────────────────────────────┐
//!        │       │ scheduler::Scheduler::schedule_one: snapshot ▶ PreFilter ▶ Filter ▶ │
//!        │       │ PreScore ▶ Score ▶ pick ▶ assume ▶ Reserve ▶ Permit   (or PostFilter)│
//!        │       └─────────┬───────────────────────────────────────────────────────────┘
//!        │                 ▼ one task a pod
//!        └─ dispatcher ◀─ WaitOnPermit ▶ PreBind ▶ Bind ▶ PostBind      events ──▶ kube-apiserver
//! ```
//!
//! Two modules serve all others: [`go`] writes what has to equal the output of Go's standard library, and [`apimachinery`]
//! has what clients and servers of the API share.
//!
//! Read from vocabulary to process: [`k8s`] and [`model`] say what there is, [`framework`] is the contract with plugins,
//! [`plugins`] keep it, [`cache`] and [`queue`] hold state, [`scheduler`] acts on it, [`engine`] wires everything, and
//! [`app`], [`simulate`] and [`explain`] are the commands around that; [`serve`] has the endpoints over HTTPS. All requests to
//! an API server go through [`client`]; [`dispatcher`] merges and orders those that write pods.
//! `tests/tidy` has the table of who may import whom.
//!
//! What is absent matters as much. The scheduling cycle knows no network and no runtime: it never awaits, and what has to be
//! written is handed on; only the webhooks of [`extender`] make it wait, as they do upstream's. Nothing but [`clock`] reads
//! a clock, and nothing but an argument brings chance in, so that [`simulate`] runs the same code in virtual time and prints
//! the same for the same seed. Nothing is global: metrics, clients and clocks are handed down.
//!
//! A plugin from outside is added by [`app::App::with_plugin`]; `tests/examples` has two.

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
