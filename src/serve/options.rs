//! How to serve: plain resolved values, which flags are turned into elsewhere.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// How to serve. The defaults are those of the flags.
/// Follows `apiserver/pkg/server/options/serving.go#SecureServingOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen. An unspecified address means all interfaces, of both families.
    pub bind_address: IpAddr,
    /// The port. 0 means any free one, which is for tests: that 0 turns serving off is decided before.
    pub port: u16,
    /// Whether several processes may listen on the same address and port (`SO_REUSEPORT`).
    pub permit_port_sharing: bool,
    /// Whether wildcard and specific addresses may be bound in parallel (`SO_REUSEADDR`), which is so in any case.
    pub permit_address_sharing: bool,
    /// Where the certificate is, or is kept once it is made, if no files are named.
    pub cert_dir: Option<PathBuf>,
    /// The certificate's file; empty for none.
    pub cert_file: String,
    /// The key's file; empty for none.
    pub key_file: String,
    /// Certificates for some server names.
    pub sni: Vec<SniCertificate>,
    /// What of TLS is spoken.
    pub tls: TlsOptions,
    /// Whether only HTTP/1.1 is spoken.
    pub disable_http2: bool,
    /// How many streams a connection may have; 0 means 100.
    pub http2_max_streams: u32,
    /// Who asks.
    pub authentication: AuthenticationOptions,
    /// Whether they may.
    pub authorization: AuthorizationOptions,
}

/// A certificate that is shown to clients that ask for one of its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SniCertificate {
    /// The certificate's file.
    pub cert_file: String,
    /// The key's file.
    pub key_file: String,
    /// Names, `*.` patterns and addresses; if there are none, those of the certificate count.
    pub names: Vec<String>,
}

/// What of TLS is spoken, as the flags name it.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// `VersionTLS12` and so on; empty means TLS 1.2.
    pub min_version: String,
    /// Names of cipher suites; none means all. Those of TLS 1.3 cannot be chosen.
    pub cipher_suites: Vec<String>,
    /// Numbers of key exchange mechanisms; none means all.
    pub curve_preferences: Vec<i32>,
}

/// Who asks. Follows `apiserver/pkg/server/options/authentication.go#DelegatingAuthenticationOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct AuthenticationOptions {
    /// Whether nothing is looked up in the cluster's `ConfigMap`.
    pub skip_lookup: bool,
    /// Whether a look-up that fails is only warned of.
    pub tolerate_lookup_failure: bool,
    /// How long an answer about a token is good for.
    pub token_ttl: Duration,
    /// The file with the authorities of clients; empty for none.
    pub client_ca_file: String,
    /// The front proxy's authority and headers, as far as flags give them.
    pub request_header: RequestHeaderOptions,
    /// Whether a certificate's subject may carry a UID: gate `AllowParsingUserUIDFromCertAuth`.
    pub uid_from_certificates: bool,
}

/// Whom a front proxy may speak for. Follows
/// `apiserver/pkg/server/options/authentication.go#RequestHeaderAuthenticationOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct RequestHeaderOptions {
    /// The file with the authorities of front proxies; empty for none, and then the rest does not count.
    pub client_ca_file: String,
    /// Common names that a front proxy may have; none means any.
    pub allowed_names: Vec<String>,
    /// Headers with the user's name.
    pub username_headers: Vec<String>,
    /// Headers with the user's UID.
    pub uid_headers: Vec<String>,
    /// Headers with the user's groups.
    pub group_headers: Vec<String>,
    /// What headers with more begin with.
    pub extra_headers_prefix: Vec<String>,
}

/// Whether they may. Follows `apiserver/pkg/server/options/authorization.go#DelegatingAuthorizationOptions @v1.36.3`.
#[derive(Clone, Debug)]
pub struct AuthorizationOptions {
    /// Paths that anybody may ask for; a `*` at the end stands for anything.
    pub always_allow_paths: Vec<String>,
    /// How long a yes is good for.
    pub allow_ttl: Duration,
    /// How long a no is good for.
    pub deny_ttl: Duration,
}

/// How long answers of the API server are good for, unless a flag says otherwise.
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
