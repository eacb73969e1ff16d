//! The flag sections about scheduling: configuration, API server, leader election and feature gates.

use clap::Args;

use super::super::types::Config;
use super::shown::Shown;
use super::values::{VersionFlag, duration, float32, int32, version};
use crate::go::duration::GoDuration;
use crate::go::number::parse_bool;

/// Default of the maximum time that a pod stays in unschedulablePods.
pub(super) const MAX_IN_UNSCHEDULABLE: GoDuration = GoDuration::from_secs(5 * 60);

/// Flags of the section "misc".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Misc flags")]
pub struct MiscFlags {
    /// The path to the configuration file.
    #[arg(long, allow_hyphen_values = true)]
    pub config: Option<String>,
    /// The address of the Kubernetes API server (overrides any value in kubeconfig)
    #[arg(long, allow_hyphen_values = true)]
    pub master: Option<String>,
    /// Write the effective configuration to this file, and exit.
    #[arg(long, allow_hyphen_values = true)]
    pub write_config_to: Option<String>,
}

/// Flags of the section "deprecated". With a configuration file, all of them are ignored except
/// `--pod-max-in-unschedulable-pods-duration`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Deprecated flags")]
pub struct DeprecatedFlags {
    /// Enable block profiling, if profiling is enabled. Ignored with --config.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub contention_profiling: Option<bool>,
    /// Burst to use while talking with the API server. Ignored with --config.
    #[arg(long, allow_hyphen_values = true, value_parser = int32)]
    pub kube_api_burst: Option<i32>,
    /// Content type of requests sent to the API server. Ignored with --config.
    #[arg(long, allow_hyphen_values = true)]
    pub kube_api_content_type: Option<String>,
    /// QPS to use while talking with the API server. Ignored with --config.
    #[arg(long, allow_hyphen_values = true, value_parser = float32)]
    pub kube_api_qps: Option<f32>,
    /// Path to kubeconfig file with authorization and API server location. Ignored with --config.
    #[arg(long, allow_hyphen_values = true)]
    pub kubeconfig: Option<String>,
    /// The maximum time a pod can stay in unschedulablePods.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub pod_max_in_unschedulable_pods_duration: Option<GoDuration>,
    /// Enable profiling via web interface host:port/debug/pprof/. Ignored with --config.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub profiling: Option<bool>,
}

/// Flags of the section "leader election", which override the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Leader election flags")]
pub struct LeaderElectionFlags {
    /// Start a leader election client and gain leadership before scheduling.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub leader_elect: Option<bool>,
    /// Duration that standbys wait before they take over an expired lease.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub leader_elect_lease_duration: Option<GoDuration>,
    /// Duration for which the leader retries to renew the lease before it gives up.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub leader_elect_renew_deadline: Option<GoDuration>,
    /// Kind of the lock. Only leases is supported.
    #[arg(long, allow_hyphen_values = true)]
    pub leader_elect_resource_lock: Option<String>,
    /// Name of the lock object.
    #[arg(long, allow_hyphen_values = true)]
    pub leader_elect_resource_name: Option<String>,
    /// Namespace of the lock object.
    #[arg(long, allow_hyphen_values = true)]
    pub leader_elect_resource_namespace: Option<String>,
    /// Duration between attempts to acquire or renew the lease.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub leader_elect_retry_period: Option<GoDuration>,
}

/// Flags of the section "feature gate".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Feature gate flags")]
pub struct FeatureGateFlags {
    /// Comma-separated versions to emulate: [component=]major.minor, from 1.33 to 1.36.
    #[arg(long, allow_hyphen_values = true)]
    pub emulated_version: Vec<String>,
    /// Comma-separated feature gates: [component:]name=bool. May be repeated.
    #[arg(long, allow_hyphen_values = true)]
    pub feature_gates: Vec<String>,
    /// Comma-separated minimum versions in the control plane: [component=]major.minor.
    #[arg(long, allow_hyphen_values = true)]
    pub min_compatibility_version: Vec<String>,
}

/// Flags of the section "global".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Global flags")]
pub struct GlobalFlags {
    /// Print the help of kube-scheduler.
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub help: Option<bool>,
    /// --version, --version=raw prints version information and quits; --version=vX.Y.Z... sets the reported version.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = version)]
    pub version: Option<VersionFlag>,
}

impl DeprecatedFlags {
    pub(super) fn apply(&self, config: &mut Config) {
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
    pub(super) fn apply(&self, config: &mut Config) {
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

impl MiscFlags {
    pub(super) fn show(&self, shown: &mut Shown) {
        shown.text("config", self.config.as_ref(), "");
        shown.text("master", self.master.as_ref(), "");
        shown.text("write-config-to", self.write_config_to.as_ref(), "");
    }
}

impl DeprecatedFlags {
    pub(super) fn show(&self, shown: &mut Shown) {
        shown.flag("contention-profiling", self.contention_profiling, true);
        shown.value("kube-api-burst", "int32", self.kube_api_burst.as_ref(), &100);
        shown.text("kube-api-content-type", self.kube_api_content_type.as_ref(), "application/vnd.kubernetes.protobuf");
        shown.value("kube-api-qps", "float32", self.kube_api_qps.as_ref(), &50.0);
        shown.text("kubeconfig", self.kubeconfig.as_ref(), "");
        let longest = self.pod_max_in_unschedulable_pods_duration.as_ref();
        shown.value("pod-max-in-unschedulable-pods-duration", "duration", longest, &MAX_IN_UNSCHEDULABLE);
        shown.flag("profiling", self.profiling, true);
    }
}

impl LeaderElectionFlags {
    pub(super) fn show(&self, shown: &mut Shown) {
        shown.flag("leader-elect", self.leader_elect, true);
        let mut duration = |name, given: Option<&GoDuration>, seconds| {
            shown.value(name, "duration", given, &GoDuration::from_secs(seconds));
        };
        duration("leader-elect-lease-duration", self.leader_elect_lease_duration.as_ref(), 15);
        duration("leader-elect-renew-deadline", self.leader_elect_renew_deadline.as_ref(), 10);
        duration("leader-elect-retry-period", self.leader_elect_retry_period.as_ref(), 2);
        shown.text("leader-elect-resource-lock", self.leader_elect_resource_lock.as_ref(), "leases");
        shown.text("leader-elect-resource-name", self.leader_elect_resource_name.as_ref(), "kube-scheduler");
        shown.text("leader-elect-resource-namespace", self.leader_elect_resource_namespace.as_ref(), "kube-system");
    }
}

impl FeatureGateFlags {
    pub(super) fn show(&self, shown: &mut Shown) {
        // Unlike other lists, these are shown as given and without brackets, as in upstream.
        shown.raw("emulated-version", "strings", &self.emulated_version.join(","), "");
        shown.raw("feature-gates", "colonSeparatedMultimapStringString", &self.feature_gates.join(","), "");
        shown.raw("min-compatibility-version", "strings", &self.min_compatibility_version.join(","), "");
    }
}

impl GlobalFlags {
    pub(super) fn show(&self, shown: &mut Shown) {
        shown.flag("help", self.help, false);
        let version = match &self.version {
            None | Some(VersionFlag::No) => "false",
            Some(VersionFlag::Print) => "true",
            Some(VersionFlag::Raw) => "raw",
            Some(VersionFlag::Report(version)) => version,
        };
        shown.raw("version", "version[=true]", version, "false");
    }
}
