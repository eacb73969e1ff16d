//! Preparation of objects before they are validated and stored: initial status, fields that stay unchanged, generation.
//!
//! Follows the methods `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry @v1.36.3`.

use serde_json::{Map, Value, json};

use super::kinds::{
    DAEMON_SETS, Kind, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, RESOURCE_CLAIMS,
    VOLUME_ATTACHMENTS, VOLUME_ATTRIBUTES_CLASSES,
};
use super::origin::Origin;
use super::part::Part;
use super::store::State;
use super::{gated, meta, pods};
use crate::apimachinery::Status;
use crate::config::Gate;

/// Prepares a new object for storage, after admission and before validation.
pub(super) fn prepare_create(state: &State, kind: &Kind, value: &mut Value, origin: Origin) -> Result<(), Status> {
    let keeps_status = origin != Origin::Client && !meta::is_empty(&value["status"]);
    let gates = &state.settings.gates;
    gated::drop_disabled(gates, kind, value, None);
    if kind.slot == VOLUME_ATTRIBUTES_CLASSES.slot
        && origin == Origin::Client
        && gates.enabled(Gate::VolumeAttributesClass)
    {
        add_finalizer(meta::metadata(value), "finalizers", "kubernetes.io/vac-protection");
    }
    if kind.slot == PODS.slot {
        return pods::prepare_create(state.now, gates, value, origin, keeps_status);
    }
    drop_config_source(kind, value, &Value::Null);
    if kind.slot == NODES.slot || keeps_status {
        return Ok(());
    }
    if kind.slot == NAMESPACES.slot {
        value["status"] = json!({"phase": "Active"});
        add_finalizer(meta::child(value, "spec"), "finalizers", "kubernetes");
    } else if kind.slot == PERSISTENT_VOLUMES.slot {
        let since = meta::time_text(state.now);
        value["status"] = json!({"phase": "Pending", "lastPhaseTransitionTime": since});
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        value["status"] = json!({"phase": "Pending"});
    } else if kind.has_status {
        value["status"] = json!({});
    }
    Ok(())
}

/// Drops a node's `configSource`, the member of a removed feature, unless `old` has it.
fn drop_config_source(kind: &Kind, value: &mut Value, old: &Value) {
    if kind.slot == NODES.slot
        && old["spec"]["configSource"].is_null()
        && let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.remove("configSource");
    }
}

/// Adds `name` to a list of strings unless the list contains it.
pub(super) fn add_finalizer(map: &mut Map<String, Value>, list: &str, name: &str) {
    let slot = map.entry(list).or_insert_with(|| json!([]));
    if !slot.is_array() {
        *slot = json!([]);
    }
    if let Some(items) = slot.as_array_mut()
        && items.iter().all(|item| item.as_str() != Some(name))
    {
        items.push(json!(name));
    }
}

/// Prepares an update of the main resource: restores the status, and increments the generation if the spec changes.
pub(super) fn prepare_update(state: &State, kind: &Kind, part: Part, value: &mut Value, old: &Value) {
    if kind.has_status {
        copy(value, old, "status");
    }
    if kind.slot == NAMESPACES.slot && part == Part::Main {
        copy_in(value, old, "spec", "finalizers");
    }
    gated::drop_disabled(&state.settings.gates, kind, value, Some(old));
    drop_config_source(kind, value, old);
    if kind.slot == DAEMON_SETS.slot && value["spec"]["template"] != old["spec"]["template"] {
        const COUNT: &str = "deprecated.daemonset.template.generation";
        let before = old["metadata"]["annotations"][COUNT].as_str().and_then(|count| count.parse::<i64>().ok());
        let annotations = meta::metadata(value).entry("annotations").or_insert_with(|| json!({}));
        if let (Some(annotations), Some(before)) = (annotations.as_object_mut(), before) {
            annotations.insert(COUNT.to_owned(), json!((before + 1).to_string()));
        }
    }
    // Deployments also count a change of annotations.
    // `pkg/registry/apps/deployment/strategy.go#deploymentStrategy.PrepareForUpdate @v1.36.3`.
    let annotated = kind.plural == "deployments" && value["metadata"]["annotations"] != old["metadata"]["annotations"];
    if kind.generation && (value["spec"] != old["spec"] || annotated) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        meta::metadata(value).insert("generation".to_owned(), json!(generation));
    }
}

/// Prepares an update of the status subresource. Restores everything except the status and the metadata, and also restores the
/// metadata that the kind does not let a status update change.
pub(super) fn prepare_status_update(state: &State, kind: &Kind, value: &mut Value, old: &Value) {
    let foreign: Vec<String> =
        keys(value).chain(keys(old)).filter(|key| !matches!(*key, "metadata" | "status")).map(str::to_owned).collect();
    for key in foreign {
        copy(value, old, &key);
    }
    gated::drop_disabled(&state.settings.gates, kind, value, Some(old));
    if kind.slot == PODS.slot {
        copy_in(value, old, "metadata", "ownerReferences");
        pods::prepare_status_update(value, old);
    } else if kind.slot == RESOURCE_CLAIMS.slot || kind.slot == VOLUME_ATTACHMENTS.slot {
        for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
            copy_in(value, old, "metadata", key);
        }
    } else if kind.plural == "deployments" {
        copy_in(value, old, "metadata", "labels");
    } else if kind.slot == PERSISTENT_VOLUMES.slot {
        note_phase_change(state, value, old);
    }
}

/// Sets the time of a volume's last phase change.
/// Follows `pkg/registry/core/persistentvolume/strategy.go#persistentvolumeStatusStrategy.PrepareForUpdate @v1.36.3`.
fn note_phase_change(state: &State, value: &mut Value, old: &Value) {
    const SINCE: &str = "lastPhaseTransitionTime";
    let (new_since, old_since) = (value["status"][SINCE].clone(), old["status"][SINCE].clone());
    let changed = value["status"]["phase"] != old["status"]["phase"];
    let status = meta::child(value, "status");
    if !changed && new_since.is_null() {
        meta::set(status, SINCE, old_since);
    } else if changed && (new_since.is_null() || new_since == old_since) {
        meta::set(status, SINCE, json!(meta::time_text(state.now)));
    }
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

/// Restores the old value of `key`.
pub(super) fn copy(value: &mut Value, old: &Value, key: &str) {
    if let Some(map) = value.as_object_mut() {
        meta::set(map, key, old[key].clone());
    }
}

fn copy_in(value: &mut Value, old: &Value, parent: &str, key: &str) {
    if old[parent][key].is_null() && !value[parent].is_object() {
        return;
    }
    meta::set(meta::child(value, parent), key, old[parent][key].clone());
}
