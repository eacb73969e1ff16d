//! Priority admission: sets a pod's priority from its priority class.
//!
//! Follows `plugin/pkg/admission/priority/admission.go @v1.36.3`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::apimachinery::Status;
use crate::apiserver::kinds::{PODS, PRIORITY_CLASSES};
use crate::apiserver::meta;
use crate::apiserver::object::Object;
use crate::apiserver::origin::Origin;
use crate::apiserver::store::State;

/// Sets a new pod's priority, class name and preemption policy. A pod from a dump or a manifest keeps its priority if it has one.
/// Follows `#Plugin.admitPod`.
pub(super) fn on_pod(state: &State, pod: &mut Value, origin: Origin) -> Result<(), Status> {
    let name = meta::text(pod, "name").to_owned();
    let spec = meta::child(pod, "spec");
    let own = spec.get("priority").and_then(Value::as_i64);
    if origin != Origin::Client && own.is_some() {
        return Ok(());
    }
    let class_name = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let class = if class_name.is_empty() {
        default_class(state)
    } else {
        let why = || Status::forbidden(&PODS, &name, format!("no PriorityClass with name {class_name} was found"));
        Some(state.find(&PRIORITY_CLASSES, class_name).ok_or_else(why)?)
    };
    let (class_name, priority, policy) = match class {
        Some(class) => {
            let policy = class.value()["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority").to_owned();
            (class.name(), class.field("#value").and_then(|value| value.parse().ok()).unwrap_or(0), policy)
        }
        None => ("", 0_i64, "PreemptLowerPriority".to_owned()),
    };
    if let Some(own) = own.filter(|own| *own != priority) {
        let why = format!(
            "the integer value of priority ({own}) must not be provided in pod spec; \
             priority admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(Status::forbidden(&PODS, &name, why));
    }
    if let Some(own) = spec.get("preemptionPolicy").and_then(Value::as_str).filter(|own| *own != policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({own}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(Status::forbidden(&PODS, &name, why));
    }
    if !class_name.is_empty() {
        spec.insert("priorityClassName".to_owned(), json!(class_name));
    }
    spec.insert("priority".to_owned(), json!(priority));
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

/// Returns the class of pods without a class name: the global default with the lowest value.
fn default_class(state: &State) -> Option<&Arc<Object>> {
    let defaults =
        state.shelf(&PRIORITY_CLASSES).objects.values().filter(|class| class.field("#globalDefault") == Some("true"));
    defaults.min_by_key(|class| class.field("#value").and_then(|value| value.parse::<i64>().ok()))
}

/// Restores a pod's priority and preemption policy if an update left them out.
pub(super) fn keep(pod: &mut Value, before: &Value) {
    let spec = meta::child(pod, "spec");
    for key in ["priority", "preemptionPolicy"] {
        let old = &before["spec"][key];
        if !spec.contains_key(key) && !old.is_null() {
            spec.insert(key.to_owned(), old.clone());
        }
    }
}

/// Rejects a global default class if another class is the global default. Follows `#Plugin.validatePriorityClass`.
pub(super) fn on_class(state: &State, class: &Value) -> Result<(), Status> {
    let name = meta::text(class, "name");
    if class["globalDefault"] != true {
        return Ok(());
    }
    match default_class(state) {
        Some(default) if default.name() != name => Err(Status::forbidden(
            &PRIORITY_CLASSES,
            name,
            format!("PriorityClass {} is already marked as default. Only one default can exist", default.name()),
        )),
        _ => Ok(()),
    }
}
