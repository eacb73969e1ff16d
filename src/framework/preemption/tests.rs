//! Tests of preemption, on nodes with CPU as the only resource.

mod executing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::clock::{Clock, Mono, Now};
use crate::config::FeatureGates;
use crate::framework::{
    BoxFuture, CycleState, Effects, FilterRunner, HandleParts, NodeRef, NodeRejection, Parallelizer, PodEvent, Verdict,
};
use crate::metrics::Metrics;
use crate::testing::{NodeFixture, PodFixture, node, pod};

/// A filter by free CPU. It fails on nodes with a pod that has the label `broken`.
struct Cpu;

impl FilterRunner for Cpu {
    fn run_filters(&self, cx: &CycleContext<'_>, node: NodeRef<'_>) -> Result<Verdict, PluginError> {
        if node.pods().iter().any(|pod| pod.pod().labels().contains_key("broken")) {
            return Err(PluginError::new("broken"));
        }
        let wanted = node.requested().milli_cpu + cx.pod.spec_requests().milli_cpu;
        let fits = wanted <= node.allocatable().milli_cpu;
        Ok(if fits { Verdict::Pass } else { Verdict::unschedulable("Insufficient cpu") })
    }

    fn run_filters_with_nominated_pods(
        &self,
        cx: &CycleContext<'_>,
        node: NodeRef<'_>,
    ) -> Result<Verdict, PluginError> {
        self.run_filters(cx, node)
    }

    fn add_pod(&self, _: &mut CycleContext<'_>, _: &PodInfo, _: NodeRef<'_>) -> Result<(), PluginError> {
        Ok(())
    }

    fn remove_pod(&self, _: &mut CycleContext<'_>, removed: &PodInfo, _: NodeRef<'_>) -> Result<(), PluginError> {
        if removed.pod().labels().contains_key("sticky") { Err(PluginError::new("sticky")) } else { Ok(()) }
    }
}

/// Log of the API calls, and tasks that have not run yet.
#[derive(Default)]
struct Asked {
    log: Mutex<Vec<String>>,
    tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
    /// Keys of pods whose writes fail.
    failing: Mutex<Vec<&'static str>>,
    gone: Mutex<Vec<&'static str>>,
    /// Whether API calls never return.
    silent: AtomicBool,
}

impl Asked {
    fn note(&self, what: String) {
        self.log.lock().expect("no test panics here").push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().expect("no test panics here"))
    }

    fn names(list: &Mutex<Vec<&'static str>>, pod: &Pod) -> bool {
        list.lock().expect("no test panics here").contains(&pod.name())
    }

    fn answer<T: Send + 'static>(&self, pod: &Pod, value: T) -> BoxFuture<'static, Result<T, PluginError>> {
        if self.silent.load(Ordering::Relaxed) {
            return Box::pin(std::future::pending());
        }
        let answer = if Self::names(&self.failing, pod) { Err(PluginError::new("no")) } else { Ok(value) };
        Box::pin(std::future::ready(answer))
    }
}

impl Effects for Asked {
    fn bind(&self, _: &Arc<PodInfo>, _: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is bound here"))))
    }

    fn record(&self, _: &str, event: PodEvent<'_>) {
        self.note(format!("{}/{} {}: {}", event.reason, event.action, event.regarding.name(), event.note));
    }

    fn evict(&self, victim: &Arc<Pod>, preemptor: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>> {
        self.note(format!("evict {} for {}", victim.name(), preemptor.name()));
        self.answer(victim, !Self::names(&self.gone, victim))
    }

    fn clear_nomination(&self, pod: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>> {
        self.note(format!("clear {}", pod.name()));
        self.answer(pod, ())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.tasks.lock().expect("no test panics here").push(task);
    }

    fn wait(&self, task: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError> {
        futures::executor::block_on(task)
    }
}

/// A cluster in which a pod fits on no node.
struct Failed {
    asked: Arc<Asked>,
    handle: Handle,
    snapshot: Snapshot,
    diagnosis: Diagnosis,
    args: MinCandidates,
}

/// Returns a cluster with these nodes and with the pods that name them. All nodes rejected the pod as unschedulable.
fn failed(nodes: Vec<NodeFixture>, pods: &[PodFixture]) -> Failed {
    let asked = Arc::new(Asked::default());
    let gates = FeatureGates::default();
    let parts = HandleParts::new(gates, Metrics::detached(), Clock::real(), asked.clone());
    let handle =
        Handle::new(Arc::new(HandleParts { parallelizer: Arc::new(Parallelizer::new(4)), ..parts }), "default");
    let infos: Vec<Arc<PodInfo>> = pods.iter().map(|pod| pod.clone().info()).collect();
    let mut failed = Failed {
        asked,
        handle,
        snapshot: Snapshot::default(),
        diagnosis: Diagnosis::default(),
        args: MinCandidates { percentage: 10, absolute: 100 },
    };
    let nodes = nodes.into_iter().map(|node| {
        let mut info = node.info();
        let name = info.name_arc().clone();
        infos.iter().filter(|pod| pod.pod().node_name() == Some(&*name)).for_each(|pod| info.add_pod(pod.clone()));
        Arc::new(info)
    });
    failed.snapshot.set_nodes(nodes.collect());
    for at in 0..failed.snapshot.len() {
        failed.reject(at, Rejection::unschedulable("Insufficient cpu"));
    }
    infos.iter().for_each(|pod| failed.handle.listers().put(pod.pod().clone()));
    failed
}

impl Failed {
    fn reject(&mut self, at: usize, rejection: Rejection) {
        let node = NodeOrdinal::new(at);
        self.diagnosis.nodes.retain(|rejected| rejected.node != node);
        self.diagnosis.record(NodeRejection { node, plugin: "F".into(), rejection });
    }

    fn budget(self, name: &str, app: &str, allowed: i32) -> Self {
        let budget = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0},
        });
        let budget: PodDisruptionBudget = serde_json::from_value(budget).expect("a budget");
        self.handle.listers().put(Arc::new(budget));
        self
    }

    fn with<T>(
        &self,
        preemptor: &PodFixture,
        random: u64,
        ask: impl FnOnce(&Evaluator, &mut CycleContext<'_>, &PostFilterContext<'_>) -> T,
    ) -> T {
        let evaluator = Evaluator::new("P", &self.handle, self.args).expect("nothing is watched yet");
        let known = preemptor.clone().build();
        self.handle.listers().put(known.clone());
        let pod = self.handle.pod_info(known);
        let mut state = CycleState::default();
        let now = Now { mono: Mono::ZERO, wall: "2026-01-01T12:00:00Z".parse().expect("a time") };
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now };
        let context = PostFilterContext { diagnosis: &self.diagnosis, filters: &Cpu, extenders: &(), random };
        ask(&evaluator, &mut cx, &context)
    }

    /// Returns each candidate as `node: victims (violations)`.
    fn candidates(&self, preemptor: &PodFixture, random: u64) -> Result<Vec<String>, PluginError> {
        let found = self.with(preemptor, random, |evaluator, cx, failed| evaluator.candidates(cx, failed))?;
        let line = |candidate: &Candidate| {
            let names: Vec<&str> = candidate.victims.iter().map(|pod| pod.name()).collect();
            format!("{}: {} ({})", candidate.node, names.join(" "), candidate.pdb_violations)
        };
        Ok(found.candidates.iter().map(line).collect())
    }

    fn preempt(&self, preemptor: &PodFixture) -> Result<PostFilterOutcome, PluginError> {
        self.with(preemptor, 0, Evaluator::preempt)
    }

    #[track_caller]
    fn check_candidates(&self, preemptor: &PodFixture, expected: &[&str]) {
        assert_eq!(
            self.candidates(preemptor, 0).as_deref(),
            Ok(&*expected.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
        );
    }

    #[track_caller]
    fn check_rejected(&self, preemptor: &PodFixture, text: &str, nominated: Option<&str>) {
        let rejection = Rejection::unschedulable(text.to_owned());
        let expected = PostFilterOutcome::Reject { rejection, nominated: nominated.map(str::to_owned) };
        assert_eq!(self.preempt(preemptor), Ok(expected));
        assert!(self.asked.take().is_empty());
    }
}

fn cores(name: &str, cores: &str) -> NodeFixture {
    node(name).allocatable("cpu", cores)
}

/// Returns a pod on the node that requests one core and started at this hour.
fn on(node: &str, name: &str, priority: i32, hour: u32) -> PodFixture {
    let start = json!(format!("2026-01-01T{hour:02}:00:00Z"));
    pod(name).on(node).cpu("1").priority(priority).set("status.startTime", start)
}

fn preemptor(cpu: &str) -> PodFixture {
    pod("p").priority(10).cpu(cpu)
}

#[test]
fn fewest_and_least_important_pods_are_victims() {
    let pods = [on("n", "a", 1, 1), on("n", "b", 5, 1), on("n", "c", 1, 2), on("n", "high", 10, 1)];
    let failed = failed(vec![cores("n", "4")], &pods);
    failed.check_candidates(&preemptor("1"), &["n: c (0)"]);
    failed.check_candidates(&preemptor("2"), &["n: a c (0)"]);
    failed.check_candidates(&preemptor("3"), &["n: b a c (0)"]);
    failed.check_candidates(&preemptor("4"), &[]);
}

#[test]
fn pods_under_budgets_are_reprieved_first() {
    let web = |name, priority, hour| on("n", name, priority, hour).label("app", "web");
    let pods = [web("a", 5, 1), web("b", 5, 2), on("n", "c", 9, 1)];
    let failed = failed(vec![cores("n", "3")], &pods).budget("x", "web", 1);
    failed.check_candidates(&preemptor("1"), &["n: a (0)"]);
    failed.check_candidates(&preemptor("2"), &["n: c a (0)"]);
    failed.check_candidates(&preemptor("3"), &["n: c a b (1)"]);
}

#[test]
fn unresolvable_nodes_are_no_candidates() {
    let pods = [on("a", "va", 1, 1), on("b", "vb", 1, 1), on("c", "vc", 1, 1)];
    let mut failed = failed(["a", "b", "c"].map(|name| cores(name, "1")).into(), &pods);
    failed.reject(1, Rejection::unresolvable("untolerated"));
    failed.check_candidates(&preemptor("1"), &["a: va (0)", "c: vc (0)"]);
    failed.diagnosis.nodes.remove(0);
    failed.check_candidates(&preemptor("1"), &["c: vc (0)"]);
    failed.diagnosis.absent = Some(Rejection::unschedulable("all"));
    failed.check_candidates(&preemptor("1"), &["a: va (0)", "c: vc (0)"]);
}

#[test]
fn candidate_search_starts_at_random_and_stops_at_enough() {
    let names = ["a", "b", "c", "d"];
    let pods: Vec<PodFixture> = names.iter().map(|name| on(name, &format!("v{name}"), 1, 1)).collect();
    let mut failed = failed(names.map(|name| cores(name, "1")).into(), &pods);
    failed.args = MinCandidates { percentage: 0, absolute: 2 };
    failed.check_candidates(&preemptor("1"), &["a: va (0)", "b: vb (0)"]);
    assert_eq!(failed.candidates(&preemptor("1"), u64::MAX), Ok(vec!["d: vd (0)".into(), "a: va (0)".into()]));
    failed.args = MinCandidates { percentage: 75, absolute: 0 };
    assert_eq!(failed.candidates(&preemptor("1"), 0).map(|found| found.len()), Ok(3));
    // If 0 candidates are wanted, there are none, and all nodes have the same message.
    failed.args = MinCandidates { percentage: 1, absolute: 0 };
    let text = "0/4 nodes are available: 4 Preemption is not helpful for scheduling.";
    failed.check_rejected(&preemptor("1"), text, Some(""));
}

#[test]
fn candidate_search_tries_each_node_once_and_stops_at_enough() {
    let nodes = || ["a", "b", "c", "d"].map(|name| cores(name, "1")).into();
    let wanted = |number| MinCandidates { percentage: 0, absolute: number };
    // b and c are not candidates, so fewer candidates exist than are wanted.
    let mut few = failed(nodes(), &[on("a", "va", 1, 1), on("d", "vd", 1, 1)]);
    few.args = wanted(3);
    few.check_candidates(&preemptor("1"), &["a: va (0)", "d: vd (0)"]);
    let web = on("c", "vc", 1, 1).label("app", "web");
    let mut enough = failed(nodes(), &[on("a", "va", 1, 1), on("b", "vb", 1, 1), web]).budget("x", "web", 0);
    enough.args = wanted(2);
    enough.check_candidates(&preemptor("1"), &["a: va (0)", "b: vb (0)"]);
}

#[test]
fn untried_nodes_are_reported_as_not_helpful() {
    let found = failed(vec![cores("a", "1")], &[])
        .with(&preemptor("1"), 0, |evaluator, cx, context| evaluator.candidates(cx, context).expect("nothing fails"));
    let absent = Rejection::unresolvable("Preemption is not helpful for scheduling");
    assert_eq!(found.rejected.absent, Some(absent));
}

/// An extender that rejects all candidates.
struct Nobody;

impl CandidateReview for Nobody {
    fn review(&self, _: &PodInfo, _: Vec<Candidate>, _: &Snapshot) -> Result<Vec<Candidate>, PluginError> {
        Ok(Vec::new())
    }
}

#[test]
fn candidates_rejected_by_extenders_keep_the_nomination() {
    let failed = failed(vec![cores("a", "1")], &[on("a", "v", 1, 1)]);
    let outcome = failed.with(&preemptor("1"), 0, |evaluator, cx, context| {
        evaluator.preempt(cx, &PostFilterContext { extenders: &Nobody, ..*context })
    });
    let rejection = Rejection::unschedulable("no candidate node for preemption");
    assert_eq!(outcome, Ok(PostFilterOutcome::Reject { rejection, nominated: None }));
}

#[test]
fn search_goes_on_past_budget_violations() {
    let names: Vec<String> = (0..40).map(|at| format!("n{at:02}")).collect();
    let pods: Vec<PodFixture> = names.iter().map(|name| on(name, &format!("v{name}"), 1, 1)).collect();
    let pods: Vec<PodFixture> =
        pods.into_iter().enumerate().map(|(at, pod)| if at < 30 { pod.label("app", "web") } else { pod }).collect();
    let nodes = names.iter().map(|name| cores(name, "1")).collect();
    let mut failed = failed(nodes, &pods).budget("x", "web", 0);
    failed.args = MinCandidates { percentage: 0, absolute: 2 };
    failed.check_candidates(&preemptor("1"), &["n30: vn30 (0)", "n00: vn00 (1)", "n01: vn01 (1)"]);
}

#[test]
fn error_ends_the_attempt_only_without_candidates() {
    let broken = |node: &str| [on(node, "x", 10, 1).label("broken", ""), on(node, "y", 1, 1)];
    let check = |pods: &[PodFixture], expected: Result<usize, PluginError>| {
        let failed = failed(vec![cores("a", "1"), cores("b", "1")], pods);
        assert_eq!(failed.candidates(&preemptor("1"), 0).map(|found| found.len()), expected);
    };
    check(&broken("a"), Err(PluginError::new("broken")));
    let [x, y] = broken("a");
    check(&[x, y, on("b", "z", 1, 1)], Ok(1));
    check(
        &[on("a", "s", 1, 1).label("sticky", ""), on("b", "s", 1, 1).label("sticky", "")],
        Err(PluginError::new("sticky")),
    );
    // A filter that fails while a pod is put back counts as a rejection, so that pod stays a victim.
    check(&[on("a", "v", 1, 1).label("broken", "")], Ok(1));
    let roomy = failed(vec![cores("a", "9")], &[on("a", "v", 1, 1)]);
    let error = PluginError::new("expected at least one victim pod on node \"a\"");
    assert_eq!(roomy.candidates(&preemptor("1"), 0), Err(error));
}

#[test]
fn without_candidates_the_message_counts_every_node() {
    let mut failed = failed(["a", "b", "c"].map(|name| cores(name, "1")).into(), &[on("b", "v", 1, 1)]);
    failed.reject(2, Rejection::unresolvable("untolerated"));
    let text = "0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, 1 Preemption is \
                not helpful for scheduling.";
    failed.check_rejected(&preemptor("2"), text, Some(""));
}

#[test]
fn ineligible_pods_do_not_preempt() {
    let going = on("a", "v", 1, 1).terminating().set(
        "status.conditions",
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]),
    );
    let mut failed = failed(vec![cores("a", "1"), cores("b", "1")], &[going, on("b", "w", 1, 1)]);
    let never = preemptor("1").set("spec.preemptionPolicy", "Never".into());
    failed.check_rejected(&never, "not eligible due to preemptionPolicy=Never.", None);
    let waits = preemptor("1").nominated("a");
    failed.check_rejected(&waits, "not eligible due to a terminating pod on the nominated node.", None);
    // Preemption does not wait for pods that are more important, or that terminate for another reason. It does not wait either
    // if the nominated node became unresolvable.
    let goes_on = |failed: &Failed, pod: PodFixture| {
        assert!(matches!(failed.preempt(&pod), Ok(PostFilterOutcome::Success { .. })));
    };
    goes_on(&failed, preemptor("1").nominated("b"));
    goes_on(&failed, preemptor("1").nominated("ghost"));
    let unmarked = self::failed(vec![cores("a", "1")], &[on("a", "v", 1, 1).terminating()]);
    goes_on(&unmarked, preemptor("1").nominated("a"));
    failed.reject(0, Rejection::unresolvable("untolerated"));
    goes_on(&failed, preemptor("1").nominated("a"));
}

#[test]
fn preemption_uses_the_pod_from_the_informer() {
    let failed = failed(vec![cores("a", "1")], &[on("a", "v", 10, 1)]);
    let text = "0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    failed.check_rejected(&preemptor("1"), text, Some(""));
    let outcome = failed.with(&preemptor("1"), 0, |evaluator, cx, context| {
        failed.handle.listers().put(preemptor("1").priority(11).build());
        evaluator.preempt(cx, context)
    });
    assert_eq!(outcome, Ok(PostFilterOutcome::Success { nominated: Some("a".into()) }));
    assert_eq!(failed.asked.tasks.lock().expect("no test panics here").len(), 1);
    let outcome = failed.with(&preemptor("1"), 0, |evaluator, cx, context| {
        failed.handle.listers().store::<Pod>().expect("the evaluator asked for pods").remove("default/p");
        evaluator.preempt(cx, context)
    });
    assert_eq!(outcome, Err(PluginError::new("pod \"p\" not found")));
}
