//! Tables of nodes, namespaces, services, and of other kinds with few columns.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cells::labels;
use super::{Column, Layout, Subject};
use crate::apiserver::meta::list;

const NAME: Column = Column::name("Name");
const AGE: Column = Column::text("Age");

/// Layout of kinds whose tables show only name and age.
pub(super) const AGED: Layout = Layout { columns: &[NAME, AGE], cells: |subject| vec![subject.name(), subject.age()] };

pub(super) const NODES: Layout = Layout {
    columns: &[
        NAME,
        Column::text("Status"),
        Column::text("Roles"),
        AGE,
        Column::text("Version"),
        Column::text("Internal-IP").wide(),
        Column::text("External-IP").wide(),
        Column::text("OS-Image").wide(),
        Column::text("Kernel-Version").wide(),
        Column::text("Container-Runtime").wide(),
    ],
    cells: |node| {
        let info = |member: &str| node.text_or(&format!("/status/nodeInfo/{member}"), "<unknown>").to_owned();
        let kernel = match node.text("/status/nodeInfo/architecture") {
            "" => info("kernelVersion"),
            architecture => format!("{} ({architecture})", info("kernelVersion")),
        };
        vec![
            node.name(),
            json!(node_status(node)),
            json!(roles(node)),
            node.age(),
            json!(node.text("/status/nodeInfo/kubeletVersion")),
            json!(address(node, "InternalIP")),
            json!(address(node, "ExternalIP")),
            json!(info("osImage")),
            json!(kernel),
            json!(info("containerRuntimeVersion")),
        ]
    },
};

/// Returns the status of a node. Follows `pkg/printers/internalversion/printers.go#printNode @v1.36.3`.
fn node_status(node: &Subject<'_>) -> String {
    // If there are several conditions of type `Ready`, the last one counts.
    let ready = list(node.at("/status/conditions")).rfind(|condition| condition["type"] == "Ready");
    let status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if node.flag("/spec/unschedulable", false) { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordoned}")
}

/// Returns a node's roles, sorted and joined by commas.
/// Follows `pkg/printers/internalversion/printers.go#findNodeRoles @v1.36.3`.
fn roles(node: &Subject<'_>) -> String {
    let role = |(key, value): (&String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let labels = node.at("/metadata/labels").as_object();
    let roles: BTreeSet<String> =
        labels.into_iter().flatten().filter_map(role).filter(|role| !role.is_empty()).collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'a>(node: &'a Subject<'_>, sort: &str) -> &'a str {
    let found = list(node.at("/status/addresses")).find(|address| address["type"] == sort);
    found.and_then(|address| address["address"].as_str()).unwrap_or("<none>")
}

pub(super) const NAMESPACES: Layout = Layout {
    columns: &[NAME, Column::text("Status"), AGE],
    cells: |subject| vec![subject.name(), json!(subject.text("/status/phase")), subject.age()],
};

pub(super) const SERVICES: Layout = Layout {
    columns: &[
        NAME,
        Column::text("Type"),
        Column::text("Cluster-IP"),
        Column::text("External-IP"),
        Column::text("Port(s)"),
        AGE,
        Column::text("Selector").wide(),
    ],
    cells: |service| {
        let cluster_ip = list(service.at("/spec/clusterIPs")).next().and_then(Value::as_str);
        let ports: Vec<String> = list(service.at("/spec/ports")).map(port).collect();
        vec![
            service.name(),
            json!(service.text("/spec/type")),
            json!(cluster_ip.unwrap_or("<none>")),
            json!(external_ip(service)),
            json!(if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") }),
            service.age(),
            json!(labels(service.at("/spec/selector"))),
        ]
    },
};

/// Formats a port of a service. Follows `pkg/printers/internalversion/printers.go#makePortString @v1.36.3`.
fn port(port: &Value) -> String {
    let number = |key: &str| port[key].as_i64().unwrap_or(0);
    let protocol = port["protocol"].as_str().unwrap_or_default();
    match number("nodePort") {
        0 => format!("{}/{protocol}", number("port")),
        node_port => format!("{}:{node_port}/{protocol}", number("port")),
    }
}

/// Returns the external addresses of a service.
/// Follows `pkg/printers/internalversion/printers.go#getServiceExternalIP @v1.36.3`.
fn external_ip(service: &Subject<'_>) -> String {
    let texts = |pointer: &str| list(service.at(pointer)).filter_map(|ip| ip.as_str().map(str::to_owned));
    let own: Vec<String> = texts("/spec/externalIPs").collect();
    match service.text("/spec/type") {
        "ClusterIP" | "NodePort" if own.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => own.join(","),
        "LoadBalancer" => {
            let ingress = list(service.at("/status/loadBalancer/ingress")).filter_map(|ingress| {
                ["ip", "hostname"].into_iter().filter_map(|key| ingress[key].as_str()).find(|text| !text.is_empty())
            });
            let balancers: BTreeSet<String> = ingress.map(str::to_owned).collect();
            let all: Vec<String> = balancers.into_iter().chain(own).collect();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => service.text("/spec/externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn members(subject: &Subject<'_>, pointer: &str) -> usize {
    subject.at(pointer).as_object().map_or(0, serde_json::Map::len)
}

pub(super) const CONFIG_MAPS: Layout = Layout {
    columns: &[NAME, Column::text("Data"), AGE],
    cells: |map| vec![map.name(), json!(members(map, "/data") + members(map, "/binaryData")), map.age()],
};

pub(super) const SECRETS: Layout = Layout {
    columns: &[NAME, Column::text("Type"), Column::text("Data"), AGE],
    cells: |secret| vec![secret.name(), json!(secret.text("/type")), json!(members(secret, "/data")), secret.age()],
};

pub(super) const LEASES: Layout = Layout {
    columns: &[NAME, Column::text("Holder"), AGE],
    cells: |lease| vec![lease.name(), json!(lease.text("/spec/holderIdentity")), lease.age()],
};

pub(super) const BUDGETS: Layout = Layout {
    columns: &[
        NAME,
        Column::text("Min Available"),
        Column::text("Max Unavailable"),
        Column::number("Allowed Disruptions"),
        AGE,
    ],
    cells: |budget| {
        let amount = |pointer: &str| match budget.at(pointer) {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => "N/A".to_owned(),
        };
        vec![
            budget.name(),
            json!(amount("/spec/minAvailable")),
            json!(amount("/spec/maxUnavailable")),
            json!(budget.number("/status/disruptionsAllowed")),
            budget.age(),
        ]
    },
};

pub(super) const PRIORITY_CLASSES: Layout = Layout {
    columns: &[NAME, Column::number("Value"), Column::flag("Global-Default"), AGE, Column::text("PreemptionPolicy")],
    cells: |class| {
        vec![
            class.name(),
            json!(class.number("/value")),
            json!(class.flag("/globalDefault", false)),
            class.age(),
            json!(class.text("/preemptionPolicy")),
        ]
    },
};

pub(super) const RUNTIME_CLASSES: Layout = Layout {
    columns: &[NAME, Column::text("Handler"), AGE],
    cells: |class| vec![class.name(), json!(class.text("/handler")), class.age()],
};
