//! The resolved configuration: every default filled in, what everybody but this module works with.
//!
//! Follows `pkg/scheduler/apis/config/types.go @v1.36.3`.

use super::any_args::AnyArgs;
use crate::go::duration::GoDuration;

/// A point of the scheduling framework that plugins extend, in the order in which the configuration file lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionPoint {
    /// Gates a pod out of the queue.
    PreEnqueue,
    /// Orders the queue.
    QueueSort,
    /// Looks at a pod once a cycle, before nodes.
    PreFilter,
    /// Decides a node.
    Filter,
    /// Helps a pod that fits no node.
    PostFilter,
    /// Prepares scoring.
    PreScore,
    /// Ranks a node.
    Score,
    /// Takes note that a pod has a node.
    Reserve,
    /// Approves, delays or rejects.
    Permit,
    /// Does what must be done before binding.
    PreBind,
    /// Binds.
    Bind,
    /// Is told of a binding.
    PostBind,
    /// Makes placements for a pod group.
    PlacementGenerate,
    /// Ranks a placement.
    PlacementScore,
}

impl ExtensionPoint {
    /// How many there are.
    pub const COUNT: usize = 14;

    /// All, in the order of the configuration file.
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

    /// All, in the order in which a profile is built, which decides the error that is reported first. Follows
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

    /// Its key under `plugins` in the configuration file, such as `preFilter`.
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

    /// Its interface's name in messages, such as `PreFilterPlugin`.
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
    /// The name it is registered under; `*` in a disabled list stands for all.
    pub name: String,
    /// The weight of its scores; 0 when none was given, which counts as 1.
    pub weight: i32,
}

impl Plugin {
    /// `name` without a weight.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), weight: 0 }
    }

    /// The same plugin with `weight`.
    #[must_use]
    pub fn weighted(self, weight: i32) -> Self {
        Self { weight, ..self }
    }
}

/// What is enabled and disabled at one point, or at all of them (`multiPoint`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSet {
    /// In the order in which they run.
    pub enabled: Vec<Plugin>,
    /// Defaults that are not wanted; weights mean nothing here.
    pub disabled: Vec<Plugin>,
}

/// The plugin sets of a profile: the default set with the user's merged into it, not yet expanded to points.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plugins {
    /// Plugins for every point that they extend.
    pub multi_point: PluginSet,
    points: [PluginSet; ExtensionPoint::COUNT],
}

impl Plugins {
    /// `multi_point`, and nothing at any point of its own.
    pub fn from_multi_point(multi_point: PluginSet) -> Self {
        Self { multi_point, ..Self::default() }
    }

    /// The set of one point.
    pub fn point(&self, point: ExtensionPoint) -> &PluginSet {
        &self.points[point as usize]
    }

    /// The set of one point, to be changed.
    pub fn point_mut(&mut self, point: ExtensionPoint) -> &mut PluginSet {
        &mut self.points[point as usize]
    }

    /// Every name in an enabled list, sorted, each once. Follows
    /// `pkg/scheduler/apis/config/v1/defaults.go#pluginsNames @v1.36.3`.
    pub fn enabled_names(&self) -> std::collections::BTreeSet<&str> {
        let sets = std::iter::once(&self.multi_point).chain(&self.points);
        sets.flat_map(|set| &set.enabled).map(|plugin| plugin.name.as_str()).collect()
    }
}

/// The arguments of one plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// The plugin's name.
    pub name: String,
    /// Its arguments, defaulted if the plugin has a type for them.
    pub args: AnyArgs,
}

/// One way of scheduling: pods choose it by `spec.schedulerName`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The name that pods give.
    pub scheduler_name: String,
    /// Percentage (0–100) of the nodes to find feasible before scoring; none to use the configuration's.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// What is enabled where.
    pub plugins: Plugins,
    /// Arguments: those given, in the file's order, then the defaults of every other enabled plugin that takes any,
    /// sorted by name.
    pub plugin_config: Vec<PluginConfig>,
}

impl Profile {
    /// The arguments of `plugin`; [`AnyArgs::None`] if it has none.
    pub fn args(&self, plugin: &str) -> &AnyArgs {
        self.plugin_config.iter().find(|config| config.name == plugin).map_or(&AnyArgs::None, |config| &config.args)
    }
}

/// The whole configuration of a scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Workers for filtering, scoring and preemption dry runs; at least 1 once validated.
    pub parallelism: i32,
    /// Who leads among several schedulers.
    pub leader_election: LeaderElection,
    /// How the API server is reached.
    pub client_connection: ClientConnection,
    /// Whether profiling endpoints are served.
    pub enable_profiling: bool,
    /// Whether block profiling is on, where profiling is.
    pub enable_contention_profiling: bool,
    /// Percentage (0–100) of the nodes to find feasible before scoring; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: i32,
    /// First backoff of a pod, in seconds.
    pub pod_initial_backoff_seconds: i64,
    /// Longest backoff of a pod, in seconds.
    pub pod_max_backoff_seconds: i64,
    /// At least one once validated.
    pub profiles: Vec<Profile>,
    /// Webhooks that take part in scheduling.
    pub extenders: Vec<Extender>,
    /// Whether caches are filled only once this scheduler leads.
    pub delay_cache_until_active: bool,
}

/// Leader election. Follows `k8s.io/component-base/config/types.go#LeaderElectionConfiguration @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether to elect at all.
    pub leader_elect: bool,
    /// How long others wait before they take over.
    pub lease_duration: GoDuration,
    /// How long the leader tries to renew before it gives up.
    pub renew_deadline: GoDuration,
    /// The pause between tries.
    pub retry_period: GoDuration,
    /// The kind of lock; only `leases` is valid.
    pub resource_lock: String,
    /// The lock's name.
    pub resource_name: String,
    /// The lock's namespace.
    pub resource_namespace: String,
}

/// How the API server is reached. Follows
/// `k8s.io/component-base/config/types.go#ClientConnectionConfiguration @v1.36.3`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConnection {
    /// Path of a kubeconfig file; empty for none.
    pub kubeconfig: String,
    /// The Accept header; empty for the content type's.
    pub accept_content_types: String,
    /// The content type of requests.
    pub content_type: String,
    /// Requests a second on average; negative for no limit.
    pub qps: f32,
    /// Requests that may exceed it at once.
    pub burst: i32,
}

/// A webhook that takes part in scheduling. Follows `pkg/scheduler/apis/config/types.go#Extender @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extender {
    /// What verbs are appended to.
    pub url_prefix: String,
    /// Appended for filtering; empty if it does not filter.
    pub filter_verb: String,
    /// Appended for preemption; empty if it takes no part in it.
    pub preempt_verb: String,
    /// Appended for scoring; empty if it does not score.
    pub prioritize_verb: String,
    /// The weight of its scores; positive where `prioritize_verb` is set.
    pub weight: i64,
    /// Appended for binding; empty if it does not bind.
    pub bind_verb: String,
    /// Whether it is reached over TLS.
    pub enable_https: bool,
    /// TLS client settings.
    pub tls: Option<TlsSettings>,
    /// How long a call may take; zero for the default of 5 s.
    pub http_timeout: GoDuration,
    /// Whether it keeps nodes itself, so that names suffice.
    pub node_cache_capable: bool,
    /// Resources that it manages; empty for all pods.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether scheduling goes on without it.
    pub ignorable: bool,
}

/// How a connection is secured, as a client; data goes before files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Whether the server's certificate goes unchecked.
    pub insecure: bool,
    /// The name the server's certificate must carry; empty for the host's.
    pub server_name: String,
    /// Path of the client certificate.
    pub cert_file: String,
    /// Path of its key.
    pub key_file: String,
    /// Path of the certificates that vouch for the server.
    pub ca_file: String,
    /// The client certificate, PEM.
    pub cert_data: Vec<u8>,
    /// Its key, PEM.
    pub key_data: Vec<u8>,
    /// The certificates that vouch for the server, PEM.
    pub ca_data: Vec<u8>,
}

/// A resource that an extender manages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedResource {
    /// The resource's name.
    pub name: String,
    /// Whether the scheduler itself leaves it out of fitting.
    pub ignored_by_scheduler: bool,
}
