//! The content of `/metrics` after a scripted scenario: every series of the scheduler's own families.
//!
//! Virtual time stands still within a cycle, so of histograms only the counts are told.

use kube_scheduler::framework::{
    PermitOutcome, PostFilterOutcome, PreFilterOutcome, PreScoreOutcome, Rejection, Verdict,
};
use kube_scheduler::testing::pod;

use crate::world::probe::{Probe, probe, ready};
use crate::world::{World, world};

/// Has every point; rejects pods named `big` on all nodes, and pods named `refused` before that.
fn everything() -> Probe {
    probe("All")
        .pre_filter(|seen| {
            let refused = seen.pod.name() == "refused";
            Ok(if refused { PreFilterOutcome::Reject(Rejection::unresolvable("no")) } else { PreFilterOutcome::Pass })
        })
        .filter(|seen| Ok(if seen.pod.name() == "big" { Verdict::unschedulable("full") } else { Verdict::Pass }))
        .post_filter(|_| Ok(PostFilterOutcome::Reject { rejection: Rejection::unschedulable("x"), nominated: None }))
        .pre_score(|_| Ok(PreScoreOutcome::Pass))
        .score(|_| Ok(1))
        .reserve(|_| Ok(Verdict::Pass))
        .permit(|_| Ok(PermitOutcome::Allow))
        .pre_bind(|_| ready(Ok(Verdict::Pass)))
        .post_bind(|_| ())
}

/// Has the points that can be skipped, and skips them; and a filter behind that of `All`.
fn skips() -> Probe {
    probe("Skips")
        .pre_filter(|_| Ok(PreFilterOutcome::Skip))
        .pre_score(|_| Ok(PreScoreOutcome::Skip))
        .score(|_| panic!("a skipped plugin is asked"))
}

fn last() -> Probe {
    probe("Last").filter(|_| Ok(Verdict::Pass))
}

/// The scheduler's series without buckets and sums, and without what other tests of theirs are for.
fn series(world: &World) -> Vec<String> {
    let text = world.metrics();
    let left_out = |line: &str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        !line.starts_with("scheduler_")
            || name.ends_with("_bucket")
            || name.ends_with("_sum")
            || name.starts_with("scheduler_event_handling")
            || name.starts_with("scheduler_inflight")
            // Which attempts are sampled is chance.
            || name.starts_with("scheduler_plugin_execution")
    };
    text.lines().filter(|line| !left_out(line)).map(str::to_owned).collect()
}

#[test]
fn metrics_cover_bound_unschedulable_and_failed_pods() {
    let mut world = world([everything(), skips(), last()]).start();
    world.nodes(["a", "b", "c"]);
    for name in ["small", "big", "refused"] {
        world.pod(pod(name)).schedule();
    }
    let expected = include_str!("metrics.txt");
    let actual = series(&world).join("\n") + "\n";
    assert!(actual == expected, "{actual}");
}
