//! The configuration of a scheduler: `KubeSchedulerConfiguration` files, feature gates and flags.
//!
//! ```text
//! file ──decode──▶ wire types ──resolve──▶ Config ──(flags)──▶ validate ──▶ other modules
//!        strict      optional    defaults              texts of
//!                    fields      by gates              upstream
//! ```
//!
//! Wire types have the optional fields of a file. Resolved types ([`Config`]) have every default filled in, and are the only
//! ones that other modules see. No code here reads a clock or the network, or knows a plugin: a [`PluginCatalog`] provides
//! the default set and the types of arguments, and [`expand`] asks its caller which plugins implement which points.

mod any_args;
mod catalog;
pub(crate) mod decode;
mod defaults;
mod document;
mod encode;
mod expand;
pub mod flags;
mod gates;
mod load;
mod plugin_args;
mod plugins;
mod read;
mod support;
pub mod types;
mod validate;
mod wire;

pub(crate) use load::read as read_file;

pub use any_args::{AnyArgs, ArgsType, TypedArgs};
pub use catalog::{DefaultPlugin, PluginCatalog};
pub use defaults::DEFAULT_SCHEDULER_NAME;
pub use document::{DocumentError, document_text, parse_documents};
pub use expand::{ExpandError, ExpandedPlugin, ExpandedPlugins, Implements, ProfileChecker, expand};
pub use flags::{FlagError, Flags, VersionFlag};
pub use gates::{BINARY_MINOR, FeatureGates, Gate, GateError, GateFlags, OLDEST_MINOR, Stage};
pub use load::{ConfigError, MAX_FILE_BYTES};
pub use plugin_args::{ArgsError, FactoryArgs, PluginArgs, RawArgs, ReadArgs, ReadArgsResult, WrittenArgs};
pub use types::{
    ClientConnection, Config, Extender, ExtensionPoint, LeaderElection, ManagedResource, Plugin, PluginConfig,
    PluginSet, Plugins, Profile, TlsSettings,
};
