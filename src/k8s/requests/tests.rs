//! Tests of each rule for a pod's requests and limits.

#![expect(clippy::needless_pass_by_value, reason = "JSON literals are easier to read when passed by value")]

use serde_json::{Value, json};

use super::{
    DEFAULT_REQUESTS, RequestOptions, Requests, are_pod_level_requests_set, are_pod_level_resources_set,
    non_missing_requests, pod_limits, pod_requests,
};
use crate::k8s::{Pod, Quantity};

const SPEC: RequestOptions = RequestOptions {
    use_status: false,
    use_pod_level_status: false,
    exclude_overhead: false,
    skip_pod_level: false,
    skip_containers: false,
    use_claim_status: false,
    non_missing: &[],
};
const STATUS: RequestOptions = RequestOptions { use_status: true, use_pod_level_status: true, ..SPEC };

fn pod(spec: Value, status: Value) -> Pod {
    serde_json::from_value(json!({"spec": spec, "status": status})).expect("a pod")
}

fn text(requests: &Requests<'_>) -> String {
    requests.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect::<Vec<_>>().join(" ")
}

fn check(spec: Value, status: Value, options: &RequestOptions, expected: &str) {
    let pod = pod(spec, status);
    let requests = pod_requests(&pod, options);
    assert_eq!((text(&requests).as_str(), requests.is_empty()), (expected, expected.is_empty()), "{:?}", pod.spec);
}

fn container(name: &str, requests: Value) -> Value {
    json!({"name": name, "resources": {"requests": requests}})
}

fn sidecar(name: &str, requests: Value) -> Value {
    json!({"name": name, "resources": {"requests": requests}, "restartPolicy": "Always"})
}

#[test]
fn containers_are_added_up_exactly() {
    check(json!({"containers": [container("a", json!({}))]}), json!({}), &SPEC, "");
    let spec = json!({"containers": [
        container("a", json!({"cpu": "0.0005", "memory": "1Gi", "example.com/x": "0"})),
        container("b", json!({"cpu": "500u", "memory": "512Mi"})),
        container("c", Value::Null),
    ]});
    check(spec.clone(), json!({}), &SPEC, "cpu=1m example.com/x=0 memory=1536Mi");
    let pod = pod(spec, json!({}));
    let requests = pod_requests(&pod, &SPEC);
    assert_eq!(requests.units("cpu"), 1, "rounded once, after adding");
    assert_eq!(requests.units("memory"), 1536 << 20);
    assert_eq!(requests.units("absent"), 0);
    assert_eq!(requests.get("example.com/x"), Some(Quantity::ZERO));
    assert_eq!(requests.get("absent"), None);
    assert_eq!(requests.to_resource_list().get("cpu"), Some(&Quantity::from_milli(1)));
}

#[test]
fn init_containers_run_one_by_one_beside_earlier_sidecars() {
    let check = |init: Value, expected: &str| {
        let spec = json!({"containers": [container("a", json!({"cpu": "2"}))], "initContainers": init});
        check(spec, json!({}), &SPEC, expected);
    };
    let one = |name, cpu| container(name, json!({"cpu": cpu}));
    let side = |name, cpu| sidecar(name, json!({"cpu": cpu}));
    check(json!([one("i", "1"), one("j", "3")]), "cpu=3");
    check(json!([one("i", "1")]), "cpu=2");
    check(json!([side("s", "1")]), "cpu=3");
    check(json!([side("s", "1"), one("i", "5")]), "cpu=6");
    check(json!([one("i", "5"), side("s", "1")]), "cpu=5");
    check(json!([side("s", "1"), one("i", "1"), side("t", "2"), one("j", "3")]), "cpu=6");
}

/// Regression test: in a random cluster, the comparison of such a pod's old and new requests differed from upstream.
#[test]
fn overflowing_amounts_depend_on_the_amounts_they_were_compared_with() {
    let check = |memory: &str, expected: i64| {
        let huge = container("i", json!({"memory": "1000P"}));
        let pod = pod(
            json!({"containers": [container("a", json!({"memory": memory}))], "initContainers": [huge]}),
            json!({}),
        );
        let found = pod_requests(&pod, &SPEC).get("memory").expect("it is requested");
        assert_eq!((found.milli_value(), found.to_string().as_str()), (expected, "1E"), "{memory}");
    };
    check("0", 0);
    check("512Mi", 0);
    // 10²¹ modulo 2⁶⁴.
    check("0.5Gi", 3_875_820_019_684_212_736);
}

#[test]
fn an_init_container_may_request_a_resource_of_its_own() {
    let spec = json!({
        "containers": [container("a", json!({"cpu": "2"}))],
        "initContainers": [sidecar("s", json!({"example.com/x": 1})), container("i", json!({"memory": "1Gi"}))],
    });
    check(spec, json!({}), &SPEC, "cpu=2 example.com/x=1 memory=1Gi");
}

#[test]
fn overhead_is_added_unless_excluded() {
    let spec =
        json!({"containers": [container("a", json!({"cpu": "2"}))], "overhead": {"cpu": "100m", "memory": "1Mi"}});
    check(spec.clone(), json!({}), &SPEC, "cpu=2100m memory=1Mi");
    check(spec, json!({}), &RequestOptions { exclude_overhead: true, ..SPEC }, "cpu=2");
}

#[test]
fn pod_level_requests_replace_supported_resources() {
    let spec = json!({
        "containers": [container("a", json!({"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi"}))],
        "resources": {"requests": {"cpu": "3", "hugepages-2Mi": "4Mi", "ephemeral-storage": "9Gi"}},
        "overhead": {"cpu": "1"},
    });
    check(spec.clone(), json!({}), &SPEC, "cpu=4 ephemeral-storage=1Gi hugepages-2Mi=4Mi memory=1Gi");
    let without = RequestOptions { skip_pod_level: true, ..SPEC };
    check(spec.clone(), json!({}), &without, "cpu=3 ephemeral-storage=1Gi memory=1Gi");
    check(spec, json!({}), &RequestOptions { skip_containers: true, ..SPEC }, "cpu=4 hugepages-2Mi=4Mi");

    let check_set = |resources: Value, requests: bool, any: bool| {
        let pod = pod(json!({"resources": resources}), json!({}));
        assert_eq!(are_pod_level_requests_set(&pod), requests, "{resources}");
        assert_eq!(are_pod_level_resources_set(&pod), any, "{resources}");
    };
    check_set(Value::Null, false, false);
    check_set(json!({}), false, false);
    check_set(json!({"requests": {"example.com/x": 1}}), false, false);
    check_set(json!({"requests": {"memory": 1}}), true, true);
    check_set(json!({"limits": {"hugepages-1Gi": 1}}), false, true);
}

#[test]
fn containers_without_a_request_get_the_default() {
    let spec = json!({
        "containers": [container("a", json!({"cpu": "1"})), container("b", json!({"memory": 0}))],
        "initContainers": [sidecar("s", json!({}))],
    });
    let options = RequestOptions { non_missing: DEFAULT_REQUESTS, ..SPEC };
    check(spec, json!({}), &options, "cpu=1200m memory=419430400");
}

#[test]
fn defaults_depend_on_pod_level_requests() {
    let check = |spec: Value, is_set: bool, expected: &[&str]| {
        let pod = pod(spec, json!({}));
        let requests = pod_requests(&pod, &SPEC);
        let names: Vec<_> = non_missing_requests(&requests, is_set).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected);
    };
    let spec = |requests: Value| json!({"resources": {"requests": requests}});
    check(spec(json!({"cpu": "1", "memory": "1"})), false, &["cpu", "memory"]);
    check(spec(json!({"cpu": "1", "memory": "1"})), true, &[]);
    check(spec(json!({"cpu": "1"})), true, &["memory"]);
    check(spec(json!({"memory": "1"})), true, &["cpu"]);
    check(spec(json!({"hugepages-2Mi": "2Mi"})), true, &["cpu", "memory"]);
}

fn resized(reason: Option<&str>) -> Value {
    let conditions = match reason {
        Some(reason) => json!([{"type": "PodResizePending", "status": "True", "reason": reason}]),
        None => json!([]),
    };
    json!({
        "conditions": conditions,
        "containerStatuses": [{
            "name": "a", "allocatedResources": {"cpu": "2", "memory": "3Gi"},
            "resources": {"requests": {"cpu": "3", "memory": "1Gi"}},
        }, {
            "name": "no-resources", "allocatedResources": {"cpu": "50"},
        }],
        "initContainerStatuses": [
            {"name": "s", "resources": {"requests": {"cpu": "4"}}},
            {"name": "i", "resources": {"requests": {"cpu": "100"}}},
        ],
    })
}

#[test]
fn greater_status_amounts_count_and_alone_for_an_infeasible_resize() {
    let spec =
        |cpu: &str| json!({"containers": [container("a", json!({"cpu": cpu, "memory": "2Gi", "example.com/x": 1}))]});
    check(spec("1"), resized(None), &SPEC, "cpu=1 example.com/x=1 memory=2Gi");
    check(spec("1"), resized(None), &STATUS, "cpu=3 example.com/x=1 memory=3Gi");
    check(spec("5"), resized(None), &STATUS, "cpu=5 example.com/x=1 memory=3Gi");
    check(spec("5"), resized(Some("Deferred")), &STATUS, "cpu=5 example.com/x=1 memory=3Gi");
    check(spec("5"), resized(Some("Infeasible")), &STATUS, "cpu=3 memory=3Gi");
}

#[test]
fn status_of_init_containers_counts_only_for_sidecars() {
    let spec = json!({
        "containers": [container("no-resources", json!({"cpu": "1"}))],
        "initContainers": [sidecar("s", json!({"cpu": "1"})), container("i", json!({"cpu": "2"}))],
    });
    check(spec, resized(None), &STATUS, "cpu=6");
}

#[test]
fn pod_level_status_counts_if_greater() {
    let spec = json!({"resources": {"requests": {"cpu": "1", "memory": "2Gi"}}});
    let status = |reason: &str| {
        json!({
            "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"},
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        })
    };
    check(spec.clone(), status("Deferred"), &STATUS, "cpu=3 memory=2Gi");
    check(spec.clone(), status("Infeasible"), &STATUS, "cpu=3 memory=0");
    let off = RequestOptions { use_pod_level_status: false, ..STATUS };
    check(spec.clone(), status("Deferred"), &off, "cpu=1 memory=2Gi");
    check(spec, json!({"allocatedResources": {"cpu": "3"}}), &STATUS, "cpu=1 memory=2Gi");
}

#[test]
fn resources_of_claims_are_added_only_on_request() {
    let spec = json!({"containers": [container("a", json!({"cpu": "1"}))]});
    let status = json!({"nodeAllocatableResourceClaimStatuses": [
        {"resourceClaimName": "c", "resources": {"cpu": "2"}}, {"resourceClaimName": "d", "resources": {"memory": "1Gi"}},
    ]});
    check(spec.clone(), status.clone(), &SPEC, "cpu=1");
    check(spec, status, &RequestOptions { use_claim_status: true, ..SPEC }, "cpu=3 memory=1Gi");
}

#[test]
fn limits_are_computed_like_requests() {
    let limited = |name: &str, limits: Value, policy: Value| json!({"name": name, "resources": {"limits": limits}, "restartPolicy": policy});
    let spec = json!({
        "containers": [limited("a", json!({"cpu": "1", "memory": "0"}), Value::Null)],
        "initContainers": [limited("s", json!({"cpu": "2"}), json!("Always")), limited("i", json!({"cpu": "4"}), Value::Null)],
        "overhead": {"cpu": "1", "memory": "1Gi", "example.com/x": 1},
    });
    let status = |reason: &str| {
        json!({
            "containerStatuses": [{"name": "a", "resources": {"limits": {"cpu": "9"}}, "allocatedResources": {"cpu": "50"}}],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        })
    };
    let check = |spec: &Value, status: Value, options: &RequestOptions, expected: &str| {
        assert_eq!(text(&pod_limits(&pod(spec.clone(), status), options)), expected);
    };
    let with_defaults = RequestOptions { non_missing: DEFAULT_REQUESTS, ..SPEC };
    check(&spec, json!({}), &with_defaults, "cpu=7 memory=0");
    check(&spec, json!({}), &RequestOptions { exclude_overhead: true, ..SPEC }, "cpu=6 memory=0");
    check(&spec, status("Deferred"), &STATUS, "cpu=12 memory=0");
    check(&spec, status("Infeasible"), &STATUS, "cpu=12");

    let pod_level = json!({"resources": {"limits": {"cpu": "1", "example.com/x": 1}}});
    check(
        &pod_level,
        json!({"resources": {"limits": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}),
        &STATUS,
        "cpu=2",
    );
    check(&pod_level, json!({"resources": {"limits": {"cpu": "2"}}}), &SPEC, "cpu=1");

    let refused = |resources: Value| json!({"resources": resources, "conditions": status("Infeasible")["conditions"]});
    check(&pod_level, refused(json!({"limits": {"memory": "2"}})), &STATUS, "cpu=0");
    check(&pod_level, refused(json!({"requests": {"cpu": "2"}})), &STATUS, "cpu=1");
}
