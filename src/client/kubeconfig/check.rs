//! Checks of a context's user and cluster. Follows `client-go/tools/clientcmd/validation.go @v1.36.3`.

use super::super::access_error::AccessError;
use super::{server, wire};
use crate::apimachinery::field_error::aggregate;
use crate::go::errno;
use crate::go::quote::quote;

/// The fault reported if the file does not have the context's cluster, and no flag sets the server.
pub(super) const NO_SERVER: &str = "cluster has no server defined";

/// Returns the faults of a user.
/// Follows `client-go/tools/clientcmd/validation.go#validateAuthInfo @v1.36.3`.
pub(super) fn user(name: &str, user: &wire::User) -> Vec<String> {
    let mut faults = certificate(name, user);
    if let Some(exec) = &user.exec {
        if user.auth_provider.is_some() {
            faults.push(format!("authProvider cannot be provided in combination with an exec plugin for {name}"));
        }
        faults.extend(plugin(name, exec));
    }
    let mut methods = Vec::new();
    if !user.token.is_empty() {
        methods.push("token");
    }
    if !user.username.is_empty() || !user.password.is_empty() {
        methods.push("basicAuth");
    }
    if methods.len() > 1 {
        let found = methods.join(" ");
        faults.push(format!(
            "more than one authentication method found for {name}; found [{found}], only one is allowed"
        ));
    }
    let more = !user.impersonate_uid.is_empty()
        || !user.impersonate_groups.is_empty()
        || !user.impersonate_user_extra.0.is_empty();
    if more && user.impersonate.is_empty() {
        faults.push(format!("requesting uid, groups or user-extra for {name} without impersonating a user"));
    }
    faults
}

fn certificate(name: &str, user: &wire::User) -> Vec<String> {
    let mut faults = Vec::new();
    let (file, data) = (&user.client_certificate, !user.client_certificate_data.0.is_empty());
    if file.is_empty() && !data {
        return faults;
    }
    let (key, key_data) = (&user.client_key, !user.client_key_data.0.is_empty());
    if !file.is_empty() && data {
        faults.push(format!(
            "client-cert-data and client-cert are both specified for {name}. client-cert-data will override."
        ));
    }
    if !key.is_empty() && key_data {
        faults.push(format!(
            "client-key-data and client-key are both specified for {name}; client-key-data will override"
        ));
    }
    if key.is_empty() && !key_data {
        faults.push(format!(
            "client-key-data or client-key must be specified for {name} to use the clientCert authentication method."
        ));
    }
    faults.extend(unreadable("client-cert", file, name));
    faults.extend(unreadable("client-key", key, name));
    faults
}

fn plugin(name: &str, exec: &wire::Exec) -> Vec<String> {
    let mut faults = Vec::new();
    let mut required = |what: &str| {
        faults.push(format!("{what} must be specified for {name} to use exec authentication plugin"));
    };
    if exec.command.is_empty() {
        required("command");
    }
    if exec.api_version.is_empty() {
        required("apiVersion");
    }
    for variable in &exec.env {
        if variable.name.is_empty() {
            required("env variable name");
        }
    }
    match exec.interactive_mode.as_str() {
        "" => required("interactiveMode"),
        "Never" | "IfAvailable" | "Always" => {}
        other => faults.push(format!("invalid interactiveMode for {name}: {}", quote(other))),
    }
    faults
}

/// Returns the faults of a cluster. `is_known` says whether the file has this cluster.
/// Follows `client-go/tools/clientcmd/validation.go#validateClusterInfo @v1.36.3`.
pub(super) fn cluster(name: &str, cluster: &wire::Cluster, is_known: bool) -> Vec<String> {
    if !is_known && *cluster == wire::Cluster::default() {
        return vec![NO_SERVER.to_owned()];
    }
    let mut faults = Vec::new();
    if cluster.server.is_empty() {
        faults.push(if name.is_empty() {
            "default cluster has no server defined".to_owned()
        } else {
            format!("no server found for cluster {}", quote(name))
        });
    }
    if !cluster.proxy_url.is_empty()
        && let Err(error) = server::proxy(&cluster.proxy_url)
    {
        let url = quote(&cluster.proxy_url);
        faults.push(format!("invalid 'proxy-url' {url} for cluster {}: {error}", quote(name)));
    }
    let file = &cluster.certificate_authority;
    if !file.is_empty() && !cluster.certificate_authority_data.0.is_empty() {
        faults.push(format!(
            "certificate-authority-data and certificate-authority are both specified for {name}. \
             certificate-authority-data will override."
        ));
    }
    faults.extend(unreadable("certificate-authority", file, name));
    faults
}

/// Returns the fault of a file that cannot be opened.
fn unreadable(field: &str, path: &str, name: &str) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let error = std::fs::File::open(path).err()?;
    Some(format!("unable to read {field} {path} for {name} due to open {path}: {}", errno::text(&error)))
}

/// Combines the faults of a context into one error.
/// Follows `client-go/tools/clientcmd/validation.go#newErrConfigurationInvalid @v1.36.3`.
pub(super) fn invalid(faults: &[String]) -> AccessError {
    AccessError::new(format!("invalid configuration: {}", aggregate(faults)))
}
