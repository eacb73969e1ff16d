//! Timing of the cache operations of a binding. Prints timings and asserts none: run it by name, with `--release` and
//! `--nocapture`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::Cache;
use crate::clock::Rng;
use crate::model::{LabelClasses, PodInfo, Snapshot};
use crate::testing::{node, pod};

const NODES: usize = 1_000;
const PODS_A_NODE: usize = 100;
const BINDS: usize = 20_000;

#[test]
#[ignore = "prints timings"]
fn prints_timings_of_assume_and_snapshot() {
    let (cache, classes, mut rng) = (Cache::new(), LabelClasses::default(), Rng::from_seed(1));
    let info = |number: usize, node: usize| {
        let pod = pod(&format!("pod-{number:08}-with-an-uid-of-usual-length")).on(&format!("node-{node}"));
        Arc::new(PodInfo::new(pod.cpu("100m").memory("128Mi").label("app", "web").build(), &classes))
    };
    for number in 0..NODES {
        cache.set_node(node(&format!("node-{number}")).zone(["a", "b", "c"][number % 3]).build());
    }
    for number in 0..NODES * PODS_A_NODE {
        cache.add_pod(info(number, rng.index(NODES))).expect("it is new");
    }
    let mut snapshot = Snapshot::default();
    cache.update_snapshot(&mut snapshot).expect("it is consistent");
    let pods: Vec<_> = (0..BINDS).map(|number| info(1_000_000 + number, rng.index(NODES))).collect();

    // The first round is a warm-up: it copies the entries that cache and snapshot share, and grows the tables.
    for round in 1..=2 {
        let assume = each(&pods, |pod| {
            cache.assume_pod(pod.clone()).expect("it is new");
            cache.update_snapshot(&mut snapshot).expect("it is consistent");
        });
        let forget = each(&pods, |pod| {
            cache.forget_pod(pod.pod()).expect("it is assumed");
            cache.update_snapshot(&mut snapshot).expect("it is consistent");
        });
        println!(
            "{NODES} nodes, {PODS_A_NODE} pods each, round {round}: assume + snapshot {assume:?}, forget + snapshot {forget:?}"
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement; nothing asserts it")]
fn each(pods: &[Arc<PodInfo>], operation: impl FnMut(&Arc<PodInfo>)) -> Duration {
    let start = Instant::now();
    pods.iter().for_each(operation);
    start.elapsed() / u32::try_from(pods.len()).expect("small")
}
