//! Pods and nodes that come and go.

use std::time::{Duration, Instant};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use libtest_mimic::Failed;
use serde_json::json;

use super::{
    NODES, PODS, SENDERS, Scene, count_pods, create_pods, node, nodes_of, pod, pods_of, start_with, wait_until_bound,
};
use crate::behaviour::binds::typed;
use crate::parity::clusters::from_environment;
use crate::support::cluster::ControlPlane;

/// Pods and nodes come and go, 200 changes a second for `KS_CHURN` seconds; afterwards the scheduler has bound what is left,
/// and is as large as it was, with as many threads.
pub(crate) fn survives_churn() -> Result<(), Failed> {
    let seconds = from_environment("KS_CHURN")?.unwrap_or(60);
    let scene = Scene::open()?;
    let plane = &scene.plane;
    // So many writes a second that those about pods which are gone by then, of which a busy machine makes many, do not
    // wait in a queue that grows: its memory would be the system's again only when the C library likes.
    let more = json!({"clientConnection": {"qps": 1000, "burst": 1000}});
    let mut scheduler = start_with(plane, "scheduler", more, &[])?;
    // Grown to what it needs for so many: the allocator takes minutes until what it holds in vain grows no more.
    create_pods(plane, "warm", PODS)?;
    wait_until_bound(plane, &mut scheduler, PODS)?;
    churn(plane, (seconds / 5).max(10))?;
    let before = [scheduler.status("VmRSS")?, scheduler.status("Threads")?];
    let (changes, took) = churn(plane, seconds)?;
    wait_until_bound(plane, &mut scheduler, count_pods(plane)?)?;
    let after = [scheduler.status("VmRSS")?, scheduler.status("Threads")?];
    println!(
        "{changes} changes in {took:.1?}: {} a second; KiB and threads were {before:?}, are {after:?}",
        changes as u64 / took.as_secs().max(1)
    );
    scene.check(&mut scheduler)?;
    if after[0] > before[0] + before[0] / 4 || after[1] > before[1] {
        return Err(format!("KiB and threads were {before:?}, are {after:?}").into());
    }
    drop(scheduler);
    scene.close()
}

/// Makes and removes pods, and relabels, adds and removes nodes, at 200 changes a second. Gives the number of changes, and
/// how long they took.
#[expect(clippy::disallowed_methods, reason = "so many changes a second are made")]
fn churn(plane: &ControlPlane, seconds: u64) -> Result<(usize, Duration), String> {
    const A_SECOND: u64 = 200;
    let (pods, nodes) = (pods_of(plane), nodes_of(plane));
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    let began = Instant::now();
    let change = |at: u64| {
        let (pods, nodes, now) = (&pods, &nodes, &now);
        async move {
            tokio::time::sleep_until((began + Duration::from_millis(1000 * at / A_SECOND)).into()).await;
            let post = PostParams::default();
            let merge = PatchParams::default();
            // A pod lives for 400 changes, which is two seconds.
            match at % 20 {
                0 => {
                    let labels = Patch::Merge(json!({"metadata": {"labels": {"round": at.to_string()}}}));
                    nodes.patch(&format!("node-{}", at / 20 % NODES as u64), &merge, &labels).await.map(drop)
                }
                1 => nodes.create(&post, &typed(node(&format!("extra-{at}")))).await.map(drop),
                2 if at >= 100 => nodes.delete(&format!("extra-{}", at - 101), now).await.map(drop),
                other if other % 2 == 1 => pods.create(&post, &typed(pod(&format!("churn-{at}")))).await.map(drop),
                _ if at >= 401 => pods.delete(&format!("churn-{}", at - 401), now).await.map(drop),
                _ => Ok(()),
            }
        }
    };
    let total = seconds * A_SECOND;
    let all = stream::iter(0..total).map(change).buffer_unordered(SENDERS * 5).map(|done| match done {
        // The one before it may not be through yet, or there was none.
        Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => Ok(0),
        Err(error) => Err(error.to_string()),
        Ok(()) => Ok(1),
    });
    let changes = plane.runtime.block_on(all.try_fold(0, |sum, one: usize| async move { Ok(sum + one) }))?;
    let took = began.elapsed();
    // What this round has made goes, but for the pods of its last two seconds.
    plane
        .runtime
        .block_on(async {
            for node in nodes.list(&ListParams::default()).await?.items {
                let name = node.metadata.name.unwrap_or_default();
                if name.starts_with("extra-") {
                    nodes.delete(&name, &now).await?;
                }
            }
            for pod in pods.list(&ListParams::default()).await?.items {
                let gone = pod
                    .spec
                    .as_ref()
                    .and_then(|spec| spec.node_name.as_deref())
                    .is_some_and(|node| node.starts_with("extra-"));
                let name = pod.metadata.name.unwrap_or_default();
                if gone || name.starts_with("churn-") {
                    pods.delete(&name, &now).await?;
                }
            }
            Ok(())
        })
        .map_err(|error: kube::Error| error.to_string())?;
    Ok((changes, took))
}
