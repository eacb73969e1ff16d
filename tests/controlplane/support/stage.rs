//! A cluster on which a test plays whoever is not the scheduler: users, controllers, kubelets.

use std::time::Duration;

use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, Process, wait_for};

/// Timeout for the scheduler to reach the state that a test waits for, including its start and a pod's backoff.
const SETTLED: Duration = Duration::from_mins(1);

/// What the names of pods begin with that only show that a node is known.
pub(crate) const FENCE: &str = "fence-";

/// A scheduler that has to be running.
pub(crate) trait Alive {
    /// Why it is not running any more.
    fn ended(&mut self) -> Option<String>;

    /// Its metrics as text, where it has any to show.
    fn metrics(&self, _: &ControlPlane) -> Result<String, String> {
        Err("this scheduler shows no metrics".to_owned())
    }
}

impl Alive for Process {
    fn ended(&mut self) -> Option<String> {
        Self::ended(self).map(|status| status.to_string())
    }
}

/// Plays a scenario in a namespace of its own, and takes its nodes and pods away again.
pub(crate) fn on_stage<T>(
    plane: &ControlPlane,
    scheduler: &mut dyn Alive,
    name: &str,
    scenario: impl FnOnce(&mut Stage<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let mut stage = Stage { plane, scheduler, namespace: name.to_owned() };
    let play = || {
        stage.open()?;
        let outcome = scenario(&mut stage)?;
        stage.close()?;
        Ok(outcome)
    };
    play().map_err(|error: String| format!("scenario {name}, in {}: {error}", plane.folder().display()))
}

/// A cluster on which a scenario plays.
pub(crate) struct Stage<'a> {
    plane: &'a ControlPlane,
    scheduler: &'a mut dyn Alive,
    pub(crate) namespace: String,
}

impl Stage<'_> {
    /// Does something to a pod, if it is there.
    pub(crate) fn if_there(&self, pod: &str, act: impl FnOnce(&Self) -> Result<(), String>) -> Result<(), String> {
        let pods = self.send(Method::GET, &self.path("pods", ""), &Value::Null)?;
        let there = pods["items"].as_array().into_iter().flatten().any(|found| found["metadata"]["name"] == pod);
        if there { act(self) } else { Ok(()) }
    }

    /// Adds an object of the cluster, unless it is there from before.
    pub(crate) fn create_if_missing(&self, resource: &str, object: &Value) -> Result<(), String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let there = self.send(Method::GET, &self.path(resource, name), &Value::Null).is_ok();
        if there { Ok(()) } else { self.create(resource, object) }
    }

    pub(crate) fn remove_node(&self, name: &str) -> Result<(), String> {
        self.send(Method::DELETE, &self.path("nodes", name), &json!({})).map(drop)
    }

    /// Adds up the scheduler's series that begin so.
    pub(crate) fn sum(&self, series: &[&str]) -> Result<u64, String> {
        let text = self.scheduler.metrics(self.plane)?;
        let lines = text.lines().filter(|line| series.iter().any(|series| line.starts_with(series)));
        let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small counts")]
        Ok(values.sum::<f64>() as u64)
    }

    /// Ends a pod that is being deleted, as the kubelet of its node would; says whether there was one. Others end later: what a
    /// scheduler does between two ends would be a matter of time.
    pub(crate) fn end_pod(&self) -> Result<bool, String> {
        let pods = self.send(Method::GET, &self.path("pods", ""), &Value::Null)?;
        let ending = pods["items"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|pod| pod["metadata"]["deletionTimestamp"].is_string() && pod["spec"]["nodeName"].is_string());
        let name = ending.and_then(|pod| pod["metadata"]["name"].as_str());
        name.map_or(Ok(()), |name| self.delete_now(name))?;
        Ok(name.is_some())
    }

    /// Starts the pods that have come to their nodes, as kubelets would; later ones later, and no two at the same time, since
    /// of victims that are else alike those count less that were started last.
    pub(crate) fn start_pods(&self) -> Result<(), String> {
        let pods = self.send(Method::GET, &self.path("pods", ""), &Value::Null)?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let is_new = pod["spec"]["nodeName"].is_string() && pod["status"]["startTime"].is_null();
            let Some(second) = name.rsplit_once('-').and_then(|(_, number)| number.parse::<u8>().ok()) else {
                continue;
            };
            if is_new && pod["metadata"]["deletionTimestamp"].is_null() {
                let start = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
                self.patch("pods", name, "/status", &json!({"status": {"phase": "Running", "startTime": start}}))?;
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        self.send(Method::POST, "/api/v1/namespaces", &namespace).map(drop)
    }

    /// Takes pods and nodes away again; those that wait go first, so that none gets the place of another.
    fn close(&mut self) -> Result<(), String> {
        let pods = self.send(Method::GET, &self.path("pods", ""), &Value::Null)?;
        let mut pods = pods["items"].as_array().cloned().unwrap_or_default();
        pods.sort_by_key(|pod| pod["spec"]["nodeName"].is_string());
        for pod in pods {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            self.delete_now(name)?;
            if pod["metadata"]["finalizers"].is_array() {
                self.patch("pods", name, "", &json!({"metadata": {"finalizers": null}}))?;
            }
        }
        let nodes = self.send(Method::GET, "/api/v1/nodes", &Value::Null)?;
        for node in nodes["items"].as_array().into_iter().flatten() {
            self.remove_node(node["metadata"]["name"].as_str().unwrap_or_default())?;
        }
        Ok(())
    }

    pub(crate) fn path(&self, resource: &str, name: &str) -> String {
        let namespace = &self.namespace;
        let name = if name.is_empty() { String::new() } else { format!("/{name}") };
        match resource {
            "nodes" => format!("/api/v1/nodes{name}"),
            "poddisruptionbudgets" => format!("/apis/policy/v1/namespaces/{namespace}/{resource}{name}"),
            "deployments" | "replicasets" | "statefulsets" | "daemonsets" => {
                format!("/apis/apps/v1/namespaces/{namespace}/{resource}{name}")
            }
            "jobs" => format!("/apis/batch/v1/namespaces/{namespace}/{resource}{name}"),
            "events" => format!("/apis/events.k8s.io/v1/namespaces/{namespace}/{resource}{name}"),
            "priorityclasses" => format!("/apis/scheduling.k8s.io/v1/{resource}{name}"),
            _ => format!("/api/v1/namespaces/{namespace}/{resource}{name}"),
        }
    }

    /// A request of an administrator.
    pub(crate) fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let what = format!("{method} {path}");
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(body);
        let request = request.map_err(|error| error.to_string())?;
        let answer = self.plane.runtime.block_on(self.plane.client.request(request));
        answer.map_err(|error| format!("{what}: {error}"))
    }

    pub(crate) fn create(&self, resource: &str, object: &Value) -> Result<(), String> {
        self.send(Method::POST, &self.path(resource, ""), object).map(drop)
    }

    pub(crate) fn patch(&self, resource: &str, name: &str, subresource: &str, patch: &Value) -> Result<(), String> {
        self.send(Method::PATCH, &format!("{}{subresource}", self.path(resource, name)), patch).map(drop)
    }

    /// Adds a node with so many cores.
    pub(crate) fn node(&self, name: &str, cpu: &str, spec: &Value) -> Result<(), String> {
        self.node_labelled(name, cpu, &json!({}), spec)
    }

    /// The same with labels, which it has from the start.
    pub(crate) fn node_labelled(&self, name: &str, cpu: &str, more: &Value, spec: &Value) -> Result<(), String> {
        let amounts = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
        let mut labels = json!({"kubernetes.io/hostname": name});
        merge(&mut labels, more.clone());
        self.create(
            "nodes",
            &json!({
                "apiVersion": "v1", "kind": "Node", "spec": spec,
                "metadata": {"name": name, "labels": labels},
                "status": {
                    "capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}],
                },
            }),
        )
    }

    /// Adds a node, and waits until the scheduler knows it: nodes and pods come to it on different ways. A pod that tolerates
    /// everything goes there and is taken away again; what is written about it is not compared.
    pub(crate) fn known_node(&mut self, name: &str, cpu: &str, spec: &Value) -> Result<(), String> {
        self.node(name, cpu, spec)?;
        let fence = format!("{FENCE}{name}");
        let pinned = json!({"kubernetes.io/hostname": name});
        let spec = json!({"nodeSelector": pinned, "tolerations": [{"operator": "Exists"}]});
        self.pod(&fence, "0", json!({"spec": spec}))?;
        self.wait_bound(&fence, name)?;
        self.delete_now(&fence)
    }

    /// Adds a pod that asks for so many cores; `more` is merged into it.
    pub(crate) fn pod(&self, name: &str, cpu: &str, more: Value) -> Result<(), String> {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [{
                "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": cpu}},
            }]},
        });
        merge(&mut pod, more);
        self.create("pods", &pod)
    }

    pub(crate) fn get_pod(&self, name: &str) -> Result<Value, String> {
        self.send(Method::GET, &self.path("pods", name), &Value::Null)
    }

    /// Deletes a pod as whoever owns it would.
    pub(crate) fn delete(&self, pod: &str) -> Result<(), String> {
        self.send(Method::DELETE, &self.path("pods", pod), &json!({})).map(drop)
    }

    /// Ends a pod as its kubelet would.
    pub(crate) fn delete_now(&self, pod: &str) -> Result<(), String> {
        self.send(Method::DELETE, &self.path("pods", pod), &json!({"gracePeriodSeconds": 0})).map(drop)
    }

    pub(crate) fn wait<T>(
        &mut self,
        what: &str,
        look: impl FnMut(&Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        self.wait_for(what, SETTLED, look)
    }

    /// The same with a limit of its own.
    pub(crate) fn wait_for<T>(
        &mut self,
        what: &str,
        limit: Duration,
        mut look: impl FnMut(&Self) -> Result<Option<T>, String>,
    ) -> Result<T, String> {
        let what = format!("{what} in {}", self.namespace);
        wait_for(&what, limit, || match self.scheduler.ended() {
            Some(why) => Err(format!("the scheduler ended: {why}")),
            None => look(self),
        })
    }

    /// Waits until the pod is on this node, and its event is there.
    pub(crate) fn wait_bound(&mut self, pod: &str, node: &str) -> Result<(), String> {
        let found = self.wait(&format!("pod {pod} to be bound"), |stage| {
            Ok(stage.get_pod(pod)?["spec"]["nodeName"].as_str().map(str::to_owned))
        })?;
        if found != node {
            return Err(format!("pod {pod} is on {found}, not on {node}"));
        }
        self.wait_event(pod, "Scheduled", "")
    }

    /// Waits until the pod is said not to fit, in words that contain these, and its event is there.
    pub(crate) fn wait_refused(&mut self, pod: &str, words: &str) -> Result<(), String> {
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
    pub(crate) fn wait_event(&mut self, pod: &str, reason: &str, words: &str) -> Result<(), String> {
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

    /// Waits until there are so many events of one reason about this pod.
    pub(crate) fn wait_events(&mut self, pod: &str, reason: &str, count: usize) -> Result<(), String> {
        self.wait(&format!("{count} events {reason} about pod {pod}"), |stage| {
            let events = stage.send(Method::GET, &stage.path("events", ""), &Value::Null)?;
            let is_it = |event: &&Value| event["regarding"]["name"] == pod && event["reason"] == reason;
            Ok((events["items"].as_array().into_iter().flatten().filter(is_it).count() == count).then_some(()))
        })
    }

    /// Waits until an event of the namespace is a series.
    pub(crate) fn wait_series(&mut self) -> Result<(), String> {
        self.wait("a series of events", |stage| {
            let events = stage.send(Method::GET, &stage.path("events", ""), &Value::Null)?;
            let is_series = |event: &Value| event["series"]["count"].is_u64();
            Ok(events["items"].as_array().into_iter().flatten().any(is_series).then_some(()))
        })
    }

    /// Waits until the pod is being deleted.
    pub(crate) fn wait_terminating(&mut self, pod: &str) -> Result<(), String> {
        self.wait(&format!("pod {pod} to be deleted"), |stage| {
            Ok(stage.get_pod(pod)?["metadata"]["deletionTimestamp"].is_string().then_some(()))
        })
    }
}

/// Members of `more` go into `object`, or replace what is there.
pub(crate) fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(fields), Value::Object(more)) => {
            for (key, value) in more {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}
