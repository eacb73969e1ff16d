//! Tests of what feature gates change: admission, defaults, validation and bindings.

use serde_json::{Value, json};

use super::super::kinds;
use super::{PODS, World, binding, node, pod, with};
use crate::config::{FeatureGates, Gate};

fn world(gates: &[(Gate, bool)]) -> World {
    World::with(|options| {
        options.gates = gates.iter().fold(FeatureGates::default(), |gates, (gate, on)| gates.with(*gate, *on));
    })
}

/// Creates a pod with this spec on a server with one gate switched, and returns the stored spec.
fn stored(gate: Gate, on: bool, spec: &Value) -> Result<Value, String> {
    let made =
        world(&[(gate, on)]).server.create(with(pod("p"), json!({"metadata": {"labels": {"v": "1"}}, "spec": spec})));
    made.map(|pod| pod.value()["spec"].clone()).map_err(|status| status.message)
}

#[track_caller]
fn refused(gate: Gate, on: bool, spec: &Value, text: &str) {
    assert_eq!(stored(gate, on, spec).err(), Some(format!("Pod \"p\" is invalid: {text}")));
}

#[test]
fn comparison_operators_need_their_gate() {
    let gate = Gate::TaintTolerationComparisonOperators;
    let spec = |value: &str| json!({"tolerations": [{"key": "k", "operator": "Gt", "value": value}]});
    let path = "spec.tolerations[0]";
    refused(
        gate,
        false,
        &spec("5"),
        &format!("{path}.operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\""),
    );
    for good in ["5", "0", "-7", "9223372036854775807"] {
        stored(gate, true, &spec(good)).expect("an integer");
    }
    let canonical = "must be a valid decimal integer in canonical form";
    let syntax = |text: &str| format!("strconv.ParseInt: parsing \"{text}\": invalid syntax");
    let value = |text: &str, detail: &str| format!("{path}.value: Invalid value: \"{text}\": {detail}");
    refused(gate, true, &spec("07"), &value("07", canonical));
    refused(gate, true, &spec("x"), &format!("[{}, {}]", value("x", canonical), value("x", &syntax("x"))));
    refused(gate, true, &spec(""), &format!("[{}, {}]", value("", "must be non-empty"), value("", &syntax(""))));
    let large = "9223372036854775808";
    refused(
        gate,
        true,
        &spec(large),
        &value(large, &format!("strconv.ParseInt: parsing \"{large}\": value out of range")),
    );
}

#[test]
fn a_pod_that_uses_a_disabled_feature_can_be_updated() {
    let world = world(&[]);
    let used = json!({"metadata": {"uid": "u"}, "spec": {"hostNetwork": true, "hostUsers": false,
        "tolerations": [{"key": "k", "operator": "Lt", "value": "5"}]}});
    let mut pod = world.server.load(with(pod("p"), used)).expect("a dump is not validated").value();
    pod["metadata"]["labels"] = json!({"a": "b"});
    let updated = world.server.update(pod).expect("the update changes labels only");
    assert_eq!(updated.label("a"), Some("b"));
}

#[test]
fn label_keys_of_spread_constraints_are_merged_with_both_gates() {
    let spec = || {
        json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule",
            "matchLabelKeys": ["v"], "labelSelector": {"matchLabels": {"a": "b"}}}]})
    };
    let merge = Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge;
    let constraint = |on| stored(merge, on, &spec()).expect("a pod")["topologySpreadConstraints"][0].clone();
    assert_eq!(
        constraint(true)["labelSelector"]["matchExpressions"],
        json!([{"key": "v", "operator": "In", "values": ["1"]}])
    );
    assert_eq!(constraint(false)["labelSelector"], json!({"matchLabels": {"a": "b"}}));
    assert_eq!(constraint(false)["matchLabelKeys"], json!(["v"]));
    let mut both = spec();
    both["topologySpreadConstraints"][0]["labelSelector"] = json!({"matchLabels": {"v": "1"}});
    let path = "spec.topologySpreadConstraints[0]";
    let detail = "exists in both matchLabelKeys and labelSelector";
    refused(merge, false, &both, &format!("{path}.matchLabelKeys[0]: Invalid value: \"v\": {detail}"));
    refused(merge, true, &both, &format!("{path}[0]: Invalid value: \"v\": {detail}"));
    let spread = stored(Gate::MatchLabelKeysInPodTopologySpread, false, &spec()).expect("a pod");
    assert!(spread["topologySpreadConstraints"][0]["matchLabelKeys"].is_null());
}

#[test]
fn user_namespaces_on_the_host_network_need_their_gate() {
    let gate = Gate::UserNamespacesHostNetworkSupport;
    let spec = || json!({"hostNetwork": true, "hostUsers": false});
    refused(gate, false, &spec(), "spec.hostNetwork: Forbidden: when `hostUsers` is false");
    stored(gate, true, &spec()).expect("a pod");
}

#[test]
fn restart_actions_depend_on_gates() {
    let gate = Gate::RestartAllContainersOnContainerExits;
    let container = |action: &str| {
        json!({"name": "c", "image": "i", "restartPolicy": "Never",
            "restartPolicyRules": [{"action": action, "exitCodes": {"operator": "In", "values": [1]}}]})
    };
    let spec = || json!({"containers": [container("RestartAllContainers")]});
    stored(gate, true, &spec()).expect("a pod");
    let path = "spec.containers[0].restartPolicyRules[0].action";
    let text = format!("{path}: Unsupported value: \"RestartAllContainers\": supported values: \"Restart\"");
    refused(gate, false, &spec(), &text);
    let sidecar =
        json!({"initContainers": [with(container("Restart"), json!({"name": "s", "restartPolicy": "Always"}))]});
    stored(gate, true, &sidecar).expect("a pod");
    let detail = "restartPolicyRules are not allowed for init containers with restart policy Always";
    refused(gate, false, &sidecar, &format!("spec.initContainers[0].restartPolicyRules: Forbidden: {detail}"));
    let dropped = stored(Gate::ContainerRestartRules, false, &spec()).expect("a pod");
    assert!(
        dropped["containers"][0]["restartPolicyRules"].is_null() && dropped["containers"][0]["restartPolicy"].is_null()
    );
}

#[test]
fn restart_rules_are_counted() {
    let rule = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}});
    let spec = json!({"containers": [{"name": "c", "image": "i", "restartPolicy": "Never",
        "restartPolicyRules": vec![rule; 21]}]});
    let text = "spec.containers[0].restartPolicyRules: Too many: 21: must have at most 20 items";
    refused(Gate::ContainerRestartRules, true, &spec, text);
    let codes: Vec<u16> = (0..256).collect();
    let spec = json!({"containers": [{"name": "c", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [
        {"action": "Restart", "exitCodes": {"operator": "In", "values": codes}}, {"action": "Restart"}]}]});
    let path = "spec.containers[0].restartPolicyRules";
    let text = format!(
        "[{path}[0].exitCodes.values: Too many: 256: must have at most 255 items, \
         {path}[1].exitCodes: Required value: must be specified]"
    );
    refused(Gate::ContainerRestartRules, true, &spec, &text);
    let spec = json!({"initContainers": [{"name": "i", "image": "i", "restartPolicyRules": [{}]}]});
    let text =
        "spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used";
    refused(Gate::ContainerRestartRules, true, &spec, text);
}

#[test]
fn quality_of_service_follows_pod_level_resources() {
    let class = |on| {
        let made = world(&[(Gate::PodLevelResources, on)])
            .create(with(pod("p"), json!({"spec": {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}})));
        (made["status"]["qosClass"].clone(), made["spec"]["resources"].is_null())
    };
    assert_eq!(class(true), (json!("Guaranteed"), false));
    assert_eq!(class(false), (json!("BestEffort"), true));
}

#[tokio::test]
async fn bindings_follow_gates() {
    let zone = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "z"}}});
    for on in [true, false] {
        let world = world(&[(Gate::ClearingNominatedNodeNameAfterBinding, on), (Gate::PodTopologyLabelsAdmission, on)]);
        world.create(with(node("n"), zone.clone()));
        world.create(pod("p"));
        let nominate = json!({"status": {"nominatedNodeName": "m"}});
        world.patch(&format!("{PODS}/p/status"), &nominate).await;
        world.server.bind("default", &binding("p", "n")).expect("a binding");
        let bound = world.server.get(&kinds::PODS, "default", "p").expect("the pod");
        assert_eq!(bound.value()["status"]["nominatedNodeName"], if on { Value::Null } else { json!("m") });
        assert_eq!(bound.field("status.nominatedNodeName"), Some(if on { "" } else { "m" }));
        assert_eq!(bound.label("topology.kubernetes.io/zone"), on.then_some("z"));
        let (code, _) = world.patch(&format!("{PODS}/p/status"), &json!({"status": {"nominatedNodeName": "o"}})).await;
        assert_eq!(code, if on { 422 } else { 200 });
        let made = world.create(with(pod("q"), json!({"spec": {"nodeName": "n"}})));
        assert_eq!(
            made["metadata"]["labels"]["topology.kubernetes.io/zone"],
            if on { json!("z") } else { Value::Null }
        );
    }
}

#[test]
fn node_affinity_of_volumes_may_change_with_a_gate() {
    for on in [false, true] {
        let world = world(&[(Gate::MutablePVNodeAffinity, on)]);
        let affinity = |zone: &str| {
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "zone", "operator": "In", "values": [zone]}]}]}})
        };
        let mut volume =
            world.create(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nodeAffinity": affinity("a"),
                "csi": {"driver": "d", "volumeHandle": "h"}}}));
        volume["spec"]["nodeAffinity"] = affinity("b");
        assert_eq!(world.server.update(volume).is_ok(), on);
    }
}

#[test]
fn the_number_of_volumes_of_a_node_may_change_with_a_gate() {
    for on in [false, true] {
        let world = world(&[(Gate::MutableCSINodeAllocatableCount, on)]);
        let mut node = world
            .create(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"},
            "spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": null, "allocatable": {"count": 1}}]}}));
        node["spec"]["drivers"][0]["allocatable"]["count"] = json!(2);
        assert_eq!(world.server.update(node.clone()).is_ok(), on);
        let known = world.server.get(&kinds::CSI_NODES, "", "n").expect("the node").value();
        node["metadata"] = known["metadata"].clone();
        node["spec"]["drivers"][0]["nodeID"] = json!("m");
        assert!(world.server.update(node).is_err());
    }
}

#[test]
fn defaults_follow_gates() {
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "d"}, "spec": {}});
    for on in [false, true] {
        let world = world(&[(Gate::MaxUnavailableStatefulSet, on), (Gate::VolumeLimitScaling, on)]);
        let made = world.create(set.clone());
        let rolling = if on { json!({"partition": 0, "maxUnavailable": 1}) } else { json!({"partition": 0}) };
        assert_eq!(made["spec"]["updateStrategy"]["rollingUpdate"], rolling);
        let made = world.create(driver.clone());
        assert_eq!(made["spec"]["preventPodSchedulingIfMissing"], if on { json!(false) } else { Value::Null });
    }
}

#[test]
fn names_of_services_are_relaxed_by_a_gate() {
    let service = |name: &str| {
        let spec = json!({"ports": [{"port": 80}]});
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    };
    for on in [false, true] {
        let world = world(&[(Gate::RelaxedServiceNameValidation, on)]);
        assert_eq!(world.server.create(service("1a")).is_ok(), on);
        world.server.create(service("a-1")).expect("both rules accept this name");
        world.server.create(service("a.b")).expect_err("a dot");
    }
}

#[test]
fn deletion_costs_are_checked_with_a_gate() {
    for (cost, is_valid) in
        [("10", true), ("-10", true), ("0", true), ("+10", false), ("010", false), ("x", false), ("", false)]
    {
        for on in [false, true] {
            let annotations = json!({"controller.kubernetes.io/pod-deletion-cost": cost});
            let costly = with(pod("p"), json!({"metadata": {"annotations": annotations}}));
            let made = world(&[(Gate::PodDeletionCost, on)]).server.create(costly);
            assert_eq!(made.is_ok(), is_valid || !on, "{cost} {on}");
        }
    }
}
