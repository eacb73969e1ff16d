//! Generates the nodes of a case.

use serde_json::{Value, json};

use super::{Gen, Topic, images, placement, resources, spread};

/// The node at this place in the list.
pub(super) fn node(g: &mut Gen, at: usize) -> Value {
    let name = format!("node-{at}");
    let mut labels = placement::labels(g);
    labels.insert("kubernetes.io/hostname".into(), name.as_str().into());
    spread::node_labels(g, &mut labels);
    let resources = resources::node(g);
    let mut node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": labels},
        "spec": {},
        "status": {"capacity": resources, "allocatable": resources},
    });
    if g.uses(Topic::Taints) {
        node["spec"]["taints"] = placement::taints(g).into();
    }
    if g.uses(Topic::Taints) && g.percent(40) {
        node["spec"]["unschedulable"] = true.into();
    }
    if g.uses(Topic::Images) {
        node["status"]["images"] = images::on_node(g).into();
    }
    if g.uses(Topic::Features) {
        node["status"]["declaredFeatures"] = features(g).into();
    }
    if g.percent(30) {
        let ready = g.pick(&["True", "False", "Unknown"]);
        node["status"]["conditions"] = json!([{"type": "Ready", "status": ready}]);
    }
    node
}

/// Features that a node may declare, sorted as it reports them; one is of no consequence.
pub(super) fn features(g: &mut Gen) -> Vec<Value> {
    let all = ["GuaranteedQoSPodCPUResize", "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"];
    all.into_iter().filter(|_| g.percent(50)).map(Value::from).collect()
}
