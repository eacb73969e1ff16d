//! What the current context of a kubeconfig comes to.

use http::Uri;

use super::super::decode::Value;
use super::super::load::{ConfigError, go_text};
use super::super::text::quote;
use super::super::types::TlsSettings;
use super::file::Contents;
use super::{check, server, wire};

/// Of a cluster's extensions, the one that is for plugins.
/// `client-go/tools/clientcmd/client_config.go#clusterExtensionKey @v1.36.3`.
const FOR_PLUGINS: &str = "client.authentication.k8s.io/exec";

/// How the API server is reached and who asks it. Follows `client-go/rest/config.go#Config @v1.36.3`.
#[derive(Clone, PartialEq)]
pub struct Access {
    /// The server's URL. Its path is one that every request's begins with.
    pub server: Uri,
    /// The server as it was written, for plugins.
    pub host: String,
    /// The proxy that was configured for it.
    pub proxy: Option<Uri>,
    /// How the connection is secured, the client certificate included.
    pub tls: TlsSettings,
    /// Who asks.
    pub user: User,
    /// Who is asked for.
    pub impersonation: Option<Impersonation>,
}

/// Credentials other than certificates; texts are empty where there are none.
#[derive(Clone, Default, PartialEq)]
pub struct User {
    /// A bearer token.
    pub token: String,
    /// Where the token is found, again and again.
    pub token_file: String,
    /// Name for basic authentication.
    pub username: String,
    /// Its password.
    pub password: String,
    /// A program that is asked for credentials.
    pub exec: Option<ExecPlugin>,
}

/// Whom the server is to take the client for.
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

/// A program that is asked for credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecPlugin {
    /// A path, or a name that is looked up.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What its environment has besides this process's.
    pub env: Vec<(String, String)>,
    /// The version of `client.authentication.k8s.io` it speaks, group included.
    pub api_version: String,
    /// What to do where it is missing.
    pub install_hint: String,
    /// Whether it is told of the cluster.
    pub provide_cluster_info: bool,
    /// What the cluster has to say to plugins.
    pub cluster_config: Option<serde_json::Value>,
    /// The cluster's `disable-compression`, which plugins are told.
    pub disable_compression: bool,
    /// Whether it may ask the user.
    pub interactive: Interactive,
}

/// Whether a plugin may ask the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interactive {
    /// It may not.
    Never,
    /// If there is a terminal.
    IfAvailable,
    /// It has to.
    Always,
}

/// The access that the current context describes, with `master` instead of its server unless that is empty. `None` if
/// nothing names a server. Follows `client-go/tools/clientcmd/client_config.go#DirectClientConfig.ClientConfig @v1.36.3`.
pub(super) fn resolve(contents: &Contents, master: &str) -> Result<Option<Access>, ConfigError> {
    let current = &*contents.file.current_context;
    let context = contents.context(current);
    let mut faults = Vec::new();
    if !current.is_empty() && context.is_none() {
        faults.push(format!("context was not found for specified context: {current}"));
    }
    let context = context.cloned().unwrap_or_default();
    let user = contents.user(&context.user).cloned().unwrap_or_default();
    let known = contents.cluster(&context.cluster);
    let mut cluster = known.cloned().unwrap_or_default();
    if !master.is_empty() {
        master.clone_into(&mut cluster.server);
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

/// Credentials are for servers by TLS only.
fn access(cluster: &wire::Cluster, user: &wire::User) -> Result<Access, ConfigError> {
    let proxy = match &*cluster.proxy_url {
        "" => None,
        url => Some(server::proxy(url).map_err(ConfigError::new)?),
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
        // They are gone, but for what is linked in.
        return Err(ConfigError::new(format!("no Auth Provider found for name {}", quote(&provider.name))));
    }
    Ok(access)
}

fn credentials(user: &wire::User, cluster: &wire::Cluster) -> Result<User, ConfigError> {
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

/// A token's file as it is.
pub(super) fn read_token(path: &str) -> Result<String, ConfigError> {
    let failed = |verb: &str, error: &std::io::Error| ConfigError::new(format!("{verb} {path}: {}", go_text(error)));
    let bytes = std::fs::read(path).map_err(|error| {
        failed(if error.kind() == std::io::ErrorKind::IsADirectory { "read" } else { "open" }, &error)
    })?;
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

/// A text that cannot put a terminal into a strange state.
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
    /// Access by nothing but an address.
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
