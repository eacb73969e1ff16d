//! The table, and what the plugins' own tests share.

pub(crate) mod harness;

use super::*;
use crate::config::{Config, ExtensionPoint, FeatureGates};

#[test]
fn every_name_is_registered_once_and_by_itself() {
    assert!(IN_TREE.is_sorted_by(|(a, _), (b, _)| a < b));
    assert!(registry().names().eq(IN_TREE.iter().map(|(name, _)| *name)));
}

/// Names at a point of the default profile, in running order. Each has to have the point, or expansion leaves it out.
fn default_order(point: ExtensionPoint) -> String {
    let config = Config::defaults(&FeatureGates::default());
    let profile = &config.profiles[0];
    let handle = harness::handle(FeatureGates::default());
    let registry = registry();
    let expanded = crate::config::expand(profile, &|name, point| {
        let factory = registry.get(name)?;
        let registration = factory(profile.args(name).clone(), &handle).expect("defaults are fine");
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
