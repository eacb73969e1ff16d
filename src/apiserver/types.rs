//! Whether an object's members have the types that the API gives them, and which one has not.

use k8s_openapi::api::{apps, batch, coordination, core, node, policy, resource, scheduling, storage};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kinds::Kind;
use crate::k8s::{Node, Pod, ResourceList};

/// Reads the objects of one kind.
struct Reader {
    /// Whether the members have the types of the API.
    check: fn(&Value) -> Result<(), String>,
    /// Whether all members have the types of the API, and which ones it does not know.
    whole: fn(&Value) -> Result<Vec<String>, String>,
    /// Where the object describes a pod.
    template: Option<&'static str>,
    /// Where the object has amounts by resource.
    amounts: &'static [&'static str],
}

fn of<T: DeserializeOwned>() -> Reader {
    Reader { check: read::<T>, whole: read_whole::<T>, template: None, amounts: &[] }
}

fn workload<T: DeserializeOwned>(template: &'static str) -> Reader {
    Reader { template: Some(template), ..of::<T>() }
}

fn with_amounts<T: DeserializeOwned>(amounts: &'static [&'static str]) -> Reader {
    Reader { amounts, ..of::<T>() }
}

/// Where most workloads describe their pods.
const TEMPLATE: &str = "/spec/template";

/// How objects of a kind are read; none for what is kept as it is, and for events, which come in two forms.
fn reader(kind: &str) -> Option<Reader> {
    Some(match kind {
        "Pod" => Reader { check: pod, ..of::<core::v1::Pod>() },
        "Node" => Reader { check: read::<Node>, ..of::<core::v1::Node>() },
        "CronJob" => workload::<batch::v1::CronJob>("/spec/jobTemplate/spec/template"),
        "DaemonSet" => workload::<apps::v1::DaemonSet>(TEMPLATE),
        "Deployment" => workload::<apps::v1::Deployment>(TEMPLATE),
        "Job" => workload::<batch::v1::Job>(TEMPLATE),
        "ReplicaSet" => workload::<apps::v1::ReplicaSet>(TEMPLATE),
        "ReplicationController" => workload::<core::v1::ReplicationController>(TEMPLATE),
        "StatefulSet" => workload::<apps::v1::StatefulSet>(TEMPLATE),
        "CSIDriver" => of::<storage::v1::CSIDriver>(),
        "CSINode" => of::<storage::v1::CSINode>(),
        "CSIStorageCapacity" => of::<storage::v1::CSIStorageCapacity>(),
        "DeviceClass" => of::<resource::v1::DeviceClass>(),
        "Lease" => of::<coordination::v1::Lease>(),
        "LimitRange" => with_amounts::<core::v1::LimitRange>(&[
            "/spec/limits/*/default",
            "/spec/limits/*/defaultRequest",
            "/spec/limits/*/max",
            "/spec/limits/*/maxLimitRequestRatio",
            "/spec/limits/*/min",
        ]),
        "Namespace" => of::<core::v1::Namespace>(),
        "PersistentVolume" => with_amounts::<core::v1::PersistentVolume>(&["/spec/capacity"]),
        "PersistentVolumeClaim" => {
            with_amounts::<core::v1::PersistentVolumeClaim>(&["/spec/resources/requests", "/spec/resources/limits"])
        }
        "PodDisruptionBudget" => of::<policy::v1::PodDisruptionBudget>(),
        "PriorityClass" => of::<scheduling::v1::PriorityClass>(),
        "ResourceClaim" => of::<resource::v1::ResourceClaim>(),
        "ResourceClaimTemplate" => of::<resource::v1::ResourceClaimTemplate>(),
        "ResourceSlice" => of::<resource::v1::ResourceSlice>(),
        "RuntimeClass" => with_amounts::<node::v1::RuntimeClass>(&["/overhead/podFixed"]),
        "Service" => of::<core::v1::Service>(),
        "StorageClass" => of::<storage::v1::StorageClass>(),
        "VolumeAttachment" => of::<storage::v1::VolumeAttachment>(),
        _ => return None,
    })
}

/// Checks the types of what is read of an object. The error is a path and what is wrong there.
///
/// Pods and nodes are read as scheduling sees them, which leaves out what no scheduler reads; so are the pods that
/// workloads describe, whose amounts are checked by that, too.
pub(super) fn check(kind: &Kind, value: &Value) -> Result<(), String> {
    let Some(reader) = reader(kind.kind) else { return Ok(()) };
    (reader.check)(value)?;
    if let Some(pointer) = reader.template
        && let Some(template) = value.pointer(pointer)
    {
        read::<Pod>(template).map_err(|error| format!("{}.{error}", dotted(pointer)))?;
    }
    reader.amounts.iter().try_for_each(|pointer| amounts(value, pointer))
}

/// Checks the types of all members, also of those that no scheduler reads. Gives the paths of those that the API does not
/// know, and that count for nothing.
pub(super) fn check_whole(kind: &Kind, value: &Value) -> Result<Vec<String>, String> {
    let Some(reader) = reader(kind.kind) else { return Ok(Vec::new()) };
    let mut value = value.clone();
    quote_amounts(&mut value);
    (reader.whole)(&value)
}

fn read_whole<T: DeserializeOwned>(value: &Value) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    match serde_ignored::deserialize::<_, _, T>(value, |path| paths.push(text_of(&path))) {
        Ok(_) => Ok(paths),
        // Reading it again tells where the error is.
        Err(error) => Err(read::<T>(value).err().unwrap_or_else(|| error.to_string())),
    }
}

/// Members that are amounts, or have them as members.
const AMOUNTS: [&str; 16] = [
    "allocatable",
    "allocatedResources",
    "capacity",
    "counters",
    "default",
    "defaultRequest",
    "divisor",
    "limits",
    "max",
    "maxLimitRequestRatio",
    "maximumVolumeSize",
    "min",
    "overhead",
    "podFixed",
    "requests",
    "sizeLimit",
];

/// Makes texts of amounts that are written as numbers, which the API takes and the types that are read here do not.
fn quote_amounts(value: &mut Value) {
    let quote = |amount: &mut Value| {
        if amount.is_number() {
            *amount = Value::from(amount.to_string());
        }
    };
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if AMOUNTS.contains(&key.as_str()) {
                    quote(member);
                    for amount in member.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
                        quote(amount);
                        amount.get_mut("value").into_iter().for_each(quote);
                    }
                }
                quote_amounts(member);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quote_amounts),
        _ => {}
    }
}

/// A path as messages have it, without what only the reading type knows.
fn text_of(path: &serde_ignored::Path<'_>) -> String {
    use serde_ignored::Path;
    match path {
        Path::Root => String::new(),
        Path::Seq { parent, index } => format!("{}[{index}]", text_of(parent)),
        Path::Map { parent, key } => match text_of(parent) {
            parent if parent.is_empty() => key.clone(),
            parent => format!("{parent}.{key}"),
        },
        Path::Some { parent } | Path::NewtypeStruct { parent } | Path::NewtypeVariant { parent } => text_of(parent),
    }
}

fn pod(value: &Value) -> Result<(), String> {
    read::<Pod>(value)?;
    read::<Admitted>(value)
}

/// Checks the amounts at `pointer`, which may lead through one list.
fn amounts(value: &Value, pointer: &str) -> Result<(), String> {
    let check = |list: Option<&Value>, path: String| {
        list.map_or(Ok(()), |list| read::<ResourceList>(list).map_err(|error| format!("{path}.{error}")))
    };
    let Some((list, rest)) = pointer.split_once("/*") else { return check(value.pointer(pointer), dotted(pointer)) };
    let items = value.pointer(list).and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .enumerate()
        .try_for_each(|(at, item)| check(item.pointer(rest), format!("{}[{at}].{}", dotted(list), dotted(rest))))
}

fn dotted(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
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

/// Reads a `T`. Only once that has failed is it read again with the path in mind, which costs several times as much.
fn read<T: DeserializeOwned>(value: &Value) -> Result<(), String> {
    if T::deserialize(value).is_ok() {
        return Ok(());
    }
    serde_path_to_error::deserialize::<_, T>(value).map(drop).map_err(|error| {
        let path = error.path().to_string();
        let why = plain(&error.into_inner().to_string());
        if path == "." { why } else { format!("{path}: {why}") }
    })
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
        "Quantity" => "a quantity",
        // The name of a type, of which all are read from objects.
        name if name.starts_with("struct ") || name.starts_with(char::is_uppercase) => "an object",
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
            &kinds::PODS,
            &pod(json!({"affinity": []})),
            "spec.affinity: invalid type: list, expected an object",
        );
        check_type(
            &kinds::LIMIT_RANGES,
            &json!({"spec": {"limits": [{"type": "Pod"}, {"type": "Pod", "max": {"cpu": "1K"}}]}}),
            "spec.limits[1].max.cpu: unable to parse quantity's suffix",
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

    #[test]
    fn members_that_the_api_does_not_know_are_named() {
        let template = json!({"spec": {"containers": [{"name": "c", "resource": {}}], "nodeSelectors": {}}});
        let found = check_whole(&kinds::DEPLOYMENTS, &json!({"spec": {"replica": 2, "template": template}}));
        let expected =
            ["spec.replica", "spec.template.spec.containers[0].resource", "spec.template.spec.nodeSelectors"];
        assert_eq!(found, Ok(expected.map(str::to_owned).to_vec()));
        let known =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}});
        assert_eq!(check_whole(&kinds::PODS, &known), Ok(Vec::new()));
    }

    #[test]
    fn all_members_have_the_types_of_the_api() {
        let check = |kind: &'static Kind, value: Value, expected: Result<(), &str>| {
            let found = check_whole(kind, &value).map(|_| ());
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|error| *error), "{value}");
        };
        let pod = |container: Value| json!({"spec": {"containers": [container]}});
        let resources = json!({"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"cpu": 2.5}});
        check(&kinds::PODS, pod(json!({"name": "c", "resources": resources})), Ok(()));
        // Was once read by position.
        check(
            &kinds::PODS,
            pod(json!({"name": "c", "resources": [{}, {"cpu": 100}]})),
            Err("spec.containers[0].resources: invalid type: list, expected an object"),
        );
        check(
            &kinds::PODS,
            pod(json!({"name": "c", "env": [{"name": "A", "value": 5}]})),
            Err("spec.containers[0].env[0].value: invalid type: integer `5`, expected a string"),
        );
        check(
            &kinds::PODS,
            pod(json!({"name": "c", "resources": {"requests": {"cpu": []}}})),
            Err("spec.containers[0].resources.requests.cpu: invalid type: list, expected a quantity"),
        );
        check(
            &kinds::NODES,
            json!({"spec": {"providerID": 5}}),
            Err("spec.providerID: invalid type: integer `5`, expected a string"),
        );
        check(&kinds::LIMIT_RANGES, json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": 1}}]}}), Ok(()));
        let device = json!({"name": "d", "capacity": {"memory": {"value": 5}}});
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
        check(&kinds::RESOURCE_SLICES, json!({"spec": {"driver": "d", "pool": pool, "devices": [device]}}), Ok(()));
    }
}
