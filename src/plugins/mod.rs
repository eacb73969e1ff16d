//! The in-tree plugins, one file or folder each, and the table that lists them.
//!
//! Each file has a `factory`, which builds the plugin for one profile and returns it with the extension points that it
//! registers for. The type of the plugin's arguments, with defaults and validation, is in the same file or folder. A plugin
//! compiles the pod's fields once per cycle, in `PreFilter` or `PreScore`, and does not allocate per node. Plugins that are not
//! implemented yet are registered as `unsupported` plugins.

pub mod admission;
pub mod default_binder;
pub mod default_preemption;
pub mod dynamic_resources;
mod event;
pub mod gang_scheduling;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod json;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_name;
pub mod node_ports;
pub mod node_resources;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod normalize;
pub mod pod_group_pods_count;
pub mod pod_topology_spread;
pub mod priority_sort;
pub mod scheduling_gates;
pub mod taint_toleration;
pub mod topology_placement_generator;
mod unsupported;
pub mod utilization;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use crate::config::Gate;
use crate::framework::{PluginEntry, Registry};

/// All in-tree plugins, in the order of the default set, each with its score weight and the feature gate that adds it to the
/// set. The type of a plugin's arguments is the type of its factory's first parameter.
/// Follows `pkg/scheduler/framework/plugins/registry.go#NewInTreeRegistry` and
/// `pkg/scheduler/apis/config/v1/default_plugins.go#getDefaultPlugins`, `#applyFeatureGates @v1.36.3`.
fn in_tree() -> [PluginEntry; 23] {
    [
        PluginEntry::new(scheduling_gates::NAME, scheduling_gates::factory).by_default(),
        PluginEntry::new(priority_sort::NAME, priority_sort::factory).by_default(),
        PluginEntry::new(node_unschedulable::NAME, node_unschedulable::factory).by_default(),
        PluginEntry::new(node_name::NAME, node_name::factory).by_default(),
        PluginEntry::new(taint_toleration::NAME, taint_toleration::factory).weighted(3),
        PluginEntry::new(node_affinity::NAME, node_affinity::factory).weighted(2),
        PluginEntry::new(node_ports::NAME, node_ports::factory).by_default(),
        PluginEntry::new(node_resources::FIT, node_resources::Fit::factory).weighted(1),
        PluginEntry::new(volume_restrictions::NAME, volume_restrictions::factory).by_default(),
        PluginEntry::new(node_volume_limits::NAME, node_volume_limits::factory).by_default(),
        PluginEntry::new(volume_binding::NAME, volume_binding::factory).by_default(),
        PluginEntry::new(volume_zone::NAME, volume_zone::factory).by_default(),
        PluginEntry::new(pod_topology_spread::NAME, pod_topology_spread::factory).weighted(2),
        PluginEntry::new(inter_pod_affinity::NAME, inter_pod_affinity::factory).weighted(2),
        // Before preemption, since deallocating an idle claim is better than evicting a running pod.
        PluginEntry::new(dynamic_resources::NAME, dynamic_resources::factory)
            .weighted(2)
            .gated(Gate::DynamicResourceAllocation),
        PluginEntry::new(default_preemption::NAME, default_preemption::factory).by_default(),
        PluginEntry::new(node_resources::BALANCED_ALLOCATION, node_resources::BalancedAllocation::factory).weighted(1),
        PluginEntry::new(image_locality::NAME, image_locality::ImageLocality::factory).weighted(1),
        PluginEntry::new(default_binder::NAME, default_binder::factory).by_default(),
        PluginEntry::new(node_declared_features::NAME, node_declared_features::factory)
            .by_default()
            .gated(Gate::NodeDeclaredFeatures),
        PluginEntry::new(gang_scheduling::NAME, gang_scheduling::factory).by_default().gated(Gate::GangScheduling),
        PluginEntry::new(topology_placement_generator::NAME, topology_placement_generator::factory)
            .by_default()
            .gated(Gate::TopologyAwareWorkloadScheduling),
        PluginEntry::new(pod_group_pods_count::NAME, pod_group_pods_count::factory)
            .weighted(1)
            .gated(Gate::TopologyAwareWorkloadScheduling),
    ]
}

/// Returns a registry of all in-tree plugins, to which other plugins may be added. Every plugin is registered whatever the
/// feature gates are. A plugin gets the feature gates from its [`Handle`](crate::framework::Handle).
///
/// # Panics
///
/// Panics if two plugins in the table have the same name. A test ensures that all names differ.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for entry in in_tree() {
        registry.add(entry).expect("names in the table differ");
    }
    registry
}

#[cfg(test)]
pub(crate) mod tests;
