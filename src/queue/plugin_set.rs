//! Plugin names as small numbers, and sets of these.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::IndexSet;

/// Number of a plugin in the queue, the same in all profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PluginId(u32);

/// A set of plugin numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PluginSet(IndexSet);

/// Names and numbers of plugins: first the profiles' plugins, then any other names of rejecting plugins.
#[derive(Debug, Default)]
pub(super) struct PluginNames {
    ids: HashMap<Arc<str>, PluginId>,
    names: Vec<Arc<str>>,
}

impl PluginSet {
    pub(super) fn insert(&mut self, plugin: PluginId) {
        self.0.insert(plugin.0 as usize);
    }

    pub(super) fn contains(&self, plugin: PluginId) -> bool {
        self.0.contains(plugin.0 as usize)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn intersects(&self, other: &Self) -> bool {
        self.0.intersects(&other.0)
    }

    /// Returns the plugins in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = PluginId> {
        // Numbers come from `PluginId`s, so they fit.
        self.0.iter().filter_map(|index| u32::try_from(index).ok().map(PluginId))
    }
}

impl FromIterator<PluginId> for PluginSet {
    fn from_iter<I: IntoIterator<Item = PluginId>>(plugins: I) -> Self {
        let mut set = Self::default();
        plugins.into_iter().for_each(|plugin| set.insert(plugin));
        set
    }
}

impl PluginNames {
    /// Returns the number of `name`, which is assigned at the first call.
    pub(super) fn intern(&mut self, name: &Arc<str>) -> PluginId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = PluginId(u32::try_from(self.names.len()).expect("there are not that many plugins"));
        self.names.push(name.clone());
        self.ids.insert(name.clone(), id);
        id
    }

    pub(super) fn name(&self, plugin: PluginId) -> &Arc<str> {
        &self.names[plugin.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interned_names_keep_their_number() {
        let mut names = PluginNames::default();
        let a = names.intern(&Arc::from("a"));
        let b = names.intern(&Arc::from("b"));
        assert_ne!(a, b);
        assert_eq!(names.intern(&Arc::from("a")), a);
        assert_eq!(&**names.name(b), "b");
    }
}
