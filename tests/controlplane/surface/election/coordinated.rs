//! Elections in which the API server's controller chooses who leads.

use std::path::PathBuf;

use jiff::Timestamp;
use kube_scheduler::clock::Clock;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use super::{BOUND, renewed, same, start, wait_for_event, wait_for_holder, writes};
use crate::support::client::Client;
use crate::support::cluster::{ControlPlane, free_ports, wait_for};
use crate::support::process::Process;

/// Flags of the API server for coordinated leader election.
const FLAGS: &[&str] =
    &["--feature-gates=CoordinatedLeaderElection=true", "--runtime-config=coordination.k8s.io/v1beta1=true"];

/// Flags of a scheduler for coordinated leader election.
const GATE: &str = "--feature-gates=CoordinatedLeaderElection=true";

/// Long enough for the first one to give the lease up before it runs out: then the controller would give it away.
const TIMES: [&str; 2] = ["--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=6s"];

const CANDIDATES: &str = "/apis/coordination.k8s.io/v1beta1/namespaces/kube-system/leasecandidates";

/// Results that are compared.
struct Story {
    writes: Vec<Value>,
    codes: Vec<Option<i32>>,
    /// What `/readyz?verbose` says, in turn of the first, the second, and one that may not look at anything.
    readyz: Vec<String>,
}

/// A scheduler is chosen and pinged; another one that emulates an older version is preferred, so that the first one's term
/// ends; the other one is told to end.
pub(crate) fn elects_by_coordination_as_upstream_does() -> Result<(), Failed> {
    let [theirs, ours] = crate::support::schedulers::at_once([false, true].map(|ours| move || play(ours)));
    let (theirs, ours) = (theirs?, ours?);
    if theirs.readyz != ours.readyz {
        return Err(format!("/readyz?verbose: upstream {:#?}\nours {:#?}", theirs.readyz, ours.readyz).into());
    }
    let answers = ours.readyz.len();
    let (writes, codes) = same(&(theirs.writes, theirs.codes), (ours.writes, ours.codes))?;
    let kinds = writes.len();
    println!("{kinds} kinds of writes and {answers} answers of /readyz are the same, exit codes {codes:?}");
    Ok(())
}

fn play(ours: bool) -> Result<Story, String> {
    let plane = ControlPlane::start_with(FLAGS)?;
    let [one, two, three] = free_ports()?;
    let mut readyz = Vec::new();
    let run = |name: &str, port: u16, kubeconfig: PathBuf, more: &[&str]| {
        let port = format!("--secure-port={port}");
        let arguments = [&[GATE, "--bind-address=127.0.0.1", port.as_str()], &TIMES[..], more].concat();
        start(&plane, ours, name, &kubeconfig, &arguments)
    };
    let mut old = run("old", one, plane.scheduler_kubeconfig(), &[])?;
    let first = wait_for_lead(&plane, "")?;
    answer_a_ping(&plane, &first)?;
    readyz.push(ready(&plane, one, |text| text.starts_with("200"))?);
    let mut new = run("new", two, plane.scheduler_kubeconfig(), &["--emulated-version=1.35"])?;
    let second = wait_for_lead(&plane, &first)?;
    readyz.push(ready(&plane, two, |text| text.starts_with("200"))?);
    let ended = |process: &mut Process| wait_for("its end", BOUND, || Ok(process.ended()));
    let mut codes = vec![ended(&mut old).map_err(|error| format!("{error}; {}", old.tail()))?.code()];
    codes.push(new.terminate()?.code());
    let mut writes = writes(&plane, &[(&first, "first"), (&second, "second")])?;
    writes.iter_mut().for_each(drop_nulls);
    // Whether the second is pinged, and when it has come, depends on how long the first one takes to go.
    let is_candidate = |write: &Value| write["resource"] == "leasecandidates";
    writes.retain(|write| {
        let name = &write["body"]["metadata"]["name"];
        !(is_candidate(write) && name == "second" && write["verb"] == "update")
    });
    writes.sort_by_cached_key(|write| if is_candidate(write) { write.to_string() } else { String::new() });
    writes.dedup();
    let mut blind = run("blind", three, plane.guest_kubeconfig(), &[])?;
    readyz.push(ready(&plane, three, |text| text.starts_with("500"))?);
    codes.push(blind.terminate()?.code());
    plane.remove()?;
    Ok(Story { writes, codes, readyz })
}

/// Waits until somebody else than this one leads, has renewed the lease, and has said so.
fn wait_for_lead(plane: &ControlPlane, before: &str) -> Result<String, String> {
    let holder = wait_for_holder(plane, |holder| !holder.is_empty() && holder != before)?;
    let first = renewed(plane)?;
    wait_for("a renewal", BOUND, || Ok((renewed(plane)? != first).then_some(())))?;
    wait_for_event(plane, &holder)?;
    Ok(holder)
}

/// Asks a candidate whether it is there, and waits for its answer.
fn answer_a_ping(plane: &ControlPlane, name: &str) -> Result<(), String> {
    let path = format!("{CANDIDATES}/{name}");
    let time = Clock::real().now().wall;
    let ping = json!({"spec": {"pingTime": time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()}});
    let request = http::Request::patch(&path)
        .header("content-type", "application/merge-patch+json")
        .body(ping.to_string().into_bytes());
    let request = request.map_err(|error| error.to_string())?;
    let patched: Result<Value, _> = plane.runtime.block_on(plane.client.request(request));
    patched.map_err(|error| format!("{path}: {error}"))?;
    wait_for("the answer of a candidate", BOUND, || {
        let candidate: Value = serde_json::from_str(&plane.get(&path)?).map_err(|error| error.to_string())?;
        let renewed = candidate["spec"]["renewTime"].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        Ok(renewed.is_some_and(|renewed| renewed > time).then_some(()))
    })
}

/// What `/readyz?verbose` says as soon as it is what is waited for.
fn ready(plane: &ControlPlane, port: u16, is_it: impl Fn(&str) -> bool) -> Result<String, String> {
    let client = Client::new(([127, 0, 0, 1], port).into());
    wait_for("an answer of /readyz", BOUND, || {
        let answer = plane.runtime.block_on(client.ask("GET", "/readyz?verbose", &[], ""));
        // Its port may not be open yet.
        Ok(answer.ok().map(|got| format!("{} {}", got.status, got.text())).filter(|text| is_it(text)))
    })
}

/// Upstream says in protobuf that there is no time, where JSON says nothing.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
