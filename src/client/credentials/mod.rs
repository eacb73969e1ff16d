//! Credentials of requests: creating the `Authorization` header, and renewing its content.
//! Follows `client-go/transport/round_trippers.go#HTTPWrappersForConfig @v1.36.3`.

mod plugin;
mod reply;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;

use http::HeaderValue;
use rustls::sign::CertifiedKey;

use super::kubeconfig::Access;
use super::stream::Connections;
use crate::clock::Clock;
use crate::go::base64;
use plugin::Plugin;
use reply::PluginCredentials;
use token::Token;

/// Credentials that a client uses for its requests.
pub(super) enum Credentials {
    None,
    Basic(HeaderValue),
    Token(Token),
    Plugin(Arc<Plugin>),
}

/// The credentials sent with one request.
#[derive(Default)]
pub(super) struct Authorization {
    pub(super) header: Option<HeaderValue>,
    /// The plugin's credentials, if the header comes from a plugin.
    given: Option<Arc<PluginCredentials>>,
}

impl Credentials {
    /// Chooses the credentials of an access. If a plugin returns a new certificate, the connections in `open` are closed.
    /// Fails if the access has credentials that exclude each other.
    pub(super) fn of(access: &Access, clock: &Clock, open: &Arc<Connections>) -> Result<Self, String> {
        let user = &access.user;
        let basic = !user.username.is_empty() || !user.password.is_empty();
        let token = !user.token.is_empty() || !user.token_file.is_empty();
        // A plugin's settings are checked even if another credential takes precedence.
        let plugin = user.exec.as_ref().map(|exec| Plugin::new(exec, access, clock, open)).transpose()?;
        let has_certificate = !access.tls.cert_file.is_empty() || !access.tls.cert_data.is_empty();
        match (basic, token, plugin) {
            (true, true, _) => Err("username/password or bearer token may be set, but not both".to_owned()),
            (false, true, _) => Token::new(&user.token, &user.token_file, clock).map(Self::Token),
            (true, false, _) => {
                let pair = base64::encode(format!("{}:{}", user.username, user.password));
                authorization(&format!("Basic {pair}")).map(Self::Basic)
            }
            (false, false, Some(plugin)) if !has_certificate => Ok(Self::Plugin(Arc::new(plugin))),
            _ => Ok(Self::None),
        }
    }

    /// Returns the credentials for the next request.
    pub(super) async fn authorize(&self) -> Result<Authorization, String> {
        match self {
            Self::None => Ok(Authorization::default()),
            Self::Basic(header) => Ok(Authorization { header: Some(header.clone()), given: None }),
            Self::Token(token) => {
                let header = authorization(&format!("Bearer {}", token.current()))?;
                Ok(Authorization { header: Some(header), given: None })
            }
            Self::Plugin(plugin) => {
                let given = plugin.given().await.map_err(|error| format!("getting credentials: {error}"))?;
                let header = (!given.token.is_empty()).then(|| authorization(&format!("Bearer {}", given.token)));
                Ok(Authorization { header: header.transpose()?, given: Some(given) })
            }
        }
    }

    /// Handles a 401 response: runs the plugin again, so that the next request has new credentials.
    pub(super) async fn refused(&self, authorization: &Authorization) {
        if let (Self::Plugin(plugin), Some(given)) = (self, &authorization.given)
            && let Err(error) = plugin.renew(given).await
        {
            tracing::error!("refreshing credentials: {error}");
        }
    }

    /// The certificate that the plugin last returned.
    pub(super) fn certificate(&self) -> Option<Arc<CertifiedKey>> {
        match self {
            Self::Plugin(plugin) => plugin.certificate(),
            _ => None,
        }
    }

    /// Whether connections may present a certificate from a plugin.
    pub(super) fn may_have_certificate(&self) -> bool {
        matches!(self, Self::Plugin(_))
    }
}

fn authorization(value: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::from_bytes(value.as_bytes());
    let mut value = value.map_err(|_| "net/http: invalid header field value for \"Authorization\"".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}
