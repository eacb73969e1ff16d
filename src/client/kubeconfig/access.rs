//! Access to an API server, from a context of a kubeconfig.

use http::Uri;

use super::super::access_error::AccessError;
use super::{check, server, wire};
use crate::config::TlsSettings;
use crate::go::errno;
use crate::go::json::Value;
use crate::go::quote::quote;

/// Name of the cluster's extension that is for plugins.
/// `client-go/tools/clientcmd/client_config.go#clusterExtensionKey @v1.36.3`.
const FOR_PLUGINS: &str = "client.authentication.k8s.io/exec";

/// Address of an API server, and the credentials for it. Follows `client-go/rest/config.go#Config @v1.36.3`.
#[derive(Clone, PartialEq)]
pub struct Access {
    /// The server's URL. The path of every request begins with its path.
    pub server: Uri,
    /// The server as it was configured, for plugins.
    pub host: String,
    /// The proxy that was configured for the server.
    pub proxy: Option<Uri>,
    /// TLS settings of connections, the client certificate included.
    pub tls: TlsSettings,
    /// Credentials of the client.
    pub user: User,
    /// User that the client impersonates.
    pub impersonation: Option<Impersonation>,
}

/// Credentials other than certificates; texts are empty where there are none.
#[derive(Clone, Default, PartialEq)]
pub struct User {
    /// Bearer token.
    pub token: String,
    /// Path of a file with the token, which is read again and again.
    pub token_file: String,
    /// Name for basic authentication.
    pub username: String,
    /// Its password.
    pub password: String,
    /// Program that prints credentials.
    pub exec: Option<ExecPlugin>,
}

/// User that the client makes requests as, other than its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Impersonation {
    /// The user.
    pub user: String,
    /// Its UID.
    pub uid: String,
    /// Its groups.
    pub groups: Vec<String>,
    /// Its other attributes.
    pub extra: Vec<(String, Vec<String>)>,
}

/// A program that prints credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecPlugin {
    /// A path, or a name that is looked up.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables in addition to this process's.
    pub env: Vec<(String, String)>,
    /// The version of `client.authentication.k8s.io` it speaks, group included.
    pub api_version: String,
    /// Hint for users who do not have the program.
    pub install_hint: String,
    /// Whether the program is told about the cluster.
    pub provide_cluster_info: bool,
    /// Settings of the cluster for plugins.
    pub cluster_config: Option<serde_json::Value>,
    /// The cluster's `disable-compression`, for plugins.
    pub disable_compression: bool,
    /// Whether the program may prompt the user.
    pub interactive: Interactive,
}

/// Whether a plugin may prompt the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interactive {
    /// It never prompts.
    Never,
    /// It may prompt if there is a terminal.
    IfAvailable,
    /// It must be able to prompt.
    Always,
}

/// A kubeconfig file, with what flags say instead of it.
pub(super) struct Contexts<'a> {
    pub(super) file: &'a wire::File,
    /// The context to use instead of the current one.
    pub(super) context: Option<&'a str>,
    /// The server to use instead of the cluster's; empty for the cluster's.
    pub(super) master: &'a str,
}

impl Contexts<'_> {
    /// The access that the context describes. `None` if nothing names a server.
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
            // The name belonged to the other server.
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

/// The access to a cluster as a user. Credentials are for servers by TLS only.
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
        // Upstream has none of them any more.
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

/// Reads the file of a token.
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

/// Replaces control characters, which could change the state of a terminal.
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
    /// Access to an address without credentials.
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
