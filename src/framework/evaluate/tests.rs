//! What an evaluation says of small clusters.

use super::*;
use crate::clock::Clock;
use crate::config::{Config, FeatureGates};
use crate::plugins;
use crate::testing::{NodeFixture, PodFixture, handle_parts, node, pod};

fn framework(config: &str) -> Framework {
    let gates = FeatureGates::default();
    let config = Config::parse(config.as_bytes(), &gates).expect("a configuration");
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

/// `host`, then each node as its plugin or its total.
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
fn every_node_has_its_verdict_and_its_score() {
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
fn filters_behind_the_first_that_rejects_are_asked_too() {
    let snapshot = snapshot(vec![node("a").taint("k", "v", "NoExecute")], pod("p").host_port(80));
    let framework = framework(TAINTS_AND_PORTS);
    let asked = evaluate_filters(
        &framework,
        &snapshot,
        &pod("q").host_port(80).info(),
        &snapshot.nodes()[0],
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
fn without_nodes_there_is_nothing_to_look_at() {
    let evaluation = evaluated(pod("q").terminating(), &Snapshot::default());
    assert_eq!(evaluation.message, "no nodes available to schedule pods");
    assert_eq!(evaluation.skipped, "skip schedule deleting pod: default/q");
}
