//! The plugins known to a configuration: the default set, and the types of arguments.

use std::collections::BTreeMap;

use super::any_args::ArgsType;
use super::gates::{FeatureGates, Gate};
use super::types::{Plugin, PluginSet, Plugins};

/// The parts of a plugin registry that configurations depend on. Each registry has one.
#[derive(Clone, Debug, Default)]
pub struct PluginCatalog {
    defaults: Vec<DefaultPlugin>,
    args: BTreeMap<String, ArgsType>,
}

/// A plugin of the default set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPlugin {
    /// Name of the default plugin.
    pub name: String,
    /// Weight of the plugin's scores. 0 means that no weight is set, and counts as 1 when scores are summed.
    pub weight: i32,
    /// The gate that must be on for the plugin to be in the default set, if any.
    pub gate: Option<Gate>,
}

impl PluginCatalog {
    /// Adds a plugin to the end of the default set. Plugins run in this order at each point.
    pub fn add_default(&mut self, plugin: DefaultPlugin) {
        self.defaults.push(plugin);
    }

    /// Sets the type of a plugin's arguments.
    pub fn add_args(&mut self, plugin: impl Into<String>, args: ArgsType) {
        self.args.insert(plugin.into(), args);
    }

    /// The type of a plugin's arguments, if it has one.
    pub(super) fn args_of(&self, plugin: &str) -> Option<&ArgsType> {
        self.args.get(plugin)
    }

    /// The type of arguments that has this kind.
    pub(super) fn kind(&self, kind: &str) -> Option<&ArgsType> {
        self.args.values().find(|args| args.kind() == kind)
    }

    /// The default plugin set: all plugins whose gates are on, in `multiPoint`.
    pub(super) fn default_plugins(&self, gates: &FeatureGates) -> Plugins {
        let is_in = |plugin: &&DefaultPlugin| plugin.gate.is_none_or(|gate| gates.enabled(gate));
        let entry = |plugin: &DefaultPlugin| Plugin::new(&*plugin.name).weighted(plugin.weight);
        let enabled = self.defaults.iter().filter(is_in).map(entry).collect();
        Plugins::from_multi_point(PluginSet { enabled, disabled: Vec::new() })
    }
}
