//! Debugger on SIGUSR2: compares the cache with the informers, and logs the contents of cache and queue.
//!
//! Follows `pkg/scheduler/backend/cache/debugger @v1.36.3`.

use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::cache::{Mismatch, compare, dump_nodes, dump_pods};
use crate::framework::Nominator as _;
use crate::scheduler::SchedulerContext;

/// Compares and dumps each time the process receives SIGUSR2.
pub(super) async fn on_signal(shared: Arc<SchedulerContext>) {
    let mut asked = match signal(SignalKind::user_defined2()) {
        Ok(asked) => asked,
        Err(error) => {
            warn!(%error, "Failed to listen for SIGUSR2");
            // A serving task must not end.
            return std::future::pending().await;
        }
    };
    while asked.recv().await.is_some() {
        log(&shared);
    }
}

fn log(shared: &SchedulerContext) {
    let nodes = shared.cache.nodes();
    let known = shared.nodes.keys();
    let cached: Vec<&str> = nodes.iter().filter(|node| node.try_node().is_some()).map(|node| node.name()).collect();
    let difference = compare(known.iter().map(String::as_str), cached);
    report(&difference, "missedNodes", "redundantNodes");

    let (queued, summary) = shared.queue.pending_pods();
    let listed = shared.pods.list();
    let held = shared.cache.pods();
    let uids = held.iter().map(|pod| pod.pod.uid()).chain(queued.iter().map(|pod| pod.uid()));
    let difference = compare(listed.iter().map(|pod| pod.uid()), uids);
    report(&difference, "missedPods", "redundantPods");

    let nominated = |node: &str| shared.queue.nominator().nominated_pods_for_node(node);
    info!(nodes = dump_nodes(&nodes, nominated), "Dump of cached NodeInfo");
    info!(summary, pods = dump_pods(queued.iter().map(|pod| &**pod.pod())), "Dump of scheduling queue");
}

fn report(difference: &Mismatch, missed: &str, redundant: &str) {
    if !difference.is_empty() {
        let (lacking, extra) = (difference.missed.join(", "), difference.redundant.join(", "));
        warn!("Cache mismatch {missed}=[{lacking}] {redundant}=[{extra}]");
    }
}
