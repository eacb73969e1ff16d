//! Placeholders for plugins that are not implemented yet, at all their extension points.
//!
//! A pod that does not need the plugin passes. A pod that needs the plugin is rejected, so that no pod is silently misplaced. The
//! reason is `<plugin> is not supported yet`, followed by the feature of the pod that needs the plugin. For pods that pass, none
//! of these plugins would affect the scores.

use std::borrow::Cow;
use std::sync::Arc;

use super::json;
use crate::framework::{
    BindContext, BoxFuture, Candidates, CycleContext, CycleState, EnqueueExtensions, EventRegistration, FilterPlugin,
    NodeRef, NodeScores, NormalizeScore, Plugin, PluginError, PreBindOutcome, PreBindPlugin, PreBindPreFlight,
    PreFilterOutcome, PreFilterPlugin, PreScoreOutcome, PreScorePlugin, Rejection, ReservePlugin, ScorePlugin, Scratch,
    SignOutcome, SignPlugin, Verdict,
};
use crate::k8s::Volume;
use crate::model::PodInfo;

/// The behavior of a plugin that is not implemented yet.
pub(super) trait Missing: Send + Sync + 'static {
    /// Name of the plugin.
    const NAME: &'static str;

    /// Returns the rejection reason if the pod needs the plugin, or `None` if it does not.
    fn requirement(&self, cx: &CycleContext<'_>) -> Option<Cow<'static, str>>;

    /// Writes the cycle state that later extension points read.
    fn begin(&self, _state: &mut CycleState) {}

    /// Signs the pod as the plugin would.
    fn sign(&self, pod: &PodInfo) -> SignOutcome;

    /// Returns the events that may make a rejected pod schedulable.
    fn events(self: Arc<Self>) -> Vec<EventRegistration> {
        Vec::new()
    }
}

/// A plugin that a pod needs only because of certain kinds of volumes.
pub(super) trait MissingForVolumes: Send + Sync + 'static {
    /// Name of the plugin.
    const NAME: &'static str;

    /// Description of the pods that need the plugin, used in the rejection reason.
    const WHAT: &'static str;

    /// Whether this volume needs the plugin.
    fn is_needed(volume: &Volume) -> bool;
}

impl<M: MissingForVolumes> Missing for M {
    const NAME: &'static str = M::NAME;

    fn requirement(&self, cx: &CycleContext<'_>) -> Option<Cow<'static, str>> {
        cx.pod.pod().spec.volumes.iter().any(M::is_needed).then(|| not_supported(M::NAME, M::WHAT))
    }

    fn sign(&self, pod: &PodInfo) -> SignOutcome {
        sign_volumes(pod, M::NAME)
    }
}

/// Returns the rejection reason for a pod. It names the pod's feature too, because the pod's owner may not know the plugin.
pub(super) fn not_supported(plugin: &str, what: &str) -> Cow<'static, str> {
    format!("{plugin} is not supported yet: this scheduler does not place pods with {what}").into()
}

/// Signs the pod by its volumes, as all volume plugins do.
pub(super) fn sign_volumes(pod: &PodInfo, plugin: &str) -> SignOutcome {
    match json::volumes(pod.pod()) {
        Some(fragment) => SignOutcome::Fragments(vec![fragment]),
        None => SignOutcome::Refuse(Rejection::unschedulable(format!("{plugin} does not sign ephemeral volumes"))),
    }
}

/// The placeholder for a plugin that is not implemented yet.
pub(super) struct Unsupported<M> {
    pub(super) missing: Arc<M>,
}

impl<M: Missing> Unsupported<M> {
    /// Returns a placeholder for one profile.
    pub(super) fn new(missing: M) -> Arc<Self> {
        Arc::new(Self { missing: Arc::new(missing) })
    }
}

impl<M: Missing> Plugin for Unsupported<M> {
    fn name(&self) -> &str {
        M::NAME
    }
}

impl<M: Missing> PreFilterPlugin for Unsupported<M> {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        self.missing.begin(cx.state);
        Ok(match self.missing.requirement(cx) {
            Some(reason) => PreFilterOutcome::Reject(Rejection::unresolvable(reason)),
            None => PreFilterOutcome::Skip,
        })
    }
}

/// The filter, which is called only in a profile that does not run `PreFilter`.
impl<M: Missing> FilterPlugin for Unsupported<M> {
    fn filter(
        &self,
        cx: &CycleContext<'_>,
        _node: NodeRef<'_>,
        _scratch: &mut Scratch,
    ) -> Result<Verdict, PluginError> {
        Ok(self.missing.requirement(cx).map_or(Verdict::Pass, Verdict::unresolvable))
    }

    fn filter_block(&self, cx: &CycleContext<'_>, block: &mut Candidates<'_>) -> Result<(), PluginError> {
        if let Some(reason) = self.missing.requirement(cx) {
            block.retain(|_, _| Ok(Verdict::unresolvable(reason.clone())));
        }
        Ok(())
    }
}

impl<M: Missing> PreScorePlugin for Unsupported<M> {
    fn pre_score(&self, _cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        Ok(PreScoreOutcome::Skip)
    }
}

impl<M: Missing> ScorePlugin for Unsupported<M> {
    fn score(
        &self,
        _cx: &CycleContext<'_>,
        _node: NodeRef<'_>,
        _scratch: Option<&Scratch>,
    ) -> Result<i64, PluginError> {
        Ok(0)
    }

    fn score_block(&self, _cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        scores.scores.fill(0);
        Ok(())
    }
}

impl<M: Missing> NormalizeScore for Unsupported<M> {
    fn normalize(&self, _cx: &CycleContext<'_>, _scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        Ok(())
    }
}

/// Reserves nothing, because pods that need the plugin are rejected before `Reserve`.
impl<M: Missing> ReservePlugin for Unsupported<M> {
    fn reserve(
        &self,
        _cx: &mut CycleContext<'_>,
        _node: &str,
        _scratch: Option<&Scratch>,
    ) -> Result<Verdict, PluginError> {
        Ok(Verdict::Pass)
    }

    fn unreserve(&self, _state: &CycleState, _pod: &PodInfo, _node: &str) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

impl<M: Missing> PreBindPlugin for Unsupported<M> {
    fn pre_flight(&self, _cx: BindContext<'_>) -> Result<PreBindPreFlight, PluginError> {
        Ok(PreBindPreFlight::Skip { parallel: true })
    }

    fn pre_bind<'a>(&'a self, _cx: BindContext<'a>) -> BoxFuture<'a, Result<PreBindOutcome, PluginError>> {
        Box::pin(std::future::ready(Ok(PreBindOutcome::Pass)))
    }
}

impl<M: Missing> SignPlugin for Unsupported<M> {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(self.missing.sign(pod))
    }
}

impl<M: Missing> EnqueueExtensions for Unsupported<M> {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        Ok(self.missing.clone().events())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_plugin_and_unsupported_feature() {
        let expected =
            "VolumeBinding is not supported yet: this scheduler does not place pods with persistent volume claims";
        assert_eq!(not_supported("VolumeBinding", "persistent volume claims"), expected);
    }
}
