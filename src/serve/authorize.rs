//! Authorization by privileged group, always-allowed path or `SubjectAccessReview`.
//! Follows `apiserver/pkg/server/options/authorization.go#toAuthorizer @v1.36.3`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tracing::error;

use super::answers::{Answer, AnswerCache};
use super::ask::Asker;
use super::authenticate::User;
use super::error::ServeError;
use super::gauges::Gauges;
use super::options::AuthorizationOptions;
use crate::client::Target;
use crate::clock::Clock;
use crate::go::quote::quote;

/// The group that is authorized to do everything.
const PRIVILEGED: &str = "system:masters";

/// Maximum number of cached answers. Answers are cached only if path and method together have fewer than [`MAX_CACHED`] bytes.
/// From `apiserver/plugin/pkg/authorizer/webhook/webhook.go @v1.36.3`.
const CAPACITY: usize = 8192;
const MAX_CACHED: usize = 10_000;

/// Result of an authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is forbidden, with the reason, which may be empty.
    Forbid(String),
    /// The API server's decision is unknown because of this error. The request is not served.
    Unknown(String),
}

/// Decides whether requests are authorized.
pub(super) struct Authorizer {
    paths: Paths,
    asker: Option<Asker>,
    clock: Clock,
    ttl: Ttl,
    answers: Arc<AnswerCache<Decision>>,
    gauges: Arc<Gauges>,
}

/// Time for which each decision is cached.
#[derive(Clone, Copy)]
struct Ttl {
    allow: Duration,
    deny: Duration,
}

/// Paths that need no authorization. Follows `apiserver/pkg/authorization/path/path.go#NewAuthorizer @v1.36.3`.
#[derive(Debug, Default)]
struct Paths {
    exact: BTreeSet<String>,
    prefixes: Vec<String>,
}

impl Decision {
    /// Returns the decision as the label of a metric.
    fn result(&self) -> &'static str {
        match self {
            Self::Allow => "allowed",
            Self::Forbid(_) => "no-opinion",
            Self::Unknown(_) => "error",
        }
    }
}

impl Authorizer {
    /// Creates an authorizer from options. Without an asker, only groups and paths decide.
    pub(super) fn new(
        options: &AuthorizationOptions,
        asker: Option<Asker>,
        clock: &Clock,
        gauges: Arc<Gauges>,
    ) -> Result<Self, ServeError> {
        let ttl = Ttl { allow: options.allow_ttl, deny: options.deny_ttl };
        let answers = AnswerCache::new(clock.clone(), CAPACITY);
        let asker = asker.map(Asker::sending_timeout);
        Ok(Self { paths: Paths::new(&options.always_allow_paths)?, asker, clock: clock.clone(), ttl, answers, gauges })
    }

    /// Decides whether the user may use this method, in lower case, on this path.
    pub(super) async fn authorize(&self, user: &User, verb: &str, path: &str) -> Decision {
        let began = self.clock.mono();
        let decision = self.decide(user, verb, path).await;
        self.gauges.authorized(decision.result(), self.clock.mono().seconds_since(began));
        decision
    }

    async fn decide(&self, user: &User, verb: &str, path: &str) -> Decision {
        if user.groups.iter().any(|group| group == PRIVILEGED) || self.paths.contain(path) {
            return Decision::Allow;
        }
        let Some(asker) = &self.asker else { return Decision::Forbid(String::new()) };
        let spec = spec(user, verb, path);
        let body = match serde_json::to_vec(&spec) {
            Ok(body) => body,
            Err(error) => return Decision::Unknown(error.to_string()),
        };
        let (asker, clock, gauges, ttl) = (asker.clone(), self.clock.clone(), self.gauges.clone(), self.ttl);
        let may_be_kept = verb.len() + path.len() < MAX_CACHED;
        let ask = move || async move {
            let value = ask(&asker, &clock, spec, &gauges).await;
            let keep = match &value {
                _ if !may_be_kept => Duration::ZERO,
                Decision::Allow => ttl.allow,
                Decision::Forbid(_) => ttl.deny,
                Decision::Unknown(_) => Duration::ZERO,
            };
            Answer { value, keep }
        };
        Box::pin(self.answers.get(body, ask)).await
    }
}

fn spec(user: &User, verb: &str, path: &str) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: Some(user.name.clone()),
        uid: (!user.uid.is_empty()).then(|| user.uid.clone()),
        groups: (!user.groups.is_empty()).then(|| user.groups.clone()),
        extra: (!user.extra.is_empty()).then(|| user.extra.clone()),
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some(verb.to_owned()),
        }),
        resource_attributes: None,
    }
}

/// Sends a `SubjectAccessReview` to the API server.
/// Follows `apiserver/plugin/pkg/authorizer/webhook/webhook.go#Authorize @v1.36.3`.
async fn ask(asker: &Asker, clock: &Clock, spec: SubjectAccessReviewSpec, gauges: &Gauges) -> Decision {
    let target =
        Target { group: "authorization.k8s.io", version: "v1", resource: "subjectaccessreviews", ..Target::default() };
    let review = SubjectAccessReview { metadata: ObjectMeta::default(), spec, status: None };
    let body = match serde_json::to_vec(&review) {
        Ok(body) => body,
        Err(error) => return Decision::Unknown(error.to_string()),
    };
    let began = clock.mono();
    let reply = asker.post(body.into(), target).await;
    gauges.authorization_asked(reply.as_ref().map(drop), clock.mono().seconds_since(began));
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => {
            error!(err = %error, "Failed to make webhook authorizer request");
            return Decision::Unknown(error.to_string());
        }
    };
    let status = match serde_json::from_slice::<SubjectAccessReview>(&reply) {
        Ok(review) => review.status.unwrap_or_default(),
        Err(error) => return Decision::Unknown(error.to_string()),
    };
    let reason = status.reason.unwrap_or_default();
    match (status.allowed, status.denied.unwrap_or(false)) {
        (true, true) => {
            Decision::Unknown("webhook subject access review returned both allow and deny response".to_owned())
        }
        (true, false) => Decision::Allow,
        (false, _) => Decision::Forbid(reason),
    }
}

impl Paths {
    fn new(paths: &[String]) -> Result<Self, ServeError> {
        let mut found = Self::default();
        for path in paths {
            let path = path.strip_prefix('/').unwrap_or(path);
            match path.split_once('*') {
                None => drop(found.exact.insert(path.to_owned())),
                Some((prefix, "")) => found.prefixes.push(prefix.to_owned()),
                Some(_) => return Err(ServeError(format!("only trailing * allowed in {}", quote(path)))),
            }
        }
        Ok(found)
    }

    fn contain(&self, path: &str) -> bool {
        let path = path.strip_prefix('/').unwrap_or(path);
        self.exact.contains(path) || self.prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Result<Paths, ServeError> {
        Paths::new(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn always_allowed_paths_match_exactly_or_by_prefix() {
        let check = |open: &[&str], path: &str, expected: bool| {
            assert_eq!(paths(open).expect("paths").contain(path), expected, "{open:?} {path}");
        };
        check(&["/healthz"], "/healthz", true);
        check(&["healthz"], "/healthz", true);
        check(&["/healthz"], "/healthz/ping", false);
        check(&["/healthz"], "/healthz/", false);
        check(&["/healthz/*"], "/healthz/ping", true);
        check(&["/healthz/*"], "/healthz", false);
        check(&["/*"], "/anything", true);
        check(&["*"], "/", true);
        check(&["/"], "/", true);
        check(&[""], "/", true);
        check(&["/"], "/x", false);
        check(&["/health*"], "/healthz", true);
    }

    #[test]
    fn star_is_allowed_only_at_the_end() {
        let check = |path: &str, shown: &str| {
            let error = paths(&[path]).expect_err("a star in the middle").to_string();
            assert_eq!(error, format!("only trailing * allowed in {shown:?}"));
        };
        check("/a*b", "a*b");
        check("/**", "**");
    }
}
