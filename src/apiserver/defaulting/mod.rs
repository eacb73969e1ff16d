//! Defaults: values that the server fills in when an object is written without them.
//!
//! Follows the `SetDefaults_*` functions of `pkg/apis/core/v1/defaults.go @v1.36.3`, for the fields that affect scheduling,
//! clients or error messages.

mod device;
mod pod;
mod storage;
mod workload;

use serde_json::{Map, Value, json};

use super::kinds::{
    CRON_JOBS, CSI_DRIVERS, DAEMON_SETS, DEPLOYMENTS, JOBS, Kind, LIMIT_RANGES, NAMESPACES, NODES,
    PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, PRIORITY_CLASSES, REPLICA_SETS, REPLICATION_CONTROLLERS,
    RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, RUNTIME_CLASSES, SECRETS, SERVICES, STATEFUL_SETS, STORAGE_CLASSES,
};
use super::meta;
use crate::config::{FeatureGates, Gate};
use crate::go::base64;
use crate::k8s::Quantity;

/// Function that fills in the defaults of one kind.
type Defaults = fn(&mut Value);

/// Fills in the defaults of an object. `old` is the object before an update, and `None` for a new object.
pub(super) fn apply(kind: &Kind, value: &mut Value, old: Option<&Value>, gates: &FeatureGates) {
    let defaults: &[(&Kind, Defaults)] = &[
        (&PODS, pod::apply),
        (&NODES, node),
        (&NAMESPACES, namespace),
        (&SERVICES, service),
        (&LIMIT_RANGES, limit_range),
        (&PERSISTENT_VOLUMES, storage::volume),
        (&PERSISTENT_VOLUME_CLAIMS, storage::claim),
        (&STORAGE_CLASSES, storage::class),
        (&CSI_DRIVERS, storage::driver),
        (&SECRETS, secret),
        (&RESOURCE_CLAIMS, device::claim),
        (&RESOURCE_CLAIM_TEMPLATES, device::template),
        (&PRIORITY_CLASSES, priority_class),
        (&RUNTIME_CLASSES, runtime_class),
        (&REPLICATION_CONTROLLERS, workload::replication_controller),
        (&REPLICA_SETS, workload::replica_set),
        (&DEPLOYMENTS, workload::deployment),
        (&STATEFUL_SETS, workload::stateful_set),
        (&DAEMON_SETS, workload::daemon_set),
        (&JOBS, workload::job),
        (&CRON_JOBS, workload::cron_job),
    ];
    if let Some((_, apply)) = defaults.iter().find(|(owner, _)| owner.slot == kind.slot) {
        apply(value);
    }
    // Members of disabled features are dropped later. So only features that are off by default matter here.
    if kind.slot == STATEFUL_SETS.slot && gates.enabled(Gate::MaxUnavailableStatefulSet) {
        workload::max_unavailable(value);
    } else if kind.slot == CSI_DRIVERS.slot && gates.enabled(Gate::VolumeLimitScaling) {
        default_absent(meta::child(value, "spec"), "preventPodSchedulingIfMissing", false);
    }
    if old.is_none() && kind.slot == JOBS.slot {
        workload::job_selector(value);
    } else if old.is_none() && kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        storage::claim_sources(value);
    }
}

/// Sets `key` if it is absent or has Go's zero value.
fn default(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(meta::is_empty) {
        map.insert(key.to_owned(), value.into());
    }
}

/// Sets `key` only if it is absent.
fn default_absent(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    map.entry(key).or_insert_with(|| value.into());
}

/// Rewrites the amounts of a resource list as kube-apiserver does: as canonical strings, rounded up to a thousandth.
fn resource_list(list: Option<&mut Value>) {
    for amount in list.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut()) {
        if amount.is_number() {
            *amount = json!(amount.to_string());
        }
        let Some(text) = amount.as_str() else { continue };
        let Ok(quantity) = Quantity::parse(text) else { continue };
        // The thousandths of a huge amount overflow 64 bits and wrap around. Such an amount is not rounded.
        let rounded = Quantity::from_milli(quantity.milli_value()).with_format(quantity.format());
        let is_near = rounded < next_thousandth(quantity) && quantity < next_thousandth(rounded);
        let written = if is_near && rounded != quantity {
            rounded.to_string()
        } else {
            Quantity::canonical_text(text).unwrap_or_else(|_| text.to_owned())
        };
        if written != text {
            *amount = json!(written);
        }
    }
}

fn next_thousandth(mut amount: Quantity) -> Quantity {
    amount += Quantity::from_milli(1);
    amount
}

fn node(node: &mut Value) {
    // `podCIDR` repeats the first of `podCIDRs`. If the two differ, `podCIDR` wins. `pkg/apis/core/v1/conversion.go @v1.36.3`.
    if let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) {
        let first = spec.get("podCIDRs").and_then(|list| list[0].as_str()).unwrap_or_default().to_owned();
        match spec.get("podCIDR").and_then(Value::as_str).filter(|cidr| !cidr.is_empty()).map(str::to_owned) {
            Some(cidr) if cidr != first => drop(spec.insert("podCIDRs".to_owned(), json!([cidr]))),
            None if !first.is_empty() => drop(spec.insert("podCIDR".to_owned(), json!(first))),
            _ => {}
        }
    }
    let Some(status) = node.get_mut("status").and_then(Value::as_object_mut) else { return };
    resource_list(status.get_mut("capacity"));
    if let Some(capacity) = status.get("capacity").cloned() {
        default_absent(status, "allocatable", capacity);
    }
    resource_list(status.get_mut("allocatable"));
}

/// Labels a namespace with its name. Follows `pkg/apis/core/v1/defaults.go#SetDefaults_Namespace @v1.36.3`.
fn namespace(namespace: &mut Value) {
    let name = meta::text(namespace, "name").to_owned();
    if !name.is_empty() {
        let labels = meta::metadata(namespace).entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert("kubernetes.io/metadata.name".to_owned(), json!(name));
        }
    }
}

/// Fills in the defaults of a service. Follows `pkg/apis/core/v1/defaults.go#SetDefaults_Service @v1.36.3`.
fn service(service: &mut Value) {
    let spec = meta::child(service, "spec");
    default(spec, "sessionAffinity", "None");
    let affinity = spec.get("sessionAffinity").and_then(Value::as_str);
    if affinity == Some("None") {
        spec.remove("sessionAffinityConfig");
    } else if affinity == Some("ClientIP")
        && spec.get("sessionAffinityConfig").is_none_or(|config| config["clientIP"]["timeoutSeconds"].is_null())
    {
        spec.insert("sessionAffinityConfig".to_owned(), json!({"clientIP": {"timeoutSeconds": 10_800}}));
    }
    default(spec, "type", "ClusterIP");
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let number = port["port"].clone();
        if let Some(port) = port.as_object_mut() {
            default(port, "protocol", "TCP");
            default(port, "targetPort", number);
        }
    }
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let has_external_ips = kind == "ClusterIP" && spec.get("externalIPs").is_some_and(|ips| !meta::is_empty(ips));
    if matches!(&*kind, "LoadBalancer" | "NodePort") || has_external_ips {
        default(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(&*kind, "LoadBalancer" | "NodePort" | "ClusterIP") {
        default_absent(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        default_absent(spec, "allocateLoadBalancerNodePorts", true);
    }
}

/// Fills in the defaults of a limit range. Follows `pkg/apis/core/v1/defaults.go#SetDefaults_LimitRangeItem @v1.36.3`.
fn limit_range(range: &mut Value) {
    let limits = meta::child(range, "spec").get_mut("limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten().filter_map(Value::as_object_mut) {
        const LISTS: [&str; 5] = ["default", "defaultRequest", "max", "min", "maxLimitRequestRatio"];
        for list in LISTS {
            resource_list(limit.get_mut(list));
        }
        if limit.get("type") != Some(&json!("Container")) {
            continue;
        }
        // A missing default limit becomes the maximum. A missing default request becomes the default limit, or the minimum if
        // there is no default limit.
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let source = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
            if let Some(target) = limit.entry(to).or_insert_with(|| json!({})).as_object_mut() {
                for (name, amount) in source {
                    target.entry(name).or_insert(amount);
                }
            }
        }
    }
}

/// Fills in a secret's type, and moves `stringData` into `data`.
/// Follows `pkg/apis/core/v1/defaults.go#SetDefaults_Secret` and `pkg/apis/core/v1/conversion.go @v1.36.3`.
fn secret(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    default(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    if let Some(data) = data.as_object_mut() {
        for (key, text) in texts {
            data.insert(key, json!(base64::encode(text.as_str().unwrap_or_default())));
        }
    }
}

/// Rewrites the amounts of a runtime class's overhead in canonical form. Follows `pkg/apis/node/v1`.
fn runtime_class(class: &mut Value) {
    if let Some(overhead) = class.get_mut("overhead") {
        resource_list(overhead.get_mut("podFixed"));
    }
}

fn priority_class(class: &mut Value) {
    if let Some(class) = class.as_object_mut() {
        default_absent(class, "preemptionPolicy", "PreemptLowerPriority");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_rounded_up_to_milli_units() {
        let check = |given: Value, expected: &str| {
            let mut list = json!({"cpu": given});
            resource_list(Some(&mut list));
            assert_eq!(list["cpu"], expected, "{given}");
        };
        check(json!(2), "2");
        check(json!("0.0001"), "1m");
        check(json!("1.0005"), "1001m");
        check(json!("9223372036854775807"), "9223372036854775807");
        check(json!("8Ei"), "9223372036854775807");
        check(json!("1Ei"), "1Ei");
        check(json!("1e400"), "10e399");
    }
}
