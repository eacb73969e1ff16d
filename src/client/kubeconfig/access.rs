//! Access to an API server, as a context of a kubeconfig describes it.

use http::Uri;

use super::super::access_error::AccessError;
use super::{check, server, wire};
use crate::config::TlsSettings;
use crate::go::errno;
use crate::go::json::Value;
use crate::go::quote::quote;

/// Name of the cluster extension that holds settings for exec plugins.
/// From `client-go/tools/clientcmd/client_config.go#clusterExtensionKey @v1.36.3`.
const FOR_PLUGINS: &str = "client.authentication.k8s.io/exec";

/// Address of an API server, and the credentials for it. Follows `client-go/rest/config.go#Config @v1.36.3`.
#[derive(Clone, PartialEq)]
pub struct Access {
    /// URL of the server. The path of every request begins with this URL's path.
    pub server: Uri,
    /// The server as written in the configuration, for plugins.
    pub host: String,
    /// The proxy configured for the server, if any.
    pub proxy: Option<Uri>,
    /// TLS settings of connections, including the client certificate.
    pub tls: TlsSettings,
    /// Credentials with which the client authenticates.
    pub user: User,
    /// The user that the client impersonates, if any.
    pub impersonation: Option<Impersonation>,
}

/// Credentials other than client certificates. An empty string means that a credential is not set.
#[derive(Clone, Default, PartialEq)]
pub struct User {
    /// Bearer token for the `Authorization` header.
    pub token: String,
    /// Path of the token's file, which is read again periodically.
    pub token_file: String,
    /// User name for basic authentication.
    pub username: String,
    /// Password for basic authentication.
    pub password: String,
    /// Exec plugin that prints credentials.
    pub exec: Option<ExecPlugin>,
}

/// The user that the client impersonates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impersonation {
    /// Name of the impersonated user.
    pub user: String,
    /// UID of the impersonated user.
    pub uid: String,
    /// Groups of the impersonated user.
    pub groups: Vec<String>,
    /// Extra attributes of the impersonated user.
    pub extra: Vec<(String, Vec<String>)>,
}

/// An exec plugin: a program that prints credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecPlugin {
    /// Path of the program, or a name to look up in `PATH`.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables that are added to those of this process.
    pub env: Vec<(String, String)>,
    /// Version of `client.authentication.k8s.io` that the program uses, including the group.
    pub api_version: String,
    /// Hint to install the program, shown if it is missing.
    pub install_hint: String,
    /// Whether the program gets the cluster's settings.
    pub provide_cluster_info: bool,
    /// The cluster's extension for plugins.
    pub cluster_config: Option<serde_json::Value>,
    /// The cluster's `disable-compression`, which is passed to plugins.
    pub disable_compression: bool,
    /// Whether the program may prompt the user.
    pub interactive: Interactive,
}

/// Whether an exec plugin may prompt the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interactive {
    /// The plugin never prompts the user.
    Never,
    /// The plugin may prompt if there is a terminal.
    IfAvailable,
    /// The plugin must be able to prompt.
    Always,
}

/// A kubeconfig file, with the flags that override parts of it.
pub(super) struct Contexts<'a> {
    pub(super) file: &'a wire::File,
    /// The context to use instead of the current one.
    pub(super) context: Option<&'a str>,
    /// The server to use instead of the cluster's server. Empty if it is not overridden.
    pub(super) master: &'a str,
}

impl Contexts<'_> {
    /// Resolves the context to an access. Returns `None` if no server is configured.
    /// Follows `client-go/tools/clientcmd/client_config.go#DirectClientConfig.ClientConfig @v1.36.3`.
    pub(super) fn resolve(&self) -> Result<Option<Access>, AccessError> {
        let name = match self.context.filter(|name| !name.is_empty()) {
            Some(name) if self.file.context(name).is_none() => {
                return Err(AccessError::new(format!("context {} does not exist", quote(name))));
            }
            Some(name) => name,
            None => &self.file.current_context,
        };
        let context = self.file.context(name);
        let mut faults = Vec::new();
        if !name.is_empty() && context.is_none() {
            faults.push(format!("context was not found for specified context: {name}"));
        }
        let context = context.cloned().unwrap_or_default();
        let user = self.file.user(&context.user).cloned().unwrap_or_default();
        let known = self.file.cluster(&context.cluster);
        let mut cluster = known.cloned().unwrap_or_default();
        if !self.master.is_empty() {
            self.master.clone_into(&mut cluster.server);
            // `tls-server-name` belongs to the replaced server.
            cluster.tls_server_name.clear();
        }
        faults.extend(check::user(&context.user, &user));
        faults.extend(check::cluster(&context.cluster, &cluster, known.is_some()));
        match faults.as_slice() {
            [] => access(&cluster, &user).map(Some),
            [only] if only == check::NO_SERVER => Ok(None),
            faults => Err(check::invalid(faults)),
        }
    }
}

/// Returns the access to a cluster as a user. Credentials are used only if the server's URL is HTTPS.
fn access(cluster: &wire::Cluster, user: &wire::User) -> Result<Access, AccessError> {
    let proxy = match &*cluster.proxy_url {
        "" => None,
        url => Some(server::proxy(url).map_err(AccessError::new)?),
    };
    let url = server::url(&cluster.server)?;
    let mut access = Access {
        host: cluster.server.clone(),
        proxy,
        tls: TlsSettings::default(),
        user: User::default(),
        impersonation: impersonation(user),
        server: url,
    };
    if access.server.scheme_str() != Some("https") {
        return Ok(access);
    }
    access.user = credentials(user, cluster)?;
    let has_certificate = !user.client_certificate.is_empty() || !user.client_certificate_data.0.is_empty();
    if has_certificate {
        access.tls.cert_file.clone_from(&user.client_certificate);
        access.tls.cert_data.clone_from(&user.client_certificate_data.0);
        access.tls.key_file.clone_from(&user.client_key);
        access.tls.key_data.clone_from(&user.client_key_data.0);
    }
    access.tls.ca_file.clone_from(&cluster.certificate_authority);
    access.tls.ca_data.clone_from(&cluster.certificate_authority_data.0);
    access.tls.insecure = cluster.insecure_skip_tls_verify;
    access.tls.server_name.clone_from(&cluster.tls_server_name);
    if let Some(provider) = &user.auth_provider {
        // Upstream no longer has any auth provider.
        return Err(AccessError::new(format!("no Auth Provider found for name {}", quote(&provider.name))));
    }
    Ok(access)
}

fn credentials(user: &wire::User, cluster: &wire::Cluster) -> Result<User, AccessError> {
    let mut token = user.token.clone();
    if token.is_empty() && !user.token_file.is_empty() {
        token = read_token(&user.token_file)?;
    }
    Ok(User {
        token,
        token_file: user.token_file.clone(),
        username: user.username.clone(),
        password: user.password.clone(),
        exec: user.exec.as_ref().map(|exec| plugin(exec, cluster)),
    })
}

/// Reads a token from its file.
pub(super) fn read_token(path: &str) -> Result<String, AccessError> {
    let bytes = std::fs::read(path).map_err(|error| AccessError::new(errno::file_error(path.as_ref(), &error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn plugin(exec: &wire::Exec, cluster: &wire::Cluster) -> ExecPlugin {
    let config = cluster.extensions.iter().find(|extension| extension.name == FOR_PLUGINS);
    ExecPlugin {
        command: exec.command.clone(),
        args: exec.args.clone(),
        env: exec.env.iter().map(|variable| (variable.name.clone(), variable.value.clone())).collect(),
        api_version: exec.api_version.clone(),
        install_hint: printable(&exec.install_hint),
        provide_cluster_info: exec.provide_cluster_info,
        cluster_config: config.and_then(|extension| extension.extension.0.as_ref()).map(Value::to_json),
        disable_compression: cluster.disable_compression,
        interactive: match exec.interactive_mode.as_str() {
            "Always" => Interactive::Always,
            "IfAvailable" => Interactive::IfAvailable,
            _ => Interactive::Never,
        },
    }
}

/// Replaces control characters, because they could change the terminal's state.
/// Follows `client-go/tools/clientcmd/client_config.go#cleanANSIEscapeCodes @v1.36.3`.
fn printable(text: &str) -> String {
    let is_printable = |character: &char| !character.is_control() || matches!(character, '\t'..='\r');
    text.chars()
        .map(
            |character| {
                if is_printable(&character) { character.to_string() } else { format!("U+{:04X}", u32::from(character)) }
            },
        )
        .collect()
}

fn impersonation(user: &wire::User) -> Option<Impersonation> {
    (!user.impersonate.is_empty()).then(|| Impersonation {
        user: user.impersonate.clone(),
        uid: user.impersonate_uid.clone(),
        groups: user.impersonate_groups.clone(),
        extra: user.impersonate_user_extra.0.clone().into_iter().collect(),
    })
}

impl Access {
    /// Access to a server's address, without credentials.
    pub fn new(server: Uri) -> Self {
        Self {
            host: server.to_string(),
            server,
            proxy: None,
            tls: TlsSettings::default(),
            user: User::default(),
            impersonation: None,
        }
    }
}
