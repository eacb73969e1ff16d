//! The service account of a pod. Follows `client-go/rest/config.go#InClusterConfig @v1.36.3`.

use crate::go::errno;
use std::path::PathBuf;

use super::super::access_error::AccessError;
use super::access::{Access, read_token};
use super::server;

/// Folder into which a pod's service account is mounted.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The error of a process outside a cluster. From `client-go/rest/config.go#ErrNotInCluster @v1.36.3`.
pub(super) const NOT_IN_CLUSTER: &str =
    "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined";

/// The service account of this process's pod, if the process runs in a pod.
#[derive(Clone, Debug)]
pub struct InCluster {
    folder: PathBuf,
    host: String,
    port: String,
}

impl InCluster {
    /// The service account at its usual path, with the server's address from the environment variables.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var(name).unwrap_or_default();
        Self::new(FOLDER, &variable("KUBERNETES_SERVICE_HOST"), &variable("KUBERNETES_SERVICE_PORT"))
    }

    /// A service account in a folder. `host` and `port` are empty outside a cluster.
    pub fn new(folder: impl Into<PathBuf>, host: &str, port: &str) -> Self {
        Self { folder: folder.into(), host: host.to_owned(), port: port.to_owned() }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// Whether the environment contains the address of a server.
    pub fn names_server(&self) -> bool {
        !self.host.is_empty() && !self.port.is_empty()
    }

    /// Whether the process seems to be in a cluster: the server's address and the token file exist.
    /// Follows `client-go/tools/clientcmd/client_config.go#inClusterClientConfig.Possible @v1.36.3`.
    pub(super) fn is_possible(&self) -> bool {
        let token = std::fs::metadata(self.folder.join("token"));
        self.names_server() && token.is_ok_and(|file| !file.is_dir())
    }

    /// Access to the server as the service account. A non-empty `master` replaces the server's address.
    pub fn access(&self, master: &str) -> Result<Access, AccessError> {
        if !self.names_server() {
            return Err(AccessError::new(NOT_IN_CLUSTER));
        }
        let token_file = self.file("token");
        let token = read_token(&token_file)?;
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let address = format!("https://{host}:{}", self.port);
        let mut access = Access::new(server::url(if master.is_empty() { &address } else { master })?);
        (access.user.token, access.user.token_file) = (token, token_file);
        let authorities = self.file("ca.crt");
        match std::fs::read(&authorities) {
            Ok(pem) if pem.windows(10).any(|bytes| bytes == b"-----BEGIN") => access.tls.ca_file = authorities,
            Ok(_) => tracing::error!(
                "Expected to load root CA config from {authorities}, but got err: error creating pool from \
                 {authorities}: data does not contain any valid RSA or ECDSA certificates"
            ),
            Err(error) => tracing::error!(
                "Expected to load root CA config from {authorities}, but got err: open {authorities}: {}",
                errno::text(&error)
            ),
        }
        Ok(access)
    }
}
