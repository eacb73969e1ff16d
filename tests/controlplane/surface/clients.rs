//! Compares the scheduler's API clients with those of upstream's binary: kubeconfigs, servers and user agents.

mod kubeconfigs;
mod servers;
#[expect(dead_code, reason = "shared with the tests in one process, which use more of it")]
#[path = "../../it/client/server.rs"]
mod tls_server;

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use kube_scheduler::version;
use libtest_mimic::Failed;
use serde_json::{Value, json};

pub(crate) use kubeconfigs::kubeconfigs_are_loaded_as_upstream;
pub(crate) use servers::server_failures_are_tolerated_as_upstream;

use crate::support::cluster::{ControlPlane, SCHEDULER, wait_for};
use crate::surface::Whose;

/// Long enough for a start on a busy machine.
const BOUND: Duration = Duration::from_mins(1);

/// Who asks for what, by the audit log: the end of each client's name and the resources that it writes.
/// A pod that fits nowhere makes every client write.
pub(crate) fn user_agents_equal_upstreams() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let file = plane.folder().join("pod.json");
    std::fs::write(&file, pod.to_string()).map_err(|error| error.to_string())?;
    plane.kubectl(&["create", "-f", &file.display().to_string()])?;
    let mut seen = Vec::new();
    for whose in [Whose::Upstreams, Whose::Ours] {
        let before = plane.audited(SCHEDULER)?.len();
        let mut command = Command::new(whose.program());
        command.args([
            "--config",
            &plane.write_config(json!({"leaderElection": {"leaderElect": true}}))?.display().to_string(),
        ]);
        command.arg("--secure-port=0");
        let mut process = plane.run(&format!("{whose:?}"), &mut command)?;
        let writes = wait_for("an event", BOUND, || {
            if process.ended().is_some() {
                return Err(process.tail());
            }
            let entries = plane.audited(SCHEDULER)?.split_off(before);
            let comment = if matches!(whose, Whose::Ours) { format!(" {}", version::comment()) } else { String::new() };
            let writes = entries.iter().filter_map(|entry| write(entry, &comment)).collect::<BTreeSet<_>>();
            let all = ["events", "leases", "pods"];
            let has = |kind: &&str| writes.iter().any(|(_, resource, _)| resource == kind);
            Ok(all.iter().all(has).then_some(writes))
        })?;
        process.terminate()?;
        seen.push(writes);
        plane.kubectl(&["delete", "pod", "waits", "--force", "--grace-period=0"])?;
        plane.kubectl(&["create", "-f", &file.display().to_string()])?;
    }
    plane.remove()?;
    let clients = |writes: &BTreeSet<Write>| -> BTreeSet<(String, String)> {
        writes.iter().map(|(client, resource, _)| (client.clone(), resource.clone())).collect()
    };
    let [theirs, ours] = [&seen[0], &seen[1]].map(clients);
    if theirs != ours {
        return Err(format!("upstream {theirs:?}\nours     {ours:?}").into());
    }
    // The whole name, without the commit of Kubernetes.
    let form = |writes: &BTreeSet<Write>| -> BTreeSet<String> {
        writes
            .iter()
            .map(|(client, _, name)| name.split("kubernetes/").next().unwrap_or_default().to_owned() + client)
            .collect()
    };
    let [theirs, ours] = [&seen[0], &seen[1]].map(form);
    println!("{theirs:?}");
    if theirs == ours { Ok(()) } else { Err(format!("upstream {theirs:?}\nours     {ours:?}").into()) }
}

/// The end of a client's name, what it writes, and its whole name.
type Write = (String, String, String);

/// Reads an entry of the audit log; none for a read. `comment` is the part of the name that this program alone adds.
fn write(entry: &Value, comment: &str) -> Option<Write> {
    if matches!(entry["verb"].as_str()?, "get" | "list" | "watch") {
        return None;
    }
    let name = entry["userAgent"].as_str()?;
    // A name without the comment stays as it is, and differs then.
    let name = name.strip_suffix(comment).unwrap_or("without the comment");
    // `kube-scheduler/VERSION (OS/ARCH) kubernetes/COMMIT/CLIENT`
    let client = name.split("kubernetes/").nth(1)?.split_once('/').map_or("", |(_, client)| client);
    Some((client.to_owned(), entry["objectRef"]["resource"].as_str()?.to_owned(), name.to_owned()))
}
