//! Webhooks that choose victims.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_scheduler::k8s::Original;
use kube_scheduler::model::{LabelClasses, NodeInfo, PodInfo, Snapshot};
use kube_scheduler::scheduler::{Extender, Victims, WholeObjects};
use kube_scheduler::testing::{PodFixture, node, pod};
use serde_json::{Value, json};

use super::{at, only};
use crate::world::webhook::{Reply, Webhook, webhook};

/// A pod whose JSON was kept.
fn whole(pod: PodFixture) -> Arc<PodInfo> {
    let json = pod.json();
    let mut pod: kube_scheduler::k8s::Pod = serde_json::from_value(json.clone()).expect("a pod");
    let raw = serde_json::value::to_raw_value(&json).expect("it can be written");
    pod.original = Some(Original::of_pod(&raw).expect("an object"));
    Arc::new(PodInfo::new(Arc::new(pod), &LabelClasses::default()))
}

/// Asks about victims `v` and `w` on node `n`; `w` is only assumed there.
fn ask(hook: &Webhook, more: Value) -> Result<Vec<(String, Vec<String>, i64)>, String> {
    let extender = only(&super::with(at(hook, json!({})), more)).expect("it can be built");
    let mut info: NodeInfo = node("n").info();
    let (v, w) = (whole(pod("v").on("n")), Arc::new(whole(pod("w")).assumed_on("n")));
    for pod in [&v, &w, &whole(pod("x").on("n"))] {
        info.add_pod(pod.clone());
    }
    let snapshot = Snapshot::from_nodes(vec![Arc::new(info)]);
    let victims = BTreeMap::from([("n".to_owned(), Victims { pods: vec![v, w], num_pdb_violations: 1 })]);
    let chosen =
        extender.process_preemption(&whole(pod("p")), &victims, &snapshot).map_err(|error| error.to_string())?;
    let print = |(node, of): (String, Victims)| {
        (node, of.pods.iter().map(|pod| pod.name().to_owned()).collect(), of.num_pdb_violations)
    };
    Ok(chosen.into_iter().map(print).collect())
}

#[test]
fn preemption_requests_have_pods_or_uids() {
    let hook = webhook(|_| {
        Reply::Json(
            json!({"NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "x"}, {"UID": "v"}], "NumPDBViolations": 7}}}),
        )
    });
    let chosen = Ok(vec![("n".to_owned(), vec!["x".to_owned(), "v".to_owned()], 7)]);
    assert_eq!(ask(&hook, json!({"preemptVerb": "preempt"})), chosen);
    let asked = hook.take().remove(0);
    let sent = &asked.body["NodeNameToVictims"]["n"];
    assert_eq!(
        (asked.path.as_str(), &sent["NumPDBViolations"], &asked.body["NodeNameToMetaVictims"]),
        ("/preempt", &json!(1), &json!(null))
    );
    assert_eq!(
        (&sent["Pods"][0]["spec"]["nodeName"], &sent["Pods"][1]["spec"]["nodeName"]),
        (&json!("n"), &json!("n"))
    );
    assert_eq!(
        (&sent["Pods"][0]["metadata"]["name"], &sent["Pods"][1]["spec"]["containers"][0]["name"]),
        (&json!("v"), &json!("c"))
    );
    assert_eq!(asked.body["Pod"]["metadata"]["name"], "p");
    assert_eq!(ask(&hook, json!({"preemptVerb": "preempt", "nodeCacheCapable": true})), chosen);
    let asked = hook.take().remove(0);
    let meta = json!({"n": {"Pods": [{"UID": "v"}, {"UID": "w"}], "NumPDBViolations": 1}});
    assert_eq!((&asked.body["NodeNameToVictims"], &asked.body["NodeNameToMetaVictims"]), (&json!(null), &meta));
}

#[test]
fn preemption_responses_with_unknown_nodes_or_pods_are_errors() {
    let check = |reply: Value, expected: &str| {
        let hook = webhook(move |_| Reply::Json(reply.clone()));
        let error = ask(&hook, json!({"preemptVerb": "preempt"})).expect_err("it does not fit");
        assert_eq!(error.replace(&hook.url(), "URL"), expected);
    };
    check(json!({"nodeNameToMetaVictims": {"m": {}}}), "nodeinfo not found for node name \"m\"");
    check(
        json!({"nodeNameToMetaVictims": {"n": {"Pods": [{"UID": "z"}]}}}),
        "extender: URL claims to preempt pod (UID: &{z}) on node: n, but the pod is not found on that node",
    );
    let hook = webhook(|_| Reply::Json(json!({})));
    assert_eq!(ask(&hook, json!({"preemptVerb": "preempt"})), Ok(vec![]), "no node is left");
    let error = ask(&hook, json!({})).expect_err("it takes no part");
    let text = format!("preempt verb is not defined for extender {} but run into ProcessPreemption", hook.url());
    assert_eq!(error, text);
}

#[test]
fn whole_objects_are_kept_as_the_verbs_need() {
    let check = |more: Value, pending_pods: bool, assigned_pods: bool, nodes: bool| {
        let extender: Arc<dyn Extender> =
            only(&super::with(json!({"urlPrefix": "http://host"}), more)).expect("it can be built");
        assert_eq!(extender.whole_objects(), WholeObjects { pending_pods, assigned_pods, nodes });
    };
    check(json!({"bindVerb": "b"}), false, false, false);
    check(json!({"filterVerb": "f"}), true, false, true);
    check(json!({"prioritizeVerb": "p", "weight": 1, "nodeCacheCapable": true}), true, false, false);
    check(json!({"preemptVerb": "p"}), true, true, false);
    check(json!({"preemptVerb": "p", "nodeCacheCapable": true}), true, false, false);
}
