//! Plugins that answer what a test wants, and note what they were asked.

use std::sync::{Arc, Mutex, OnceLock};

use futures::FutureExt as _;
use kube_scheduler::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, CycleContext, CycleState, Diagnosis, EnqueueExtensions,
    EventRegistration, FilterPlugin, Handle, NodeRef, PermitOutcome, PermitPlugin, Plugin, PluginError, PostBindPlugin,
    PostFilterContext, PostFilterOutcome, PostFilterPlugin, PreBindPlugin, PreBindPreFlight, PreFilterOutcome,
    PreFilterPlugin, PreScoreOutcome, PreScorePlugin, Registration, Registry, ReservePlugin, ScorePlugin, Scratch,
    Verdict,
};
use kube_scheduler::model::{ClusterEvent, NodeInfo, PodInfo};

/// Result of a plugin.
pub(crate) type Answer<T> = Result<T, PluginError>;

/// An answer that takes time.
pub(crate) type Later<T> = BoxFuture<'static, Answer<T>>;

/// Lines, in order of time. Clones are the same log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn push(&self, line: String) {
        self.0.lock().expect("no test panicked under the lock").push(line);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no test panicked under the lock"))
    }
}

/// Arguments of a plugin's call.
pub(crate) struct Seen<'a> {
    pub(crate) pod: &'a PodInfo,
    /// Empty where the question is not about a node.
    pub(crate) node: &'a str,
    pub(crate) state: &'a CycleState,
    pub(crate) handle: &'a Handle,
    /// At `Filter` and `Score` only.
    pub(crate) info: Option<&'a NodeInfo>,
    /// At `PostFilter` only.
    pub(crate) diagnosis: Option<&'a Diagnosis>,
}

impl Seen<'_> {
    /// Leaves a pod to be moved to activeQ.
    pub(crate) fn activate(&self, pod: &str) {
        let slot = self.handle.pods_to_activate();
        self.state.get(slot).expect("every cycle has the list").insert(format!("default/{pod}"));
    }
}

type On<T> = Box<dyn Fn(&Seen<'_>) -> T + Send + Sync>;

#[derive(Default)]
struct Points {
    pre_filter: Option<On<Answer<PreFilterOutcome>>>,
    filter: Option<On<Answer<Verdict>>>,
    post_filter: Option<On<Answer<PostFilterOutcome>>>,
    pre_score: Option<On<Answer<PreScoreOutcome>>>,
    score: Option<On<Answer<i64>>>,
    reserve: Option<On<Answer<Verdict>>>,
    unreserve: Option<On<Option<BoxFuture<'static, ()>>>>,
    permit: Option<On<Answer<PermitOutcome>>>,
    pre_flight: Option<On<Answer<PreBindPreFlight>>>,
    pre_bind: Option<On<Later<Verdict>>>,
    bind: Option<On<Later<BindOutcome>>>,
    post_bind: Option<On<()>>,
}

/// A plugin that has the points for which it has an answer.
#[must_use]
pub(crate) struct Probe {
    name: String,
    points: Points,
    events: Vec<ClusterEvent>,
    log: Log,
    handle: OnceLock<Handle>,
}

/// A plugin without any point.
pub(crate) fn probe(name: &str) -> Probe {
    Probe {
        name: name.to_owned(),
        points: Points::default(),
        events: Vec::new(),
        log: Log::default(),
        handle: OnceLock::new(),
    }
}

/// An answer that is there at once.
pub(crate) fn ready<T: Send + 'static>(answer: Answer<T>) -> Later<T> {
    futures::future::ready(answer).boxed()
}

macro_rules! points {
    ($($point:ident: $answer:ty;)*) => {
        $(
            pub(crate) fn $point(mut self, answer: impl Fn(&Seen<'_>) -> $answer + Send + Sync + 'static) -> Self {
                self.points.$point = Some(Box::new(answer));
                self
            }
        )*
    };
}

impl Probe {
    points! {
        pre_filter: Answer<PreFilterOutcome>;
        filter: Answer<Verdict>;
        post_filter: Answer<PostFilterOutcome>;
        pre_score: Answer<PreScoreOutcome>;
        score: Answer<i64>;
        reserve: Answer<Verdict>;
        unreserve: Option<BoxFuture<'static, ()>>;
        permit: Answer<PermitOutcome>;
        pre_flight: Answer<PreBindPreFlight>;
        pre_bind: Later<Verdict>;
        bind: Later<BindOutcome>;
    }

    pub(crate) fn post_bind(mut self, answer: impl Fn(&Seen<'_>) + Send + Sync + 'static) -> Self {
        self.points.post_bind = Some(Box::new(answer));
        self
    }

    /// Wakes the pods that it rejects on these events; without, it never does.
    pub(crate) fn events(mut self, events: impl IntoIterator<Item = ClusterEvent>) -> Self {
        self.events.extend(events);
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn register(mut self, registry: &mut Registry, log: &Log) {
        self.log = log.clone();
        let (name, probe) = (self.name.clone(), Arc::new(self));
        let factory = move |(), handle: &Handle| {
            assert!(probe.handle.set(handle.clone()).is_ok(), "a probe serves one profile");
            Ok(probe.registration())
        };
        registry.register(&name, factory).expect("probes have names of their own");
    }

    fn registration(self: &Arc<Self>) -> Registration {
        let mut registration = Registration::new(self.name.as_str()).events(self);
        macro_rules! hand_over {
            ($($point:ident)*) => {
                $(if self.points.$point.is_some() {
                    registration = registration.$point(self);
                })*
            };
        }
        hand_over!(pre_filter filter post_filter pre_score score reserve permit pre_bind bind post_bind);
        registration
    }

    /// Notes that it was asked, and answers.
    fn ask<T>(&self, point: &str, answer: Option<&On<T>>, pod: &PodInfo, node: &str, state: &CycleState) -> T {
        let handle = self.handle.get().expect("a plugin is asked after it is built");
        self.ask_about(point, answer, &Seen { pod, node, state, handle, info: None, diagnosis: None })
    }

    fn ask_about_node<T>(&self, point: &str, answer: Option<&On<T>>, cx: &CycleContext<'_>, node: NodeRef<'_>) -> T {
        let handle = self.handle.get().expect("a plugin is asked after it is built");
        let (pod, state, info) = (cx.pod, &*cx.state, Some(node.info));
        self.ask_about(point, answer, &Seen { pod, node: node.name(), state, handle, info, diagnosis: None })
    }

    fn ask_about<T>(&self, point: &str, answer: Option<&On<T>>, seen: &Seen<'_>) -> T {
        self.log.push(format!("{point} {} {} {}", self.name, seen.pod.name(), seen.node).trim_end().to_owned());
        answer.expect("it has this point")(seen)
    }
}

impl Plugin for Probe {
    fn name(&self) -> &str {
        &self.name
    }
}

impl EnqueueExtensions for Probe {
    fn events_to_register(self: Arc<Self>) -> Answer<Vec<EventRegistration>> {
        Ok(self.events.iter().cloned().map(EventRegistration::new).collect())
    }
}

impl PreFilterPlugin for Probe {
    fn pre_filter(&self, cx: &mut CycleContext<'_>) -> Answer<PreFilterOutcome> {
        self.ask("PreFilter", self.points.pre_filter.as_ref(), cx.pod, "", cx.state)
    }
}

impl FilterPlugin for Probe {
    fn filter(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _: &mut Scratch) -> Answer<Verdict> {
        self.ask_about_node("Filter", self.points.filter.as_ref(), cx, node)
    }
}

impl PostFilterPlugin for Probe {
    fn post_filter(&self, cx: &mut CycleContext<'_>, failed: &PostFilterContext<'_>) -> Answer<PostFilterOutcome> {
        let handle = self.handle.get().expect("a plugin is asked after it is built");
        let (pod, state, diagnosis) = (cx.pod, &*cx.state, Some(failed.diagnosis));
        self.ask_about(
            "PostFilter",
            self.points.post_filter.as_ref(),
            &Seen { pod, node: "", state, handle, info: None, diagnosis },
        )
    }
}

impl PreScorePlugin for Probe {
    fn pre_score(&self, cx: &mut CycleContext<'_>, _: &[NodeRef<'_>]) -> Answer<PreScoreOutcome> {
        self.ask("PreScore", self.points.pre_score.as_ref(), cx.pod, "", cx.state)
    }
}

impl ScorePlugin for Probe {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _: Option<&Scratch>) -> Answer<i64> {
        self.ask_about_node("Score", self.points.score.as_ref(), cx, node)
    }
}

impl ReservePlugin for Probe {
    fn reserve(&self, cx: &mut CycleContext<'_>, node: &str, _: Option<&Scratch>) -> Answer<Verdict> {
        self.ask("Reserve", self.points.reserve.as_ref(), cx.pod, node, cx.state)
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) -> Option<BoxFuture<'static, ()>> {
        let nothing: On<Option<BoxFuture<'static, ()>>> = Box::new(|_| None);
        self.ask("Unreserve", self.points.unreserve.as_ref().or(Some(&nothing)), pod, node, state)
    }
}

impl PermitPlugin for Probe {
    fn permit(&self, cx: &mut CycleContext<'_>, node: &str) -> Answer<PermitOutcome> {
        self.ask("Permit", self.points.permit.as_ref(), cx.pod, node, cx.state)
    }
}

impl PreBindPlugin for Probe {
    fn pre_flight(&self, cx: BindContext<'_>) -> Answer<PreBindPreFlight> {
        match &self.points.pre_flight {
            Some(_) => self.ask("PreBindPreFlight", self.points.pre_flight.as_ref(), cx.pod, cx.node, cx.state),
            None => Ok(PreBindPreFlight::Work { parallel: false }),
        }
    }

    fn pre_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Answer<Verdict>> {
        self.ask("PreBind", self.points.pre_bind.as_ref(), cx.pod, cx.node, cx.state)
    }
}

impl BindPlugin for Probe {
    fn bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Answer<BindOutcome>> {
        self.ask("Bind", self.points.bind.as_ref(), cx.pod, cx.node, cx.state)
    }
}

impl PostBindPlugin for Probe {
    fn post_bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, ()> {
        self.ask("PostBind", self.points.post_bind.as_ref(), cx.pod, cx.node, cx.state);
        futures::future::ready(()).boxed()
    }
}
