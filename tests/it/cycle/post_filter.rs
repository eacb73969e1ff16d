//! `PostFilter`: what it adds to the message, and what becomes of the nomination.

use kube_scheduler::framework::{PluginError, PostFilterOutcome, Rejection, Verdict};
use kube_scheduler::testing::pod;

use crate::world::probe::{Answer, Probe, probe};
use crate::world::world;

fn full() -> Probe {
    probe("F").filter(|_| Ok(Verdict::unschedulable("full")))
}

fn no(rejection: Rejection, nominated: Option<&str>) -> PostFilterOutcome {
    PostFilterOutcome::Reject { rejection, nominated: nominated.map(str::to_owned) }
}

/// A pod for which `before` is held fits nowhere; `answers` are those of `PostFilter` plugins in order, of which `asked` are
/// asked. Checks what is said after the filters' reasons, and which node is held then.
fn check(answers: &[Answer<PostFilterOutcome>], asked: usize, said: &str, nominated: &str) {
    let answered = answers.iter().cloned().enumerate().map(|(at, answer)| {
        probe(&format!("P{at}")).post_filter(move |seen| {
            assert_eq!(seen.diagnosis.expect("PostFilter is told").nodes.len(), 2);
            answer.clone()
        })
    });
    let mut world = world([full()].into_iter().chain(answered)).start();
    world.nodes(["a", "b"]).pod(pod("p").nominated("b")).schedule();
    assert_eq!(world.condition("p"), format!("Unschedulable: 0/2 nodes are available: 2 full.{said}"));
    assert_eq!(world.nominated("p"), nominated, "{said}");
    let held = world.engine.shared.queue.nominator().node_of("p");
    assert_eq!(held.as_deref().unwrap_or_default(), nominated, "{said}");
    let log = world.take_log();
    assert_eq!(log.iter().filter(|line| line.starts_with("PostFilter")).count(), asked, "{said}");
    assert_eq!(world.waits("p").expect("the pod waits").1, ["F"], "PostFilter plugins reject nothing");
}

#[test]
fn post_filter_outcomes_set_message_and_nomination() {
    let unschedulable = Rejection::unschedulable;
    let success = |nominated: Option<&str>| Ok(PostFilterOutcome::Success { nominated: nominated.map(str::to_owned) });
    check(&[], 0, "", "");
    check(&[success(Some("a"))], 1, "", "a");
    check(&[success(None)], 1, "", "b");
    check(&[Ok(no(unschedulable("x"), None))], 1, " x", "b");
    check(&[Ok(no(unschedulable("x"), Some("")))], 1, " x", "");
    check(&[Ok(no(unschedulable("x"), Some(""))), Ok(no(unschedulable("y"), None))], 2, " x, y", "");
    check(&[Ok(no(Rejection::pending("x"), None)), success(Some("a"))], 2, "", "a");
    let never = Rejection::unresolvable("y");
    check(&[Ok(no(unschedulable("x"), Some(""))), Ok(no(never, None)), success(Some("a"))], 2, " y", "b");
    check(&[Err(PluginError::new("boom")), success(Some("a"))], 1, " boom", "b");
}

#[test]
fn post_filter_runs_after_rejections_but_not_errors() {
    use kube_scheduler::framework::PreFilterOutcome;
    let gives_up = || probe("P").post_filter(|_| Ok(no(Rejection::unschedulable("x"), None)));
    let never = Rejection::unresolvable("never");
    let rejects = probe("R").pre_filter(move |_| Ok(PreFilterOutcome::Reject(never.clone())));
    let mut rejected = world([rejects, gives_up()]).start();
    rejected.nodes(["a"]).pod(pod("p")).schedule();
    assert_eq!(rejected.condition("p"), "Unschedulable: 0/1 nodes are available: never. x");

    let mut broken = world([probe("R").filter(|_| Err(PluginError::new("boom"))), gives_up()]).start();
    broken.nodes(["a"]).pod(pod("p").nominated("a")).schedule();
    assert_eq!(broken.nominated("p"), "", "an error clears the nomination");
    assert!(broken.take_log().iter().all(|line| !line.starts_with("PostFilter")));
}
