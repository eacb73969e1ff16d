//! Retries of single requests: requests that the server asks to retry, and reads whose connection broke.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use super::super::error::{ApiError, TransportKind};

/// Maximum number of retries of a request. Follows `client-go/rest/request.go#NewRequest @v1.36.3`.
pub(in super::super) const MAX_RETRIES: u32 = 10;

/// Wait after a broken connection. Follows `client-go/rest/with_retry.go#retryAfterResponse @v1.36.3`.
const AFTER_RESET: Duration = Duration::from_secs(1);

/// Marks a request that its caller retries, so that the transport does not retry it, too.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct RetriedByCaller;

/// The outcome of an attempt after which the request may be sent again.
pub(in super::super) struct Unsettled<T> {
    /// The wait before the next attempt; `None` if the outcome is final.
    pub(in super::super) wait: Option<Duration>,
    /// The outcome to return if the request is not sent again.
    pub(in super::super) outcome: T,
}

/// The policy for single requests: up to [`MAX_RETRIES`] retries, each after the wait in the outcome. `told` is called before
/// each wait with the outcome, the wait and the number of the retry.
pub(in super::super) fn as_server_asks<T>(
    mut told: impl FnMut(&T, Duration, u32),
) -> impl FnMut(&Unsettled<T>) -> Option<Duration> {
    let mut retries = 0;
    move |unsettled| {
        let wait = unsettled.wait.filter(|_| retries < MAX_RETRIES)?;
        retries += 1;
        told(&unsettled.outcome, wait, retries);
        Some(wait)
    }
}

/// The wait before a request is retried after a response. A request is retried only after a 429 or any 5xx response with a
/// `Retry-After` in whole seconds. A date, a fraction or no header means no retry.
/// Follows `client-go/rest/with_retry.go#checkWait @v1.36.3`.
pub(in super::super) fn wait_after_response(code: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if code != StatusCode::TOO_MANY_REQUESTS && code.as_u16() < 500 {
        return None;
    }
    let seconds: i64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The wait before a request without a response is retried. Only a GET whose connection broke is retried, because a write may
/// have been executed. Follows `client-go/rest/request.go#Request.Do @v1.36.3`.
pub(in super::super) fn wait_after_error(method: &Method, error: &ApiError) -> Option<Duration> {
    let broken = matches!(error, ApiError::Transport { kind: TransportKind::Reset, .. });
    (broken && *method == Method::GET).then_some(AFTER_RESET)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_whole_seconds_of_retry_after_count() {
        let check = |code: u16, value: Option<&'static str>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static(value));
            }
            let got = wait_after_response(StatusCode::from_u16(code).unwrap(), &headers);
            assert_eq!(got, expected.map(Duration::from_secs), "{code} {value:?}");
        };
        check(429, Some("1"), Some(1));
        check(503, Some("0"), Some(0));
        check(500, Some("+7"), Some(7));
        check(599, Some("-3"), Some(0));
        check(429, None, None);
        check(429, Some("1.5"), None);
        check(503, Some("Wed, 21 Oct 2015 07:28:00 GMT"), None);
        check(409, Some("1"), None);
        check(200, Some("1"), None);
    }

    #[test]
    fn only_reads_are_retried_after_a_connection_reset() {
        let broken = |kind| ApiError::Transport { message: String::new(), kind };
        assert_eq!(wait_after_error(&Method::GET, &broken(TransportKind::Reset)), Some(AFTER_RESET));
        assert_eq!(wait_after_error(&Method::POST, &broken(TransportKind::Reset)), None);
        assert_eq!(wait_after_error(&Method::GET, &broken(TransportKind::Refused)), None);
        assert_eq!(wait_after_error(&Method::GET, &ApiError::Closed), None);
    }
}
