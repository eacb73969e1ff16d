//! The factories of all in-tree and out-of-tree plugins, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Handle, PluginError, Registration};
use crate::config::{AnyArgs, ArgsType, DefaultPlugin, FactoryArgs, Gate, PluginCatalog};

/// Builds a plugin for one profile from its arguments in the configuration.
pub type PluginFactory = Arc<dyn Fn(&AnyArgs, &Handle) -> Result<Registration, PluginError> + Send + Sync>;

/// Error for a plugin name that is already registered. Follows
/// `pkg/scheduler/framework/runtime/registry.go#Registry.Register @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plugin named {0} already exists")]
pub struct DuplicatePlugin(String);

/// A plugin to register: its name, its factory, the type of its arguments, and its place in the default set.
#[derive(Clone)]
#[must_use]
pub struct PluginEntry {
    name: String,
    factory: PluginFactory,
    args: Option<ArgsType>,
    default: Option<DefaultPlugin>,
}

impl PluginEntry {
    /// Creates an entry for a plugin outside the default set. The type of its arguments is the type of the factory's first
    /// parameter.
    pub fn new<A: FactoryArgs>(
        name: impl Into<String>,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError> + Send + Sync + 'static,
    ) -> Self {
        let build = move |args: &AnyArgs, handle: &Handle| factory(A::from_config(args)?, handle);
        Self { name: name.into(), factory: Arc::new(build), args: A::args_type(), default: None }
    }

    /// Adds the plugin to the default set, after the plugins registered before it.
    pub fn by_default(mut self) -> Self {
        self.default = Some(DefaultPlugin { name: self.name.clone(), weight: 0, gate: None });
        self
    }

    /// Adds the plugin to the default set, with a weight.
    pub fn weighted(self, weight: i32) -> Self {
        let mut entry = self.by_default();
        entry.default = entry.default.map(|default| DefaultPlugin { weight, ..default });
        entry
    }

    /// Removes the plugin from the default set while the gate is disabled.
    pub fn gated(mut self, gate: Gate) -> Self {
        self.default = self.default.map(|default| DefaultPlugin { gate: Some(gate), ..default });
        self
    }
}

/// The factories of all plugins, by name, with the catalog that the configuration is read with.
#[derive(Clone, Default)]
pub struct Registry {
    factories: BTreeMap<String, PluginFactory>,
    catalog: PluginCatalog,
}

impl Registry {
    /// Registers a plugin outside the default set. The type of its arguments is the type of the factory's first parameter.
    pub fn register<A: FactoryArgs>(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError> + Send + Sync + 'static,
    ) -> Result<(), DuplicatePlugin> {
        self.add(PluginEntry::new(name, factory))
    }

    /// Adds a plugin to the registry.
    pub fn add(&mut self, entry: PluginEntry) -> Result<(), DuplicatePlugin> {
        let PluginEntry { name, factory, args, default } = entry;
        if self.factories.contains_key(&name) {
            return Err(DuplicatePlugin(name));
        }
        if let Some(args) = args {
            self.catalog.add_args(&*name, args);
        }
        if let Some(default) = default {
            self.catalog.add_default(default);
        }
        self.factories.insert(name, factory);
        Ok(())
    }

    /// Returns the factory of the plugin with this name.
    pub fn get(&self, name: &str) -> Option<&PluginFactory> {
        self.factories.get(name)
    }

    /// Iterates over all plugin names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    /// Returns the default set and the argument types, which are needed to read a configuration.
    pub fn catalog(&self) -> &PluginCatalog {
        &self.catalog
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl fmt::Debug for PluginEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PluginEntry({})", self.name)
    }
}
