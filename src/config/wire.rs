//! The configuration as written in files: optional fields, without defaults.
//!
//! Follows `kube-scheduler/config/v1/types.go` and `component-base/config/v1alpha1/types.go @v1.36.3`.

use super::any_args::TypedArgs;
use super::decode::{Bytes, Raw, wire_struct};
use crate::go::duration::GoDuration;

/// The root object of a configuration file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct KubeSchedulerConfiguration {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) parallelism: Option<i32>,
    pub(super) leader_election: LeaderElection,
    pub(super) client_connection: ClientConnection,
    pub(super) enable_profiling: Option<bool>,
    pub(super) enable_contention_profiling: Option<bool>,
    pub(super) percentage_of_nodes_to_score: Option<i32>,
    pub(super) pod_initial_backoff_seconds: Option<i64>,
    pub(super) pod_max_backoff_seconds: Option<i64>,
    pub(super) profiles: Vec<Profile>,
    pub(super) extenders: Vec<Extender>,
    pub(super) delay_cache_until_active: bool,
}

wire_struct!(KubeSchedulerConfiguration, "v1.KubeSchedulerConfiguration", {
    "apiVersion" in "TypeMeta" => api_version,
    "kind" in "TypeMeta" => kind,
    "parallelism" => parallelism,
    "leaderElection" => leader_election,
    "clientConnection" => client_connection,
    "enableProfiling" in "DebuggingConfiguration" => enable_profiling,
    "enableContentionProfiling" in "DebuggingConfiguration" => enable_contention_profiling,
    "percentageOfNodesToScore" => percentage_of_nodes_to_score,
    "podInitialBackoffSeconds" => pod_initial_backoff_seconds,
    "podMaxBackoffSeconds" => pod_max_backoff_seconds,
    "profiles" => profiles,
    "extenders" => extenders,
    "delayCacheUntilActive" => delay_cache_until_active,
});

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeaderElection {
    pub(super) leader_elect: Option<bool>,
    pub(super) lease_duration: GoDuration,
    pub(super) renew_deadline: GoDuration,
    pub(super) retry_period: GoDuration,
    pub(super) resource_lock: String,
    pub(super) resource_name: String,
    pub(super) resource_namespace: String,
}

wire_struct!(LeaderElection, "v1alpha1.LeaderElectionConfiguration", {
    "leaderElect" => leader_elect,
    "leaseDuration" => lease_duration,
    "renewDeadline" => renew_deadline,
    "retryPeriod" => retry_period,
    "resourceLock" => resource_lock,
    "resourceName" => resource_name,
    "resourceNamespace" => resource_namespace,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClientConnection {
    pub(super) kubeconfig: String,
    pub(super) accept_content_types: String,
    pub(super) content_type: String,
    pub(super) qps: f32,
    pub(super) burst: i32,
}

wire_struct!(ClientConnection, "v1alpha1.ClientConnectionConfiguration", {
    "kubeconfig" => kubeconfig,
    "acceptContentTypes" => accept_content_types,
    "contentType" => content_type,
    "qps" => qps,
    "burst" => burst,
});

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Profile {
    pub(super) scheduler_name: Option<String>,
    pub(super) percentage_of_nodes_to_score: Option<i32>,
    pub(super) plugins: Option<Plugins>,
    pub(super) plugin_config: Vec<PluginConfig>,
}

wire_struct!(Profile, "v1.KubeSchedulerProfile", {
    "schedulerName" => scheduler_name,
    "percentageOfNodesToScore" => percentage_of_nodes_to_score,
    "plugins" => plugins,
    "pluginConfig" => plugin_config,
});

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plugins {
    pub(super) pre_enqueue: PluginSet,
    pub(super) queue_sort: PluginSet,
    pub(super) pre_filter: PluginSet,
    pub(super) filter: PluginSet,
    pub(super) post_filter: PluginSet,
    pub(super) pre_score: PluginSet,
    pub(super) score: PluginSet,
    pub(super) reserve: PluginSet,
    pub(super) permit: PluginSet,
    pub(super) pre_bind: PluginSet,
    pub(super) bind: PluginSet,
    pub(super) post_bind: PluginSet,
    pub(super) multi_point: PluginSet,
    pub(super) placement_generate: PluginSet,
    pub(super) placement_score: PluginSet,
}

wire_struct!(Plugins, "v1.Plugins", {
    "preEnqueue" => pre_enqueue,
    "queueSort" => queue_sort,
    "preFilter" => pre_filter,
    "filter" => filter,
    "postFilter" => post_filter,
    "preScore" => pre_score,
    "score" => score,
    "reserve" => reserve,
    "permit" => permit,
    "preBind" => pre_bind,
    "bind" => bind,
    "postBind" => post_bind,
    "multiPoint" => multi_point,
    "placementGenerate" => placement_generate,
    "placementScore" => placement_score,
});

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PluginSet {
    pub(super) enabled: Vec<Plugin>,
    pub(super) disabled: Vec<Plugin>,
}

wire_struct!(PluginSet, "v1.PluginSet", { "enabled" => enabled, "disabled" => disabled });

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plugin {
    pub(super) name: String,
    pub(super) weight: Option<i32>,
}

wire_struct!(Plugin, "v1.Plugin", { "name" => name, "weight" => weight });

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PluginConfig {
    pub(super) name: String,
    pub(super) args: Raw,
    /// `args` decoded into the plugin's type of arguments, if it has one.
    pub(super) typed: Option<TypedArgs>,
}

wire_struct!(PluginConfig, "v1.PluginConfig", { "name" => name, "args" => args });

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extender {
    pub(super) url_prefix: String,
    pub(super) filter_verb: String,
    pub(super) preempt_verb: String,
    pub(super) prioritize_verb: String,
    pub(super) weight: i64,
    pub(super) bind_verb: String,
    pub(super) enable_https: bool,
    pub(super) tls_config: Option<ExtenderTls>,
    pub(super) http_timeout: GoDuration,
    pub(super) node_cache_capable: bool,
    pub(super) managed_resources: Vec<ManagedResource>,
    pub(super) ignorable: bool,
}

wire_struct!(Extender, "v1.Extender", {
    "urlPrefix" => url_prefix,
    "filterVerb" => filter_verb,
    "preemptVerb" => preempt_verb,
    "prioritizeVerb" => prioritize_verb,
    "weight" => weight,
    "bindVerb" => bind_verb,
    "enableHTTPS" => enable_https,
    "tlsConfig" => tls_config,
    "httpTimeout" => http_timeout,
    "nodeCacheCapable" => node_cache_capable,
    "managedResources" => managed_resources,
    "ignorable" => ignorable,
});

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ManagedResource {
    pub(super) name: String,
    pub(super) ignored_by_scheduler: bool,
}

wire_struct!(ManagedResource, "v1.ExtenderManagedResource", {
    "name" => name,
    "ignoredByScheduler" => ignored_by_scheduler,
});

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ExtenderTls {
    pub(super) insecure: bool,
    pub(super) server_name: String,
    pub(super) cert_file: String,
    pub(super) key_file: String,
    pub(super) ca_file: String,
    pub(super) cert_data: Bytes,
    pub(super) key_data: Bytes,
    pub(super) ca_data: Bytes,
}

wire_struct!(ExtenderTls, "v1.ExtenderTLSConfig", {
    "insecure" => insecure,
    "serverName" => server_name,
    "certFile" => cert_file,
    "keyFile" => key_file,
    "caFile" => ca_file,
    "certData" => cert_data,
    "keyData" => key_data,
    "caData" => ca_data,
});
