//! Pods that are spread or have terms on each other: the same as `tests/controlplane/internal/oracle/affinity.go`.

use kube_scheduler::testing::PodFixture;
use serde_json::{Value, json};

use crate::plain_pod;

/// What pods may ask of each other.
pub(crate) const WORKLOADS: &[&str] = &[
    "required-affinity",
    "required-anti-affinity",
    "preferred-affinity",
    "preferred-anti-affinity",
    "others-anti-affinity",
    "required-affinity-namespaces",
    "required-anti-affinity-namespaces",
    "preferred-anti-affinity-namespaces",
    SPREAD,
];

/// A hard constraint on zones and a soft one on nodes, of the pods that are timed.
pub(crate) const SPREAD: &str = "spread";

/// Deployments, and namespaces where a workload selects them.
const GROUPS: usize = 10;
const NAMESPACES: usize = 100;

/// The default configuration less the plugin that would otherwise take most of a cycle's time.
pub(crate) fn config() -> Value {
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [{
            "schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": [{"name": "PodTopologySpread"}]}},
        }],
    })
}

/// The namespaces of a workload that selects them: every second one is selected.
pub(crate) fn namespaces() -> Vec<Value> {
    let namespace = |number: usize| {
        let labels = json!({"team": format!("team-{}", number % 2)});
        json!({"metadata": {"name": format!("namespace-{number}"), "labels": labels}})
    };
    (0..NAMESPACES).map(namespace).collect()
}

/// A plain pod of one of the deployments, with the workload's terms; of the pods of `others-anti-affinity`, the running ones
/// have terms alone.
pub(crate) fn pod(workload: &str, name: &str, running: bool, number: usize) -> PodFixture {
    if workload == SPREAD {
        return if running { plain_pod(name) } else { spread(plain_pod(name)) };
    }
    let group = format!("group-{}", number / 2 % GROUPS);
    let mut pod = plain_pod(name);
    let mut term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"group": group}}});
    let kind = match workload.strip_suffix("-namespaces") {
        Some(kind) => {
            pod = pod.namespace(&format!("namespace-{}", number % NAMESPACES));
            term["namespaceSelector"] = json!({"matchLabels": {"team": "team-0"}});
            kind
        }
        None => workload,
    };
    if kind == "required-affinity" || kind == "preferred-affinity" {
        term["topologyKey"] = "topology.kubernetes.io/zone".into();
    }
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    let weighted = json!([{"weight": 1, "podAffinityTerm": term}]);
    let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": weighted});
    let affinity = match kind {
        "required-affinity" => json!({"podAffinity": required}),
        "preferred-affinity" => json!({"podAffinity": preferred}),
        "preferred-anti-affinity" => json!({"podAntiAffinity": preferred}),
        "others-anti-affinity" if !running => return pod,
        _ => json!({"podAntiAffinity": required}),
    };
    pod.label("group", &group).set("spec.affinity", affinity)
}

fn spread(pod: PodFixture) -> PodFixture {
    let constraint = |key: &str, action: &str| {
        let selector = json!({"matchLabels": {"app": "plain"}});
        json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector})
    };
    let constraints = [
        constraint("topology.kubernetes.io/zone", "DoNotSchedule"),
        constraint("kubernetes.io/hostname", "ScheduleAnyway"),
    ];
    pod.set("spec.topologySpreadConstraints", json!(constraints))
}
