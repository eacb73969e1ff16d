//! Clients of an API server: kubeconfigs, connections, credentials, TLS, flow control, retries and requests.
//!
//! ```text
//!  kubeconfig ──▶ Access ──▶ Transport ──▶ kube::Client ──▶ RestClient   writes and single reads: rate limit, retries
//!  files, flags,             TLS, proxies,     │
//!  service account           credentials       └──────────▶ lists and watches
//! ```
//!
//! All of the program's requests to an API server go through this module. [`retry()`] is the only loop that retries single
//! requests. Error texts are those of client-go.

mod access_error;
mod credentials;
pub(crate) mod dial_error;
mod error;
mod flowcontrol;
pub mod kubeconfig;
mod request;
pub mod retry;
mod stream;
mod target;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tls;
mod transport;
mod watch;

pub use access_error::AccessError;
pub use error::{ApiError, TransportKind};
pub use flowcontrol::RateLimiter;
pub use request::{Call, Fence, RestClient, Sending};
pub use retry::retry;
pub use target::Target;
pub use transport::Transport;
pub use watch::watch_object;
