//! A plugin from outside has the kinds watched that its factory asks for, whatever else is enabled.

use std::sync::Arc;

use http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::api::DynamicObject;
use kube_scheduler::framework::{
    CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin, Handle, NodeRef, Plugin, PluginError,
    Registration, Scratch, Verdict,
};
use kube_scheduler::listers::{Kind, Lister};
use kube_scheduler::model::{ActionType, ClusterEvent, EventResource};
use kube_scheduler::plugins;
use libtest_mimic::Failed;
use serde_json::json;

use crate::support::cluster::ControlPlane;
use crate::support::schedulers::{Ours, Scheduler as _};
use crate::support::stage::{Stage, on_stage};

#[allow(dead_code, unreachable_pub, unused_imports, reason = "an example is a library, with tests of its own")]
#[path = "../../examples/selector_spread.rs"]
mod selector_spread;

/// `SelectorSpread` reads services, which no other plugin of its profile has watched.
pub(crate) fn a_plugin_from_outside_reads_services() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let mut registry = plugins::registry();
    registry.register(selector_spread::NAME, selector_spread::factory).map_err(|error| error.to_string())?;
    let enabled =
        ["PrioritySort", "NodeName", "NodeAffinity", "NodeResourcesFit", "DefaultBinder", selector_spread::NAME];
    let enabled = enabled.map(|name| json!({"name": name, "weight": 1}));
    let plugins = json!({"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}});
    let profiles = json!([{"schedulerName": "default-scheduler", "plugins": plugins}]);
    let mut ours = Ours::start_with(&plane, registry, json!({"parallelism": 1, "profiles": profiles}))?;
    let watched = ours.watched().to_owned();
    let services = ours.services()?;
    on_stage(&plane, &mut ours, "needs", |stage| pods_of_a_service_are_kept_apart(stage, &services))?;
    ours.stop()?;
    plane.remove()?;
    let expected = "csinodes.storage.k8s.io,deviceclasses.resource.k8s.io,namespaces,nodes,pods,replicasets.apps,\
                    replicationcontrollers,resourceclaims.resource.k8s.io,resourceslices.resource.k8s.io,services,\
                    statefulsets.apps";
    if watched == expected { Ok(()) } else { Err(format!("watched are {watched}").into()) }
}

/// One large node and one that is small and nearly full: without the service both pods would go to the same node.
fn pods_of_a_service_are_kept_apart(stage: &mut Stage<'_>, services: &Lister<Service>) -> Result<(), String> {
    stage.known_node("a", "8", &json!({}))?;
    stage.create(
        "services",
        &json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        }),
    )?;
    stage.wait("the service to be seen", |stage| Ok(services.get_in(&stage.namespace, "web")))?;
    let labels = || json!({"metadata": {"labels": {"app": "web"}}});
    stage.pod("first", "1", labels())?;
    stage.wait_bound("first", "a")?;
    stage.known_node("b", "2", &json!({}))?;
    stage.pod("second", "1", labels())?;
    stage.wait_bound("second", "b")
}

/// Resource of the custom objects that keep pods from nodes, as RBAC rules name it.
const MAINTENANCES: &str = "maintenances.ops.example.com";

/// Definition of [`MAINTENANCES`]. An object has the name of the node that is under maintenance.
const DEFINITION: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "maintenances.ops.example.com"},
    "spec": {
        "group": "ops.example.com", "scope": "Cluster",
        "names": {"kind": "Maintenance", "singular": "maintenance", "plural": "maintenances"},
        "versions": [{
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}
        }]
    }
}"#;

fn kind() -> Kind {
    Kind::new("ops.example.com", "v1", "maintenances")
}

/// The reason for rejecting a node.
const UNDER_MAINTENANCE: &str = "node(s) were under maintenance";

/// Rejects nodes for which a custom object exists.
#[derive(Debug)]
struct Maintenances(Lister<DynamicObject>);

impl Maintenances {
    fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
        let plugin = Arc::new(Self(handle.dynamic_lister(kind())?));
        Ok(Registration::new("Maintenances").events(&plugin).filter(&plugin))
    }
}

impl Plugin for Maintenances {
    fn name(&self) -> &'static str {
        "Maintenances"
    }
}

impl FilterPlugin for Maintenances {
    fn filter(&self, _: &CycleContext<'_>, node: NodeRef<'_>, _: &mut Scratch) -> Result<Verdict, PluginError> {
        let exists = self.0.get(node.name()).is_some();
        Ok(if exists { Verdict::unresolvable(UNDER_MAINTENANCE) } else { Verdict::Pass })
    }
}

impl EnqueueExtensions for Maintenances {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let resource = EventResource::Other("maintenances.v1.ops.example.com".into());
        Ok(vec![EventRegistration::new(ClusterEvent::new(resource, ActionType::DELETE))])
    }
}

/// A plugin reads custom objects that have no Rust type, and the deletion of one moves the pod that it kept pending. The
/// scheduler may list and watch them by a role of the resource that it says it watches.
pub(crate) fn a_plugin_from_outside_reads_custom_objects() -> Result<(), Failed> {
    let plane = ControlPlane::start()?;
    let definition = plane.folder().join("maintenances.json");
    std::fs::write(&definition, DEFINITION).map_err(|error| error.to_string())?;
    plane.kubectl(&["apply", "-f", &definition.to_string_lossy()])?;
    plane.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", &format!("crd/{MAINTENANCES}")])?;
    let resource = format!("--resource={MAINTENANCES}");
    plane.kubectl(&["create", "clusterrole", "maintenances", "--verb=list,watch", &resource])?;
    let user = "--user=system:kube-scheduler";
    plane.kubectl(&["create", "clusterrolebinding", "maintenances", "--clusterrole=maintenances", user])?;
    let mut registry = plugins::registry();
    registry.register("Maintenances", Maintenances::factory).map_err(|error| error.to_string())?;
    let plugins = json!({"multiPoint": {"enabled": [{"name": "Maintenances"}]}});
    let profiles = json!([{"schedulerName": "default-scheduler", "plugins": plugins}]);
    let mut ours = Ours::start_with(&plane, registry, json!({"parallelism": 1, "profiles": profiles}))?;
    if !ours.watched().split(',').any(|resource| resource == MAINTENANCES) {
        return Err(format!("{MAINTENANCES} is not among the watched resources {}", ours.watched()).into());
    }
    let maintenances = ours.custom_objects(kind())?;
    on_stage(&plane, &mut ours, "custom", |stage| nodes_under_maintenance_get_no_pods(stage, &maintenances))?;
    ours.stop()?;
    plane.remove()?;
    Ok(())
}

fn nodes_under_maintenance_get_no_pods(
    stage: &mut Stage<'_>,
    maintenances: &Lister<DynamicObject>,
) -> Result<(), String> {
    let path = "/apis/ops.example.com/v1/maintenances";
    let object = json!({"apiVersion": "ops.example.com/v1", "kind": "Maintenance", "metadata": {"name": "a"}});
    stage.send(Method::POST, path, &object)?;
    stage.wait("the custom object to be seen", |_| Ok(maintenances.get("a")))?;
    stage.node("a", "8", &json!({}))?;
    stage.pod("first", "1", json!({}))?;
    stage.wait_refused("first", UNDER_MAINTENANCE)?;
    stage.send(Method::DELETE, &format!("{path}/a"), &json!({}))?;
    stage.wait_bound("first", "a")
}
