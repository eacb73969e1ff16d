//! Authorities and header names from the `ConfigMap` kube-system/extension-apiserver-authentication.
//!
//! The API server publishes its own client authorities and front-proxy headers there. The `ConfigMap` is read once at the
//! start and then watched. A part of it that is invalid is ignored, and the previous value stays in use.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::watcher::Event;
use tracing::{error, info, warn};

use super::HeaderNames;
use crate::client::{Call, Target, watch_object};
use crate::clock::Clock;
use crate::serve::ask::Asker;
use crate::serve::trust::{LatestValue, Trust};
use crate::serve::x509::Bundle;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// The role that permits reading the `ConfigMap`.
const ROLE: &str = "extension-apiserver-authentication-reader";

const CLIENT_CA: &str = "client-ca-file";
const PROXY_CA: &str = "requestheader-client-ca-file";

/// Destinations for the contents of the `ConfigMap`. `None` means that the part is not needed.
#[derive(Clone, Default)]
pub(in crate::serve) struct Cluster {
    /// Authorities that sign client certificates.
    pub(in crate::serve) clients: Option<Arc<Trust>>,
    /// Authorities that sign front-proxy certificates.
    pub(in crate::serve) proxies: Option<Arc<Trust>>,
    /// Names of the headers in which front proxies send the user.
    pub(in crate::serve) names: Option<Arc<LatestValue<HeaderNames>>>,
}

/// Reads the `ConfigMap` once. A missing `ConfigMap` is not an error, since it may be created later.
/// Follows `apiserver/pkg/authentication/request/headerrequest/requestheader_controller.go#RunOnce @v1.36.3`.
pub(in crate::serve) async fn lookup(asker: &Asker) -> Result<Option<ConfigMap>, String> {
    let target =
        Target { version: "v1", namespace: NAMESPACE, resource: "configmaps", name: NAME, ..Target::default() };
    match asker.send(&Call::Get, &target).await {
        Ok(body) => serde_json::from_slice(&body).map(Some).map_err(|error| error.to_string()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => {
            if error.status().is_some_and(|status| status.code == 403) {
                warn!(
                    "Unable to get configmap/{NAME} in {NAMESPACE}.  Usually fixed by 'kubectl create rolebinding -n \
                     {NAMESPACE} ROLEBINDING_NAME --role={ROLE} --serviceaccount=YOUR_NS:YOUR_SA'"
                );
            }
            Err(error.to_string())
        }
    }
}

impl Cluster {
    /// Whether any part of the `ConfigMap` is needed.
    pub(in crate::serve) fn is_wanted(&self) -> bool {
        self.clients.is_some() || self.names.is_some()
    }

    /// Stores the valid parts of the `ConfigMap`. Returns an error that names the invalid parts.
    pub(in crate::serve) fn take(&self, map: &ConfigMap) -> Result<(), String> {
        let none = BTreeMap::new();
        let data = map.data.as_ref().unwrap_or(&none);
        let mut wrong = Vec::new();
        for (key, trust) in [(CLIENT_CA, &self.clients), (PROXY_CA, &self.proxies)] {
            let Some(Trust::Cluster(slot)) = trust.as_deref() else { continue };
            let name = format!("client-ca::{NAMESPACE}::{NAME}::{key}");
            match Bundle::parse(&name, data.get(key).map_or(&[][..], |text| text.as_bytes())) {
                Ok(bundle) => slot.set(bundle),
                Err(error) => wrong.push(error),
            }
        }
        if let Some(slot) = &self.names {
            match names(data) {
                Ok(names) => slot.set(names),
                Err(error) => wrong.push(error),
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
    }

    /// Watches the `ConfigMap` for as long as the future is polled.
    pub(in crate::serve) async fn follow(self, client: kube::Client, clock: Clock) {
        let mut events = pin!(watch_object::<ConfigMap>(client, NAMESPACE, NAME, clock));
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(map) | Event::InitApply(map)) => match self.take(&map) {
                    Ok(()) => info!("Loaded ConfigMap {NAMESPACE}/{NAME}"),
                    Err(error) => {
                        error!(err = error, "ConfigMap {NAMESPACE}/{NAME} is invalid, keeping the previous values");
                    }
                },
                Ok(Event::Delete(_)) => warn!("ConfigMap {NAMESPACE}/{NAME} was deleted, keeping the previous values"),
                Ok(Event::Init | Event::InitDone) => {}
                Err(error) => warn!(err = %error, "Failed to watch ConfigMap {NAMESPACE}/{NAME}"),
            }
        }
    }
}

/// Parses the header names of the `ConfigMap`. Follows
/// `apiserver/pkg/authentication/request/headerrequest/requestheader_controller.go#getRequestHeaderBundleFromConfigMap
/// @v1.36.3`.
fn names(data: &BTreeMap<String, String>) -> Result<HeaderNames, String> {
    let list = |key: &str| match data.get(key).map(String::as_str) {
        None | Some("") => Ok(Vec::new()),
        Some(text) => serde_json::from_str(text).map_err(|error| format!("{key}: {error}")),
    };
    Ok(HeaderNames {
        username: list("requestheader-username-headers")?,
        uid: list("requestheader-uid-headers")?,
        group: list("requestheader-group-headers")?,
        extra_prefix: list("requestheader-extra-headers-prefix")?,
        allowed: list("requestheader-allowed-names")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::testing::certificates::Authority;

    fn map(data: &serde_json::Value) -> ConfigMap {
        serde_json::from_value(json!({"data": data})).expect("a map")
    }

    #[test]
    fn what_is_of_no_use_leaves_the_rest_and_what_was_before() {
        let trust = || Some(Arc::new(Trust::Cluster(LatestValue::empty())));
        let cluster = Cluster { clients: trust(), proxies: trust(), names: Some(Arc::new(LatestValue::empty())) };
        let known = || {
            let has = |trust: &Option<Arc<Trust>>| trust.as_ref().is_some_and(|trust| trust.bundle().is_some());
            let names = cluster.names.as_ref().and_then(|slot| slot.get());
            (has(&cluster.clients), has(&cluster.proxies), names.map(|names| names.username.clone()))
        };
        let nothing = cluster.take(&map(&json!({}))).expect_err("no authorities");
        assert!(nothing.starts_with("missing content for CA bundle \"client-ca::kube-system::"), "{nothing}");
        assert_eq!(known(), (false, false, Some(vec![])));
        let users = |names: &str| json!({CLIENT_CA: Authority::new().pem(), "requestheader-username-headers": names});
        cluster.take(&map(&users("[\"X-Remote-User\"]"))).expect_err("no authority of proxies");
        assert_eq!(known(), (true, false, Some(vec!["X-Remote-User".to_owned()])));
        cluster.take(&map(&users("X-Other"))).expect_err("no list");
        cluster
            .take(&map(&json!({CLIENT_CA: "x", PROXY_CA: Authority::new().pem()})))
            .expect_err("no authorities of clients");
        assert_eq!(known(), (true, true, Some(vec![])));
    }
}
