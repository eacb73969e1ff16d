//! Which nodes are looked at, and which one is taken.

use kube_scheduler::framework::{PostFilterOutcome, PreFilterOutcome, PreScoreOutcome, Rejection, Verdict};
use kube_scheduler::testing::pod;

use crate::world::probe::{Probe, probe};
use crate::world::{World, WorldBuilder, world};

/// A filter that rejects nothing.
fn passes() -> Probe {
    probe("F").filter(|_| Ok(Verdict::Pass))
}

/// A filter that rejects these nodes.
fn rejects(name: &'static str, nodes: &'static [&'static str]) -> Probe {
    probe(name).filter(|seen| {
        let rejected = nodes.contains(&seen.node);
        Ok(if rejected { Verdict::unschedulable(format!("no {}", seen.node)) } else { Verdict::Pass })
    })
}

/// Only these nodes come into question.
fn only(name: &'static str, nodes: &'static [&'static str]) -> Probe {
    probe(name).pre_filter(|_| Ok(PreFilterOutcome::Nodes(nodes.iter().map(|&node| node.to_owned()).collect())))
}

/// Equal scores, so that the first node of the list is taken and as many nodes as are enough are looked for.
fn indifferent() -> Probe {
    probe("Indifferent").score(|_| Ok(1))
}

fn filtered(log: &[String]) -> Vec<&str> {
    log.iter().filter(|line| line.starts_with("Filter")).filter_map(|line| line.rsplit(' ').next()).collect()
}

#[test]
fn nominated_node_is_tried_first_and_keeps_the_start() {
    let mut world = world([passes(), indifferent()]).start();
    world.nodes(["a", "b", "c"]).pod(pod("p").nominated("c")).schedule();
    assert_eq!(world.node_of("p"), "c");
    assert_eq!(world.take_log(), ["Filter F p c"], "no other node, no scores");
    world.pod(pod("q")).schedule();
    assert_eq!(world.node_of("q"), "a");
}

#[test]
fn unfit_nominated_node_falls_back_to_the_search() {
    let mut world = world([rejects("F", &["c"]), indifferent()]).start();
    world.nodes(["a", "b", "c"]).pod(pod("p").nominated("c")).schedule();
    assert_eq!(filtered(&world.take_log()), ["c", "a", "b", "c"]);
    assert_eq!(world.node_of("p"), "a");
}

#[test]
fn deleted_nominated_node_is_ignored() {
    let mut world = world([passes()]).start();
    world.nodes(["a"]).pod(pod("p").nominated("gone")).schedule();
    assert_eq!(world.node_of("p"), "a");
}

#[test]
fn rejected_nominated_node_outside_the_node_set_counts() {
    let mut world = world([only("N", &["a", "b"]), rejects("F", &["c"]), rejects("G", &["a", "b"])]).start();
    world.nodes(["a", "b", "c", "d"]).pod(pod("p").nominated("c")).schedule();
    // Upstream's list of plugins that narrowed the nodes has by then taken in the one that rejected the nominated node.
    let message = "0/4 nodes are available: 1 no a, 1 no b, 1 no c, 1 node(s) didn't satisfy plugin(s) [F N].";
    assert_eq!(world.condition("p"), format!("Unschedulable: {message}"));
    let rejectors = world.waits("p").expect("the pod waits").1;
    assert_eq!(rejectors, ["F", "G", "N"]);
    // Three nodes have a verdict, so the next search begins at the fourth of a list that has two: at b.
    world.take_log();
    world.pod(pod("q")).schedule();
    assert_eq!(filtered(&world.take_log()), ["b", "a", "b", "a"]);
}

fn many(world: &mut World, nodes: usize) {
    let names: Vec<String> = (0..nodes).map(|at| format!("n{at:03}")).collect();
    world.nodes(names.iter().map(String::as_str));
}

/// Where pods go one after the other, in a cluster of 150 nodes where all have the same score: to the first feasible node
/// from where the search begins.
fn check_starts(builder: WorldBuilder, expected: [&str; 4]) {
    let mut world = builder.start();
    many(&mut world, 150);
    let chosen = ["p", "q", "r", "s"].map(|name| {
        world.pod(pod(name)).schedule();
        world.node_of(name)
    });
    assert_eq!(chosen, expected);
}

#[test]
fn next_search_starts_where_the_last_one_stopped() {
    let scored = || world([passes(), indifferent()]);
    check_starts(scored(), ["n000", "n100", "n050", "n000"]);
    check_starts(scored().percentage(80), ["n000", "n120", "n090", "n060"]);
    check_starts(scored().percentage(100).profile_percentage(80), ["n000", "n120", "n090", "n060"]);
    check_starts(scored().percentage(100).profile_percentage(0), ["n000", "n100", "n050", "n000"]);
    check_starts(scored().percentage(100), ["n000"; 4]);
    // Without scores one node is enough.
    check_starts(world([passes()]), ["n000", "n001", "n002", "n003"]);
    // Without filters the first are taken as they are, and the start still moves.
    check_starts(world([indifferent()]), ["n000", "n100", "n050", "n000"]);
    check_starts(world([]), ["n000", "n001", "n002", "n003"]);
}

#[test]
fn rejected_nodes_move_the_start() {
    let first_ten = probe("F")
        .filter(|seen| Ok(if seen.node < "n010" { Verdict::unschedulable("one of ten") } else { Verdict::Pass }));
    // 10 rejected and 100 feasible; then 40 feasible, 10 rejected and 60 feasible; then 80 feasible, 10 rejected, 20 feasible.
    check_starts(world([first_ten, indifferent()]), ["n010", "n110", "n070", "n030"]);
}

#[test]
fn a_node_set_is_searched_from_the_same_start() {
    let mut world = world([
        probe("N").pre_filter(|seen| {
            let few = ["a", "b"].map(str::to_owned).into_iter().collect();
            Ok(if seen.pod.name() == "few" { PreFilterOutcome::Nodes(few) } else { PreFilterOutcome::Pass })
        }),
        passes(),
    ])
    .start();
    world.nodes(["a", "b", "c"]);
    let chosen = ["p", "few", "q", "r"].map(|name| {
        world.pod(pod(name)).schedule();
        world.node_of(name)
    });
    // One node each time: a; the second of two; the third of three; and around the end.
    assert_eq!(chosen, ["a", "b", "c", "a"]);
}

#[test]
fn ties_are_broken_by_heap_order() {
    let check = |scores: &'static [i64], expected: &str| {
        let names = ["a", "b", "c", "d", "e"];
        let place = move |node: &str| names.iter().position(|name| *name == node).expect("one of the nodes");
        let mut world = world([probe("S").score(move |seen| Ok(scores[place(seen.node)]))]).start();
        world.nodes(names.into_iter().take(scores.len())).pod(pod("p")).schedule();
        assert_eq!(world.node_of("p"), expected, "{scores:?}");
    };
    check(&[1, 1, 1, 1, 1], "a");
    check(&[5, 9, 9], "b");
    check(&[0, 7, 3, 9, 9], "d");
    check(&[0, 8, 9, 9, 1], "d");
    check(&[0, 1, 9, 9], "d");
    check(&[0, 0, 0, 0, 1], "e");
}

#[test]
fn skipped_scores_are_left_out_of_the_weighted_sum() {
    let likes = |name: &str, liked: &'static str| probe(name).score(move |seen| Ok(i64::from(seen.node == liked) * 60));
    let mut world = world([
        likes("A", "a"),
        likes("B", "b").pre_score(|seen| {
            Ok(if seen.pod.name() == "skips" { PreScoreOutcome::Skip } else { PreScoreOutcome::Pass })
        }),
        probe("C").score(|seen| Ok(i64::from(seen.node == "b"))),
    ])
    .start();
    world.nodes(["a", "b"]).pod(pod("p")).schedule();
    assert_eq!(world.node_of("p"), "b");
    world.pod(pod("skips")).schedule();
    assert_eq!(world.node_of("skips"), "a");
}

#[test]
fn filter_calls_after_the_stop_are_not_counted() {
    let keeps = probe("K").post_filter(|_| {
        let rejection = Rejection::unschedulable("x");
        Ok(PostFilterOutcome::Reject { rejection, nominated: None })
    });
    let filter = probe("F")
        .filter(|seen| Ok(if seen.pod.name() == "p" { Verdict::Pass } else { Verdict::unschedulable("held back") }));
    let mut world = world([filter, indifferent(), keeps]).start();
    many(&mut world, 150);
    let calls =
        "scheduler_plugin_evaluation_total{extension_point=\"Filter\",plugin=\"F\",profile=\"default-scheduler\"}";
    // Each is tried on its nominated node and then on all.
    world.pod(pod("q").priority(10).nominated("n050")).pod(pod("r").priority(10).nominated("n120")).schedule_all();
    assert_eq!(world.metric(calls), Some(302.0));
    // 101 nodes, one of them with q on it and without; n120 with r on it is behind the stop, though in the same block.
    world.pod(pod("p")).schedule();
    assert_eq!(world.node_of("p"), "n000");
    assert_eq!(world.metric(calls), Some(302.0 + 102.0));
}
