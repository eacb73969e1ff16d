//! The selector of default constraints, derived from the services and the controller that select the pod.

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::framework::{Handle, PluginError};
use crate::k8s::{Pod, Selector, StringMap};
use crate::listers::Lister;

/// Derives the selector from the services and the controller of a pod.
#[derive(Clone, Debug)]
pub(super) struct DefaultSelectors {
    services: Lister<Service>,
    replication_controllers: Lister<ReplicationController>,
    replica_sets: Lister<ReplicaSet>,
    stateful_sets: Lister<StatefulSet>,
}

impl DefaultSelectors {
    /// Requests listers of services and controllers.
    pub(super) fn new(handle: &Handle) -> Result<Self, PluginError> {
        Ok(Self {
            services: handle.lister()?,
            replication_controllers: handle.lister()?,
            replica_sets: handle.lister()?,
            stateful_sets: handle.lister()?,
        })
    }

    /// Returns a selector that combines the selectors of the pod's controller and of every service in its namespace that
    /// selects the pod. Without a controller and services, the selector is empty and matches everything.
    /// Follows `pkg/scheduler/framework/plugins/helper/spread.go#DefaultSelector @v1.36.3`.
    pub(super) fn of(&self, pod: &Pod) -> Selector {
        let mut labels = self.service_labels(pod);
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        let Some(owner) = owners.iter().find(|owner| owner.controller == Some(true)) else {
            return Selector::from_labels(&labels);
        };
        let (namespace, name) = (pod.namespace(), owner.name.as_str());
        let set_selector = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1" | "/v1", "ReplicationController") => {
                let controller = self.replication_controllers.get_in(namespace, name);
                let spec = controller.as_ref().and_then(|controller| controller.spec.as_ref());
                let selector = spec.and_then(|spec| spec.selector.as_ref());
                labels.extend(selector.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
                None
            }
            ("apps/v1", "ReplicaSet") => {
                let set = self.replica_sets.get_in(namespace, name);
                set.and_then(|set| set.spec.as_ref().map(|spec| spec.selector.clone()))
            }
            ("apps/v1", "StatefulSet") => {
                let set = self.stateful_sets.get_in(namespace, name);
                set.and_then(|set| set.spec.as_ref().map(|spec| spec.selector.clone()))
            }
            _ => None,
        };
        with_requirements(Selector::from_labels(&labels), set_selector.as_ref())
    }

    /// Returns the labels in the selectors of the services that select the pod. A service without a selector selects no pods.
    /// Follows `pkg/scheduler/framework/plugins/helper/spread.go#GetPodServices @v1.36.3`.
    fn service_labels(&self, pod: &Pod) -> StringMap {
        let mut labels = StringMap::default();
        for service in self.services.list_in(pod.namespace()) {
            let Some(selector) = service.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else { continue };
            if selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value)) {
                labels.extend(selector.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
        }
        labels
    }
}

/// Adds the requirements of `added` to the selector. If `added` cannot be compiled, nothing is added.
fn with_requirements(selector: Selector, added: Option<&LabelSelector>) -> Selector {
    let Ok(added) = Selector::from_label_selector(added) else { return selector };
    added.requirements().unwrap_or_default().iter().cloned().fold(selector, Selector::and)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::FeatureGates;
    use crate::testing::{PodFixture, handle, pod};

    fn owned(api_version: &str, kind: &str) -> PodFixture {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": true});
        pod("p").label("app", "a").set("metadata.ownerReferences", json!([owner]))
    }

    fn object(name: &str, namespace: &str, selector: &Value) -> Value {
        let spec = json!({"selector": selector, "serviceName": "s", "template": {}});
        json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec})
    }

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
        Arc::new(serde_json::from_value(value).expect("an object of its kind"))
    }

    fn selected(handle: &Handle, pod: PodFixture) -> Selector {
        DefaultSelectors::new(handle).expect("nothing is watched yet").of(&pod.build())
    }

    fn print(selector: &Selector) -> String {
        if selector.is_empty() { "everything".to_owned() } else { selector.to_string() }
    }

    #[test]
    fn default_selector_comes_from_the_controller() {
        let check = |pod: PodFixture, selector: Value, expected: &str| {
            let handle = handle(FeatureGates::default());
            let labels = selector.get("matchLabels").cloned().unwrap_or_else(|| json!({}));
            handle.listers().put(read::<ReplicaSet>(object("o", "default", &selector)));
            handle.listers().put(read::<StatefulSet>(object("o", "default", &selector)));
            handle.listers().put(read::<ReplicationController>(object("o", "default", &labels)));
            assert_eq!(print(&selected(&handle, pod)), expected, "{selector}");
        };
        let app = || json!({"matchLabels": {"app": "x"}});
        check(owned("apps/v1", "ReplicaSet"), app(), "app=x");
        check(owned("apps/v1", "StatefulSet"), app(), "app=x");
        check(owned("v1", "ReplicationController"), app(), "app=x");
        check(owned("apps/v1", "ReplicationController"), app(), "everything");
        check(owned("apps/v1beta2", "ReplicaSet"), app(), "everything");
        check(owned("apps/v1", "DaemonSet"), app(), "everything");
        check(owned("apps/v1", "ReplicaSet").namespace("other"), app(), "everything");
        check(pod("p").label("app", "x"), app(), "everything");
        check(owned("apps/v1", "StatefulSet"), json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}), "a");
        check(owned("apps/v1", "ReplicaSet"), json!({}), "everything");
        check(owned("apps/v1", "ReplicaSet"), json!({"matchLabels": {"app": "not a value!"}}), "everything");
        check(owned("v1", "ReplicationController"), json!({}), "everything");
    }

    #[test]
    fn default_selector_merges_services_and_controller() {
        let check = |services: &[(&str, Value)], expected: &str| {
            let handle = handle(FeatureGates::default());
            handle.listers().put(read::<ReplicaSet>(object("o", "default", &json!({"matchLabels": {"rev": "1"}}))));
            for (at, (namespace, selector)) in services.iter().enumerate() {
                let service = json!({"metadata": {"namespace": namespace, "name": format!("s{at}")},
                                     "spec": {"selector": selector}});
                handle.listers().put(read::<Service>(service));
            }
            let pod = owned("apps/v1", "ReplicaSet").label("tier", "front");
            assert_eq!(print(&selected(&handle, pod)), expected, "{services:?}");
        };
        check(&[], "rev=1");
        check(&[("default", json!({"app": "a"}))], "app=a,rev=1");
        check(&[("default", json!({"app": "b"}))], "rev=1");
        check(&[("other", json!({"app": "a"}))], "rev=1");
        check(&[("default", json!({"app": "a"})), ("default", json!({"tier": "front"}))], "app=a,rev=1,tier=front");
        check(&[("default", Value::Null), ("default", json!({}))], "rev=1");
    }
}
