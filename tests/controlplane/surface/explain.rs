//! `explain` on a running cluster, as a user who may do what `deploy/explain-role.yaml` says and nothing else: it says the same
//! as of what kubectl prints of that cluster, asks for nothing that is denied, and writes nothing.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::support::cluster::{ControlPlane, GUEST, free_ports, wait_for};

/// Timeout for the API server to observe a new role. Its informers need less than a second.
const ROLE: Duration = Duration::from_secs(30);

/// The scheduler gives up after 10 s; this is for a slow machine.
const GIVEN_UP: Duration = Duration::from_secs(30);

/// Kinds that scheduling looks at.
const KINDS: usize = 18;

/// What becomes a dump again: kinds that no other controller has to act on.
const DUMPED: &str = "nodes,pods,namespaces,services,poddisruptionbudgets";

/// Nodes that differ in all that pods ask for, pods on them, and pods that wait: some fit, others do not for one reason each,
/// and one would preempt another in violation of a disruption budget.
const CLUSTER: &str = include_str!("explain/cluster.yaml");

/// The pods that wait.
const PENDING: [&str; 8] = ["apart", "critical", "fits", "held", "huge", "nominee", "pinned", "tight"];

/// Result of a run.
struct Said {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn explain(arguments: &[&str]) -> Result<Said, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-scheduler")).arg("explain").args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|error| error.to_string());
    Ok(Said { code: output.status.code(), stdout: text(output.stdout)?, stderr: text(output.stderr)? })
}

impl Said {
    /// Fails unless the run ended with an error that has these words, and said nothing else.
    fn expect_error(&self, words: &str) -> Result<(), String> {
        let said = (self.code, &*self.stdout, self.stderr.lines().count());
        if said == (Some(1), "", 1) && self.stderr.starts_with("error: kubeconfig ") && self.stderr.contains(words) {
            return Ok(());
        }
        Err(format!("{words:?} is expected, not {said:?}: {}", self.stderr))
    }
}

pub(crate) fn explains_a_running_cluster() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    fill(&plane)?;
    let kubeconfig = plane.guest_kubeconfig().display().to_string();
    let guest = |arguments: &[&str]| explain(&[&["--kubeconfig", &kubeconfig], arguments].concat());
    without_rights(&guest)?;
    without_what_can_be_missing(&plane, &guest)?;
    let denied = plane.audited(GUEST)?.len();
    bind(&plane, "deploy/explain-role.yaml", &guest, |said| said.code == Some(0) && !said.stderr.contains("warning"))?;
    says_what_files_say(&plane, &guest)?;
    asks_for_what_the_role_allows(&plane, denied)?;
    nobody_answers(&plane)?;
    Ok(plane.remove()?)
}

fn fill(plane: &ControlPlane) -> Result<(), String> {
    let file = plane.folder().join("cluster.yaml");
    std::fs::write(&file, CLUSTER).map_err(|error| error.to_string())?;
    plane.kubectl(&["create", "-f", &file.display().to_string()])?;
    for (pod, namespace, status) in
        [("ended", "shop", r#"{"phase":"Succeeded"}"#), ("nominee", "default", r#"{"nominatedNodeName":"west-1"}"#)]
    {
        let patch = format!(r#"{{"status":{status}}}"#);
        plane.kubectl(&["patch", "pod", pod, "-n", namespace, "--subresource=status", "--patch", &patch])?;
    }
    Ok(())
}

type Guest<'a> = &'a dyn Fn(&[&str]) -> Result<Said, String>;

fn without_rights(guest: Guest<'_>) -> Result<(), String> {
    guest(&["fits"])?.expect_error(
        "cannot list nodes: nodes is forbidden: User \"guest\" cannot list resource \"nodes\" in API group \"\" at the \
         cluster scope; deploy/explain-role.yaml has a ClusterRole with the required permissions",
    )
}

/// Nodes and pods alone are enough, and what that leaves out is said.
fn without_what_can_be_missing(plane: &ControlPlane, guest: Guest<'_>) -> Result<(), String> {
    plane.kubectl(&["create", "clusterrole", "some", "--verb=list", "--resource=nodes,pods"])?;
    plane.kubectl(&["create", "clusterrolebinding", "some", "--clusterrole=some", "--user=guest"])?;
    let said =
        wait_for("the role to be known", ROLE, || Ok(Some(guest(&["critical"])?).filter(|said| said.code == Some(0))))?;
    for expected in [
        "warning: cannot list poddisruptionbudgets, so preemption ignores disruption budgets: \
         poddisruptionbudgets.policy is forbidden: User \"guest\" cannot list resource \"poddisruptionbudgets\"",
        "warning: cannot list namespaces, so namespaceSelectors of pod affinity select no namespace: namespaces is forbidden",
        "warning: cannot list services, so default spreading does not know which pods belong to them: services is forbidden",
    ] {
        if !said.stderr.contains(expected) {
            return Err(format!("{expected:?} is expected: {}", said.stderr));
        }
    }
    let without = "would preempt shop/guarded on east-1\n";
    if said.stdout.contains(without) { Ok(()) } else { Err(said.stdout) }
}

/// Gives the guest the role of a file of the repository, and waits until that is so.
fn bind(plane: &ControlPlane, file: &str, guest: Guest<'_>, known: impl Fn(&Said) -> bool) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file).display().to_string();
    plane.kubectl(&["apply", "-f", &path])?;
    plane.kubectl(&[
        "create",
        "clusterrolebinding",
        "kube-scheduler-explain",
        "--clusterrole=kube-scheduler-explain",
        "--user=guest",
    ])?;
    plane.kubectl(&["delete", "clusterrolebinding", "some"])?;
    wait_for("the role to be known", ROLE, || Ok(known(&guest(&[])?).then_some(())))
}

/// What is said of the cluster is what is said of the files that kubectl makes of it, byte by byte.
fn says_what_files_say(plane: &ControlPlane, guest: Guest<'_>) -> Result<(), String> {
    let dump = plane.folder().join("dump.yaml");
    let text = plane.kubectl(&["get", DUMPED, "--all-namespaces", "--output", "yaml"])?;
    std::fs::write(&dump, text).map_err(|error| error.to_string())?;
    let dump = dump.display().to_string();
    let mut asked: Vec<Vec<&str>> = PENDING.iter().map(|pod| vec![*pod]).collect();
    asked.extend([vec![], vec!["-o", "json"], vec!["-n", "shop"], vec!["shop/huge", "-o", "json"]]);
    for arguments in &asked {
        let of_files = explain(&[&["-f", &dump], &arguments[..]].concat())?;
        let live = guest(arguments)?;
        if (of_files.code, &of_files.stdout) != (live.code, &live.stdout) || live.code != Some(0) {
            let (code, stdout, stderr) = (live.code, &live.stdout, &live.stderr);
            return Err(format!("{arguments:?}: of files\n{}\nlive ({code:?})\n{stdout}{stderr}", of_files.stdout));
        }
        if live.stderr.lines().count() != 1 || !live.stderr.starts_with("loaded in ") {
            return Err(format!("{arguments:?} says more than how long it took: {}", live.stderr));
        }
    }
    for (pod, words) in [
        ("critical", "would preempt shop/guarded on east-1, 1 in violation of a disruption budget\n"),
        ("tight", "Pod default/tight: unschedulable\n"),
        ("ended", "error: no pod \"ended\" in this cluster, or it is completed\n"),
    ] {
        let Said { stdout, stderr, .. } = guest(&[pod])?;
        if !format!("{stdout}{stderr}").contains(words) {
            return Err(format!("{words:?} is expected of {pod}: {stdout}{stderr}"));
        }
    }
    Ok(())
}

/// The audit log has nothing but lists, all of them granted, and each kind of the role.
fn asks_for_what_the_role_allows(plane: &ControlPlane, before: usize) -> Result<(), String> {
    let entries = plane.audited(GUEST)?;
    let mut listed = BTreeSet::new();
    for entry in &entries {
        let text = |path: &str| entry.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        match (&*text("/verb"), &*text("/objectRef/resource")) {
            ("list", resource) => drop(listed.insert(resource.to_owned())),
            // The server's version, and that of its events.
            ("get", "") => {}
            _ => return Err(format!("more than reading: {entry}")),
        }
    }
    // The role becomes known kind by kind, and while it does the guest is denied some.
    let last = entries[before..].iter().rev().take_while(|entry| entry["responseStatus"]["code"] == 200).count();
    // Each pod, four other ways to ask, and three looks at what is said.
    let runs = PENDING.len() + 4 + 3;
    if listed.len() != KINDS || last < runs * KINDS {
        return Err(format!("of {} requests the last {last} were granted, for {listed:?}", entries.len()));
    }
    Ok(())
}

/// A server that does not listen, and one that takes connections and says nothing.
#[expect(clippy::disallowed_methods, reason = "it is about real time")]
fn nobody_answers(plane: &ControlPlane) -> Result<(), String> {
    let text = std::fs::read_to_string(plane.guest_kubeconfig()).map_err(|error| error.to_string())?;
    let [port] = free_ports()?;
    let silent = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let deaf = silent.local_addr().map_err(|error| error.to_string())?.port();
    for (port, expected) in [(port, "connection refused"), (deaf, "")] {
        let (before, after) = text.split_once("https://127.0.0.1:").ok_or("a server")?;
        let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let path = plane.folder().join("nobody.kubeconfig");
        std::fs::write(&path, format!("{before}https://127.0.0.1:{port}{after}")).map_err(|error| error.to_string())?;
        let began = std::time::Instant::now();
        let said = explain(&["--kubeconfig", &path.display().to_string()])?;
        said.expect_error(&format!("the API server https://127.0.0.1:{port}/ is unreachable: "))?;
        if !said.stderr.contains(expected) || began.elapsed() > GIVEN_UP {
            return Err(format!("after {:?}: {}", began.elapsed(), said.stderr));
        }
    }
    Ok(())
}
