//! Plugin names as small numbers, and sets of them.

use std::collections::HashMap;
use std::sync::Arc;

/// A plugin's number in the queue, the same in all profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PluginId(u32);

/// How many plugins the first word of a set holds: more than are in tree.
const INLINE: u32 = u128::BITS;

/// A set of plugins. The first 128 take no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PluginSet {
    low: u128,
    /// The plugins from 128 on, 128 a word, without trailing zeros.
    rest: Vec<u128>,
}

/// Names and numbers of plugins: those of the profiles first, then any other name that a pod was rejected with.
#[derive(Debug, Default)]
pub(super) struct PluginNames {
    ids: HashMap<Arc<str>, PluginId>,
    names: Vec<Arc<str>>,
}

impl PluginSet {
    pub(super) fn insert(&mut self, plugin: PluginId) {
        let bit = 1 << (plugin.0 % INLINE);
        match (plugin.0 / INLINE) as usize {
            0 => self.low |= bit,
            word => {
                if self.rest.len() < word {
                    self.rest.resize(word, 0);
                }
                self.rest[word - 1] |= bit;
            }
        }
    }

    pub(super) fn contains(&self, plugin: PluginId) -> bool {
        let word = match (plugin.0 / INLINE) as usize {
            0 => self.low,
            word => self.rest.get(word - 1).copied().unwrap_or(0),
        };
        word >> (plugin.0 % INLINE) & 1 == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.low == 0 && self.rest.is_empty()
    }

    pub(super) fn intersects(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.rest.iter().zip(&other.rest).any(|(a, b)| a & b != 0)
    }

    /// The plugins, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = PluginId> {
        (0..).zip(std::iter::once(self.low).chain(self.rest.iter().copied())).flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(PluginId(at * INLINE + bit))
            })
        })
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
    /// The number of `name`, which it has from now on.
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
    fn sets_beyond_the_first_word() {
        let numbers = [0, 5, 127, 128, 129, 300];
        let set: PluginSet = numbers.into_iter().map(PluginId).collect();
        assert_eq!(set.iter().map(|plugin| plugin.0).collect::<Vec<_>>(), numbers);
        for number in 0..400 {
            assert_eq!(set.contains(PluginId(number)), numbers.contains(&number), "{number}");
        }
        let check = |number: u32, expected: bool| {
            let other = PluginSet::from_iter([PluginId(number)]);
            assert_eq!((set.intersects(&other), other.intersects(&set)), (expected, expected), "{number}");
        };
        check(5, true);
        check(6, false);
        check(300, true);
        check(301, false);
        check(900, false);
        assert!(PluginSet::default().is_empty() && !set.is_empty());
        assert!(!PluginSet::from_iter([PluginId(128)]).is_empty());
    }

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = PluginNames::default();
        let a = names.intern(&Arc::from("a"));
        let b = names.intern(&Arc::from("b"));
        assert_ne!(a, b);
        assert_eq!(names.intern(&Arc::from("a")), a);
        assert_eq!(&**names.name(b), "b");
    }
}
