//! Clusters and pods: the same as `tests/controlplane/internal/oracle/workloads.go`.

use kube_scheduler::testing::{NodeFixture, PodFixture, node, pod};
use serde_json::{Value, json};

/// What pods may ask for.
pub(crate) const WORKLOADS: &[&str] = &[
    PLAIN,
    "required-affinity",
    "required-anti-affinity",
    "preferred-affinity",
    "preferred-anti-affinity",
    "others-anti-affinity",
    "required-affinity-namespaces",
    "required-anti-affinity-namespaces",
    "preferred-affinity-namespaces",
    "preferred-anti-affinity-namespaces",
    "spread-hard",
    "spread-soft",
    "spread",
    PREEMPTION,
];

/// Nothing but resources.
pub(crate) const PLAIN: &str = "plain";

/// The place of others: the cluster is full.
pub(crate) const PREEMPTION: &str = "preemption";

/// Deployments, and namespaces where a workload selects them.
const GROUPS: usize = 10;
const NAMESPACES: usize = 100;

/// How many pods fill a node of the preemption workload.
const VICTIMS_A_NODE: usize = 4;

fn has_affinity(workload: &str) -> bool {
    workload.contains("affinity")
}

/// The default configuration; where affinity is timed, less the plugin that would otherwise take most of a cycle's time.
pub(crate) fn config(workload: &str) -> Value {
    let disabled = if has_affinity(workload) { json!([{"name": "PodTopologySpread"}]) } else { json!([]) };
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [{
            "schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": disabled}},
        }],
    })
}

/// Every second one is selected where a workload selects namespaces.
pub(crate) fn namespaces() -> impl Iterator<Item = Value> {
    (0..NAMESPACES).map(|number| {
        let labels = json!({"team": format!("team-{}", number % 2)});
        json!({"metadata": {"name": format!("namespace-{number}"), "labels": labels}})
    })
}

/// Budgets of every second group, each of which lets one pod go.
pub(crate) fn budgets() -> impl Iterator<Item = Value> {
    (0..GROUPS).step_by(2).map(|number| {
        let group = format!("group-{number}");
        json!({
            "metadata": {"namespace": "default", "name": group},
            "spec": {"selector": {"matchLabels": {"group": group}}},
            "status": {"disruptionsAllowed": 1, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        })
    })
}

pub(crate) fn plain_node(number: usize) -> NodeFixture {
    let image =
        |k: i64| json!({"names": [format!("registry.example/image-{k}:v1")], "sizeBytes": (k + 1) * (100 << 20)});
    node(&format!("node-{number}"))
        .label("topology.kubernetes.io/zone", &format!("zone-{}", number % 3))
        .allocatable("cpu", "32")
        .allocatable("memory", "256Gi")
        .set("status.images", (0..4).map(image).collect())
}

fn plain_pod(name: &str) -> PodFixture {
    pod(name).label("app", "plain").image("registry.example/image-0:v1").cpu("500m").memory("512Mi")
}

/// The pods that run on the node with this number.
pub(crate) fn running(workload: &str, number: usize) -> Vec<PodFixture> {
    let name = format!("running-{number}");
    let pods = match workload {
        PREEMPTION => (0..VICTIMS_A_NODE).map(|k| victim(&format!("{name}-{k}"), number, k)).collect(),
        _ if has_affinity(workload) => vec![affine(workload, &name, true, number)],
        _ => vec![plain_pod(&name)],
    };
    pods.into_iter().map(|pod| pod.on(&format!("node-{number}"))).collect()
}

/// The pod of the cycle with this number.
pub(crate) fn pending(workload: &str, number: usize) -> PodFixture {
    let name = format!("pending-{number}");
    match workload {
        // Two victims have to go for it.
        PREEMPTION => plain_pod(&name).priority(100).cpu("12"),
        PLAIN => plain_pod(&name),
        _ if has_affinity(workload) => affine(workload, &name, false, number),
        _ => spread(workload, plain_pod(&name)),
    }
}

/// A plain pod of one of the deployments, with the workload's terms; of the pods of `others-anti-affinity`, the running ones
/// have terms alone.
fn affine(workload: &str, name: &str, running: bool, number: usize) -> PodFixture {
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

/// A hard constraint on zones, a soft one on nodes, or both.
fn spread(workload: &str, pod: PodFixture) -> PodFixture {
    let constraint = |key: &str, action: &str| {
        let selector = json!({"matchLabels": {"app": "plain"}});
        json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector})
    };
    let hard = (workload != "spread-soft").then(|| constraint("topology.kubernetes.io/zone", "DoNotSchedule"));
    let soft = (workload != "spread-hard").then(|| constraint("kubernetes.io/hostname", "ScheduleAnyway"));
    pod.set("spec.topologySpreadConstraints", hard.into_iter().chain(soft).collect())
}

/// The `k`-th pod on a node that it fills with others of its kind, each of another priority.
fn victim(name: &str, number: usize, k: usize) -> PodFixture {
    let started = jiff::Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
    let priority = i32::try_from(k).expect("few pods a node");
    let group = format!("group-{}", number % GROUPS);
    plain_pod(name).label("group", &group).cpu("8").priority(priority).set("status.startTime", json!(started))
}
