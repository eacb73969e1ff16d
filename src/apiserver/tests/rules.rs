//! Tests of admission and validation, with the texts of their errors.

use serde_json::{Value, json};

use super::super::kinds;
use super::{PODS, World, node, pod, with};

/// Creates `value` and expects this error code and text.
fn refused(world: &World, value: Value, code: u16, text: &str) {
    let status = world.server.create(value).unwrap_err();
    assert_eq!((status.code, status.message.as_str()), (code, text));
}

/// Checks that a pod with this spec is rejected with one error.
fn invalid(spec: &Value, text: &str) {
    refused(&World::new(), with(pod("p"), json!({"spec": spec})), 422, &format!("Pod \"p\" is invalid: {text}"));
}

fn containers(container: Value) -> Value {
    json!([with(json!({"name": "c", "image": "i"}), container)])
}

fn class(name: &str, value: i64, more: Value) -> Value {
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value});
    with(class, more)
}

#[test]
fn invalid_tolerations_are_rejected() {
    for (toleration, text) in [
        (
            json!({"operator": "Equal"}),
            "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        ),
        (
            json!({"key": "k", "operator": "Exists", "value": "v"}),
            "spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
        ),
        (
            json!({"key": "k", "operator": "Exists", "tolerationSeconds": 3}),
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            json!({"key": "k", "operator": "Gt", "value": "3"}),
            "spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\"",
        ),
        (
            json!({"key": "k", "operator": "Near"}),
            "spec.tolerations[0].operator: Unsupported value: \"Near\": supported values: \"Equal\", \"Exists\"",
        ),
        (
            json!({"key": "k", "operator": "Exists", "effect": "Never"}),
            "spec.tolerations[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
        ),
    ] {
        invalid(&json!({"tolerations": [toleration]}), text);
    }
}

#[test]
fn invalid_spread_constraints_are_rejected() {
    let good = json!({"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"});
    let at = "spec.topologySpreadConstraints[0]";
    for (change, text) in [
        (json!({"maxSkew": 0}), format!("{at}.maxSkew: Invalid value: 0: must be greater than zero")),
        (json!({"topologyKey": ""}), format!("{at}.topologyKey: Required value: can not be empty")),
        (
            json!({"minDomains": 2, "whenUnsatisfiable": "ScheduleAnyway"}),
            format!(
                "{at}.minDomains: Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
            ),
        ),
        (
            json!({"matchLabelKeys": ["a"]}),
            format!("{at}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"),
        ),
        (
            json!({"whenUnsatisfiable": "Maybe"}),
            format!(
                "{at}.whenUnsatisfiable: Unsupported value: \"Maybe\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""
            ),
        ),
    ] {
        invalid(&json!({"topologySpreadConstraints": [with(good.clone(), change)]}), &text);
    }
    invalid(
        &json!({"topologySpreadConstraints": [good, good]}),
        &format!("{at}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: \"{{z, DoNotSchedule}}\""),
    );
}

#[test]
fn invalid_affinity_is_rejected() {
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let at = format!("spec.affinity.nodeAffinity.{required}.nodeSelectorTerms");
    for (selector, text) in [
        (json!({}), format!("{at}: Required value: must have at least one node selector term")),
        (
            json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}),
            format!(
                "{at}[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
        ),
        (
            json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}]}),
            format!(
                "{at}[0].matchFields[0].values: Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            ),
        ),
    ] {
        invalid(&json!({"affinity": {"nodeAffinity": {required: selector}}}), &text);
    }
    let weighted = json!({preferred: [{"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}]});
    invalid(
        &json!({"affinity": {"podAffinity": weighted}}),
        &format!("spec.affinity.podAffinity.{preferred}[0].weight: Invalid value: 101: must be in the range 1-100"),
    );
    let world = World::new();
    let not_a_number =
        json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}]});
    world.create(with(pod("p"), json!({"spec": {"affinity": {"nodeAffinity": {required: not_a_number}}}})));
}

#[test]
fn invalid_resources_and_ports_are_rejected() {
    for (resources, text) in [
        (
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            "requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
        ),
        (
            json!({"requests": {"example.com/gpu": "1"}}),
            "limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            json!({"limits": {"example.com/gpu": "500m"}}),
            "limits[example.com/gpu]: Invalid value: \"500m\": must be an integer",
        ),
        (
            json!({"requests": {"cpu": "-1"}}),
            "requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        ),
    ] {
        let status = World::new()
            .server
            .create(with(pod("p"), json!({"spec": {"containers": containers(json!({"resources": resources}))}})))
            .unwrap_err();
        let text = format!("spec.containers[0].resources.{text}");
        assert!(status.message.contains(&text), "{status} lacks {text}");
    }
    invalid(
        &json!({"containers": containers(json!({"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]}))}),
        "spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//5\"",
    );
    invalid(
        &json!({"hostNetwork": true, "containers": containers(json!({"ports": [{"containerPort": 1, "hostPort": 5}]}))}),
        "spec.containers[0].ports[0].hostPort: Invalid value: 5: must match `containerPort` when `hostNetwork` is true",
    );
    invalid(
        &json!({"nodeName": "n", "schedulingGates": [{"name": "g"}]}),
        "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
    );
}

#[test]
fn invalid_objects_of_other_kinds_are_rejected() {
    let world = World::new();
    refused(
        &world,
        class("c", 1_000_000_001, json!({})),
        422,
        "PriorityClass.scheduling.k8s.io \"c\" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
    );
    let taint = json!({"key": "a", "effect": "NoSchedule"});
    let status = world.server.create(with(node("n"), json!({"spec": {"taints": [taint, taint]}}))).unwrap_err();
    assert!(status.message.contains("metadata.taints[1]: Duplicate value"), "{status}");
    assert!(status.message.ends_with("taints must be unique by key and effect pair"), "{status}");
    let storage = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "p"});
    let made = world.create(storage);
    assert_eq!((&made["reclaimPolicy"], &made["volumeBindingMode"]), (&json!("Delete"), &json!("Immediate")));
    let status = world.server.update(with(made, json!({"provisioner": "q"}))).unwrap_err();
    assert_eq!(
        status.message,
        "StorageClass.storage.k8s.io \"s\" is invalid: provisioner: Invalid value: \"q\": field is immutable"
    );
    let status = world.server.update(with(world.create(class("k", 1, json!({}))), json!({"value": 2}))).unwrap_err();
    assert_eq!(
        status.message,
        "PriorityClass.scheduling.k8s.io \"k\" is invalid: value: Forbidden: may not be changed in an update."
    );
}

#[test]
fn pod_priority_comes_from_its_class() {
    let world = World::new();
    world.create(class("high", 1000, json!({"preemptionPolicy": "Never"})));
    let made = world.create(with(pod("a"), json!({"spec": {"priorityClassName": "high"}})));
    assert_eq!((&made["spec"]["priority"], &made["spec"]["preemptionPolicy"]), (&json!(1000), &json!("Never")));
    refused(
        &world,
        with(pod("b"), json!({"spec": {"priorityClassName": "none"}})),
        403,
        "pods \"b\" is forbidden: no PriorityClass with name none was found",
    );
    refused(
        &world,
        with(pod("b"), json!({"spec": {"priority": 7}})),
        403,
        "pods \"b\" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name",
    );
    world.create(class("usual", 5, json!({"globalDefault": true})));
    let made = world.create(pod("c"));
    assert_eq!((&made["spec"]["priority"], &made["spec"]["priorityClassName"]), (&json!(5), &json!("usual")));
    refused(
        &world,
        class("other", 6, json!({"globalDefault": true})),
        403,
        "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is already marked as default. Only one default can exist",
    );
}

#[test]
fn limit_ranges_set_defaults_and_bounds() {
    let world = World::new();
    world.create(json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"}, "spec": {"limits": [
        {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}, "min": {"cpu": "200m"}, "max": {"memory": "2Gi"}},
        {"type": "Pod", "max": {"memory": "3Gi"}}]}}));
    let made = world.create(pod("a"));
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container c; memory limit for container c"
    );
    let small = containers(json!({"resources": {"requests": {"cpu": "100m"}}}));
    refused(
        &world,
        with(pod("b"), json!({"spec": {"containers": small}})),
        403,
        "pods \"b\" is forbidden: minimum cpu usage per Container is 200m, but request is 100m",
    );
    let two = json!([{"name": "a", "image": "i", "resources": {"limits": {"memory": "2Gi"}}}, {"name": "b", "image": "i", "resources": {"limits": {"memory": "2Gi"}}}]);
    refused(
        &world,
        with(pod("b"), json!({"spec": {"containers": two}})),
        403,
        "pods \"b\" is forbidden: maximum memory usage per Pod is 3Gi, but limit is 4Gi",
    );
}

#[test]
fn runtime_classes_add_overhead() {
    let world = World::new();
    world.create(json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "h",
        "overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": {"nodeSelector": {"runtime": "r"}, "tolerations": [{"key": "r", "operator": "Exists"}]}}));
    let made = world.create(with(pod("a"), json!({"spec": {"runtimeClassName": "r"}})));
    assert_eq!(
        (&made["spec"]["overhead"], &made["spec"]["nodeSelector"]),
        (&json!({"cpu": "250m"}), &json!({"runtime": "r"}))
    );
    assert!(made["spec"]["tolerations"].as_array().unwrap().contains(&json!({"key": "r", "operator": "Exists"})));
    refused(
        &world,
        with(pod("b"), json!({"spec": {"runtimeClassName": "x"}})),
        403,
        "pods \"b\" is forbidden: pod rejected: RuntimeClass \"x\" not found",
    );
    refused(
        &world,
        with(pod("b"), json!({"spec": {"overhead": {"cpu": "1"}}})),
        403,
        "pods \"b\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    );
    refused(
        &world,
        with(pod("b"), json!({"spec": {"runtimeClassName": "r", "nodeSelector": {"runtime": "q"}}})),
        403,
        "pods \"b\" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[runtime] = r; pod.spec.nodeSelector[runtime] = q",
    );
}

#[tokio::test]
async fn pod_updates_change_only_mutable_fields() {
    let world = World::new();
    let url = format!("{PODS}/a");
    let toleration = json!({"key": "x", "operator": "Exists"});
    let gates = json!([{"name": "g"}, {"name": "h"}]);
    world.create(with(pod("a"), json!({"spec": {"schedulingGates": gates, "tolerations": [toleration]}})));
    let (code, status) = world.patch(&url, &json!({"spec": {"schedulingGates": [{"name": "q"}]}})).await;
    assert_eq!(
        (code.as_u16(), status["message"].as_str().unwrap()),
        (
            422,
            "Pod \"a\" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'q'"
        )
    );
    let (code, changed) = world.patch(&url, &json!({"spec": {"nodeSelector": {"a": "b"}}})).await;
    assert_eq!(
        (code.as_u16(), &changed["metadata"]["generation"]),
        (200, &json!(2)),
        "a gated pod may become choosier"
    );
    let (code, _) = world.patch(&url, &json!({"spec": {"schedulingGates": [{"$patch": "delete", "name": "g"}, {"$patch": "delete", "name": "h"}]}})).await;
    assert_eq!(code, 200);
    for change in [json!({"nodeName": "n"}), json!({"nodeSelector": {"c": "d"}}), json!({"priority": 5})] {
        let (code, status) = world.patch(&url, &json!({"spec": change})).await;
        assert_eq!(code, 422, "{change}");
        assert!(status["message"].as_str().unwrap().starts_with("Pod \"a\" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"), "{status}");
    }
    let (code, _) = world
        .patch(&url, &json!({"spec": {"containers": [{"name": "c", "image": "i:2"}], "activeDeadlineSeconds": 9}}))
        .await;
    assert_eq!(code, 200);
    let (code, status) = world.patch(&url, &json!({"spec": {"tolerations": []}})).await;
    assert_eq!(
        (code.as_u16(), status["message"].as_str().unwrap()),
        (
            422,
            "Pod \"a\" is invalid: spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
        )
    );
    world.post(&format!("{url}/binding"), &super::binding("a", "n")).await;
    let (code, status) = world.patch(&format!("{url}/status"), &json!({"status": {"nominatedNodeName": "m"}})).await;
    assert_eq!(
        (code.as_u16(), status["message"].as_str().unwrap()),
        (
            422,
            "Pod \"a\" is invalid: status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
        )
    );
    let (code, _) = world.patch(&format!("{url}/status"), &json!({"status": {"qosClass": "Guaranteed"}})).await;
    assert_eq!(code, 422);
}

#[test]
fn claims_and_volumes_are_defaulted_and_validated() {
    let world = World::new();
    let claim = |name: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
    };
    let plain = world.create(claim("a"));
    assert_eq!((&plain["status"]["phase"], &plain["spec"]["storageClassName"]), (&json!("Pending"), &Value::Null));
    assert_eq!(plain["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    world.create(
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p", "metadata": {"name": "s",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}}),
    );
    let classed = world.create(claim("b"));
    assert_eq!(classed["spec"]["storageClassName"], "s");
    let bound = world
        .server
        .update(with(classed, json!({"spec": {"volumeName": "v"}, "metadata": {"resourceVersion": ""}})))
        .unwrap()
        .value();
    assert_eq!(bound["spec"]["volumeName"], "v");
    let status = world.server.update(with(bound, json!({"spec": {"volumeName": "w"}}))).unwrap_err();
    assert!(status.message.starts_with("PersistentVolumeClaim \"b\" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n- volumeName: \"v\"\n+ volumeName: \"w\""), "{status}");
    let volume = world.create(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}));
    assert_eq!(volume["status"]["lastPhaseTransitionTime"], "2026-01-01T00:00:00Z");
    let status = world.server.update(with(volume.clone(), json!({"spec": {"hostPath": {"path": "/b"}}}))).unwrap_err();
    assert!(status.message.contains("spec.persistentvolumesource is immutable after creation"), "{status}");
    world.pass(7);
    let available = world
        .server
        .patch_status(&kinds::PERSISTENT_VOLUMES, "", "v", json!({"status": {"phase": "Available"}}))
        .unwrap();
    assert_eq!(available.value()["status"]["lastPhaseTransitionTime"], "2026-01-01T00:00:07Z");
}

#[tokio::test]
async fn namespace_must_exist_and_not_terminate() {
    let world = World::new();
    let mut value = pod("a");
    value["metadata"]["namespace"] = json!("none");
    refused(&world, value.clone(), 404, "namespaces \"none\" not found");
    world.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "none"}}));
    world.create(value.clone());
    let (code, ending) = world.remove("/api/v1/namespaces/none", &Value::Null).await;
    assert_eq!((code.as_u16(), &ending["status"]["phase"]), (200, &json!("Terminating")));
    value["metadata"]["name"] = json!("b");
    refused(
        &world,
        value,
        403,
        "pods \"b\" is forbidden: unable to create new content in namespace none because it is being terminated",
    );
    let (code, _) = world
        .put("/api/v1/namespaces/none/finalize", &json!({"metadata": {"name": "none"}, "spec": {"finalizers": []}}))
        .await;
    assert_eq!(code, 200);
    assert!(world.server.get(&kinds::NAMESPACES, "", "none").is_none());
    let (code, status) = world.post("/api/v1/namespaces/kube-system/pods", &pod("a")).await;
    assert_eq!(
        (code.as_u16(), status["message"].as_str().unwrap()),
        (400, "the namespace of the provided object does not match the namespace sent on the request")
    );
}

#[tokio::test]
async fn malformed_or_mistyped_bodies_are_rejected() {
    let world = World::new();
    let (code, status) = world.call(http::Method::POST, PODS, "application/json", "{").await;
    assert_eq!(code, 400);
    assert!(
        status["message"].as_str().unwrap().starts_with(
            "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: "
        ),
        "{status}"
    );
    let (code, _) = world.call(http::Method::POST, PODS, "application/vnd.kubernetes.protobuf", "k8s").await;
    assert_eq!(code, 400);
    let (code, _) = world.call(http::Method::POST, PODS, "application/cbor", "k8s").await;
    assert_eq!(code, 415);
    let (code, _) = world.call(http::Method::PATCH, &format!("{PODS}/a"), "application/json", "{}").await;
    assert_eq!(code, 415);
    let (code, status) = world.post(PODS, &node("n")).await;
    assert_eq!((code.as_u16(), status["reason"].as_str().unwrap()), (400, "BadRequest"));
    for (change, text) in [
        (
            json!({"metadata": {"labels": {"version": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (json!({"spec": []}), "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
    ] {
        let (code, status) = world.post(PODS, &with(pod("t"), change)).await;
        let text = format!("Pod in version \"v1\" cannot be handled as a Pod: {text}");
        assert_eq!((code.as_u16(), status["message"].as_str().unwrap()), (400, &*text));
    }
    let (code, _) = world.post(PODS, &with(pod("t"), json!({"spec": {"priority": "high"}}))).await;
    assert_eq!(code, 400);
    let (code, _) = world
        .call(
            http::Method::POST,
            PODS,
            "application/yaml",
            "metadata: {name: y}\nspec: {containers: [{name: c, image: i}]}",
        )
        .await;
    assert_eq!(code, 201);
}
