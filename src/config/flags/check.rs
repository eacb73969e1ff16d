//! Validates flags beyond their grammar, with upstream's texts and in its order.
//!
//! Follows `cmd/kube-scheduler/app/options/options.go#Validate @v1.36.3` and the functions that it calls.

use super::super::gates::{FeatureGates, Gate};
use super::Flags;
use super::lists::Items;
use crate::apimachinery::field_error::aggregate;
use crate::go::quote::quote;

impl Flags {
    /// Validates the flags that no configuration file overrides: serving, authentication and metrics.
    pub fn check(&self, gates: &FeatureGates) -> Result<(), String> {
        let mut errors = Vec::new();
        let port = self.secure_serving.port();
        if port > i64::from(u16::MAX) {
            errors.push(format!(
                "--secure-port {port} must be between 1 and 65535, inclusive. It cannot be turned off with 0"
            ));
        } else if port < 0 {
            errors.push(format!(
                "--secure-port {port} must be between 0 and 65535, inclusive. 0 for turning off secure port"
            ));
        }
        self.check_request_headers(gates, &mut errors);
        self.metrics.check(&mut errors);
        if errors.is_empty() { Ok(()) } else { Err(aggregate(errors)) }
    }

    /// Validates the request header flags.
    /// Follows `apiserver/pkg/server/options/authentication.go#RequestHeaderAuthenticationOptions.Validate @v1.36.3`.
    fn check_request_headers(&self, gates: &FeatureGates, errors: &mut Vec<String>) {
        let flags = &self.authentication;
        let mut blank = |name: &str, items: &[Items]| {
            let is_blank = |item: &String| item.trim().is_empty();
            if items.iter().flat_map(|items| &items.0).any(is_blank) {
                errors.push(format!("empty value in {}", quote(name)));
            }
        };
        blank("requestheader-username-headers", &flags.requestheader_username_headers);
        blank("requestheader-group-headers", &flags.requestheader_group_headers);
        blank("requestheader-extra-headers-prefix", &flags.requestheader_extra_headers_prefix);
        blank("requestheader-allowed-names", &flags.requestheader_allowed_names);
        let uids = flags.uid_headers();
        if uids.is_empty() {
            return;
        }
        if !gates.enabled(Gate::RemoteRequestHeaderUID) {
            errors.push(
                "--requestheader-uid-headers requires the \"RemoteRequestHeaderUID\" feature to be enabled".to_owned(),
            );
            return;
        }
        blank("requestheader-uid-headers", &flags.requestheader_uid_headers);
        if !uids.iter().any(|header| header.eq_ignore_ascii_case("X-Remote-Uid")) {
            errors.push(
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation \
                 will not work"
                    .to_owned(),
            );
        }
    }
}
