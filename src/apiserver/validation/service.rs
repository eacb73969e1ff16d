//! Validation of new and updated services.
//!
//! Follows `pkg/apis/core/validation/validation.go @v1.36.3`. Ports of nodes are not allocated, so a node port may be outside the
//! range of the cluster, and a health check needs no node port.

use serde_json::{Value, json};

use super::address;
use super::container::{one_of, port_name_errors};
use super::field::{Errors, Path, text};
use super::metadata::{invalid_each, labels};
use crate::apimachinery::FieldError;
use crate::apiserver::meta;
use crate::config::Gate;
use crate::k8s::names;

const SPEC: Path<'static> = Path::Root("spec");

/// Annotations of a service.
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Longest time that a client's requests may go to the same pod, in seconds.
/// `pkg/apis/core/types.go#MaxClientIPServiceAffinitySeconds @v1.36.3`.
const MAX_AFFINITY_SECONDS: i64 = 86_400;

/// Checks a new or updated service, except its metadata. Follows `#validateService`.
pub(super) fn check(service: &Value, errors: &mut Errors) {
    let spec = &service["spec"];
    let kind = text(spec, "type");
    let addresses = cluster_ips(spec);
    let is_headless = addresses == ["None"];
    topology_annotations(service, errors);
    let ports = SPEC.child("ports");
    if meta::is_empty(&spec["ports"]) && !is_headless && kind != "ExternalName" {
        errors.push(FieldError::required(ports, ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let (list, detail) = (SPEC.child("clusterIPs"), format!("may not be set to 'None' for {kind} services"));
            errors.push(FieldError::invalid(list.index(0), &json!("None"), detail));
        }
        "ExternalName" => external_name(spec, &addresses, errors),
        _ => {}
    }
    self::ports(spec, errors);
    labels(&spec["selector"], SPEC.child("selector"), errors);
    session_affinity(spec, errors);
    if kind != "ExternalName" {
        families(spec, &addresses, errors);
    }
    let list = SPEC.child("externalIPs");
    for (at, ip) in meta::list(&spec["externalIPs"]).enumerate() {
        external_ip(ip.as_str().unwrap_or_default(), list.index(at), errors);
    }
    one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], SPEC, errors);
    unique_ports(spec, kind, errors);
    load_balancer(service, kind, errors);
    traffic(spec, kind, errors);
}

/// Checks an update of a service. Accepts changed addresses, because this server does not always allocate them.
/// Follows `#ValidateServiceUpdate`.
pub(super) fn check_update(service: &Value, before: &Value, errors: &mut Errors) {
    let (new, old) = (&service["spec"], &before["spec"]);
    let is_balanced = |spec: &Value| text(spec, "type") == "LoadBalancer";
    let class = |spec: &Value| spec["loadBalancerClass"].clone();
    if is_balanced(new) && is_balanced(old) && class(new) != class(old) {
        let path = SPEC.child("loadBalancerClass");
        errors.push(FieldError::invalid(path, &class(new), "may not change once set"));
    }
    check(service, errors);
}

/// Returns the addresses of a service. A client may set only `clusterIP`, which is the first of `clusterIPs`.
/// Follows `pkg/registry/core/service/storage/storage.go#normalizeClusterIPs @v1.36.3`.
fn cluster_ips(spec: &Value) -> Vec<&str> {
    let all: Vec<&str> = meta::list(&spec["clusterIPs"]).filter_map(Value::as_str).collect();
    let first = text(spec, "clusterIP");
    if all.is_empty() && !first.is_empty() { vec![first] } else { all }
}

fn topology_annotations(service: &Value, errors: &mut Errors) {
    let annotations = &service["metadata"]["annotations"];
    if let (Some(mode), Some(hints)) = (annotations[MODE].as_str(), annotations[HINTS].as_str())
        && mode != hints
    {
        let metadata = Path::Root("metadata");
        let path = metadata.child("annotations");
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(FieldError::invalid(path.key(MODE), &json!(mode), detail));
    }
}

/// Checks the members of a service that stands for an external name.
fn external_name(spec: &Value, addresses: &[&str], errors: &mut Errors) {
    let detail = "may not be set for ExternalName services";
    for (key, is_set) in [
        ("clusterIPs", !addresses.is_empty()),
        ("ipFamilies", !meta::is_empty(&spec["ipFamilies"])),
        ("ipFamilyPolicy", !spec["ipFamilyPolicy"].is_null()),
    ] {
        if is_set {
            errors.push(FieldError::forbidden(SPEC.child(key), detail));
        }
    }
    let (name, path) = (text(spec, "externalName"), SPEC.child("externalName"));
    // A trailing dot marks a fully qualified name.
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        invalid_each(path, name, names::dns1123_subdomain_errors(name), errors);
    }
}

/// Checks each port of a service. Follows `#validateServicePort`.
fn ports(spec: &Value, errors: &mut Errors) {
    let list = SPEC.child("ports");
    let needs_names = meta::list(&spec["ports"]).len() > 1;
    let mut known: Vec<&str> = Vec::new();
    for (at, port) in meta::list(&spec["ports"]).enumerate() {
        let path = list.index(at);
        let name = text(port, "name");
        if name.is_empty() {
            if needs_names {
                errors.push(FieldError::required(path.child("name"), ""));
            }
        } else {
            invalid_each(path.child("name"), name, names::dns1123_label_errors(name), errors);
            if known.contains(&name) {
                errors.push(FieldError::duplicate(path.child("name"), &json!(name)));
            }
            known.push(name);
        }
        port_number(&port["port"], path.child("port"), errors);
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], path, errors);
        match port["targetPort"].as_str() {
            Some(name) => invalid_each(path.child("targetPort"), name, port_name_errors(name), errors),
            None => port_number(&port["targetPort"], path.child("targetPort"), errors),
        }
        if let Some(protocol) = port["appProtocol"].as_str() {
            invalid_each(path.child("appProtocol"), protocol, names::qualified_name_errors(protocol), errors);
        }
    }
}

fn port_number(number: &Value, path: Path<'_>, errors: &mut Errors) {
    let number = number.as_i64().unwrap_or(0);
    if !(1..=65535).contains(&number) {
        errors.push(FieldError::invalid(path, &json!(number), "must be between 1 and 65535, inclusive"));
    }
}

/// Checks that the ports of a service differ, and that only services outside the cluster have node ports.
fn unique_ports(spec: &Value, kind: &str, errors: &mut Errors) {
    let list = SPEC.child("ports");
    let ports: Vec<&Value> = meta::list(&spec["ports"]).collect();
    let number = |port: &Value, key: &str| port[key].as_i64().unwrap_or(0);
    let is_repeated = |at: usize, key: &str| {
        let same = |other: &&Value| {
            number(other, key) == number(ports[at], key) && text(other, "protocol") == text(ports[at], "protocol")
        };
        ports[..at].iter().any(same)
    };
    if kind == "ClusterIP" {
        for (at, _) in ports.iter().enumerate().filter(|(_, port)| number(port, "nodePort") != 0) {
            let path = list.index(at);
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(path.child("nodePort"), detail));
        }
    }
    for (at, port) in ports.iter().enumerate().filter(|(_, port)| number(port, "nodePort") != 0) {
        if is_repeated(at, "nodePort") {
            let path = list.index(at);
            errors.push(FieldError::duplicate(path.child("nodePort"), &json!(number(port, "nodePort"))));
        }
    }
    for (at, port) in ports.iter().enumerate() {
        if is_repeated(at, "port") {
            let mut error = FieldError::duplicate(list.index(at), *port);
            error.value = format!(
                r#"{{"Name":"","Protocol":{},"AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}}"#,
                json!(text(port, "protocol")),
                number(port, "port")
            );
            errors.push(error);
        }
    }
}

fn session_affinity(spec: &Value, errors: &mut Errors) {
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], SPEC, errors);
    let (config, path) = (&spec["sessionAffinityConfig"], SPEC.child("sessionAffinityConfig"));
    match text(spec, "sessionAffinity") {
        "ClientIP" => {
            let client = path.child("clientIP");
            let seconds = &config["clientIP"]["timeoutSeconds"];
            let detail = "when session affinity type is ClientIP";
            if config.is_null() {
                errors.push(FieldError::required(path, detail));
            } else if config["clientIP"].is_null() {
                errors.push(FieldError::required(client, detail));
            } else if seconds.is_null() {
                errors.push(FieldError::required(client.child("timeoutSeconds"), detail));
            } else if !seconds.as_i64().is_some_and(|seconds| (1..=MAX_AFFINITY_SECONDS).contains(&seconds)) {
                let detail = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
                errors.push(FieldError::invalid(client.child("timeoutSeconds"), seconds, detail));
            }
        }
        "None" if !config.is_null() => {
            errors.push(FieldError::forbidden(path, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

/// Checks the addresses of a service and their families. Follows `#ValidateServiceClusterIPsRelatedFields`.
fn families(spec: &Value, addresses: &[&str], errors: &mut Errors) {
    let (list, family_list) = (SPEC.child("clusterIPs"), SPEC.child("ipFamilies"));
    let first = text(spec, "clusterIP");
    if first.is_empty() && !addresses.is_empty() {
        let detail = "must be empty when `clusterIP` is not specified";
        errors.push(FieldError::invalid(list, &json!(addresses), detail));
    } else if !first.is_empty() && addresses[0] != first {
        errors.push(FieldError::invalid(list, &json!(addresses), "first value must match `clusterIP`"));
    }
    let families: Vec<&str> = meta::list(&spec["ipFamilies"]).filter_map(Value::as_str).collect();
    for (at, family) in families.iter().enumerate() {
        if !matches!(*family, "IPv4" | "IPv6") {
            errors.push(FieldError::not_supported(family_list.index(at), &json!(family), &["IPv4", "IPv6"]));
        }
        if families[..at].contains(family) {
            errors.push(FieldError::duplicate(family_list.index(at), &json!(family)));
        }
    }
    let known = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    if let Some(policy) = spec["ipFamilyPolicy"].as_str().filter(|policy| !known.contains(policy)) {
        errors.push(FieldError::not_supported(SPEC.child("ipFamilyPolicy"), &json!(policy), &known));
    }
    let before = errors.len();
    let mut are_ipv6 = Vec::new();
    for (at, ip) in addresses.iter().enumerate() {
        if at == 0 && *ip == "None" {
            if addresses.len() > 1 {
                let detail = "'None' must be the first and only value";
                errors.push(FieldError::invalid(list, &json!(addresses), detail));
            }
            continue;
        }
        are_ipv6.extend(address::ip(ip, list.index(at), errors).map(address::is_ipv6));
    }
    let are_invalid = errors.len() > before;
    if addresses.len() > 2 {
        errors.push(FieldError::invalid(list, &json!(addresses), "may only hold up to 2 values"));
    }
    if are_invalid {
        return;
    }
    if addresses.len() > 1 && !(are_ipv6.contains(&true) && are_ipv6.contains(&false)) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(list, &json!(addresses), detail));
    }
    for (at, (is_ipv6, family)) in are_ipv6.iter().zip(&families).enumerate() {
        if matches!((*family, *is_ipv6), ("IPv4", true) | ("IPv6", false)) {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
            errors.push(FieldError::invalid(list.index(at), &json!(addresses[at]), detail));
        }
    }
}

/// Checks an external address of a service. Follows `#ValidateEndpointIP`.
fn external_ip(text: &str, path: Path<'_>, errors: &mut Errors) {
    let before = errors.len();
    let Some(ip) = address::ip(text, path, errors).filter(|_| errors.len() == before) else { return };
    let (is_link_local, is_local_multicast) = match ip {
        std::net::IpAddr::V4(ip) => (ip.is_link_local(), ip.octets().starts_with(&[224, 0, 0])),
        std::net::IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    let rules = [
        (ip.is_unspecified(), format!("may not be unspecified ({text})")),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (is_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ];
    for (_, detail) in rules.into_iter().filter(|(is_broken, _)| *is_broken) {
        errors.push(FieldError::invalid(path, &json!(text), detail));
    }
}

/// Checks the members that only a load balancer may have.
fn load_balancer(service: &Value, kind: &str, errors: &mut Errors) {
    let spec = &service["spec"];
    let is_balanced = kind == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    let ranges: Vec<&str> = meta::list(&spec["loadBalancerSourceRanges"]).filter_map(Value::as_str).collect();
    if !ranges.is_empty() {
        // Upstream's message spells the field with a capital letter.
        let list = SPEC.child("LoadBalancerSourceRanges");
        if !is_balanced {
            errors.push(FieldError::forbidden(list, only));
        }
        for (at, range) in ranges.iter().enumerate() {
            address::cidr(range.trim(), list.index(at), errors);
        }
    } else if let Some(ranges) = service["metadata"]["annotations"][RANGES].as_str() {
        let metadata = Path::Root("metadata");
        let annotations = metadata.child("annotations");
        let path = annotations.key(RANGES);
        if !is_balanced {
            errors.push(FieldError::forbidden(path, only));
        }
        for range in ranges.trim().split(',').filter(|_| !ranges.trim().is_empty()) {
            address::cidr(range.trim(), path, errors);
        }
    }
    let allocates = &spec["allocateLoadBalancerNodePorts"];
    if !allocates.is_null() && !is_balanced {
        errors.push(FieldError::forbidden(SPEC.child("allocateLoadBalancerNodePorts"), only));
    }
    let (class, path) = (&spec["loadBalancerClass"], SPEC.child("loadBalancerClass"));
    match class.as_str() {
        Some(class) if is_balanced => invalid_each(path, class, names::qualified_name_errors(class), errors),
        Some(_) => errors.push(FieldError::forbidden(path, only)),
        None => {}
    }
}

/// Checks the traffic policies of a service. Follows `#validateServiceExternalTrafficPolicy`,
/// `#validateServiceInternalTrafficFieldsValue` and `#validateServiceTrafficDistribution`.
fn traffic(spec: &Value, kind: &str, errors: &mut Errors) {
    let policies = ["Cluster", "Local"];
    let external = text(spec, "externalTrafficPolicy");
    let is_external =
        matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && !meta::is_empty(&spec["externalIPs"]));
    if is_external {
        one_of(spec, "externalTrafficPolicy", &policies, SPEC, errors);
    } else if !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(SPEC.child("externalTrafficPolicy"), &json!(external), detail));
    }
    let (port, path) = (spec["healthCheckNodePort"].as_i64().unwrap_or(0), SPEC.child("healthCheckNodePort"));
    if port != 0 {
        if kind == "LoadBalancer" && external == "Local" {
            port_number(&json!(port), path, errors);
        } else {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(path, &json!(port), detail));
        }
    }
    if let Some(policy) = spec["internalTrafficPolicy"].as_str().filter(|policy| !policies.contains(policy)) {
        errors.push(FieldError::not_supported(SPEC.child("internalTrafficPolicy"), &json!(policy), &policies));
    }
    let all = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let known = if errors.enabled(Gate::PreferSameTrafficDistribution) { &all[..] } else { &all[..1] };
    if let Some(distribution) = spec["trafficDistribution"].as_str().filter(|name| !known.contains(name)) {
        errors.push(FieldError::not_supported(SPEC.child("trafficDistribution"), &json!(distribution), known));
    }
}

#[cfg(test)]
mod tests;
