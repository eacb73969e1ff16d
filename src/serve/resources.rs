//! Resource requests and limits of all pods at `/metrics/resources`.
//! Follows `pkg/scheduler/metrics/resources/resources.go @v1.36.3`.

use std::sync::Arc;

use prometheus::proto::{Gauge, LabelPair, Metric, MetricFamily, MetricType};

use super::endpoints::MetricsSource;
use crate::k8s::{Pod, Quantity, RequestOptions, Requests, pod_limits, pod_requests};
use crate::listers::Lister;

const REQUEST: (&str, &str) = (
    "kube_pod_resource_request",
    "[STABLE] Resources requested by workloads on the cluster, broken down by pod. This shows the resource usage the \
     scheduler and kubelet expect per pod for resources along with the unit for the resource if any.",
);
const LIMIT: (&str, &str) = (
    "kube_pod_resource_limit",
    "[STABLE] Resources limit for workloads on the cluster, broken down by pod. This shows the resource usage the \
     scheduler and kubelet expect per pod for resources along with the unit for the resource if any.",
);

/// Source of the metrics of all pods, except for pods that were scheduled and have terminated.
pub(super) struct PodResources(pub(super) Lister<Pod>);

impl MetricsSource for PodResources {
    fn gather(&self) -> Vec<MetricFamily> {
        let pods: Vec<Arc<Pod>> = self.0.list().into_iter().filter(|pod| !has_ended(pod)).collect();
        let options = RequestOptions::default();
        let limits = family(LIMIT, &pods, |pod| pod_limits(pod, &options));
        let requests = family(REQUEST, &pods, |pod| pod_requests(pod, &options));
        [limits, requests].into_iter().filter(|family| !family.get_metric().is_empty()).collect()
    }

    /// Does nothing, since every gathering starts anew.
    fn reset(&self) {}
}

/// Whether a pod has been scheduled and has terminated.
fn has_ended(pod: &Pod) -> bool {
    let placed = pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty());
    placed && matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

fn family<'a>(
    (name, help): (&str, &str),
    pods: &'a [Arc<Pod>],
    amounts: impl Fn(&'a Pod) -> Requests<'a>,
) -> MetricFamily {
    let mut series = Vec::new();
    for pod in pods {
        for (resource, amount) in amounts(pod).iter().filter(|(_, amount)| !amount.is_zero()) {
            series.push(one(pod, resource, amount));
        }
    }
    // Sorted by label values, like a registry's series. The label names are the same and in order.
    let values = |metric: &Metric| metric.get_label().iter().map(|l| l.value().to_owned()).collect::<Vec<_>>();
    series.sort_by_cached_key(values);
    let mut family = MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(MetricType::GAUGE);
    family.set_metric(series);
    family
}

fn one(pod: &Pod, resource: &str, amount: Quantity) -> Metric {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let labels = [
        ("namespace", text(&pod.metadata.namespace)),
        ("node", text(&pod.spec.node_name)),
        ("pod", text(&pod.metadata.name)),
        ("priority", pod.spec.priority.map(|priority| priority.to_string()).unwrap_or_default()),
        ("resource", resource.to_owned()),
        ("scheduler", text(&pod.spec.scheduler_name)),
        ("unit", unit(resource).to_owned()),
    ];
    let labels = labels.map(|(name, value)| {
        let mut label = LabelPair::default();
        label.set_name(name.to_owned());
        label.set_value(value);
        label
    });
    let mut gauge = Gauge::default();
    gauge.set_value(amount.approximate_f64());
    let mut metric = Metric::from_label(labels.to_vec());
    metric.set_gauge(gauge);
    metric
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "cores",
        "memory" | "storage" | "ephemeral-storage" => "bytes",
        name if name.starts_with("hugepages-") => "bytes",
        name if name.starts_with("attachable-volumes-") => "integer",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listers::Store;

    fn shown(pods: &[serde_json::Value]) -> String {
        let store = Arc::new(Store::default());
        for pod in pods {
            let pod: Pod = serde_json::from_value(pod.clone()).expect("a pod");
            store.apply(Arc::new(pod));
        }
        let text = crate::metrics::encode(&PodResources(Lister::new(store)).gather());
        text.split_inclusive('\n').filter(|line| !line.starts_with('#')).collect()
    }

    fn pod(name: &str, node: &str, phase: &str, container: &serde_json::Value) -> serde_json::Value {
        json!({
            "metadata": {"namespace": "ns", "name": name},
            "spec": {"nodeName": node, "schedulerName": "s", "priority": 5, "containers": [container]},
            "status": {"phase": phase},
        })
    }

    #[test]
    fn pod_requests_and_limits_are_exposed() {
        let container = json!({"name": "c", "resources": {
            "requests": {"cpu": "500m", "memory": "1Ki", "example.org/x": "0"}, "limits": {"hugepages-2Mi": "2Mi"},
        }});
        let series = |family: &str, pod: &str, node: &str, resource: &str, unit: &str, value: &str| {
            format!(
                "{family}{{namespace=\"ns\",node=\"{node}\",pod=\"{pod}\",priority=\"5\",resource=\"{resource}\",\
                 scheduler=\"s\",unit=\"{unit}\"}} {value}\n"
            )
        };
        let pods = [
            pod("b", "n", "Running", &container),
            pod("a", "", "Failed", &container),
            pod("c", "n", "Succeeded", &container),
        ];
        let of = |pod: &str, node: &str| {
            series("kube_pod_resource_request", pod, node, "cpu", "cores", "0.5")
                + &series("kube_pod_resource_request", pod, node, "memory", "bytes", "1024")
        };
        let limit = |pod: &str, node: &str| {
            series("kube_pod_resource_limit", pod, node, "hugepages-2Mi", "bytes", "2.097152e+06")
        };
        let expected = limit("a", "") + &limit("b", "n") + &of("a", "") + &of("b", "n");
        assert_eq!(shown(&pods), expected);
        assert_eq!(shown(&[]), "");
    }
}
