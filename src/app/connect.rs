//! Clients for the API server, from flags, kubeconfig files and the environment.

use anyhow::anyhow;

use crate::client::Transport;
use crate::client::kubeconfig::{self, InCluster};
use crate::clock::Clock;
use crate::config::{ClientConnection, Config, Flags};
use crate::metrics::RestMetrics;
use crate::version;

/// Returns the transport to the API server, from the configured kubeconfig or, inside a cluster, from the service account.
/// Follows `cmd/kube-scheduler/app/options/options.go#createKubeConfig`, `#createClients @v1.36.3`.
pub(super) fn transport(config: &Config, flags: &Flags, clock: &Clock) -> anyhow::Result<Transport> {
    let connection = &config.client_connection;
    if let (Some(_), Some(file)) = (&flags.deprecated.kubeconfig, &flags.misc.config) {
        tracing::warn!(
            "Ignoring --kubeconfig because --config is set; use clientConnection.kubeconfig in {file} instead"
        );
    }
    let master = flags.misc.master.as_deref().unwrap_or_default();
    let transport = access(&connection.kubeconfig, master, clock)?;
    if connection.qps > 0.0 && connection.burst <= 0 {
        return Err(anyhow!(
            "burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0"
        ));
    }
    tell_content(connection);
    Ok(transport)
}

/// Warns if the configuration asks for a content type other than JSON or upstream's default, since only JSON is supported.
fn tell_content(connection: &ClientConnection) {
    let known = ["", "application/json", "application/vnd.kubernetes.protobuf"];
    let asked =
        connection.accept_content_types.split(',').map(|asked| asked.split(';').next().unwrap_or_default().trim());
    for content in asked.chain([connection.content_type.as_str()]) {
        if !known.contains(&content) && content != "*/*" {
            tracing::warn!("Content type {content} in clientConnection is not supported, using JSON");
        }
    }
}

/// Returns the transport to the API server that a kubeconfig names.
pub(super) fn from_file(path: &str, clock: &Clock) -> anyhow::Result<Transport> {
    access(path, "", clock)
}

fn access(path: &str, master: &str, clock: &Clock) -> anyhow::Result<Transport> {
    let access = kubeconfig::access(path, master, &InCluster::from_environment()).map_err(|error| anyhow!(error))?;
    Transport::new(access, clock.clone()).map_err(|error| anyhow!(error))
}

/// Returns the transport with the service account of this pod, or `None` outside a cluster.
pub(super) fn in_cluster(clock: &Clock) -> Option<anyhow::Result<Transport>> {
    let account = InCluster::from_environment();
    let transport = || {
        let access = account.access("").map_err(|error| anyhow!(error))?;
        Transport::new(access, clock.clone()).map_err(|error| anyhow!(error))
    };
    account.names_server().then(transport)
}

/// Returns a client with connections of its own. The User-Agent names the client.
pub(super) fn client(transport: &Transport, name: &str, metrics: &RestMetrics) -> kube::Client {
    transport.client(&version::user_agent(name), Some(metrics.clone()))
}
