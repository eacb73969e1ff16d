//! Whether an object's members have the types that the API gives them, and which one has not.

use k8s_openapi::api::{apps, batch, coordination, core, node, policy, resource, scheduling, storage};
use serde::Deserialize;
use serde_json::Value;

use super::kinds::Kind;
use crate::k8s::{Node, Pod};

/// Checks the types of what is read of an object. The error is a path and what is wrong there.
///
/// Pods and nodes are read as scheduling sees them, which leaves out what no scheduler reads; so are the pods that
/// workloads describe, whose amounts are checked by that, too.
pub(super) fn check(kind: &Kind, value: &Value) -> Result<(), String> {
    match kind.kind {
        "Pod" => read::<Pod>(value).and_then(|()| read::<Admitted>(value)),
        "Node" => read::<Node>(value),
        "CronJob" => {
            read::<batch::v1::CronJob>(value).and_then(|()| template(value, "/spec/jobTemplate/spec/template"))
        }
        "DaemonSet" => read::<apps::v1::DaemonSet>(value).and_then(|()| template(value, TEMPLATE)),
        "Deployment" => read::<apps::v1::Deployment>(value).and_then(|()| template(value, TEMPLATE)),
        "Job" => read::<batch::v1::Job>(value).and_then(|()| template(value, TEMPLATE)),
        "ReplicaSet" => read::<apps::v1::ReplicaSet>(value).and_then(|()| template(value, TEMPLATE)),
        "ReplicationController" => {
            read::<core::v1::ReplicationController>(value).and_then(|()| template(value, TEMPLATE))
        }
        "StatefulSet" => read::<apps::v1::StatefulSet>(value).and_then(|()| template(value, TEMPLATE)),
        "CSIDriver" => read::<storage::v1::CSIDriver>(value),
        "CSINode" => read::<storage::v1::CSINode>(value),
        "CSIStorageCapacity" => read::<storage::v1::CSIStorageCapacity>(value),
        "DeviceClass" => read::<resource::v1::DeviceClass>(value),
        "Lease" => read::<coordination::v1::Lease>(value),
        "LimitRange" => read::<core::v1::LimitRange>(value),
        "Namespace" => read::<core::v1::Namespace>(value),
        "PersistentVolume" => read::<core::v1::PersistentVolume>(value),
        "PersistentVolumeClaim" => read::<core::v1::PersistentVolumeClaim>(value),
        "PodDisruptionBudget" => read::<policy::v1::PodDisruptionBudget>(value),
        "PriorityClass" => read::<scheduling::v1::PriorityClass>(value),
        "ResourceClaim" => read::<resource::v1::ResourceClaim>(value),
        "ResourceClaimTemplate" => read::<resource::v1::ResourceClaimTemplate>(value),
        "ResourceSlice" => read::<resource::v1::ResourceSlice>(value),
        "RuntimeClass" => read::<node::v1::RuntimeClass>(value),
        "Service" => read::<core::v1::Service>(value),
        "StorageClass" => read::<storage::v1::StorageClass>(value),
        "VolumeAttachment" => read::<storage::v1::VolumeAttachment>(value),
        // Events come in two forms; the rest is kept as it is.
        _ => Ok(()),
    }
}

/// What of a pod only admission reads.
#[derive(Deserialize)]
struct Admitted {
    #[serde(default, rename = "spec")]
    _spec: AdmittedSpec,
}

#[derive(Default, Deserialize)]
struct AdmittedSpec {
    #[serde(default, rename = "runtimeClassName")]
    _runtime_class_name: Option<String>,
}

/// Where most workloads describe their pods.
const TEMPLATE: &str = "/spec/template";

/// Reads a `T`. Only once that has failed is it read again with the path in mind, which costs several times as much.
fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<(), String> {
    if T::deserialize(value).is_ok() {
        return Ok(());
    }
    serde_path_to_error::deserialize::<_, T>(value).map(drop).map_err(|error| {
        let path = error.path().to_string();
        let why = plain(&error.into_inner().to_string());
        if path == "." { why } else { format!("{path}: {why}") }
    })
}

/// Reads the pod that a workload describes.
fn template(value: &Value, pointer: &str) -> Result<(), String> {
    let Some(template) = value.pointer(pointer) else { return Ok(()) };
    read::<Pod>(template).map_err(|error| format!("{}.{error}", pointer[1..].replace('/', ".")))
}

/// What serde says, without the words of the language that this is written in.
fn plain(why: &str) -> String {
    let Some((found, expected)) = why.rsplit_once(", expected ") else { return why.to_owned() };
    let found = match found {
        "invalid type: map" => "invalid type: object",
        "invalid type: sequence" => "invalid type: list",
        other => other,
    };
    let expected = match expected {
        "i32" | "u32" | "u16" => "a 32-bit integer",
        "i64" | "u64" => "a 64-bit integer",
        "a map" => "an object",
        "a sequence" => "a list",
        name if name.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{found}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apiserver::kinds;

    fn check_type(kind: &Kind, value: &Value, expected: &str) {
        assert_eq!(check(kind, value).err().unwrap_or_default(), expected, "{value}");
    }

    #[test]
    fn the_member_with_another_type_is_named() {
        let pod = |spec: Value| json!({"metadata": {"name": "p"}, "spec": spec});
        check_type(
            &kinds::PODS,
            &pod(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]})),
            "",
        );
        check_type(
            &kinds::PODS,
            &pod(json!({"containers": 5})),
            "spec.containers: invalid type: integer `5`, expected a list",
        );
        check_type(
            &kinds::PODS,
            &pod(json!({"containers": [7]})),
            "spec.containers[0]: invalid type: integer `7`, expected an object",
        );
        check_type(
            &kinds::PODS,
            &pod(json!({"priority": 1.5})),
            "spec.priority: invalid type: floating point `1.5`, expected a 32-bit integer",
        );
        check_type(
            &kinds::PODS,
            &pod(json!({"runtimeClassName": true})),
            "spec.runtimeClassName: invalid type: boolean `true`, expected a string",
        );
        check_type(
            &kinds::NODES,
            &json!({"status": {"allocatable": {"cpu": [1]}}}),
            "status.allocatable.cpu: invalid type: list, expected a quantity",
        );
        check_type(
            &kinds::DEPLOYMENTS,
            &json!({"spec": {"replicas": "3"}}),
            "spec.replicas: invalid type: string \"3\", expected a 32-bit integer",
        );
        check_type(
            &kinds::CRON_JOBS,
            &json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {
                "containers": [{"resources": {"requests": {"cpu": "much"}}}]
            }}}}}}),
            "spec.jobTemplate.spec.template.spec.containers[0].resources.requests.cpu: quantities must match the \
             regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        );
    }
}
