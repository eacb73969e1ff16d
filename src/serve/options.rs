//! Resolved settings of the server. Flags are converted to these elsewhere.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of the server. The defaults are those of the flags.
/// Follows `apiserver/pkg/server/options/serving.go#SecureServingOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address to listen on. An unspecified address means all interfaces, of IPv4 and IPv6.
    pub bind_address: IpAddr,
    /// Port to listen on. 0 means any free port, for tests. If the flag's value is 0, serving is off and no server is created.
    pub port: u16,
    /// Whether several processes may listen on the same address and port (`SO_REUSEPORT`).
    pub permit_port_sharing: bool,
    /// Whether wildcard and specific addresses may be bound in parallel (`SO_REUSEADDR`). This is on in any case.
    pub permit_address_sharing: bool,
    /// Directory of the certificate if no files are named. A generated certificate is saved there.
    pub cert_dir: Option<PathBuf>,
    /// File of the certificate. Empty for none.
    pub cert_file: String,
    /// File of the certificate's key. Empty for none.
    pub key_file: String,
    /// Certificates for certain server names.
    pub sni: Vec<SniCertificate>,
    /// TLS versions, cipher suites and key exchanges.
    pub tls: TlsOptions,
    /// Whether only HTTP/1.1 is supported.
    pub disable_http2: bool,
    /// Maximum number of HTTP/2 streams per connection. 0 means 100.
    pub http2_max_streams: u32,
    /// Settings of the authentication of clients.
    pub authentication: AuthenticationOptions,
    /// Settings of the authorization of requests.
    pub authorization: AuthorizationOptions,
}

/// A certificate for clients that request one of its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SniCertificate {
    /// File of the certificate.
    pub cert_file: String,
    /// File of the certificate's key.
    pub key_file: String,
    /// Names, `*.` patterns and addresses. If there are none, the names in the certificate are used.
    pub names: Vec<String>,
}

/// TLS settings, as the flags name them.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Minimum version, such as `VersionTLS12`. Empty means TLS 1.2.
    pub min_version: String,
    /// Names of the allowed cipher suites. Empty means all. The suites of TLS 1.3 are always allowed.
    pub cipher_suites: Vec<String>,
    /// Numbers of the allowed key exchange mechanisms. Empty means all.
    pub curve_preferences: Vec<i32>,
}

/// Settings of the authentication of clients.
/// Follows `apiserver/pkg/server/options/authentication.go#DelegatingAuthenticationOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct AuthenticationOptions {
    /// Whether the cluster's authentication `ConfigMap` is not looked up.
    pub skip_lookup: bool,
    /// Whether a failed look-up is logged instead of returned as an error.
    pub tolerate_lookup_failure: bool,
    /// Time for which a `TokenReview` result is cached.
    pub token_ttl: Duration,
    /// File with the authorities of client certificates. Empty for none.
    pub client_ca_file: String,
    /// Authority and headers of the front proxy, as far as flags set them.
    pub request_header: RequestHeaderOptions,
    /// Whether a certificate's subject may contain a UID: gate `AllowParsingUserUIDFromCertAuth`.
    pub uid_from_certificates: bool,
}

/// Settings of the authentication by a front proxy. Follows
/// `apiserver/pkg/server/options/authentication.go#RequestHeaderAuthenticationOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct RequestHeaderOptions {
    /// File with the authorities of front proxies. If it is empty, the other settings are ignored.
    pub client_ca_file: String,
    /// Allowed common names of front proxies. Empty means any.
    pub allowed_names: Vec<String>,
    /// Headers with the user's name.
    pub username_headers: Vec<String>,
    /// Headers with the user's UID.
    pub uid_headers: Vec<String>,
    /// Headers with the user's groups.
    pub group_headers: Vec<String>,
    /// Prefixes of headers with the user's extra information.
    pub extra_headers_prefix: Vec<String>,
}

/// Settings of the authorization of requests.
/// Follows `apiserver/pkg/server/options/authorization.go#DelegatingAuthorizationOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct AuthorizationOptions {
    /// Paths that need no authorization. A `*` at the end stands for anything.
    pub always_allow_paths: Vec<String>,
    /// Time for which an allowed `SubjectAccessReview` is cached.
    pub allow_ttl: Duration,
    /// Time for which a denied `SubjectAccessReview` is cached.
    pub deny_ttl: Duration,
}

/// Default time for which the API server's answers are cached.
const CACHED: Duration = Duration::from_secs(10);

impl Default for Options {
    fn default() -> Self {
        Self {
            bind_address: Ipv4Addr::UNSPECIFIED.into(),
            port: 10259,
            permit_port_sharing: false,
            permit_address_sharing: false,
            cert_dir: None,
            cert_file: String::new(),
            key_file: String::new(),
            sni: Vec::new(),
            tls: TlsOptions::default(),
            disable_http2: false,
            http2_max_streams: 0,
            authentication: AuthenticationOptions::default(),
            authorization: AuthorizationOptions::default(),
        }
    }
}

impl Default for AuthenticationOptions {
    fn default() -> Self {
        Self {
            skip_lookup: false,
            tolerate_lookup_failure: true,
            token_ttl: CACHED,
            client_ca_file: String::new(),
            request_header: RequestHeaderOptions::default(),
            uid_from_certificates: true,
        }
    }
}

impl Default for RequestHeaderOptions {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            client_ca_file: String::new(),
            allowed_names: Vec::new(),
            username_headers: one("x-remote-user"),
            uid_headers: Vec::new(),
            group_headers: one("x-remote-group"),
            extra_headers_prefix: one("x-remote-extra-"),
        }
    }
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        let always_allow_paths = ["/healthz", "/readyz", "/livez"].map(str::to_owned).to_vec();
        Self { always_allow_paths, allow_ttl: CACHED, deny_ttl: CACHED }
    }
}
