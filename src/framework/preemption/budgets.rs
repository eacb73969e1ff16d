//! Disruption budgets, with the fields that preemption uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::k8s::Selector;
use crate::model::PodInfo;

/// A disruption budget that can match pods.
struct Budget {
    namespace: String,
    selector: Selector,
    allowed: i32,
    /// Names of pods whose disruption the budget's status already counts.
    disrupted: BTreeSet<String>,
}

/// All disruption budgets, read once per cycle.
pub(super) struct Budgets(Vec<Budget>);

impl Budgets {
    /// Reads selectors and limits of the budgets. A budget with a missing, empty or malformed selector matches no pod, and is
    /// left out.
    pub(super) fn new(budgets: &[Arc<PodDisruptionBudget>]) -> Self {
        let read = |budget: &Arc<PodDisruptionBudget>| {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let selector = Selector::from_label_selector(selector).ok().filter(|selector| !selector.is_empty())?;
            let status = budget.status.as_ref();
            Some(Budget {
                namespace: budget.metadata.namespace.clone().unwrap_or_default(),
                selector,
                allowed: status.and_then(|status| status.disruptions_allowed).unwrap_or(0),
                disrupted: status
                    .and_then(|status| status.disrupted_pods.as_ref())
                    .map_or_else(BTreeSet::new, |pods| pods.keys().cloned().collect()),
            })
        };
        Self(budgets.iter().filter_map(read).collect())
    }

    /// Splits the pods into two lists: pods whose eviction violates a budget, and all other pods. A pod is checked as if the
    /// pods before it were evicted too. Both lists keep the order of `pods`.
    /// Follows `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go#filterPodsWithPDBViolation @v1.36.3`.
    pub(super) fn split(&self, pods: Vec<Arc<PodInfo>>) -> (Vec<Arc<PodInfo>>, Vec<Arc<PodInfo>>) {
        if self.0.is_empty() {
            return (Vec::new(), pods);
        }
        let mut left: Vec<i64> = self.0.iter().map(|budget| i64::from(budget.allowed)).collect();
        pods.into_iter().partition(|pod| self.violates(pod, &mut left))
    }

    /// Subtracts the pod from every budget that matches it. Returns whether one of these budgets is exceeded.
    fn violates(&self, pod: &PodInfo, left: &mut [i64]) -> bool {
        let labels = pod.pod().labels();
        if labels.is_empty() {
            return false;
        }
        let mut violated = false;
        for (budget, left) in self.0.iter().zip(left) {
            let counts = budget.namespace == pod.namespace()
                && budget.selector.matches(labels)
                && !budget.disrupted.contains(pod.name());
            if counts {
                *left -= 1;
                violated |= *left < 0;
            }
        }
        violated
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{PodFixture, pod};

    fn budget(spec: &Value, status: &Value) -> Arc<PodDisruptionBudget> {
        let object = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": status,
        });
        Arc::new(serde_json::from_value(object).expect("a budget"))
    }

    fn status(allowed: i32) -> Value {
        json!({"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0})
    }

    fn web(name: &str) -> PodFixture {
        pod(name).label("app", "web")
    }

    #[track_caller]
    fn check(budgets: &[Arc<PodDisruptionBudget>], pods: &[PodFixture], violating: &[&str]) {
        let pods: Vec<Arc<PodInfo>> = pods.iter().map(|pod| pod.clone().info()).collect();
        let (found, others) = Budgets::new(budgets).split(pods.clone());
        assert_eq!(found.iter().map(|pod| pod.name()).collect::<Vec<_>>(), violating);
        assert_eq!(others.len(), pods.len() - violating.len());
    }

    #[test]
    fn pods_beyond_the_budget_violate_it_in_order() {
        let selects = json!({"selector": {"matchLabels": {"app": "web"}}});
        let pods = [web("a"), web("b"), pod("unlabelled"), web("elsewhere").namespace("team"), web("c")];
        check(&[budget(&selects, &status(1))], &pods, &["b", "c"]);
        check(&[budget(&selects, &status(0)), budget(&selects, &status(9))], &pods, &["a", "b", "c"]);
        check(&[budget(&selects, &status(3))], &pods, &[]);
        check(&[], &pods, &[]);
    }

    #[test]
    fn disrupted_pods_do_not_violate_the_budget() {
        let selects = json!({"selector": {"matchLabels": {"app": "web"}}});
        let mut counted = status(0);
        counted["disruptedPods"] = json!({"a": "2026-01-01T00:00:00Z"});
        check(&[budget(&selects, &counted)], &[web("a"), web("b")], &["b"]);
    }

    #[test]
    fn pods_without_labels_match_no_budget() {
        let all = json!({"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}});
        check(&[budget(&all, &status(0))], &[pod("unlabelled"), pod("other").label("tier", "x")], &["other"]);
    }

    #[test]
    fn budgets_without_a_valid_selector_match_nothing() {
        let broken = json!({"selector": {"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}});
        for spec in [json!({}), json!({"selector": {}}), broken] {
            check(&[budget(&spec, &status(0))], &[web("a")], &[]);
        }
    }
}
