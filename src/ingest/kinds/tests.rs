//! Tests of the kinds that are watched for a profile, depending on its plugins and their events.

use super::*;
use crate::config::Config;
use crate::engine::ask_for_upstream_kinds;
use crate::framework::Framework;
use crate::plugins;
use crate::queue::{Queue, QueueOptions};

/// The plugins without which a profile is invalid.
const CORE: [&str; 2] = ["PrioritySort", "DefaultBinder"];

/// Checks the watched kinds of a profile with these plugins, and with these events registered in addition to the plugins' own.
#[track_caller]
fn check(enabled: &[&str], registered: &[EventResource], gates: &FeatureGates, expected: &str) {
    let names = CORE.iter().chain(enabled).map(|name| format!("{{name: {name}}}")).collect::<Vec<_>>().join(", ");
    let config = format!(
        "# YAML\n{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{{plugins: \
         {{multiPoint: {{enabled: [{names}], disabled: [{{name: '*'}}]}}}}}}]}}"
    );
    let registry = plugins::registry();
    let config = Config::parse(config.as_bytes(), gates, registry.catalog()).expect("the configuration is good");
    let parts = crate::testing::handle_parts(*gates);
    let listers = parts.listers.clone();
    ask_for_upstream_kinds(&listers, gates).expect("nothing is watched yet");
    let profile = Framework::new(&registry, &config.profiles[0], parts.clone()).expect("a profile");
    let queue = Queue::new(&[Arc::new(profile)], QueueOptions::default(), parts.clock.now()).expect("a queue");
    let mut events = queue.registered_events();
    events.extend(registered.iter().map(|resource| (resource.clone(), ActionType::ADD)));
    let watched = watched(&listers, &events, gates);
    let names: Vec<&str> = watched.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names.join(" "), expected);
    assert!(listers.ask::<k8s_openapi::api::core::v1::LimitRange>().is_err(), "the set is final");
}

#[test]
fn watched_kinds_are_those_requested_or_registered() {
    use EventResource as R;
    let always = "namespaces csinodes resourceclaims resourceslices deviceclasses pods";
    let default = FeatureGates::default();
    check(&[], &[], &default, &format!("nodes {always}"));
    check(&["NodeName", "InterPodAffinity"], &[R::Node, R::Pod, R::AssignedPod], &default, &format!("nodes {always}"));
    check(
        &["PodTopologySpread"],
        &[],
        &default,
        "nodes namespaces services replicationcontrollers replicasets statefulsets csinodes resourceclaims \
         resourceslices deviceclasses pods",
    );
    check(
        &["DefaultPreemption", "VolumeRestrictions"],
        &[R::StorageClass],
        &default,
        "nodes namespaces poddisruptionbudgets persistentvolumeclaims storageclasses csinodes resourceclaims \
         resourceslices deviceclasses pods",
    );
    check(
        &[],
        &[R::Other("foos.v1.example.com".into()), R::Other("bad.v1".into()), R::WildCard, R::PodGroup],
        &default,
        &format!("nodes foos.v1.example.com {always}"),
    );
    let workloads = default.with(Gate::GenericWorkload, true);
    let no_devices = default.with(Gate::DynamicResourceAllocation, false);
    check(&[], &[R::ResourceClaim], &no_devices, "nodes namespaces csinodes pods");
    check(&[], &[R::PodGroup], &workloads, &format!("nodes podgroups.v1alpha2.scheduling.k8s.io {always}"));
}

#[test]
fn volume_plugins_watch_the_same_kinds_as_upstream() {
    let devices = "resourceclaims resourceslices deviceclasses pods";
    let default = FeatureGates::default();
    let claims = "nodes namespaces persistentvolumes persistentvolumeclaims storageclasses csinodes";
    check(&["VolumeZone"], &[], &default, &format!("{claims} {devices}"));
    check(&["NodeVolumeLimits"], &[], &default, &format!("{claims} csidrivers volumeattachments {devices}"));
    check(&["VolumeBinding"], &[], &default, &format!("{claims} csidrivers csistoragecapacities {devices}"));
}
