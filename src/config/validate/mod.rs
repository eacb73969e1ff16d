//! Whether a resolved configuration makes sense, in upstream's words.
//!
//! Follows `pkg/scheduler/apis/config/validation/validation.go` and
//! `component-base/config/validation/validation.go @v1.36.3`.

mod args;
mod extenders;
mod field;

pub use args::validate_node_resources_fit_args;

use super::args::PluginArgs;
use super::decode::GROUP_VERSION;
use super::gates::FeatureGates;
use super::load::ConfigError;
use super::types::{ClientConnection, Config, ExtensionPoint, LeaderElection, PluginSet, Profile};
use crate::apimachinery::field_error::aggregate;
use crate::go::duration::GoDuration;
use crate::go::json::text as json;
use crate::go::quote::quote;

/// Plugins that v1 no longer has.
const REMOVED: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// The points whose enabled lists are searched for removed plugins: all but those of placements.
const CHECKED_FOR_REMOVED: usize = 12;

impl Config {
    /// Checks the whole configuration. The error has the bare text of a single fault, and `[a, b]` for several.
    pub fn validate(&self, gates: &FeatureGates) -> Result<(), ConfigError> {
        match self.faults(gates) {
            faults if faults.is_empty() => Ok(()),
            faults => Err(ConfigError::new(aggregate(faults))),
        }
    }

    /// Every fault of the configuration, one text each.
    pub fn faults(&self, gates: &FeatureGates) -> Vec<String> {
        let mut faults: Vec<String> = client_connection(&self.client_connection).into_iter().collect();
        faults.extend(leader_election(&self.leader_election));
        if self.parallelism <= 0 {
            let detail = "should be an integer value greater than zero";
            faults.push(field::invalid("parallelism", self.parallelism, detail));
        }
        faults.extend(profiles(&self.profiles, gates));
        faults.extend(percentage("percentageOfNodesToScore", Some(self.percentage_of_nodes_to_score)));
        let (initial, max) = (self.pod_initial_backoff_seconds, self.pod_max_backoff_seconds);
        if initial <= 0 {
            faults.push(field::invalid("podInitialBackoffSeconds", initial, "must be greater than 0"));
        }
        if max < initial {
            let detail = "must be greater than or equal to PodInitialBackoffSeconds";
            faults.push(field::invalid("podMaxBackoffSeconds", max, detail));
        }
        faults.extend(extenders::faults("extenders", &self.extenders));
        faults
    }
}

fn client_connection(client: &ClientConnection) -> Option<String> {
    let burst = client.burst;
    (burst < 0).then(|| field::invalid("clientConnection.burst", burst, "must be non-negative"))
}

fn leader_election(election: &LeaderElection) -> Vec<String> {
    let mut faults = Vec::new();
    if !election.leader_elect {
        return faults;
    }
    let (lease, deadline) = (election.lease_duration, election.renew_deadline);
    let durations = [("leaseDuration", lease), ("renewDeadline", deadline), ("retryPeriod", election.retry_period)];
    for (name, duration) in durations {
        if duration <= GoDuration::ZERO {
            faults.push(field::invalid(
                &format!("leaderElection.{name}"),
                quote(&duration.to_string()),
                "must be greater than zero",
            ));
        }
    }
    if lease <= deadline {
        let shown = quote(&deadline.to_string());
        faults.push(field::invalid("leaderElection.leaseDuration", shown, "must be greater than `RenewDeadline`"));
    }
    let texts = [
        ("resourceLock", &election.resource_lock),
        ("resourceNamespace", &election.resource_namespace),
        ("resourceName", &election.resource_name),
    ];
    for (name, text) in texts {
        if text.is_empty() {
            faults.push(field::required(&format!("leaderElection.{name}"), ""));
        }
    }
    if election.resource_lock != "leases" {
        let shown = quote(&election.resource_lock);
        faults.push(field::invalid("leaderElection.resourceLock", shown, "resourceLock value must be \"leases\""));
    }
    faults
}

fn percentage(path: &str, value: Option<i32>) -> Option<String> {
    let value = value.filter(|value| !(0..=100).contains(value))?;
    Some(field::invalid(path, value, "not in valid range [0-100]"))
}

fn profiles(profiles: &[Profile], gates: &FeatureGates) -> Vec<String> {
    if profiles.is_empty() {
        return vec![field::required("profiles", "")];
    }
    let mut faults = Vec::new();
    for (i, profile) in profiles.iter().enumerate() {
        let path = format!("profiles[{i}]");
        if profile.scheduler_name.is_empty() {
            faults.push(field::required(&format!("{path}.schedulerName"), ""));
        }
        let percentage_path = format!("{path}.percentageOfNodesToScore");
        faults.extend(percentage(&percentage_path, profile.percentage_of_nodes_to_score));
        faults.extend(removed_plugins(&path, profile));
        faults.extend(plugin_config(&path, profile, gates));
        if profiles[..i].iter().any(|earlier| earlier.scheduler_name == profile.scheduler_name) {
            // Upstream shows the path of the earlier profile here, and that prints as an empty object.
            faults.push(field::duplicate(&format!("{path}.schedulerName"), "{}"));
        }
    }
    faults.extend(common_queue_sort(profiles));
    faults
}

fn removed_detail() -> String {
    format!("was invalid in version \"v1\" (KubeSchedulerConfiguration is version \"{GROUP_VERSION}\")")
}

fn removed_plugins(path: &str, profile: &Profile) -> Vec<String> {
    let mut faults = Vec::new();
    for point in &ExtensionPoint::ALL[..CHECKED_FOR_REMOVED] {
        for (i, plugin) in profile.plugins.point(*point).enabled.iter().enumerate() {
            if REMOVED.contains(&plugin.name.as_str()) {
                let path = format!("{path}.plugins.{}.enabled[{i}]", point.key());
                faults.push(field::invalid(&path, quote(&plugin.name), &removed_detail()));
            }
        }
    }
    faults
}

fn plugin_config(path: &str, profile: &Profile, gates: &FeatureGates) -> Vec<String> {
    let mut faults = Vec::new();
    for (i, config) in profile.plugin_config.iter().enumerate() {
        let path = format!("{path}.pluginConfig[{i}]");
        let name = config.name.as_str();
        if profile.plugin_config[..i].iter().any(|earlier| earlier.name == name) {
            faults.push(field::duplicate(&path, &quote(name)));
        }
        if REMOVED.contains(&name) {
            faults.push(field::invalid(&path, quote(name), &removed_detail()));
        } else {
            faults.extend(args::faults(&format!("{path}.args"), name, &config.args, gates));
        }
    }
    faults
}

/// The sets are compared as configured, and args only of a plugin that the first profile enables at queueSort itself.
fn common_queue_sort(profiles: &[Profile]) -> Vec<String> {
    let mut faults = Vec::new();
    let [first, others @ ..] = profiles else { return faults };
    let canon = first.plugins.point(ExtensionPoint::QueueSort);
    if canon.enabled.len() > 1 {
        let detail = "only one queue sort plugin can be enabled";
        faults.push(field::invalid("profiles[0].plugins.queueSort.Enabled", canon.enabled.len(), detail));
    }
    let sort = canon.enabled.first().map(|plugin| plugin.name.as_str()).unwrap_or_default();
    // With several entries of the plugin, its last one counts.
    let canon_args =
        first.plugin_config.iter().rfind(|config| config.name == sort).map_or(&PluginArgs::None, |c| &c.args);
    for (i, profile) in others.iter().enumerate() {
        let path = format!("profiles[{}]", i + 1);
        let set = profile.plugins.point(ExtensionPoint::QueueSort);
        if set != canon {
            let detail = "must be the same for all profiles";
            faults.push(field::invalid(&format!("{path}.plugins.queueSort"), plugin_set(set), detail));
        }
        for config in profile.plugin_config.iter().filter(|config| config.name == sort && config.args != *canon_args) {
            let detail = "queueSort must be the same for all profiles";
            let shown = json(&config.args.to_json().unwrap_or_default());
            faults.push(field::invalid(&format!("{path}.pluginConfig.args"), shown, detail));
        }
    }
    faults
}

/// A plugin set as upstream's internal type prints in JSON.
fn plugin_set(set: &PluginSet) -> String {
    let list = |list: &[super::types::Plugin]| match list {
        [] => "null".to_owned(),
        list => {
            let entry = |plugin: &super::types::Plugin| {
                format!(r#"{{"Name":{},"Weight":{}}}"#, field::json_string(&plugin.name), plugin.weight)
            };
            format!("[{}]", list.iter().map(entry).collect::<Vec<_>>().join(","))
        }
    };
    format!(r#"{{"Enabled":{},"Disabled":{}}}"#, list(&set.enabled), list(&set.disabled))
}

#[cfg(test)]
#[path = "validate_tests.rs"]
mod tests;
