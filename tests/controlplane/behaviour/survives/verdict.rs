//! The judgement over what has befallen a scheduler: from the objects, their history in etcd, and the audit log.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::history::{History, Life};
use super::pods_there;
use crate::behaviour::binds::node_of;
use crate::support::cluster::{ControlPlane, Process, SCHEDULER};

/// 64 cores and half a core each.
const ON_A_NODE: usize = 128;

/// What the audit log has of the bindings of one pod.
#[derive(Default)]
struct Bindings {
    /// The nodes of those that were answered with 201.
    made: Vec<String>,
    /// The others, by what they were answered after the pod was known to be bound.
    late: Vec<(u64, String)>,
}

/// How many bindings were refused in which words.
type Refused = BTreeMap<String, usize>;

/// The scheduler still runs. Every pod is on a node that has room for it, and was put there by exactly one write. The audit
/// log has at most one binding of it with 201, and from the first answer that shows it as bound none that says otherwise.
pub(super) fn check(plane: &ControlPlane, scheduler: &mut Process, history: &History) -> Result<(), String> {
    if let Some(status) = scheduler.ended() {
        return Err(format!("the scheduler ended with {status}; {}", scheduler.tail()));
    }
    let pods = pods_there(plane)?;
    check_room(&pods)?;
    let lives = history.up_to(&versions(&pods))?;
    for pod in &pods {
        let life = &lives[uid_of(pod)];
        if life.nodes.len() != 1 || life.nodes[0] != node_of(pod).unwrap_or_default() {
            return Err(format!("{} was written {:?} for its node", life.pod, life.nodes));
        }
    }
    // Those that are gone may have gone before they were bound.
    if let Some(life) = lives.values().find(|life| life.nodes.len() > 1 || life.nodes.iter().any(String::is_empty)) {
        return Err(format!("{} was written {:?} for its node", life.pod, life.nodes));
    }
    let (bindings, refused) = bindings(plane, &lives)?;
    for (uid, bindings) in &bindings {
        check_answers(lives.get(uid).ok_or_else(|| format!("etcd never had pod {uid}"))?, bindings)?;
    }
    let lost = |life: &&Life| life.nodes.len() == 1;
    let unanswered = lives.iter().filter(|(uid, _)| bindings.get(*uid).is_none_or(|bindings| bindings.made.is_empty()));
    let unanswered = unanswered.filter(|(_, life)| lost(life)).count();
    let gone = lives.values().filter(|life| life.is_gone).count();
    println!(
        "{} pods and {gone} that are gone, bound by one write each; {unanswered} without a 201; refused: {refused:?}",
        pods.len()
    );
    Ok(())
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn versions(pods: &[Pod]) -> BTreeMap<String, u64> {
    let version = |pod: &Pod| pod.metadata.resource_version.as_ref().and_then(|version| version.parse().ok());
    pods.iter().map(|pod| (uid_of(pod).to_owned(), version(pod).unwrap_or(u64::MAX))).collect()
}

fn check_room(pods: &[Pod]) -> Result<(), String> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        let node = node_of(pod).ok_or_else(|| format!("pod {:?} was forgotten", pod.metadata.name))?;
        *on_node.entry(node).or_default() += 1;
    }
    match on_node.iter().find(|(_, count)| **count > ON_A_NODE) {
        Some((node, count)) => Err(format!("{count} pods are on {node}")),
        None => Ok(()),
    }
}

fn check_answers(life: &Life, bindings: &Bindings) -> Result<(), String> {
    let Life { pod: name, nodes, .. } = life;
    match bindings.made.as_slice() {
        [] => {}
        [node] if nodes.as_slice() == [node.as_str()] => {}
        made => return Err(format!("{name} was bound with 201 to {made:?}, and etcd has {nodes:?}")),
    }
    // It is bound, or gone; or the API server cannot ask etcd, or has just started and knows no roles yet.
    match bindings.late.iter().find(|(code, _)| !matches!(code, 409 | 404 | 403 | 500..)) {
        Some((code, message)) => {
            Err(format!("{name} was bound, and then a binding was answered with {code} {message}"))
        }
        None => Ok(()),
    }
}

/// The bindings of every pod by UID, and how many were refused in which words.
fn bindings(
    plane: &ControlPlane,
    lives: &BTreeMap<String, Life>,
) -> Result<(BTreeMap<String, Bindings>, Refused), String> {
    let uids: BTreeMap<&str, &String> = lives.iter().map(|(uid, life)| (life.pod.as_str(), uid)).collect();
    let mut bindings: BTreeMap<String, Bindings> = BTreeMap::new();
    let mut refused = Refused::new();
    plane.each_audited(SCHEDULER, "\"subresource\":\"binding\"", |entry| {
        let text = |at: &str| entry.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        // A request that was given up while it was read has no body, and only a name.
        let mut uid = text("/requestObject/metadata/uid");
        if uid.is_empty() {
            uid = uids.get(text("/objectRef/name").as_str()).map_or_else(String::new, |uid| (*uid).clone());
        }
        let pod = bindings.entry(uid).or_default();
        let code = entry["responseStatus"]["code"].as_u64().unwrap_or_default();
        if code == 201 {
            pod.made.push(text("/requestObject/target/name"));
            return;
        }
        let message = text("/responseStatus/message");
        let words = message.split(' ').filter(|word| !word.contains(['"', '-'])).take(8).collect::<Vec<_>>().join(" ");
        *refused.entry(format!("{code} {words}")).or_default() += 1;
        if !pod.made.is_empty() || !pod.late.is_empty() || message.contains("is already assigned to node") {
            pod.late.push((code, message));
        }
    })?;
    Ok((bindings, refused))
}
