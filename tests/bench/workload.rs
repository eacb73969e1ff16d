//! Clusters and pods of the benchmarks, the same as in `tests/controlplane/internal/oracle/workloads.go`.

use kube_scheduler::testing::{NodeFixture, PodFixture, node, pod};
use serde_json::{Value, json};

/// The names of all workloads, after the constraints of their pods.
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

/// The workload whose pods have only resource requests.
pub(crate) const PLAIN: &str = "plain";

/// The workload whose pods fit only after a preemption, because the cluster is full.
pub(crate) const PREEMPTION: &str = "preemption";

/// Number of groups of pods. A group stands for a deployment.
const GROUPS: usize = 10;
/// Number of namespaces that pods are in if the workload selects namespaces.
const NAMESPACES: usize = 100;

/// Number of pods that fill a node of the preemption workload.
const VICTIMS_A_NODE: usize = 4;

fn has_affinity(workload: &str) -> bool {
    workload.contains("affinity")
}

/// Returns the default configuration. If the workload has affinity, the configuration disables `PodTopologySpread`, which would
/// otherwise take most of a cycle's time.
pub(crate) fn config(workload: &str) -> Value {
    let disabled = if has_affinity(workload) { json!([{"name": "PodTopologySpread"}]) } else { json!([]) };
    json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": [{
            "schedulerName": "default-scheduler", "plugins": {"multiPoint": {"disabled": disabled}},
        }],
    })
}

/// Returns the namespaces of all workloads. A workload that selects namespaces selects every second one.
pub(crate) fn namespaces() -> impl Iterator<Item = Value> {
    (0..NAMESPACES).map(|number| {
        let labels = json!({"team": format!("team-{}", number % 2)});
        json!({"metadata": {"name": format!("namespace-{number}"), "labels": labels}})
    })
}

/// Returns disruption budgets for every second group. Each of them allows one disruption.
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

/// Returns the pods that run on the node with this number.
pub(crate) fn running(workload: &str, number: usize) -> Vec<PodFixture> {
    let name = format!("running-{number}");
    let pods = match workload {
        PREEMPTION => (0..VICTIMS_A_NODE).map(|k| victim(&format!("{name}-{k}"), number, k)).collect(),
        _ if has_affinity(workload) => vec![affine(workload, &name, true, number)],
        _ => vec![plain_pod(&name)],
    };
    pods.into_iter().map(|pod| pod.on(&format!("node-{number}"))).collect()
}

/// Returns the pending pod of the cycle with this number.
pub(crate) fn pending(workload: &str, number: usize) -> PodFixture {
    let name = format!("pending-{number}");
    match workload {
        // This pod needs the resources of two victims.
        PREEMPTION => plain_pod(&name).priority(100).cpu("12"),
        PLAIN => plain_pod(&name),
        _ if has_affinity(workload) => affine(workload, &name, false, number),
        _ => spread(workload, plain_pod(&name)),
    }
}

/// Returns a plain pod of one of the groups, with the affinity terms of the workload. In the workload `others-anti-affinity`,
/// only running pods have terms.
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

/// Adds the spread constraints of the workload: a hard one on zones, a soft one on nodes, or both.
fn spread(workload: &str, pod: PodFixture) -> PodFixture {
    let constraint = |key: &str, action: &str| {
        let selector = json!({"matchLabels": {"app": "plain"}});
        json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector})
    };
    let hard = (workload != "spread-soft").then(|| constraint("topology.kubernetes.io/zone", "DoNotSchedule"));
    let soft = (workload != "spread-hard").then(|| constraint("kubernetes.io/hostname", "ScheduleAnyway"));
    pod.set("spec.topologySpreadConstraints", hard.into_iter().chain(soft).collect())
}

/// Returns the `k`-th of the pods that fill a node. Each pod of a node has another priority.
fn victim(name: &str, number: usize, k: usize) -> PodFixture {
    let started = jiff::Timestamp::UNIX_EPOCH + std::time::Duration::from_secs(number as u64);
    let priority = i32::try_from(k).expect("few pods a node");
    let group = format!("group-{}", number % GROUPS);
    plain_pod(name).label("group", &group).cpu("8").priority(priority).set("status.startTime", json!(started))
}
