//! Sums of resources over the containers of a pod, on parsed JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::meta;
use crate::k8s::Quantity;
use crate::k8s::requests::is_pod_level_resource;

/// Quantities by resource name.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Returns the quantities of a resource list. Invalid quantities are left out.
pub(super) fn of_list(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

/// Parses a quantity in JSON.
pub(super) fn quantity(amount: &Value) -> Option<Quantity> {
    Quantity::parse(amount.as_str()?).ok()
}

/// Returns the total of a pod's containers in `list` (`requests` or `limits`). For each resource, the total is the largest of
/// these sums: the sum of all app containers and sidecars, and for each init container the sum of it and the sidecars before it.
/// Follows `component-helpers/resource/helpers.go#AggregateContainerRequests @v1.36.3`.
pub(super) fn of_containers(spec: &Map<String, Value>, list: &str) -> Amounts {
    let containers = |name: &str| spec.get(name).map(meta::list).into_iter().flatten();
    let mut sum = Amounts::new();
    containers("containers").for_each(|container| add(&mut sum, &of_list(&container["resources"][list])));
    let (mut sidecars, mut peak) = (Amounts::new(), Amounts::new());
    for container in containers("initContainers") {
        let mut now = of_list(&container["resources"][list]);
        if container["restartPolicy"] == "Always" {
            add(&mut sum, &now);
            add(&mut sidecars, &now);
            now.clone_from(&sidecars);
        } else {
            add(&mut now, &sidecars);
        }
        raise(&mut peak, &now);
    }
    raise(&mut sum, &peak);
    sum
}

/// Returns the total of a pod without overhead. Pod-level resources take precedence over the total of the containers.
/// Follows `plugin/pkg/admission/limitranger/admission.go#podRequests @v1.36.3`.
pub(super) fn of_pod(spec: &Map<String, Value>, list: &str) -> Amounts {
    let mut sum = of_containers(spec, list);
    let own = spec.get("resources").map(|resources| of_list(&resources[list])).unwrap_or_default();
    sum.extend(own.into_iter().filter(|(name, _)| is_pod_level_resource(name)));
    sum
}

fn add(sum: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        sum.entry(name.clone()).and_modify(|total| *total += *amount).or_insert(*amount);
    }
}

fn raise(most: &mut Amounts, amounts: &Amounts) {
    for (name, amount) in amounts {
        most.entry(name.clone()).and_modify(|peak| *peak = (*peak).max(*amount)).or_insert(*amount);
    }
}
