//! Metrics of authentication, authorization and client certificates.
//!
//! Families, labels and buckets follow `apiserver/pkg/endpoints/filters/metrics.go`,
//! `apiserver/pkg/authentication/token/cache/stats.go`, `apiserver/pkg/authentication/authenticatorfactory/metrics.go`,
//! `apiserver/pkg/authorization/authorizerfactory/metrics.go` and `apiserver/pkg/authentication/request/x509/x509.go @v1.36.3`.

use std::sync::Arc;

use prometheus::core::Collector;
use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    exponential_buckets,
};

use crate::client::ApiError;

/// Buckets for the seconds of a review by the API server.
const REVIEW_BUCKETS: &[f64] = &[0.25, 0.5, 0.7, 1.0, 1.5, 3.0, 5.0, 10.0];

/// Buckets for the seconds until a client's certificate expires: zero, then from half an hour to 360 days.
const LEFT_BUCKETS: &[f64] = &[
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];

/// Handles of all metric families.
pub(super) struct Gauges {
    users: IntCounterVec,
    authentication: Attempts,
    authorization: Attempts,
    token_cache: Attempts,
    token_fetches: IntCounterVec,
    token_fetching: IntGaugeVec,
    authentication_reviews: Attempts,
    authorization_reviews: Attempts,
    certificate_left: Histogram,
}

/// A counter and a duration histogram with the same label.
struct Attempts {
    count: IntCounterVec,
    seconds: HistogramVec,
}

/// Guard that counts a token review in flight, or a request that waits for one, until the guard is dropped.
pub(super) struct Fetching(IntGauge);

fn keep<C: Collector + Clone + 'static>(registry: &Registry, family: C) -> Result<C, Error> {
    registry.register(Box::new(family.clone()))?;
    Ok(family)
}

impl Attempts {
    fn new(registry: &Registry, names: [&str; 2], label: &str, buckets: Vec<f64>, what: &str) -> Result<Self, Error> {
        let counted = format!("[ALPHA] Number of {what}.");
        let timed = format!("[ALPHA] Seconds that {what} took.");
        Ok(Self {
            count: keep(registry, IntCounterVec::new(Opts::new(names[0], counted), &[label])?)?,
            seconds: keep(
                registry,
                HistogramVec::new(HistogramOpts::new(names[1], timed).buckets(buckets), &[label])?,
            )?,
        })
    }

    fn observe(&self, label: &str, seconds: f64) {
        self.count.with_label_values(&[label]).inc();
        self.seconds.with_label_values(&[label]).observe(seconds);
    }
}

impl Gauges {
    /// Registers all metric families. Fails if the registry already has one of these names.
    pub(super) fn new(registry: &Registry) -> Result<Arc<Self>, Error> {
        let powers = || exponential_buckets(0.001, 2.0, 15);
        let reviews = || REVIEW_BUCKETS.to_vec();
        let attempts = |names, label, buckets, what| Attempts::new(registry, names, label, buckets, what);
        let users = Opts::new("authenticated_user_requests", "[ALPHA] Number of authenticated requests by user.");
        let fetches = Opts::new("authentication_token_cache_fetch_total", "[ALPHA] Number of token reviews.");
        let fetching = Opts::new("authentication_token_cache_active_fetch_count", "[ALPHA] Token reviews in progress.");
        let left = HistogramOpts::new(
            "apiserver_client_certificate_expiration_seconds",
            "[ALPHA] Remaining lifetime in seconds of client certificates when they were used.",
        );
        Ok(Arc::new(Self {
            users: keep(registry, IntCounterVec::new(users, &["username"])?)?,
            authentication: attempts(
                ["authentication_attempts", "authentication_duration_seconds"],
                "result",
                powers()?,
                "attempts to authenticate",
            )?,
            authorization: attempts(
                ["authorization_attempts_total", "authorization_duration_seconds"],
                "result",
                powers()?,
                "attempts to authorize",
            )?,
            token_cache: attempts(
                ["authentication_token_cache_request_total", "authentication_token_cache_request_duration_seconds"],
                "status",
                prometheus::DEFAULT_BUCKETS.to_vec(),
                "lookups in the token cache",
            )?,
            token_fetches: keep(registry, IntCounterVec::new(fetches, &["status"])?)?,
            token_fetching: keep(registry, IntGaugeVec::new(fetching, &["status"])?)?,
            authentication_reviews: attempts(
                ["apiserver_delegated_authn_request_total", "apiserver_delegated_authn_request_duration_seconds"],
                "code",
                reviews(),
                "TokenReview requests to the API server",
            )?,
            authorization_reviews: attempts(
                ["apiserver_delegated_authz_request_total", "apiserver_delegated_authz_request_duration_seconds"],
                "code",
                reviews(),
                "SubjectAccessReview requests to the API server",
            )?,
            certificate_left: keep(registry, Histogram::with_opts(left.buckets(LEFT_BUCKETS.to_vec()))?)?,
        }))
    }

    /// Counts an authentication by the user's name. `None` stands for a failed authentication.
    pub(super) fn authenticated(&self, user: Option<&str>, seconds: f64) {
        if let Some(name) = user {
            self.users.with_label_values(&[compressed(name)]).inc();
        }
        self.authentication.observe(if user.is_some() { "success" } else { "error" }, seconds);
    }

    /// Counts an authorization by its result: `allowed`, `no-opinion` or `error`.
    pub(super) fn authorized(&self, result: &str, seconds: f64) {
        self.authorization.observe(result, seconds);
    }

    pub(super) fn token_looked_up(&self, was_known: bool, seconds: f64) {
        self.token_cache.observe(if was_known { "hit" } else { "miss" }, seconds);
    }

    /// Counts a token review in flight with the status `in_flight`, or a request that waits for one with `blocked`.
    pub(super) fn fetching(&self, status: &str) -> Fetching {
        let gauge = self.token_fetching.with_label_values(&[status]);
        gauge.inc();
        Fetching(gauge)
    }

    pub(super) fn fetched(&self, was_answered: bool) {
        self.token_fetches.with_label_values(&[if was_answered { "ok" } else { "error" }]).inc();
    }

    pub(super) fn authentication_asked(&self, reply: Result<(), &ApiError>, seconds: f64) {
        self.authentication_reviews.observe(&code(reply), seconds);
    }

    pub(super) fn authorization_asked(&self, reply: Result<(), &ApiError>, seconds: f64) {
        self.authorization_reviews.observe(&code(reply), seconds);
    }

    pub(super) fn certificate_left(&self, seconds: i64) {
        // The histogram takes floats, and no certificate is valid for millions of years.
        #[expect(clippy::cast_precision_loss, reason = "seconds of a certificate's life are exact")]
        self.certificate_left.observe(seconds as f64);
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Returns the status code of a review: 201 Created if it succeeded, otherwise the failure's.
fn code(reply: Result<(), &ApiError>) -> String {
    match reply.map_err(ApiError::status) {
        Ok(()) => "201".to_owned(),
        Err(Some(status)) => status.code.to_string(),
        Err(None) => "<error>".to_owned(),
    }
}

/// Maps user names to a few label values. Follows `apiserver/pkg/endpoints/filters/metrics.go#compressUsername @v1.36.3`.
fn compressed(name: &str) -> &str {
    match name {
        "admin" | "client" | "kube_proxy" | "kubelet" | "system:serviceaccount:kube-system:default" => name,
        name if name.contains('@') => "email_id",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_counted_by_few_names() {
        let check = |name: &str, expected: &str| assert_eq!(compressed(name), expected);
        check("admin", "admin");
        check("a@b", "email_id");
        check("system:anonymous", "other");
    }

    #[test]
    fn families_are_registered_once() {
        let registry = Registry::new();
        let gauges = Gauges::new(&registry).expect("a new registry");
        assert!(Gauges::new(&registry).is_err());
        let fetching = gauges.fetching("in_flight");
        gauges.authenticated(Some("system:anonymous"), 0.1);
        gauges.authorized("error", 0.1);
        drop(fetching);
        let text = crate::metrics::encode(&registry.gather());
        for line in [
            "authenticated_user_requests{username=\"other\"} 1",
            "authentication_attempts{result=\"success\"} 1",
            "authentication_token_cache_active_fetch_count{status=\"in_flight\"} 0",
            "authorization_attempts_total{result=\"error\"} 1",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
