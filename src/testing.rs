//! Fluent fixtures: `pod("a").cpu("500m").toleration("dedicated", "", "NoSchedule")`.
//!
//! One builder serves every test, ours and those of plugin authors. It builds the JSON that a user would have written, so
//! a fixture can be sent to an API server as it is ([`PodFixture::json`]) or decoded as the scheduler decodes it
//! ([`PodFixture::build`]).

use std::sync::{Arc, LazyLock};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::framework::Handle;
use crate::k8s::{Node, Pod};
use crate::model::{LabelClasses, NodeInfo, PodInfo};

/// Puts an object into the store that the plugins of this handle's profile read, as a watch would.
///
/// # Panics
///
/// If no factory asked for the kind before watching began.
pub fn put<K>(handle: &Handle, object: Arc<K>)
where
    K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    handle.listers().put(object);
}

/// A pod in namespace `default` with one container `c`, UID equal to its name, and the default schedulerName.
pub fn pod(name: &str) -> PodFixture {
    PodFixture(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "image"}]},
    }))
}

/// A node with 4 cores, 8 GiB and room for 110 pods, and its name as `kubernetes.io/hostname`.
pub fn node(name: &str) -> NodeFixture {
    NodeFixture(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }))
}

fn object<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut at = value;
    for key in path {
        at = at.as_object_mut().expect("an object on the path").entry(*key).or_insert_with(|| json!({}));
    }
    at.as_object_mut().expect("an object at the end of the path")
}

fn list<'a>(value: &'a mut Value, path: &[&str], key: &str) -> &'a mut Vec<Value> {
    object(value, path).entry(key).or_insert_with(|| json!([])).as_array_mut().expect("a list at the end of the path")
}

/// Sets a field by its path.
fn set(object: &mut Value, path: &str, value: Value) {
    let (path, key) = path.rsplit_once('.').unwrap_or(("", path));
    let path: Vec<&str> = path.split('.').filter(|part| !part.is_empty()).collect();
    self::object(object, &path).insert(key.into(), value);
}

fn toleration_or_taint(key: &str, value: &str, effect: &str) -> Map<String, Value> {
    let mut entry = Map::new();
    for (field, text) in [("key", key), ("value", value), ("effect", effect)] {
        if !text.is_empty() {
            entry.insert(field.into(), text.into());
        }
    }
    entry
}

/// A pod in the making.
#[derive(Clone, Debug)]
#[must_use]
pub struct PodFixture(Value);

impl PodFixture {
    /// Sets the namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        object(&mut self.0, &["metadata"]).insert("namespace".into(), namespace.into());
        self
    }

    /// Sets the UID.
    pub fn uid(mut self, uid: &str) -> Self {
        object(&mut self.0, &["metadata"]).insert("uid".into(), uid.into());
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        object(&mut self.0, &["metadata", "labels"]).insert(key.into(), value.into());
        self
    }

    /// Marks the pod as being deleted.
    pub fn terminating(mut self) -> Self {
        object(&mut self.0, &["metadata"]).insert("deletionTimestamp".into(), "2026-01-01T00:00:00Z".into());
        self
    }

    /// Assigns the pod to a node.
    pub fn on(mut self, node: &str) -> Self {
        object(&mut self.0, &["spec"]).insert("nodeName".into(), node.into());
        self
    }

    /// Sets the profile.
    pub fn scheduler(mut self, name: &str) -> Self {
        object(&mut self.0, &["spec"]).insert("schedulerName".into(), name.into());
        self
    }

    /// Sets the priority.
    pub fn priority(mut self, priority: i32) -> Self {
        object(&mut self.0, &["spec"]).insert("priority".into(), priority.into());
        self
    }

    /// Nominates a node for the pod.
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

    /// Requests CPU.
    pub fn cpu(self, amount: &str) -> Self {
        self.request("cpu", amount)
    }

    /// Requests memory.
    pub fn memory(self, amount: &str) -> Self {
        self.request("memory", amount)
    }

    /// Sets the first container's image.
    pub fn image(mut self, image: &str) -> Self {
        list(&mut self.0, &["spec"], "containers")[0]["image"] = image.into();
        self
    }

    /// Takes a TCP port on the node.
    pub fn host_port(mut self, port: i32) -> Self {
        let container = &mut list(&mut self.0, &["spec"], "containers")[0];
        list(container, &[], "ports").push(json!({"containerPort": port, "hostPort": port}));
        self
    }

    /// Tolerates a taint: with an empty value by operator `Exists`, otherwise by `Equal`.
    pub fn toleration(mut self, key: &str, value: &str, effect: &str) -> Self {
        let mut entry = toleration_or_taint(key, value, effect);
        entry.insert("operator".into(), if value.is_empty() { "Exists" } else { "Equal" }.into());
        list(&mut self.0, &["spec"], "tolerations").push(Value::Object(entry));
        self
    }

    /// Asks for a node label.
    pub fn node_selector(mut self, key: &str, value: &str) -> Self {
        object(&mut self.0, &["spec", "nodeSelector"]).insert(key.into(), value.into());
        self
    }

    /// Adds a scheduling gate.
    pub fn gate(mut self, name: &str) -> Self {
        list(&mut self.0, &["spec"], "schedulingGates").push(json!({"name": name}));
        self
    }

    /// Sets a field by its path (`spec.affinity`, `status.phase`).
    pub fn set(mut self, path: &str, value: Value) -> Self {
        set(&mut self.0, path, value);
        self
    }

    /// The pod as JSON.
    pub fn json(self) -> Value {
        self.0
    }

    /// The pod as the scheduler decodes it.
    ///
    /// # Panics
    ///
    /// If the fixture is no pod.
    pub fn build(self) -> Arc<Pod> {
        Arc::new(serde_json::from_value(self.0).expect("the fixture is a pod"))
    }

    /// The pod with what is derived from it. What pods share, all that are made in this way share.
    pub fn info(self) -> Arc<PodInfo> {
        static CLASSES: LazyLock<LabelClasses> = LazyLock::new(LabelClasses::default);
        Arc::new(PodInfo::new(self.build(), &CLASSES))
    }
}

/// A node in the making.
#[derive(Clone, Debug)]
#[must_use]
pub struct NodeFixture(Value);

impl NodeFixture {
    /// Adds a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        object(&mut self.0, &["metadata", "labels"]).insert(key.into(), value.into());
        self
    }

    /// Puts the node into a zone.
    pub fn zone(self, zone: &str) -> Self {
        self.label("topology.kubernetes.io/zone", zone)
    }

    /// Adds a taint.
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        list(&mut self.0, &["spec"], "taints").push(Value::Object(toleration_or_taint(key, value, effect)));
        self
    }

    /// Keeps new pods away.
    pub fn unschedulable(mut self) -> Self {
        object(&mut self.0, &["spec"]).insert("unschedulable".into(), true.into());
        self
    }

    /// Sets what pods may use of a resource.
    pub fn allocatable(mut self, resource: &str, amount: &str) -> Self {
        object(&mut self.0, &["status", "allocatable"]).insert(resource.into(), amount.into());
        self
    }

    /// Puts an image on the node.
    pub fn image(mut self, name: &str, size: i64) -> Self {
        list(&mut self.0, &["status"], "images").push(json!({"names": [name], "sizeBytes": size}));
        self
    }

    /// Sets a field by its path (`status.declaredFeatures`).
    pub fn set(mut self, path: &str, value: Value) -> Self {
        set(&mut self.0, path, value);
        self
    }

    /// The node as JSON.
    pub fn json(self) -> Value {
        self.0
    }

    /// The node as the scheduler decodes it.
    ///
    /// # Panics
    ///
    /// If the fixture is no node.
    pub fn build(self) -> Arc<Node> {
        Arc::new(serde_json::from_value(self.0).expect("the fixture is a node"))
    }

    /// The node without pods, as plugins see it; its images count as being on this node alone.
    pub fn info(self) -> NodeInfo {
        NodeInfo::new(self.build())
    }
}
