//! Merges a user's plugin sets into the default sets.
//!
//! Follows `pkg/scheduler/apis/config/v1/default_plugins.go @v1.36.3`.

use std::collections::{BTreeMap, BTreeSet};

use super::types::{ExtensionPoint, Plugin, PluginSet, Plugins};

/// Merges the user's plugins into `defaults`, set by set.
pub(super) fn merge(defaults: Plugins, user: Option<Plugins>) -> Plugins {
    let Some(mut user) = user else { return defaults };
    let mut merged = defaults;
    merged.multi_point = merge_set(std::mem::take(&mut merged.multi_point), user.multi_point.clone());
    for point in ExtensionPoint::ALL {
        let defaults = std::mem::take(merged.point_mut(point));
        *merged.point_mut(point) = merge_set(defaults, std::mem::take(user.point_mut(point)));
    }
    merged
}

fn merge_set(defaults: PluginSet, user: PluginSet) -> PluginSet {
    let disabled: Vec<Plugin> =
        user.disabled.into_iter().chain(defaults.disabled).map(|plugin| Plugin::new(plugin.name)).collect();
    let dropped: BTreeSet<&str> = disabled.iter().map(|plugin| plugin.name.as_str()).collect();
    // If several entries have the same name, the last one replaces the default. The others stay in the list, so that building
    // the profile reports the repetition.
    let by_name: BTreeMap<&str, usize> =
        user.enabled.iter().enumerate().map(|(at, plugin)| (plugin.name.as_str(), at)).collect();
    let mut replacing = BTreeSet::new();
    let mut enabled = Vec::new();
    if !dropped.contains("*") {
        for default in defaults.enabled {
            if dropped.contains(default.name.as_str()) {
                continue;
            }
            match by_name.get(default.name.as_str()) {
                Some(at) => {
                    replacing.insert(*at);
                    enabled.push(user.enabled[*at].clone());
                }
                None => enabled.push(default),
            }
        }
    }
    let appended = user.enabled.iter().enumerate().filter(|(at, _)| !replacing.contains(at));
    enabled.extend(appended.map(|(_, plugin)| plugin.clone()));
    PluginSet { enabled, disabled }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a set from names, `name=weight`, and `-name` for disabled plugins.
    fn set(text: &str) -> PluginSet {
        let mut set = PluginSet::default();
        for word in text.split_whitespace() {
            if let Some(name) = word.strip_prefix('-') {
                set.disabled.push(Plugin::new(name));
            } else {
                let (name, weight) = word.split_once('=').unwrap_or((word, "0"));
                set.enabled.push(Plugin::new(name).weighted(weight.parse().expect("a weight")));
            }
        }
        set
    }

    fn check(defaults: &str, user: &str, expected: &str) {
        assert_eq!(merge_set(set(defaults), set(user)), set(expected), "{defaults:?} with {user:?}");
    }

    #[test]
    fn user_set_merges_into_default_set() {
        check("A B=2 C", "", "A B=2 C");
        check("A B=2 C", "-B", "A C -B");
        check("A B=2 C", "-* X", "X -*");
        check("A B=2 C", "B=5 X", "A B=5 C X");
        check("A B=2 C", "-B B=5", "A C B=5 -B");
        check("A B -D", "-B", "A -B -D");
        check("A B=2 C", "B=5 B=6", "A B=6 C B=5");
        check("", "X=3 Y", "X=3 Y");
    }

    #[test]
    fn without_user_plugins_the_default_set_is_used() {
        let defaults = Plugins::from_multi_point(set("A B=2 C"));
        assert_eq!(merge(defaults.clone(), None), defaults);
    }
}
