//! The plugins that configurations are read with: the default set, and the types of their arguments.

use std::collections::BTreeMap;

use super::any_args::ArgsType;
use super::gates::{FeatureGates, Gate};
use super::types::{Plugin, PluginSet, Plugins};

/// The plugins of a scheduler, as far as its configuration depends on them. A registry of plugins has one.
#[derive(Clone, Debug, Default)]
pub struct PluginCatalog {
    defaults: Vec<DefaultPlugin>,
    args: BTreeMap<String, ArgsType>,
}

/// A plugin of the default set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultPlugin {
    /// The plugin's name.
    pub name: String,
    /// The weight of its scores; 0 for none, which counts as 1 where scores are weighed.
    pub weight: i32,
    /// The gate without which it is not in the set.
    pub gate: Option<Gate>,
}

impl PluginCatalog {
    /// Adds a plugin to the end of the default set. The order is that in which plugins run at each point.
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

    /// The type of arguments with this kind.
    pub(super) fn kind(&self, kind: &str) -> Option<&ArgsType> {
        self.args.values().find(|args| args.kind() == kind)
    }

    /// The default plugin set: all in `multiPoint`, by the gates.
    pub(super) fn default_plugins(&self, gates: &FeatureGates) -> Plugins {
        let is_in = |plugin: &&DefaultPlugin| plugin.gate.is_none_or(|gate| gates.enabled(gate));
        let entry = |plugin: &DefaultPlugin| Plugin::new(&*plugin.name).weighted(plugin.weight);
        let enabled = self.defaults.iter().filter(is_in).map(entry).collect();
        Plugins::from_multi_point(PluginSet { enabled, disabled: Vec::new() })
    }
}
