//! HTTPS server on port 10259 for health, metrics and debugging.
//!
//! ```text
//!  listener ─▶ connection (TLS: pairs, SNI; slow and idle clients) ─▶ handler
//!                                                                       │ authentication  front proxy · certificate · token
//!               files, reloaded ────▶ pairs, authorities                │ authorization   groups · open paths · the API server
//!               ConfigMap, watched ─▶ authorities, header names         ▼
//!                                                                      mux ─▶ health · metrics · pages · debugging
//! ```
//!
//! [`Server::bind`] binds the port and reports errors. [`Server::run`] serves until it is told to shut down. The contents come
//! in as [`Endpoints`], and the settings as [`Options`]. This module knows no flags, and uses only the clock that it is given.
//! Nothing that it starts outlives `run`, except for blocking work in progress, such as a profile. The caller provides the
//! clients for the API server.
//!
//! A request is served only if it is authenticated and authorized. If either cannot be decided, it is rejected.
//!
//! Differences from upstream:
//!
//! - The self-signed certificate has ECDSA keys.
//! - TLS 1.0 and 1.1 and cipher suites that are considered unsafe are not supported.
//! - Files are read every two seconds instead of watched.
//! - Client certificates have to be X.509 v3 with RSA keys (2048 bits and more) or P-256, P-384 or Ed25519 keys.
//! - CPU and heap profiles are complete. Other profiles contain only what is known without Go's runtime.
//! - A panic ends the process.

mod activity;
mod answers;
mod ask;
mod authenticate;
mod authorize;
mod certificate;
mod connection;
mod endpoints;
mod error;
mod exposition;
mod gauges;
mod handler;
mod health;
mod listener;
mod mux;
mod negotiate;
mod options;
mod pages;
mod pair;
mod pprof;
mod refuse;
mod reload;
mod reply;
mod resources;
mod server;
mod serving;
mod slis;
mod status;
mod tls;
mod trust;
mod x509;

pub use endpoints::{Endpoints, IsLeader, MetricsSource, Profiling, SetVerbosity, Versions};
pub use error::ServeError;
pub use health::{HealthCheck, health_check};
pub use options::{
    AuthenticationOptions, AuthorizationOptions, Options, RequestHeaderOptions, SniCertificate, TlsOptions,
};
pub use server::{Clients, Server};
