//! The configuration of a scheduler: `KubeSchedulerConfiguration` files, feature gates and flags.
//!
//! ```text
//! file ──decode──▶ wire types ──resolve──▶ Config ──(flags)──▶ validate ──▶ everybody else
//!        strict      optional    defaults              texts of
//!                    fields      by gates              upstream
//! ```
//!
//! Wire types say what a file may say; resolved ones ([`Config`]) have every default filled in, and are all that other
//! modules see. Nothing here reads a clock or the network, or knows what a plugin does: which plugin implements which
//! point is a question that [`expand`] asks its caller.

pub mod args;
mod base64;
pub(crate) mod decode;
mod defaults;
mod document;
pub mod duration;
mod encode;
mod expand;
pub mod flags;
mod gates;
mod load;
mod plugins;
mod support;
mod system_error;
mod text;
pub mod types;
mod validate;
mod wire;

pub(crate) use decode::json::syntax_error as json_syntax_error;
pub(crate) use load::read as read_file;
pub(crate) use system_error::{file_error, os_text};

pub use args::{
    ArgsError, DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs, NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PluginArgs, PodTopologySpreadArgs,
    RequestedToCapacityRatio, ResourceSpec, ScoringStrategy, UtilizationShapePoint, VolumeBindingArgs,
};
pub use defaults::DEFAULT_SCHEDULER_NAME;
pub use document::{DocumentError, document_text, parse_documents};
pub use duration::{GoDuration, ParseDurationError};
pub use expand::{ExpandError, ExpandedPlugin, ExpandedPlugins, Implements, ProfileChecker, expand};
pub use flags::{FlagError, Flags, VersionFlag};
pub use gates::{BINARY_MINOR, FeatureGates, Gate, GateError, GateFlags, OLDEST_MINOR, Stage};
pub use load::{ConfigError, MAX_FILE_BYTES};
pub use types::{
    ClientConnection, Config, Extender, ExtensionPoint, LeaderElection, ManagedResource, Plugin, PluginConfig,
    PluginSet, Plugins, Profile, TlsSettings,
};
pub use validate::validate_node_resources_fit_args;
