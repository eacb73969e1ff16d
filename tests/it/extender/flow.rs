//! Requests to extenders, and the effects of their replies.

use kube_scheduler::config::Config;
use kube_scheduler::plugins::node_resources::{NodeResourcesFitArgs, ignore_resources};
use kube_scheduler::plugins::registry;
use kube_scheduler::testing::{node, pod};
use serde_json::{Value, json};

use super::{at, keep, names, with};
use crate::world::webhook::{Asked, Reply, Webhook, wait_until, webhook};
use crate::world::world;

/// Rejects all nodes but `kept`: `a` for good.
fn picky(kept: &'static str) -> Webhook {
    webhook(move |asked| {
        let items = asked.body["Nodes"]["items"].as_array().cloned().unwrap_or_default();
        let kept: Vec<Value> = items.into_iter().filter(|node| node["metadata"]["name"] == kept).collect();
        let failed = json!({"a": "busy", "b": "busy", "c": "busy"});
        Reply::Json(
            json!({"Nodes": {"items": kept}, "FailedNodes": failed, "FailedAndUnresolvableNodes": {"a": "never"}}),
        )
    })
}

#[test]
fn filter_gets_whole_objects_and_its_reasons_are_reported() {
    let hook = picky("none");
    let mut world = world([]).configured(at(&hook, json!({"filterVerb": "f/ilter"}))).start();
    let sent =
        pod("p").set("spec.containers", json!([{"name": "c", "image": "i", "env": [{"name": "E", "value": "<>"}]}]));
    world.load(node("a").set("status.nodeInfo", json!({"kernelVersion": "6.1"})).json());
    world.nodes(["b", "c"]).pod(sent).schedule();
    let message = "0/3 nodes are available: 1 never, 2 busy.";
    assert_eq!(world.condition("p"), format!("Unschedulable: {message}"));
    assert_eq!(world.events(), [format!("Warning FailedScheduling/Scheduling p: {message}")]);
    assert_eq!(world.waits("p").expect("it waits").1, ["Extender"]);
    let asked = hook.take();
    let [Asked { path, body, .. }] = &*asked else { panic!("one request: {asked:?}") };
    assert_eq!((path.as_str(), asked[0].header("content-type")), ("/f/ilter", Some("application/json")));
    assert_eq!(
        body.as_object().map(|body| body.keys().cloned().collect()),
        Some(vec!["NodeNames".to_owned(), "Nodes".to_owned(), "Pod".to_owned()])
    );
    assert_eq!(body["NodeNames"], json!(null));
    assert_eq!(body["Pod"]["spec"]["containers"][0]["env"], json!([{"name": "E", "value": "<>"}]));
    assert_eq!((&body["Pod"]["kind"], &body["Pod"]["metadata"]["managedFields"]), (&json!(null), &json!(null)));
    let held = world.held("p");
    assert_eq!(
        (&body["Pod"]["metadata"]["uid"], body["Pod"]["status"]["phase"].as_str()),
        (&held["metadata"]["uid"], Some("Pending"))
    );
    assert_eq!(names(body), ["a", "b", "c"]);
    assert_eq!(body["Nodes"]["items"][0]["status"]["nodeInfo"]["kernelVersion"], "6.1");
}

#[test]
fn node_cache_capable_filter_exchanges_node_names() {
    let hook = webhook(|_| keep(&["c", "b", "b"]));
    let config = at(&hook, json!({"filterVerb": "filter", "nodeCacheCapable": true}));
    let mut world = world([]).configured(config).start();
    world.nodes(["a", "b", "c"]).pod(pod("p")).schedule();
    assert!(["b", "c"].contains(&world.node_of("p").as_str()));
    let asked = hook.take();
    assert_eq!((&asked[0].body["Nodes"], &asked[0].body["NodeNames"]), (&json!(null), &json!(["a", "b", "c"])));
    assert_eq!(asked[0].body["Pod"]["metadata"]["name"], "p");
}

#[test]
fn each_extender_gets_the_nodes_of_the_previous_one() {
    let last = webhook(|asked| Reply::Json(json!({"Nodes": {"items": [asked.body["Nodes"]["items"][1]]}})));
    let first = webhook(|asked| {
        let mut nodes = asked.body["Nodes"].clone();
        nodes["items"].as_array_mut().expect("nodes").retain(|node| node["metadata"]["name"] != "a");
        nodes["items"][0]["metadata"]["labels"]["seen"] = "yes".into();
        Reply::Json(json!({"nodes": nodes}))
    });
    let mut world = world([])
        // One that may fail is asked last.
        .configured(with(at(&last, json!({"filterVerb": "last"})), json!({"ignorable": true})))
        .configured(at(&first, json!({"filterVerb": "first"})))
        .start();
    world.nodes(["a", "b", "c"]).pod(pod("p")).schedule();
    assert_eq!(world.node_of("p"), "c");
    assert_eq!(names(&first.take()[0].body), ["a", "b", "c"]);
    let asked = last.take();
    assert_eq!(names(&asked[0].body), ["b", "c"]);
    assert_eq!(asked[0].body["Nodes"]["items"][0]["metadata"]["labels"]["seen"], "yes");
}

#[test]
fn scores_are_weighted() {
    let likes = |node: &'static str, score: i64| {
        webhook(move |_| Reply::Json(json!([{"Host": node, "Score": score}, {"Host": "unknown", "Score": 10}])))
    };
    let chosen = |hooks: &[(&Webhook, i64)]| {
        let builder = hooks.iter().fold(world([]), |builder, (hook, weight)| {
            builder.configured(at(hook, json!({"prioritizeVerb": "prioritize", "weight": weight})))
        });
        let mut world = builder.start();
        world.nodes(["a", "b", "c"]).pod(pod("p")).schedule();
        world.node_of("p")
    };
    let (b, c) = (likes("b", 2), likes("c", 3));
    assert_eq!(chosen(&[(&b, 1), (&c, 1)]), "c");
    assert_eq!(chosen(&[(&b, 2), (&c, 1)]), "b");
    assert_eq!((b.take_paths().len(), c.take_paths()), (2, vec!["/prioritize".to_owned(); 2]));
}

#[test]
fn pods_without_managed_resources_are_not_sent() {
    let hook = webhook(|_| keep(&["a"]));
    let resources = json!([{"name": "example.com/gpu"}]);
    let config = json!({"filterVerb": "filter", "nodeCacheCapable": true, "managedResources": resources});
    let mut world = world([]).configured(at(&hook, config)).start();
    world.nodes(["a", "b"]);
    let mut asked_about = |pod: kube_scheduler::testing::PodFixture| {
        world.pod(pod).schedule();
        hook.take().len()
    };
    let limits = json!({"limits": {"example.com/gpu": "1"}});
    let with_limits = json!([{"name": "i", "image": "i", "resources": limits}]);
    assert_eq!(asked_about(pod("plain").cpu("1")), 0);
    assert_eq!(asked_about(pod("other").request("example.com/other", "1")), 0);
    assert_eq!(asked_about(pod("asks").request("example.com/gpu", "1")), 1);
    assert_eq!(asked_about(pod("init").set("spec.initContainers", with_limits)), 1);
}

#[test]
fn resources_ignored_by_the_scheduler_are_not_fitted() {
    let hook = webhook(|_| keep(&["a"]));
    let placed = |ignored: bool| {
        let resources = json!([{"name": "example.com/gpu", "ignoredByScheduler": ignored}]);
        let config = json!({"filterVerb": "filter", "nodeCacheCapable": true, "managedResources": resources});
        let mut world = world([]).in_tree(&["NodeResourcesFit"]).configured(at(&hook, config)).start();
        world.nodes(["a"]).pod(pod("p").request("example.com/gpu", "1")).schedule();
        (world.node_of("p"), world.condition("p"))
    };
    assert_eq!(placed(true).0, "a");
    assert!(placed(false).1.contains("1 Insufficient example.com/gpu."), "{}", placed(false).1);
}

#[test]
fn ignored_resources_replace_the_fit_args_of_every_profile() {
    let own = json!([{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.com/own"]}}]);
    let ignored = |name: &str| json!({"name": name, "ignoredByScheduler": true});
    let file = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "a", "pluginConfig": own}, {"schedulerName": "b"}],
        "extenders": [
            {"urlPrefix": "u", "managedResources": [ignored("a.com/x"), {"name": "a.com/y"}]},
            {"urlPrefix": "v", "ignorable": true, "managedResources": [ignored("a.com/z")]},
        ],
    });
    let gates = kube_scheduler::config::FeatureGates::default();
    let mut config = Config::parse(file.to_string().as_bytes(), &gates, registry().catalog()).expect("a configuration");
    let outcome = kube_scheduler::extender::build(&mut config, ignore_resources).map(|extenders| extenders.len());
    assert_eq!(outcome, Ok(2));
    for profile in &config.profiles {
        let args = profile.args("NodeResourcesFit").get::<NodeResourcesFitArgs>().expect("the plugin has arguments");
        assert_eq!(args.ignored_resources, ["a.com/x", "a.com/z"], "{}", profile.scheduler_name);
    }
    config.profiles[1].plugin_config.clear();
    let error =
        kube_scheduler::extender::build(&mut config, ignore_resources).err().expect("there is nothing to put it into");
    assert_eq!(error.to_string(), "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config");
}

#[test]
fn an_extender_binds_instead_of_the_scheduler() {
    let server = std::sync::Arc::new(std::sync::OnceLock::<kube_scheduler::apiserver::ApiServer>::new());
    let of_hook = server.clone();
    let hook = webhook(move |asked| {
        let body = &asked.body;
        let binding = json!({
            "metadata": {"name": body["PodName"], "uid": body["PodUID"]},
            "target": {"kind": "Node", "name": body["Node"]},
        });
        let server = of_hook.get().expect("it was set");
        let namespace = body["PodNamespace"].as_str().expect("a namespace");
        Reply::Json(match server.bind(namespace, &binding) {
            Ok(()) => json!({}),
            Err(status) => json!({"Error": status.message}),
        })
    });
    let mut world = world([]).configured(at(&hook, json!({"bindVerb": "bind"}))).start();
    assert!(server.set(world.server.clone()).is_ok(), "it is set once");
    world.nodes(["a"]).pod(pod("p")).schedule();
    wait_until(|| {
        world.settle();
        !world.events().is_empty()
    });
    assert_eq!(world.node_of("p"), "a");
    assert!(world.take_writes().is_empty(), "the scheduler posts no binding");
    assert_eq!(world.events(), ["Normal Scheduled/Binding p: Successfully assigned default/p to a"]);
    let uid = world.held("p")["metadata"]["uid"].clone();
    let expected = json!({"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": "a"});
    assert_eq!(hook.take()[0].body, expected);
}

#[test]
fn extender_without_verbs_gets_no_requests() {
    let hook = webhook(|_| Reply::Code(500));
    let mut world = world([]).configured(at(&hook, json!({}))).start();
    world.nodes(["a", "b"]).pod(pod("p")).schedule();
    assert_ne!(world.node_of("p"), "");
    assert!(hook.take().is_empty());
}

#[test]
fn pods_are_signed_only_without_extenders() {
    let signature = |builder: crate::world::WorldBuilder| {
        let mut world = builder.in_tree(&["NodeName"]).start();
        let _ = world.nodes(["a"]);
        world.engine.profiles[0].sign_pod(&pod("p").info())
    };
    assert!(signature(world([])).is_some());
    assert_eq!(signature(world([]).configured(json!({"urlPrefix": "http://localhost"}))), None);
}
