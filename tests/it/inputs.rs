//! Inputs that the commands once read wrongly.

use serde_json::{Value, json};

use crate::command::{file, run};

/// Runs `simulate` on files with these contents. Returns the exit code, stdout and stderr.
fn simulate(name: &str, contents: &[&str], options: &[&str]) -> (Option<i32>, String, String) {
    let number = |at: usize| file(&format!("{name}-{at}.yaml"), contents[at]).display().to_string();
    let files: Vec<String> = (0..contents.len()).map(number).collect();
    let files = files.iter().map(String::as_str);
    let output = run(&["simulate"].into_iter().chain(files).chain(options.iter().copied()).collect::<Vec<_>>());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs `simulate` on one file, and returns its report.
#[track_caller]
fn report(name: &str, content: &str, options: &[&str]) -> Value {
    let (code, stdout, stderr) = simulate(name, &[content], &[options, &["-o", "json"][..]].concat());
    assert!(matches!(code, Some(0 | 2)), "{code:?}: {stderr}");
    serde_json::from_str(&stdout).expect("a report in JSON")
}

/// Checks that `simulate` refuses a file with an error that contains each of these texts.
#[track_caller]
fn refused(name: &str, content: &str, options: &[&str], expected: &[&str]) {
    let (code, _, stderr) = simulate(name, &[content], options);
    assert_eq!(code, Some(1), "{stderr}");
    for text in expected {
        assert!(stderr.contains(text), "{stderr:?} does not contain {text:?}");
    }
}

/// Returns the name and the node of each pod in a report.
fn nodes(report: &Value) -> Vec<(&str, &str)> {
    let pods = report["pods"].as_array().expect("pods");
    pods.iter()
        .map(|pod| (pod["name"].as_str().unwrap_or_default(), pod["node"].as_str().unwrap_or_default()))
        .collect()
}

const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: a, labels: {kubernetes.io/hostname: a}}, \
     status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}}\n---\n";

#[test]
fn old_groups_are_an_error_that_names_todays_group() {
    let deployment = "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: w}\nspec: {replicas: 2, \
         selector: {matchLabels: {app: w}}, template: {metadata: {labels: {app: w}}, \
         spec: {containers: [{name: c, image: i}]}}}\n";
    let expected =
        "document 2: no kind \"Deployment\" in version \"extensions/v1beta1\": did you mean Deployment in apps/v1?";
    refused("old-groups", &format!("{NODE}{deployment}"), &[], &[expected]);
}

#[test]
fn files_without_objects_are_read_beside_others() {
    let budgets = "apiVersion: v1\nkind: List\nitems: []\n";
    for (name, empty) in [("list", budgets), ("comment", "# no budgets\n"), ("nothing", "")] {
        let (code, stdout, stderr) = simulate(&format!("empty-{name}"), &[NODE, empty], &[]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("on 1 node;") || stdout.contains("on 1 node\n"), "{stdout}");
        let (code, _, stderr) = simulate(&format!("only-{name}"), &[empty, empty], &[]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(&format!("only-{name}-1.yaml: no objects")), "{stderr}");
    }
}

#[test]
fn explain_reads_files_without_objects_beside_others() {
    let (nodes, empty) =
        (file("explain-nodes.yaml", NODE), file("explain-empty.yaml", "apiVersion: v1\nkind: List\nitems: []\n"));
    let pod = file(
        "explain-pod.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}",
    );
    let files = [nodes, empty, pod].map(|path| path.display().to_string());
    let output = run(&["explain", "-f", &files[0], "-f", &files[1], "-f", &files[2], "p"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns a file with a pod on the node whose anti-affinity has a label key, and a pod of another revision.
fn revisions(metadata: &str, selector: &str, status: &str) -> String {
    format!(
        "{NODE}apiVersion: v1\nkind: Pod\nmetadata: {{name: placed, labels: {{app: a, rev: '1'}}{metadata}}}\n\
         spec:\n  nodeName: a\n  containers: [{{name: c, image: i}}]\n  affinity:\n    podAntiAffinity:\n      \
         requiredDuringSchedulingIgnoredDuringExecution:\n      - {{labelSelector: {{matchLabels: {{app: a}}{selector}}}, \
         matchLabelKeys: [rev], topologyKey: kubernetes.io/hostname}}\n{status}---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: other, labels: {{app: a, rev: '2'}}}}, \
         spec: {{containers: [{{name: c, image: i}}]}}}}\n"
    )
}

#[test]
fn label_keys_are_merged_into_pods_with_a_status() {
    let merged = ", matchExpressions: [{key: rev, operator: In, values: ['1']}]";
    let status = "status: {phase: Running}\n";
    for (name, content) in [
        ("plain", revisions("", "", "")),
        ("empty-status", revisions("", "", "status: {}\n")),
        ("status", revisions("", "", status)),
        ("exported", revisions("", merged, status)),
        ("dumped", revisions(", uid: u", merged, status)),
    ] {
        let report = report(&format!("label-keys-{name}"), &content, &[]);
        assert_eq!(nodes(&report), [("other", "a"), ("placed", "a")], "{name}");
    }
    // A server has stored this pod without the label, so its term has no expression.
    let report = report("label-keys-stored", &revisions(", uid: u", "", status), &[]);
    assert_eq!(nodes(&report), [("other", ""), ("placed", "a")]);
}

#[test]
fn long_simulations_keep_their_events() {
    let content = format!(
        "{NODE}apiVersion: v1\nkind: Pod\nmetadata: {{name: ending, uid: u1, deletionTimestamp: '2025-12-31T00:00:00Z', \
         deletionGracePeriodSeconds: 7200}}\nspec: {{nodeName: a, containers: [{{name: c, image: i}}]}}\n\
         status: {{phase: Running}}\n---\n\
         {{apiVersion: v1, kind: Pod, metadata: {{name: new}}, spec: {{containers: [{{name: c, image: i}}]}}}}\n"
    );
    let report = report("events-hour", &content, &["--events"]);
    let events: Vec<(&Value, &Value)> =
        report["events"].as_array().expect("events").iter().map(|event| (&event["reason"], &event["object"])).collect();
    assert_eq!(events, [(&json!("Scheduled"), &json!("Pod default/new"))]);
}

#[test]
fn objects_that_the_api_server_refuses_are_refused() {
    let node = |status: &str, annotations: &str| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: node{annotations}}}, status: {{declaredFeatures: {status}}}}}"
        )
    };
    let features = "[RestartAllContainersOnContainerExits, GuaranteedQoSPodCPUResize]";
    refused(
        "features",
        &node(features, ""),
        &[],
        &[
            "status.declaredFeatures[1]: Invalid value: \"GuaranteedQoSPodCPUResize\": list must be sorted alphabetically",
        ],
    );
    let annotation = ", annotations: {scheduler.alpha.kubernetes.io/preferAvoidPods: x}";
    refused("avoid", &node("[A]", annotation), &[], &["metadata.annotations.AvoidPods: Invalid value: "]);
    let class =
        "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}, value: 1, preemptionPolicy: ''}";
    refused(
        "class",
        class,
        &[],
        &["PriorityClass a: PriorityClass.scheduling.k8s.io \"a\" is invalid: preemptionPolicy: Required value"],
    );
    let service =
        "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: -1}], selector: {app: a b}}}";
    refused(
        "service",
        service,
        &[],
        &["spec.ports[0].port: Invalid value: -1: ", "spec.selector: Invalid value: \"a b\": "],
    );
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, restartPolicy: Never, \
         restartPolicyRules: [{action: Nothing, exitCodes: {operator: Bad, values: [1]}}]}]}}";
    refused(
        "rules",
        pod,
        &[],
        &[
            "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Nothing\": supported values: \
             \"Restart\", \"RestartAllContainers\"",
            "spec.containers[0].restartPolicyRules[0].exitCodes.operator: Unsupported value: \"Bad\"",
        ],
    );
    // A whole number with a point is no integer in JSON. YAML readers take it for one, as that of kubectl does.
    let number =
        r#"{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "a"}, "value": 1.0}"#;
    refused(
        "number",
        number,
        &[],
        &["cannot unmarshal number 1.0 into Go struct field PriorityClass.value of type int32"],
    );
}

#[test]
fn feature_gates_reach_the_simulated_api_server() {
    let content = format!(
        "{NODE}{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i}}], \
         tolerations: [{{key: level, operator: Gt, value: '5'}}]}}}}\n"
    );
    refused("gate-off", &content, &[], &["spec.tolerations[0].operator: Unsupported value: \"Gt\""]);
    let on = ["--feature-gates", "TaintTolerationComparisonOperators=true"];
    assert_eq!(nodes(&report("gate-on", &content, &on)), [("p", "a")]);
    // At 1.33, the API server drops resources of the whole pod, so the pod fits.
    let large = format!(
        "{NODE}{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{name: c, image: i}}], \
         resources: {{requests: {{cpu: '5'}}}}}}}}\n"
    );
    assert_eq!(nodes(&report("pod-level", &large, &[])), [("p", "")]);
    assert_eq!(nodes(&report("pod-level-old", &large, &["--emulated-version", "1.33"])), [("p", "a")]);
}
