//! Extenders over HTTP: webhooks that filter and score nodes, bind pods and choose victims.
//!
//! ```text
//!  scheduling thread ──filter, prioritize, preempt──▶ HttpExtender ──POST <urlPrefix>/<verb>──▶ webhook
//!     waits for the answer                                │  ▲
//!  a pod's task ──bind, awaits──────────────────────▶     ▼  │ one thread carries all calls
//! ```
//!
//! Follows `pkg/scheduler/extender.go @v1.36.3`. The calls have a thread of their own, because the cycle that waits for them
//! may be on the only thread there is. Their timeouts are real time, in a simulation, too: a webhook has no other.

mod client;
mod error;
mod http;
mod tls;
mod wire;

use std::sync::Arc;

pub use http::HttpExtender;

use crate::config::{Config, PluginArgs, PluginConfig};
use crate::go::duration::GoDuration;
use crate::scheduler::Extender;
use client::Background;

/// Why there are no extenders. Texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't build extenders: {0}")]
pub struct BuildError(String);

/// The extenders of a configuration, in its order. What they want the scheduler to ignore replaces the resources that
/// `NodeResourcesFit` ignores, in every profile. Both the default timeout and what is ignored are put into `config`.
/// Follows `pkg/scheduler/scheduler.go#buildExtenders @v1.36.3`.
pub fn build(config: &mut Config) -> Result<Vec<Arc<dyn Extender>>, BuildError> {
    if config.extenders.is_empty() {
        return Ok(Vec::new());
    }
    for extender in &mut config.extenders {
        if extender.http_timeout == GoDuration::ZERO {
            extender.http_timeout = client::DEFAULT_TIMEOUT.into();
        }
    }
    let background = Background::start().map_err(|error| BuildError(error.to_string()))?;
    let mut extenders: Vec<Arc<dyn Extender>> = Vec::with_capacity(config.extenders.len());
    for extender in &config.extenders {
        tracing::debug!(extender = extender.url_prefix, "Creating extender");
        extenders.push(Arc::new(HttpExtender::new(extender, background.clone()).map_err(BuildError)?));
    }
    let managed = config.extenders.iter().flat_map(|extender| &extender.managed_resources);
    let ignored: Vec<String> =
        managed.filter(|resource| resource.ignored_by_scheduler).map(|resource| resource.name.clone()).collect();
    if !ignored.is_empty() {
        for profile in &mut config.profiles {
            ignore(&mut profile.plugin_config, &ignored)?;
        }
    }
    Ok(extenders)
}

fn ignore(plugin_config: &mut [PluginConfig], resources: &[String]) -> Result<(), BuildError> {
    match plugin_config.iter_mut().find(|config| config.name == "NodeResourcesFit") {
        Some(PluginConfig { args: PluginArgs::NodeResourcesFit(args), .. }) => {
            args.ignored_resources = resources.to_vec();
            Ok(())
        }
        Some(PluginConfig { args, .. }) => {
            Err(BuildError(format!("want args to be of type NodeResourcesFitArgs, got {}", args.kind())))
        }
        None => Err(BuildError("can't find NodeResourcesFitArgs in plugin config".to_owned())),
    }
}
