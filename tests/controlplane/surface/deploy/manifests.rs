//! The manifests of `deploy/`: rendered by kubectl, given to the API server.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::pod::text;
use crate::support::cluster::{ControlPlane, Process, wait_for};
use crate::support::programs::program;

/// Timeout for the API server to observe a new role. Its informers need less than a second.
const ROLES: Duration = Duration::from_secs(30);

/// The group of kinds that a cluster has from the Prometheus operator, not from Kubernetes.
const OPERATOR: &str = "monitoring.coreos.com/";

/// The controllers that make pods of Deployments.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller";

/// The objects that a kustomization builds.
pub(crate) struct Manifests {
    name: String,
    pub(super) objects: Vec<Value>,
}

impl Manifests {
    /// Renders a folder below `deploy`.
    pub(crate) fn render(plane: &ControlPlane, folder: &str) -> Result<Self, String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(folder);
        let rendered = plane.kubectl(&["kustomize", &path.display().to_string()])?;
        let documents = serde_yaml::Deserializer::from_str(&rendered).map(Value::deserialize);
        let objects: Result<Vec<Value>, _> = documents.collect();
        let objects = objects.map_err(|error| format!("{folder}: {error}"))?;
        Ok(Self { name: folder.replace('/', "-"), objects })
    }

    /// The only object of a kind with this name.
    pub(crate) fn object(&self, kind: &str, name: &str) -> Result<&Value, String> {
        let mut found =
            self.objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        match (found.next(), found.next()) {
            (Some(object), None) => Ok(object),
            _ => Err(format!("{} has not one {kind} {name}", self.name)),
        }
    }

    /// Has the API server take all of it, in which it checks every field; gives the kinds that only an operator adds.
    pub(crate) fn apply(&self, plane: &ControlPlane) -> Result<Vec<String>, String> {
        let (foreign, items): (Vec<&Value>, Vec<&Value>) =
            self.objects.iter().partition(|object| text(&object["apiVersion"]).starts_with(OPERATOR));
        let file = plane.folder().join(format!("{}.json", self.name));
        let all = json!({"apiVersion": "v1", "kind": "List", "items": items});
        std::fs::write(&file, all.to_string()).map_err(|error| error.to_string())?;
        let applied = plane.kubectl(&["apply", "--validate=strict", "--filename", &file.display().to_string()]);
        let applied = applied.map_err(|error| format!("{}: {error}", self.name))?;
        if applied.lines().count() != items.len() {
            return Err(format!("{}: {} objects, of which kubectl says\n{applied}", self.name, items.len()));
        }
        Ok(foreign.into_iter().map(|object| text(&object["kind"]).to_owned()).collect())
    }
}

/// Upstream's controllers that make pods of Deployments.
pub(super) fn controllers(plane: &ControlPlane) -> Result<Process, String> {
    let mut manager = std::process::Command::new(program("kube-controller-manager"));
    manager.arg("--kubeconfig").arg(plane.kubeconfig()).arg(format!("--controllers={CONTROLLERS}"));
    manager.args(["--leader-elect=false", "--secure-port=0"]);
    plane.run("kube-controller-manager", &mut manager)
}

/// Waits until the API server knows of all bindings of a scheduler's service account: it learns of them one by one.
pub(super) fn wait_for_roles(plane: &ControlPlane, account: &str) -> Result<(), String> {
    let user = format!("--as=system:serviceaccount:kube-system:{account}");
    for [verb, what] in [
        ["watch", "pods"],
        ["create", "leases.coordination.k8s.io"],
        ["create", "subjectaccessreviews.authorization.k8s.io"],
        ["get", "configmaps/extension-apiserver-authentication"],
    ] {
        let arguments = ["auth", "can-i", verb, what, "--namespace=kube-system", &user];
        wait_for(&format!("{account} may {verb} {what}"), ROLES, || Ok(plane.kubectl(&arguments).ok()))?;
    }
    Ok(())
}
