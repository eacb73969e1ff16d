//! What schedulers write: the same scenarios under upstream's binary and under ours, each on a control plane of its own, and
//! every write that the audit log has of them compared, field by field.

mod audit;
mod scenarios;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use http::{Method, Request};
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::cluster::{ControlPlane, Process, wait_for};
use crate::programs::program;
use audit::Written;

/// How long a scheduler may take for what a scenario waits for, its start and a pod's backoff included.
const SETTLED: Duration = Duration::from_mins(1);

/// Runs all scenarios under both schedulers.
pub(crate) fn writes_what_upstream_writes() -> Result<(), Failed> {
    let mut theirs = Command::new(program("kube-scheduler"));
    theirs.arg("--secure-port=0");
    let (theirs, their_plane) = play(theirs)?;
    let (ours, our_plane) = play(Command::new(env!("CARGO_BIN_EXE_kube-scheduler")))?;
    let differences = audit::compare(&theirs, &ours);
    if !differences.is_empty() {
        let folders = format!("{} and {}", their_plane.folder().display(), our_plane.folder().display());
        return Err(format!("{folders}:\n{}", differences.join("\n")).into());
    }
    println!("{} writes about {} objects are the same", theirs.count(), theirs.objects());
    their_plane.remove()?;
    Ok(our_plane.remove()?)
}

/// What a scheduler wrote in all scenarios.
fn play(mut command: Command) -> Result<(Written, ControlPlane), String> {
    let plane = ControlPlane::start()?;
    command.arg("--config").arg(write_config(&plane)?);
    let mut scheduler = plane.run("scheduler", &mut command)?;
    for (name, scenario) in scenarios::ALL {
        let mut stage = Stage { plane: &plane, scheduler: &mut scheduler, namespace: (*name).to_owned() };
        let played = stage.open().and_then(|()| scenario(&mut stage)).and_then(|()| stage.close());
        played.map_err(|error| {
            let folder = plane.folder().display();
            format!("scenario {name}, in {folder}: {error}; {}", scheduler.tail())
        })?;
    }
    scheduler.terminate()?;
    let written = Written::read(&plane.audited()?)?;
    Ok((written, plane))
}

/// Two profiles; one worker, since several find nodes in an order of their own.
fn write_config(plane: &ControlPlane) -> Result<PathBuf, String> {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": plane.scheduler_kubeconfig()},
        "leaderElection": {"leaderElect": false},
        "parallelism": 1,
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "second-scheduler"}],
    });
    let path = plane.folder().join("config.json");
    std::fs::write(&path, config.to_string()).map_err(|error| error.to_string())?;
    Ok(path)
}

/// A cluster in which one scenario plays, in a namespace of its own.
struct Stage<'a> {
    plane: &'a ControlPlane,
    scheduler: &'a mut Process,
    namespace: String,
}

impl Stage<'_> {
    fn open(&mut self) -> Result<(), String> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.send(Method::POST, "/api/v1/namespaces", &namespace).map(drop)
    }

    /// Takes nodes and pods away again: in this order, so that no pod that waits gets the place of another.
    fn close(&mut self) -> Result<(), String> {
        let nodes = self.send(Method::GET, "/api/v1/nodes", &Value::Null)?;
        for node in nodes["items"].as_array().into_iter().flatten() {
            let path = format!("/api/v1/nodes/{}", node["metadata"]["name"].as_str().unwrap_or_default());
            self.send(Method::DELETE, &path, &json!({}))?;
        }
        let pods = self.send(Method::GET, &self.path("pods", ""), &Value::Null)?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            self.delete_now(name)?;
            if pod["metadata"]["finalizers"].is_array() {
                self.patch("pods", name, "", &json!({"metadata": {"finalizers": null}}))?;
            }
        }
        Ok(())
    }

    fn path(&self, resource: &str, name: &str) -> String {
        let namespace = &self.namespace;
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        match resource {
            "nodes" => format!("/api/v1/nodes{name}"),
            "poddisruptionbudgets" => format!("/apis/policy/v1/namespaces/{namespace}/{resource}{name}"),
            "events" => format!("/apis/events.k8s.io/v1/namespaces/{namespace}/{resource}{name}"),
            "priorityclasses" => format!("/apis/scheduling.k8s.io/v1/{resource}{name}"),
            _ => format!("/api/v1/namespaces/{namespace}/{resource}{name}"),
        }
    }

    /// A request of an administrator.
    fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let what = format!("{method} {path}");
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(body);
        let request = request.map_err(|error| error.to_string())?;
        let answer = self.plane.runtime.block_on(self.plane.client.request(request));
        answer.map_err(|error| format!("{what}: {error}"))
    }

    fn create(&self, resource: &str, object: &Value) -> Result<(), String> {
        self.send(Method::POST, &self.path(resource, ""), object).map(drop)
    }

    fn patch(&self, resource: &str, name: &str, subresource: &str, patch: &Value) -> Result<(), String> {
        self.send(Method::PATCH, &format!("{}{subresource}", self.path(resource, name)), patch).map(drop)
    }

    /// Adds a node with so many cores.
    fn node(&self, name: &str, cpu: &str, spec: &Value) -> Result<(), String> {
        let amounts = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
        self.create(
            "nodes",
            &json!({
                "apiVersion": "v1", "kind": "Node", "spec": spec,
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {
                    "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
                },
            }),
        )
    }

    /// Adds a pod that asks for so many cores; `more` is merged into it.
    fn pod(&self, name: &str, cpu: &str, more: Value) -> Result<(), String> {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{
                "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": cpu}},
            }]},
        });
        merge(&mut pod, more);
        self.create("pods", &pod)
    }

    fn get_pod(&self, name: &str) -> Result<Value, String> {
        self.send(Method::GET, &self.path("pods", name), &Value::Null)
    }

    /// Deletes a pod as whoever owns it would.
    fn delete(&self, pod: &str) -> Result<(), String> {
        self.send(Method::DELETE, &self.path("pods", pod), &json!({})).map(drop)
    }

    /// Ends a pod as its kubelet would.
    fn delete_now(&self, pod: &str) -> Result<(), String> {
        self.send(Method::DELETE, &self.path("pods", pod), &json!({"gracePeriodSeconds": 0})).map(drop)
    }

    fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&Self) -> Result<Option<T>, String>) -> Result<T, String> {
        let what = format!("{what} in {}", self.namespace);
        wait_for(&what, SETTLED, || match self.scheduler.ended() {
            Some(status) => Err(format!("the scheduler ended with {status}")),
            None => look(self),
        })
    }

    /// Waits until the pod is on this node, and its event is there.
    fn wait_bound(&mut self, pod: &str, node: &str) -> Result<(), String> {
        let found = self.wait(&format!("pod {pod} to be bound"), |stage| {
            Ok(stage.get_pod(pod)?["spec"]["nodeName"].as_str().map(str::to_owned))
        })?;
        if found != node {
            return Err(format!("pod {pod} is on {found}, not on {node}"));
        }
        self.wait_event(pod, "Scheduled", "")
    }

    /// Waits until the pod is said not to fit, in words that contain these, and its event is there.
    fn wait_refused(&mut self, pod: &str, words: &str) -> Result<(), String> {
        self.wait(&format!("pod {pod} to be refused with {words:?}"), |stage| {
            let pod = stage.get_pod(pod)?;
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let refused = |condition: &Value| {
                condition["type"] == "PodScheduled"
                    && condition["status"] == "False"
                    && condition["message"].as_str().is_some_and(|message| message.contains(words))
            };
            Ok(conditions.iter().any(refused).then_some(()))
        })?;
        // The note may be cut.
        let words = words.chars().take(100).collect::<String>();
        self.wait_event(pod, "FailedScheduling", &words)
    }

    /// Waits for an event about this pod.
    fn wait_event(&mut self, pod: &str, reason: &str, words: &str) -> Result<(), String> {
        self.wait(&format!("event {reason} about pod {pod}"), |stage| {
            let events = stage.send(Method::GET, &stage.path("events", ""), &Value::Null)?;
            let is_it = |event: &Value| {
                event["regarding"]["name"] == pod
                    && event["reason"] == reason
                    && event["note"].as_str().is_some_and(|note| note.contains(words))
            };
            Ok(events["items"].as_array().into_iter().flatten().any(is_it).then_some(()))
        })
    }

    /// Waits until the pod is being deleted.
    fn wait_terminating(&mut self, pod: &str) -> Result<(), String> {
        self.wait(&format!("pod {pod} to be deleted"), |stage| {
            Ok(stage.get_pod(pod)?["metadata"]["deletionTimestamp"].is_string().then_some(()))
        })
    }
}

/// Members of `more` go into `object`, or replace what is there.
fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in more {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}
