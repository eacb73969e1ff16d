//! Extension points of the binding: `Reserve`, `Permit`, `PreBind`, `Bind` and `PostBind`.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use super::super::{
    BindContext, BindOutcome, BoxFuture, Code, CycleContext, CycleState, MAX_PERMIT_TIMEOUT, PermitOutcome,
    PluginError, PodInPreBind, PreBindPlugin, PreBindPreFlight, Rejection, Scratch, Verdict,
};
use super::{Entry, Framework, PreBindEntry, sampled};
use crate::metrics::{Operation, Point};
use crate::model::PodInfo;

/// The combined outcome of the `Permit` plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitRun {
    /// All plugins allow the pod.
    Allow,
    /// These plugins make the pod wait, each at most for its duration.
    Wait(Vec<(Arc<str>, Duration)>),
    /// This plugin rejects the pod.
    Reject(Arc<str>, Rejection),
}

/// The combined outcome of the `PreBindPreFlight` plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreFlight {
    /// At least one plugin has work to do before the pod is bound.
    Work,
    /// No plugin has work to do.
    Nothing,
}

/// The plugin that rejected a pod, and its rejection.
pub(crate) type PluginRejection = (Arc<str>, Rejection);

impl Framework {
    /// Runs the `Reserve` plugins. `scratch` has the slots that the filters filled for the chosen node, by plugin index.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunReservePluginsReserve @v1.36.3`.
    pub(crate) fn run_reserve(
        &self,
        cx: &mut CycleContext<'_>,
        node: &str,
        scratch: &[(usize, Scratch)],
    ) -> Result<Option<PluginRejection>, PluginError> {
        let started = self.mono();
        let run = self.reserve(cx, node, scratch);
        self.observe_point(Point::Reserve, rejection_code(&run), started);
        run
    }

    fn reserve(
        &self,
        cx: &mut CycleContext<'_>,
        node: &str,
        scratch: &[(usize, Scratch)],
    ) -> Result<Option<PluginRejection>, PluginError> {
        for entry in &self.reserve {
            let slot = scratch.iter().find(|(plugin, _)| *plugin == entry.index).map(|(_, slot)| slot);
            let verdict = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.reserve(cx, node, slot),
                |verdict| verdict.as_ref().map_or(Code::Error, Verdict::code),
            );
            match verdict.map_err(|error| error.context(format_args!("running Reserve plugin {:?}", entry.name)))? {
                Verdict::Pass => {}
                Verdict::Reject(rejection) => return Ok(Some((entry.name.clone(), rejection))),
            }
        }
        Ok(None)
    }

    /// Runs `Unreserve` of all plugins in reverse order, and returns the API writes that they ask for.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunReservePluginsUnreserve @v1.36.3`.
    pub fn run_unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Vec<BoxFuture<'static, ()>> {
        let started = self.mono();
        let writes = self
            .reserve
            .iter()
            .rev()
            .filter_map(|entry| {
                self.timed(entry, sampled(state), |plugin| plugin.unreserve(state, pod, node), |_| Code::Success)
            })
            .collect();
        self.observe_point(Point::Unreserve, Code::Success, started);
        writes
    }

    /// Runs the `Permit` plugins. Follows `pkg/scheduler/framework/runtime/framework.go#RunPermitPlugins @v1.36.3`.
    pub fn run_permit(&self, cx: &mut CycleContext<'_>, node: &str) -> Result<PermitRun, PluginError> {
        let started = self.mono();
        let run = self.permit(cx, node);
        let code = match &run {
            Ok(PermitRun::Allow) => Code::Success,
            Ok(PermitRun::Wait(_)) => Code::Wait,
            Ok(PermitRun::Reject(_, rejection)) => rejection.code(),
            Err(_) => Code::Error,
        };
        self.observe_point(Point::Permit, code, started);
        run
    }

    fn permit(&self, cx: &mut CycleContext<'_>, node: &str) -> Result<PermitRun, PluginError> {
        let mut waits = Vec::new();
        for entry in &self.permit {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.permit(cx, node),
                |outcome| match outcome {
                    Ok(PermitOutcome::Allow) => Code::Success,
                    Ok(PermitOutcome::Wait(..)) => Code::Wait,
                    Ok(PermitOutcome::Reject(rejection)) => rejection.code(),
                    Err(_) => Code::Error,
                },
            );
            match outcome.map_err(|error| error.context(format_args!("running Permit plugin {:?}", entry.name)))? {
                PermitOutcome::Allow => {}
                PermitOutcome::Wait(timeout, _) => waits.push((entry.name.clone(), timeout.min(MAX_PERMIT_TIMEOUT))),
                PermitOutcome::Reject(rejection) => return Ok(PermitRun::Reject(entry.name.clone(), rejection)),
            }
        }
        Ok(if waits.is_empty() { PermitRun::Allow } else { PermitRun::Wait(waits) })
    }

    /// Runs `PreBindPreFlight`, and stores in the state which `PreBind` plugins are skipped and which may run in parallel.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreBindPreFlights @v1.36.3`.
    pub fn run_pre_flight(
        &self,
        state: &mut CycleState,
        pod: &Arc<PodInfo>,
        node: &Arc<str>,
    ) -> Result<PreFlight, PluginError> {
        let started = self.mono();
        let run = self.pre_flight(state, pod, node);
        let code = match &run {
            Ok(PreFlight::Work) => Code::Success,
            Ok(PreFlight::Nothing) => Code::Skip,
            Err(_) => Code::Error,
        };
        self.observe_point(Point::PreBindPreFlight, code, started);
        run
    }

    fn pre_flight(
        &self,
        state: &mut CycleState,
        pod: &Arc<PodInfo>,
        node: &Arc<str>,
    ) -> Result<PreFlight, PluginError> {
        let mut run = PreFlight::Nothing;
        for PreBindEntry { entry, pre_flight } in &self.pre_bind {
            let started = sampled(state).then(|| self.mono());
            let outcome = entry.plugin.pre_flight(BindContext { pod, node, state });
            if let Some(started) = started {
                let code = match &outcome {
                    Ok(PreBindPreFlight::Work { .. }) => Code::Success,
                    Ok(PreBindPreFlight::Skip { .. }) => Code::Skip,
                    Err(_) => Code::Error,
                };
                self.recorder.observe(pre_flight.series(code), self.mono().seconds_since(started));
            }
            let outcome =
                outcome.map_err(|error| error.context(format_args!("running PreBindPreFlight {:?}", entry.name)))?;
            let (PreBindPreFlight::Work { parallel } | PreBindPreFlight::Skip { parallel }) = outcome;
            if parallel {
                state.parallel_pre_bind.insert(entry.index);
            }
            match outcome {
                PreBindPreFlight::Work { .. } => run = PreFlight::Work,
                PreBindPreFlight::Skip { .. } => state.skip_pre_bind.insert(entry.index),
            }
        }
        Ok(run)
    }

    /// Runs the `PreBind` plugins. Adjacent plugins that allow it run in parallel, all others one after another. With
    /// `on_its_way`, the pod can be cancelled until all plugins have finished. Cancelling drops the running plugins at their
    /// next await.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreBindPlugins @v1.36.3`.
    pub async fn run_pre_bind(
        &self,
        cx: BindContext<'_>,
        on_its_way: Option<&PodInPreBind>,
    ) -> Result<Option<PluginRejection>, PluginError> {
        let started = self.mono();
        let run = self.pre_bind(cx, on_its_way).await;
        self.observe_point(Point::PreBind, rejection_code(&run), started);
        run
    }

    async fn pre_bind(
        &self,
        cx: BindContext<'_>,
        on_its_way: Option<&PodInPreBind>,
    ) -> Result<Option<PluginRejection>, PluginError> {
        for group in self.pre_bind_groups(cx.state) {
            let _running = (group.len() > 1).then(|| self.handle.metrics().running(Operation::PreBind));
            let first = group[0].name.clone();
            let outcome = match on_its_way {
                None => self.pre_bind_group(group, cx).await,
                Some(pod) => tokio::select! {
                    biased;
                    reason = pod.cancelled() => Err(pre_bind_error(&first, &reason)),
                    outcome = self.pre_bind_group(group, cx) => outcome,
                },
            };
            if let Some(rejected) = outcome? {
                return Ok(Some(rejected));
            }
        }
        Ok(None)
    }

    /// Runs a group of plugins in parallel. The first failure ends the group, and the other plugins are dropped.
    async fn pre_bind_group(
        &self,
        group: Vec<&Entry<dyn PreBindPlugin>>,
        cx: BindContext<'_>,
    ) -> Result<Option<PluginRejection>, PluginError> {
        let mut running: FuturesUnordered<_> = group.into_iter().map(|entry| self.pre_bind_one(entry, cx)).collect();
        while let Some(outcome) = running.next().await {
            if let Some(rejected) = outcome? {
                return Ok(Some(rejected));
            }
        }
        Ok(None)
    }

    async fn pre_bind_one(
        &self,
        entry: &Entry<dyn PreBindPlugin>,
        cx: BindContext<'_>,
    ) -> Result<Option<PluginRejection>, PluginError> {
        let started = self.mono();
        let verdict = entry.plugin.pre_bind(cx).await;
        if sampled(cx.state) {
            let code = verdict.as_ref().map_or(Code::Error, Verdict::code);
            self.recorder.observe(entry.durations.series(code), self.mono().seconds_since(started));
        }
        match verdict.map_err(|error| pre_bind_error(&entry.name, &error))? {
            Verdict::Pass => Ok(None),
            Verdict::Reject(rejection) => Ok(Some((entry.name.clone(), rejection))),
        }
    }

    /// Splits the `PreBind` plugins into groups that run in parallel. A skipped plugin that does not allow parallel execution
    /// still ends a group. Follows `pkg/scheduler/framework/runtime/framework.go#getPreBindPluginGroups @v1.36.3`.
    fn pre_bind_groups(&self, state: &CycleState) -> Vec<Vec<&Entry<dyn PreBindPlugin>>> {
        let mut groups: Vec<Vec<&Entry<dyn PreBindPlugin>>> = Vec::new();
        let mut open = false;
        for PreBindEntry { entry, .. } in &self.pre_bind {
            let parallel = state.parallel_pre_bind.contains(entry.index);
            if !state.skip_pre_bind.contains(entry.index) {
                match groups.last_mut() {
                    Some(group) if open && parallel => group.push(entry),
                    _ => groups.push(vec![entry]),
                }
                open = parallel;
            } else if !parallel {
                open = false;
            }
        }
        groups
    }

    /// Runs `Bind` plugins until one binds or rejects the pod. Returns `BindOutcome::Skip` if none does.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunBindPlugins @v1.36.3`.
    pub async fn run_bind(&self, cx: BindContext<'_>) -> Result<Result<BindOutcome, PluginRejection>, PluginError> {
        let started = self.mono();
        let run = self.bind(cx).await;
        let code = match &run {
            Ok(Ok(BindOutcome::Skip)) => Code::Skip,
            Ok(Ok(_)) => Code::Success,
            Ok(Err((_, rejection))) => rejection.code(),
            Err(_) => Code::Error,
        };
        self.observe_point(Point::Bind, code, started);
        run
    }

    async fn bind(&self, cx: BindContext<'_>) -> Result<Result<BindOutcome, PluginRejection>, PluginError> {
        for entry in &self.bind {
            let started = self.mono();
            let outcome = entry.plugin.bind(cx).await;
            if sampled(cx.state) {
                let code = match &outcome {
                    Ok(BindOutcome::Bound) => Code::Success,
                    Ok(BindOutcome::Skip) => Code::Skip,
                    Ok(BindOutcome::Reject(rejection)) => rejection.code(),
                    Err(_) => Code::Error,
                };
                self.recorder.observe(entry.durations.series(code), self.mono().seconds_since(started));
            }
            match outcome.map_err(|error| error.context(format_args!("running Bind plugin {:?}", entry.name)))? {
                BindOutcome::Skip => {}
                BindOutcome::Bound => return Ok(Ok(BindOutcome::Bound)),
                BindOutcome::Reject(rejection) => return Ok(Err((entry.name.clone(), rejection))),
            }
        }
        Ok(Ok(BindOutcome::Skip))
    }

    /// Runs the `PostBind` plugins. Follows `pkg/scheduler/framework/runtime/framework.go#RunPostBindPlugins @v1.36.3`.
    pub async fn run_post_bind(&self, cx: BindContext<'_>) {
        let started = self.mono();
        for entry in &self.post_bind {
            let started = self.mono();
            entry.plugin.post_bind(cx).await;
            if sampled(cx.state) {
                let series = entry.durations.series(Code::Success);
                self.recorder.observe(series, self.mono().seconds_since(started));
            }
        }
        self.observe_point(Point::PostBind, Code::Success, started);
    }
}

fn pre_bind_error(plugin: &str, error: &PluginError) -> PluginError {
    error.context(format_args!("running PreBind plugin {plugin:?}"))
}

fn rejection_code(run: &Result<Option<PluginRejection>, PluginError>) -> Code {
    match run {
        Ok(None) => Code::Success,
        Ok(Some((_, rejection))) => rejection.code(),
        Err(_) => Code::Error,
    }
}
