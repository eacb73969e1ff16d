//! A plugin from outside at every extension point. Its calls are the steps of the cycle at which the script strikes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube_scheduler::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, CycleContext, CycleState, EnqueueExtensions, EventRegistration,
    FilterPlugin, Handle, NodeRef, PermitOutcome, PermitPlugin, Plugin, PluginError, PodsToActivate, PostBindPlugin,
    PostFilterContext, PostFilterOutcome, PostFilterPlugin, PreBindOutcome, PreBindPlugin, PreBindPreFlight,
    PreEnqueuePlugin, PreFilterOutcome, PreFilterPlugin, PreScoreOutcome, PreScorePlugin, QueueingHint, Registration,
    Rejection, ReservePlugin, ScorePlugin, Scratch, Slot, Verdict,
};
use kube_scheduler::model::{ActionType, ClusterEvent, EventResource, PodInfo};

use super::coverage::Step;
use super::script::Script;

pub(super) const NAME: &str = "Probe";

/// The plugin of one profile.
pub(super) struct Probe {
    script: Arc<Script>,
    handle: Handle,
    pods_to_activate: Slot<PodsToActivate>,
}

/// Builds it. Some seeds let it hear of a few events only, so that pods depend on the flush.
pub(super) fn factory(
    script: Arc<Script>,
) -> impl Fn((), &Handle) -> Result<Registration, PluginError> + Send + Sync + 'static {
    move |(), handle| {
        let pods_to_activate = handle.pods_to_activate();
        let probe = Arc::new(Probe { script: script.clone(), handle: handle.clone(), pods_to_activate });
        let registration = Registration::new(NAME)
            .pre_enqueue(&probe)
            .pre_filter(&probe)
            .filter(&probe)
            .post_filter(&probe)
            .pre_score(&probe)
            .score(&probe)
            .reserve(&probe)
            .permit(&probe)
            .pre_bind(&probe)
            .bind(&probe)
            .post_bind(&probe);
        Ok(if script.hears_little() { registration.events(&probe) } else { registration })
    }
}

impl Probe {
    fn answer(&self, step: Step, answers: &[&'static str]) -> &'static str {
        self.script.answer(step, answers)
    }

    fn error(step: Step) -> PluginError {
        PluginError::new(format!("the probe fails at {step:?}"))
    }

    /// The rejection that an answer stands for.
    fn rejection(answer: &str) -> Option<Rejection> {
        match answer {
            "reject" => Some(Rejection::unschedulable("the probe rejects")),
            "unresolvable" => Some(Rejection::unresolvable("the probe rejects for good")),
            "pending" => Some(Rejection::pending("the probe is not ready")),
            _ => None,
        }
    }

    fn verdict(&self, step: Step, answers: &[&'static str]) -> Result<Verdict, PluginError> {
        let answer = self.answer(step, answers);
        if answer == "error" {
            return Err(Self::error(step));
        }
        Ok(Self::rejection(answer).map_or(Verdict::Pass, Verdict::Reject))
    }
}

impl Plugin for Probe {
    fn name(&self) -> &'static str {
        NAME
    }
}

impl EnqueueExtensions for Probe {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let node = ClusterEvent::new(EventResource::Node, ActionType::ADD);
        let pod = ClusterEvent::new(EventResource::UnschedulablePod, ActionType::UPDATE_POD_LABEL);
        let own = |pod: &PodInfo, objects: &kube_scheduler::model::EventObjects| {
            let own = objects.pods().1.is_some_and(|changed| changed.uid() == pod.uid());
            Ok(if own { QueueingHint::Queue } else { QueueingHint::Skip })
        };
        Ok(vec![EventRegistration::new(node), EventRegistration::with_hint(pod, own)])
    }
}

impl PreEnqueuePlugin for Probe {
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict {
        self.script.strike(Step::PreEnqueue, Some(pod));
        let rejected = Self::rejection(self.answer(Step::PreEnqueue, &["reject"]));
        rejected.map_or(Verdict::Pass, Verdict::Reject)
    }
}

impl PreFilterPlugin for Probe {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Result<PreFilterOutcome, PluginError> {
        self.script.cycle_begins(cx.pod);
        self.script.strike(Step::PreFilter, Some(cx.pod));
        let answers = ["reject", "unresolvable", "pending", "error", "skip", "nodes"];
        match self.answer(Step::PreFilter, &answers) {
            "error" => Err(Self::error(Step::PreFilter)),
            "skip" => Ok(PreFilterOutcome::Skip),
            "nodes" => {
                let some = cx.snapshot.nodes().iter().step_by(2).map(|node| node.name().to_owned());
                Ok(PreFilterOutcome::Nodes(some.collect::<BTreeSet<String>>()))
            }
            other => Ok(Self::rejection(other).map_or(PreFilterOutcome::Pass, PreFilterOutcome::Reject)),
        }
    }
}

impl FilterPlugin for Probe {
    fn filter(&self, cx: &CycleContext<'_>, _: NodeRef<'_>, _: &mut Scratch) -> Result<Verdict, PluginError> {
        self.script.strike(Step::Filter, Some(cx.pod));
        self.verdict(Step::Filter, &["reject", "unresolvable", "pending", "error"])
    }
}

impl PostFilterPlugin for Probe {
    fn post_filter(
        &self,
        cx: &mut CycleContext<'_>,
        _: &PostFilterContext<'_>,
    ) -> Result<PostFilterOutcome, PluginError> {
        self.script.strike(Step::PostFilter, Some(cx.pod));
        let rejection = Rejection::unschedulable("the probe cannot help");
        Ok(match self.answer(Step::PostFilter, &["nominate", "nominate", "clear", "unresolvable", "error"]) {
            "error" => return Err(Self::error(Step::PostFilter)),
            "nominate" => {
                let nominated = cx.snapshot.nodes().first().map(|node| node.name().to_owned());
                PostFilterOutcome::Success { nominated }
            }
            "clear" => PostFilterOutcome::Reject { rejection, nominated: Some(String::new()) },
            "unresolvable" => {
                PostFilterOutcome::Reject { rejection: Rejection::unresolvable("the probe gives up"), nominated: None }
            }
            _ => PostFilterOutcome::Reject { rejection, nominated: None },
        })
    }
}

impl PreScorePlugin for Probe {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        self.script.strike(Step::PreScore, Some(cx.pod));
        match self.answer(Step::PreScore, &["skip", "error"]) {
            "error" => Err(Self::error(Step::PreScore)),
            "skip" => Ok(PreScoreOutcome::Skip),
            _ => Ok(PreScoreOutcome::Pass),
        }
    }
}

impl ScorePlugin for Probe {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _: Option<&Scratch>) -> Result<i64, PluginError> {
        self.script.strike(Step::Score, Some(cx.pod));
        match self.answer(Step::Score, &["error", "too much"]) {
            "error" => Err(Self::error(Step::Score)),
            "too much" => Ok(101),
            _ => Ok(i64::from(node.name().bytes().last().unwrap_or_default() % 10)),
        }
    }
}

impl ReservePlugin for Probe {
    fn reserve(&self, cx: &mut CycleContext<'_>, _: &str, _: Option<&Scratch>) -> Result<Verdict, PluginError> {
        self.script.reserved(cx.pod);
        self.script.strike(Step::Reserve, Some(cx.pod));
        self.verdict(Step::Reserve, &["reject", "unresolvable", "pending", "error"])
    }

    fn unreserve(&self, _: &CycleState, pod: &PodInfo, _: &str) -> Option<BoxFuture<'static, ()>> {
        self.script.strike(Step::Unreserve, Some(pod));
        self.script.unreserved(pod);
        match self.answer(Step::Unreserve, &["delay", "activate"]) {
            "delay" => {
                let (clock, script) = (self.handle.clock().clone(), self.script.clone());
                Some(Box::pin(async move {
                    clock.sleep(Duration::from_millis(700)).await;
                    script.wrote();
                }))
            }
            "activate" => {
                self.handle.activate(&self.script.some_pods());
                None
            }
            _ => None,
        }
    }
}

impl PermitPlugin for Probe {
    fn permit(&self, cx: &mut CycleContext<'_>, _: &str) -> Result<PermitOutcome, PluginError> {
        self.script.strike(Step::Permit, Some(cx.pod));
        match self.answer(Step::Permit, &["wait", "wait", "wait", "reject", "unresolvable", "error"]) {
            "error" => Err(Self::error(Step::Permit)),
            "wait" => Ok(PermitOutcome::Wait(self.script.patience(cx.pod, cx.now.mono), "the probe ponders".into())),
            other => Ok(Self::rejection(other).map_or(PermitOutcome::Allow, PermitOutcome::Reject)),
        }
    }
}

impl PreBindPlugin for Probe {
    fn pre_flight(&self, _: BindContext<'_>) -> Result<PreBindPreFlight, PluginError> {
        match self.answer(Step::PreBind, &["error in flight", "nothing to do"]) {
            "error in flight" => Err(Self::error(Step::PreBind)),
            "nothing to do" => Ok(PreBindPreFlight::Skip { parallel: false }),
            _ => Ok(PreBindPreFlight::Work { parallel: false }),
        }
    }

    fn pre_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<PreBindOutcome, PluginError>> {
        Box::pin(async move {
            self.script.strike_in_task(Step::PreBind, cx.pod).await;
            match self.answer(Step::PreBind, &["delay", "delay", "reject", "error"]) {
                "error" => Err(Self::error(Step::PreBind)),
                "delay" => {
                    self.handle.clock().sleep(self.script.delay()).await;
                    Ok(Verdict::Pass)
                }
                other => Ok(Self::rejection(other).map_or(Verdict::Pass, Verdict::Reject)),
            }
        })
    }
}

impl BindPlugin for Probe {
    fn bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
        Box::pin(async move {
            self.script.strike_in_task(Step::Bind, cx.pod).await;
            match self.answer(Step::Bind, &["reject", "error"]) {
                "error" => Err(Self::error(Step::Bind)),
                other => Ok(Self::rejection(other).map_or(BindOutcome::Skip, BindOutcome::Reject)),
            }
        })
    }
}

impl PostBindPlugin for Probe {
    fn post_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.script.strike_in_task(Step::PostBind, cx.pod).await;
            match self.answer(Step::PostBind, &["delay", "activate"]) {
                "delay" => self.handle.clock().sleep(self.script.delay()).await,
                "activate" => {
                    if let Some(pods) = cx.state.get(self.pods_to_activate) {
                        self.script.some_pods().into_iter().for_each(|pod| pods.insert(pod));
                    }
                }
                _ => {}
            }
            self.script.bound(cx.pod);
        })
    }
}
