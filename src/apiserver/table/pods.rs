//! Table of pods, with their status as kubectl shows it.
//!
//! Follows `pkg/printers/internalversion/printers.go#printPod @v1.36.3`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{has_condition, human, time};
use super::{Column, Layout, Subject};
use crate::apiserver::meta::list;

pub(super) const PODS: Layout = Layout {
    columns: &[
        Column::name("Name"),
        Column::text("Ready"),
        Column::text("Status"),
        Column::text("Restarts"),
        Column::text("Age"),
        Column::text("IP").wide(),
        Column::text("Node").wide(),
        Column::text("Nominated Node").wide(),
        Column::text("Readiness Gates").wide(),
    ],
    cells: |pod| {
        let containers = Containers::of(pod);
        let ip = list(pod.at("/status/podIPs")).next().and_then(|ip| ip["ip"].as_str()).filter(|ip| !ip.is_empty());
        vec![
            pod.name(),
            json!(format!("{}/{}", containers.ready, containers.total)),
            json!(containers.status),
            json!(containers.restarts.text(pod.now)),
            pod.age(),
            json!(ip.unwrap_or("<none>")),
            json!(pod.text_or("/spec/nodeName", "<none>")),
            json!(pod.text_or("/status/nominatedNodeName", "<none>")),
            json!(readiness_gates(pod)),
        ]
    },
};

fn readiness_gates(pod: &Subject<'_>) -> String {
    let gates: Vec<&str> =
        list(pod.at("/spec/readinessGates")).filter_map(|gate| gate["conditionType"].as_str()).collect();
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates.iter().filter(|gate| has_condition(pod.at("/status/conditions"), gate)).count();
    format!("{open}/{}", gates.len())
}

/// Number of container restarts, and the time of the last one.
#[derive(Clone, Copy, Default)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status["restartCount"].as_i64().unwrap_or(0);
        self.last = self.last.max(time(&status["lastState"]["terminated"]["finishedAt"]));
    }

    fn text(self, now: Timestamp) -> String {
        match self.last.filter(|_| self.count != 0) {
            Some(last) => format!("{} ({} ago)", self.count, human(now.duration_since(last))),
            None => self.count.to_string(),
        }
    }
}

/// Summary of the states of a pod's containers.
struct Containers {
    total: usize,
    ready: usize,
    status: String,
    restarts: Restarts,
}

impl Containers {
    fn of(pod: &Subject<'_>) -> Self {
        let conditions = pod.at("/status/conditions");
        let gated = list(conditions).any(|condition| {
            condition["type"] == "PodScheduled" && condition["reason"].as_str() == Some("SchedulingGated")
        });
        let reported = if gated { "SchedulingGated" } else { pod.text_or("/status/reason", pod.text("/status/phase")) };
        let restartable = list(pod.at("/spec/initContainers")).filter(|container| is_sidecar(container)).count();
        let mut found = Self {
            total: list(pod.at("/spec/containers")).count() + restartable,
            ready: 0,
            status: reported.to_owned(),
            restarts: Restarts::default(),
        };
        let (initializing, sidecars) = found.initialise(pod);
        if !initializing || has_condition(conditions, "Initialized") {
            found.restarts = sidecars;
            found.run(pod);
        }
        let terminal = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
        if pod.is_deleting() && pod.text("/status/reason") == "NodeLost" {
            "Unknown".clone_into(&mut found.status);
        } else if pod.is_deleting() && !terminal {
            "Terminating".clone_into(&mut found.status);
        }
        found
    }

    /// Reads the statuses of the init containers up to the first container that is not done. Returns whether there is such a
    /// container, and the restarts of the sidecars.
    fn initialise(&mut self, pod: &Subject<'_>) -> (bool, Restarts) {
        let specs = pod.at("/spec/initContainers");
        let mut sidecars = Restarts::default();
        for (at, status) in list(pod.at("/status/initContainerStatuses")).enumerate() {
            self.restarts.add(status);
            let sidecar = list(specs).any(|spec| spec["name"] == status["name"] && is_sidecar(spec));
            if sidecar {
                sidecars.add(status);
            }
            let ended = &status["state"]["terminated"];
            if ended.is_object() && ended["exitCode"].as_i64().unwrap_or(0) == 0 {
                continue;
            }
            if sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waits =
                status["state"]["waiting"]["reason"].as_str().filter(|why| !matches!(*why, "" | "PodInitializing"));
            self.status = match waits {
                _ if ended.is_object() => format!("Init:{}", end_of(ended)),
                Some(why) => format!("Init:{why}"),
                None => format!("Init:{at}/{}", list(specs).count()),
            };
            return (true, sidecars);
        }
        (false, sidecars)
    }

    /// Reads the statuses of the containers from last to first, so that the first container determines the pod's status.
    fn run(&mut self, pod: &Subject<'_>) {
        let (mut running, mut failure) = (false, None);
        for status in list(pod.at("/status/containerStatuses")).rev() {
            self.restarts.add(status);
            let state = &status["state"];
            let ended = &state["terminated"];
            if let Some(why) = state["waiting"]["reason"].as_str().filter(|why| !why.is_empty()) {
                why.clone_into(&mut self.status);
            } else if ended.is_object() {
                self.status = end_of(ended);
                if ended["exitCode"].as_i64().unwrap_or(0) != 0 {
                    failure = Some(self.status.clone());
                }
            } else if status["ready"] == true && state["running"].is_object() {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            if running && has_condition(pod.at("/status/conditions"), "Ready") {
                "Running".clone_into(&mut self.status);
            } else if let Some(failure) = failure {
                self.status = failure;
            } else if running {
                "NotReady".clone_into(&mut self.status);
            }
        }
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// Returns the reason why a container terminated, or its signal or exit code if there is no reason.
fn end_of(ended: &Value) -> String {
    match (ended["reason"].as_str().unwrap_or_default(), ended["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", ended["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
