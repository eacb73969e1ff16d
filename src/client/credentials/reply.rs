//! Output of an exec plugin. Follows `client-go/plugin/pkg/client/auth/exec/exec.go#Authenticator.refreshCredsLocked @v1.36.3`.

use std::sync::Arc;

use rustls::sign::CertifiedKey;
use serde::Deserialize;

use super::super::tls::{certified, provider};

/// Credentials that a plugin returned.
#[derive(Debug, Default)]
pub(super) struct PluginCredentials {
    pub(super) token: String,
    pub(super) certificate: Option<Arc<CertifiedKey>>,
    pub(super) expires: Option<jiff::Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Reply {
    kind: Option<String>,
    api_version: Option<String>,
    status: Option<Status>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Reads the credentials that a plugin printed, as JSON or YAML.
pub(super) fn read(stdout: &[u8], version: &str) -> Result<PluginCredentials, String> {
    // The YAML parser reads JSON, too.
    let reply: Option<Reply> = serde_yaml::from_slice(stdout).map_err(|error| format!("decoding stdout: {error}"))?;
    let reply = reply.unwrap_or_default();
    let text = String::from_utf8_lossy(stdout);
    match (reply.kind.as_deref().unwrap_or_default(), reply.api_version.as_deref().unwrap_or_default()) {
        ("", _) => return Err(format!("decoding stdout: Object 'Kind' is missing in '{text}'")),
        (_, "") => return Err(format!("decoding stdout: Object 'apiVersion' is missing in '{text}'")),
        ("ExecCredential", spoken) if spoken == version => {}
        ("ExecCredential", spoken) => {
            return Err(format!(
                "exec plugin is configured to use API version {version}, plugin returned version {spoken}"
            ));
        }
        (kind, spoken) => {
            return Err(format!("decoding stdout: no kind {kind:?} is registered for version {spoken:?}"));
        }
    }
    let status = reply.status.ok_or("exec plugin didn't return a status field")?;
    let text = |text: Option<String>| text.unwrap_or_default();
    let (token, chain, key) = (text(status.token), text(status.client_certificate_data), text(status.client_key_data));
    if token.is_empty() && chain.is_empty() && key.is_empty() {
        return Err("exec plugin didn't return a token or cert/key pair".to_owned());
    }
    if chain.is_empty() != key.is_empty() {
        return Err("exec plugin returned only certificate or key, not both".to_owned());
    }
    let expires = status.expiration_timestamp.filter(|moment| !moment.is_empty());
    let expires =
        expires.map(|moment| moment.parse().map_err(|error| format!("decoding stdout: {error}"))).transpose()?;
    let certificate = (!chain.is_empty())
        .then(|| certified(chain.as_bytes(), key.as_bytes(), &provider()))
        .transpose()
        .map_err(|error| format!("failed parsing client key/certificate: {error}"))?;
    Ok(PluginCredentials { token, certificate, expires })
}
