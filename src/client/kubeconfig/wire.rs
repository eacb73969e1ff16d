//! Wire types of kubeconfig files. Follows `client-go/tools/clientcmd/api/v1/types.go @v1.36.3`.

use std::collections::BTreeMap;

use crate::config::decode::{Bytes, DecodeError, Raw, Reader, Wire, wire_struct};
use crate::go::json::Value;

/// The content of a kubeconfig file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct File {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) preferences: Preferences,
    pub(super) clusters: Vec<NamedCluster>,
    pub(super) users: Vec<NamedUser>,
    pub(super) contexts: Vec<NamedContext>,
    pub(super) current_context: String,
    pub(super) extensions: Vec<NamedExtension>,
}

wire_struct!(File, "v1.Config", {
    "kind" => kind,
    "apiVersion" => api_version,
    "preferences" => preferences,
    "clusters" => clusters,
    "users" => users,
    "contexts" => contexts,
    "current-context" => current_context,
    "extensions" => extensions,
});

impl File {
    /// Finds the context of this name.
    pub(super) fn context(&self, name: &str) -> Option<&Context> {
        self.contexts.iter().find(|context| context.name == name).map(|context| &context.context)
    }

    /// Finds the cluster of this name.
    pub(super) fn cluster(&self, name: &str) -> Option<&Cluster> {
        self.clusters.iter().find(|cluster| cluster.name == name).map(|cluster| &cluster.cluster)
    }

    /// Finds the user of this name.
    pub(super) fn user(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.name == name).map(|user| &user.user)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Preferences {
    colors: bool,
    extensions: Vec<NamedExtension>,
}

wire_struct!(Preferences, "v1.Preferences", {
    "colors" => colors,
    "extensions" => extensions,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamedCluster {
    pub(super) name: String,
    pub(super) cluster: Cluster,
}

wire_struct!(NamedCluster, "v1.NamedCluster", {
    "name" => name,
    "cluster" => cluster,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) tls_server_name: String,
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) certificate_authority: String,
    pub(super) certificate_authority_data: Bytes,
    pub(super) proxy_url: String,
    pub(super) disable_compression: bool,
    pub(super) extensions: Vec<NamedExtension>,
}

wire_struct!(Cluster, "v1.Cluster", {
    "server" => server,
    "tls-server-name" => tls_server_name,
    "insecure-skip-tls-verify" => insecure_skip_tls_verify,
    "certificate-authority" => certificate_authority,
    "certificate-authority-data" => certificate_authority_data,
    "proxy-url" => proxy_url,
    "disable-compression" => disable_compression,
    "extensions" => extensions,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamedUser {
    pub(super) name: String,
    pub(super) user: User,
}

wire_struct!(NamedUser, "v1.NamedAuthInfo", {
    "name" => name,
    "user" => user,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct User {
    pub(super) client_certificate: String,
    pub(super) client_certificate_data: Bytes,
    pub(super) client_key: String,
    pub(super) client_key_data: Bytes,
    pub(super) token: String,
    pub(super) token_file: String,
    pub(super) impersonate: String,
    pub(super) impersonate_uid: String,
    pub(super) impersonate_groups: Vec<String>,
    pub(super) impersonate_user_extra: Extra,
    pub(super) username: String,
    pub(super) password: String,
    pub(super) auth_provider: Option<AuthProvider>,
    pub(super) exec: Option<Exec>,
    pub(super) extensions: Vec<NamedExtension>,
}

wire_struct!(User, "v1.AuthInfo", {
    "client-certificate" => client_certificate,
    "client-certificate-data" => client_certificate_data,
    "client-key" => client_key,
    "client-key-data" => client_key_data,
    "token" => token,
    "tokenFile" => token_file,
    "as" => impersonate,
    "as-uid" => impersonate_uid,
    "as-groups" => impersonate_groups,
    "as-user-extra" => impersonate_user_extra,
    "username" => username,
    "password" => password,
    "auth-provider" => auth_provider,
    "exec" => exec,
    "extensions" => extensions,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamedContext {
    pub(super) name: String,
    pub(super) context: Context,
}

wire_struct!(NamedContext, "v1.NamedContext", {
    "name" => name,
    "context" => context,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
    pub(super) namespace: String,
    pub(super) extensions: Vec<NamedExtension>,
}

wire_struct!(Context, "v1.Context", {
    "cluster" => cluster,
    "user" => user,
    "namespace" => namespace,
    "extensions" => extensions,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NamedExtension {
    pub(super) name: String,
    pub(super) extension: Raw,
}

wire_struct!(NamedExtension, "v1.NamedExtension", {
    "name" => name,
    "extension" => extension,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AuthProvider {
    pub(super) name: String,
    pub(super) config: BTreeMap<String, String>,
}

wire_struct!(AuthProvider, "v1.AuthProviderConfig", {
    "name" => name,
    "config" => config,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Exec {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<ExecVariable>,
    pub(super) api_version: String,
    pub(super) install_hint: String,
    pub(super) provide_cluster_info: bool,
    pub(super) interactive_mode: String,
}

wire_struct!(Exec, "v1.ExecConfig", {
    "command" => command,
    "args" => args,
    "env" => env,
    "apiVersion" => api_version,
    "installHint" => install_hint,
    "provideClusterInfo" => provide_cluster_info,
    "interactiveMode" as "v1.ExecInteractiveMode" => interactive_mode,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ExecVariable {
    pub(super) name: String,
    pub(super) value: String,
}

wire_struct!(ExecVariable, "v1.ExecEnvVar", {
    "name" => name,
    "value" => value,
});

/// Extra attributes of a user, each with its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Extra(pub(super) BTreeMap<String, Vec<String>>);

impl Wire for Extra {
    fn go_type() -> String {
        "map[string][]string".to_owned()
    }

    fn read(&mut self, value: &Value, _go: Option<&'static str>, reader: &mut Reader) -> Result<(), DecodeError> {
        reader.object(value, "map[string][]string", |key, value, reader| {
            self.0.entry(key.to_owned()).or_default().read(value, None, reader)?;
            Ok(true)
        })
    }
}
