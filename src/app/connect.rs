//! Clients of the API server, from what flags, files and the environment say.

use anyhow::{Context as _, anyhow};

use crate::config::{Config, Flags};
use crate::dispatcher::client;

/// The connection of the kubeconfig that flags or configuration name; inside a cluster, of the service account.
pub(super) async fn connection(config: &Config, flags: &Flags) -> anyhow::Result<kube::Config> {
    let path = &config.client_connection.kubeconfig;
    if let (Some(_), Some(file)) = (&flags.deprecated.kubeconfig, &flags.misc.config) {
        tracing::warn!("--kubeconfig is ignored, as --config is given: {file} has clientConnection.kubeconfig for it");
    }
    let mut connection = if path.is_empty() {
        if flags.misc.master.is_none() {
            tracing::warn!(
                "Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work."
            );
        }
        match kube::Config::incluster() {
            Ok(config) => config,
            Err(_) if flags.misc.master.is_some() => kube::Config::new(http::Uri::from_static("http://localhost")),
            Err(_) => {
                return Err(anyhow!(
                    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
                ));
            }
        }
    } else {
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Err(anyhow!("stat {path}: no such file or directory"));
        }
        let file = kube::config::Kubeconfig::read_from(path).map_err(|error| anyhow!("kubeconfig {path}: {error}"))?;
        kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default())
            .await
            .with_context(|| format!("using kubeconfig {path}"))?
    };
    if let Some(master) = &flags.misc.master {
        connection.cluster_url = master.parse().with_context(|| format!("--master {master}"))?;
    }
    Ok(connection)
}

/// A client of its own connections. `part` of the process is added to the agent's name.
pub(super) fn client(connection: &kube::Config, part: &str) -> anyhow::Result<kube::Client> {
    client::client(connection.clone(), &format!("{}{part}", client::AGENT)).context("building the client")
}
