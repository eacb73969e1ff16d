//! Admission plugins that matter for scheduling. They change or reject an object between defaulting and validation, and check
//! it again after validation. Their order is upstream's: `pkg/kubeapiserver/options/plugins.go#AllOrderedPlugins @v1.36.3`.
//!
//! The creation of objects includes the checks of `NamespaceLifecycle`. `TaintNodesByCondition` and `ServiceAccount` are off,
//! because no controller completes a simulated node or pod. `ResourceQuota` is not supported.

mod limit_ranger;
mod priority;
mod runtime_class;
mod storage;
mod tolerations;

use serde_json::{Value, json};

use super::binding::TOPOLOGY_LABELS;
use super::kinds::{Kind, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, PRIORITY_CLASSES};
use super::meta;
use super::origin::Origin;
use super::store::State;
use crate::apimachinery::Status;
use crate::config::Gate;

/// Admits a new object, and fills in the fields that plugins set.
pub(super) fn on_create(state: &State, kind: &Kind, value: &mut Value, origin: Origin) -> Result<(), Status> {
    if kind.slot == PODS.slot {
        // The cluster of the dump has already admitted its pods.
        if origin != Origin::Dump {
            limit_ranger::on_pod(state, value);
        }
        priority::on_pod(state, value, origin)?;
        tolerations::on_pod(value);
        if origin != Origin::Dump {
            runtime_class::on_pod(state, value)?;
        }
        topology_labels(state, value);
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        if origin != Origin::Dump {
            storage::protect_claim(value);
        }
        storage::default_class(state, value);
    } else if kind.slot == PERSISTENT_VOLUMES.slot && origin != Origin::Dump {
        storage::protect_volume(value);
    }
    Ok(())
}

/// Checks a new object after validation. Runs the plugins that may only reject the object.
pub(super) fn check_create(state: &State, kind: &Kind, value: &Value, origin: Origin) -> Result<(), Status> {
    if kind.slot == PODS.slot && origin != Origin::Dump {
        limit_ranger::check_pod(state, value)?;
        runtime_class::check_pod(state, value)?;
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        limit_ranger::on_claim(state, value)?;
    } else if kind.slot == PRIORITY_CLASSES.slot {
        priority::on_class(state, value)?;
    }
    Ok(())
}

/// Fills in the fields that plugins set in an update of the main resource.
pub(super) fn on_update(state: &State, kind: &Kind, value: &mut Value, before: &Value) {
    if kind.slot == PODS.slot {
        priority::keep(value, before);
        tolerations::on_pod(value);
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        storage::default_class(state, value);
    }
}

/// Checks an update after validation. Runs the plugins that may only reject the update.
pub(super) fn check_update(state: &State, kind: &Kind, value: &Value) -> Result<(), Status> {
    if kind.slot == PRIORITY_CLASSES.slot { priority::on_class(state, value) } else { Ok(()) }
}

/// Copies a node's topology labels to a pod that is created on it.
/// Follows `plugin/pkg/admission/podtopologylabels/admission.go#Plugin.admitPod @v1.36.3`.
fn topology_labels(state: &State, pod: &mut Value) {
    if !state.settings.gates.enabled(Gate::PodTopologyLabelsAdmission) {
        return;
    }
    let Some(node) = pod["spec"]["nodeName"].as_str().and_then(|name| state.find(&NODES, name)) else { return };
    for key in TOPOLOGY_LABELS {
        if let Some(value) = node.label(key) {
            let labels = meta::metadata(pod).entry("labels").or_insert_with(|| json!({}));
            if let Some(labels) = labels.as_object_mut() {
                labels.insert(key.to_owned(), json!(value));
            }
        }
    }
}
