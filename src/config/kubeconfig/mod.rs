//! How the API server is reached and who asks it: kubeconfig files, `--master`, and the service account inside a cluster.
//!
//! ```text
//! file ──decode──▶ wire types ──the current context──▶ checked ──▶ Access
//!        lenient                 --master over it       texts of    for the clients
//!                                                       upstream
//! ```
//!
//! Follows `client-go/tools/clientcmd @v1.36.3` as `kube-scheduler` calls it: of several files, of `$KUBECONFIG` and of
//! `KUBERNETES_MASTER` it knows nothing.

mod access;
mod check;
mod file;
mod in_cluster;
mod server;
mod wire;

pub use access::{Access, ExecPlugin, Impersonation, Interactive, User};
pub use in_cluster::InCluster;

use super::load::ConfigError;

/// What is said where nothing names a server.
const EMPTY: &str =
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

/// What the client's flags and configuration come to. `path` and `master` may be empty.
/// Follows `client-go/tools/clientcmd/client_config.go#BuildConfigFromFlags @v1.36.3`.
pub fn access(path: &str, master: &str, in_cluster: &InCluster) -> Result<Access, ConfigError> {
    if path.is_empty() && master.is_empty() {
        tracing::warn!(
            "Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."
        );
        match in_cluster.access("") {
            Ok(access) => return Ok(access),
            Err(error) => tracing::warn!("error creating inClusterConfig, falling back to default config: {error}"),
        }
    }
    let file = if path.is_empty() { file::Contents::default() } else { file::Contents::load(path)? };
    match access::resolve(&file, master)? {
        Some(access) => Ok(access),
        None if in_cluster.is_possible() => in_cluster.access(master),
        None => Err(ConfigError::new(EMPTY)),
    }
}

#[cfg(test)]
mod tests;
