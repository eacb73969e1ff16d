//! Tests of strategic merge patches of the API's own kinds.

use serde_json::json;

use super::super::kinds::{NODES, POD_DISRUPTION_BUDGETS, PODS, RESOURCE_CLAIMS};
use super::*;

fn check(kind: &Kind, target: Value, patch: &Value, expected: &Value) {
    assert_eq!(&Patch::Strategic(patch.clone()).apply(kind, target).unwrap(), expected);
}

#[test]
fn conditions_merge_by_type_in_the_order_given() {
    check(
        &PODS,
        json!({"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}}),
        &json!({"status": {
            "$setElementOrder/conditions": [{"type": "C"}, {"type": "B"}, {"type": "A"}],
            "conditions": [{"type": "B", "status": "False"}, {"type": "C", "status": "True"}]}}),
        &json!({"status": {"conditions": [
            {"type": "C", "status": "True"}, {"type": "B", "status": "False"}, {"type": "A", "status": "True"}]}}),
    );
}

#[test]
fn server_only_items_keep_their_position() {
    check(
        &PODS,
        json!({"status": {"conditions": [{"type": "S"}, {"type": "A"}]}}),
        &json!({"status": {"$setElementOrder/conditions": [{"type": "A"}, {"type": "N"}], "conditions": [{"type": "N"}]}}),
        &json!({"status": {"conditions": [{"type": "S"}, {"type": "A"}, {"type": "N"}]}}),
    );
}

#[test]
fn patch_directives_delete_and_replace_elements() {
    check(
        &RESOURCE_CLAIMS,
        json!({"status": {"reservedFor": [{"uid": "1", "name": "a"}, {"uid": "2"}]}}),
        &json!({"status": {"reservedFor": [{"$patch": "delete", "uid": "1"}]}}),
        &json!({"status": {"reservedFor": [{"uid": "2"}]}}),
    );
    check(
        &PODS,
        json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}}),
        &json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "c"}]}}),
        &json!({"spec": {"containers": [{"name": "c"}]}}),
    );
    check(
        &PODS,
        json!({"spec": {"nodeSelector": {"a": "1"}, "affinity": {"x": 1}}}),
        &json!({"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}, "affinity": {"$patch": "delete"}}}),
        &json!({"spec": {"nodeSelector": {"b": "2"}, "affinity": {}}}),
    );
}

#[test]
fn primitive_lists_are_merged_or_replaced() {
    check(
        &PODS,
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        &json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}),
        // An item that the patch adds goes before the items that only the server has.
        &json!({"metadata": {"finalizers": ["c", "b"]}}),
    );
    check(
        &NODES,
        json!({"spec": {"taints": [{"key": "a"}]}}),
        &json!({"spec": {"taints": [{"key": "b"}]}}),
        &json!({"spec": {"taints": [{"key": "b"}]}}),
    );
    check(
        &PODS,
        json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
        &json!({"spec": {"volumes": [{"$retainKeys": ["name", "secret"], "name": "v", "secret": {"secretName": "s"}}]}}),
        &json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}}),
    );
}

#[test]
fn budget_selector_is_replaced_as_a_whole() {
    check(
        &POD_DISRUPTION_BUDGETS,
        json!({"spec": {"selector": {"matchLabels": {"a": "1"}}, "minAvailable": 1}}),
        &json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}),
        &json!({"spec": {"selector": {"matchLabels": {"b": "2"}}, "minAvailable": 1}}),
    );
}

#[test]
fn null_removes_a_field() {
    check(
        &PODS,
        json!({"status": {"nominatedNodeName": "n", "phase": "Pending"}}),
        &json!({"status": {"nominatedNodeName": null}}),
        &json!({"status": {"phase": "Pending"}}),
    );
}
