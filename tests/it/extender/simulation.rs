//! Webhooks that a simulation asks.

use serde_json::json;

use crate::command::{file, run};
use crate::world::webhook::{Reply, webhook};

const CLUSTER: &str = "\
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, command: [run]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {containers: [{name: c, image: i}]}}
";

#[test]
fn a_simulation_asks_extenders_but_binds_by_itself() {
    let hook = webhook(|asked| match asked.path.as_str() {
        "/filter" => Reply::Json(json!({"Nodes": asked.body["Nodes"]})),
        "/prioritize" => Reply::Json(json!([{"Host": "b", "Score": 10}])),
        _ => Reply::Code(404),
    });
    let extender = json!({
        "urlPrefix": hook.url(), "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100, "bindVerb": "bind",
    });
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "extenders": [extender],
    });
    let config = file("extender-config.json", config.to_string()).display().to_string();
    let cluster = file("extender-cluster.yaml", CLUSTER).display().to_string();
    let output = run(&["simulate", "--config", &config, &cluster]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("extenders[0].bindVerb: has no effect on this command"), "{stderr}");
    let placed = |pod: &str| stdout.lines().any(|line| line.split_whitespace().eq(["default", pod, "b"]));
    assert!(placed("p") && placed("q"), "{stdout}");
    let asked = hook.take();
    let paths: Vec<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(paths, ["/filter", "/prioritize", "/filter", "/prioritize"]);
    assert_eq!(asked[0].body["Pod"]["spec"]["containers"][0]["command"], json!(["run"]));
}

#[test]
fn a_configuration_that_cannot_be_used_is_named() {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "https://host", "tlsConfig": {"caFile": "/no/such"}}],
    });
    let config = file("extender-broken.json", config.to_string()).display().to_string();
    let cluster = file("extender-broken.yaml", CLUSTER).display().to_string();
    let output = run(&["simulate", "--config", &config, &cluster]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("{config}: couldn't build extenders: open /no/such: no such file or directory");
    assert!(stderr.contains(&expected), "{stderr}");
}
