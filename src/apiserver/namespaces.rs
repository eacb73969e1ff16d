//! Built-in objects that every cluster has from the start, and the finalization of namespaces.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::{CONFIG_MAPS, Kind, NAMESPACES, PRIORITY_CLASSES, SERVICES};
use super::meta;
use super::object::Object;
use super::origin::Origin;
use super::part::Part;
use super::store::State;
use super::update::{UpdateBase, check_name};
use crate::apimachinery::Status;

impl State {
    /// Creates the built-in objects of every cluster.
    /// Follows `pkg/controlplane/controller/systemnamespaces`, `.../kubernetesservice`, `pkg/apis/scheduling/v1/helpers.go` and
    /// `pkg/controlplane/controller/clusterauthenticationtrust @v1.36.3`.
    pub(super) fn add_built_in_objects(&mut self) {
        let classes = [
            (
                "system-node-critical",
                2_000_001_000,
                "Used for system critical pods that must not be moved from their current node.",
            ),
            (
                "system-cluster-critical",
                2_000_000_000,
                "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
            ),
        ];
        let namespaces = ["default", "kube-node-lease", "kube-public", "kube-system"];
        let namespaces = namespaces.map(|name| (&NAMESPACES, json!({"metadata": {"name": name}})));
        let classes = classes.map(|(name, value, text)| {
            (&PRIORITY_CLASSES, json!({"metadata": {"name": name}, "value": value, "description": text}))
        });
        let service = json!({
            "metadata": {"name": "kubernetes", "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]},
        });
        let trust = json!({
            "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"}, "data": {},
        });
        let others = [(&SERVICES, service), (&CONFIG_MAPS, trust)];
        for (kind, value) in namespaces.into_iter().chain(classes).chain(others) {
            self.create(kind, "", value, Origin::Dump, false).expect("a built-in object breaks no rule");
        }
        self.built_in = self.version;
    }

    /// Removes the built-in object that has the same name as `value`, so that loading `value` replaces it.
    pub(super) fn yield_built_in(&mut self, kind: &'static Kind, value: &Value) {
        let namespace = match meta::text(value, "namespace") {
            _ if !kind.namespaced => "",
            "" => "default",
            namespace => namespace,
        };
        if let Ok(own) = self.existing(kind, namespace, meta::text(value, "name"))
            && own.version <= self.built_in
        {
            self.remove(&own);
        }
    }

    /// Replaces a namespace's finalizers. Once none are left, a namespace that is marked as deleted is removed.
    /// Follows `pkg/registry/core/namespace/storage/storage.go#FinalizeREST.Update @v1.36.3`.
    pub(super) fn finalize(&mut self, kind: &'static Kind, name: &str, value: &Value) -> Result<Arc<Object>, Status> {
        if kind.slot != NAMESPACES.slot {
            return Err(Status::no_such_resource());
        }
        let old = self.existing(kind, "", name)?;
        let before = UpdateBase::read(old.clone(), Part::Main, true)?;
        let value = self.oddities.typed(kind, value.clone())?;
        check_name(&value, name)?;
        self.update(kind, &before, Part::Finalizers, value, false)
    }
}
