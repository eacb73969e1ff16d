//! Defaults of resource claims and resource claim templates.

use serde_json::Value;

use super::{default, default_absent};
use crate::apiserver::meta;

/// Fills in the device requests of a claim.
/// Follows `pkg/apis/resource/v1/defaults.go#SetDefaults_ExactDeviceRequest` and `#SetDefaults_DeviceSubRequest @v1.36.3`.
pub(super) fn claim(claim: &mut Value) {
    let devices = meta::child(claim, "spec").get_mut("devices");
    let requests = devices.and_then(|devices| devices.get_mut("requests")?.as_array_mut());
    for request in requests.into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly") {
            counted(exactly);
        }
        let first = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        first.into_iter().flatten().for_each(counted);
    }
}

/// Fills in the device requests of a claim template.
pub(super) fn template(template: &mut Value) {
    if let Some(inner) = template.get_mut("spec") {
        claim(inner);
    }
}

fn counted(request: &mut Value) {
    let Some(request) = request.as_object_mut() else { return };
    default(request, "allocationMode", "ExactCount");
    if request.get("allocationMode").is_some_and(|mode| mode == "ExactCount") {
        default(request, "count", 1);
    }
    for toleration in request.get_mut("tolerations").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(toleration) = toleration.as_object_mut() {
            default_absent(toleration, "operator", "Equal");
        }
    }
}
