//! Validates a resolved configuration, with upstream's error texts.
//!
//! Follows `pkg/scheduler/apis/config/validation/validation.go` and
//! `component-base/config/validation/validation.go @v1.36.3`.

mod extenders;

use super::any_args::AnyArgs;
use super::catalog::PluginCatalog;
use super::decode::GROUP_VERSION;
use super::gates::FeatureGates;
use super::load::ConfigError;
use super::types::{ClientConnection, Config, ExtensionPoint, LeaderElection, PluginConfig, PluginSet, Profile};
use crate::apimachinery::field_error::{BadValue, FieldError, FieldErrors, FieldPath, aggregate};
use crate::go::duration::GoDuration;
use crate::go::json::text as json;

/// Plugins that were removed in v1.
const REMOVED: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// Number of points whose enabled lists are searched for removed plugins: all but the two placement points.
const CHECKED_FOR_REMOVED: usize = 12;

impl Config {
    /// Validates the configuration of a scheduler with these plugins. The text of the error is that of the only fault, or
    /// `[a, b]` for several faults.
    pub fn validate(&self, gates: &FeatureGates, plugins: &PluginCatalog) -> Result<(), ConfigError> {
        match self.errors(gates, plugins) {
            errors if errors.is_empty() => Ok(()),
            errors => Err(ConfigError::new(aggregate(errors))),
        }
    }

    /// Returns the text of each validation error.
    pub fn faults(&self, gates: &FeatureGates, plugins: &PluginCatalog) -> Vec<String> {
        self.errors(gates, plugins).iter().map(ToString::to_string).collect()
    }

    fn errors(&self, gates: &FeatureGates, plugins: &PluginCatalog) -> Vec<FieldError> {
        let mut faults: Vec<FieldError> = client_connection(&self.client_connection).into_iter().collect();
        faults.extend(leader_election(&self.leader_election));
        if self.parallelism <= 0 {
            let detail = "should be an integer value greater than zero";
            faults.push(FieldError::invalid("parallelism", BadValue::plain(self.parallelism), detail));
        }
        faults.extend(profiles(&self.profiles, gates, plugins));
        faults.extend(percentage("percentageOfNodesToScore", Some(self.percentage_of_nodes_to_score)));
        let (initial, max) = (self.pod_initial_backoff_seconds, self.pod_max_backoff_seconds);
        if initial <= 0 {
            faults.push(FieldError::invalid(
                "podInitialBackoffSeconds",
                BadValue::plain(initial),
                "must be greater than 0",
            ));
        }
        if max < initial {
            let detail = "must be greater than or equal to PodInitialBackoffSeconds";
            faults.push(FieldError::invalid("podMaxBackoffSeconds", BadValue::plain(max), detail));
        }
        faults.extend(extenders::faults("extenders", &self.extenders));
        faults
    }
}

fn client_connection(client: &ClientConnection) -> Option<FieldError> {
    let burst = client.burst;
    (burst < 0).then(|| FieldError::invalid("clientConnection.burst", BadValue::plain(burst), "must be non-negative"))
}

fn leader_election(election: &LeaderElection) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if !election.leader_elect {
        return faults;
    }
    let (lease, deadline) = (election.lease_duration, election.renew_deadline);
    let durations = [("leaseDuration", lease), ("renewDeadline", deadline), ("retryPeriod", election.retry_period)];
    for (name, duration) in durations {
        if duration <= GoDuration::ZERO {
            faults.push(FieldError::invalid(
                format_args!("leaderElection.{name}"),
                &duration.to_string(),
                "must be greater than zero",
            ));
        }
    }
    if lease <= deadline {
        let shown = &deadline.to_string();
        faults.push(FieldError::invalid("leaderElection.leaseDuration", shown, "must be greater than `RenewDeadline`"));
    }
    let texts = [
        ("resourceLock", &election.resource_lock),
        ("resourceNamespace", &election.resource_namespace),
        ("resourceName", &election.resource_name),
    ];
    for (name, text) in texts {
        if text.is_empty() {
            faults.push(FieldError::required(format_args!("leaderElection.{name}"), ""));
        }
    }
    if election.resource_lock != "leases" {
        let shown = &election.resource_lock;
        faults.push(FieldError::invalid("leaderElection.resourceLock", shown, "resourceLock value must be \"leases\""));
    }
    faults
}

fn percentage(path: &str, value: Option<i32>) -> Option<FieldError> {
    let value = value.filter(|value| !(0..=100).contains(value))?;
    Some(FieldError::invalid(path, BadValue::plain(value), "not in valid range [0-100]"))
}

fn profiles(profiles: &[Profile], gates: &FeatureGates, plugins: &PluginCatalog) -> Vec<FieldError> {
    if profiles.is_empty() {
        return vec![FieldError::required("profiles", "")];
    }
    let mut faults = Vec::new();
    for (i, profile) in profiles.iter().enumerate() {
        let path = format!("profiles[{i}]");
        if profile.scheduler_name.is_empty() {
            faults.push(FieldError::required(format_args!("{path}.schedulerName"), ""));
        }
        let percentage_path = format!("{path}.percentageOfNodesToScore");
        faults.extend(percentage(&percentage_path, profile.percentage_of_nodes_to_score));
        faults.extend(removed_plugins(&path, profile));
        faults.extend(plugin_config(&path, profile, gates, plugins));
        if profiles[..i].iter().any(|earlier| earlier.scheduler_name == profile.scheduler_name) {
            // Upstream prints the path of the earlier profile here, which results in an empty object.
            faults.push(FieldError::duplicate(format_args!("{path}.schedulerName"), BadValue::plain("{}")));
        }
    }
    faults.extend(common_queue_sort(profiles));
    faults
}

fn removed_detail() -> String {
    format!("was invalid in version \"v1\" (KubeSchedulerConfiguration is version \"{GROUP_VERSION}\")")
}

fn removed_plugins(path: &str, profile: &Profile) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for point in &ExtensionPoint::ALL[..CHECKED_FOR_REMOVED] {
        for (i, plugin) in profile.plugins.point(*point).enabled.iter().enumerate() {
            if REMOVED.contains(&plugin.name.as_str()) {
                let path = format!("{path}.plugins.{}.enabled[{i}]", point.key());
                faults.push(FieldError::invalid(&path, &plugin.name, removed_detail()));
            }
        }
    }
    faults
}

fn plugin_config(path: &str, profile: &Profile, gates: &FeatureGates, plugins: &PluginCatalog) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (i, config) in profile.plugin_config.iter().enumerate() {
        let path = format!("{path}.pluginConfig[{i}]");
        let name = config.name.as_str();
        if profile.plugin_config[..i].iter().any(|earlier| earlier.name == name) {
            faults.push(FieldError::duplicate(&path, name));
        }
        if REMOVED.contains(&name) {
            faults.push(FieldError::invalid(&path, name, removed_detail()));
        } else {
            faults.extend(args(&FieldPath::new(path).child("args"), config, gates, plugins));
        }
    }
    faults
}

/// Validates the args of one plugin, at `path`. Args that the plugin's factory validates are skipped. As in upstream, which
/// finds the type of args by the plugin's name, there is one exception: a plugin that is named like a kind of such args, for
/// example `NodeResourcesFitArgs`, must have args of that kind. Follows
/// `pkg/scheduler/apis/config/validation/validation.go#validatePluginConfig @v1.36.3`.
fn args(path: &FieldPath, config: &PluginConfig, gates: &FeatureGates, plugins: &PluginCatalog) -> Vec<FieldError> {
    let wanted = match plugins.args_of(&config.name) {
        Some(own) if own.validated_by_factory() => None,
        Some(own) => Some(own),
        None => plugins.kind(&config.name).filter(|kind| kind.validated_by_factory()),
    };
    let mut errors = FieldErrors::default();
    match (wanted, &config.args) {
        (None, _) => {}
        (Some(wanted), AnyArgs::Typed(args)) if wanted.matches(args) => args.validate(path, gates, &mut errors),
        (Some(_), other) => {
            errors.invalid(path, json(&other.to_json().unwrap_or_default()), "has to match plugin args");
        }
    }
    errors.into_iter().collect()
}

/// Checks that all profiles have the same `queueSort` set and the same args of the queue sort plugin. The sets are compared as
/// configured, without `multiPoint`. Args are compared only for a plugin that the first profile enables in its own `queueSort`
/// set.
fn common_queue_sort(profiles: &[Profile]) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let [first, others @ ..] = profiles else { return faults };
    let canon = first.plugins.point(ExtensionPoint::QueueSort);
    if canon.enabled.len() > 1 {
        let detail = "only one queue sort plugin can be enabled";
        faults.push(FieldError::invalid(
            "profiles[0].plugins.queueSort.Enabled",
            BadValue::plain(canon.enabled.len()),
            detail,
        ));
    }
    let sort = canon.enabled.first().map(|plugin| plugin.name.as_str()).unwrap_or_default();
    // If the plugin has several entries, the last one is used.
    let canon_args = first.plugin_config.iter().rfind(|config| config.name == sort).map_or(&AnyArgs::None, |c| &c.args);
    for (i, profile) in others.iter().enumerate() {
        let path = format!("profiles[{}]", i + 1);
        let set = profile.plugins.point(ExtensionPoint::QueueSort);
        if set != canon {
            let detail = "must be the same for all profiles";
            faults.push(FieldError::invalid(
                format_args!("{path}.plugins.queueSort"),
                BadValue::plain(plugin_set(set)),
                detail,
            ));
        }
        for config in profile.plugin_config.iter().filter(|config| config.name == sort && config.args != *canon_args) {
            let detail = "queueSort must be the same for all profiles";
            let shown = json(&config.args.to_json().unwrap_or_default());
            faults.push(FieldError::invalid(format_args!("{path}.pluginConfig.args"), BadValue::plain(shown), detail));
        }
    }
    faults
}

/// Formats a plugin set like the JSON of upstream's internal type.
fn plugin_set(set: &PluginSet) -> String {
    let list = |list: &[super::types::Plugin]| match list {
        [] => "null".to_owned(),
        list => {
            let entry = |plugin: &super::types::Plugin| {
                format!(r#"{{"Name":{},"Weight":{}}}"#, json(&plugin.name.as_str().into()), plugin.weight)
            };
            format!("[{}]", list.iter().map(entry).collect::<Vec<_>>().join(","))
        }
    };
    format!(r#"{{"Enabled":{},"Disabled":{}}}"#, list(&set.enabled), list(&set.disabled))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
