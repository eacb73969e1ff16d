//! API objects: the data that the scheduler derives from pods and nodes, and objects of any kind in the embedded API server.
//!
//! The input is JSON. If the first byte is not a brace, it selects the kind of the object in the rest of the input. Otherwise
//! the object names its own kind.
#![no_main]

use std::sync::Arc;

use jiff::Timestamp;
use kube_scheduler::apiserver::{ApiServer, DeleteOptions, Options, kinds};
use kube_scheduler::k8s::{
    Node, Pod, PreferredTerms, RequestOptions, RequiredNodeAffinity, find_untolerated_taint, normalized_image_name,
    pod_limits, pod_requests, tolerations,
};
use kube_scheduler::model::{LabelClasses, NodeInfo, NonZeroRequest, PodInfo, ResourceGates};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let (kind, json) = match data {
        [b'{', ..] | [] => (None, data),
        [kind, json @ ..] => (Some(kinds::ALL[usize::from(*kind) % kinds::ALL.len()]), json),
    };
    // The scheduler's own decoding, as from a watch.
    let pod: Option<Pod> = serde_json::from_slice(json).ok();
    let node: Option<Node> = serde_json::from_slice(json).ok();
    let node = Arc::new(node.unwrap_or_default());
    if let Some(pod) = pod {
        check_pod(&Arc::new(pod), &node);
    }
    let Ok(mut value) = serde_json::from_slice::<Value>(json) else { return };
    if let (Some(kind), Value::Object(fields)) = (kind, &mut value) {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    check_server(&value);
});

/// Checks the data that is derived from a pod, and the sums of a node with this pod.
fn check_pod(pod: &Arc<Pod>, node: &Arc<Node>) {
    let classes = LabelClasses::default();
    let every_gate = ResourceGates { resize: true, pod_level: true, pod_level_resize: true, claims: true };
    let no_gate = ResourceGates { resize: false, pod_level: false, pod_level_resize: false, claims: false };
    for gates in [ResourceGates::default(), every_gate, no_gate] {
        let info = Arc::new(PodInfo::with_gates(pod.clone(), &classes, gates));
        assert!(
            Arc::ptr_eq(info.class(), &classes.intern(pod.namespace(), pod.labels())),
            "one class for the same labels"
        );
        check_sums(node, &info);
    }
    let limits = pod_limits(pod, &RequestOptions::default()).to_resource_list();
    let requests = pod_requests(pod, &RequestOptions::default()).to_resource_list();
    for (_, quantity) in limits.iter().chain(requests.iter()) {
        let _ = quantity.to_string();
    }
    let affinity = RequiredNodeAffinity::new(pod);
    let _ = affinity.matches(node);
    assert!(!affinity.is_unrestricted() || affinity.matches(node) == Ok(true));
    let terms = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = terms.and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    if let Some(Ok(terms)) = terms.map(|terms| PreferredTerms::new(terms, "")) {
        let _ = terms.score(node);
    }
    for comparisons in [false, true] {
        let taints = &node.spec.taints;
        let _ = find_untolerated_taint(taints, &pod.spec.tolerations, tolerations::do_not_schedule, comparisons);
    }
    let _ = pod.qos_class(true);
    for container in &pod.spec.containers {
        let name = container.image.as_deref().unwrap_or_default();
        let normalized = normalized_image_name(name).into_owned();
        assert_eq!(normalized_image_name(&normalized), normalized, "{name:?}");
    }
}

/// Checks that pods leave nothing behind in the sums of a node when they are removed, in either order.
fn check_sums(node: &Arc<Node>, pod: &Arc<PodInfo>) {
    let other = Arc::new(pod.assumed_on("elsewhere"));
    for (first, second) in [(pod, &other), (&other, pod)] {
        let mut info = NodeInfo::new(node.clone());
        info.add_pod(pod.clone());
        info.add_pod(other.clone());
        assert!(info.take_pod(first));
        assert!(!info.take_pod(first), "taken once");
        let (sum, one) = (info.requested(), pod.requests());
        assert_eq!((sum.milli_cpu, sum.memory), (one.milli_cpu, one.memory));
        assert_eq!(sum.ephemeral_storage, one.ephemeral_storage);
        // A request for the resource `pods` is not summed up, because nodes count their pods.
        assert_eq!(sum.allowed_pods, 0);
        assert!(sum.scalars().eq(one.scalars()), "{sum:?} {one:?}");
        assert_eq!(info.non_zero_requested(), pod.non_zero_request());
        assert!(info.remove_pod(second.uid()).is_some());
        assert!(info.pods().is_empty() && info.classes().is_empty() && info.affinity_terms().is_empty());
        assert!(info.used_ports().is_empty() && info.claims().len() == 0);
        assert_eq!(info.non_zero_requested(), NonZeroRequest::default());
        assert!(info.requested().scalars().all(|(_, amount)| amount == 0));
        let left = info.requested();
        assert_eq!((left.milli_cpu, left.memory, left.ephemeral_storage, left.allowed_pods), (0, 0, 0, 0));
    }
}

/// Checks that the server does not panic, stores the object that it returns, and loads its own dump.
fn check_server(value: &Value) {
    let created = new_server().create(value.clone());
    let server = new_server();
    if let Ok(object) = &created {
        let dump = object.value();
        let loaded = server.load(dump.clone());
        let loaded = loaded.unwrap_or_else(|status| panic!("a dump is refused: {}\n{dump}", status.message));
        assert_eq!(
            (loaded.name(), loaded.namespace(), loaded.uid()),
            (object.name(), object.namespace(), object.uid())
        );
        check_life(&server, &loaded.value());
        return;
    }
    if let Ok(object) = server.load(value.clone()) {
        check_life(&server, &object.value());
    }
}

/// Reads, replaces, patches and deletes an object that the server has.
fn check_life(server: &ApiServer, stored: &Value) {
    let text = |key: &str| stored["metadata"][key].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let kind =
        kinds::by_name(stored["apiVersion"].as_str().unwrap_or_default(), stored["kind"].as_str().unwrap_or_default());
    let kind = kind.expect("a stored object has a kind that is served");
    let got = server.get(kind, namespace, name).expect("what is stored can be read");
    assert_eq!(&got.value(), stored);
    assert!(server.list(kind).iter().any(|object| object.name() == name));
    assert!(server.select(kind, namespace, "").is_ok_and(|objects| objects.iter().any(|one| one.name() == name)));
    let version = server.version();
    let _ = server.update(stored.clone());
    let _ = server.update_status(stored.clone());
    let _ = server.patch(kind, namespace, name, serde_json::json!({"metadata": {"labels": {"a": "b"}}}));
    let _ = server.patch_status(kind, namespace, name, serde_json::json!({"status": stored["status"]}));
    let _ = server.patch(kind, namespace, name, stored.clone());
    let binding = serde_json::json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "node"}});
    let _ = server.bind(namespace, &binding);
    let _ = server.delete(kind, namespace, name, &DeleteOptions::default());
    assert!(server.version() >= version);
    server.tick();
}

fn new_server() -> ApiServer {
    let now = Timestamp::from_second(1_700_000_000).expect("a time");
    ApiServer::new(Options { create_namespaces: true, ..Options::new(move || now) })
}
