//! Kubeconfig files, `--master` and the service account inside a cluster: address of the API server and credentials.
//!
//! ```text
//! file ──decode──▶ wire types ──the current context──▶ checked ──▶ Access
//!        lenient                 --master over it       texts of    for the clients
//!                                                       upstream
//! ```
//!
//! Follows `client-go/tools/clientcmd @v1.36.3`. Like upstream, the scheduler reads a single file: [`access`] ignores
//! `$KUBECONFIG` and `KUBERNETES_MASTER`. `explain` finds its files by kubectl's rules, in [`kubectl_access`].

mod access;
mod check;
mod file;
mod in_cluster;
mod loading;
mod server;
mod wire;

pub use access::{Access, ExecPlugin, Impersonation, Interactive, User};
pub use in_cluster::InCluster;
pub use loading::LoadingRules;

use super::access_error::AccessError;
use access::Contexts;

/// The error if no server is configured.
const EMPTY: &str =
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable";

/// Resolves the access from the client's flags and configuration. `path` and `master` may be empty.
/// Follows `client-go/tools/clientcmd/client_config.go#BuildConfigFromFlags @v1.36.3`.
pub fn access(path: &str, master: &str, in_cluster: &InCluster) -> Result<Access, AccessError> {
    if path.is_empty() && master.is_empty() {
        tracing::warn!(
            "Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."
        );
        match in_cluster.access("") {
            Ok(access) => return Ok(access),
            Err(error) => tracing::warn!("error creating inClusterConfig, falling back to default config: {error}"),
        }
    }
    let file = if path.is_empty() { wire::File::default() } else { file::load(path)? };
    or_in_cluster(Contexts { file: &file, context: None, master }.resolve()?, master, in_cluster)
}

/// Resolves the access that kubectl would use with these files and `--context`.
/// Follows `client-go/tools/clientcmd/merged_client_builder.go#DeferredLoadingClientConfig.ClientConfig @v1.36.3`.
pub fn kubectl_access(
    rules: &LoadingRules,
    context: Option<&str>,
    in_cluster: &InCluster,
) -> Result<Access, AccessError> {
    let file = rules.load()?;
    or_in_cluster(Contexts { file: &file, context, master: "" }.resolve()?, "", in_cluster)
}

/// Returns the access found in files, or else the service account's access.
fn or_in_cluster(found: Option<Access>, master: &str, in_cluster: &InCluster) -> Result<Access, AccessError> {
    match found {
        Some(access) => Ok(access),
        None if in_cluster.is_possible() => in_cluster.access(master),
        None => Err(AccessError::new(EMPTY)),
    }
}

#[cfg(test)]
mod tests;
