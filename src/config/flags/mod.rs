//! The command line: upstream's flags, one struct a section, in its grammar and with its texts.
//!
//! A flag that is not given is `None`, since only flags that are given override the configuration. Sections follow
//! `cmd/kube-scheduler/app/options/options.go#initFlags @v1.36.3`; a section grows by a field.

mod grammar;
mod values;

use std::path::Path;

use clap::Args;

use super::duration::GoDuration;
use super::gates::{FeatureGates, GateError, GateFlags};
use super::load::ConfigError;
use super::types::Config;

use super::text::parse_bool;
pub use grammar::FlagError;
pub use values::VersionFlag;
use values::{duration, float32, int32, level, version};

/// How long a pod stays in unschedulablePods at most, where no flag says otherwise.
const MAX_IN_UNSCHEDULABLE: GoDuration = GoDuration::from_secs(5 * 60);

/// Every flag of the scheduler.
#[derive(Clone, Debug, Default, PartialEq, clap::Parser)]
#[command(name = "kube-scheduler", disable_help_flag = true, disable_version_flag = true, args_override_self = true)]
pub struct Flags {
    /// Where the configuration and the API server are.
    #[command(flatten)]
    pub misc: MiscFlags,
    /// Flags that a configuration file replaces.
    #[command(flatten)]
    pub deprecated: DeprecatedFlags,
    /// Leader election.
    #[command(flatten)]
    pub leader_election: LeaderElectionFlags,
    /// Feature gates and versions.
    #[command(flatten)]
    pub feature_gate: FeatureGateFlags,
    /// Logs.
    #[command(flatten)]
    pub logs: LogFlags,
    /// Version and help.
    #[command(flatten)]
    pub global: GlobalFlags,
    /// What is no flag; only empty texts are let pass.
    #[arg(hide = true)]
    positional: Vec<String>,
}

/// Section "misc".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Misc flags")]
pub struct MiscFlags {
    /// The path to the configuration file.
    #[arg(long, allow_hyphen_values = true)]
    pub config: Option<String>,
    /// The address of the Kubernetes API server (overrides any value in kubeconfig)
    #[arg(long, allow_hyphen_values = true)]
    pub master: Option<String>,
}

/// Section "deprecated": ignored where a configuration file is given, but for the last.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Deprecated flags")]
pub struct DeprecatedFlags {
    /// Enable block profiling, if profiling is enabled. Ignored with --config.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub contention_profiling: Option<bool>,
    /// Burst to use while talking with the API server (default 100). Ignored with --config.
    #[arg(long, allow_hyphen_values = true, value_parser = int32)]
    pub kube_api_burst: Option<i32>,
    /// Content type of requests sent to the API server. Ignored with --config.
    #[arg(long, allow_hyphen_values = true)]
    pub kube_api_content_type: Option<String>,
    /// QPS to use while talking with the API server (default 50). Ignored with --config.
    #[arg(long, allow_hyphen_values = true, value_parser = float32)]
    pub kube_api_qps: Option<f32>,
    /// Path to kubeconfig file with authorization and API server location. Ignored with --config.
    #[arg(long, allow_hyphen_values = true)]
    pub kubeconfig: Option<String>,
    /// The maximum time a pod can stay in unschedulablePods (default 5m0s).
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub pod_max_in_unschedulable_pods_duration: Option<GoDuration>,
    /// Enable profiling via web interface host:port/debug/pprof/. Ignored with --config.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub profiling: Option<bool>,
}

/// Section "leader election": overrides the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Leader election flags")]
pub struct LeaderElectionFlags {
    /// Start a leader election client and gain leadership before scheduling (default true).
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub leader_elect: Option<bool>,
    /// How long others wait before they take over (default 15s).
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub leader_elect_lease_duration: Option<GoDuration>,
    /// How long the leader tries to renew before it gives up (default 10s).
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub leader_elect_renew_deadline: Option<GoDuration>,
    /// The kind of lock; only leases is supported.
    #[arg(long, allow_hyphen_values = true)]
    pub leader_elect_resource_lock: Option<String>,
    /// The lock's name (default kube-scheduler).
    #[arg(long, allow_hyphen_values = true)]
    pub leader_elect_resource_name: Option<String>,
    /// The lock's namespace (default kube-system).
    #[arg(long, allow_hyphen_values = true)]
    pub leader_elect_resource_namespace: Option<String>,
    /// The pause between tries (default 2s).
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub leader_elect_retry_period: Option<GoDuration>,
}

/// Section "feature gate".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Feature gate flags")]
pub struct FeatureGateFlags {
    /// The version to emulate: [component=]major.minor, comma-separated; 1.33 to 1.36.
    #[arg(long, allow_hyphen_values = true)]
    pub emulated_version: Vec<String>,
    /// Feature gates: [component:]name=bool, comma-separated; may be repeated.
    #[arg(long, allow_hyphen_values = true)]
    pub feature_gates: Vec<String>,
    /// The oldest version in the control plane: [component=]major.minor, comma-separated.
    #[arg(long, allow_hyphen_values = true)]
    pub min_compatibility_version: Vec<String>,
}

/// Section "logs".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Logs flags")]
pub struct LogFlags {
    /// Number for the log level verbosity (default 0).
    #[arg(short, long, allow_hyphen_values = true, value_parser = level)]
    pub v: Option<u32>,
}

/// Section "global".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Global flags")]
pub struct GlobalFlags {
    /// Help for kube-scheduler.
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub help: Option<bool>,
    /// --version, --version=raw prints version information and quits; --version=vX.Y.Z... sets the reported version.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = version)]
    pub version: Option<VersionFlag>,
}

impl Flags {
    /// The feature gates that the flags ask for.
    pub fn gates(&self) -> Result<FeatureGates, GateError> {
        let flags = &self.feature_gate;
        FeatureGates::from_flags(GateFlags {
            feature_gates: &flags.feature_gates,
            emulated_version: &flags.emulated_version,
            min_compatibility_version: &flags.min_compatibility_version,
        })
    }

    /// The configuration that the flags ask for, validated. A file is validated with the leader election flags in it; without
    /// a file the defaults are, and the flags are not. Follows `options.go#ApplyTo @v1.36.3`.
    pub fn config(&self, gates: &FeatureGates) -> Result<Config, ConfigError> {
        match self.misc.config.as_deref() {
            Some(path) if !path.is_empty() => {
                let mut config = Config::load(Path::new(path), gates)?;
                self.leader_election.apply(&mut config);
                config.validate(gates)?;
                Ok(config)
            }
            _ => {
                let mut config = Config::defaults(gates);
                config.validate(gates)?;
                self.deprecated.apply(&mut config);
                self.leader_election.apply(&mut config);
                Ok(config)
            }
        }
    }

    /// How long a pod stays in unschedulablePods at most: by the flag alone, with a configuration file too.
    pub fn pod_max_in_unschedulable_pods(&self) -> GoDuration {
        self.deprecated.pod_max_in_unschedulable_pods_duration.unwrap_or(MAX_IN_UNSCHEDULABLE)
    }

    /// The log level.
    pub fn verbosity(&self) -> u32 {
        self.logs.v.unwrap_or(0)
    }
}

impl DeprecatedFlags {
    fn apply(&self, config: &mut Config) {
        set(&mut config.enable_profiling, self.profiling.as_ref());
        set(&mut config.enable_contention_profiling, self.contention_profiling.as_ref());
        let client = &mut config.client_connection;
        set(&mut client.kubeconfig, self.kubeconfig.as_ref());
        set(&mut client.content_type, self.kube_api_content_type.as_ref());
        set(&mut client.qps, self.kube_api_qps.as_ref());
        set(&mut client.burst, self.kube_api_burst.as_ref());
    }
}

impl LeaderElectionFlags {
    fn apply(&self, config: &mut Config) {
        let election = &mut config.leader_election;
        set(&mut election.leader_elect, self.leader_elect.as_ref());
        set(&mut election.lease_duration, self.leader_elect_lease_duration.as_ref());
        set(&mut election.renew_deadline, self.leader_elect_renew_deadline.as_ref());
        set(&mut election.retry_period, self.leader_elect_retry_period.as_ref());
        set(&mut election.resource_lock, self.leader_elect_resource_lock.as_ref());
        set(&mut election.resource_name, self.leader_elect_resource_name.as_ref());
        set(&mut election.resource_namespace, self.leader_elect_resource_namespace.as_ref());
    }
}

fn set<T: Clone>(slot: &mut T, given: Option<&T>) {
    if let Some(given) = given {
        slot.clone_from(given);
    }
}

#[cfg(test)]
#[path = "flags_tests.rs"]
mod tests;
