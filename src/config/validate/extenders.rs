//! Validation of the extenders in a configuration.
//! Follows `pkg/scheduler/apis/config/validation/validation.go#validateExtenders @v1.36.3`.

use std::collections::BTreeSet;

use super::super::types::Extender;
use crate::apimachinery::field_error::{BadValue, FieldError};
use crate::k8s::names::{is_extended_resource, qualified_name_errors};

/// Returns the errors of `extenders`, whose field path is `path`.
pub(super) fn faults(path: &str, extenders: &[Extender]) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let mut managed = BTreeSet::new();
    for (i, extender) in extenders.iter().enumerate() {
        let path = format!("{path}[{i}]");
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            let detail = "must have a positive weight applied to it";
            faults.push(FieldError::invalid(format_args!("{path}.weight"), BadValue::plain(extender.weight), detail));
        }
        for (j, resource) in extender.managed_resources.iter().enumerate() {
            let path = format!("{path}.managedResources[{j}].name");
            faults.extend(resource_name(&path, &resource.name));
            if !managed.insert(resource.name.as_str()) {
                let detail = "duplicate extender managed resource name";
                faults.push(FieldError::invalid(&path, &resource.name, detail));
            }
        }
    }
    let binders = extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    if binders > 1 {
        let shown = &format!("found {binders} extenders implementing bind");
        faults.push(FieldError::invalid(path, shown, "only one extender can implement bind"));
    }
    faults
}

fn resource_name(path: &str, name: &str) -> Vec<FieldError> {
    let faults = qualified_name_errors(name);
    if !faults.is_empty() {
        return faults.iter().map(|fault| FieldError::invalid(path, BadValue::json(name), fault)).collect();
    }
    if is_extended_resource(name) {
        return Vec::new();
    }
    vec![FieldError::invalid(path, name, "is an invalid extended resource name")]
}
