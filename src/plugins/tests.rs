//! Tests of the table of in-tree plugins, and fixtures for the plugins' own tests.

mod args;

use std::sync::Arc;

use super::*;
use crate::config::{Config, ExtensionPoint, FeatureGates};
use crate::framework::Registration;
use crate::model::{EventObjects, Object};
use crate::testing::{handle, pod};

#[test]
fn plugin_names_are_sorted_and_unique() {
    let names: Vec<String> = registry().names().map(str::to_owned).collect();
    assert!(names.is_sorted_by(|a, b| a < b));
    assert_eq!(names.len(), in_tree().len());
}

/// Builds every plugin of the table, with the default feature gates and the default profile's arguments.
fn registrations() -> Vec<(String, Registration)> {
    let registry = registry();
    let config = Config::defaults(&FeatureGates::default(), registry.catalog());
    let handle = handle(FeatureGates::default());
    let build = |name: &str| {
        let factory = registry.get(name).expect("it is registered");
        (name.to_owned(), factory(config.profiles[0].args(name), &handle).expect("defaults are fine"))
    };
    registry.names().map(build).collect()
}

#[test]
fn plugin_names_equal_their_registered_names() {
    for (name, built) in registrations() {
        assert_eq!(built.name(), name);
        let Registration { bind, events, filter, normalize, permit, post_bind, post_filter, .. } = &built;
        let Registration { pre_bind, pre_enqueue, pre_filter, pre_score, queue_sort, reserve, score, sign, .. } =
            &built;
        let names = [
            bind.as_ref().map(|plugin| plugin.name()),
            events.as_ref().map(|plugin| plugin.name()),
            filter.as_ref().map(|plugin| plugin.name()),
            normalize.as_ref().map(|plugin| plugin.name()),
            permit.as_ref().map(|plugin| plugin.name()),
            post_bind.as_ref().map(|plugin| plugin.name()),
            post_filter.as_ref().map(|plugin| plugin.name()),
            pre_bind.as_ref().map(|plugin| plugin.name()),
            pre_enqueue.as_ref().map(|plugin| plugin.name()),
            pre_filter.as_ref().map(|plugin| plugin.name()),
            pre_score.as_ref().map(|plugin| plugin.name()),
            queue_sort.as_ref().map(|plugin| plugin.name()),
            reserve.as_ref().map(|plugin| plugin.name()),
            score.as_ref().map(|plugin| plugin.name()),
            sign.as_ref().map(|plugin| plugin.name()),
        ];
        assert!(names.into_iter().flatten().all(|own| own == name), "{name}: {names:?}");
    }
}

#[test]
fn plugins_implement_sign_normalize_and_events_as_upstream() {
    let names = |has: fn(&Registration) -> bool| {
        let registrations = registrations();
        let names = registrations.iter().filter(|(_, built)| has(built)).map(|(name, _)| name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    let found = [
        names(|built| built.sign.is_some()),
        names(|built| built.normalize.is_some()),
        names(|built| built.events.is_some()),
    ];
    let expected = [
        "DynamicResources ImageLocality InterPodAffinity NodeAffinity NodeDeclaredFeatures NodeName NodePorts \
         NodeResourcesBalancedAllocation NodeResourcesFit NodeUnschedulable NodeVolumeLimits PodTopologySpread \
         TaintToleration VolumeBinding VolumeRestrictions VolumeZone",
        "DynamicResources InterPodAffinity NodeAffinity PodTopologySpread TaintToleration",
        "DefaultPreemption DynamicResources GangScheduling InterPodAffinity NodeAffinity NodeDeclaredFeatures NodeName \
         NodePorts NodeResourcesFit NodeUnschedulable NodeVolumeLimits PodTopologySpread SchedulingGates TaintToleration \
         VolumeBinding VolumeRestrictions VolumeZone",
    ];
    assert_eq!(found, expected);
}

/// Returns the plugins at an extension point of the default profile, in running order. Fails if one of them does not implement
/// the point.
fn default_order(point: ExtensionPoint) -> String {
    let registry = registry();
    let config = Config::defaults(&FeatureGates::default(), registry.catalog());
    let profile = &config.profiles[0];
    let handle = handle(FeatureGates::default());
    let expanded = crate::config::expand(profile, &|name, point| {
        let factory = registry.get(name)?;
        let registration = factory(profile.args(name), &handle).expect("defaults are fine");
        Some(registration.implements(point))
    });
    let names: Vec<String> =
        expanded.expect("defaults expand").point(point).iter().map(|plugin| plugin.name.clone()).collect();
    names.join(" ")
}

#[test]
fn default_profile_runs_in_upstreams_order() {
    let check = |point, expected: &str| assert_eq!(default_order(point), expected, "{point:?}");
    check(ExtensionPoint::PreEnqueue, "SchedulingGates DynamicResources DefaultPreemption");
    check(ExtensionPoint::QueueSort, "PrioritySort");
    let after_ports = "NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread \
                       InterPodAffinity DynamicResources NodeDeclaredFeatures";
    check(ExtensionPoint::PreFilter, &format!("NodeAffinity NodePorts {after_ports}"));
    check(
        ExtensionPoint::Filter,
        &format!("NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts {after_ports}"),
    );
    check(ExtensionPoint::PostFilter, "DynamicResources DefaultPreemption");
    check(
        ExtensionPoint::PreScore,
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity \
         NodeResourcesBalancedAllocation",
    );
    check(
        ExtensionPoint::Score,
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity \
         DynamicResources NodeResourcesBalancedAllocation ImageLocality",
    );
    check(ExtensionPoint::Reserve, "VolumeBinding DynamicResources");
    check(ExtensionPoint::Permit, "");
    check(ExtensionPoint::PreBind, "VolumeBinding DynamicResources");
    check(ExtensionPoint::Bind, "DefaultBinder");
    check(ExtensionPoint::PostBind, "");
}

#[test]
fn hints_fail_on_objects_of_another_kind() {
    let registry = registry();
    let config = Config::defaults(&FeatureGates::default(), registry.catalog());
    let handle = handle(FeatureGates::default());
    let objects = EventObjects { old: None, new: Some(Object::Other(Arc::new(1_u8))) };
    // The hint of `DefaultPreemption` does not read the objects.
    let looking = [
        (inter_pod_affinity::NAME, 2),
        (node_affinity::NAME, 1),
        (node_declared_features::NAME, 2),
        (node_ports::NAME, 1),
        (node_resources::FIT, 3),
        (node_unschedulable::NAME, 2),
        (pod_topology_spread::NAME, 2),
        (scheduling_gates::NAME, 1),
        (taint_toleration::NAME, 2),
    ];
    for (name, hints) in looking {
        let factory = registry.get(name).expect("it is in the table");
        let registration = factory(config.profiles[0].args(name), &handle).expect("defaults are fine");
        let events = registration.events.expect("it registers events").events_to_register().expect("they are fine");
        let failing = events.iter().filter_map(|registered| registered.hint.as_ref());
        let failing = failing.filter(|hint| hint(&pod("p").info(), &objects).is_err());
        assert_eq!(failing.count(), hints, "{name}");
    }
}

#[test]
fn default_set_follows_the_gates() {
    let registry = registry();
    let names = |gates: &FeatureGates| -> Vec<String> {
        let config = Config::defaults(gates, registry.catalog());
        config.profiles[0].plugins.multi_point.enabled.iter().map(|plugin| plugin.name.clone()).collect()
    };
    let default = names(&FeatureGates::default());
    assert_eq!(default[14], "DynamicResources");
    assert_eq!(default[15], "DefaultPreemption");
    assert_eq!(default.last().map(String::as_str), Some("NodeDeclaredFeatures"));
    assert_eq!(default.len(), 20);
    let gates = FeatureGates::default()
        .with(Gate::NodeDeclaredFeatures, false)
        .with(Gate::GangScheduling, true)
        .with(Gate::TopologyAwareWorkloadScheduling, true);
    assert_eq!(names(&gates)[19..], ["GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"]);
}
