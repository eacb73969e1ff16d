//! The flag sections about serving, authentication and authorization.
//!
//! Follows `apiserver/pkg/server/options/serving.go`, `apiserver/pkg/server/options/serving_with_loopback.go`,
//! `apiserver/pkg/server/options/authentication.go`, `apiserver/pkg/server/options/authorization.go @v1.36.3`.

#![expect(clippy::doc_markdown, reason = "what is said of a field is what --help prints of its flag")]

use std::net::{IpAddr, Ipv4Addr};

use clap::Args;

use super::lists::{CertKey, Items, Numbers, cert_key, items, numbers, written};
use super::shown::Shown;
use super::values::{duration, int, ip};
use crate::go::duration::GoDuration;
use crate::go::number::parse_bool;

/// Flags of the section "secure serving".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Secure serving flags")]
pub struct SecureServingFlags {
    /// IP address to listen on. An unspecified address means all interfaces and both address families.
    #[arg(long, allow_hyphen_values = true, value_parser = ip)]
    pub bind_address: Option<IpAddr>,
    /// Folder with kube-scheduler.crt and kube-scheduler.key, which are generated if missing. Ignored if --tls-cert-file and
    /// --tls-private-key-file are given.
    #[arg(long, allow_hyphen_values = true)]
    pub cert_dir: Option<String>,
    /// Disable HTTP/2; only HTTP/1.1 is served.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub disable_http2_serving: Option<bool>,
    /// Maximum number of concurrent streams of an HTTP/2 connection. Zero means 100.
    #[arg(long, allow_hyphen_values = true, value_parser = int)]
    pub http2_max_streams_per_connection: Option<i64>,
    /// Set SO_REUSEADDR on the port.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub permit_address_sharing: Option<bool>,
    /// Set SO_REUSEPORT on the port.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub permit_port_sharing: Option<bool>,
    /// Port on which to serve HTTPS. With 0 nothing is served.
    #[arg(long, allow_hyphen_values = true, value_parser = int)]
    pub secure_port: Option<i64>,
    /// File with the serving certificate and its chain, in PEM. Without it a self-signed certificate is generated.
    #[arg(long, allow_hyphen_values = true)]
    pub tls_cert_file: Option<String>,
    /// Comma-separated cipher suites to offer, by Go's names.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub tls_cipher_suites: Vec<Items>,
    /// Comma-separated key exchanges to offer, by Go's CurveIDs.
    #[arg(long, allow_hyphen_values = true, value_parser = numbers)]
    pub tls_curve_preferences: Vec<Numbers>,
    /// Minimum TLS version: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13.
    #[arg(long, allow_hyphen_values = true)]
    pub tls_min_version: Option<String>,
    /// File with the private key of --tls-cert-file, in PEM.
    #[arg(long, allow_hyphen_values = true)]
    pub tls_private_key_file: Option<String>,
    /// Certificate and key for some host names: cert,key[:pattern,pattern]. May be repeated.
    #[arg(long, allow_hyphen_values = true, value_parser = cert_key)]
    pub tls_sni_cert_key: Vec<CertKey>,
}

/// Flags of the section "authentication".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Authentication flags")]
pub struct AuthenticationFlags {
    /// Kubeconfig of a user that may create tokenreviews and read kube-system/extension-apiserver-authentication. Without it
    /// every request with a token is anonymous.
    #[arg(long, allow_hyphen_values = true)]
    pub authentication_kubeconfig: Option<String>,
    /// Do not look up missing authentication settings in the cluster.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub authentication_skip_lookup: Option<bool>,
    /// Duration for which a TokenReview result is cached.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub authentication_token_webhook_cache_ttl: Option<GoDuration>,
    /// Continue if authentication settings cannot be looked up in the cluster.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub authentication_tolerate_lookup_failure: Option<bool>,
    /// CA bundle for verifying client certificates.
    #[arg(long, allow_hyphen_values = true)]
    pub client_ca_file: Option<String>,
    /// Common names of trusted front proxies. If empty, every certificate of their CA is trusted.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub requestheader_allowed_names: Vec<Items>,
    /// CA bundle for verifying the client certificates of front proxies.
    #[arg(long, allow_hyphen_values = true)]
    pub requestheader_client_ca_file: Option<String>,
    /// Prefixes of request headers with extra attributes of the user.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub requestheader_extra_headers_prefix: Vec<Items>,
    /// Request headers with the user's groups.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub requestheader_group_headers: Vec<Items>,
    /// Request headers with the user's UID.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub requestheader_uid_headers: Vec<Items>,
    /// Request headers with the user's name.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub requestheader_username_headers: Vec<Items>,
}

/// Flags of the section "authorization".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Authorization flags")]
pub struct AuthorizationFlags {
    /// Paths that are served without authorization. A * at the end matches every suffix.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub authorization_always_allow_paths: Vec<Items>,
    /// Kubeconfig of a user that may create subjectaccessreviews. Without it all other paths are forbidden.
    #[arg(long, allow_hyphen_values = true)]
    pub authorization_kubeconfig: Option<String>,
    /// Duration for which an allowed SubjectAccessReview result is cached.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub authorization_webhook_cache_authorized_ttl: Option<GoDuration>,
    /// Duration for which a denied SubjectAccessReview result is cached.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub authorization_webhook_cache_unauthorized_ttl: Option<GoDuration>,
}

const UNSPECIFIED: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const PORT: i64 = 10259;
const TTL: GoDuration = GoDuration::from_secs(10);
const USERNAME_HEADERS: &str = "x-remote-user";
const GROUP_HEADERS: &str = "x-remote-group";
const EXTRA_PREFIX: &str = "x-remote-extra-";
const ALLOWED_PATHS: &str = "/healthz,/readyz,/livez";

/// The items of all occurrences of a flag, or those of the default if the flag is not given.
fn given_or(given: &[Items], default: &str) -> Vec<String> {
    match given {
        [] => default.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect(),
        given => given.iter().flat_map(|items| items.0.iter().cloned()).collect(),
    }
}

fn all(given: &[Items]) -> Option<String> {
    (!given.is_empty()).then(|| written(given.iter().flat_map(|items| &items.0)))
}

impl SecureServingFlags {
    /// Address on which the server listens.
    pub fn bind_address(&self) -> IpAddr {
        self.bind_address.unwrap_or(UNSPECIFIED)
    }

    /// The port, which may be out of range; 0 disables serving.
    pub fn port(&self) -> i64 {
        self.secure_port.unwrap_or(PORT)
    }

    /// Names of the allowed cipher suites; empty if all are allowed.
    pub fn cipher_suites(&self) -> Vec<String> {
        given_or(&self.tls_cipher_suites, "")
    }

    /// IDs of the allowed key exchanges; empty if all are allowed.
    pub fn curve_preferences(&self) -> Vec<i32> {
        self.tls_curve_preferences.iter().flat_map(|numbers| numbers.0.iter().copied()).collect()
    }

    pub(super) fn show(&self, shown: &mut Shown) {
        shown.value("bind-address", "ip", self.bind_address.as_ref(), &UNSPECIFIED);
        shown.text("cert-dir", self.cert_dir.as_ref(), "");
        shown.flag("disable-http2-serving", self.disable_http2_serving, false);
        shown.value("http2-max-streams-per-connection", "int", self.http2_max_streams_per_connection.as_ref(), &0);
        shown.flag("permit-address-sharing", self.permit_address_sharing, false);
        shown.flag("permit-port-sharing", self.permit_port_sharing, false);
        shown.value("secure-port", "int", self.secure_port.as_ref(), &PORT);
        shown.text("tls-cert-file", self.tls_cert_file.as_ref(), "");
        shown.list("tls-cipher-suites", "strings", all(&self.tls_cipher_suites).as_deref(), "");
        let curves = self.curve_preferences().iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        shown.list("tls-curve-preferences", "int32Slice", Some(&curves), "");
        shown.text("tls-min-version", self.tls_min_version.as_ref(), "");
        shown.text("tls-private-key-file", self.tls_private_key_file.as_ref(), "");
        let pairs = self.tls_sni_cert_key.iter().map(CertKey::to_string).collect::<Vec<_>>().join(";");
        shown.list("tls-sni-cert-key", "namedCertKey", Some(&pairs), "");
    }
}

impl AuthenticationFlags {
    /// Common names of trusted front proxies; empty if any name is trusted.
    pub fn allowed_names(&self) -> Vec<String> {
        given_or(&self.requestheader_allowed_names, "")
    }

    /// Prefixes of the headers that contain extra attributes of the user.
    pub fn extra_prefixes(&self) -> Vec<String> {
        given_or(&self.requestheader_extra_headers_prefix, EXTRA_PREFIX)
    }

    /// Names of the headers that contain the user's groups.
    pub fn group_headers(&self) -> Vec<String> {
        given_or(&self.requestheader_group_headers, GROUP_HEADERS)
    }

    /// Names of the headers that contain the user's UID.
    pub fn uid_headers(&self) -> Vec<String> {
        given_or(&self.requestheader_uid_headers, "")
    }

    /// Names of the headers that contain the user's name.
    pub fn username_headers(&self) -> Vec<String> {
        given_or(&self.requestheader_username_headers, USERNAME_HEADERS)
    }

    /// Time for which a TokenReview result is cached.
    pub fn token_ttl(&self) -> GoDuration {
        self.authentication_token_webhook_cache_ttl.unwrap_or(TTL)
    }

    pub(super) fn show(&self, shown: &mut Shown) {
        shown.text("authentication-kubeconfig", self.authentication_kubeconfig.as_ref(), "");
        shown.flag("authentication-skip-lookup", self.authentication_skip_lookup, false);
        let ttl = self.authentication_token_webhook_cache_ttl.as_ref();
        shown.value("authentication-token-webhook-cache-ttl", "duration", ttl, &TTL);
        shown.flag("authentication-tolerate-lookup-failure", self.authentication_tolerate_lookup_failure, true);
        shown.text("client-ca-file", self.client_ca_file.as_ref(), "");
        let mut list = |name, given: &[Items], default| shown.list(name, "strings", all(given).as_deref(), default);
        list("requestheader-allowed-names", &self.requestheader_allowed_names, "");
        list("requestheader-extra-headers-prefix", &self.requestheader_extra_headers_prefix, EXTRA_PREFIX);
        list("requestheader-group-headers", &self.requestheader_group_headers, GROUP_HEADERS);
        list("requestheader-uid-headers", &self.requestheader_uid_headers, "");
        list("requestheader-username-headers", &self.requestheader_username_headers, USERNAME_HEADERS);
        shown.text("requestheader-client-ca-file", self.requestheader_client_ca_file.as_ref(), "");
    }
}

impl AuthorizationFlags {
    /// Paths that are allowed without authorization.
    pub fn allowed_paths(&self) -> Vec<String> {
        given_or(&self.authorization_always_allow_paths, ALLOWED_PATHS)
    }

    /// Times for which allowed and denied authorization results are cached.
    pub fn ttls(&self) -> (GoDuration, GoDuration) {
        let (allowed, denied) =
            (self.authorization_webhook_cache_authorized_ttl, self.authorization_webhook_cache_unauthorized_ttl);
        (allowed.unwrap_or(TTL), denied.unwrap_or(TTL))
    }

    pub(super) fn show(&self, shown: &mut Shown) {
        let paths = all(&self.authorization_always_allow_paths);
        shown.list("authorization-always-allow-paths", "strings", paths.as_deref(), ALLOWED_PATHS);
        shown.text("authorization-kubeconfig", self.authorization_kubeconfig.as_ref(), "");
        let mut ttl = |name, given: Option<&GoDuration>| shown.value(name, "duration", given, &TTL);
        let (allowed, denied) =
            (&self.authorization_webhook_cache_authorized_ttl, &self.authorization_webhook_cache_unauthorized_ttl);
        ttl("authorization-webhook-cache-authorized-ttl", allowed.as_ref());
        ttl("authorization-webhook-cache-unauthorized-ttl", denied.as_ref());
    }
}
