//! A pod's quality-of-service class.
//!
//! Follows `pkg/apis/core/helper/qos/qos.go#ComputePodQOS @v1.36.3`.

use serde_json::Value;

use super::meta;
use crate::k8s::Quantity;

/// Sums of the two resources that count: cpu and memory. `None` where nobody gives one.
#[derive(Default, PartialEq)]
struct Amounts([Option<Quantity>; 2]);

const COUNTED: [&str; 2] = ["cpu", "memory"];

impl Amounts {
    /// Adds the positive amounts of `list`; tells whether it has both resources.
    fn add(&mut self, list: &Value) -> bool {
        let mut has_both = true;
        for (sum, name) in self.0.iter_mut().zip(COUNTED) {
            let quantity = list[name].as_str().and_then(|text| Quantity::parse(text).ok());
            match quantity.filter(|quantity| *quantity > Quantity::ZERO) {
                Some(quantity) => *sum = Some(sum.map_or(quantity, |sum| sum + quantity)),
                None => has_both = false,
            }
        }
        has_both
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn class(pod: &Value) -> &'static str {
    let spec = &pod["spec"];
    let (mut requests, mut limits) = (Amounts::default(), Amounts::default());
    let mut guaranteed = true;
    if spec["resources"].is_object() {
        requests.add(&spec["resources"]["requests"]);
        let list = &spec["resources"]["limits"];
        guaranteed &= limits.add(list) || meta::is_empty(list);
    } else {
        for container in meta::list(&spec["containers"]).chain(meta::list(&spec["initContainers"])) {
            requests.add(&container["resources"]["requests"]);
            guaranteed &= limits.add(&container["resources"]["limits"]);
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if guaranteed && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(spec: &Value, expected: &str) {
        assert_eq!(class(&json!({"spec": spec})), expected);
    }

    #[test]
    fn classes() {
        check(&json!({"containers": [{}]}), "BestEffort");
        check(&json!({"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}), "BestEffort");
        check(&json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}), "Burstable");
        let full = json!({"requests": {"cpu": "1000m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1024Mi"}});
        check(&json!({"containers": [{"resources": full}]}), "Guaranteed");
        check(&json!({"containers": [{"resources": full}, {}]}), "Burstable");
        check(&json!({"resources": full, "containers": [{}, {}]}), "Guaranteed");
    }
}
