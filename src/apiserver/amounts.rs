//! Sums of resources over the containers of a pod, on parsed JSON.

use serde_json::{Map, Value};

use super::meta;
use crate::k8s::Quantity;
use crate::k8s::requests::is_pod_level_resource;

/// Amounts by resource, in the order in which they first appeared.
pub(super) type Amounts = Vec<(String, Quantity)>;

/// The amounts of a resource list.
pub(super) fn of_list(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?).ok()?))).collect()
}

/// What the containers of a pod specification add up to in `list` (`requests` or `limits`): the larger of all running
/// ones together and each initialising one with the restartable ones before it.
/// Follows `component-helpers/resource/helpers.go#AggregateContainerRequests @v1.36.3`.
pub(super) fn of_containers(spec: &Map<String, Value>, list: &str) -> Amounts {
    let containers = |name: &str| spec.get(name).map(meta::list).into_iter().flatten();
    let mut sum = Vec::new();
    containers("containers").for_each(|container| add(&mut sum, &of_list(&container["resources"][list])));
    let (mut sidecars, mut peak) = (Vec::new(), Vec::new());
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

/// What a pod adds up to, its own resources before those of its containers, overhead left out.
/// Follows `plugin/pkg/admission/limitranger/admission.go#podRequests @v1.36.3`.
pub(super) fn of_pod(spec: &Map<String, Value>, list: &str) -> Amounts {
    let mut sum = of_containers(spec, list);
    let own = spec.get("resources").map(|resources| of_list(&resources[list])).unwrap_or_default();
    for (name, amount) in own.into_iter().filter(|(name, _)| is_pod_level_resource(name)) {
        match sum.iter_mut().find(|(known, _)| *known == name) {
            Some((_, total)) => *total = amount,
            None => sum.push((name, amount)),
        }
    }
    sum
}

fn add(sum: &mut Amounts, amounts: &[(String, Quantity)]) {
    for (name, amount) in amounts {
        match sum.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += *amount,
            None => sum.push((name.clone(), *amount)),
        }
    }
}

fn raise(most: &mut Amounts, amounts: &[(String, Quantity)]) {
    for (name, amount) in amounts {
        match most.iter_mut().find(|(known, _)| known == name) {
            Some((_, peak)) => *peak = (*peak).max(*amount),
            None => most.push((name.clone(), *amount)),
        }
    }
}
