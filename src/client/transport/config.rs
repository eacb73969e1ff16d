//! Settings and state that all connections to one API server share.

use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use tower::BoxError;

use super::super::access_error::AccessError;
use super::super::credentials::Credentials;
use super::super::kubeconfig::Access;
use super::super::stream::Connections;
use super::super::tls::{self, Identity, PresentedCertificate};
use super::dial::Proxies;
use super::liveness::Liveness;
use crate::clock::Clock;

/// Settings and state that all connections to one API server share.
/// Follows `client-go/transport/config.go#Config @v1.36.3`.
pub(super) struct TransportConfig {
    pub(super) access: Access,
    pub(super) tls: rustls::ClientConfig,
    pub(super) proxies: Proxies,
    pub(super) liveness: Liveness,
    /// Open connections of all clients.
    pub(super) open: Arc<Connections>,
    pub(super) credentials: Credentials,
    pub(super) clock: Clock,
    identity: Identity,
    presented: Arc<PresentedCertificate>,
}

impl TransportConfig {
    /// Checks an access and loads its certificates. Fails if its settings contradict each other or cannot be used.
    pub(super) fn new(access: Access, clock: Clock, liveness: Liveness) -> Result<Self, AccessError> {
        let open = Arc::<Connections>::default();
        let credentials = Credentials::of(&access, &clock, &open);
        // Matches upstream's order of checks: faults of the plugin come first, other faults of credentials last.
        let (credentials, late) = match credentials {
            Ok(credentials) => (credentials, None),
            Err(error) if error.starts_with("exec plugin") || error.starts_with("failed to load") => {
                return Err(AccessError::new(error));
            }
            Err(error) => (Credentials::None, Some(error)),
        };
        let presented = Arc::<PresentedCertificate>::default();
        let is_https = access.server.scheme_str() == Some("https");
        let may_present =
            !access.tls.cert_file.is_empty() || !access.tls.cert_data.is_empty() || credentials.may_have_certificate();
        let resolver = may_present.then(|| presented.clone() as Arc<dyn ResolvesClientCert>);
        let tls = tls::config(&access.tls, access.tls.insecure, is_https, resolver).map_err(AccessError::new)?;
        let identity = Identity::of(&access.tls).map_err(AccessError::new)?;
        if let Some(error) = late {
            return Err(AccessError::new(error));
        }
        let proxies = Proxies::of(access.proxy.as_ref(), |name| std::env::var(name).ok());
        Ok(Self { access, tls, proxies, liveness, open, credentials, clock, identity, presented })
    }

    /// Loads the client certificate that new connections present from now on.
    pub(super) fn load_certificate(&self) -> Result<(), BoxError> {
        let own = self.identity.current(self.clock.mono())?;
        self.presented.set(own.or_else(|| self.credentials.certificate()));
        Ok(())
    }

    /// Closes all connections if the files of the client certificate have changed since the connections were opened.
    pub(super) fn close_outdated(&self) {
        if self.identity.has_changed(self.clock.mono()) {
            tracing::info!(
                "Certificate rotation detected, shutting down client connections to start using new credentials"
            );
            self.open.close();
        }
    }
}
