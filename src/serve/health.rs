//! Health endpoints `/healthz`, `/livez` and `/readyz`. Follows `apiserver/pkg/server/healthz/healthz.go @v1.36.3`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use http::StatusCode;
use tracing::info;

use super::negotiate::Query;
use super::reply::{Reply, failure, no_sniff, text};
use super::slis::Slis;
use crate::go::quote::quote;

/// A check of the process's health.
pub trait HealthCheck: Send + Sync {
    /// Name of the check in paths and in the list of checks.
    fn name(&self) -> &str;
    /// Runs this health check. The error is shown only to clients that are authorized for this check.
    fn check(&self) -> Result<(), String>;
}

/// A check that calls a function.
struct Named<F> {
    name: &'static str,
    check: F,
}

impl<F: Fn() -> Result<(), String> + Send + Sync> HealthCheck for Named<F> {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&self) -> Result<(), String> {
        (self.check)()
    }
}

/// Creates a check that calls `check`.
pub fn health_check(
    name: &'static str,
    check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
) -> Arc<dyn HealthCheck> {
    Arc::new(Named { name, check })
}

/// A health endpoint with the checks below it.
pub(super) struct HealthPath {
    /// `healthz`, `livez` or `readyz`.
    name: &'static str,
    checks: Vec<Arc<dyn HealthCheck>>,
    slis: Arc<Slis>,
}

impl HealthPath {
    /// Creates a health endpoint. Without any checks it has `ping`, which always passes.
    pub(super) fn new(name: &'static str, checks: &[Arc<dyn HealthCheck>], slis: &Arc<Slis>) -> Self {
        let checks = if checks.is_empty() { vec![health_check("ping", || Ok(()))] } else { checks.to_vec() };
        Self { name, checks, slis: slis.clone() }
    }

    /// Runs all checks that the query does not exclude.
    pub(super) fn all(&self, query: &Query) -> Reply {
        let excluded: BTreeSet<&str> = query.all("exclude").collect();
        let mut unknown = excluded.clone();
        let (mut lines, mut failed) = (String::new(), Vec::new());
        for check in &self.checks {
            let name = check.name();
            let line = if excluded.contains(name) {
                unknown.remove(name);
                format!("[+]{name} excluded: ok")
            } else {
                let outcome = check.check();
                self.slis.observe(name, self.name, outcome.is_ok());
                match outcome {
                    Ok(()) => format!("[+]{name} ok"),
                    Err(error) => {
                        failed.push(format!("[-]{name} failed: {error}"));
                        // This path is open to everybody. Reasons are shown under the path of the single check.
                        format!("[-]{name} failed: reason withheld")
                    }
                }
            };
            // Writing into a string cannot fail.
            let _ = writeln!(lines, "{line}");
        }
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.iter().map(|name| quote(name)).collect();
            let names = names.join(",");
            let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
        }
        if !failed.is_empty() {
            info!("{} check failed:\n{}", self.name, failed.join("\n"));
            return failure(StatusCode::INTERNAL_SERVER_ERROR, &format!("{lines}{} check failed", self.name));
        }
        let verbose = query.first("verbose").is_some();
        no_sniff(if verbose { text(format!("{lines}{} check passed\n", self.name)) } else { text("ok") })
    }

    /// Runs the check with this name.
    pub(super) fn one(&self, name: &str) -> Option<Reply> {
        let check = self.checks.iter().find(|check| check.name() == name)?;
        Some(match check.check() {
            Ok(()) => text("ok"),
            Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &format!("internal server error: {error}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::serve::reply::shown;

    fn root(checks: &[Arc<dyn HealthCheck>]) -> HealthPath {
        HealthPath::new("readyz", checks, &Slis::new(Timestamp::UNIX_EPOCH).expect("families"))
    }

    #[test]
    fn health_list_honours_exclude_and_withholds_reasons() {
        let well = || health_check("well", || Ok(()));
        let ill = || health_check("ill", || Err("it aches".to_owned()));
        let check = |checks: &[Arc<dyn HealthCheck>], query: &str, status: u16, expected: &str| {
            assert_eq!(shown(root(checks).all(&Query::parse(query))), (status, expected.to_owned()), "{query}");
        };
        check(&[], "", 200, "ok");
        check(&[], "verbose", 200, "[+]ping ok\nreadyz check passed\n");
        check(&[], "verbose=0", 200, "[+]ping ok\nreadyz check passed\n");
        check(&[well(), ill()], "", 500, "[+]well ok\n[-]ill failed: reason withheld\nreadyz check failed\n");
        check(&[well(), ill()], "exclude=ill", 200, "ok");
        check(
            &[well(), ill()],
            "verbose&exclude=ill&exclude=x&exclude=b%22",
            200,
            "[+]well ok\n[+]ill excluded: ok\nwarn: some health checks cannot be excluded: no matches for \
             \"b\\\"\",\"x\"\nreadyz check passed\n",
        );
    }

    #[test]
    fn single_check_reports_its_error() {
        let root = root(&[health_check("ill", || Err("it aches".to_owned()))]);
        assert_eq!(root.one("ill").map(shown), Some((500, "internal server error: it aches\n".to_owned())));
        assert!(root.one("ping").is_none());
    }
}
