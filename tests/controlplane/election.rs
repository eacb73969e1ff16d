//! Leader election: the same writes as upstream's, turns between both, and three replicas of ours that are killed, stopped and
//! cut off from the API server.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::cluster::{ControlPlane, SCHEDULER, wait_for};
use crate::process::Process;
use crate::programs::program;

/// Long enough for a start and for a lease to run out.
const BOUND: Duration = Duration::from_mins(1);

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";

/// What is said of the lease in the audit log: its writes, and events about it, without times and the identity's random part.
fn writes(plane: &ControlPlane) -> Result<Vec<Value>, String> {
    let mut writes = Vec::new();
    for entry in plane.audited(SCHEDULER)? {
        let verb = entry["verb"].as_str().unwrap_or_default();
        if entry["objectRef"]["namespace"] != "kube-system" || matches!(verb, "get" | "list" | "watch") {
            continue;
        }
        if entry["responseStatus"]["code"] == 403 {
            return Err(format!("denied: {}", entry["requestURI"]));
        }
        let mut body = entry["requestObject"].clone();
        normalize(&mut body);
        writes.push(json!({"verb": verb, "resource": entry["objectRef"]["resource"], "body": body}));
    }
    // Whether an event gets through of a process that ends is a matter of time (of one that is cut off on its way the log has no
    // body), and so is how often the lease is renewed, and whether before or after the event.
    let is_cut_off = |write: &Value| write["resource"] == "events" && write["body"].is_null();
    writes.retain(|write: &Value| !write.to_string().contains("stopped leading") && !is_cut_off(write));
    writes.sort_by_key(|write| write["resource"].to_string());
    writes.dedup();
    Ok(writes)
}

fn normalize(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "uid" | "resourceVersion" | "managedFields" => *value = key.as_str().into(),
                    time if time.ends_with("Time") || time.ends_with("Timestamp") => {
                        *value = if value.is_null() { Value::Null } else { "time".into() };
                    }
                    _ => normalize(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::String(text) => {
            if let Some((host, rest)) = text.split_once('_') {
                let after = rest.get(36..).unwrap_or_default().to_owned();
                *text = format!("{host}_<random>{after}");
            } else if let Some((name, _)) = text.rsplit_once('.').filter(|(name, _)| *name == "kube-scheduler") {
                *text = format!("{name}.<time>");
            }
        }
        _ => {}
    }
}

/// A scheduler that gets the lease, keeps it for a while, and gives it up when it is told to end; then another one.
pub(crate) fn elects_as_upstream_does() -> Result<(), Failed> {
    let play = |ours: bool| -> Result<(Vec<Value>, Vec<Option<i32>>), String> {
        let plane = ControlPlane::start()?;
        let mut codes = Vec::new();
        for turn in 0..2 {
            let mut scheduler = start(&plane, ours, &format!("turn-{turn}"), &plane.scheduler_kubeconfig())?;
            let holder = wait_for_holder(&plane, |holder| !holder.is_empty())?;
            let first = renewed(&plane)?;
            wait_for("a renewal", BOUND, || Ok((renewed(&plane)? != first).then_some(())))?;
            // The event about it has been written.
            wait_for("the event", BOUND, || {
                let events = plane.get("/api/v1/namespaces/kube-system/events")?;
                Ok(events.contains(&format!("{holder} became leader")).then_some(()))
            })?;
            codes.push(scheduler.terminate()?.code());
            let left = lease(&plane)?;
            if left["spec"]["holderIdentity"] != "" {
                return Err(format!("the lease was not given up: {}", left["spec"]));
            }
        }
        let writes = writes(&plane)?;
        plane.remove()?;
        Ok((writes, codes))
    };
    let [theirs, ours] = crate::schedulers::at_once([false, true].map(|ours| move || play(ours)));
    let (theirs, ours) = (theirs?, ours?);
    if theirs != ours {
        let show = |(writes, codes): &(Vec<Value>, Vec<Option<i32>>)| {
            let writes: Vec<String> = writes.iter().map(Value::to_string).collect();
            format!("{codes:?}\n    {}", writes.join("\n    "))
        };
        return Err(format!("upstream {}\nours {}", show(&theirs), show(&ours)).into());
    }
    println!("{} kinds of writes about the lease are the same, exit codes {:?}", ours.0.len(), ours.1);
    Ok(())
}

/// Starts a scheduler whose lease runs out quickly.
fn start(plane: &ControlPlane, ours: bool, name: &str, kubeconfig: &Path) -> Result<Process, String> {
    let config = json!({
        "clientConnection": {"kubeconfig": kubeconfig},
        "leaderElection": {"leaderElect": true, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"},
    });
    let path = plane.write_config_of(name, config)?;
    let mut command =
        Command::new(if ours { env!("CARGO_BIN_EXE_kube-scheduler").into() } else { program("kube-scheduler") });
    command.arg("--config").arg(path).arg("--secure-port=0");
    plane.run(name, &mut command)
}

/// `leaseDuration + 2 × 2.2 × retryPeriod`, which is 5.2 s, and what a slow machine adds to requests.
const TAKEOVER: Duration = Duration::from_secs(6);

fn lease(plane: &ControlPlane) -> Result<Value, String> {
    serde_json::from_str(&plane.get(LEASE)?).map_err(|error| error.to_string())
}

fn renewed(plane: &ControlPlane) -> Result<String, String> {
    Ok(lease(plane)?["spec"]["renewTime"].as_str().unwrap_or_default().to_owned())
}

fn wait_for_holder(plane: &ControlPlane, is_it: impl Fn(&str) -> bool) -> Result<String, String> {
    wait_for("a leader", BOUND, || {
        let lease = plane.get(LEASE).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let holder = lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned));
        Ok(holder.filter(|holder| is_it(holder)))
    })
}

/// Replicas under names of their own, so that the lease tells which of them holds it.
struct Replicas(Vec<Option<Process>>);

impl Replicas {
    /// Which of them leads: the one whose log says so last.
    fn leader(&self) -> Option<usize> {
        let leads = |process: &Process| {
            let text = process.output();
            let won = text.rfind("Successfully acquired lease");
            let lost = text.rfind("Failed to renew lease");
            won.is_some() && lost < won
        };
        self.0.iter().position(|process| process.as_ref().is_some_and(leads))
    }
}

/// Three replicas: the one that leads is killed, stopped and continued, and told to end. Each time another one takes over in
/// time, and in the end all pods are bound, each once.
pub(crate) fn three_replicas_take_turns() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let replica = |name: &str| start(&plane, true, name, &plane.scheduler_kubeconfig());
    let mut replicas = Replicas(Vec::new());
    for at in 0..3 {
        replicas.0.push(Some(replica(&format!("replica-{at}"))?));
    }
    for at in 0..4 {
        let amounts = json!({"cpu": "64", "memory": "64Gi", "pods": "110"});
        post(
            &plane,
            "/api/v1/nodes",
            &json!({
                "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("node-{at}")},
                "status": {"capacity": amounts, "allocatable": amounts},
            }),
        )?;
    }
    let mut made = 0;
    for act in [Act::Kill, Act::Stop, Act::End] {
        let holder = wait_for_holder(&plane, |holder| !holder.is_empty())?;
        let leader = wait_for("a replica that leads", BOUND, || Ok(replicas.leader()))?;
        // Pods that are in the middle of being scheduled when it happens.
        made += create(&plane, made, 60)?;
        let process = replicas.0[leader].as_mut().ok_or("no process")?;
        let began = now();
        match act {
            Act::Kill => process.signal("KILL")?,
            Act::Stop => process.signal("STOP")?,
            Act::End => process.signal("TERM")?,
        }
        let next = wait_for_holder(&plane, |next| !next.is_empty() && next != holder)?;
        let took = began.elapsed();
        println!("{act:?}: another one leads after {took:.1?}");
        if took > TAKEOVER {
            return Err(format!("{act:?}: the lease went to {next} only after {took:?}").into());
        }
        if act == Act::Stop {
            // It finds out that its term is over before it writes anything.
            let process = replicas.0[leader].as_mut().ok_or("no process")?;
            process.signal("CONT")?;
        }
        let mut process = replicas.0[leader].take().ok_or("no process")?;
        let status = wait_for("its end", BOUND, || Ok(process.ended()))?;
        let expected = match act {
            Act::Kill => None,
            Act::Stop => Some(1),
            Act::End => Some(0),
        };
        if status.code() != expected {
            return Err(format!("{act:?} ended it with {status}; {}", process.tail()).into());
        }
        replicas.0[leader] = Some(replica(&format!("replica-{act:?}"))?);
    }
    let pods = wait_for("all pods to be bound", BOUND, || {
        let pods = pods(&plane)?;
        Ok(pods.iter().all(|pod| pod["spec"]["nodeName"].is_string()).then_some(pods))
    })?;
    if pods.len() != made {
        return Err(format!("{} of {made} pods are left", pods.len()).into());
    }
    check_bindings(&plane)?;
    drop(replicas);
    Ok(plane.remove()?)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Kill,
    Stop,
    End,
}

#[expect(clippy::disallowed_methods, reason = "what is measured is the time that other processes take")]
fn now() -> Instant {
    Instant::now()
}

fn pods(plane: &ControlPlane) -> Result<Vec<Value>, String> {
    let list: Value =
        serde_json::from_str(&plane.get("/api/v1/namespaces/default/pods")?).map_err(|error| error.to_string())?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn create(plane: &ControlPlane, from: usize, count: usize) -> Result<usize, String> {
    for at in from..from + count {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("pod-{at}")},
            "spec": {"containers": [{
                "name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": "100m"}},
            }]},
        });
        post(plane, "/api/v1/namespaces/default/pods", &pod)?;
    }
    Ok(count)
}

fn post(plane: &ControlPlane, path: &str, object: &Value) -> Result<(), String> {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())
        .map_err(|error| error.to_string())?;
    let answer = plane.runtime.block_on(plane.client.request::<Value>(request));
    answer.map(drop).map_err(|error| format!("{path}: {error}"))
}

/// By the audit log no pod was bound twice, and whoever tried was told so.
fn check_bindings(plane: &ControlPlane) -> Result<(), String> {
    let mut bound = std::collections::BTreeSet::new();
    let mut refused = 0;
    for entry in plane.audited(SCHEDULER)? {
        if entry["objectRef"]["subresource"] != "binding" {
            continue;
        }
        let pod = entry["objectRef"]["name"].as_str().unwrap_or_default().to_owned();
        match entry["responseStatus"]["code"].as_u64() {
            Some(201) if !bound.insert(pod.clone()) => return Err(format!("pod {pod} was bound twice")),
            Some(201) => {}
            _ => refused += 1,
        }
    }
    println!("{} pods were bound once, {refused} bindings were refused", bound.len());
    Ok(())
}
