//! Webhooks that fail, are silent, or talk nonsense.

use kube_scheduler::queue::Place;
use kube_scheduler::testing::pod;
use serde_json::{Value, json};

use super::{at, keep, with};
use crate::world::webhook::{Reply, Webhook, closed_address, wait_until, webhook};
use crate::world::{World, world};

fn scheduled(extender: Value) -> World {
    let mut world = world([]).configured(extender).start();
    world.nodes(["a", "b"]).pod(pod("p")).schedule();
    world
}

fn filters(hook: &Webhook) -> Value {
    at(hook, json!({"filterVerb": "filter", "nodeCacheCapable": true}))
}

/// What the pod's condition says of a filter that answers like this; `URL` stands for the extender's.
#[track_caller]
fn check(reply: impl Fn() -> Reply + Send + Sync + 'static, expected: &str) {
    let hook = webhook(move |_| reply());
    let world = scheduled(filters(&hook));
    let condition = world.condition("p").replace(&hook.url(), "URL");
    assert_eq!(condition, format!("SchedulerError: {expected}"));
    assert_eq!(world.waits("p"), Some((Place::ErrorBackoff, vec![])));
    let ignored = scheduled(with(filters(&hook), json!({"ignorable": true})));
    assert_ne!(ignored.node_of("p"), "", "it may fail");
}

#[test]
fn filter_errors_fail_the_attempt() {
    check(|| Reply::Json(json!({"Error": "out of order"})), "out of order");
    check(|| Reply::Code(500), "failed filter with extender at URL URL/filter, code 500");
    check(|| Reply::Code(202), "failed filter with extender at URL URL/filter, code 202");
    check(|| Reply::HangUp, "Post \"URL/filter\": EOF");
    check(
        || keep(&["b", "x"]),
        "extender \"URL\" claims a filtered node \"x\" which is not found in the input node list",
    );
}

#[test]
fn unreachable_extender_fails_the_attempt() {
    let address = closed_address();
    let extender = json!({"urlPrefix": format!("http://{address}/"), "filterVerb": "filter"});
    let world = scheduled(extender);
    let expected =
        format!("SchedulerError: Post \"http://{address}/filter\": dial tcp {address}: connect: connection refused");
    assert_eq!(world.condition("p"), expected);
}

#[test]
fn extender_timeout_fails_the_attempt() {
    let check = |reply: fn() -> Reply, expected: &str| {
        let hook = webhook(move |_| reply());
        let extender = with(filters(&hook), json!({"httpTimeout": "200ms"}));
        let condition = scheduled(extender).condition("p").replace(&hook.url(), "URL");
        assert_eq!(condition, format!("SchedulerError: {expected}"));
    };
    check(
        || Reply::Never,
        "Post \"URL/filter\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
    );
    check(|| Reply::Half, "context deadline exceeded (Client.Timeout or context cancellation while reading body)");
}

#[test]
fn malformed_filter_responses_are_errors() {
    for text in [
        "",
        "{",
        "<html>",
        "7",
        "[]",
        "\"x\"",
        r#"{"NodeNames": 7}"#,
        r#"{"Nodes": {"items": {}}}"#,
        r#"{"Nodes": {"items": [7]}}"#,
        r#"{"Nodes": {"items": [{"metadata": 1}]}}"#,
        r#"{"FailedNodes": {"a": 1}}"#,
        r#"{"Nodes": {"items": [{"status": {"allocatable": {"cpu": "much"}}}]}}"#,
    ] {
        let hook = webhook(move |_| Reply::Text(text.to_owned()));
        let condition = scheduled(filters(&hook)).condition("p");
        assert!(condition.starts_with("SchedulerError: "), "{text}: {condition}");
    }
    let deep = "[".repeat(100_000);
    let hook = webhook(move |_| Reply::Text(deep.clone()));
    assert!(scheduled(filters(&hook)).condition("p").starts_with("SchedulerError: "));
}

#[test]
fn empty_filter_response_rejects_all_nodes() {
    for text in ["null", "{}", r#"{"NodeNames": []}"#, r#"{"Nodes": {}}"#, r#"{"Nodes": {"items": null}}"#] {
        let hook = webhook(move |_| Reply::Text(text.to_owned()));
        let world = scheduled(filters(&hook));
        assert_eq!(world.condition("p"), "Unschedulable: 0/2 nodes are available:", "{text}");
        assert_eq!(world.waits("p").expect("it waits").1, ["Extender"]);
    }
}

#[test]
fn unknown_nodes_in_filter_responses_do_not_panic() {
    for items in
        [json!([{"metadata": {"name": "x"}}]), json!([{}]), json!([null]), json!([null, {"metadata": {"name": "x"}}])]
    {
        let hook = webhook(move |_| Reply::Json(json!({"Nodes": {"items": items}})));
        let world = scheduled(filters(&hook));
        assert!(
            world.node_of("p") == "x" || world.condition("p").starts_with("SchedulerError"),
            "{}",
            world.condition("p")
        );
    }
}

#[test]
fn failed_or_invalid_scores_are_ignored() {
    for reply in [
        || Reply::Code(500),
        || Reply::Text("{}".to_owned()),
        || Reply::Text(r#"[{"Host":"a","Score":99999999999999999999}]"#.to_owned()),
        || Reply::Text(r#"[{"Host":"b","Score":9223372036854775807}]"#.to_owned()),
    ] {
        let hook = webhook(move |_| reply());
        let config = json!({"prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": true});
        assert_ne!(scheduled(at(&hook, config)).node_of("p"), "");
    }
}

#[test]
fn failed_bindings_are_errors_unless_ignorable() {
    let bound = |reply: fn() -> Reply, more: Value| {
        let hook = webhook(move |_| reply());
        let mut world = scheduled(with(at(&hook, json!({"bindVerb": "bind"})), more));
        wait_until(|| {
            world.settle();
            !world.events().is_empty()
        });
        (world.node_of("p"), world.condition("p").replace(&hook.url(), "URL"))
    };
    let refused = || Reply::Json(json!({"Error": "no"}));
    assert_eq!(bound(refused, json!({})), (String::new(), "SchedulerError: no".to_owned()));
    assert_eq!(
        bound(|| Reply::Code(404), json!({})).1,
        "SchedulerError: failed bind with extender at URL URL/bind, code 404"
    );
    assert_ne!(bound(refused, json!({"ignorable": true})).0, "", "plugins bind");
}
