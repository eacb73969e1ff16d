//! The resolved configuration, with every default filled in. Other modules use only these types.
//!
//! Follows `pkg/scheduler/apis/config/types.go @v1.36.3`.

use super::any_args::AnyArgs;
use crate::go::duration::GoDuration;

/// A point at which plugins extend the scheduling framework. The variants are in the configuration file's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionPoint {
    /// Decides whether a pod may enter the active queue.
    PreEnqueue,
    /// Sorts the pods in the queue.
    QueueSort,
    /// Processes a pod once per cycle, before nodes are filtered.
    PreFilter,
    /// Decides whether a pod fits a node.
    Filter,
    /// Handles a pod that fits no node, for example by preemption.
    PostFilter,
    /// Prepares scoring, once per cycle.
    PreScore,
    /// Scores a node that passed the filters.
    Score,
    /// Reserves resources after a node was selected.
    Reserve,
    /// Approves, delays or rejects a pod's binding.
    Permit,
    /// Does work that a pod needs before its binding.
    PreBind,
    /// Binds a pod to its node.
    Bind,
    /// Is notified after a pod was bound.
    PostBind,
    /// Generates candidate placements for a pod group.
    PlacementGenerate,
    /// Scores a placement of a pod group.
    PlacementScore,
}

impl ExtensionPoint {
    /// Number of extension points.
    pub const COUNT: usize = 14;

    /// All points, in the order of the configuration file.
    pub const ALL: [Self; Self::COUNT] = [
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::PreScore,
        Self::Score,
        Self::Reserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
        Self::PlacementGenerate,
        Self::PlacementScore,
    ];

    /// All points, in the order in which a profile is built. The order decides which error is reported first. Follows
    /// `pkg/scheduler/framework/runtime/framework.go#getExtensionPoints @v1.36.3`.
    pub const BUILD_ORDER: [Self; Self::COUNT] = [
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::Reserve,
        Self::PreScore,
        Self::Score,
        Self::PreBind,
        Self::Bind,
        Self::PostBind,
        Self::Permit,
        Self::PreEnqueue,
        Self::QueueSort,
        Self::PlacementGenerate,
        Self::PlacementScore,
    ];

    /// The point's key under `plugins` in the configuration file, such as `preFilter`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::PreEnqueue => "preEnqueue",
            Self::QueueSort => "queueSort",
            Self::PreFilter => "preFilter",
            Self::Filter => "filter",
            Self::PostFilter => "postFilter",
            Self::PreScore => "preScore",
            Self::Score => "score",
            Self::Reserve => "reserve",
            Self::Permit => "permit",
            Self::PreBind => "preBind",
            Self::Bind => "bind",
            Self::PostBind => "postBind",
            Self::PlacementGenerate => "placementGenerate",
            Self::PlacementScore => "placementScore",
        }
    }

    /// Name of the point's interface in messages, such as `PreFilterPlugin`.
    pub const fn interface(self) -> &'static str {
        match self {
            Self::PreEnqueue => "PreEnqueuePlugin",
            Self::QueueSort => "QueueSortPlugin",
            Self::PreFilter => "PreFilterPlugin",
            Self::Filter => "FilterPlugin",
            Self::PostFilter => "PostFilterPlugin",
            Self::PreScore => "PreScorePlugin",
            Self::Score => "ScorePlugin",
            Self::Reserve => "ReservePlugin",
            Self::Permit => "PermitPlugin",
            Self::PreBind => "PreBindPlugin",
            Self::Bind => "BindPlugin",
            Self::PostBind => "PostBindPlugin",
            Self::PlacementGenerate => "PlacementGeneratePlugin",
            Self::PlacementScore => "PlacementScorePlugin",
        }
    }
}

/// A plugin in an enabled or disabled list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugin {
    /// The name under which the plugin is registered. `*` in a disabled list means all plugins.
    pub name: String,
    /// Weight of the plugin's scores. 0 means that no weight is set, and counts as 1.
    pub weight: i32,
}

impl Plugin {
    /// A plugin without a weight.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), weight: 0 }
    }

    /// The same plugin with the given weight.
    #[must_use]
    pub fn weighted(self, weight: i32) -> Self {
        Self { weight, ..self }
    }
}

/// The plugins enabled and disabled at one point, or at all points (`multiPoint`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSet {
    /// Enabled plugins, in running order.
    pub enabled: Vec<Plugin>,
    /// Default plugins to disable; their weights are ignored.
    pub disabled: Vec<Plugin>,
}

/// The plugin sets of a profile: the default sets merged with the user's, not yet expanded to points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugins {
    /// Plugins to enable at every point that they implement.
    pub multi_point: PluginSet,
    points: [PluginSet; ExtensionPoint::COUNT],
}

impl Plugins {
    /// Sets with only `multi_point`, and no plugin at an individual point.
    pub fn from_multi_point(multi_point: PluginSet) -> Self {
        Self { multi_point, ..Self::default() }
    }

    /// The plugin set of one point.
    pub fn point(&self, point: ExtensionPoint) -> &PluginSet {
        &self.points[point as usize]
    }

    /// The plugin set of one point, as a mutable reference.
    pub fn point_mut(&mut self, point: ExtensionPoint) -> &mut PluginSet {
        &mut self.points[point as usize]
    }

    /// The names in all enabled lists, sorted and without duplicates. Follows
    /// `pkg/scheduler/apis/config/v1/defaults.go#pluginsNames @v1.36.3`.
    pub fn enabled_names(&self) -> std::collections::BTreeSet<&str> {
        let sets = std::iter::once(&self.multi_point).chain(&self.points);
        sets.flat_map(|set| &set.enabled).map(|plugin| plugin.name.as_str()).collect()
    }
}

/// The arguments of one plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// Name of the plugin.
    pub name: String,
    /// The plugin's arguments, with defaults if the plugin has a type of arguments.
    pub args: AnyArgs,
}

/// A scheduling profile, which pods select with `spec.schedulerName`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The name by which pods select this profile.
    pub scheduler_name: String,
    /// Percentage (0–100) of nodes to find feasible before scoring. `None` uses the configuration's percentage.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// Enabled and disabled plugins of this profile.
    pub plugins: Plugins,
    /// Arguments of plugins: first the given ones, in the file's order, then the defaults of all other enabled plugins that
    /// have arguments, sorted by name.
    pub plugin_config: Vec<PluginConfig>,
}

impl Profile {
    /// The arguments of `plugin`; [`AnyArgs::None`] if it has none.
    pub fn args(&self, plugin: &str) -> &AnyArgs {
        self.plugin_config.iter().find(|config| config.name == plugin).map_or(&AnyArgs::None, |config| &config.args)
    }
}

/// The complete configuration of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Number of workers for filtering, scoring and preemption dry runs; at least 1 after validation.
    pub parallelism: i32,
    /// Settings of leader election.
    pub leader_election: LeaderElection,
    /// Settings of the connection to the API server.
    pub client_connection: ClientConnection,
    /// Whether to serve profiling endpoints.
    pub enable_profiling: bool,
    /// Whether block profiling is enabled; has no effect without profiling.
    pub enable_contention_profiling: bool,
    /// Percentage (0–100) of nodes to find feasible before scoring; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: i32,
    /// Initial backoff of a pod, in seconds.
    pub pod_initial_backoff_seconds: i64,
    /// Maximum backoff of a pod, in seconds.
    pub pod_max_backoff_seconds: i64,
    /// Scheduling profiles; at least one after validation.
    pub profiles: Vec<Profile>,
    /// Webhooks that extend scheduling.
    pub extenders: Vec<Extender>,
    /// Whether caches are filled only after this scheduler becomes the leader.
    pub delay_cache_until_active: bool,
}

/// Settings of leader election. Follows `k8s.io/component-base/config/types.go#LeaderElectionConfiguration @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether leader election is enabled.
    pub leader_elect: bool,
    /// Time from the last renewal that a standby has observed until it tries to acquire the lease.
    pub lease_duration: GoDuration,
    /// Time limit for the leader to renew the lease before it stops leading.
    pub renew_deadline: GoDuration,
    /// Wait between attempts to acquire or renew the lease.
    pub retry_period: GoDuration,
    /// Type of the lock object; only `leases` is valid.
    pub resource_lock: String,
    /// Name of the lock object.
    pub resource_name: String,
    /// Namespace of the lock object.
    pub resource_namespace: String,
}

/// Settings of the connection to the API server. Follows
/// `k8s.io/component-base/config/types.go#ClientConnectionConfiguration @v1.36.3`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConnection {
    /// Path of the kubeconfig file; empty if there is none.
    pub kubeconfig: String,
    /// Value of the Accept header; if empty, the content type is used.
    pub accept_content_types: String,
    /// Content type of requests.
    pub content_type: String,
    /// Average requests per second; a negative value means no limit.
    pub qps: f32,
    /// Number of requests that may exceed `qps` in a burst.
    pub burst: i32,
}

/// A webhook that extends scheduling. Follows `pkg/scheduler/apis/config/types.go#Extender @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extender {
    /// URL to which the verbs are appended.
    pub url_prefix: String,
    /// Verb for filtering; empty if the extender does not filter.
    pub filter_verb: String,
    /// Verb for preemption; empty if the extender does not support preemption.
    pub preempt_verb: String,
    /// Verb for scoring; empty if the extender does not score.
    pub prioritize_verb: String,
    /// Weight of the extender's scores; positive if `prioritize_verb` is set.
    pub weight: i64,
    /// Verb for binding; empty if the extender does not bind.
    pub bind_verb: String,
    /// Whether to use TLS for requests to the extender.
    pub enable_https: bool,
    /// TLS settings of the client.
    pub tls: Option<TlsSettings>,
    /// Timeout of a request; zero means the default of 5 s.
    pub http_timeout: GoDuration,
    /// Whether the extender caches nodes itself, so that requests contain only node names.
    pub node_cache_capable: bool,
    /// Resources managed by the extender. If empty, the extender is called for all pods.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether scheduling continues if the extender is unavailable.
    pub ignorable: bool,
}

/// TLS settings of a client. Data takes precedence over files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Whether to skip the verification of the server's certificate.
    pub insecure: bool,
    /// Server name to verify in the certificate; if empty, the URL's host is used.
    pub server_name: String,
    /// Path of the client certificate.
    pub cert_file: String,
    /// Path of the client certificate's key.
    pub key_file: String,
    /// Path of the CA bundle for verifying the server's certificate.
    pub ca_file: String,
    /// Client certificate, in PEM.
    pub cert_data: Vec<u8>,
    /// Key of the client certificate, in PEM.
    pub key_data: Vec<u8>,
    /// CA bundle for verifying the server's certificate, in PEM.
    pub ca_data: Vec<u8>,
}

/// A resource that an extender manages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedResource {
    /// Name of the resource.
    pub name: String,
    /// Whether the scheduler itself ignores the resource when it checks whether a pod fits.
    pub ignored_by_scheduler: bool,
}
