//! Resources: amounts in every notation that the API takes, asked for in every place where a pod can ask.

use serde_json::{Map, Value, json};

use super::{Gen, Topic};

/// Names of resources that are neither CPU, memory nor ephemeral storage.
const SCALARS: &[&str] = &["example.com/gpu", "foo.io/nic", "foo.io/fpga", "hugepages-2Mi", "hugepages-1Gi"];

/// Small enough for most nodes.
const CPU: &[&str] =
    &["0", "1m", "50m", "100m", "250m", "0.5", "1", "1.5", "2", "1500m", "3e0", "0.0001", "999999n", "1e-1"];
const MEMORY: &[&str] = &[
    "0",
    "1",
    "100m",
    "128974848",
    "129e6",
    "129M",
    "123Mi",
    "0.5Gi",
    "1Gi",
    "1G",
    "1500Mi",
    "2Gi",
    "4Gi",
    "100Ki",
    "1e9",
    "1.5e9",
];
const STORAGE: &[&str] = &["0", "1Gi", "10Gi", "5e9", "1k", "20G"];
const COUNT: &[&str] = &["0", "1", "2", "4", "8", "1k", "1e1"];

/// What no node has, or what overflows when it is added up. CPU by itself fits a signed 64-bit number of thousandths. None is
/// written with a power of ten that in thousandths is beyond 64 bits: what upstream makes of that is up to the processor.
const HUGE_CPU: &[&str] = &["1000", "1k", "1M", "5e6", "9223372036854775"];
const HUGE_MEMORY: &[&str] = &["1Pi", "100Ti", "7Ei", "9223372036854775807", "1000P", "1e15"];

/// What nodes have.
const NODE_CPU: &[&str] = &["0", "500m", "1", "2", "3500m", "4", "4", "8", "16e0", "64"];
const NODE_MEMORY: &[&str] = &["0", "512Mi", "1Gi", "2Gi", "4e9", "8Gi", "8Gi", "16G", "31.5Gi", "256Gi"];
const NODE_PODS: &[&str] = &["0", "1", "2", "3", "5", "110", "110", "110", "110", "110"];

/// A size of huge pages: a multiple of their own.
fn hugepages(g: &mut Gen, name: &str) -> &'static str {
    if name == "hugepages-2Mi" { g.pick(&["0", "2Mi", "2Mi", "4Mi", "64Mi"]) } else { g.pick(&["0", "1Gi", "2Gi"]) }
}

/// An amount of this resource to ask for.
fn amount(g: &mut Gen, name: &str) -> &'static str {
    let huge = g.percent(3);
    match name {
        "cpu" if huge => g.pick(HUGE_CPU),
        "cpu" => g.pick(CPU),
        "memory" if huge => g.pick(HUGE_MEMORY),
        "memory" => g.pick(MEMORY),
        "ephemeral-storage" => g.pick(STORAGE),
        name if name.starts_with("hugepages-") => hugepages(g, name),
        _ => g.pick(COUNT),
    }
}

/// Requests of one container, or none.
fn requests(g: &mut Gen) -> Map<String, Value> {
    let mut list = Map::new();
    if g.percent(70) {
        list.insert("cpu".into(), amount(g, "cpu").into());
    }
    if g.percent(70) {
        list.insert("memory".into(), amount(g, "memory").into());
    }
    if g.uses(Topic::Resources) {
        if g.percent(40) {
            list.insert("ephemeral-storage".into(), amount(g, "ephemeral-storage").into());
        }
        for name in SCALARS {
            if g.percent(10) {
                list.insert((*name).into(), amount(g, name).into());
            }
        }
    }
    if g.classes && g.percent(20) {
        list.insert(
            format!("deviceclass.resource.kubernetes.io/{}", g.pick(&["fast", "slow"])),
            g.pick(&["0", "1", "2"]).into(),
        );
    }
    if g.classes && g.percent(25) {
        list.insert(g.pick(&["example.com/gpu", "foo.io/other"]).into(), g.pick(&["1", "2"]).into());
    }
    list
}

/// The `resources` of a container.
pub(super) fn container(g: &mut Gen) -> Value {
    let requests = requests(g);
    if requests.is_empty() && g.percent(50) {
        return json!({});
    }
    let limits: Map<String, Value> = requests
        .iter()
        .filter(|(name, _)| name.contains('/') || name.starts_with("hugepages-"))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    if limits.is_empty() { json!({"requests": requests}) } else { json!({"requests": requests, "limits": limits}) }
}

/// The `resources` of a whole pod: enough for what most containers ask for.
pub(super) fn whole_pod(g: &mut Gen) -> Value {
    let mut list = Map::new();
    if g.percent(75) {
        list.insert("cpu".into(), g.pick(&["1", "3", "7500m", "8"]).into());
    }
    if g.percent(75) {
        list.insert("memory".into(), g.pick(&["3Gi", "8e9", "16Gi"]).into());
    }
    if g.percent(30) {
        list.insert("hugepages-2Mi".into(), hugepages(g, "hugepages-2Mi").into());
    }
    json!({"requests": list})
}

/// The overhead of a runtime class.
pub(super) fn overhead(g: &mut Gen) -> Value {
    let mut list = Map::new();
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if g.percent(50) {
            list.insert(name.into(), amount(g, name).into());
        }
    }
    list.into()
}

/// What the status says of a container that was resized in place.
pub(super) fn container_status(g: &mut Gen, name: &Value) -> Value {
    let mut status = json!({"name": name, "image": "i", "imageID": "i", "ready": true, "restartCount": 0});
    if g.percent(70) {
        status["allocatedResources"] = requests(g).into();
    }
    if g.percent(70) {
        status["resources"] = json!({"requests": requests(g)});
    }
    status
}

/// A node's capacity and allocatable, which may lack entries.
pub(super) fn node(g: &mut Gen) -> Value {
    let mut list = Map::new();
    if !g.percent(4) {
        list.insert("cpu".into(), g.pick(NODE_CPU).into());
    }
    if !g.percent(4) {
        list.insert("memory".into(), g.pick(NODE_MEMORY).into());
    }
    if !g.percent(4) {
        list.insert("pods".into(), g.pick(NODE_PODS).into());
    }
    if g.percent(75) {
        list.insert("ephemeral-storage".into(), g.pick(&["0", "10Gi", "20G", "25Gi", "1Ti"]).into());
    }
    for name in SCALARS {
        if g.uses(Topic::Resources) || g.percent(20) {
            let amount = match *name {
                "hugepages-2Mi" => g.pick(&["0", "2Mi", "4Mi", "4Mi", "8Mi", "128Mi"]),
                "hugepages-1Gi" => g.pick(&["0", "1Gi", "2Gi", "4Gi"]),
                _ => g.pick(&["0", "2", "4", "8", "9", "1k"]),
            };
            list.insert((*name).into(), amount.into());
        }
    }
    if g.percent(10) {
        list.insert("attachable-volumes-csi-example.com".into(), "8".into());
    }
    list.into()
}
