//! The command's arguments, messages and exit codes.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Runs the command in the project's folder.
pub(crate) fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kube-scheduler"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output()
        .expect("the command runs")
}

/// Writes an input file for one test, and returns its path.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("command");
    std::fs::create_dir_all(&folder).expect("a folder for test files");
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a test file is written");
    path
}

fn check_failure(arguments: &[&str], expected: &str) {
    let output = run(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert!(stderr.contains(expected), "{arguments:?}: {stderr:?} does not contain {expected:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
}

fn check_bad_file(name: &str, content: impl AsRef<[u8]>, expected: &str) {
    let path = file(name, content);
    check_failure(&["simulate", &path.display().to_string()], expected);
}

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: node-1}\nstatus: {allocatable: {cpu: 1, memory: 1Gi, pods: 10}}\n---\n";

fn pod(spec: &str) -> String {
    format!("{NODE}apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {spec}\n")
}

#[test]
fn usage() {
    check_failure(&["simulate"], "nothing to simulate");
    check_failure(&["simulate", "--nodes", "3"], "--pods");
    check_failure(&["simulate", "--bogus"], "--bogus");
    check_failure(&["simulate", "--nodes", "1", "--pods", "1000001"], "--pods 1000001: must be at most 1000000");
    check_failure(&["simulate", "no-such-file.yaml"], "no-such-file.yaml: No such file or directory");
    check_failure(&["--bogus"], "unknown flag: --bogus");
    check_failure(&["stray"], "\"kube-scheduler\" does not take any arguments, got [\"stray\"]");
}

#[test]
fn help_and_version() {
    for arguments in [&["--help"][..], &["simulate", "--help"], &["--version"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
    assert_eq!(String::from_utf8_lossy(&run(&["--version"]).stdout), "Kubernetes v1.36.3\n");
}

#[test]
fn version_command_prints_both_versions() {
    let printed = |arguments: &[&str]| {
        let output = run(&[&["version"][..], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("the version is text")
    };
    let text = printed(&[]);
    let own = concat!("kube-scheduler-rs version: ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(text.starts_with(own) && text.contains("\nKubernetes version: v1.36.3\n"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&printed(&["-o", "json"])).expect("it is JSON");
    let yaml: serde_json::Value = serde_yaml::from_str(&printed(&["-o", "yaml"])).expect("it is YAML");
    assert_eq!(json, yaml);
    assert_eq!(json["program"], "kube-scheduler-rs");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["kubernetesVersion"], "v1.36.3");
    assert_eq!(json["compiler"].as_str().map(|compiler| compiler.starts_with("rustc ")), Some(true), "{json}");
    check_failure(&["version", "-o", "xml"], "xml");
}

#[test]
fn bad_input_is_named_by_file_document_object_and_field() {
    check_bad_file("empty.yaml", "", "empty.yaml: no objects");
    check_bad_file("binary.yaml", [0_u8, 159, 146, 150], "binary.yaml: document 1: ");
    check_bad_file("scalar.yaml", "42", "scalar.yaml: document 1: expected an object with apiVersion and kind");
    check_bad_file("unclosed.yaml", "apiVersion: [v1", "unclosed.yaml: document 1: ");
    check_bad_file("json.json", r#"{"apiVersion": "v1""#, "json.json: document 1: ");
    check_bad_file(
        "twice.yaml",
        format!("{NODE}{NODE}"),
        "twice.yaml: document 2: Node node-1: nodes \"node-1\" already exists, first defined in ",
    );
    check_bad_file(
        "quantity.yaml",
        pod("{containers: [{name: c, image: i, resources: {requests: {cpu: much}}}]}"),
        "quantity.yaml: document 2: Pod p: Pod in version \"v1\" cannot be handled as a Pod: \
         spec.containers[0].resources.requests.cpu: quantities must match the regular expression",
    );
    check_bad_file(
        "operator.yaml",
        pod("{containers: [{name: c, image: i}], tolerations: [{key: a, operator: Sometimes}]}"),
        "operator.yaml: document 2: Pod p: ",
    );
    check_bad_file(
        "type.yaml",
        pod("{containers: 5}"),
        "type.yaml: document 2: Pod p: Pod in version \"v1\" cannot be handled as a Pod: \
         json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container",
    );
    check_bad_file(
        "replicas.yaml",
        dumped("Deployment", "{replicas: '3'}", ""),
        "replicas.yaml: document 2: Deployment default/w: Deployment in version \"v1\" cannot be handled as a Deployment: \
         json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    );
    // These two ended in a panic.
    check_bad_file(
        "selector.yaml",
        dumped("Deployment", "{selector: a}", ""),
        "cannot unmarshal string into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
    );
    check_bad_file(
        "metadata.yaml",
        dumped("Job", "{template: {metadata: 5}}", ""),
        "cannot unmarshal number into Go struct field PodTemplateSpec.spec.template.metadata of type v1.ObjectMeta",
    );
    check_bad_file(
        "duplicate-key.yaml",
        "apiVersion: v1\nkind: Node\nmetadata: {name: a, name: b}\n",
        "key \"name\" already set in map",
    );
}

#[test]
fn bad_configuration() {
    let cluster = file("cluster.yaml", pod("{containers: [{name: c, image: i}]}"));
    let cluster = cluster.display().to_string();
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let check = |name: &str, content: &str, expected: &str| {
        let config = file(name, content).display().to_string();
        check_failure(&["simulate", "--config", &config, &cluster], expected);
    };
    check("unknown.yaml", &format!("{head}foo: 1\n"), "unknown.yaml: strict decoding error: unknown field \"foo\"");
    check(
        "extender.yaml",
        &format!("{head}extenders: [{{urlPrefix: u, prioritizeVerb: f}}]\n"),
        "extender.yaml: extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    );
    check(
        "plugin.yaml",
        &format!("{head}profiles: [{{schedulerName: a, plugins: {{filter: {{enabled: [{{name: Nope}}]}}}}}}]\n"),
        "plugin.yaml: initializing profiles: creating profile for scheduler name a: FilterPlugin \"Nope\" does not exist",
    );
    check(
        "parallelism.yaml",
        &format!("{head}parallelism: 0\n"),
        "parallelism.yaml: parallelism: Invalid value: 0: should be an integer value greater than zero",
    );
    check(
        "two-names.yaml",
        &format!("{head}percentageOfNodesToScore: 101\nprofiles: [{{schedulerName: a}}, {{schedulerName: a}}]\n"),
        "two-names.yaml: [profiles[1].schedulerName: Duplicate value: {}, percentageOfNodesToScore: Invalid value: 101: ",
    );
}

const TEMPLATE: &str = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}";

const ENDING: &str = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}";

/// A workload with a UID, as a dump has it: it is not validated.
fn dumped(kind: &str, spec: &str, rest: &str) -> String {
    let version = if matches!(kind, "Job" | "CronJob") { "batch/v1" } else { "apps/v1" };
    format!(
        "{NODE}apiVersion: {version}\nkind: {kind}\nmetadata: {{name: w, namespace: default, uid: u}}\nspec: {spec}\n{rest}"
    )
}

#[test]
fn workloads_that_cannot_have_their_pods_are_named() {
    check_bad_file(
        "no-containers.yaml",
        dumped("Deployment", "{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}}}", ""),
        "no-containers.yaml: document 2: Deployment default/w: ReplicaSet.apps \"w-6c849d4946\" is invalid: \
         spec.template.spec.containers: Required value",
    );
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        check_bad_file(
            "many.yaml",
            dumped(kind, &format!("{{replicas: 2000000000, selector: {{matchLabels: {{a: b}}}}, {TEMPLATE}}}"), ""),
            &format!(
                "many.yaml: document 2: {kind} default/w: spec.replicas: 2000000000 more pods would exceed the limit of 1000000 pods"
            ),
        );
    }
    check_bad_file(
        "many-jobs.yaml",
        dumped(
            "CronJob",
            &format!("{{schedule: '* * * * *', jobTemplate: {{spec: {{parallelism: 2000000, {ENDING}}}}}}}"),
            "",
        ),
        "many-jobs.yaml: document 2: CronJob default/w: spec.parallelism: 2000000 more pods",
    );
}

#[test]
fn workloads_of_manifests_are_validated() {
    let check = |name: &str, kind: &str, spec: &str, expected: &str| {
        let content = dumped(kind, spec, "").replace(", uid: u", "");
        check_bad_file(name, content, &format!("{name}: document 2: {kind} default/w: {expected}"));
    };
    check(
        "negative.yaml",
        "ReplicaSet",
        &format!("{{replicas: -1, selector: {{matchLabels: {{a: b}}}}, {TEMPLATE}}}"),
        "ReplicaSet.apps \"w\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0",
    );
    check(
        "mismatch.yaml",
        "Deployment",
        &format!("{{selector: {{matchLabels: {{a: c}}}}, {TEMPLATE}}}"),
        "Deployment.apps \"w\" is invalid: spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match \
         template `labels`",
    );
    check(
        "restart.yaml",
        "Job",
        &format!("{{{TEMPLATE}}}"),
        "Job.batch \"w\" is invalid: spec.template.spec.restartPolicy: Required value",
    );
}

#[test]
fn workloads_that_are_done_or_leaving_get_no_pods() {
    let check = |name: &str, content: String, pods: usize| {
        let path = file(name, content);
        let output = run(&["simulate", "-o", "json", &path.display().to_string()]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        assert_eq!(report["totals"]["placed"], pods, "{name}: {report}");
    };
    let job = |status: &str| dumped("Job", &format!("{{parallelism: 3, {ENDING}}}"), status);
    check("job.yaml", job(""), 3);
    check("job-failed.yaml", job("status: {failed: 7, conditions: [{type: Failed, status: 'True'}]}\n"), 0);
    check("job-suspended.yaml", job("status: {conditions: [{type: Suspended, status: 'True'}]}\n"), 3);
    check("job-succeeding.yaml", job("status: {succeeded: 1}\n"), 0);
    let set = dumped("ReplicaSet", &format!("{{replicas: 2, selector: {{matchLabels: {{a: b}}}}, {TEMPLATE}}}"), "");
    check("set.yaml", set.clone(), 2);
    let leaving = "uid: u, finalizers: [foregroundDeletion], deletionTimestamp: '2026-01-01T00:00:00Z'";
    check("set-leaving.yaml", set.replace("uid: u", leaving), 0);
}

#[test]
fn null_is_as_good_as_absent() {
    let content = "apiVersion: v1\nkind: Node\nmetadata: {name: node, labels: {a: }, annotations: }\nspec:\nstatus: {allocatable: \
                   {pods: 1}, conditions: , images: [{names: , sizeBytes: }]}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: \
                   p, labels: , creationTimestamp: null}\nspec: {containers: [{name: c, image: i, resources: , ports: }], \
                   nodeSelector: {a: }, affinity: , tolerations: }\nstatus:\n";
    let output = run(&["simulate", &file("null.yaml", content).display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_cannot_be_written_is_no_panic() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let check = |arguments: &[&str], stdout: Stdio, stderr: Stdio, code: i32| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"));
        let status = command.args(arguments).stdout(stdout).stderr(stderr).status().expect("the command runs");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    };
    let placed = &["simulate", "--nodes", "1", "--pods", "1"];
    check(placed, Stdio::null(), full().into(), 0);
    check(placed, full().into(), Stdio::null(), 1);
    for bad in [&["simulate", "nowhere.yaml"][..], &["--bogus"], &["--config", "nowhere.yaml"]] {
        check(bad, Stdio::null(), full().into(), 1);
    }
    for told in [&["--help"][..], &["--version"], &["simulate", "--help"]] {
        check(told, full().into(), Stdio::null(), 0);
    }
}

#[test]
fn what_every_cluster_has_may_be_in_the_files() {
    // Was once "already exists".
    let own = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: a}}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: kubernetes, namespace: default, uid: u}\nspec: {ports: [{port: 443}]}\n";
    let content = pod("{containers: [{name: c, image: i}]}") + own;
    let simulated = |content: &str| run(&["simulate", &file("own.yaml", content).display().to_string()]);
    let output = simulated(&content);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let output = simulated(&format!("{content}{own}"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "Namespace default: namespaces \"default\" already exists, first defined in ";
    assert!(output.status.code() == Some(1) && stderr.contains(expected), "{stderr}");
}

#[test]
fn unknown_fields_of_manifests_are_warned_of() {
    let content = pod("{containers: [{name: c, image: i, resource: {requests: {cpu: 64}}}]}");
    let warned = |content: &str| {
        let output = run(&["simulate", &file("unknown.yaml", content).display().to_string()]);
        assert_eq!(output.status.code(), Some(0));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        stderr.contains("unknown.yaml: document 2: Pod p: spec.containers[0].resource: unknown field, ignored")
    };
    assert!(warned(&content));
    assert!(!warned(&content.replace("name: p", "name: p, namespace: default, uid: u")));
}

#[test]
fn pods_that_are_not_to_be_placed_say_why() {
    let container = "containers: [{name: c, image: i}]";
    let check = |name: &str, content: String, expected: &str| {
        let output = run(&["simulate", &file(name, content).display().to_string()]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(text.lines().nth(1), Some(expected), "{name}: {text}");
    };
    let leaving = "name: p, finalizers: [example.com/wait], deletionTimestamp: '2026-01-01T00:00:00Z'";
    check(
        "leaving.yaml",
        pod(&format!("{{{container}}}")).replace("name: p", leaving),
        "default    p    -     Terminating: the pod is being deleted and is not scheduled",
    );
    check("stray.yaml", pod(&format!("{{{container}, nodeName: gone}}")), "default    p    gone  node does not exist");
    check(
        "other.yaml",
        pod(&format!("{{{container}, schedulerName: theirs}}")),
        "default    p    -     NotOurs: no profile has the schedulerName \"theirs\"",
    );
}

#[test]
fn exit_codes_say_what_became_of_the_pods() {
    let check = |name: &str, spec: &str, code: i32| {
        let path = file(name, pod(spec));
        assert_eq!(run(&["simulate", &path.display().to_string()]).status.code(), Some(code), "{name}");
    };
    check("fits.yaml", "{containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}", 0);
    check("fits-not.yaml", "{containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}", 2);
}

#[test]
fn signals_that_are_nobodys_business_end_nothing() {
    use std::io::{BufRead as _, BufReader};

    // Nobody listens at that address.
    let mut child = Command::new(env!("CARGO_BIN_EXE_kube-scheduler"))
        .args(["--master=http://127.0.0.1:1", "--secure-port=0"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let started = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Starting Kubernetes Scheduler"));
    let id = child.id().to_string();
    for signal in ["USR1", "USR2", "ALRM", "XFSZ", "PWR", "RTMIN+1", "TERM"] {
        let sent = Command::new("bash").args(["-c", "kill -s \"$0\" \"$1\"", signal, &id]).status();
        assert!(sent.expect("there is a shell").success(), "{signal} finds nobody");
    }
    // Its standard error is read for as long as it is written.
    lines.for_each(drop);
    let status = child.wait().expect("it ends");
    assert!(started && status.code().is_some(), "{status}");
}
