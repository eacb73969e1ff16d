//! Authentication by bearer tokens, which the API server reviews.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use ring::hmac;
use tracing::error;

use super::{Outcome, User};
use crate::client::{ApiError, Target};
use crate::clock::{Clock, Mono};
use crate::serve::answers::{Answer, AnswerCache};
use crate::serve::ask::{Asker, TIMEOUT};
use crate::serve::gauges::Gauges;

/// Maximum number of cached answers. From `apiserver/pkg/authentication/token/cache/cache_simple.go @v1.36.3`, which has 32
/// stripes of this size.
const CAPACITY: usize = 4096;

const INVALID: &str = "invalid bearer token";

/// Prefix of a websocket subprotocol that carries a token.
const PROTOCOL_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Authenticates bearer tokens with `TokenReview` requests.
/// Follows `apiserver/plugin/pkg/authenticator/token/webhook/webhook.go` and
/// `apiserver/pkg/authentication/token/cache/cached_token_authenticator.go @v1.36.3`.
pub(in crate::serve) struct Tokens {
    asker: Asker,
    clock: Clock,
    keep: Duration,
    /// Key of the HMAC. Answers are cached by the HMAC of their token, so the cache contains no tokens.
    key: hmac::Key,
    answers: Arc<AnswerCache<Outcome>>,
    gauges: Arc<Gauges>,
}

impl Tokens {
    /// Creates an empty cache. Fails if the system has no randomness.
    pub(in crate::serve) fn new(
        asker: Asker,
        clock: &Clock,
        keep: Duration,
        gauges: Arc<Gauges>,
    ) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new())
            .map_err(|_| "failed to read random bytes from the operating system".to_owned())?;
        let answers = AnswerCache::new(clock.clone(), CAPACITY);
        Ok(Self { asker, clock: clock.clone(), keep, key, answers, gauges })
    }

    /// Returns the user of the request's token, or `None` if it carries no token.
    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Outcome {
        let mut errors = None;
        if let Some(token) = bearer(headers) {
            match self.review(token).await {
                Ok(user) => return Ok(Some(user)),
                Err(error) => errors = Some(error),
            }
        }
        match protocol(headers) {
            Ok(Some(token)) => self.review(&token).await.map(Some),
            Ok(None) => errors.map_or(Ok(None), Err),
            Err(error) => Err(error),
        }
    }

    async fn review(&self, token: &str) -> Result<User, String> {
        let key = hmac::sign(&self.key, token.as_bytes()).as_ref().to_vec();
        let began = self.clock.mono();
        let is_known = self.answers.known(&key).is_some();
        let (asker, clock, gauges, keep) = (self.asker.clone(), self.clock.clone(), self.gauges.clone(), self.keep);
        let question = token.to_owned();
        let ask = move || async move {
            let fetching = gauges.fetching("in_flight");
            let outcome = ask(&asker, &clock, question, &gauges).await;
            // Both accepted and rejected tokens are cached. A failed review is not.
            drop(fetching);
            gauges.fetched(outcome.is_ok());
            match outcome {
                Ok(value) => Answer { value: Ok(value), keep },
                Err(error) => Answer { value: Err(error), keep: Duration::ZERO },
            }
        };
        let waiting = (!is_known).then(|| self.gauges.fetching("blocked"));
        let outcome = self.answers.get(key, ask).await;
        drop(waiting);
        self.gauges.token_looked_up(is_known, self.clock.mono().seconds_since(began));
        outcome?.ok_or_else(|| INVALID.to_owned())
    }
}

/// Sends a `TokenReview` to the API server. Returns the user, or `None` if the API server does not know the token.
async fn ask(asker: &Asker, clock: &Clock, token: String, gauges: &Gauges) -> Outcome {
    let target =
        Target { group: "authentication.k8s.io", version: "v1", resource: "tokenreviews", ..Target::default() };
    let review =
        TokenReview { metadata: ObjectMeta::default(), spec: TokenReviewSpec { token, audiences: None }, status: None };
    let body = serde_json::to_vec(&review).map_err(|error| error.to_string())?;
    let began = clock.mono();
    // The time limit covers all retries together.
    let reply = within(clock, began + TIMEOUT, asker.post(body.into(), target)).await;
    gauges.authentication_asked(reply.as_ref().map(drop), clock.mono().seconds_since(began));
    let reply = reply.map_err(|error| {
        error!(err = %error, "Failed to make webhook authenticator request");
        error.to_string()
    })?;
    let review: TokenReview = serde_json::from_slice(&reply).map_err(|error| error.to_string())?;
    let status = review.status.unwrap_or_default();
    if status.authenticated != Some(true) {
        return match status.error {
            Some(error) if !error.is_empty() => Err(error),
            _ => Ok(None),
        };
    }
    let user = status.user.unwrap_or_default();
    Ok(Some(User {
        name: user.username.unwrap_or_default(),
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    }))
}

async fn within<T>(
    clock: &Clock,
    deadline: Mono,
    asked: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    clock
        .timeout_at(deadline, asked)
        .await
        .unwrap_or_else(|_| Err(ApiError::Request("context deadline exceeded".to_owned())))
}

/// Returns the token of the `Authorization` header.
/// Follows `apiserver/pkg/authentication/request/bearertoken/bearertoken.go#AuthenticateRequest @v1.36.3`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = std::str::from_utf8(headers.get(header::AUTHORIZATION)?.as_bytes()).ok()?;
    let mut parts = value.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Returns the token among a websocket's subprotocols.
/// Follows `apiserver/pkg/authentication/request/websocket/protocol.go#AuthenticateRequest @v1.36.3`.
fn protocol(headers: &HeaderMap) -> Result<Option<String>, String> {
    let has = |name: header::HeaderName, wanted: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(wanted))
    };
    if !has(header::CONNECTION, "upgrade") || !has(header::UPGRADE, "websocket") {
        return Ok(None);
    }
    let (mut token, mut others) = (None, 0);
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    for value in values.collect::<Vec<_>>() {
        for protocol in value.split(',').map(str::trim) {
            let Some(encoded) = protocol.strip_prefix(PROTOCOL_PREFIX) else {
                others += 1;
                continue;
            };
            if token.is_some() {
                return Err("multiple base64.bearer.authorization tokens specified".to_owned());
            }
            let decoded = URL_SAFE_NO_PAD
                .decode(encoded)
                .map_err(|_| "invalid base64.bearer.authorization token encoding".to_owned())?;
            let decoded =
                String::from_utf8(decoded).map_err(|_| "invalid base64.bearer.authorization token".to_owned())?;
            token = Some(decoded);
        }
    }
    match token {
        Some(token) if !token.is_empty() && others == 0 => Err("missing additional subprotocol".to_owned()),
        token => Ok(token.filter(|token| !token.is_empty())),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_header_carries_a_token() {
        let check = |value: &str, expected: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
            assert_eq!(bearer(&headers), expected, "{value:?}");
        };
        check("Bearer abc", Some("abc"));
        check("bearer abc", Some("abc"));
        check("BEARER abc def", Some("abc"));
        check(" Bearer abc ", Some("abc"));
        check("Bearer  abc", None);
        check("Bearer", None);
        check("Basic abc", None);
        check("", None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn a_websocket_carries_a_token() {
        let check = |upgrade: &str, protocols: &[&str], expected: Result<Option<&str>, &str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
            headers.insert(header::UPGRADE, HeaderValue::from_str(upgrade).expect("a value"));
            for value in protocols {
                headers.append(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_str(value).expect("a value"));
            }
            let got = protocol(&headers);
            assert_eq!(got.as_ref().map(Option::as_deref).map_err(String::as_str), expected, "{protocols:?}");
        };
        let token = "base64url.bearer.authorization.k8s.io.YWJj";
        check("websocket", &[&format!("{token}, v4.channel.k8s.io")], Ok(Some("abc")));
        check("websocket", &["v4.channel.k8s.io", token], Ok(Some("abc")));
        check("h2c", &[token, "x"], Ok(None));
        check("websocket", &["x"], Ok(None));
        check("websocket", &[token], Err("missing additional subprotocol"));
        check("websocket", &[token, token], Err("multiple base64.bearer.authorization tokens specified"));
        let broken = "base64url.bearer.authorization.k8s.io.Y";
        check("websocket", &[broken, "x"], Err("invalid base64.bearer.authorization token encoding"));
        let binary = "base64url.bearer.authorization.k8s.io._w";
        check("websocket", &[binary, "x"], Err("invalid base64.bearer.authorization token"));
    }
}
