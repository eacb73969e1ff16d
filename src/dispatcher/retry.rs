//! When a request is sent again, and after how long.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use super::error::{ApiError, TransportKind};
use crate::clock::{Clock, Rng};

/// How often a request is sent again at most. Follows `client-go/rest/request.go#NewRequest @v1.36.3`.
pub const MAX_RETRIES: u32 = 10;

/// The wait after a broken connection. Follows `client-go/rest/with_retry.go#retryAfterResponse @v1.36.3`.
const AFTER_RESET: Duration = Duration::from_secs(1);

/// Exponential backoff with jitter: how often something is tried, and how long to wait in between.
/// Follows `apimachinery/pkg/util/wait/backoff.go#Backoff @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// Tries in all.
    pub steps: u32,
    /// The first wait.
    pub duration: Duration,
    /// What each wait is multiplied with to get the next.
    pub factor: f64,
    /// Up to this share of itself is added to each wait, at random.
    pub jitter: f64,
}

impl Backoff {
    /// Patches of a status: 4 tries, after 10 ms, 50 ms and 250 ms.
    /// Follows `client-go/util/retry/util.go#DefaultBackoff @v1.36.3`.
    pub const STATUS_PATCH: Self = Self { steps: 4, duration: Duration::from_millis(10), factor: 5.0, jitter: 0.1 };

    /// The wait after the failed try number `tried` (from 1); `None` after the last. `random` is in `[0, 1)`.
    pub fn wait_after(&self, tried: u32, random: f64) -> Option<Duration> {
        if tried >= self.steps {
            return None;
        }
        let exponent = i32::try_from(tried.saturating_sub(1)).unwrap_or(i32::MAX);
        Some(self.duration.mul_f64(self.factor.powi(exponent) * (1.0 + random * self.jitter)))
    }
}

/// `duration` plus up to `share` of itself. `random` is in `[0, 1)`.
/// Follows `apimachinery/pkg/util/wait/backoff.go#Jitter @v1.36.3`.
pub fn jitter(duration: Duration, share: f64, random: f64) -> Duration {
    duration.mul_f64(1.0 + random * share)
}

/// Tries `attempt` until it succeeds, fails with something else than `retriable`, or `backoff` is used up; answers with the
/// last failure. `rng` draws the jitter. Follows `client-go/util/retry/util.go#OnError @v1.36.3`.
pub async fn on_error<T, F>(
    clock: &Clock,
    backoff: Backoff,
    mut rng: Rng,
    retriable: impl Fn(&ApiError) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    let mut tried = 0;
    loop {
        let error = match attempt().await {
            Ok(value) => return Ok(value),
            Err(error) if !retriable(&error) => return Err(error),
            Err(error) => error,
        };
        tried += 1;
        let Some(wait) = backoff.wait_after(tried, rng.unit()) else { return Err(error) };
        clock.sleep(wait).await;
    }
}

/// How long to wait before sending a request again that was answered: only if the server says so, with 429 or any 5xx and a
/// `Retry-After` in whole seconds. A date, a fraction or no header means no retry.
/// Follows `client-go/rest/with_retry.go#checkWait @v1.36.3`.
pub fn wait_after_response(code: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if code != StatusCode::TOO_MANY_REQUESTS && code.as_u16() < 500 {
        return None;
    }
    let seconds: i64 = headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// How long to wait before sending a request again that was not answered: only a GET, whose connection broke. Writes may have
/// happened. Follows `client-go/rest/request.go#Request.Do @v1.36.3`.
pub fn wait_after_error(method: &Method, error: &ApiError) -> Option<Duration> {
    let broken = matches!(error, ApiError::Transport { kind: TransportKind::Reset, .. });
    (broken && *method == Method::GET).then_some(AFTER_RESET)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_whole_seconds_of_an_overloaded_server_count() {
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
    fn only_a_read_survives_a_broken_connection() {
        let broken = |kind| ApiError::Transport { message: String::new(), kind };
        assert_eq!(wait_after_error(&Method::GET, &broken(TransportKind::Reset)), Some(AFTER_RESET));
        assert_eq!(wait_after_error(&Method::POST, &broken(TransportKind::Reset)), None);
        assert_eq!(wait_after_error(&Method::GET, &broken(TransportKind::Refused)), None);
        assert_eq!(wait_after_error(&Method::GET, &ApiError::Closed), None);
    }

    #[test]
    fn waits_grow_and_end() {
        let waits = |random: f64| -> Vec<Option<u128>> {
            (1..=4).map(|tried| Some(Backoff::STATUS_PATCH.wait_after(tried, random)?.as_millis())).collect()
        };
        assert_eq!(waits(0.0), [Some(10), Some(50), Some(250), None]);
        assert_eq!(waits(0.5), [Some(10), Some(52), Some(262), None]);
        assert_eq!(jitter(Duration::from_secs(10), 0.25, 0.5), Duration::from_millis(11_250));
    }
}
