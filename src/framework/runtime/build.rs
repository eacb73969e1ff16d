//! Builds a profile: creates its plugins from the registry and orders them as configured.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::super::{Handle, HandleParts, PluginError, PreBindPlugin, PreFilterPlugin, Registration, Registry};
use super::{Entry, EventPlugin, Framework, PreBindEntry, PreFilterEntry, ScoreEntry};
use crate::config::{self, ExpandError, ExpandedPlugin, ExpandedPlugins, ExtensionPoint};
use crate::metrics::{Metrics, Point, ProfileMetrics};

/// Reasons why a profile cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The plugin configuration cannot be expanded.
    #[error(transparent)]
    Expand(#[from] ExpandError),
    /// A plugin rejects its arguments, or fails otherwise.
    #[error("initializing plugin \"{plugin}\": {error}")]
    Plugin {
        /// Name of the plugin.
        plugin: String,
        /// Error of the plugin.
        error: PluginError,
    },
}

/// The inputs from which the entries of all extension points are built.
struct Parts<'a> {
    /// The registrations by plugin name. A plugin's position in this map is its index.
    registrations: BTreeMap<String, Registration>,
    expanded: ExpandedPlugins,
    profile: &'a ProfileMetrics,
    metrics: &'a Metrics,
}

impl Parts<'_> {
    /// Returns the entries of one extension point, in running order.
    fn entries<P: ?Sized>(
        &self,
        point: ExtensionPoint,
        metric: Point,
        get: impl Fn(&Registration) -> Option<Arc<P>>,
    ) -> Vec<Entry<P>> {
        let counted = matches!(metric, Point::PreFilter | Point::Filter | Point::PreScore | Point::Score);
        let entry = |expanded: &ExpandedPlugin| {
            let (index, registration) = self.registration(&expanded.name);
            Entry {
                index,
                name: Arc::from(expanded.name.as_str()),
                plugin: get(registration).expect("expansion leaves only plugins that have the point"),
                durations: self.metrics.plugin_durations(&expanded.name, metric),
                evaluations: counted.then(|| self.profile.plugin_evaluation(&expanded.name, metric)),
            }
        };
        self.expanded.point(point).iter().map(entry).collect()
    }

    fn registration(&self, name: &str) -> (usize, &Registration) {
        let found = self.registrations.iter().enumerate().find(|(_, (key, _))| *key == name);
        let (index, (_, registration)) = found.expect("expansion leaves only plugins that were built");
        (index, registration)
    }

    /// Returns the names of all plugins that filter or score nodes. All of them must be able to sign pods.
    fn deciding(&self) -> BTreeSet<&str> {
        [ExtensionPoint::PreFilter, ExtensionPoint::Filter, ExtensionPoint::PreScore, ExtensionPoint::Score]
            .into_iter()
            .flat_map(|point| self.expanded.point(point))
            .map(|plugin| plugin.name.as_str())
            .collect()
    }
}

impl Framework {
    /// Builds the profile with its plugins. The texts of errors are upstream's without the prefix
    /// `initializing profiles: creating profile for scheduler name <name>: `. Follows
    /// `pkg/scheduler/framework/runtime/framework.go#NewFramework @v1.36.3`.
    pub fn new(registry: &Registry, profile: &config::Profile, parts: Arc<HandleParts>) -> Result<Self, BuildError> {
        let handle = Handle::new(parts, &profile.scheduler_name);
        let registrations = build_plugins(registry, profile, &handle)?;
        let expanded = config::expand(profile, &|name, point| {
            // Only enabled plugins are looked up, and all of them were built above if the registry has them. So `None` means
            // that the registry has no such plugin.
            registrations.get(name).map(|registration| registration.implements(point))
        })?;
        let metrics = handle.metrics().clone();
        let profile_metrics = metrics.profile(&profile.scheduler_name);
        let parts = Parts { registrations, expanded, profile: &profile_metrics, metrics: &metrics };
        let mut queue_sort =
            parts.entries(ExtensionPoint::QueueSort, Point::PreEnqueue, |plugin| plugin.queue_sort.clone());
        let queue_sort = queue_sort.pop().expect("expansion checks that there is one queue sort plugin");
        Ok(Self {
            name: handle.profile_name().clone(),
            percentage_of_nodes_to_score: profile.percentage_of_nodes_to_score,
            recorder: metrics.recorder(),
            queue_sort,
            pre_enqueue: parts
                .entries(ExtensionPoint::PreEnqueue, Point::PreEnqueue, |plugin| plugin.pre_enqueue.clone()),
            pre_filter: pre_filter_entries(&parts),
            filter: parts.entries(ExtensionPoint::Filter, Point::Filter, |plugin| plugin.filter.clone()),
            post_filter: parts
                .entries(ExtensionPoint::PostFilter, Point::PostFilter, |plugin| plugin.post_filter.clone()),
            pre_score: parts.entries(ExtensionPoint::PreScore, Point::PreScore, |plugin| plugin.pre_score.clone()),
            score: score_entries(&parts),
            reserve: parts.entries(ExtensionPoint::Reserve, Point::Reserve, |plugin| plugin.reserve.clone()),
            permit: parts.entries(ExtensionPoint::Permit, Point::Permit, |plugin| plugin.permit.clone()),
            pre_bind: pre_bind_entries(&parts),
            bind: parts.entries(ExtensionPoint::Bind, Point::Bind, |plugin| plugin.bind.clone()),
            post_bind: parts.entries(ExtensionPoint::PostBind, Point::PostBind, |plugin| plugin.post_bind.clone()),
            signers: if handle.has_extenders() { None } else { signers(&parts) },
            events: events(&parts),
            expanded: parts.expanded,
            metrics: profile_metrics,
            handle,
        })
    }

    /// Returns the plugins of each extension point, in running order.
    pub fn expanded(&self) -> &ExpandedPlugins {
        &self.expanded
    }
}

/// Builds every plugin that an enabled list names, even if it is disabled at every extension point.
fn build_plugins(
    registry: &Registry,
    profile: &config::Profile,
    handle: &Handle,
) -> Result<BTreeMap<String, Registration>, BuildError> {
    let mut registrations = BTreeMap::new();
    for name in profile.plugins.enabled_names() {
        let Some(factory) = registry.get(name) else { continue };
        let registration = factory(profile.args(name), handle)
            .map_err(|error| BuildError::Plugin { plugin: name.to_owned(), error })?;
        registrations.insert(name.to_owned(), registration);
    }
    Ok(registrations)
}

fn pre_filter_entries(parts: &Parts<'_>) -> Vec<PreFilterEntry> {
    let entries = parts.entries(ExtensionPoint::PreFilter, Point::PreFilter, |plugin| plugin.pre_filter.clone());
    let with_extensions = |entry: Entry<dyn PreFilterPlugin>| PreFilterEntry {
        add_pod: parts.metrics.plugin_durations(&entry.name, Point::PreFilterExtensionAddPod),
        remove_pod: parts.metrics.plugin_durations(&entry.name, Point::PreFilterExtensionRemovePod),
        entry,
    };
    entries.into_iter().map(with_extensions).collect()
}

fn pre_bind_entries(parts: &Parts<'_>) -> Vec<PreBindEntry> {
    let entries = parts.entries(ExtensionPoint::PreBind, Point::PreBind, |plugin| plugin.pre_bind.clone());
    let with_pre_flight = |entry: Entry<dyn PreBindPlugin>| PreBindEntry {
        pre_flight: parts.metrics.plugin_durations(&entry.name, Point::PreBindPreFlight),
        entry,
    };
    entries.into_iter().map(with_pre_flight).collect()
}

fn score_entries(parts: &Parts<'_>) -> Vec<ScoreEntry> {
    let entries = parts.entries(ExtensionPoint::Score, Point::Score, |plugin| plugin.score.clone());
    let weights = parts.expanded.point(ExtensionPoint::Score).iter().map(|plugin| i64::from(plugin.weight));
    entries
        .into_iter()
        .zip(weights)
        .map(|(entry, weight)| ScoreEntry {
            normalize: parts.registration(&entry.name).1.normalize.clone(),
            normalize_durations: parts.metrics.plugin_durations(&entry.name, Point::ScoreExtensionNormalize),
            entry,
            weight,
        })
        .collect()
}

/// Returns the signers of all plugins that filter or score nodes, sorted by name. `None` if one of them cannot sign.
/// Follows `pkg/scheduler/framework/runtime/framework.go#computeBatchablePlugins @v1.36.3`.
fn signers(parts: &Parts<'_>) -> Option<Vec<Entry<dyn super::SignPlugin>>> {
    let signer = |name: &str| {
        let (index, registration) = parts.registration(name);
        let plugin = registration.sign.clone()?;
        let durations = parts.metrics.plugin_durations(name, Point::Sign);
        Some(Entry { index, name: Arc::from(name), plugin, durations, evaluations: None })
    };
    parts.deciding().into_iter().map(signer).collect()
}

/// Returns the event registrations of every plugin that can reject pods.
/// Follows `pkg/scheduler/framework/runtime/framework.go#fillEnqueueExtensions @v1.36.3`.
fn events(parts: &Parts<'_>) -> Vec<EventPlugin> {
    let rejects = |plugin: &Registration| {
        plugin.pre_enqueue.is_some()
            || plugin.pre_filter.is_some()
            || plugin.filter.is_some()
            || plugin.reserve.is_some()
            || plugin.permit.is_some()
    };
    parts
        .registrations
        .iter()
        .filter(|(_, plugin)| rejects(plugin))
        .map(|(name, plugin)| (Arc::from(name.as_str()), plugin.events.clone()))
        .collect()
}
