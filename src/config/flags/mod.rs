//! The command line: upstream's flags, with one struct per section, and with pflag's grammar and error texts.
//!
//! A flag that is not given is `None`, since only flags that are given override the configuration. Sections follow
//! `cmd/kube-scheduler/app/options/options.go#initFlags @v1.36.3`. To add a flag, add a field to its section's struct.

mod check;
mod grammar;
mod help;
mod lists;
mod metrics;
mod observing;
mod sections;
mod serving;
mod shown;
mod values;

use std::path::Path;

use super::catalog::PluginCatalog;
use super::gates::{FeatureGates, GateError, GateFlags};
use super::load::ConfigError;
use super::types::Config;
use crate::go::duration::GoDuration;

pub use grammar::FlagError;
pub use lists::{CertKey, VModule};
pub use observing::{LogFlags, LogFormat, MetricsFlags};
use sections::MAX_IN_UNSCHEDULABLE;
pub use sections::{DeprecatedFlags, FeatureGateFlags, GlobalFlags, LeaderElectionFlags, MiscFlags};
pub use serving::{AuthenticationFlags, AuthorizationFlags, SecureServingFlags};
pub use values::VersionFlag;

/// Every flag of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, clap::Parser)]
#[command(name = "kube-scheduler", disable_help_flag = true, disable_version_flag = true, args_override_self = true)]
pub struct Flags {
    /// Locations of the configuration and the API server.
    #[command(flatten)]
    pub misc: MiscFlags,
    /// Settings of the HTTPS server.
    #[command(flatten)]
    pub secure_serving: SecureServingFlags,
    /// Authentication of requests to the server.
    #[command(flatten)]
    pub authentication: AuthenticationFlags,
    /// Authorization of requests to the server.
    #[command(flatten)]
    pub authorization: AuthorizationFlags,
    /// Deprecated flags, most of which are ignored if there is a configuration file.
    #[command(flatten)]
    pub deprecated: DeprecatedFlags,
    /// Flags about leader election.
    #[command(flatten)]
    pub leader_election: LeaderElectionFlags,
    /// Feature gates and versions.
    #[command(flatten)]
    pub feature_gate: FeatureGateFlags,
    /// Flags that hide or restrict metrics.
    #[command(flatten)]
    pub metrics: MetricsFlags,
    /// Flags about the log.
    #[command(flatten)]
    pub logs: LogFlags,
    /// The flags `--version` and `--help`.
    #[command(flatten)]
    pub global: GlobalFlags,
    /// Arguments that are not flags. Only empty ones are accepted.
    #[arg(hide = true)]
    positional: Vec<String>,
}

impl Flags {
    /// Returns the feature gates that the flags set.
    pub fn gates(&self) -> Result<FeatureGates, GateError> {
        let flags = &self.feature_gate;
        FeatureGates::from_flags(GateFlags {
            feature_gates: &flags.feature_gates,
            emulated_version: &flags.emulated_version,
            min_compatibility_version: &flags.min_compatibility_version,
        })
    }

    /// Builds and validates the configuration, for a scheduler with these plugins. With a file, the leader election flags are
    /// applied before the validation. Without a file, only the defaults are validated, and the flags are not. Follows
    /// `cmd/kube-scheduler/app/options/options.go#Options.ApplyTo @v1.36.3`.
    pub fn config(&self, gates: &FeatureGates, plugins: &PluginCatalog) -> Result<Config, ConfigError> {
        match self.misc.config.as_deref() {
            Some(path) if !path.is_empty() => {
                let mut config = Config::load(Path::new(path), gates, plugins)?;
                self.leader_election.apply(&mut config);
                config.validate(gates, plugins)?;
                Ok(config)
            }
            _ => {
                let mut config = Config::defaults(gates, plugins);
                config.validate(gates, plugins)?;
                self.deprecated.apply(&mut config);
                self.leader_election.apply(&mut config);
                Ok(config)
            }
        }
    }

    /// Maximum time that a pod stays in unschedulablePods. Only the flag sets it, even if there is a configuration file.
    pub fn pod_max_in_unschedulable_pods(&self) -> GoDuration {
        self.deprecated.pod_max_in_unschedulable_pods_duration.unwrap_or(MAX_IN_UNSCHEDULABLE)
    }

    /// The verbosity of the log (`-v`).
    pub fn verbosity(&self) -> u32 {
        self.logs.v.unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
