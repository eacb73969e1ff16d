//! Tests of evaluations in small clusters, and of the search with and without an observer.

use super::*;
use crate::clock::Clock;
use crate::config::{Config, FeatureGates};
use crate::model::NodeInfo;
use crate::plugins;
use crate::testing::{NodeFixture, PodFixture, handle_parts, node, pod};

fn framework(config: &str) -> Framework {
    let gates = FeatureGates::default();
    let config = Config::parse(config.as_bytes(), &gates, plugins::registry().catalog()).expect("a configuration");
    let parts = handle_parts(gates);
    Framework::new(&plugins::registry(), &config.profiles[0], parts).expect("a profile")
}

const TAINTS_AND_PORTS: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: NodeAffinity}, {name: TaintToleration, weight: 3}, {name: NodePorts}, {name: DefaultBinder}]
";

fn snapshot(nodes: Vec<NodeFixture>, on_first: PodFixture) -> Snapshot {
    let mut nodes: Vec<NodeInfo> = nodes.into_iter().map(NodeFixture::info).collect();
    nodes[0].add_pod(on_first.info());
    Snapshot::from_nodes(nodes.into_iter().map(Arc::new).collect())
}

fn evaluated(pod: PodFixture, snapshot: &Snapshot) -> Evaluation {
    evaluate(&framework(TAINTS_AND_PORTS), snapshot, &pod.info(), Clock::real().now())
}

/// Checks the host, and for each node its total score or the plugin that rejected it.
fn check(pod: PodFixture, snapshot: &Snapshot, expected: &[&str]) {
    let evaluation = evaluated(pod, snapshot);
    let nodes = evaluation.nodes.iter().map(|node| match (node.total, node.absent) {
        (Some(total), _) => total.to_string(),
        (None, true) => "absent".to_owned(),
        (None, false) => node.status.plugin.to_string(),
    });
    assert_eq!(std::iter::once(evaluation.host.clone()).chain(nodes).collect::<Vec<_>>(), expected, "{evaluation:?}");
}

#[test]
fn every_node_gets_verdicts_and_scores() {
    let nodes = vec![
        node("a"),
        node("b").taint("k", "v", "NoSchedule"),
        node("c").taint("k", "v", "PreferNoSchedule"),
        node("d"),
    ];
    let snapshot = snapshot(nodes, pod("p").host_port(80));
    check(pod("q"), &snapshot, &["a", "300", "TaintToleration", "0", "300"]);
    check(pod("q").host_port(80), &snapshot, &["d", "NodePorts", "TaintToleration", "0", "300"]);
    check(pod("q").nominated("c"), &snapshot, &["c", "300", "TaintToleration", "0", "300"]);
    let only = |name: &str| {
        let field = serde_json::json!({"key": "metadata.name", "operator": "In", "values": [name]});
        let terms = serde_json::json!([{"matchFields": [field]}]);
        pod("q")
            .set("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms", terms)
    };
    check(only("c"), &snapshot, &["c", "absent", "absent", "0", "absent"]);
    let evaluation = evaluated(only("b").nominated("b"), &snapshot);
    assert_eq!(
        evaluation.message,
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), \
         3 node(s) didn't satisfy plugin(s) [NodeAffinity TaintToleration]."
    );
    assert_eq!(evaluation.rejectors, ["NodeAffinity", "TaintToleration"].map(Arc::from));
}

#[test]
fn filters_after_a_rejection_still_run() {
    let snapshot = snapshot(vec![node("a").taint("k", "v", "NoExecute")], pod("p").host_port(80));
    let framework = framework(TAINTS_AND_PORTS);
    let asked = evaluate_filters(
        &framework,
        &snapshot,
        &pod("q").host_port(80).info(),
        NodeOrdinal::new(0),
        Clock::real().now(),
    );
    let codes: Vec<(&str, &str)> = asked.iter().map(|status| (&*status.plugin, status.code)).collect();
    let expected = [
        ("NodeAffinity", "Success"),
        ("TaintToleration", "UnschedulableAndUnresolvable"),
        ("NodePorts", "Unschedulable"),
    ];
    assert_eq!(codes, expected);
}

#[test]
fn without_nodes_nothing_is_evaluated() {
    let evaluation = evaluated(pod("q").terminating(), &Snapshot::default());
    assert_eq!(evaluation.message, "no nodes available to schedule pods");
    assert_eq!(evaluation.skipped, "skip schedule deleting pod: default/q");
}

/// Returns the outcome of a search without an observer: the host and the counts, or the message of the failure.
fn decision(framework: &Framework, snapshot: &Snapshot, pod: &Arc<PodInfo>) -> String {
    let mut state = new_state(framework);
    let mut cx = CycleContext { pod, snapshot, state: &mut state, now: Clock::real().now() };
    match alone(framework, |mut search| search.choose(&mut cx, |_| None, &mut ())) {
        Ok(choice) => {
            let feasible = choice.feasible.nodes();
            format!("{} {}/{}", feasible[choice.host].name(), feasible.len(), choice.evaluated_nodes)
        }
        Err(failure) => failure.message(),
    }
}

/// Returns the outcome of an evaluation in the form of [`decision`].
fn evaluated_decision(evaluation: &Evaluation) -> String {
    let Evaluation { host, feasible_nodes, evaluated_nodes, message, error, .. } = evaluation;
    if host.is_empty() { format!("{message}{error}") } else { format!("{host} {feasible_nodes}/{evaluated_nodes}") }
}

/// Returns a random cluster of up to 300 nodes, and a pod that some of them cannot take.
fn random_case(rng: &mut Rng) -> (Snapshot, Arc<PodInfo>) {
    let nodes = (0..rng.index(300)).map(|number| {
        let mut node = node(&format!("n{number}")).zone(["a", "b", "c"][rng.index(3)]);
        node = node.allocatable("cpu", ["1", "2", "4"][rng.index(3)]);
        if rng.chance(1, 4) {
            node = node.taint("k", "v", ["NoSchedule", "PreferNoSchedule"][rng.index(2)]);
        }
        let mut info = node.info();
        for other in 0..rng.index(3) {
            let other = pod(&format!("p{number}-{other}")).label("app", ["x", "y"][rng.index(2)]).cpu("500m");
            let other = if rng.chance(1, 3) { other.host_port(80) } else { other };
            info.add_pod(other.info());
        }
        Arc::new(info)
    });
    let snapshot = Snapshot::from_nodes(nodes.collect());
    let mut pod = pod("q").label("app", "x").cpu(["100m", "1500m", "8"][rng.index(3)]);
    if rng.chance(1, 3) {
        pod = pod.host_port(80);
    }
    if rng.chance(1, 4) {
        pod = pod.nominated(&format!("n{}", rng.index(300)));
    }
    if rng.chance(1, 4) {
        let names: Vec<String> = (0..=rng.index(4)).map(|_| format!("n{}", rng.index(300))).collect();
        let terms: Vec<serde_json::Value> = names
            .iter()
            .map(|name| {
                serde_json::json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]})
            })
            .collect();
        let required = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
        pod = pod.set(required, terms.into());
    }
    (snapshot, pod.info())
}

const NO_SCORES: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: '*'}]
      enabled: [{name: PrioritySort}, {name: DefaultBinder}]
    filter:
      enabled: [{name: TaintToleration}, {name: NodeResourcesFit}]
    preFilter:
      enabled: [{name: NodeResourcesFit}]
";

#[test]
fn evaluation_agrees_with_the_scheduling_decision() {
    let default = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let profiles = [default, TAINTS_AND_PORTS, NO_SCORES].map(|config| Box::new(framework(config)));
    for seed in 0..150 {
        let (snapshot, pod) = random_case(&mut Rng::from_seed(seed));
        for framework in &profiles {
            let evaluation = evaluate(framework, &snapshot, &pod, Clock::real().now());
            assert_eq!(evaluated_decision(&evaluation), decision(framework, &snapshot, &pod), "seed {seed}");
            let rejected = evaluation.pre_filter.status.code != "Success";
            assert_eq!(evaluation.nodes.len(), if rejected { 0 } else { snapshot.len() }, "seed {seed}");
            let passed: Vec<&str> =
                evaluation.nodes.iter().filter(|node| node.status.code == "Success").map(|node| &*node.node).collect();
            let feasible = feasible_nodes(framework, &snapshot, &pod, Clock::real().now());
            let feasible: Vec<&str> = feasible.into_iter().map(|node| snapshot.node(node).name()).collect();
            assert_eq!(passed, feasible, "seed {seed}");
        }
    }
}
