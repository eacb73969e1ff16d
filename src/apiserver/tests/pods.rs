//! Tests of a pod's life: it is created, bound, its status is written, and it is deleted. Also tests of events about it.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::super::kinds;
use super::{PODS, World, binding, node, pod, with};

#[tokio::test]
async fn created_pod_gets_metadata_and_defaults() {
    let world = World::new();
    let (code, made) = world.post(PODS, &with(pod("a"), json!({"metadata": {"uid": "mine"}}))).await;
    assert_eq!(code, 201);
    assert_eq!(made["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_ne!(made["metadata"]["uid"], "mine");
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(
        (&made["spec"]["priority"], &made["spec"]["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    assert_eq!(made["spec"]["tolerations"].as_array().unwrap().len(), 2);
    let (code, again) = world.get(&format!("{PODS}/a")).await;
    assert_eq!((code, &again), (http::StatusCode::OK, &made));
    let (code, status) = world.post(PODS, &pod("a")).await;
    assert_eq!((code.as_u16(), status["message"].as_str().unwrap()), (409, "pods \"a\" already exists"));
    assert_eq!(status["reason"], "AlreadyExists");
}

#[tokio::test]
async fn generated_names_are_truncated_and_unique() {
    let world = World::new();
    let mut value = pod("");
    value["metadata"] = json!({"generateName": "p-".repeat(40)});
    let (_, one) = world.post(PODS, &value).await;
    let (_, two) = world.post(PODS, &value).await;
    assert_eq!(one["metadata"]["name"].as_str().unwrap().len(), 63);
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
}

#[tokio::test]
async fn gated_pod_has_a_condition_and_rejects_bindings() {
    let world = World::new();
    let made = world.create(with(pod("a"), json!({"spec": {"schedulingGates": [{"name": "g"}]}})));
    let condition = &made["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("PodScheduled"), &json!("SchedulingGated")));
    let (code, status) = world.post(&format!("{PODS}/a/binding"), &binding("a", "n")).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods/binding \"a\": pod a has non-empty .spec.schedulingGates"
    );
}

#[tokio::test]
async fn match_label_keys_become_expressions() {
    let world = World::new();
    let made = world.create(with(
        pod("a"),
        json!({"metadata": {"labels": {"v": "1"}}, "spec": {"topologySpreadConstraints": [{"maxSkew": 1,
            "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["v", "none"],
            "labelSelector": {}}]}}),
    ));
    assert_eq!(
        made["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"],
        json!([{"key": "v", "operator": "In", "values": ["1"]}])
    );
    let term =
        json!({"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["v", "none"], "mismatchLabelKeys": ["w"]});
    let made = world.create(with(
        pod("b"),
        json!({"metadata": {"labels": {"v": "1", "w": "2"}}, "spec": {"affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
        }}}),
    ));
    let merged = json!([
        {"key": "v", "operator": "In", "values": ["1"]}, {"key": "w", "operator": "NotIn", "values": ["2"]},
    ]);
    let affinity = &made["spec"]["affinity"];
    let near = &affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0];
    let away = &affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
    assert_eq!(near["labelSelector"]["matchExpressions"], merged);
    assert_eq!(away["labelSelector"]["matchExpressions"], merged);
}

#[tokio::test]
async fn binding_sets_node_conditions_and_labels() {
    let world = World::new();
    world.create(with(node("n"), json!({"metadata": {"labels": {"topology.kubernetes.io/zone": "z1", "other": "x"}}})));
    world.create(pod("a"));
    world
        .patch(
            &format!("{PODS}/a/status"),
            &json!({"status": {"nominatedNodeName": "m", "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}]}}),
        )
        .await;
    world.pass(5);
    let (code, reply) = world
        .post(&format!("{PODS}/a/binding"), &with(binding("a", "n"), json!({"metadata": {"annotations": {"k": "v"}}})))
        .await;
    assert_eq!(
        (code.as_u16(), reply),
        (201, json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}))
    );
    let object = world.server.get(&kinds::PODS, "default", "a").unwrap();
    let bound = object.value();
    assert_eq!(bound["spec"]["nodeName"], "n");
    assert_eq!(bound["status"]["nominatedNodeName"], Value::Null);
    assert_eq!(
        bound["status"]["conditions"],
        json!([{"type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "2026-01-01T00:00:05Z"}])
    );
    assert_eq!(bound["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z1"}));
    assert_eq!(bound["metadata"]["annotations"], json!({"k": "v"}));
    assert_eq!(bound["metadata"]["generation"], 1);
    assert_eq!(object.field("spec.nodeName"), Some("n"));
    // Binding stores the same bytes as an update would, so an update with the same content is not a write.
    let same = world.server.update(bound.clone()).unwrap();
    assert_eq!(same.version(), object.version());
    let refused = world.post(&format!("{PODS}/a/binding"), &binding("a", "m")).await.1;
    assert_eq!(
        refused["message"],
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n\""
    );
    assert_eq!(refused["details"], json!({"name": "a", "kind": "pods/binding"}));
}

#[tokio::test]
async fn binding_errors_have_upstreams_order() {
    let world = World::new();
    let made = world.create(pod("a"));
    let url = format!("{PODS}/a/binding");
    let uid = made["metadata"]["uid"].as_str().unwrap();
    for (body, code, text) in [
        (binding("b", "n"), 400, "name in URL does not match name in Binding object".to_owned()),
        (
            with(binding("a", "n"), json!({"target": {"kind": "Foo"}})),
            500,
            "target.kind: Unsupported value: \"Foo\": supported values: \"Node\", \"<empty>\"".to_owned(),
        ),
        (binding("a", ""), 500, "target.name: Required value".to_owned()),
        (
            with(binding("a", "n"), json!({"metadata": {"uid": "bad"}})),
            409,
            format!(
                "Operation cannot be fulfilled on pods \"a\": StorageError: invalid object, Code: 4, \
                 Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
                 UID in precondition: bad, UID in object meta: {uid}"
            ),
        ),
    ] {
        let (got, status) = world.post(&url, &body).await;
        assert_eq!((got.as_u16(), status["message"].as_str().unwrap()), (code, &*text));
    }
    let (code, status) = world.post(&format!("{PODS}/nope/binding"), &binding("nope", "n")).await;
    assert_eq!((code.as_u16(), status["message"].as_str().unwrap()), (404, "pods \"nope\" not found"));
    let (code, _) = world.post("/api/v1/namespaces/default/bindings", &binding("a", "n")).await;
    assert_eq!(code, 201);
    world.server.delete(&kinds::PODS, "default", "a", &super::super::DeleteOptions::default()).unwrap();
    let (_, status) = world.post(&url, &binding("a", "n")).await;
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is being deleted, cannot be assigned to a host"
    );
}

#[tokio::test]
async fn status_patch_changes_only_the_status() {
    let world = World::new();
    let made = world.create(pod("a"));
    let url = format!("{PODS}/a/status");
    let patch = json!({"metadata": {"uid": made["metadata"]["uid"]}, "spec": {"nodeName": "x"}, "status": {
        "$setElementOrder/conditions": [{"type": "PodScheduled"}],
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m",
            "observedGeneration": 1, "lastProbeTime": null}]}});
    let (code, patched) = world.patch(&url, &patch).await;
    assert_eq!(code, 200);
    assert_eq!(patched["spec"], made["spec"]);
    assert_eq!(patched["status"]["qosClass"], "BestEffort");
    assert_eq!(patched["status"]["conditions"][0]["message"], "m");
    let (_, again) = world.patch(&url, &patch).await;
    assert_eq!(again, patched, "the same patch is no write");
    let (code, status) = world.patch(&url, &json!({"metadata": {"uid": "zzz"}})).await;
    assert_eq!(code, 422);
    assert_eq!(status["message"], "Pod \"a\" is invalid: metadata.uid: Invalid value: \"zzz\": field is immutable");
    let (code, status) = world.patch(&url, &json!({"metadata": {"resourceVersion": "1"}})).await;
    assert_eq!((code.as_u16(), status["reason"].as_str().unwrap()), (409, "Conflict"));
    let (code, _) = world.patch(&format!("{PODS}/none/status"), &json!({})).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn deletion_waits_for_the_grace_period() {
    let world = World::new();
    let url = format!("{PODS}/a");
    world.create(pod("a"));
    world.post(&format!("{url}/binding"), &binding("a", "n")).await;
    let (code, marked) = world.remove(&url, &Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["generation"], 2);
    let (_, same) = world.remove(&url, &Value::Null).await;
    assert_eq!(same, marked, "a second delete changes nothing");
    let (_, shorter) = world.remove(&url, &json!({"gracePeriodSeconds": 10})).await;
    assert_eq!(shorter["metadata"]["deletionTimestamp"], "2026-01-01T00:00:10Z");
    let version = world.server.version();
    world.remove(&url, &json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(world.get(&url).await.0, 404);
    assert_eq!(world.server.version(), version + 2, "marked, then gone");
}

#[tokio::test]
async fn pending_pod_is_deleted_at_once_unless_it_has_finalizers() {
    let world = World::new();
    world.create(pod("a"));
    world.remove(&format!("{PODS}/a"), &Value::Null).await;
    assert_eq!(world.get(&format!("{PODS}/a")).await.0, 404);
    world.create(with(pod("b"), json!({"metadata": {"finalizers": ["example.com/f"]}})));
    let (_, kept) = world.remove(&format!("{PODS}/b"), &Value::Null).await;
    assert_eq!(kept["metadata"]["deletionGracePeriodSeconds"], 0);
    let (code, _) = world.patch(&format!("{PODS}/b"), &json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(code, 200);
    assert_eq!(world.get(&format!("{PODS}/b")).await.0, 404);
}

#[tokio::test]
async fn failed_delete_precondition_is_a_conflict() {
    let world = World::new();
    let made = world.create(pod("d4"));
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let (code, status) = world.remove(&format!("{PODS}/d4"), &json!({"preconditions": {"uid": "zz"}})).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        format!(
            "Operation cannot be fulfilled on Pod \"d4\": the UID in the precondition (zz) does not match the UID in \
             record ({uid}). The object might have been deleted and then recreated"
        )
    );
    let (_, reply) = world.remove("/api/v1/nodes/none", &Value::Null).await;
    assert_eq!(reply["message"], "nodes \"none\" not found");
    world.create(node("n"));
    let (_, reply) = world.remove("/api/v1/nodes/n", &Value::Null).await;
    assert_eq!((&reply["status"], &reply["details"]["kind"]), (&json!("Success"), &json!("nodes")));
}

#[tokio::test]
async fn put_with_a_stale_version_is_a_conflict() {
    let world = World::new();
    let made = world.create(pod("a"));
    let url = format!("{PODS}/a");
    let labelled = with(made.clone(), json!({"metadata": {"labels": {"a": "1"}}}));
    let (code, changed) = world.put(&url, &labelled).await;
    assert_eq!(code, 200);
    assert_eq!(changed["metadata"]["generation"], 1);
    let (code, status) = world.put(&url, &labelled).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods \"a\": the object has been modified; please apply your changes to the \
         latest version and try again"
    );
    let (code, same) = world.put(&url, &changed).await;
    assert_eq!((code.as_u16(), &same), (200, &changed), "the same content is no write");
    assert_eq!(world.put(&format!("{PODS}/b"), &pod("b")).await.0, 404);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l";
    assert_eq!(world.put(leases, &lease).await.0, 201);
    let (code, status) = world.put(leases, &lease).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
         for an update"
    );
}

#[tokio::test]
async fn core_and_events_api_share_the_events() {
    let world = World::new();
    let url = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"metadata": {"name": "e1"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        "reason": "Scheduled", "action": "Binding", "note": "hello", "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host", "regarding": {"kind": "Pod", "name": "a", "namespace": "default"}});
    assert_eq!(world.post(url, &event).await.0, 201);
    let (code, status) = world.post(url, &event).await;
    assert_eq!(
        (code.as_u16(), status["message"].as_str().unwrap()),
        (409, "events.events.k8s.io \"e1\" already exists")
    );
    let (_, legacy) = world.get("/api/v1/namespaces/default/events/e1").await;
    assert_eq!((&legacy["apiVersion"], &legacy["message"]), (&json!("v1"), &json!("hello")));
    assert_eq!(legacy["involvedObject"]["name"], "a");
    let (_, list) = world.get("/api/v1/events?fieldSelector=involvedObject.name%3Da,reason%3DScheduled").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["kind"], Value::Null);
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    let (code, patched) = world.patch(&format!("{url}/e1"), &series).await;
    assert_eq!((code.as_u16(), &patched["series"]["count"]), (200, &json!(2)));
    let (code, status) = world.patch(&format!("{url}/e1"), &json!({"note": "other"})).await;
    assert_eq!(code, 422);
    assert!(status["message"].as_str().unwrap().contains("field is immutable"), "{status}");
    let long = with(event.clone(), json!({"metadata": {"name": "e2"}, "note": "x".repeat(1025)}));
    let (_, status) = world.post(url, &long).await;
    assert_eq!(
        status["message"],
        "Event \"e2\" is invalid: message: Invalid value: \"\": can have at most 1024 characters"
    );
    assert_eq!(world.patch(&format!("{url}/none"), &series).await.0, 404);
    world.pass(3599);
    assert_eq!(world.get(&format!("{url}/e1")).await.0, 200);
    world.pass(1);
    assert_eq!(world.get(&format!("{url}/e1")).await.0, 404);
}

#[tokio::test]
async fn loaded_objects_are_kept_unchanged() {
    let world = World::with(|options| options.create_namespaces = true);
    let dumped = with(
        pod("a"),
        json!({"metadata": {"namespace": "elsewhere", "uid": "u-1", "creationTimestamp": "2025-01-01T00:00:00Z",
            "resourceVersion": "77", "generation": 4},
            "spec": {"nodeName": "n", "priority": 9, "priorityClassName": "gone"},
            "status": {"phase": "Running", "startTime": "2025-01-01T00:00:10Z"}}),
    );
    let loaded = world.server.load(dumped).unwrap().value();
    assert_eq!((&loaded["metadata"]["uid"], &loaded["metadata"]["generation"]), (&json!("u-1"), &json!(4)));
    assert_eq!((&loaded["status"]["phase"], &loaded["spec"]["priority"]), (&json!("Running"), &json!(9)));
    assert!(world.server.get(&kinds::NAMESPACES, "", "elsewhere").is_some());
    let fresh = world.server.load(pod("b")).unwrap().value();
    assert_eq!((&fresh["status"]["phase"], &fresh["spec"]["priority"]), (&json!("Pending"), &json!(0)));
}

#[tokio::test]
async fn kube_client_creates_binds_and_deletes_a_pod() {
    let world = World::new();
    let pods: Api<Pod> = Api::default_namespaced(world.server.client());
    let made = pods.create(&PostParams::default(), &serde_json::from_value(pod("a")).unwrap()).await.unwrap();
    let body = binding("a", "n");
    let bound: Value = pods.create_subresource("binding", "a", &PostParams::default(), &body).await.unwrap();
    assert_eq!(bound["status"], "Success");
    let patch = Patch::Strategic(json!({"status": {"phase": "Running"}}));
    let running = pods.patch_status("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(running.status.unwrap().phase.as_deref(), Some("Running"));
    let stale = pods.replace("a", &PostParams::default(), &made).await.unwrap_err();
    assert!(matches!(stale, kube::Error::Api(status) if status.code == 409 && status.reason == "Conflict"));
    let marked = pods.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    let found = pods.list(&ListParams::default().fields("spec.nodeName=n")).await.unwrap();
    assert_eq!(found.items.len(), 1);
    pods.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(pods.get_opt("a").await.unwrap().is_none());
    assert_eq!(world.server.pending(), 0);
}

/// Regression test: a loaded object with a slash in its name was stored, and was listed by the part after the slash.
#[tokio::test]
async fn loaded_object_names_must_be_path_segments() {
    let world = World::new();
    let check = |name: &str, expected: &str| {
        let class =
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name, "uid": "u"}});
        let message = world.server.load(class).map_err(|status| status.message).expect_err(name);
        assert_eq!(message, format!("StorageClass.storage.k8s.io \"{name}\" is invalid: metadata.name: {expected}"));
    };
    check("a/b", "Invalid value: \"a/b\": may not contain '/'");
    check("a%b", "Invalid value: \"a%b\": may not contain '%'");
    check("..", "Invalid value: \"..\": may not be '..'");
    check("", "Required value: name or generateName is required");
}
