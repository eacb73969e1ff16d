//! The factories of all plugins, in-tree and from outside, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Handle, PluginArgs, PluginError, PluginFactory, Registration};

/// A name was registered twice. Follows `pkg/scheduler/framework/runtime/registry.go#Registry.Register @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plugin named {0} already exists")]
pub struct DuplicatePlugin(String);

/// The factories of all plugins, by name.
#[derive(Clone, Default)]
pub struct Registry(BTreeMap<String, PluginFactory>);

impl Registry {
    /// Adds a plugin's factory.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        factory: impl Fn(PluginArgs, &Handle) -> Result<Registration, PluginError> + Send + Sync + 'static,
    ) -> Result<(), DuplicatePlugin> {
        let name = name.into();
        if self.0.contains_key(&name) {
            return Err(DuplicatePlugin(name));
        }
        self.0.insert(name, Arc::new(factory));
        Ok(())
    }

    /// The factory of plugin `name`.
    pub fn get(&self, name: &str) -> Option<&PluginFactory> {
        self.0.get(name)
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
