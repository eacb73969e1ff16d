//! A plugin from outside has the kinds watched that its factory asks for, whatever else is enabled.

use k8s_openapi::api::core::v1::Service;
use kube_scheduler::listers::Lister;
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
