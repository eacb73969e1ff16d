//! Extension point `PreFilter`, with its methods `AddPod` and `RemovePod`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::{
    Code, CycleContext, CycleState, NodeRef, PluginError, PreFilterExtensions, PreFilterOutcome, Rejection,
    RejectionKind, Verdict,
};
use super::{Framework, PreFilterEntry, sampled};
use crate::metrics::{PluginDurations, Point};
use crate::model::PodInfo;

/// The combined result of the `PreFilter` plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreFilterRun {
    /// Names of the nodes to which plugins restricted the search. `None` for all nodes.
    pub nodes: Option<BTreeSet<String>>,
    /// The plugins that restricted the search.
    pub plugins_with_nodes: BTreeSet<Arc<str>>,
    /// The rejection with the plugin that rejected the pod. Without a plugin, the nodes of several plugins have none in common.
    pub rejection: Option<(Option<Arc<str>>, Rejection)>,
}

/// One of the methods `AddPod` and `RemovePod`.
struct Extension {
    name: &'static str,
    durations: fn(&PreFilterEntry) -> &PluginDurations,
}

const ADD_POD: Extension = Extension { name: "AddPod", durations: |plugin| &plugin.add_pod };

const REMOVE_POD: Extension = Extension { name: "RemovePod", durations: |plugin| &plugin.remove_pod };

impl Framework {
    /// Runs the `PreFilter` plugins. Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterPlugins @v1.36.3`.
    pub fn run_pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterRun, PluginError> {
        self.pre_filter_by_name(cx).map_err(|(_, error)| error)
    }

    /// Runs the `PreFilter` plugins. An error comes with the name of the plugin that failed.
    pub(crate) fn pre_filter_by_name(
        &self,
        cx: &mut CycleContext<'_>,
    ) -> Result<PreFilterRun, (Arc<str>, PluginError)> {
        let started = self.mono();
        cx.state.skip_filter.clear();
        let run = self.pre_filter(cx);
        let code = match &run {
            Ok(run) => run.rejection.as_ref().map_or(Code::Success, |(_, rejection)| rejection.code()),
            Err(_) => Code::Error,
        };
        self.observe_point(Point::PreFilter, code, started);
        run
    }

    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterRun, (Arc<str>, PluginError)> {
        let mut run = PreFilterRun::default();
        for PreFilterEntry { entry, .. } in &self.pre_filter {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.pre_filter(cx),
                |outcome| pre_filter_code(outcome.as_ref()),
            );
            let failed = |error: &PluginError| {
                let error = error.context(format_args!("running PreFilter plugin {:?}", entry.name));
                (entry.name.clone(), error)
            };
            if !matches!(outcome, Ok(PreFilterOutcome::Skip)) {
                entry.count(1);
            }
            match outcome.map_err(|error| failed(&error))? {
                PreFilterOutcome::Pass => {}
                PreFilterOutcome::Skip => cx.state.skip_filter.insert(entry.index),
                PreFilterOutcome::Nodes(nodes) => {
                    run.plugins_with_nodes.insert(entry.name.clone());
                    let common = match run.nodes.take() {
                        Some(before) => before.intersection(&nodes).cloned().collect(),
                        None => nodes,
                    };
                    let nothing_left = common.is_empty();
                    run.nodes = Some(common);
                    if nothing_left {
                        run.rejection = Some((None, nothing_in_common(&run.plugins_with_nodes)));
                        return Ok(run);
                    }
                }
                PreFilterOutcome::Reject(rejection) => {
                    let last = rejection.kind == RejectionKind::Unresolvable;
                    if rejection.kind == RejectionKind::Pending {
                        return Err(failed(&PluginError::new(rejection.reasons.to_string())));
                    }
                    run.rejection = Some((Some(entry.name.clone()), rejection));
                    if last {
                        run.nodes = None;
                        run.plugins_with_nodes.clear();
                        return Ok(run);
                    }
                }
            }
        }
        Ok(run)
    }

    /// Returns the plugins whose `Filter` is skipped in this cycle, sorted.
    pub(crate) fn skipped_filters(&self, state: &CycleState) -> Vec<Arc<str>> {
        super::names(
            self.pre_filter.iter().map(|plugin| &plugin.entry).filter(|entry| state.skip_filter.contains(entry.index)),
        )
    }

    /// Tells the plugins that `added` is now on the node.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterExtensionAddPod @v1.36.3`.
    pub fn run_add_pod(
        &self,
        cx: &mut CycleContext<'_>,
        added: &PodInfo,
        node: NodeRef<'_>,
    ) -> Result<(), PluginError> {
        self.extend(&ADD_POD, cx, |extensions, cx| extensions.add_pod(cx, added, node))
    }

    /// Tells the plugins that `removed` is no longer on the node.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPreFilterExtensionRemovePod @v1.36.3`.
    pub fn run_remove_pod(
        &self,
        cx: &mut CycleContext<'_>,
        removed: &PodInfo,
        node: NodeRef<'_>,
    ) -> Result<(), PluginError> {
        self.extend(&REMOVE_POD, cx, |extensions, cx| extensions.remove_pod(cx, removed, node))
    }

    fn extend(
        &self,
        what: &Extension,
        cx: &mut CycleContext<'_>,
        call: impl Fn(&dyn PreFilterExtensions, &mut CycleContext<'_>) -> Result<Verdict, PluginError>,
    ) -> Result<(), PluginError> {
        for plugin in &self.pre_filter {
            let entry = &plugin.entry;
            let Some(extensions) = entry.plugin.extensions() else { continue };
            if cx.state.skip_filter.contains(entry.index) {
                continue;
            }
            let started = sampled(cx.state).then(|| self.mono());
            let verdict = call(extensions, cx);
            if let Some(started) = started {
                let code = verdict.as_ref().map_or(Code::Error, Verdict::code);
                let seconds = self.mono().seconds_since(started);
                self.recorder.observe((what.durations)(plugin).series(code), seconds);
            }
            let error = match verdict {
                Ok(Verdict::Pass) => continue,
                Ok(Verdict::Reject(rejection)) => PluginError::new(rejection.reasons.to_string()),
                Err(error) => error,
            };
            return Err(error.context(format_args!("running {} on PreFilter plugin {:?}", what.name, entry.name)));
        }
        Ok(())
    }
}

fn pre_filter_code(outcome: Result<&PreFilterOutcome, &PluginError>) -> Code {
    match outcome {
        Ok(PreFilterOutcome::Pass | PreFilterOutcome::Nodes(_)) => Code::Success,
        Ok(PreFilterOutcome::Skip) => Code::Skip,
        Ok(PreFilterOutcome::Reject(rejection)) => rejection.code(),
        Err(_) => Code::Error,
    }
}

fn nothing_in_common(plugins: &BTreeSet<Arc<str>>) -> Rejection {
    let names: Vec<&str> = plugins.iter().map(|name| &**name).collect();
    Rejection::unresolvable(match names[..] {
        [only] => format!("node(s) didn't satisfy plugin {only}"),
        _ => format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", names.join(" ")),
    })
}
