//! The manifests in `deploy/`, applied to a real API server. It accepts all of them, and the binary runs as they say: with their
//! command lines, configuration, service accounts and roles. No request is denied, and the roles grant nothing more.

mod access;
mod expression;
mod manifests;
mod monitoring;
mod pod;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use libtest_mimic::Failed;
use serde_json::{Value, json};

use self::access::{asked, granted};
pub(crate) use self::expression::selectors;
pub(crate) use self::manifests::Manifests;
use self::manifests::{controllers, wait_for_roles};
pub(crate) use self::monitoring::{of_dashboards, of_rules, scraper};
use self::pod::{Container, list, text, token};
use crate::support::cluster::{ControlPlane, Process};
use crate::support::schedulers::at_once;
use crate::support::stage::{Alive, Stage, on_stage};

/// The second scheduler, and all that belongs to it.
pub(crate) const SECOND: &str = "kube-scheduler-rs";

/// The one with a plugin from outside.
const OUTSIDE: &str = "myscheduler";

/// The pods of the samples.
const REPLICAS: usize = 3;

/// Enough that the tenth of all cycles of which plugins are timed is not none.
const MANY: usize = 100;

/// What the roles of a scheduler grant, and what of it was used; its name is left out.
struct Rights {
    granted: BTreeSet<String>,
    used: BTreeSet<String>,
}

pub(crate) fn deploys_as_manifests_say() -> Result<(), Failed> {
    let outside = example("myscheduler")?;
    let plays: [Box<dyn FnOnce() -> Result<Rights, String> + Send>; 2] =
        [Box::new(second_scheduler), Box::new(move || plugin_from_outside(&outside))];
    let [second, outside] = at_once(plays);
    let (second, outside) = (second?, outside?);
    if second.granted != outside.granted {
        return Err(format!("roles differ: {:?} and {:?}", second.granted, outside.granted).into());
    }
    let used: BTreeSet<String> = second.used.union(&outside.used).cloned().collect();
    let unused: Vec<&String> = second.granted.difference(&used).collect();
    if !unused.is_empty() {
        return Err(format!("granted, and never used: {unused:#?}").into());
    }
    println!("no request was denied, and all {} permissions were used", second.granted.len());
    Ok(())
}

/// The path of an example, built like this test.
fn example(name: &str) -> Result<PathBuf, String> {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_kube-scheduler"));
    let folder = program.parent().ok_or("a folder")?;
    let target = folder.parent().ok_or("a target folder")?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target);
    command.args(["build", "--quiet", "--features", "controlplane", "--example", name]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    let built = command.status().map_err(|error| error.to_string())?;
    if built.success() { Ok(folder.join("examples").join(name)) } else { Err(format!("{name} is not built: {built}")) }
}

/// Everything that runs on a cluster, of which nothing may end.
struct Running {
    controllers: Process,
    schedulers: Vec<Container>,
}

impl Alive for Running {
    fn ended(&mut self) -> Option<String> {
        let schedulers = self.schedulers.iter_mut().find_map(Container::ended);
        schedulers.or_else(|| Alive::ended(&mut self.controllers))
    }
}

/// The second scheduler beside the default one, which this one replaces, too: each schedules what is its own.
fn second_scheduler() -> Result<Rights, String> {
    let plane = ControlPlane::start()?;
    Manifests::render(&plane, "base")?.apply(&plane)?;
    let monitoring = Manifests::render(&plane, "overlays/monitoring")?;
    let mut foreign = monitoring.apply(&plane)?;
    foreign.sort();
    if foreign != ["PrometheusRule", "ServiceMonitor"] {
        return Err(format!("of the operator's kinds: {foreign:?}"));
    }
    let mut static_pod = Manifests::render(&plane, "overlays/default-scheduler")?;
    // A kubelet shows the API server the pods that it has from files, as those of its node.
    static_pod.objects[0]["spec"]["nodeName"] = "worker1".into();
    static_pod.apply(&plane)?;
    Manifests::render(&plane, "samples/nginx")?.apply(&plane)?;

    wait_for_roles(&plane, SECOND)?;
    let ours = Path::new(env!("CARGO_BIN_EXE_kube-scheduler"));
    let deployment = monitoring.object("Deployment", SECOND)?;
    let (spec, template) = (&static_pod.objects[0]["spec"], &deployment["spec"]["template"]["spec"]);
    let mut schedulers = vec![Container::start(&plane, "default-scheduler", spec, ours)?];
    for replica in 0..deployment["spec"]["replicas"].as_u64().unwrap_or_default() {
        schedulers.push(Container::start(&plane, &format!("{SECOND}-{replica}"), template, ours)?);
    }
    let mut running = Running { controllers: controllers(&plane)?, schedulers };
    let [default, replicas @ ..] = &mut running.schedulers[..] else { unreachable!("all were started") };
    default.wait_ready(&plane, spec)?;
    replicas.iter_mut().try_for_each(|replica| replica.wait_ready(&plane, template))?;
    on_stage(&plane, &mut running, "deployed", |stage| {
        workers(stage)?;
        restricted(stage, template)?;
        wait_placed(stage, "default", "app=nginx", REPLICAS)?;
        // The default scheduler places the second one's own pods.
        wait_placed(stage, "kube-system", &format!("app.kubernetes.io/name={SECOND}"), 2)?;
        marked_while_claims_are_refused(stage, &static_pod.objects[0])?;
        contend(stage)?;
        let many = json!({"spec": {"replicas": MANY}});
        stage.send(Method::PATCH, "/apis/apps/v1/namespaces/default/deployments/nginx", &many)?;
        wait_placed(stage, "default", "app=nginx", MANY).map(drop)
    })?;
    is_watched(&plane, &monitoring, &running.schedulers[1..])?;
    finish(plane, running, SECOND)
}

/// A scheduler with a plugin from outside, on an API server that does not stream lists.
fn plugin_from_outside(program: &Path) -> Result<Rights, String> {
    let plane = ControlPlane::start_with(&["--feature-gates=WatchList=false"])?;
    let manifests = Manifests::render(&plane, "samples/myscheduler")?;
    manifests.apply(&plane)?;
    wait_for_roles(&plane, OUTSIDE)?;
    let template = &manifests.object("Deployment", OUTSIDE)?["spec"]["template"]["spec"];
    let schedulers = vec![Container::start(&plane, OUTSIDE, template, program)?];
    let mut running = Running { controllers: controllers(&plane)?, schedulers };
    running.schedulers[0].wait_ready(&plane, template)?;
    on_stage(&plane, &mut running, "deployed", |stage| {
        workers(stage)?;
        let nodes = wait_placed(stage, "default", "app=hinted-nginx", REPLICAS)?;
        if nodes.iter().ne(["worker1"]) { Err(format!("not on worker1 alone: {nodes:?}")) } else { Ok(()) }
    })?;
    finish(plane, running, OUTSIDE)
}

/// Ends all, and says what the scheduler's roles grant it, and what of that it has used.
fn finish(plane: ControlPlane, running: Running, name: &str) -> Result<Rights, String> {
    running.schedulers.into_iter().try_for_each(Container::stop)?;
    drop(running.controllers);
    let get = |path: &str| -> Result<Value, String> {
        serde_json::from_str(&plane.get(path)?).map_err(|error| format!("{path}: {error}"))
    };
    let lease = get(&format!("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{name}"))?;
    if !text(&lease["spec"]["holderIdentity"]).is_empty() {
        return Err(format!("the lease is still held: {lease}"));
    }
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let mut rights = granted(&get(&format!("{rbac}/clusterroles/{name}"))?)?;
    rights.extend(granted(&get(&format!("{rbac}/namespaces/kube-system/roles/{name}"))?)?);
    rights.extend(granted(&get(&format!("{rbac}/clusterroles/system:auth-delegator"))?)?);
    let asked = asked(&plane, &format!("system:serviceaccount:kube-system:{name}"))?;
    let used = rights.iter().filter(|right| asked.iter().any(|asked| asked.uses(right)));
    let nameless = |right: &access::Right| right.to_string().replace(name, "of its own");
    let rights = Rights { used: used.map(nameless).collect(), granted: rights.iter().map(nameless).collect() };
    plane.remove()?;
    Ok(rights)
}

/// Three workers, as clusters have them.
fn workers(stage: &Stage<'_>) -> Result<(), String> {
    for name in ["worker1", "worker2", "worker3"] {
        stage.node(name, "16", &json!({}))?;
        let labels = json!({"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"});
        stage.patch("nodes", name, "", &json!({"metadata": {"labels": labels}}))?;
    }
    Ok(())
}

/// Waits until so many pods with these labels have nodes, and says which.
fn wait_placed(stage: &mut Stage<'_>, namespace: &str, labels: &str, count: usize) -> Result<BTreeSet<String>, String> {
    stage.wait(&format!("{count} pods {labels}"), |stage| {
        let pods = stage.send(
            Method::GET,
            &format!("/api/v1/namespaces/{namespace}/pods?labelSelector={labels}"),
            &Value::Null,
        )?;
        let nodes: Vec<&str> = list(&pods["items"]).filter_map(|pod| pod["spec"]["nodeName"].as_str()).collect();
        Ok((nodes.len() == count).then(|| nodes.into_iter().map(str::to_owned).collect()))
    })
}

/// The pods are ones that a namespace with the strictest rules takes.
fn restricted(stage: &Stage<'_>, spec: &Value) -> Result<(), String> {
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strict", "labels": labels}});
    stage.send(Method::POST, "/api/v1/namespaces", &namespace)?;
    let mut spec = spec.clone();
    // Classes of the system are for its own namespace.
    spec["priorityClassName"] = Value::Null;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec});
    stage.send(Method::POST, "/api/v1/namespaces/strict/pods?dryRun=All", &pod)?;
    let loose = json!({"containers": [{"name": "main", "image": "registry.example/app:v1"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": loose});
    match stage.send(Method::POST, "/api/v1/namespaces/strict/pods?dryRun=All", &pod) {
        Err(error) if error.contains("PodSecurity") => Ok(()),
        other => Err(format!("the rules are not strict: {other:?}")),
    }
}

/// Replacing the default scheduler is said to be not for production for as long as pods with claims are not scheduled.
fn marked_while_claims_are_refused(stage: &mut Stage<'_>, static_pod: &Value) -> Result<(), String> {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    stage.create("persistentvolumeclaims", &claim)?;
    let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}]);
    stage.pod("claims", "100m", json!({"spec": {"volumes": volume}}))?;
    stage.wait_refused("claims", "0/3 nodes are available")?;
    let pod = stage.get_pod("claims")?;
    let refused = list(&pod["status"]["conditions"]).any(|one| text(&one["message"]).contains("not supported yet"));
    let marked = static_pod["metadata"]["annotations"]["kube-scheduler-rs/not-for-production"].is_string();
    if refused == marked { Ok(()) } else { Err(format!("claims are refused: {refused}, and that is said: {marked}")) }
}

/// Pods of the second scheduler that are tried again in vain, so that events become series, and one that others make room for.
fn contend(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.node("narrow", "4", &json!({}))?;
    for (name, value) in [("low", 1), ("high", 1000)] {
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value, "metadata": {"name": name},
        });
        stage.create("priorityclasses", &class)?;
    }
    let on_narrow = |class: &str| {
        let selector = json!({"kubernetes.io/hostname": "narrow"});
        json!({"spec": {"schedulerName": SECOND, "priorityClassName": class, "nodeSelector": selector}})
    };
    for (name, cpu) in [("small-1", "100m"), ("small-2", "100m"), ("large", "3")] {
        stage.pod(name, cpu, on_narrow("low"))?;
        stage.wait_bound(name, "narrow")?;
    }
    stage.pod("waits", "2", on_narrow("low"))?;
    stage.wait_refused("waits", "Insufficient cpu")?;
    // An event's regarding names the version of the pod that was tried: the second attempt is of another one.
    stage.delete_now("small-1")?;
    stage.wait_events("waits", "FailedScheduling", 2)?;
    stage.delete_now("small-2")?;
    stage.wait_series()?;
    stage.pod("high", "2", on_narrow("high"))?;
    stage.wait_terminating("large")?;
    stage.delete_now("large")?;
    stage.wait_bound("high", "narrow")
}

/// Prometheus's service account gets the metrics, nobody else does, and they have all that rules and dashboards are about.
fn is_watched(plane: &ControlPlane, monitoring: &Manifests, replicas: &[Container]) -> Result<(), String> {
    let (namespace, prometheus) = scraper(plane, monitoring)?;
    plane.kubectl(&["create", "serviceaccount", "stranger", "--namespace", &namespace])?;
    let stranger = token(plane, &namespace, "stranger")?;
    let mut leaders = Vec::new();
    for replica in replicas {
        for other in [None, Some(&*stranger)] {
            let said = replica.get(plane, "/metrics", other);
            if !said.as_ref().is_err_and(|error| error.contains("cannot get path \"/metrics\"")) {
                return Err(format!("others are told: {said:?}"));
            }
        }
        let scrape = replica.get(plane, "/metrics", Some(&prometheus))?;
        if scrape.contains("leader_election_master_status{name=\"kube-scheduler\"} 1") {
            leaders.push(scrape);
        }
        // By way of the only folder that can be written to.
        replica.get(plane, "/debug/pprof/heap?debug=1", Some("admin-token"))?;
    }
    let [scrape] = &leaders[..] else { return Err(format!("{} of the replicas lead", leaders.len())) };
    let (rules, recorded) = of_rules(monitoring.object("PrometheusRule", SECOND)?);
    let dashboards = of_dashboards(monitoring.object("ConfigMap", "kube-scheduler-rs-dashboard")?)?;
    let mut known = monitoring::families(scrape);
    known.extend(recorded);
    monitoring::check(&rules, &known)?;
    monitoring::check(&dashboards, &known)?;
    println!(
        "{} expressions of rules and {} of dashboards use existing metrics and labels",
        rules.len(),
        dashboards.len()
    );
    Ok(())
}
