//! Extenders over HTTP: webhooks that filter and score nodes, bind pods and choose victims.
//!
//! ```text
//!  scheduling thread ──filter, prioritize, preempt──▶ HttpExtender ──POST <urlPrefix>/<verb>──▶ webhook
//!     waits for the reply                                 │  ▲
//!  a pod's task ──bind, awaits──────────────────────▶     ▼  │ one thread runs all calls
//! ```
//!
//! Follows `pkg/scheduler/extender.go @v1.36.3`. The calls run on a thread of their own, because the scheduling cycle that
//! waits for them may block the only thread of a runtime. Their timeouts use real time even in a simulation, because a webhook
//! has no simulated time.

mod client;
mod error;
mod http;
mod tls;
mod wire;

use std::sync::Arc;

pub use http::HttpExtender;

use crate::config::{Config, Profile};
use crate::go::duration::GoDuration;
use crate::scheduler::Extender;
use client::Background;

/// Error while the extenders are built. The texts are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't build extenders: {0}")]
pub struct BuildError(String);

/// Makes a profile ignore these resources, which extenders manage. The error has upstream's text.
pub type IgnoreResources = fn(&mut Profile, &[String]) -> Result<(), String>;

/// Builds the configured extenders, in their order. `ignore` is called for every profile with the resources that the scheduler
/// should ignore, if there are any. The default timeout is also written into `config`.
/// Follows `pkg/scheduler/scheduler.go#buildExtenders @v1.36.3`.
pub fn build(config: &mut Config, ignore: IgnoreResources) -> Result<Vec<Arc<dyn Extender>>, BuildError> {
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
            ignore(profile, &ignored).map_err(BuildError)?;
        }
    }
    Ok(extenders)
}
