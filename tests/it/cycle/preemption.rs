//! Preemption from the failed attempt to the binding: what is written, who waits meanwhile, and what ends without a write.

use std::time::Duration;

use kube_scheduler::apiserver::Fault;
use kube_scheduler::config::Gate;
use kube_scheduler::framework::{PermitOutcome, PluginError};
use kube_scheduler::queue::Place;
use kube_scheduler::testing::{PodFixture, node, pod};
use serde_json::json;

use crate::world::extender::{FakeExtender, extender};
use crate::world::probe::{Answer, probe};
use crate::world::{World, WorldBuilder, world};

/// A scheduler to which only CPU matters, and priority.
fn crowded() -> WorldBuilder {
    world([]).in_tree(&["NodeResourcesFit", "DefaultPreemption"])
}

/// A pod that takes a core of the node.
fn on(node: &str, name: &str) -> PodFixture {
    pod(name).on(node).cpu("1").priority(0).set("status.phase", "Running".into())
}

fn preemptor(name: &str) -> PodFixture {
    pod(name).cpu("1").priority(10)
}

impl World {
    /// Nodes of one core, each full.
    fn full(&mut self, nodes: &[&str]) -> &mut Self {
        for name in nodes {
            self.load(node(name).allocatable("cpu", "1").json());
            self.pod(on(name, &format!("on-{name}")));
        }
        self
    }

    fn is_ending(&self, pod: &str) -> bool {
        self.held(pod)["metadata"]["deletionTimestamp"].is_string()
    }

    fn writes_of(&self, pod: &str) -> Vec<String> {
        let path = format!("/pods/{pod}");
        let of_pod = |what: &str| what.ends_with(&path) || what.contains(&format!("{path}/"));
        let writes = self.take_writes().into_iter().map(|write| write.what);
        writes.filter(|what| of_pod(what)).map(|what| what.split(' ').next().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn lower_priority_pod_is_preempted() {
    let mut world = crowded().start();
    world.full(&["a"]).pod(preemptor("p")).schedule();
    assert_eq!(world.condition("p"), "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
    assert_eq!(world.nominated("p"), "a");
    assert!(world.is_ending("on-a"));
    let conditions = world.held("on-a")["status"]["conditions"].clone();
    let target =
        conditions.as_array().and_then(|all| all.iter().find(|one| one["type"] == "DisruptionTarget").cloned());
    let target = target.expect("the victim is marked");
    let message = "default-scheduler: preempting to accommodate a higher priority pod";
    let said = [&target["status"], &target["reason"], &target["message"]];
    assert_eq!(said, ["True", "PreemptionByScheduler", message]);
    let writes = world.take_writes();
    let victim = writes.iter().filter(|write| write.what.contains("on-a")).map(|write| (&*write.what, &*write.body));
    let victim: Vec<_> = victim.collect();
    assert_eq!(victim[0].0, "PATCH /api/v1/namespaces/default/pods/on-a/status");
    assert_eq!(
        victim[1],
        ("DELETE /api/v1/namespaces/default/pods/on-a", r#"{"kind":"DeleteOptions","apiVersion":"v1"}"#)
    );
    let events = world.events();
    assert!(
        events.contains(&"Normal Preempted/Preempting on-a: Preempted by pod p on node a".to_owned()),
        "{events:?}"
    );
    assert_eq!(world.waits("p"), Some((Place::Unschedulable, vec!["NodeResourcesFit".into()])));
    assert_eq!(world.metric("scheduler_preemption_attempts_total"), Some(1.0));
    assert_eq!(world.metric("scheduler_preemption_victims_sum"), Some(1.0));
    let ended = "scheduler_preemption_goroutines_execution_total{result=\"success\"}";
    assert_eq!(world.metric(ended), Some(1.0));
    // Its grace is over: the pod that waits for the place gets it.
    world.delete("on-a").advance(Duration::from_secs(2)).schedule_all();
    assert_eq!(world.node_of("p"), "a");
    assert_eq!(world.nominated("p"), "");
}

#[test]
fn preemptor_is_gated_while_victims_are_deleted() {
    let mut world = crowded().start();
    world.full(&["a"]).pod(preemptor("p"));
    assert!(world.cycle(), "the pod is tried");
    let now = world.now();
    world.engine.shared.queue.activate_at(&["default/p".to_owned()], now);
    let queued = world.queued("p").expect("the pod waits");
    assert_eq!(queued.gating_plugin.as_deref(), Some("DefaultPreemption"));
    assert!(!world.cycle(), "the pod is not tried again");
    world.settle();
    assert!(world.is_ending("on-a"));
    world.engine.shared.queue.activate_at(&["default/p".to_owned()], now);
    assert_eq!(world.queued("p").expect("the pod waits").place, Place::Active);
    // The victim has not left yet, so no other is looked for.
    world.schedule();
    assert_eq!(
        world.condition("p"),
        "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to a terminating pod on \
         the nominated node."
    );
    assert_eq!(world.nominated("p"), "a", "the nomination stays");
}

#[test]
fn without_async_preemption_the_cycle_deletes_victims() {
    let mut world = crowded().gate(Gate::SchedulerAsyncPreemption, false).start();
    world.full(&["a"]).pod(preemptor("p")).take_writes();
    assert!(world.cycle(), "the pod is tried");
    assert_eq!(world.writes_of("on-a"), ["PATCH", "DELETE"]);
    world.settle();
    assert_eq!(world.nominated("p"), "a");
    assert_eq!(world.metric("scheduler_preemption_victims_count"), Some(1.0));
    world.delete("on-a").advance(Duration::from_secs(2)).schedule_all();
    assert_eq!(world.node_of("p"), "a");
}

#[test]
fn nodes_without_budget_violations_are_preferred() {
    let mut world = crowded().start();
    world.load(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
    }));
    for (name, protected) in [("a", true), ("b", false), ("c", true)] {
        world.load(node(name).allocatable("cpu", "1").json());
        let victim = on(name, &format!("on-{name}"));
        world.pod(if protected { victim.label("app", "web") } else { victim });
    }
    world.pod(preemptor("p")).schedule();
    assert_eq!(world.nominated("p"), "b");
    // With nothing else left, a protected pod goes.
    world.pod(preemptor("q")).schedule();
    assert!(["a", "c"].contains(&world.nominated("q").as_str()));
}

#[test]
fn lower_priority_nominations_are_cleared() {
    let mut world = crowded().start();
    world.full(&["a"]);
    world.pod(pod("low").cpu("1").priority(5).nominated("a").gate("wait"));
    world.pod(preemptor("p").priority(11)).schedule();
    assert_eq!((world.nominated("p"), world.nominated("low")), ("a".into(), String::new()));
    // Where all victims are ending already, nothing else is done.
    world.pod(pod("again").cpu("1").priority(5).nominated("a").gate("wait"));
    world.pod(preemptor("late").priority(12)).schedule();
    assert_eq!(["late", "again", "p"].map(|name| world.nominated(name)), ["a", "a", "a"]);
}

#[test]
fn victim_waiting_on_permit_is_rejected_in_memory() {
    let wait = probe("W").permit(|seen| {
        let waits = seen.pod.name() == "w";
        Ok(if waits { PermitOutcome::Wait(Duration::from_mins(9), "wait".into()) } else { PermitOutcome::Allow })
    });
    let mut world = world([wait]).in_tree(&["NodeResourcesFit", "DefaultPreemption"]).start();
    world.load(node("a").allocatable("cpu", "1").json());
    world.pod(pod("w").cpu("1").priority(0)).schedule();
    world.take_writes();
    world.pod(preemptor("p")).schedule();
    assert_eq!(world.condition("w"), "SchedulerError: waiting on permit for pod: preempted");
    assert!(!world.is_ending("w") && world.writes_of("w").iter().all(|method| method == "PATCH"));
    assert_eq!(world.waits("w"), Some((Place::ErrorBackoff, Vec::new())));
    let note = "Normal Preempted/Preempting w: Preempted by pod p on node a (in kube-scheduler memory).";
    assert!(world.events().contains(&note.to_owned()), "{:?}", world.events());
    world.advance(Duration::from_secs(2)).schedule_all();
    assert_eq!((world.node_of("p"), world.node_of("w")), ("a".into(), String::new()));
}

#[test]
fn failed_preemption_is_retried() {
    let mut world = crowded().start();
    world.full(&["a"]);
    world.server.faults().set(|request| (request.method == http::Method::DELETE).then_some(Fault::Status(403, None)));
    world.pod(preemptor("p")).schedule();
    assert!(!world.is_ending("on-a"));
    let waits = world.waits("p").map(|(place, _)| place);
    assert!(matches!(waits, Some(Place::Active | Place::Backoff)), "{waits:?}");
    world.server.faults().clear();
    world.advance(Duration::from_secs(11)).schedule_all();
    assert!(world.is_ending("on-a"));
}

/// What extenders leave of the two candidates; the node that is taken, or what is said.
fn check_extenders(extenders: Vec<FakeExtender>, expected: Result<&str, &str>) {
    let mut builder = crowded();
    for extender in extenders {
        builder = builder.extender(extender);
    }
    let mut world = builder.start();
    world.full(&["a", "b"]).pod(preemptor("p")).schedule();
    match expected {
        Ok(node) => assert_eq!(world.nominated("p"), node),
        Err(said) => {
            let head = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu. preemption: ";
            assert_eq!(world.condition("p"), format!("{head}{said}"));
        }
    }
}

#[test]
fn extenders_restrict_preemption_candidates() {
    fn only(node: &'static str) -> FakeExtender {
        extender("x").preempts(move |candidates| Ok(candidates.into_iter().filter(|(name, _)| name == node).collect()))
    }
    fn spares_everybody() -> FakeExtender {
        extender("y").preempts(|mut candidates| {
            candidates.values_mut().for_each(|victims| victims.pods.clear());
            Ok(candidates)
        })
    }
    let fails = || extender("z").preempts(|_| Answer::Err(PluginError::new("boom")));
    check_extenders(vec![only("b")], Ok("b"));
    check_extenders(vec![only("a"), only("b")], Err("no candidate node for preemption"));
    check_extenders(vec![only("b"), fails().ignorable(), only("nothing").only("other")], Ok("b"));
    check_extenders(vec![fails()], Err("boom"));
    check_extenders(vec![spares_everybody().ignorable()], Err("no candidate node for preemption"));
    let said = "expected at least one victim pod on node \"b\"";
    check_extenders(vec![only("b"), spares_everybody()], Err(said));
}
