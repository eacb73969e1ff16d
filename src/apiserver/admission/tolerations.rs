//! Default tolerations, which keep a pod for five minutes on a node that is not ready or is unreachable.
//!
//! Follows `plugin/pkg/admission/defaulttolerationseconds/admission.go#Plugin.Admit @v1.36.3`.

use serde_json::{Value, json};

use crate::apiserver::meta;

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: i64 = 300;

/// Adds the default tolerations for taints that the pod does not tolerate.
pub(super) fn on_pod(pod: &mut Value) {
    let tolerated = |key: &str| {
        meta::list(&pod["spec"]["tolerations"]).any(|toleration| {
            let own_key = toleration["key"].as_str().unwrap_or_default();
            let effect = toleration["effect"].as_str().unwrap_or_default();
            (own_key.is_empty() || own_key == key) && matches!(effect, "" | "NoExecute")
        })
    };
    let missing: Vec<&str> = TAINTS.into_iter().filter(|key| !tolerated(key)).collect();
    if missing.is_empty() {
        return;
    }
    let list = meta::child(pod, "spec").entry("tolerations").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.extend(
            missing.into_iter().map(
                |key| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}),
            ),
        );
    }
}
