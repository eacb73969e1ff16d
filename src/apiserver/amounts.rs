//! Sums of resources over the containers of a pod, on parsed JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::meta;
use crate::k8s::Quantity;
use crate::k8s::requests::is_pod_level_resource;

/// Amounts by resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a resource list.
pub(super) fn of_list(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

/// The quantity that a text is.
pub(super) fn quantity(amount: &Value) -> Option<Quantity> {
    Quantity::parse(amount.as_str()?).ok()
}

/// What the containers of a pod specification add up to in `list` (`requests` or `limits`): the larger of all running
/// ones together and each initialising one with the restartable ones before it.
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

/// What a pod adds up to, its own resources before those of its containers, overhead left out.
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
