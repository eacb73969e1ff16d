//! The in-tree plugins, one file (or folder) each, and the one table that lists them.
//!
//! A file ends in a `factory`, which builds the plugin for one profile and hands it over as what it registers as. What a
//! pod brings along is compiled once a cycle, in `PreFilter` or `PreScore`; per node nothing is allocated. Plugins that are
//! not built yet stand in their places as `unsupported` ones.

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
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use crate::framework::{Handle, PluginArgs, PluginError, Registration, Registry};

/// Builds a plugin for one profile.
type Factory = fn(PluginArgs, &Handle) -> Result<Registration, PluginError>;

/// Every in-tree plugin. Follows `pkg/scheduler/framework/plugins/registry.go#NewInTreeRegistry @v1.36.3`.
const IN_TREE: [(&str, Factory); 23] = [
    (default_binder::NAME, default_binder::factory),
    (default_preemption::NAME, default_preemption::factory),
    (dynamic_resources::NAME, dynamic_resources::factory),
    (gang_scheduling::NAME, gang_scheduling::factory),
    (image_locality::NAME, image_locality::ImageLocality::factory),
    (inter_pod_affinity::NAME, inter_pod_affinity::factory),
    (node_affinity::NAME, node_affinity::factory),
    (node_declared_features::NAME, node_declared_features::factory),
    (node_name::NAME, node_name::factory),
    (node_ports::NAME, node_ports::factory),
    (node_resources::BALANCED_ALLOCATION, node_resources::BalancedAllocation::factory),
    (node_resources::FIT, node_resources::Fit::factory),
    (node_unschedulable::NAME, node_unschedulable::factory),
    (node_volume_limits::NAME, node_volume_limits::factory),
    (pod_group_pods_count::NAME, pod_group_pods_count::factory),
    (pod_topology_spread::NAME, pod_topology_spread::factory),
    (priority_sort::NAME, priority_sort::factory),
    (scheduling_gates::NAME, scheduling_gates::factory),
    (taint_toleration::NAME, taint_toleration::factory),
    (topology_placement_generator::NAME, topology_placement_generator::factory),
    (volume_binding::NAME, volume_binding::factory),
    (volume_restrictions::NAME, volume_restrictions::factory),
    (volume_zone::NAME, volume_zone::factory),
];

/// A registry of all in-tree plugins, to which others may be added. Every name is registered whatever the feature gates
/// say; a plugin asks its [`Handle`] for them.
///
/// # Panics
///
/// If a name stands in the table twice, which a test rules out.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    for (name, factory) in IN_TREE {
        registry.register(name, factory).expect("names in the table differ");
    }
    registry
}

#[cfg(test)]
mod tests;
