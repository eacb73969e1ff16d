//! Tests of the API calls of a preemption, and of how long the preemptor is held back.

use std::time::Duration;

use futures::FutureExt as _;

use super::super::executor::Progress;
use super::*;
use crate::config::Gate;
use crate::framework::{NominatingInfo, Nominator, WaitDecision};

/// A nominator for one node with these pods.
struct Held(Vec<Arc<PodInfo>>);

impl Nominator for Held {
    fn has_nominated_pods(&self) -> bool {
        true
    }

    fn nominated_pods_for_node(&self, _: &str) -> Vec<Arc<PodInfo>> {
        self.0.clone()
    }

    fn add_nominated_pod(&self, _: &Arc<PodInfo>, _: &NominatingInfo) {}

    fn update_nominated_pod(&self, _: &PodInfo, _: &Arc<PodInfo>) {}

    fn delete_nominated_pod_if_exists(&self, _: &PodInfo) {}
}

/// An activator that logs the pods.
struct Bring(Arc<Asked>);

impl crate::framework::Activator for Bring {
    fn activate(&self, pods: &[String]) {
        self.0.note(format!("activate {}", pods.join(" ")));
    }
}

struct World {
    asked: Arc<Asked>,
    handle: Handle,
    executor: Executor,
}

fn world(asynchronous: bool, nominated: Vec<PodFixture>) -> World {
    let asked = Arc::new(Asked::default());
    let gates = FeatureGates::default().with(Gate::SchedulerAsyncPreemption, asynchronous);
    let parts = HandleParts::new(gates, Metrics::detached(), Clock::real(), asked.clone());
    let held: Arc<dyn Nominator> = Arc::new(Held(nominated.into_iter().map(PodFixture::info).collect()));
    assert!(parts.nominator.set(held).is_ok() && parts.activator.set(Arc::new(Bring(asked.clone()))).is_ok());
    let handle = Handle::new(Arc::new(parts), "default-scheduler");
    let pods = handle.lister().expect("nothing is watched yet");
    World { executor: Executor::new("P".into(), &handle, pods), asked, handle }
}

impl World {
    fn carry_out(&self, victims: &[PodFixture]) -> Result<(), PluginError> {
        let victims: Vec<Arc<PodInfo>> = victims.iter().map(|pod| pod.clone().info()).collect();
        victims.iter().for_each(|pod| self.handle.listers().put(pod.pod().clone()));
        let candidate = Candidate { node: "n".into(), victims, pdb_violations: 0 };
        self.executor.carry_out(&candidate, &preemptor("1").info())
    }

    /// Runs the spawned tasks, none of which has to wait.
    fn run(&self) {
        let tasks = std::mem::take(&mut *self.asked.tasks.lock().expect("no test panics here"));
        tasks.into_iter().for_each(|task| task.now_or_never().expect("the task does not wait"));
    }

    fn victims_observed(&self) -> (u64, f64) {
        let histogram = self.handle.metrics().preemption_victims();
        (histogram.get_sample_count(), histogram.get_sample_sum())
    }
}

fn event(victim: &str) -> String {
    format!("Preempted/Preempting {victim}: Preempted by pod p on node n")
}

#[test]
fn nominations_are_cleared_before_the_last_eviction() {
    let nominated = vec![
        pod("low").priority(1).nominated("n"),
        pod("unwritten").priority(1),
        pod("equal").priority(10).nominated("n"),
    ];
    let world = world(true, nominated);
    world.carry_out(&[pod("a"), pod("gone-already").terminating(), pod("b"), pod("c")]).expect("it is only begun");
    assert!(world.asked.take().is_empty() && world.executor.is_running("p") && !world.executor.is_running("q"));
    world.run();
    let expected = [
        "clear low".to_owned(),
        "evict a for p".to_owned(),
        event("a"),
        "evict b for p".to_owned(),
        event("b"),
        "evict c for p".to_owned(),
        event("c"),
    ];
    assert_eq!(world.asked.take(), expected);
    assert!(!world.executor.is_running("p"));
    assert_eq!(world.victims_observed(), (1, 4.0));
    let text = world.handle.metrics().gather_text();
    assert!(text.contains("scheduler_preemption_goroutines_execution_total{result=\"success\"} 1"), "{text}");
    assert!(text.contains("scheduler_preemption_goroutines_duration_seconds_sum{result=\"success\"} 0\n"), "{text}");
}

#[test]
fn failed_eviction_spares_the_last_victim() {
    let world = world(true, Vec::new());
    world.asked.failing.lock().expect("no test panics here").push("a");
    world.carry_out(&[pod("a"), pod("b")]).expect("it is only begun");
    world.run();
    assert_eq!(world.asked.take(), ["evict a for p", "activate default/p"]);
    assert!(!world.executor.is_running("p"));
}

#[test]
fn failed_nomination_clear_still_evicts_victims() {
    let world = world(true, vec![pod("low").nominated("n")]);
    world.asked.failing.lock().expect("no test panics here").push("low");
    world.carry_out(&[pod("a")]).expect("it is only begun");
    world.run();
    assert_eq!(world.asked.take(), ["clear low", "evict a for p", &event("a"), "activate default/p"]);
}

#[test]
fn preemptor_is_gated_until_the_last_victim_terminates() {
    let world = world(true, Vec::new());
    world.carry_out(&[pod("a")]).expect("it is only begun");
    world.executor.lock().insert("p".into(), Progress::Last("default/a".into()));
    assert!(world.executor.is_running("p"));
    world.handle.listers().put(pod("a").terminating().build());
    assert!(!world.executor.is_running("p"));
    world.handle.listers().store::<Pod>().expect("the executor reads pods").remove("default/a");
    assert!(!world.executor.is_running("p"));
}

#[test]
fn preemptor_is_gated_during_the_last_eviction() {
    let world = world(true, Vec::new());
    world.asked.silent.store(true, Ordering::Relaxed);
    world.carry_out(&[pod("a")]).expect("it is only begun");
    let mut task = world.asked.tasks.lock().expect("no test panics here").remove(0);
    assert_eq!((&mut task).now_or_never(), None);
    assert_eq!(world.asked.take(), ["evict a for p"]);
    assert!(world.executor.is_running("p"));
    world.handle.listers().put(pod("a").terminating().build());
    assert!(!world.executor.is_running("p"));
}

#[test]
fn sixteen_victims_are_evicted_in_parallel() {
    let world = world(true, Vec::new());
    world.asked.silent.store(true, Ordering::Relaxed);
    let victims: Vec<PodFixture> = (0..20).map(|at| pod(&format!("v{at}"))).collect();
    world.carry_out(&victims).expect("it is only begun");
    let mut task = world.asked.tasks.lock().expect("no test panics here").remove(0);
    assert_eq!((&mut task).now_or_never(), None);
    assert_eq!(world.asked.take().len(), 16);
}

#[test]
fn terminating_victims_are_not_evicted_again() {
    let world = world(true, vec![pod("low").nominated("n")]);
    world.carry_out(&[pod("a").terminating()]).expect("nothing to do");
    world.run();
    assert!(world.asked.take().is_empty() && !world.executor.is_running("p"));
    assert_eq!(world.victims_observed(), (0, 0.0));
}

#[test]
fn deleted_victims_are_no_error_and_no_event() {
    let world = world(true, Vec::new());
    world.asked.gone.lock().expect("no test panics here").push("a");
    world.carry_out(&[pod("a"), pod("b")]).expect("it is only begun");
    world.run();
    assert_eq!(world.asked.take(), ["evict a for p", "evict b for p", &event("b")]);
}

#[test]
fn without_async_preemption_victims_are_evicted_first() {
    let world = world(false, vec![pod("low").nominated("n")]);
    world.carry_out(&[pod("a").terminating(), pod("b")]).expect("it works");
    assert_eq!(world.asked.take(), ["evict b for p", &event("b"), "clear low"]);
    assert_eq!(world.victims_observed(), (1, 2.0));
    world.asked.failing.lock().expect("no test panics here").extend(["c", "low"]);
    assert_eq!(world.carry_out(&[pod("c")]), Err(PluginError::new("no")));
    assert_eq!(world.asked.take(), ["evict c for p"]);
    world.carry_out(&[pod("a").terminating()]).expect("nominations are not critical");
    assert_eq!(world.asked.take(), ["clear low"]);
    assert!(!world.executor.is_running("p"));
}

#[test]
fn victims_in_permit_or_pre_bind_are_cancelled_in_memory() {
    let world = world(true, Vec::new());
    let timeouts = vec![(Arc::from("W"), Duration::from_secs(9))];
    let waiting = world.handle.waiting_pods().add(&pod("a").info(), timeouts, Mono::ZERO);
    let on_its_way = world.handle.pods_in_pre_bind().add("b");
    world.handle.pods_in_pre_bind().add("c").mark_prebound().expect("not cancelled");
    world.carry_out(&["a", "b", "c"].map(pod)).expect("it is only begun");
    world.run();
    let in_memory = |victim| format!("{} (in kube-scheduler memory).", event(victim));
    assert_eq!(world.asked.take(), [in_memory("a"), in_memory("b"), "evict c for p".to_owned(), event("c")]);
    let decision = waiting.wait(world.handle.clock()).now_or_never();
    let error = PluginError::new("preempted");
    assert_eq!(decision, Some(WaitDecision::Preempted { plugin: "P".into(), error }));
    assert_eq!(on_its_way.mark_prebound(), Err(PluginError::new("preempted by P")));
}
