//! Leader election: the same writes as upstream's, also where the control plane chooses who leads, and three replicas of ours
//! that are killed, stopped and cut off from the API server.

mod coordinated;
mod replicas;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::{Value, json};

use crate::support::cluster::{ControlPlane, SCHEDULER, wait_for};
use crate::support::process::Process;
use crate::support::programs::program;

pub(crate) use coordinated::coordinated_leader_election_equals_upstreams;
pub(crate) use replicas::another_replica_leads_after_each_failure;

/// Long enough for a start and for a lease to run out.
const BOUND: Duration = Duration::from_mins(1);

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler";

/// What is said of the lease in the audit log: its writes, those of lease candidates, and events about it, without times and the
/// identity's random part. Who has a name among these is called by it.
fn writes(plane: &ControlPlane, names: &[(&str, &str)]) -> Result<Vec<Value>, String> {
    let mut writes = Vec::new();
    for entry in plane.audited(SCHEDULER)? {
        let verb = entry["verb"].as_str().unwrap_or_default();
        if entry["objectRef"]["namespace"] != "kube-system" || matches!(verb, "get" | "list" | "watch") {
            continue;
        }
        if entry["responseStatus"]["code"] == 403 {
            return Err(format!("denied: {}", entry["requestURI"]));
        }
        let body = names.iter().fold(entry["requestObject"].to_string(), |body, (who, name)| body.replace(who, name));
        let mut body = serde_json::from_str(&body).map_err(|error| error.to_string())?;
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
pub(crate) fn leader_election_equals_upstreams() -> Result<(), Failed> {
    let play = |ours: bool| -> Result<(Vec<Value>, Vec<Option<i32>>), String> {
        let plane = ControlPlane::start()?;
        let mut codes = Vec::new();
        for turn in 0..2 {
            let mut scheduler = start(&plane, ours, &format!("turn-{turn}"), &plane.scheduler_kubeconfig(), &[])?;
            let holder = wait_for_holder(&plane, |holder| !holder.is_empty())?;
            let first = renewed(&plane)?;
            wait_for("a renewal", BOUND, || Ok((renewed(&plane)? != first).then_some(())))?;
            wait_for_event(&plane, &holder)?;
            codes.push(scheduler.terminate()?.code());
            let left = lease(&plane)?;
            if left["spec"]["holderIdentity"] != "" {
                return Err(format!("the lease was not given up: {}", left["spec"]));
            }
        }
        let writes = writes(&plane, &[])?;
        plane.remove()?;
        Ok((writes, codes))
    };
    let [theirs, ours] = crate::support::schedulers::at_once([false, true].map(|ours| move || play(ours)));
    let ours = same(&theirs?, ours?)?;
    println!("{} kinds of writes about the lease are the same, exit codes {:?}", ours.0.len(), ours.1);
    Ok(())
}

/// Ours, if it is the same as upstream's: writes and exit codes.
fn same(
    theirs: &(Vec<Value>, Vec<Option<i32>>),
    ours: (Vec<Value>, Vec<Option<i32>>),
) -> Result<(Vec<Value>, Vec<Option<i32>>), String> {
    let show = |(writes, codes): &(Vec<Value>, Vec<Option<i32>>)| {
        let writes: Vec<String> = writes.iter().map(Value::to_string).collect();
        format!("{codes:?}\n    {}", writes.join("\n    "))
    };
    if *theirs == ours { Ok(ours) } else { Err(format!("upstream {}\nours {}", show(theirs), show(&ours))) }
}

/// Starts a scheduler whose lease runs out quickly, and which does not bind so fast that nothing would be left to be bound.
fn start(
    plane: &ControlPlane,
    ours: bool,
    name: &str,
    kubeconfig: &Path,
    arguments: &[&str],
) -> Result<Process, String> {
    let config = json!({
        "clientConnection": {"kubeconfig": kubeconfig, "qps": 40, "burst": 20},
        "leaderElection": {"leaderElect": true, "leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"},
    });
    let path = plane.write_config_of(name, config)?;
    let mut command =
        Command::new(if ours { env!("CARGO_BIN_EXE_kube-scheduler").into() } else { program("kube-scheduler") });
    command.arg("--config").arg(path).arg("--secure-port=0").args(arguments);
    plane.run(name, &mut command)
}

/// Waits until the event about it has been written that this one leads.
fn wait_for_event(plane: &ControlPlane, holder: &str) -> Result<(), String> {
    wait_for("the event", BOUND, || {
        let events = plane.get("/api/v1/namespaces/kube-system/events")?;
        Ok(events.contains(&format!("{holder} became leader")).then_some(()))
    })
}

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
