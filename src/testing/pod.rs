//! Fixtures of pods: `pod("a").cpu("500m").toleration("dedicated", "", "NoSchedule")`.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::json::{list, object, set, toleration_or_taint};
use crate::k8s::Pod;
use crate::model::{LabelClasses, PodInfo};

/// Returns a pod in namespace `default` with one container `c`, UID equal to its name, and the default schedulerName.
pub fn pod(name: &str) -> PodFixture {
    PodFixture(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "image"}]},
    }))
}

/// Builder of a pod for tests.
///
/// [`PodFixture::json`] returns the pod for sending it to an API server. [`PodFixture::build`] decodes it as the scheduler
/// does.
#[derive(Clone, Debug)]
#[must_use]
pub struct PodFixture(Value);

impl PodFixture {
    /// Sets the namespace of the pod.
    pub fn namespace(mut self, namespace: &str) -> Self {
        object(&mut self.0, &["metadata"]).insert("namespace".into(), namespace.into());
        self
    }

    /// Sets the UID of the pod.
    pub fn uid(mut self, uid: &str) -> Self {
        object(&mut self.0, &["metadata"]).insert("uid".into(), uid.into());
        self
    }

    /// Adds a label to the pod.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        object(&mut self.0, &["metadata", "labels"]).insert(key.into(), value.into());
        self
    }

    /// Marks the pod as being deleted.
    pub fn terminating(mut self) -> Self {
        object(&mut self.0, &["metadata"]).insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        self
    }

    /// Binds the pod to a node.
    pub fn on(mut self, node: &str) -> Self {
        object(&mut self.0, &["spec"]).insert("nodeName".into(), node.into());
        self
    }

    /// Sets the schedulerName of the pod.
    pub fn scheduler(mut self, name: &str) -> Self {
        object(&mut self.0, &["spec"]).insert("schedulerName".into(), name.into());
        self
    }

    /// Sets the priority of the pod.
    pub fn priority(mut self, priority: i32) -> Self {
        object(&mut self.0, &["spec"]).insert("priority".into(), priority.into());
        self
    }

    /// Sets the nominated node of the pod.
    pub fn nominated(mut self, node: &str) -> Self {
        object(&mut self.0, &["status"]).insert("nominatedNodeName".into(), node.into());
        self
    }

    /// Requests `amount` of `resource` in the first container.
    pub fn request(mut self, resource: &str, amount: &str) -> Self {
        let container = &mut list(&mut self.0, &["spec"], "containers")[0];
        object(container, &["resources", "requests"]).insert(resource.into(), amount.into());
        self
    }

    /// Requests CPU in the first container.
    pub fn cpu(self, amount: &str) -> Self {
        self.request("cpu", amount)
    }

    /// Requests memory in the first container.
    pub fn memory(self, amount: &str) -> Self {
        self.request("memory", amount)
    }

    /// Sets the image of the first container.
    pub fn image(mut self, image: &str) -> Self {
        list(&mut self.0, &["spec"], "containers")[0]["image"] = image.into();
        self
    }

    /// Adds a TCP host port to the first container.
    pub fn host_port(mut self, port: i32) -> Self {
        let container = &mut list(&mut self.0, &["spec"], "containers")[0];
        list(container, &[], "ports").push(json!({"containerPort": port, "hostPort": port}));
        self
    }

    /// Adds a toleration of a taint, with the operator `Exists` if the value is empty and `Equal` otherwise.
    pub fn toleration(mut self, key: &str, value: &str, effect: &str) -> Self {
        let mut entry = toleration_or_taint(key, value, effect);
        entry.insert("operator".into(), if value.is_empty() { "Exists" } else { "Equal" }.into());
        list(&mut self.0, &["spec"], "tolerations").push(Value::Object(entry));
        self
    }

    /// Adds a node label to the node selector.
    pub fn node_selector(mut self, key: &str, value: &str) -> Self {
        object(&mut self.0, &["spec", "nodeSelector"]).insert(key.into(), value.into());
        self
    }

    /// Adds a scheduling gate to the pod.
    pub fn gate(mut self, name: &str) -> Self {
        list(&mut self.0, &["spec"], "schedulingGates").push(json!({"name": name}));
        self
    }

    /// Sets a field by its path, such as `spec.affinity` or `status.phase`.
    pub fn set(mut self, path: &str, value: Value) -> Self {
        set(&mut self.0, path, value);
        self
    }

    /// Returns the pod as JSON.
    pub fn json(self) -> Value {
        self.0
    }

    /// Decodes the pod as the scheduler does.
    ///
    /// # Panics
    ///
    /// Panics if the JSON is not a pod.
    pub fn build(self) -> Arc<Pod> {
        Arc::new(serde_json::from_value(self.0).expect("the fixture is a pod"))
    }

    /// Decodes the pod and computes its derived data. All pods from this function share one table of label classes.
    pub fn info(self) -> Arc<PodInfo> {
        static CLASSES: LazyLock<LabelClasses> = LazyLock::new(LabelClasses::default);
        Arc::new(PodInfo::new(self.build(), &CLASSES))
    }
}
