//! Runs one plugin at a time, as a profile would, for the plugins' own tests.

use std::sync::{Arc, Mutex};

use futures::FutureExt as _;

use crate::clock::{Clock, Now};
use crate::config::FeatureGates;
use crate::framework::{
    BoxFuture, Candidates, CycleContext, CycleState, Diagnosis, Effects, EventRegistration, FilterRunner, Fragment,
    Handle, HandleParts, NodeOutcome, NodeScores, PermitOutcome, PluginError, PodEvent, PostFilterContext,
    PostFilterOutcome, PreFilterOutcome, PreScoreOutcome, QueueingHint, Registration, Scratch, SignOutcome, Verdict,
};
use crate::k8s::Pod;
use crate::metrics::Metrics;
use crate::model::{EventObjects, NodeInfo, Object, PodInfo, Snapshot};
use crate::testing::{NodeFixture, PodFixture};

/// Remembers what is bound and what is to be done beside the scheduling thread, and answers as it was told to.
struct RecordedEffects {
    answer: Result<(), PluginError>,
    bindings: Mutex<Vec<(String, String)>>,
    tasks: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl RecordedEffects {
    fn answering(answer: Result<(), PluginError>) -> Arc<Self> {
        Arc::new(Self { answer, bindings: Mutex::default(), tasks: Mutex::default() })
    }
}

impl Effects for RecordedEffects {
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        self.bindings.lock().expect("no test panics here").push((pod.key().to_string(), node.to_string()));
        Box::pin(std::future::ready(self.answer.clone()))
    }

    fn record(&self, _profile: &str, _event: PodEvent<'_>) {}

    fn evict(&self, _: &Arc<Pod>, _: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is deleted here"))))
    }

    fn clear_nomination(&self, _: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is written here"))))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.tasks.lock().expect("no test panics here").push(task);
    }

    fn wait(&self, _: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError> {
        Err(PluginError::new("nobody waits here"))
    }
}

/// For plugins that do not try what-ifs.
struct NoFilters;

impl FilterRunner for NoFilters {
    fn run_filters(&self, _cx: &CycleContext<'_>, _node: &NodeInfo) -> Result<Verdict, PluginError> {
        Err(PluginError::new("no filters here"))
    }

    fn run_filters_with_nominated_pods(
        &self,
        _cx: &CycleContext<'_>,
        _node: &NodeInfo,
    ) -> Result<Verdict, PluginError> {
        Err(PluginError::new("no filters here"))
    }

    fn add_pod(&self, _cx: &mut CycleContext<'_>, _added: &PodInfo, _node: &NodeInfo) -> Result<(), PluginError> {
        Err(PluginError::new("no filters here"))
    }

    fn remove_pod(&self, _cx: &mut CycleContext<'_>, _removed: &PodInfo, _node: &NodeInfo) -> Result<(), PluginError> {
        Err(PluginError::new("no filters here"))
    }
}

/// A handle on an empty cluster, for one profile.
pub(crate) fn handle(gates: FeatureGates) -> Handle {
    handle_with(gates, RecordedEffects::answering(Ok(())))
}

/// What the profiles of an empty cluster share.
pub(crate) fn parts(gates: FeatureGates) -> Arc<HandleParts> {
    parts_with(gates, RecordedEffects::answering(Ok(())))
}

fn handle_with(gates: FeatureGates, effects: Arc<RecordedEffects>) -> Handle {
    Handle::new(parts_with(gates, effects), "default-scheduler")
}

fn parts_with(gates: FeatureGates, effects: Arc<RecordedEffects>) -> Arc<HandleParts> {
    Arc::new(HandleParts::new(gates, Metrics::detached(), Clock::real(), effects))
}

/// One plugin, built.
pub(crate) struct Harness {
    /// What it registers as.
    pub(crate) registration: Registration,
    /// Its events, in its order.
    pub(crate) registered: Vec<EventRegistration>,
    /// What it was given.
    pub(crate) handle: Handle,
    /// The nodes that its cycles see.
    pub(crate) snapshot: Snapshot,
    effects: Arc<RecordedEffects>,
}

impl Harness {
    /// The plugin at default gates with default arguments.
    pub(crate) fn new<A: Default>(factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>) -> Self {
        Self::with_args(A::default(), factory)
    }

    /// The plugin with arguments.
    pub(crate) fn with_args<A>(args: A, factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>) -> Self {
        Self::build(FeatureGates::default(), args, Ok(()), factory).expect("the plugin can be built")
    }

    /// The plugin at these gates.
    pub(crate) fn with_gates<A: Default>(
        gates: FeatureGates,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>,
    ) -> Self {
        Self::build(gates, A::default(), Ok(()), factory).expect("the plugin can be built")
    }

    /// The plugin, with what the API server answers to a binding.
    pub(crate) fn with_bind_answer<A: Default>(
        answer: Result<(), PluginError>,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>,
    ) -> Self {
        Self::build(FeatureGates::default(), A::default(), answer, factory).expect("the plugin can be built")
    }

    /// The plugin, or why it cannot be built.
    pub(crate) fn build<A>(
        gates: FeatureGates,
        args: A,
        answer: Result<(), PluginError>,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>,
    ) -> Result<Self, PluginError> {
        let effects = RecordedEffects::answering(answer);
        let handle = handle_with(gates, effects.clone());
        let registration = factory(args, &handle)?;
        let registered = match &registration.events {
            Some(events) => events.clone().events_to_register()?,
            None => Vec::new(),
        };
        Ok(Self { registration, registered, handle, snapshot: Snapshot::default(), effects })
    }

    /// Lets cycles see these nodes, each with the pods that name it.
    pub(crate) fn cluster(mut self, nodes: Vec<NodeFixture>, pods: &[PodFixture]) -> Self {
        let info = |pod: &PodFixture| Arc::new(PodInfo::new(pod.clone().build(), self.handle.classes()));
        let pods: Vec<Arc<PodInfo>> = pods.iter().map(info).collect();
        let on = |node: NodeFixture| {
            let mut info = node.info();
            let name = info.name_arc().clone();
            for pod in pods.iter().filter(|pod| pod.pod().node_name() == Some(&*name)) {
                info.add_pod(pod.clone());
            }
            Arc::new(info)
        };
        self.snapshot.set_nodes(nodes.into_iter().map(on).collect());
        self
    }

    /// Labels of the events; those of mixed actions have the kind alone.
    pub(crate) fn events(&self) -> Vec<String> {
        self.registered.iter().map(|registration| registration.event.label().to_string()).collect()
    }

    /// What was bound, pod and node.
    pub(crate) fn bindings(&self) -> Vec<(String, String)> {
        self.effects.bindings.lock().expect("no test panics here").clone()
    }

    /// Does what was left to be done beside the scheduling thread; none of it may have to wait.
    pub(crate) fn run_tasks(&self) {
        let tasks = std::mem::take(&mut *self.effects.tasks.lock().expect("no test panics here"));
        tasks.into_iter().for_each(|task| task.now_or_never().expect("the task does not wait"));
    }

    fn now(&self) -> Now {
        self.handle.clock().now()
    }

    /// Runs `PreFilter`, and gives the state that it left.
    pub(crate) fn pre_filter(&self, pod: &PodFixture) -> (Result<PreFilterOutcome, PluginError>, CycleState) {
        let pod = pod.clone().info();
        let mut state = CycleState::default();
        let plugin = self.registration.pre_filter.as_ref().expect("PreFilter");
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        (plugin.pre_filter(&mut cx), state)
    }

    /// Runs `Filter` on an empty node, after `PreFilter` if there is one, and compares.
    pub(crate) fn check_filter(&self, pod: &PodFixture, node: NodeFixture, expected: &Verdict) {
        self.check_filter_on(pod, node, &[], expected);
    }

    /// The same on a node with pods. A skipped filter passes.
    pub(crate) fn check_filter_on(&self, pod: &PodFixture, node: NodeFixture, on: &[PodFixture], expected: &Verdict) {
        let mut node = node.info();
        for pod in on {
            node.add_pod(pod.clone().info());
        }
        let mut state = CycleState::default();
        if self.registration.pre_filter.is_some() {
            let (outcome, left) = self.pre_filter(pod);
            match outcome.expect("PreFilter does not fail") {
                PreFilterOutcome::Skip => return assert_eq!(Verdict::Pass, *expected, "PreFilter skips the filter"),
                PreFilterOutcome::Reject(rejection) => return assert_eq!(Verdict::Reject(rejection), *expected),
                PreFilterOutcome::Pass | PreFilterOutcome::Nodes(_) => state = left,
            }
        }
        assert_eq!(self.filter(pod, &node, &mut state).as_ref(), Ok(expected), "{pod:?}\n{node:?}");
    }

    /// Runs `Filter` alone.
    pub(crate) fn bare_filter(&self, pod: &PodFixture, node: NodeFixture) -> Result<Verdict, PluginError> {
        self.filter(pod, &node.info(), &mut CycleState::default())
    }

    /// One node by itself and as a block have to come out alike.
    pub(crate) fn filter(
        &self,
        pod: &PodFixture,
        node: &NodeInfo,
        state: &mut CycleState,
    ) -> Result<Verdict, PluginError> {
        let pod = pod.clone().info();
        let plugin = self.registration.filter.as_ref().expect("Filter");
        let cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state, now: self.now() };
        let verdict = plugin.filter(&cx, node, &mut Scratch::default());
        let nodes = [node];
        let mut block = Candidates::new(&nodes);
        let failed = plugin.filter_block(&cx, &mut block);
        assert_eq!(failed.as_ref().err(), verdict.as_ref().err());
        if let Ok(verdict) = &verdict {
            // A block of which all nodes are feasible has no outcomes.
            let of_block = match block.finish().0.pop() {
                None | Some(NodeOutcome::Feasible) => Verdict::Pass,
                Some(NodeOutcome::Rejected(_, rejection)) => Verdict::Reject(rejection),
                Some(NodeOutcome::Failed(_, error)) => {
                    panic!("the single node does not fail, and the block does: {error}")
                }
            };
            assert_eq!(of_block, *verdict, "the block and the single node differ");
        }
        verdict
    }

    /// Runs `PreScore`, and gives the state that it left.
    pub(crate) fn pre_score(&self, pod: &PodFixture) -> (Result<PreScoreOutcome, PluginError>, CycleState) {
        let pod = pod.clone().info();
        let mut state = CycleState::default();
        let nodes: Vec<&NodeInfo> = self.snapshot.nodes().iter().map(|node| &**node).collect();
        let plugin = self.registration.pre_score.as_ref().expect("PreScore");
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        (plugin.pre_score(&mut cx, &nodes), state)
    }

    /// Runs `Score` on all nodes in `state`, and `NormalizeScore` if there is one.
    pub(crate) fn scores(&self, pod: &PodFixture, state: &mut CycleState) -> Result<(Vec<i64>, Vec<i64>), PluginError> {
        let pod = pod.clone().info();
        let nodes: Vec<&NodeInfo> = self.snapshot.nodes().iter().map(|node| &**node).collect();
        let cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state, now: self.now() };
        let plugin = self.registration.score.as_ref().expect("Score");
        let mut scores = vec![0; nodes.len()];
        plugin.score_block(&cx, &mut NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] })?;
        for (node, score) in nodes.iter().zip(&scores) {
            assert_eq!(plugin.score(&cx, node, None)?, *score, "the block and the single node differ");
        }
        let raw = scores.clone();
        if let Some(normalize) = &self.registration.normalize {
            normalize.normalize(&cx, &mut NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] })?;
        }
        Ok((raw, scores))
    }

    /// Runs `PostFilter` in this state, after no node was fit.
    pub(crate) fn post_filter(
        &self,
        pod: &PodFixture,
        mut state: CycleState,
    ) -> Result<PostFilterOutcome, PluginError> {
        let pod = pod.clone().info();
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        let failed =
            PostFilterContext { diagnosis: &Diagnosis::default(), filters: &NoFilters, extenders: &(), random: 0 };
        self.registration.post_filter.as_ref().expect("PostFilter").post_filter(&mut cx, &failed)
    }

    /// Runs `Permit`.
    pub(crate) fn permit(&self, pod: &PodFixture, node: &str) -> Result<PermitOutcome, PluginError> {
        let pod = pod.clone().info();
        let mut state = CycleState::default();
        let mut cx = CycleContext { pod: &pod, snapshot: &self.snapshot, state: &mut state, now: self.now() };
        self.registration.permit.as_ref().expect("Permit").permit(&mut cx, node)
    }

    /// What the hint at this position says of an event.
    pub(crate) fn hint(&self, pod: &PodFixture, at: usize, old: Option<Object>, new: Option<Object>) -> QueueingHint {
        let hint = self.registered[at].hint.as_ref().expect("a hint");
        hint(&pod.clone().info(), &EventObjects { old, new }).expect("the hint does not fail")
    }

    /// An updated pod.
    pub(crate) fn pod_update(&self, pod: &PodFixture, at: usize, old: PodFixture, new: PodFixture) -> QueueingHint {
        self.hint(pod, at, Some(Object::Pod(old.build())), Some(Object::Pod(new.build())))
    }

    /// A deleted pod.
    pub(crate) fn pod_delete(&self, pod: &PodFixture, at: usize, old: PodFixture) -> QueueingHint {
        self.hint(pod, at, Some(Object::Pod(old.build())), None)
    }

    /// An added node.
    pub(crate) fn node_add(&self, pod: &PodFixture, at: usize, new: NodeFixture) -> QueueingHint {
        self.hint(pod, at, None, Some(Object::Node(new.build())))
    }

    /// An updated node.
    pub(crate) fn node_update(&self, pod: &PodFixture, at: usize, old: NodeFixture, new: NodeFixture) -> QueueingHint {
        self.hint(pod, at, Some(Object::Node(old.build())), Some(Object::Node(new.build())))
    }

    /// Compares the signature's fragments with JSON.
    pub(crate) fn check_signature(&self, pod: &PodFixture, expected: &[(&'static str, &str)]) {
        let plugin = self.registration.sign.as_ref().expect("Sign");
        let expected = expected
            .iter()
            .map(|(name, json)| (*name, Fragment::from(serde_json::from_str::<serde_json::Value>(json).expect("JSON"))))
            .collect();
        assert_eq!(plugin.sign(&pod.clone().info()), Ok(SignOutcome::Fragments(expected)));
    }
}
