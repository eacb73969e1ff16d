//! A random sequence of changes: what users, controllers and kubelets do to a small cluster.

use std::fmt;

use kube_scheduler::clock::Rng;
use serde_json::{Value, json};

use crate::support::stage::Stage;

/// Priorities of pods, few of them alike, so that candidates for preemption are seldom equal.
const PRIORITIES: [i32; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

const ZONES: [&str; 3] = ["z1", "z2", "z3"];

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

/// One change.
#[derive(Clone, Debug)]
pub(super) enum Step {
    AddNode { name: String, cpu: String, labels: Value, spec: Value },
    RemoveNode(String),
    Label { node: String, key: &'static str, value: Value },
    Spec { node: String, spec: Value },
    Allocatable { node: String, cpu: String },
    AddPod { name: String, cpu: String, more: Value },
    DeletePod(String),
    Relabel { pod: String, app: &'static str },
    Ungate(String),
}

impl Step {
    /// Makes the change.
    pub(super) fn take(&self, stage: &Stage<'_>) -> Result<(), String> {
        match self {
            Self::AddNode { name, cpu, labels, spec } => stage.node_labelled(name, cpu, labels, spec),
            Self::RemoveNode(name) => stage.remove_node(name),
            Self::Label { node, key, value } => {
                stage.patch("nodes", node, "", &json!({"metadata": {"labels": {*key: value}}}))
            }
            Self::Spec { node, spec } => stage.patch("nodes", node, "", &json!({"spec": spec})),
            Self::Allocatable { node, cpu } => {
                stage.patch("nodes", node, "/status", &json!({"status": {"allocatable": {"cpu": cpu}}}))
            }
            Self::AddPod { name, cpu, more } => {
                let mut more = more.clone();
                let class = &mut more["spec"]["priorityClassName"];
                if let Some(priority) = class.as_i64() {
                    *class = class_name(priority).into();
                }
                stage.pod(name, cpu, more)
            }
            // Some are gone already, as victims of others.
            Self::DeletePod(name) => stage.if_there(name, |stage| stage.delete(name)),
            Self::Relabel { pod, app } => stage
                .if_there(pod, |stage| stage.patch("pods", pod, "", &json!({"metadata": {"labels": {"app": app}}}))),
            Self::Ungate(pod) => {
                stage.if_there(pod, |stage| stage.patch("pods", pod, "", &json!({"spec": {"schedulingGates": null}})))
            }
        }
    }
}

fn class_name(priority: i64) -> String {
    format!("priority-{priority}")
}

/// Makes the priority classes that pods name.
pub(super) fn priority_classes(stage: &Stage<'_>) -> Result<(), String> {
    for value in PRIORITIES {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value,
            "metadata": {"name": class_name(value.into())},
        });
        stage.create_if_missing("priorityclasses", &class)?;
    }
    Ok(())
}

/// Changes, one after the other.
pub(super) struct Sequence {
    pub(super) steps: Vec<Step>,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

/// Makes one up.
struct Maker {
    rng: Rng,
    nodes: Vec<String>,
    pods: Vec<String>,
    gated: Vec<String>,
    named: usize,
}

impl Sequence {
    /// The sequence of this seed: two nodes, then whatever comes.
    pub(super) fn new(seed: u64) -> Self {
        let mut maker =
            Maker { rng: Rng::from_seed(seed), nodes: Vec::new(), pods: Vec::new(), gated: Vec::new(), named: 0 };
        let mut steps = vec![maker.add_node(), maker.add_node()];
        let length = 12 + maker.rng.index(8);
        while steps.len() < length {
            steps.extend(maker.step());
        }
        Self { steps }
    }
}

impl Maker {
    fn percent(&mut self, percent: u64) -> bool {
        self.rng.chance(percent, 100)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.index(from.len())].clone()
    }

    fn name(&mut self, stem: &str) -> String {
        self.named += 1;
        format!("{stem}-{}", self.named)
    }

    fn step(&mut self) -> Option<Step> {
        match self.rng.index(100) {
            0..=44 => Some(self.add_pod()),
            45..=54 => Some(self.add_node()),
            55..=66 if !self.pods.is_empty() => {
                let at = self.rng.index(self.pods.len());
                Some(Step::DeletePod(self.pods.remove(at)))
            }
            67..=71 if !self.pods.is_empty() => {
                let pods = self.pods.clone();
                Some(Step::Relabel { pod: self.pick(&pods), app: self.pick(&["web", "db"]) })
            }
            72..=76 if !self.gated.is_empty() => Some(Step::Ungate(self.gated.remove(0))),
            77..=79 if self.nodes.len() > 2 => {
                let at = self.rng.index(self.nodes.len());
                Some(Step::RemoveNode(self.nodes.remove(at)))
            }
            80.. => Some(self.change_node()),
            _ => None,
        }
    }

    fn add_node(&mut self) -> Step {
        let name = self.name("node");
        self.nodes.push(name.clone());
        let labels = json!({ZONE: self.pick(&ZONES), "disk": self.pick(&["ssd", "hdd"])});
        let spec = if self.percent(20) { taint() } else { json!({}) };
        Step::AddNode { name, cpu: self.pick(&["2", "4", "4", "6"]).to_owned(), labels, spec }
    }

    fn change_node(&mut self) -> Step {
        let nodes = self.nodes.clone();
        let node = self.pick(&nodes);
        match self.rng.index(5) {
            0 => Step::Label { node, key: "disk", value: self.pick(&["ssd", "hdd"]).into() },
            1 => Step::Label { node, key: ZONE, value: self.pick(&ZONES).into() },
            2 => Step::Spec { node, spec: if self.percent(40) { taint() } else { json!({"taints": null}) } },
            3 => Step::Spec {
                node,
                spec: json!({"unschedulable": if self.percent(40) { true.into() } else { Value::Null }}),
            },
            _ => Step::Allocatable { node, cpu: self.pick(&["1", "3", "5", "8"]).to_owned() },
        }
    }

    fn add_pod(&mut self) -> Step {
        let name = self.name("pod");
        let app = self.pick(&["web", "db"]);
        let mut spec = json!({"terminationGracePeriodSeconds": 30});
        if self.percent(60) {
            // Becomes the name of a class.
            spec["priorityClassName"] = self.pick(&PRIORITIES).into();
        }
        if self.percent(20) {
            spec["nodeSelector"] = json!({"disk": self.pick(&["ssd", "hdd"])});
        }
        if self.percent(25) {
            spec["tolerations"] = json!([{"key": "team", "operator": "Exists"}]);
        }
        if self.percent(20) {
            let action = self.pick(&["DoNotSchedule", "ScheduleAnyway"]);
            spec["topologySpreadConstraints"] = json!([{
                "maxSkew": 1, "topologyKey": self.pick(&[ZONE, HOST]), "whenUnsatisfiable": action,
                "labelSelector": {"matchLabels": {"app": app}},
            }]);
        }
        if self.percent(25) {
            let kind = self.pick(&["podAffinity", "podAntiAffinity"]);
            let term = json!({
                "labelSelector": {"matchLabels": {"app": self.pick(&["web", "db"])}}, "topologyKey": self.pick(&[ZONE, HOST]),
            });
            spec["affinity"] = if self.percent(50) {
                json!({kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
            } else {
                let weighted = json!([{"weight": self.pick(&[1, 50, 100]), "podAffinityTerm": term}]);
                json!({kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}})
            };
        }
        if self.percent(8) {
            spec["schedulingGates"] = json!([{"name": "example.com/wait"}]);
            self.gated.push(name.clone());
        }
        self.pods.push(name.clone());
        let cpu = self.pick(&["500m", "1", "1500m", "2", "3"]).to_owned();
        Step::AddPod { name, cpu, more: json!({"metadata": {"labels": {"app": app}}, "spec": spec}) }
    }
}

fn taint() -> Value {
    json!({"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]})
}
