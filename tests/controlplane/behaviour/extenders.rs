//! The same extenders under upstream's scheduler and under ours, on one control plane: both ask the same questions, and the
//! answers lead to the same ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, PostParams};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, Process, wait_for};
use crate::support::programs::program;
use crate::support::webhook::{Asked, Reply, Webhook, webhook};

/// How long a pod may take to be bound or refused, the start of a scheduler included.
const SETTLED: Duration = Duration::from_mins(1);

/// Where what `PostFilter` adds to a message begins: `DynamicResources` comes first.
const POST_FILTER: &str = " no new claims to deallocate";

/// What became of a pod: its node, and its condition's reason and message up to what `PostFilter` adds.
type End = (String, String, String);

/// A pod that is bound, one whose extender refuses to bind it, one that an extender rejects, and some about which an
/// extender fails.
pub(crate) fn extender_requests_equal_upstreams() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let hook = webhook(answer);
    let config = write_config(plane.folder(), &plane.kubeconfig(), &hook)?;
    for name in ["a", "b", "c"] {
        create::<Node>(&plane, &Api::all(plane.client.clone()), node(name))?;
    }
    let mut theirs = Command::new(program("kube-scheduler"));
    theirs.arg("--config").arg(&config).arg("--secure-port=0");
    let theirs = observe(&plane, &hook, plane.run("upstream", &mut theirs)?)?;
    let mut ours = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    ours.arg("--config").arg(&config).arg("--secure-port=0");
    let ours = observe(&plane, &hook, plane.run("ours", &mut ours)?)?;
    if theirs.len() != pods().len() || theirs != ours {
        let show = |seen: &[(Vec<Value>, End)]| serde_json::to_string_pretty(seen).unwrap_or_default();
        let (theirs, ours) = (show(&theirs), show(&ours));
        let apart = theirs.lines().zip(ours.lines()).find(|(a, b)| a != b);
        for (name, text) in [("theirs.json", &theirs), ("ours.json", &ours)] {
            std::fs::write(plane.folder().join(name), text).map_err(|error| error.to_string())?;
        }
        return Err(format!("{}: they differ, first in {apart:?}", plane.folder().display()).into());
    }
    Ok(plane.remove()?)
}

/// Whole nodes under `/whole`, names under `/names`.
fn answer(asked: &Asked) -> Reply {
    let pod = asked.body.pointer("/Pod/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if let Some(reply) = failure(pod) {
        return reply;
    }
    Reply::Json(match asked.path.as_str() {
        "/whole/filter" if pod == "rejected" => {
            json!({"FailedNodes": {"a": "busy", "b": "busy"}, "FailedAndUnresolvableNodes": {"c": "never"}})
        }
        "/whole/filter" => {
            let mut nodes = asked.body["Nodes"].clone();
            if let Some(items) = nodes["items"].as_array_mut() {
                items.retain(|node| node["metadata"]["name"] != "a");
            }
            json!({"nodes": nodes})
        }
        "/names/filter" => json!({"nodenames": asked.body["NodeNames"]}),
        "/whole/prioritize" | "/names/prioritize" => json!([{"Host": "c", "Score": 10}]),
        _ => json!({"Error": "not today"}),
    })
}

/// What extenders answer about pods that are named for what goes wrong.
fn failure(pod: &str) -> Option<Reply> {
    Some(match pod {
        "code" => Reply::Code(503),
        "end" => Reply::HangUp,
        "silence" => Reply::Never,
        "half" => Reply::Half,
        "error" => Reply::Json(json!({"error": "out of order"})),
        "page" => Reply::Text("<html>".to_owned()),
        "nothing" => Reply::Text(String::new()),
        "unfinished" => Reply::Text("{\"Nodes\": {".to_owned()),
        "no-nodes" => Reply::Text(" null and more".to_owned()),
        _ => return None,
    })
}

fn write_config(folder: &Path, kubeconfig: &Path, hook: &Webhook) -> Result<PathBuf, String> {
    let at = |path: &str, more: Value| {
        let mut extender = json!({"urlPrefix": format!("{}/{path}", hook.url()), "filterVerb": "filter"});
        extender["prioritizeVerb"] = "prioritize".into();
        extender["weight"] = 100.into();
        extender["httpTimeout"] = "1s".into();
        for (key, value) in more.as_object().into_iter().flatten() {
            extender[key] = value.clone();
        }
        extender
    };
    let managed = json!([{"name": "example.com/gpu", "ignoredByScheduler": true}]);
    let names = json!({"nodeCacheCapable": true, "bindVerb": "bind", "managedResources": managed});
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig},
        "leaderElection": {"leaderElect": false},
        // Several workers find nodes in an order of their own.
        "parallelism": 1,
        "extenders": [at("whole", json!({})), at("names", names)],
    });
    let path = folder.join("extenders.json");
    std::fs::write(&path, config.to_string()).map_err(|error| error.to_string())?;
    Ok(path)
}

fn node(name: &str) -> Value {
    let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}, "annotations": {"note": "<&>"}},
        "spec": {"podCIDR": "10.1.0.0/24", "providerID": format!("cloud://{name}")},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "images": [{"names": ["registry.example/app:v1"], "sizeBytes": 5_000_000}],
            "nodeInfo": {
                "machineID": "m", "systemUUID": "s", "bootID": "b", "kernelVersion": "6.1", "osImage": "os",
                "containerRuntimeVersion": "c", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "", "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    })
}

fn pods() -> Vec<Value> {
    let pod = |name: &str, requests: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "default", "labels": {"app": "web"}, "finalizers": ["example.com/held"],
                "annotations": {"note": "<&>"},
            },
            "spec": {
                "containers": [{
                    "name": "main", "image": "registry.example/app:v1", "command": ["run"], "env": [{"name": "E", "value": "v"}],
                    "resources": {"requests": requests, "limits": requests},
                    "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}},
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                }],
                "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
                "securityContext": {"runAsUser": 1000},
            },
        })
    };
    let mut pods = vec![
        pod("plain", json!({"cpu": "0.5", "memory": "256Mi"})),
        pod("gpu", json!({"cpu": "1", "example.com/gpu": "1"})),
    ];
    let others = ["rejected", "code", "end", "silence", "half", "error", "page", "nothing", "unfinished", "no-nodes"];
    pods.extend(others.map(|name| pod(name, json!({"cpu": "100m"}))));
    pods
}

fn create<K>(plane: &ControlPlane, api: &Api<K>, object: Value) -> Result<(), String>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object: K = serde_json::from_value(object).map_err(|error| error.to_string())?;
    let created = plane.runtime.block_on(api.create(&PostParams::default(), &object));
    created.map(|_| ()).map_err(|error| error.to_string())
}

/// Gives the scheduler a pod after the other: what extenders were asked about each at first, and what became of it.
fn observe(plane: &ControlPlane, hook: &Webhook, mut scheduler: Process) -> Result<Vec<(Vec<Value>, End)>, String> {
    let api: Api<Pod> = Api::namespaced(plane.client.clone(), "default");
    let mut seen = Vec::new();
    for pod in pods() {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        create(plane, &api, pod)?;
        let end = wait_for(&format!("the end of pod {name}"), SETTLED, || {
            if let Some(status) = scheduler.ended() {
                return Err(format!("the scheduler ended with {status}"));
            }
            let pod = plane.runtime.block_on(api.get(&name)).map_err(|error| error.to_string())?;
            Ok(end_of(&pod))
        });
        let end = end.map_err(|error| format!("{error}; {}", scheduler.tail()))?;
        remove(plane, &api, &name)?;
        seen.push((first_attempt(&name, hook.take()), end));
    }
    scheduler.terminate()?;
    // What a last attempt asked.
    hook.take();
    Ok(seen)
}

fn end_of(pod: &Pod) -> Option<End> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled")?;
    let reason = condition.reason.clone().unwrap_or_default();
    let message = condition.message.clone().unwrap_or_default();
    let message = message.split(POST_FILTER).next().unwrap_or_default().to_owned();
    Some((node, reason, message))
}

fn remove(plane: &ControlPlane, api: &Api<Pod>, name: &str) -> Result<(), String> {
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let free = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let work = async {
        api.patch(name, &kube::api::PatchParams::default(), &free).await?;
        api.delete(name, &now).await.map(|_| ())
    };
    plane.runtime.block_on(work).map_err(|error| error.to_string())?;
    wait_for("the pod to be gone", SETTLED, || {
        let pod = plane.runtime.block_on(api.get_opt(name)).map_err(|error| error.to_string())?;
        Ok(pod.is_none().then_some(()))
    })
}

/// Each question about this pod once: one that was not bound is tried again, be it while the next one is there. What differs between two pods of one manifest is left out,
/// and so is the order of nodes, which upstream leaves to how a map of the first list is walked.
fn first_attempt(pod: &str, asked: Vec<Asked>) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    for Asked { path, headers, mut body } in asked {
        let about = body.pointer("/Pod/metadata/name").or_else(|| body.get("PodName"));
        if about.is_none_or(|name| name != pod) || seen.iter().any(|one| one["path"] == path.as_str()) {
            continue;
        }
        if let Some(metadata) = body.pointer_mut("/Pod/metadata").and_then(Value::as_object_mut) {
            for own in ["uid", "resourceVersion", "creationTimestamp"] {
                if let Some(value) = metadata.get_mut(own) {
                    *value = own.into();
                }
            }
        }
        if let Some(nodes) = body.pointer_mut("/Nodes/items").and_then(Value::as_array_mut) {
            nodes.sort_by_key(|node| node["metadata"]["name"].to_string());
        }
        if let Some(names) = body.get_mut("NodeNames").and_then(Value::as_array_mut) {
            names.sort_by_key(Value::to_string);
        }
        if let Some(uid) = body.get_mut("PodUID") {
            *uid = "uid".into();
        }
        let content_type = headers.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.clone());
        seen.push(json!({"path": path, "contentType": content_type, "body": body}));
    }
    // Extenders are asked for scores at the same time.
    seen.sort_by_key(|one| one["path"].to_string());
    seen
}
