//! `MultiPoint` expansion: which plugins run at each point of a profile, in which order and with which weight.
//!
//! No code here knows a plugin: the caller says which plugin implements which point. Follows
//! `pkg/scheduler/framework/runtime/framework.go#NewFramework`, `#updatePluginList`, `#expandMultiPointPlugins` and
//! `#getValidScoreWeights @v1.36.3`.

use std::collections::{BTreeMap, BTreeSet};

use super::any_args::AnyArgs;
use super::types::{ExtensionPoint, Plugin, PluginSet, Profile};

/// The highest score that a plugin may give a node, before its weight is applied.
const MAX_SCORE: i64 = 100;

/// The error of a profile that cannot be built. The text is upstream's, without the prefix that names the profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExpandError(String);

/// A plugin at one extension point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedPlugin {
    /// Name of the plugin.
    pub name: String,
    /// Weight of the plugin's scores at Score and `PlacementScore` (never 0, but may be negative); 0 at other points.
    pub weight: i32,
}

/// The plugins at each point of a profile, in running order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpandedPlugins {
    points: [Vec<ExpandedPlugin>; ExtensionPoint::COUNT],
}

impl ExpandedPlugins {
    /// The plugins of one point, in running order.
    pub fn point(&self, point: ExtensionPoint) -> &[ExpandedPlugin] {
        &self.points[point as usize]
    }
}

/// Returns whether a plugin implements a point, or `None` if the plugin is not registered.
pub type Implements<'a> = &'a dyn Fn(&str, ExtensionPoint) -> Option<bool>;

/// Expands the plugin sets of `profile`. Errors have upstream's texts, to which callers add the prefix
/// `initializing profiles: creating profile for scheduler name <name>: `.
pub fn expand(profile: &Profile, implements: Implements<'_>) -> Result<ExpandedPlugins, ExpandError> {
    check_repeated_config(profile)?;
    let multi_point = &profile.plugins.multi_point.enabled;
    let mut expanded = ExpandedPlugins::default();
    for point in ExtensionPoint::BUILD_ORDER {
        check_specific(profile.plugins.point(point), point, implements)?;
    }
    for point in ExtensionPoint::BUILD_ORDER {
        let names = expand_point(profile.plugins.point(point), multi_point, point, implements)?;
        expanded.points[point as usize] =
            names.into_iter().map(|name| ExpandedPlugin { name: name.to_owned(), weight: 0 }).collect();
    }
    check_counts(&profile.scheduler_name, &expanded)?;
    for (point, prefix) in
        [(ExtensionPoint::Score, "score plugins"), (ExtensionPoint::PlacementScore, "placement score plugins")]
    {
        let weights = weights(&profile.plugins.point(point).enabled, multi_point, point, implements)
            .map_err(|error| ExpandError(format!("{prefix}: {error}")))?;
        for plugin in &mut expanded.points[point as usize] {
            plugin.weight = weights.get(plugin.name.as_str()).copied().unwrap_or(1);
        }
    }
    Ok(expanded)
}

fn check_repeated_config(profile: &Profile) -> Result<(), ExpandError> {
    let mut seen = BTreeSet::new();
    match profile.plugin_config.iter().find(|config| !seen.insert(config.name.as_str())) {
        Some(config) => Err(ExpandError(format!("repeated config for plugin {}", config.name))),
        None => Ok(()),
    }
}

/// Checks that every plugin enabled at a point is registered, implements the point, and is listed once.
fn check_specific(set: &PluginSet, point: ExtensionPoint, implements: Implements<'_>) -> Result<(), ExpandError> {
    let interface = point.interface();
    let mut seen = BTreeSet::new();
    for Plugin { name, .. } in &set.enabled {
        let error = match implements(name, point) {
            None => format!("{interface} \"{name}\" does not exist"),
            Some(false) => format!("plugin \"{name}\" does not extend {interface} plugin"),
            Some(true) if !seen.insert(name.as_str()) => {
                format!("plugin \"{name}\" already registered as \"{interface}\"")
            }
            Some(true) => continue,
        };
        return Err(ExpandError(error));
    }
    Ok(())
}

/// The names of the plugins at one point. First come those enabled both at the point and through multiPoint, in the point's
/// order. Then come those enabled only through multiPoint, and last those enabled only at the point.
fn expand_point<'a>(
    set: &'a PluginSet,
    multi_point: &'a [Plugin],
    point: ExtensionPoint,
    implements: Implements<'_>,
) -> Result<Vec<&'a str>, ExpandError> {
    let specific: Vec<&str> = set.enabled.iter().map(|plugin| plugin.name.as_str()).collect();
    let disabled: BTreeSet<&str> = set.disabled.iter().map(|plugin| plugin.name.as_str()).collect();
    if disabled.contains("*") {
        return Ok(specific);
    }
    let interface = point.interface();
    let mut from_multi_point: Vec<&str> = Vec::new();
    let mut overriding = BTreeSet::new();
    for Plugin { name, .. } in multi_point {
        let name = name.as_str();
        match implements(name, point) {
            None => return Err(ExpandError(format!("{interface} \"{name}\" does not exist"))),
            Some(false) => {}
            Some(true) if disabled.contains(name) => {}
            Some(true) if specific.contains(&name) => {
                overriding.insert(name);
            }
            Some(true) if from_multi_point.contains(&name) => {
                return Err(ExpandError(format!("plugin \"{name}\" already registered as \"{interface}\"")));
            }
            Some(true) => from_multi_point.push(name),
        }
    }
    let (mut names, rest): (Vec<&str>, Vec<&str>) = specific.into_iter().partition(|name| overriding.contains(name));
    names.extend(from_multi_point);
    names.extend(rest);
    Ok(names)
}

fn check_counts(scheduler_name: &str, expanded: &ExpandedPlugins) -> Result<(), ExpandError> {
    let profile = format!("for profile with scheduler name {}", crate::go::quote::quote(scheduler_name));
    let count = |point| expanded.point(point).len();
    let queue_sorts = count(ExtensionPoint::QueueSort);
    if queue_sorts != 1 {
        return Err(ExpandError(format!("only one queue sort plugin required {profile}, but got {queue_sorts}")));
    }
    if count(ExtensionPoint::Bind) == 0 {
        return Err(ExpandError(format!("at least one bind plugin is needed {profile}")));
    }
    if count(ExtensionPoint::PlacementGenerate) > 1 {
        return Err(ExpandError(format!("at most one placement generate plugin is allowed {profile}")));
    }
    Ok(())
}

/// The weight of each plugin that implements `point`. The point's own weight takes precedence over multiPoint's, and 0 counts
/// as 1. Fails if the sum of the highest scores overflows an `i64`. As in upstream, the subtraction in this check wraps if
/// negative weights make the sum negative.
fn weights<'a>(
    specific: &'a [Plugin],
    multi_point: &'a [Plugin],
    point: ExtensionPoint,
    implements: Implements<'_>,
) -> Result<BTreeMap<&'a str, i32>, &'static str> {
    let mut weights = BTreeMap::new();
    let mut total: i64 = 0;
    for Plugin { name, weight } in specific.iter().chain(multi_point) {
        if implements(name, point) != Some(true) || weights.contains_key(name.as_str()) {
            continue;
        }
        let weight = if *weight == 0 { 1 } else { *weight };
        weights.insert(name.as_str(), weight);
        let highest = i64::from(weight) * MAX_SCORE;
        if highest > i64::MAX.wrapping_sub(total) {
            return Err("total score of Score plugins could overflow");
        }
        total = total.wrapping_add(highest);
    }
    Ok(weights)
}

/// Checks one profile after the other for properties that all profiles must share. Follows
/// `pkg/scheduler/profile/profile.go#cfgValidator @v1.36.3`.
#[derive(Clone, Debug, Default)]
pub struct ProfileChecker {
    names: BTreeSet<String>,
    first: Option<(String, AnyArgs)>,
}

impl ProfileChecker {
    /// Checks the next profile against the earlier ones. Errors have upstream's texts, to which callers add the prefix
    /// `initializing profiles: `.
    pub fn check(&mut self, profile: &Profile, expanded: &ExpandedPlugins) -> Result<(), ExpandError> {
        let name = &profile.scheduler_name;
        if name.is_empty() {
            return Err(ExpandError("scheduler name is needed".to_owned()));
        }
        let quoted = crate::go::quote::quote(name);
        if !self.names.insert(name.clone()) {
            return Err(ExpandError(format!("duplicate profile with scheduler name {quoted}")));
        }
        let Some(sort) = expanded.point(ExtensionPoint::QueueSort).first().map(|plugin| &plugin.name) else {
            return Ok(());
        };
        let args = profile.args(sort);
        let Some((first, first_args)) = &self.first else {
            self.first = Some((sort.clone(), args.clone()));
            return Ok(());
        };
        if first != sort {
            let texts = format!("different queue sort plugins for profile {quoted}: \"{sort}\", first: \"{first}\"");
            return Err(ExpandError(texts));
        }
        if first_args != args {
            return Err(ExpandError(format!("different queue sort plugin args for profile {quoted}")));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
