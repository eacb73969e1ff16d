//! Two schedulers on one cluster, upstream's and ours, each with pods of its own. By the audit log neither touches what is the
//! other's, but for victims.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use http::Method;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, GUEST, Process, SCHEDULER};
use crate::support::programs::program;
use crate::support::schedulers::at_once;
use crate::support::stage::{Alive, Stage, on_stage};

/// The name of the scheduler that the user `guest` runs.
const SECOND: &str = "second-scheduler";

/// The other's name.
const FIRST: &str = "default-scheduler";

/// Pods of each scheduler.
const PODS: usize = 100;

const NODES: usize = 10;

/// Ours beside upstream's, and upstream's beside ours.
pub(crate) fn each_scheduler_binds_only_its_own_pods() -> Result<(), Failed> {
    for outcome in at_once([true, false].map(|ours_is_second| move || play(ours_is_second))) {
        println!("{}", outcome?);
    }
    Ok(())
}

/// Both processes: the one is as much needed as the other.
struct Both([Process; 2]);

impl Alive for Both {
    fn ended(&mut self) -> Option<String> {
        self.0.iter_mut().find_map(|process| process.ended().map(|status| format!("{status}; {}", process.tail())))
    }
}

fn play(ours_is_second: bool) -> Result<String, String> {
    let plane = ControlPlane::start()?;
    let first = start(&plane, FIRST, &plane.scheduler_kubeconfig(), !ours_is_second)?;
    let second = start(&plane, SECOND, &plane.guest_kubeconfig(), ours_is_second)?;
    let mut both = Both([first, second]);
    let owners = on_stage(&plane, &mut both, "beside", |stage| {
        give_roles(stage)?;
        let owners = scenario(stage)?;
        Ok(owners)
    })?;
    both.0.iter_mut().try_for_each(|process| process.terminate().map(drop))?;
    let counts = check(&plane, &owners)?;
    plane.remove()?;
    Ok(format!("{} is {SECOND}: {counts:?}", if ours_is_second { "ours" } else { "upstream's" }))
}

fn start(plane: &ControlPlane, name: &str, kubeconfig: &Path, is_ours: bool) -> Result<Process, String> {
    let config = json!({
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 300, "burst": 300},
        "profiles": [{"schedulerName": name}],
    });
    let path = plane.write_config_of(name, config)?;
    let mut command =
        Command::new(if is_ours { env!("CARGO_BIN_EXE_kube-scheduler").into() } else { program("kube-scheduler") });
    command.arg("--secure-port=0").arg("--config").arg(path);
    plane.run(name, &mut command)
}

/// The second scheduler's user may do what the first one's may.
fn give_roles(stage: &Stage<'_>) -> Result<(), String> {
    const API: &str = "/apis/rbac.authorization.k8s.io/v1";
    for role in ["system:kube-scheduler", "system:volume-scheduler"] {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("second:{role}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": GUEST}],
        });
        stage.send(Method::POST, &format!("{API}/clusterrolebindings"), &binding)?;
    }
    Ok(())
}

/// Fills a cluster with pods of both; gives the scheduler of each by its name.
fn scenario(stage: &mut Stage<'_>) -> Result<BTreeMap<String, &'static str>, String> {
    let mut owners = BTreeMap::new();
    let low =
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1, "metadata": {"name": "low"}});
    let high = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 9, "metadata": {"name": "high"}});
    stage.create("priorityclasses", &low)?;
    stage.create("priorityclasses", &high)?;
    for at in 0..NODES {
        stage.node(&format!("node-{at}"), "32", &json!({}))?;
    }
    for at in 0..PODS {
        for (stem, owner) in [("first", FIRST), ("second", SECOND)] {
            let name = format!("{stem}-{at}");
            stage.pod(&name, "100m", json!({"spec": {"schedulerName": owner, "priorityClassName": "low"}}))?;
            owners.insert(name, owner);
        }
    }
    stage.wait("all pods to be bound", |stage| {
        let pods = stage.send(Method::GET, &stage.path("pods", ""), &Value::Null)?;
        let bound = pods["items"].as_array().into_iter().flatten().filter(|pod| pod["spec"]["nodeName"].is_string());
        Ok((bound.count() == 2 * PODS).then_some(()))
    })?;
    // Each has a pod that fits nowhere, and one that needs the place of a pod of the other.
    for (stem, owner, other) in [("first", FIRST, SECOND), ("second", SECOND, FIRST)] {
        let wide = format!("{stem}-wide");
        stage.pod(&wide, "64", json!({"spec": {"schedulerName": owner}}))?;
        stage.wait_refused(&wide, "Insufficient cpu")?;
        let (node, victim, high) = (format!("only-{stem}"), format!("{stem}-victim"), format!("{stem}-high"));
        stage.node(&node, "2", &json!({}))?;
        let selector = json!({"kubernetes.io/hostname": node});
        let spec = json!({
            "schedulerName": other, "priorityClassName": "low", "nodeSelector": selector, "terminationGracePeriodSeconds": 30,
        });
        stage.pod(&victim, "2", json!({"spec": spec}))?;
        stage.wait_bound(&victim, &node)?;
        let spec = json!({"schedulerName": owner, "priorityClassName": "high", "nodeSelector": selector});
        stage.pod(&high, "1", json!({"spec": spec}))?;
        stage.wait_terminating(&victim)?;
        stage.wait_event(&victim, "Preempted", "Preempted by pod")?;
        stage.delete_now(&victim)?;
        stage.wait_bound(&high, &node)?;
        owners.extend([(wide, owner), (victim, other), (high, owner)]);
    }
    Ok(owners)
}

/// Judges both by the audit log. Gives how often each did what.
fn check(
    plane: &ControlPlane,
    owners: &BTreeMap<String, &'static str>,
) -> Result<BTreeMap<&'static str, BTreeMap<String, usize>>, String> {
    let mut counts: BTreeMap<_, BTreeMap<String, usize>> = BTreeMap::new();
    let mut bound = BTreeSet::new();
    for (user, scheduler) in [(SCHEDULER, FIRST), (GUEST, SECOND)] {
        let counts: &mut BTreeMap<String, usize> = counts.entry(scheduler).or_default();
        for entry in plane.audited(user)? {
            let text = |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default();
            // The roles of the second come when it may have asked already.
            if entry["responseStatus"]["code"] == 403 && scheduler == FIRST {
                return Err(format!("{user} was denied {} {}", text("/verb"), text("/requestURI")));
            }
            let what = match (text("/verb"), text("/objectRef/resource"), text("/objectRef/subresource")) {
                ("get" | "list" | "watch", ..) => continue,
                ("create", "pods", "binding") => "bindings",
                ("patch", "pods", "status") => "status patches",
                ("delete", "pods", "") => "victims deleted",
                ("create" | "patch", "events", "") => "events",
                (verb, resource, sub) => return Err(format!("{user}: {verb} {resource}/{sub}")),
            };
            *counts.entry(what.to_owned()).or_default() += 1;
            let regarding = text("/requestObject/regarding/name");
            let pod = match what {
                "events" if regarding.is_empty() => text("/objectRef/name").rsplit_once('.').unwrap_or_default().0,
                "events" => regarding,
                _ => text("/objectRef/name"),
            };
            let own = owners.get(pod).is_some_and(|owner| *owner == scheduler);
            let preempts = what == "victims deleted"
                || text("/requestObject/reason") == "Preempted"
                || entry["requestObject"].to_string().contains("DisruptionTarget");
            if own == preempts {
                return Err(format!("{scheduler}: {what} of pod {pod}: {}", entry["requestObject"]));
            }
            if what == "bindings" && (entry["responseStatus"]["code"] != 201 || !bound.insert(pod.to_owned())) {
                return Err(format!("{scheduler}: binding of pod {pod}: {}", entry["responseStatus"]));
            }
        }
        for what in ["bindings", "status patches", "victims deleted", "events"] {
            if !counts.contains_key(what) {
                return Err(format!("{scheduler} has no {what}"));
            }
        }
    }
    if bound.len() == 2 * PODS + 4 { Ok(counts) } else { Err(format!("{} pods were bound", bound.len())) }
}
