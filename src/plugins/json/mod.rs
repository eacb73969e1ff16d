//! The fragments that plugins add to pod signatures, in the JSON that Go would write. Struct fields are in Go's order. An empty
//! field is left out if Go's tag has `omitempty`.
//!
//! Follows `kube-scheduler/framework/signers.go @v1.36.3`.

mod volume_source;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm, Toleration};
use serde::{Serialize, Serializer};

use crate::framework::Fragment;
use crate::go::json;
use crate::k8s::{Pod, StringMap};
use crate::model::Resources;

/// A signature fragment with its name.
pub type Named = (&'static str, Fragment);

/// The node name in the pod's spec.
pub fn node_name(pod: &Pod) -> Named {
    named("v1.Pod.Spec.NodeName", pod.spec.node_name.as_deref().unwrap_or_default())
}

/// The features that the pod needs, as a string with one digit per feature.
pub fn required_features(digits: &str) -> Named {
    named("v1.Pod.Spec.RequiredFeatures()", digits)
}

/// The pod's labels, or `null` if it has none.
pub fn labels(pod: &Pod) -> Named {
    named("v1.Pod.Labels", &non_empty(pod.labels()))
}

/// The pod's node selector, or `null` if it has none.
pub fn node_selector(pod: &Pod) -> Named {
    named("v1.Pod.Spec.Affinity.NodeSelector", &non_empty(&pod.spec.node_selector))
}

/// The host ports of all containers and init containers, sorted, without duplicates.
/// Follows `kube-scheduler/framework/signers.go#HostPortsSigner @v1.36.3`.
pub fn host_ports(pod: &Pod) -> Named {
    let ports = pod.all_host_ports().map(|port| port.host_port);
    named("v1.Pod.Spec.HostPorts()", &ports.collect::<BTreeSet<i32>>())
}

/// The pod's tolerations, sorted by key and value.
/// Follows `kube-scheduler/framework/signers.go#TolerationsSigner @v1.36.3`.
pub fn tolerations(pod: &Pod) -> Named {
    let mut tolerations: Vec<GoToleration<'_>> = pod.spec.tolerations.iter().map(GoToleration::of).collect();
    tolerations.sort_by_key(|toleration| (toleration.key, toleration.value));
    named("v1.Pod.Spec.Tolerations", &tolerations)
}

/// The pod's node affinity, or `null` if it has none. Lists whose order does not matter are sorted.
/// Follows `kube-scheduler/framework/signers.go#NodeAffinitySigner @v1.36.3`.
pub fn node_affinity(pod: &Pod) -> Named {
    let affinity = pod.spec.affinity.as_deref().and_then(|affinity| affinity.node_affinity.as_ref());
    let signed = affinity.map(|affinity| {
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref();
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.as_deref();
        GoNodeAffinity {
            required: sorted(required.iter().flat_map(|selector| &selector.node_selector_terms).map(GoTerm::of)),
            preferred: sorted(preferred.unwrap_or_default().iter().map(GoPreferredTerm::of)),
        }
    });
    named("v1.Pod.Spec.Affinity.NodeAffinity", &signed)
}

/// The sources of the pod's volumes except config maps and secrets, sorted. `None` if the pod has an ephemeral volume, whose
/// claim template is not kept.
/// Follows `kube-scheduler/framework/signers.go#VolumesSigner @v1.36.3`.
pub fn volumes(pod: &Pod) -> Option<Named> {
    let mut sources = Vec::new();
    for volume in &pod.spec.volumes {
        match volume_source::Signed::of(&volume.source) {
            volume_source::Signed::Text(text) => sources.push(text),
            volume_source::Signed::LeftOut => {}
            volume_source::Signed::Unknown => return None,
        }
    }
    sources.sort_unstable();
    Some(named("v1.Pod.Spec.Volumes.NonSyntheticSources()", &sources))
}

/// The resources that the pod requests. Follows `pkg/scheduler/framework/types.go#Resource @v1.36.3`.
pub fn resources(resources: &Resources) -> Named {
    let signed = GoResource {
        milli_cpu: resources.milli_cpu,
        memory: resources.memory,
        ephemeral_storage: resources.ephemeral_storage,
        allowed_pod_number: resources.allowed_pods,
        scalar_resources: (!resources.has_no_scalars()).then_some(GoScalars(resources)),
    };
    named("v1.Pod.Spec.ContainerRequestsAndOverheads()", &signed)
}

/// The names of the pod's images, sorted, without duplicates.
pub fn image_names(names: &BTreeSet<String>) -> Named {
    named("v1.Pod.Spec.CanonicalImageNames()", names)
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GoResource<'a> {
    #[serde(rename = "MilliCPU")]
    milli_cpu: i64,
    memory: i64,
    ephemeral_storage: i64,
    allowed_pod_number: i64,
    scalar_resources: Option<GoScalars<'a>>,
}

struct GoScalars<'a>(&'a Resources);

impl Serialize for GoScalars<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.scalars())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoToleration<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    key: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    operator: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    value: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    effect: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    toleration_seconds: Option<i64>,
}

impl<'a> GoToleration<'a> {
    fn of(toleration: &'a Toleration) -> Self {
        Self {
            key: text(toleration.key.as_ref()),
            operator: text(toleration.operator.as_ref()),
            value: text(toleration.value.as_ref()),
            effect: text(toleration.effect.as_ref()),
            toleration_seconds: toleration.toleration_seconds,
        }
    }
}

#[derive(Serialize)]
struct GoRequirement<'a> {
    key: &'a str,
    operator: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<&'a str>,
}

impl<'a> GoRequirement<'a> {
    fn of(requirement: &'a NodeSelectorRequirement) -> Self {
        let mut values: Vec<&str> = requirement.values.iter().flatten().map(String::as_str).collect();
        values.sort_unstable();
        Self { key: &requirement.key, operator: &requirement.operator, values }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GoTerm {
    match_expressions: Vec<String>,
    match_fields: Vec<String>,
}

impl GoTerm {
    fn of(term: &NodeSelectorTerm) -> Self {
        Self {
            match_expressions: sorted(term.match_expressions.iter().flatten().map(GoRequirement::of)),
            match_fields: sorted(term.match_fields.iter().flatten().map(GoRequirement::of)),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GoPreferredTerm {
    weight: i32,
    preference: GoTerm,
}

impl GoPreferredTerm {
    fn of(preferred: &PreferredSchedulingTerm) -> Self {
        Self { weight: preferred.weight, preference: GoTerm::of(&preferred.preference) }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct GoNodeAffinity {
    required: Vec<String>,
    preferred: Vec<String>,
}

fn named<T: Serialize + ?Sized>(name: &'static str, value: &T) -> Named {
    (name, Fragment::of(value).expect("a signature has text keys only"))
}

fn text(value: Option<&String>) -> &str {
    value.map_or("", String::as_str)
}

fn non_empty(map: &StringMap) -> Option<&StringMap> {
    (!map.is_empty()).then_some(map)
}

/// The items as JSON texts, sorted.
fn sorted<T: Serialize>(items: impl Iterator<Item = T>) -> Vec<String> {
    let mut texts: Vec<String> =
        items.map(|item| json::to_string(&item).expect("a signature has text keys only")).collect();
    texts.sort_unstable();
    texts
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{PodFixture, pod};

    #[expect(clippy::needless_pass_by_value, reason = "calls are easier to read by value")]
    fn check(signed: Named, name: &str, expected: &str) {
        assert_eq!((signed.0, signed.1.as_str()), (name, expected));
    }

    #[test]
    fn empty_maps_are_null() {
        check(labels(&pod("p").build()), "v1.Pod.Labels", "null");
        check(labels(&pod("p").label("b", "<").label("a", "1").build()), "v1.Pod.Labels", r#"{"a":"1","b":"\u003c"}"#);
        check(node_selector(&pod("p").build()), "v1.Pod.Spec.Affinity.NodeSelector", "null");
        let zonal = pod("p").node_selector("zone", "a").build();
        check(node_selector(&zonal), "v1.Pod.Spec.Affinity.NodeSelector", r#"{"zone":"a"}"#);
    }

    #[test]
    fn node_names_features_and_images_are_encoded() {
        check(node_name(&pod("p").build()), "v1.Pod.Spec.NodeName", r#""""#);
        check(node_name(&pod("p").on("n&m").build()), "v1.Pod.Spec.NodeName", r#""n\u0026m""#);
        check(required_features("01"), "v1.Pod.Spec.RequiredFeatures()", r#""01""#);
        let names = BTreeSet::from(["b:latest".to_owned(), "a:1".to_owned()]);
        check(image_names(&names), "v1.Pod.Spec.CanonicalImageNames()", r#"["a:1","b:latest"]"#);
        check(image_names(&BTreeSet::new()), "v1.Pod.Spec.CanonicalImageNames()", "[]");
    }

    #[test]
    fn host_ports_of_all_containers_are_encoded() {
        let name = "v1.Pod.Spec.HostPorts()";
        check(host_ports(&pod("p").build()), name, "[]");
        let init = json!([{"name": "i", "ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 80}]}]);
        check(host_ports(&pod("p").host_port(80).set("spec.initContainers", init).build()), name, "[9,80]");
    }

    #[test]
    fn tolerations_are_sorted_by_key_and_value() {
        let name = "v1.Pod.Spec.Tolerations";
        check(tolerations(&pod("p").build()), name, "[]");
        let many = pod("p").toleration("b", "", "").toleration("a", "2", "NoSchedule").toleration("a", "1", "");
        check(
            tolerations(&many.build()),
            name,
            r#"[{"key":"a","operator":"Equal","value":"1"},{"key":"a","operator":"Equal","value":"2","effect":"NoSchedule"},{"key":"b","operator":"Exists"}]"#,
        );
        let timed = pod("p").set("spec.tolerations", json!([{"operator": "Exists", "tolerationSeconds": 0}]));
        check(tolerations(&timed.build()), name, r#"[{"operator":"Exists","tolerationSeconds":0}]"#);
    }

    #[test]
    fn node_affinity_does_not_depend_on_the_order_of_terms() {
        let name = "v1.Pod.Spec.Affinity.NodeAffinity";
        check(node_affinity(&pod("p").build()), name, "null");
        let empty = pod("p").set("spec.affinity", json!({"nodeAffinity": {}}));
        check(node_affinity(&empty.build()), name, r#"{"Required":[],"Preferred":[]}"#);
        let zone = json!({"key": "zone", "operator": "In", "values": ["b", "a"]});
        let disk = json!({"key": "disk", "operator": "Exists"});
        for (first, second) in [(&zone, &disk), (&disk, &zone)] {
            let affinity = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [first, second]}]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": {"matchFields": [disk]}}],
            }});
            check(
                node_affinity(&pod("p").set("spec.affinity", affinity).build()),
                name,
                r#"{"Required":["{\"MatchExpressions\":[\"{\\\"key\\\":\\\"disk\\\",\\\"operator\\\":\\\"Exists\\\"}\",\"{\\\"key\\\":\\\"zone\\\",\\\"operator\\\":\\\"In\\\",\\\"values\\\":[\\\"a\\\",\\\"b\\\"]}\"],\"MatchFields\":[]}"],"Preferred":["{\"Weight\":3,\"Preference\":{\"MatchExpressions\":[],\"MatchFields\":[\"{\\\"key\\\":\\\"disk\\\",\\\"operator\\\":\\\"Exists\\\"}\"]}}"]}"#,
            );
        }
    }

    #[test]
    fn resources_have_gos_field_names() {
        let name = "v1.Pod.Spec.ContainerRequestsAndOverheads()";
        let requests = |pod: PodFixture| resources(pod.info().spec_requests());
        check(
            requests(pod("p").cpu("1").memory("2")),
            name,
            r#"{"MilliCPU":1000,"Memory":2,"EphemeralStorage":0,"AllowedPodNumber":0,"ScalarResources":null}"#,
        );
        check(
            requests(pod("p").request("example.com/b", "0").request("example.com/a", "3")),
            name,
            r#"{"MilliCPU":0,"Memory":0,"EphemeralStorage":0,"AllowedPodNumber":0,"ScalarResources":{"example.com/a":3,"example.com/b":0}}"#,
        );
    }

    #[test]
    fn volumes_omit_pod_specific_sources() {
        let name = "v1.Pod.Spec.Volumes.NonSyntheticSources()";
        let sign = |list: Value| volumes(&pod("p").set("spec.volumes", list).build());
        check(sign(json!([])).expect("signed"), name, "[]");
        let list = json!([
            {"name": "a", "persistentVolumeClaim": {"claimName": "x", "readOnly": true}},
            {"name": "b", "configMap": {"name": "c"}},
            {"name": "d", "emptyDir": {"medium": "<&>"}},
            {"name": "e"},
        ]);
        check(
            sign(list).expect("signed"),
            name,
            r#"["{\"emptyDir\":{\"medium\":\"\\u003c\\u0026\\u003e\"}}","{\"persistentVolumeClaim\":{\"claimName\":\"x\",\"readOnly\":true}}","{}"]"#,
        );
        assert_eq!(sign(json!([{"name": "a", "ephemeral": {}}])), None);
    }
}
