//! Handles one request: authentication, authorization, response.
//! Follows `cmd/kube-scheduler/app/server.go#buildHandlerChain @v1.36.3`. Unlike in upstream, a panic here is not caught and
//! ends the process, as a panic anywhere does.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HeaderValue, USER_AGENT};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use tracing::{debug, error};

use super::authenticate::{Authenticator, Peer};
use super::authorize::{Authorizer, Decision};
use super::connection::BAD_REQUEST;
use super::mux::{Mux, RequestHead, too_large};
use super::negotiate::{self, Query};
use super::reply::{Reply, failure, no_sniff};
use super::status::{ANY_FORM, forbidden, status_reply};
use crate::apimachinery::Status;
use crate::clock::Clock;
use crate::go::quote::quote;

/// Maximum bytes of a request's body. The only bodies that are read are short, such as a log level.
const MAX_BODY: usize = 64 * 1024;

/// Authenticates, authorizes and answers requests.
pub(super) struct Handler {
    pub(super) authenticator: Authenticator,
    pub(super) authorizer: Authorizer,
    pub(super) mux: Mux,
    pub(super) clock: Clock,
}

/// A reply, and whether its client is not authenticated.
pub(super) struct ServedReply {
    pub(super) reply: Reply,
    pub(super) is_stranger: bool,
}

impl Handler {
    /// Answers one request and logs it.
    pub(super) async fn handle(&self, request: Request<Incoming>, peer: &Peer, remote: SocketAddr) -> ServedReply {
        let began = self.clock.mono();
        let (parts, body) = request.into_parts();
        let mut answered = self.answer(&parts, body, peer).await;
        let headers = answered.reply.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if parts.method == Method::HEAD {
            let length = answered.reply.body().size_hint().exact().unwrap_or(0);
            answered.reply.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
            *answered.reply.body_mut() = Full::default();
        }
        debug!(
            verb = %parts.method,
            URI = %parts.uri,
            latency = ?self.clock.mono().since(began),
            userAgent = parts.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default(),
            srcIP = %remote,
            resp = answered.reply.status().as_u16(),
            "HTTP"
        );
        answered
    }

    async fn answer(&self, parts: &Parts, body: Incoming, peer: &Peer) -> ServedReply {
        let stranger = |reply| ServedReply { reply, is_stranger: true };
        let Some(path) = negotiate::decoded(parts.uri.path()) else {
            return stranger(failure(BAD_REQUEST.0, BAD_REQUEST.1));
        };
        let raw_query = parts.uri.query().unwrap_or_default();
        let query = Query::parse(raw_query);
        let asked = RequestHead { method: &parts.method, path: &path, query, raw_query, headers: &parts.headers };
        let user = match self.authenticator.authenticate(&parts.headers, peer).await {
            Ok(user) => user,
            Err(error) => {
                error!(err = error, "Unable to authenticate the request");
                return stranger(status_reply(&Status::unauthorized(), ANY_FORM, &asked.query, asked.headers));
            }
        };
        let is_stranger = user.is_anonymous();
        let verb = parts.method.as_str().to_lowercase();
        let reply = match self.authorizer.authorize(&user, &verb, &path).await {
            Decision::Allow => self.allowed(&asked, body).await,
            Decision::Forbid(reason) => {
                debug!(URI = %parts.uri, reason, "Forbidden");
                let message = format!("User {} cannot {verb} path {}", quote(&user.name), quote(&path));
                let message = sanitized(&message);
                let message = if reason.is_empty() { message } else { format!("{message}: {reason}") };
                no_sniff(status_reply(&forbidden(&message), ANY_FORM, &asked.query, asked.headers))
            }
            Decision::Unknown(error) => {
                let uri = parts.uri.path_and_query().map_or("/", |uri| uri.as_str());
                let text = format!("Internal Server Error: {}: {error}", quote(uri));
                failure(StatusCode::INTERNAL_SERVER_ERROR, &sanitized(&text))
            }
        };
        ServedReply { reply, is_stranger }
    }

    async fn allowed(&self, asked: &RequestHead<'_>, body: Incoming) -> Reply {
        if !self.mux.reads_body(asked.method, asked.path) {
            return self.mux.serve(asked, Bytes::new()).await;
        }
        match Limited::new(body, MAX_BODY).collect().await {
            Ok(body) => self.mux.serve(asked, body.to_bytes()).await,
            Err(_) => too_large(),
        }
    }
}

/// Escapes the characters of an error's text that could be taken for markup. Follows
/// `apiserver/pkg/endpoints/handlers/responsewriters/errors.go#sanitizer @v1.36.3`.
fn sanitized(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_no_markup() {
        assert_eq!(sanitized("<a href=\"x\">&"), "&lt;a href=\"x\"&gt;&amp;");
    }
}
