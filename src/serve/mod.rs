//! HTTPS on port 10259: health, metrics, and what people want to know of a running scheduler.
//!
//! ```text
//!  listener ─▶ connection (TLS: pairs, SNI; slow and idle clients) ─▶ handler
//!                                                                       │ who asks     front proxy · certificate · token
//!               files, read again ──▶ pairs, authorities                │ may they     groups · open paths · the API server
//!               ConfigMap, watched ─▶ authorities, header names         ▼
//!                                                                      mux ─▶ health · metrics · pages · debugging
//! ```
//!
//! [`Server::bind`] takes the port and says what is wrong, [`Server::run`] serves until it is told to end. All that is served
//! is handed in as [`Endpoints`], and how as [`Options`]: this module knows no flags, starts nothing that outlives `run`, and
//! reads no clock but the one that it is given. What the API server has to say it is asked with clients from outside.
//!
//! Nobody is served what they may not have: as long as it cannot be told who asks, or whether they may, the answer is no.
//!
//! What is different from upstream: the certificate that is made has ECDSA keys; TLS 1.0 and 1.1 and suites that are not
//! considered safe are not spoken; files are read every two seconds instead of watched; client certificates have to be X.509
//! v3 ones of RSA (2048 bits and more), P-256, P-384 or Ed25519 keys; of profiles there are CPU ones, and of the rest what
//! can be known without Go's runtime; a panic ends the process.

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
