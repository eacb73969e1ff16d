//! `explain`, as its user sees it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube_scheduler::apiserver::{ApiServer, Options};
use kube_scheduler::clock::Clock;
use kube_scheduler::testing::{node, pod};
use serde_json::Value;

use crate::command::{file, run};

const NODES: &str = "
apiVersion: v1
kind: List
items:
- kind: Node
  apiVersion: v1
  metadata: {name: a, labels: {kubernetes.io/hostname: a, disk: hdd}}
  spec: {taints: [{key: team, value: x, effect: NoSchedule}]}
  status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
- kind: Node
  apiVersion: v1
  metadata: {name: b, labels: {kubernetes.io/hostname: b, disk: hdd}}
  spec: {unschedulable: true}
  status: {allocatable: {cpu: '4', memory: 8Gi, pods: '10'}}
- kind: Node
  apiVersion: v1
  metadata: {name: c, labels: {kubernetes.io/hostname: c, disk: ssd}}
  status: {allocatable: {cpu: '2', memory: 8Gi, pods: '10'}}
- kind: Pod
  apiVersion: v1
  metadata: {name: there, namespace: default}
  spec: {nodeName: c, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
";

/// Exit code, stdout and stderr for a pod whose container and specification have this in addition.
fn explain(resources: &str, spec: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    static FILES: AtomicUsize = AtomicUsize::new(0);
    let name = format!("explain-{}.yaml", FILES.fetch_add(1, Ordering::Relaxed));
    let pod = format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: [{{name: c, image: i{resources}}}]{spec}}}\n"
    );
    let path = file(&name, format!("{NODES}{pod}")).display().to_string();
    let output = run(&[&["explain", "-f", &path], arguments].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_pod_that_fits_is_ranked() {
    let (code, page, stderr) = explain("", "", &["p"]);
    assert_eq!(
        page,
        "Pod default/p: 1 of 3 nodes are feasible, and default-scheduler selects c

COUNT  REJECTED BY        REASON                            NODES
1      NodeUnschedulable  node(s) were unschedulable        b
1      TaintToleration    node(s) had untolerated taint(s)  a

NODE  TOTAL  DIFFERENCE TO PREVIOUS
c     370
"
    );
    assert_eq!(code, Some(0));
    assert!(stderr.contains("loaded in ") && stderr.contains(" s, explained in "), "{stderr}");
}

#[test]
fn pods_of_other_schedulers_are_counted() {
    let (code, page, _) = explain("", ", schedulerName: second", &[]);
    let expected = "No pod is pending for the profiles of this configuration.\n\n1 pod is pending for schedulerName \"second\", \
                    which is no profile of this configuration. Use --config to pass a configuration that has it.\n";
    assert_eq!((code, &*page), (Some(0), expected));
    let (code, _, stderr) = explain("", ", schedulerName: second", &["p"]);
    let expected =
        "pod default/p: no profile has the schedulerName \"second\"; pass a configuration that has it with --config";
    assert!(code == Some(1) && stderr.contains(expected), "{stderr}");
}

/// The changes that are offered to a pod that fits nowhere.
fn check(resources: &str, spec: &str, expected: &[&str]) {
    let (code, page, _) = explain(resources, spec, &["default/p"]);
    assert_eq!(code, Some(0));
    assert!(page.starts_with("Pod default/p: unschedulable\n0/3 nodes are available: "), "{page}");
    let offered = page.split("Any one of these changes would make it schedulable:\n").nth(1).unwrap_or_default();
    assert_eq!(offered.lines().map(str::trim).collect::<Vec<_>>(), expected, "{page}");
    let none = page.ends_with("\nNo single change that was tried would make it schedulable.\n");
    assert_eq!(none, expected.is_empty(), "{page}");
}

#[test]
fn single_changes_are_tried() {
    check(
        ", resources: {requests: {cpu: '3'}}",
        "",
        &[
            "tolerate the taint team=x:NoSchedule → a",
            "uncordon a node → b",
            "lower its request of cpu from 3 to 1 → c",
            "add a schedulable node like b (4 of cpu, 8Gi of memory)",
        ],
    );
    check(
        ", resources: {requests: {cpu: '5'}}",
        "",
        &["lower its request of cpu from 5 to 1 → c", "add a schedulable node like b, but with 5 of cpu"],
    );
    check("", ", nodeSelector: {disk: none}", &["drop its nodeSelector → c"]);
    let required = ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: DoesNotExist}]}]}}}";
    check("", required, &["drop its required node affinity → c"]);
    // Two things are wrong, and one change does not help.
    check(", resources: {requests: {cpu: '5'}}", ", nodeSelector: {disk: none}", &[]);
}

#[test]
fn preemption_says_whom_it_would_send_away() {
    let check = |spec: &str, expected: &str| {
        let (_, page, stderr) = explain(", resources: {requests: {cpu: '2'}}", spec, &["p"]);
        assert!(page.contains(&format!("\nPreemption: {expected}\n")), "{page}{stderr}");
    };
    check(", priorityClassName: system-cluster-critical", "would preempt default/there on c");
    check(
        "",
        "0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling.",
    );
}

#[test]
fn documents_have_every_node_and_every_score() {
    let (code, text, _) = explain(", resources: {requests: {cpu: 500m}}", "", &["-o", "json"]);
    assert_eq!(code, Some(0));
    let document: Value = serde_json::from_str(&text).expect("a JSON document");
    let pod = &document["pods"][0];
    assert_eq!((&pod["pod"], &pod["host"]), (&"default/p".into(), &"c".into()));
    let nodes = pod["nodes"].as_array().expect("nodes");
    assert_eq!(nodes.len(), 3);
    let taken = nodes.iter().find(|node| node["node"] == "c").expect("node c");
    let weighted = taken["scores"].as_object().expect("scores").values().map(|score| score["weighted"].as_i64());
    assert_eq!(weighted.sum::<Option<i64>>(), taken["total"].as_i64());
}

#[test]
fn pods_that_cannot_be_explained_say_why() {
    let check = |pod: &str, expected: &str| {
        let (code, page, stderr) = explain("", "", &[pod]);
        assert_eq!((code, &*page), (Some(1), ""));
        assert!(stderr.contains(expected), "{stderr}");
    };
    check("q", "error: no pod \"q\" in these files");
    check("there", "error: pod default/there is already assigned to node c");
    let (code, _, stderr) = explain("", ", schedulerName: mine", &["p"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("error: pod default/p: no profile has the schedulerName \"mine\""), "{stderr}");
}

#[test]
fn pods_of_one_namespace() {
    let check = |arguments: &[&str], expected: &str| {
        let (code, page, stderr) = explain("", "", arguments);
        assert_eq!(code, Some(i32::from(page.is_empty())), "{stderr}");
        assert!(format!("{page}{stderr}").contains(expected), "{page}{stderr}");
    };
    check(&["-n", "default"], "Pod default/p: 1 of 3 nodes are feasible");
    check(&["p", "--namespace", "default"], "Pod default/p: 1 of 3 nodes are feasible");
    check(&["-n", "other"], "No pod is pending in this namespace.\n");
    check(&["p", "-n", "other"], "error: no pod \"p\" in these files");
}

#[test]
fn a_cluster_is_one_of_files_or_a_running_one() {
    let check = |arguments: &[&str], expected: &str| {
        let output = run(&[&["explain"], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    };
    check(
        &["-f", "a", "--kubeconfig", "b"],
        "the argument '--filename <FILE>' cannot be used with '--kubeconfig <FILE>'",
    );
    check(&["-f", "a", "--context", "b"], "the argument '--filename <FILE>' cannot be used with '--context <NAME>'");
}

#[test]
fn a_running_cluster_that_cannot_be_read_says_why() {
    let check = |name: &str, content: &str, arguments: &[&str], expected: &str| {
        let path = file(name, content).display().to_string();
        let output = run(&[&["explain", "--kubeconfig", &path], arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
        assert!(stderr.starts_with(&format!("error: kubeconfig {path}: ")), "{stderr}");
        assert!(stderr.contains(expected), "{stderr} does not contain {expected}");
    };
    let output = run(&["explain", "--kubeconfig", "no-such-file"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.starts_with("error: kubeconfig no-such-file: stat no-such-file: no such file or directory"),
        "{stderr}"
    );
    // It is not the kubeconfig's fault.
    let output = run(&["explain", "--kubeconfig", "no-such-file", "--config", "no-such-config"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.starts_with("error: no-such-config: "), "{stderr}");
    check("kubeconfig-text", "a: [", &[], "error loading config file \"");
    check(
        "kubeconfig-empty",
        "apiVersion: v1\nkind: Config\n",
        &[],
        "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable",
    );
    // Port 1 of the loopback address: nobody listens there.
    let config = "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {token: t}}], \
        contexts: [{name: c, context: {cluster: k, user: u}}], \
        clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'}}]}";
    check("kubeconfig-context", config, &["--context", "other"], "context \"other\" does not exist");
    check("kubeconfig-nobody", config, &[], "the API server https://127.0.0.1:1/ is unreachable: ");
    check("kubeconfig-refused", config, &["p"], "dial tcp 127.0.0.1:1: connect: connection refused");
    let missing = config.replace("token: t", "client-certificate: /no/such.crt, client-key: /no/such.key");
    check("kubeconfig-certificate", &missing, &[], "/no/such.crt");
}

/// Exit code, stdout and stderr of `explain p` with these variables and arguments, and no others that name a kubeconfig.
fn explain_live(variables: &[(&str, &str)], arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    for name in ["KUBECONFIG", "HOME", "KUBERNETES_SERVICE_HOST"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).arg("explain").args(arguments).arg("p");
    let output = command.output().expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn kubeconfigs_are_found_and_merged_as_kubectl_does() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let server = ApiServer::new(Options::by_clock(&Clock::real()).exact());
    for object in [node("a").json(), pod("p").json()] {
        server.load(object).expect("a good object");
    }
    let listener = runtime.block_on(server.listen("127.0.0.1:0")).expect("a free port");
    let written = |name: &str, text: &str| file(name, text).display().to_string();
    let clusters =
        written("kubeconfig-clusters", &format!("clusters: [{{name: c, cluster: {{server: '{}'}}}}]", listener.url()));
    let contexts = written(
        "kubeconfig-contexts",
        "{current-context: other, contexts: [{name: x, context: {cluster: c}}, {name: other, context: {cluster: d}}], \
         clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}, {name: d, cluster: {server: 'http://127.0.0.1:1'}}]}",
    );
    let list = format!("/no/such/file:{clusters}:{contexts}");
    let (code, page, stderr) = explain_live(&[("KUBECONFIG", &list)], &["--context", "x"]);
    assert!(code == Some(0) && page.starts_with("Pod default/p: 1 of 1 nodes are feasible"), "{page}{stderr}");
    let (code, _, stderr) = explain_live(&[("KUBECONFIG", &list)], &[]);
    let refused = format!(
        "error: kubeconfig {list}: the API server http://127.0.0.1:1/ is unreachable: Get \"http://127.0.0.1:1/version\": \
         dial tcp 127.0.0.1:1: connect: connection refused"
    );
    assert!(code == Some(1) && stderr.starts_with(&refused), "{stderr}");
    let (code, _, stderr) = explain_live(&[("KUBECONFIG", &list)], &["--context", "y"]);
    assert!(code == Some(1) && stderr.contains("context \"y\" does not exist"), "{stderr}");
    // Without the flag and the variable it is the file in the home folder.
    let (code, _, stderr) = explain_live(&[("HOME", "/no/such/home")], &[]);
    let nothing =
        "error: kubeconfig /no/such/home/.kube/config: invalid configuration: no configuration has been provided";
    assert!(code == Some(1) && stderr.starts_with(nothing), "{stderr}");
}

/// Returns the changes that `explain` suggests for the pod `p` of these files.
fn offered(name: &str, text: &str) -> Vec<String> {
    let path = file(name, text).display().to_string();
    let output = run(&["explain", "-f", &path, "p"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).expect("output is text");
    let offered = page.split("Any one of these changes would make it schedulable:\n").nth(1).unwrap_or_default();
    offered.lines().map(|line| line.trim().to_owned()).collect()
}

/// Was once cut a byte at a time.
#[test]
fn requests_are_lowered_where_the_largest_does_not_decide() {
    let nodes = "{apiVersion: v1, kind: Node, metadata: {name: one}, status: {allocatable: {cpu: '4', memory: '5368709119', pods: '9'}}}";
    let pod = "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers: [{name: i, image: i, resources: {requests: {memory: 4Gi}}}]
  containers:
  - {name: a, image: i, resources: {requests: {memory: 2560Mi}}}
  - {name: b, image: i, resources: {requests: {memory: 2560Mi}}}
";
    assert_eq!(
        offered("lowered.yaml", &format!("{nodes}\n---{pod}")),
        ["lower its request of memory from 5Gi to 5368709119 → one", "add a node like one, but with 5Gi of memory"]
    );
}

/// The node with most room is out of the question.
#[test]
fn requests_are_lowered_to_what_another_node_has_left() {
    let node = |name: &str, cpu: u32| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{zone: {name}}}}}, \
             status: {{allocatable: {{cpu: '{cpu}', memory: 8Gi, pods: '9'}}}}}}\n---\n"
        )
    };
    let pods = "
apiVersion: v1
kind: Pod
metadata: {name: guard, namespace: default, labels: {app: x}}
spec: {nodeName: a, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {app: x}}
spec:
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: x}}}]}}
  containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]
";
    assert_eq!(
        offered("another.yaml", &format!("{}{}{pods}", node("a", 2), node("b", 1))),
        ["lower its request of cpu from 3 to 1 → b", "add a node like b, but with 3 of cpu"]
    );
}

/// Two more domains are needed, and a node is uncordoned by itself.
#[test]
fn a_node_that_helps_only_with_another_is_not_offered() {
    let mut text = String::new();
    for (at, spec) in ["", "unschedulable: true", "unschedulable: true"].into_iter().enumerate() {
        let _ = write!(
            text,
            "{{apiVersion: v1, kind: Node, metadata: {{name: n{at}, labels: {{zone: z{at}}}}}, spec: {{{spec}}}, \
             status: {{allocatable: {{cpu: '4', memory: 8Gi, pods: '9'}}}}}}\n---\n\
             {{apiVersion: v1, kind: Pod, metadata: {{name: r{at}, namespace: default, labels: {{app: x}}}}, \
             spec: {{nodeName: n{at}, containers: [{{name: c, image: i}}]}}}}\n---\n"
        );
    }
    text += "
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {app: x}}
spec:
  topologySpreadConstraints:
  - {maxSkew: 1, minDomains: 3, nodeTaintsPolicy: Honor, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}
  containers: [{name: c, image: i}]
";
    let text = text.replace(
        "spec: {unschedulable: true}",
        "spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}",
    );
    assert!(offered("together.yaml", &text).iter().all(|change| !change.contains("uncordon")));
}
