//! Who asks: what goes into `Authorization`, and how it is renewed.
//! Follows `client-go/transport/round_trippers.go#HTTPWrappersForConfig @v1.36.3`.

mod plugin;
mod reply;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;

use http::HeaderValue;
use rustls::sign::CertifiedKey;

use super::connection::Connections;
use crate::clock::Clock;
use crate::config::base64_encode;
use crate::config::kubeconfig::Access;
use plugin::{Given, Plugin};
use token::Token;

/// Credentials for requests.
pub(super) enum Credentials {
    None,
    Basic(HeaderValue),
    Token(Token),
    Plugin(Arc<Plugin>),
}

/// What a request is sent with.
#[derive(Default)]
pub(super) struct Authorization {
    pub(super) header: Option<HeaderValue>,
    /// What the plugin has given for it.
    given: Option<Arc<Given>>,
}

impl Credentials {
    /// Those of an access. `open` are the connections that a plugin's new certificate closes. Fails where the access asks for
    /// what does not go together.
    pub(super) fn of(access: &Access, clock: &Clock, open: &Arc<Connections>) -> Result<Self, String> {
        let user = &access.user;
        let basic = !user.username.is_empty() || !user.password.is_empty();
        let token = !user.token.is_empty() || !user.token_file.is_empty();
        // What is wrong with a plugin is said even if it is not asked.
        let plugin = user.exec.as_ref().map(|exec| Plugin::new(exec, access, clock, open)).transpose()?;
        let has_certificate = !access.tls.cert_file.is_empty() || !access.tls.cert_data.is_empty();
        match (basic, token, plugin) {
            (true, true, _) => Err("username/password or bearer token may be set, but not both".to_owned()),
            (false, true, _) => Token::new(&user.token, &user.token_file, clock).map(Self::Token),
            (true, false, _) => {
                let pair = base64_encode(format!("{}:{}", user.username, user.password).as_bytes());
                authorization(&format!("Basic {pair}")).map(Self::Basic)
            }
            (false, false, Some(plugin)) if !has_certificate => Ok(Self::Plugin(Arc::new(plugin))),
            _ => Ok(Self::None),
        }
    }

    /// What to send the next request with.
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

    /// The server did not know who asked. A plugin is asked again, for the next request.
    pub(super) async fn refused(&self, authorization: &Authorization) {
        if let (Self::Plugin(plugin), Some(given)) = (self, &authorization.given)
            && let Err(error) = plugin.renew(given).await
        {
            tracing::error!("refreshing credentials: {error}");
        }
    }

    /// The certificate that a plugin has given last.
    pub(super) fn certificate(&self) -> Option<Arc<CertifiedKey>> {
        match self {
            Self::Plugin(plugin) => plugin.certificate(),
            _ => None,
        }
    }

    /// Whether connections may show a certificate that comes from here.
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
