//! Device classes: what stands behind an extended resource that a node does not have by itself.

use serde_json::{Value, json};

use super::Gen;

/// A class, with the extended resource that it declares, if any. No two classes declare the same: which of them upstream
/// then knows depends on the order in which it has come to see them.
pub(super) fn class(g: &mut Gen, name: &str) -> Value {
    let mut class = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name, "uid": name}, "spec": {},
    });
    if g.percent(70) {
        class["spec"]["extendedResourceName"] =
            if name == "fast" { g.pick(&["example.com/gpu", "foo.io/other"]) } else { "foo.io/nic" }.into();
    }
    class
}

/// Some of the classes that there may be.
pub(super) fn classes(g: &mut Gen) -> Vec<Value> {
    let mut classes = Vec::new();
    for name in ["fast", "slow"] {
        if g.percent(70) {
            classes.push(class(g, name));
        }
    }
    classes
}
