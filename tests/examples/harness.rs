//! Runs a plugin as a scheduler would: in a profile of its own, cycle by cycle. What a test of a plugin from outside needs
//! and no more.

use std::sync::Arc;

use kube_scheduler::clock::{Clock, Now, SimClock};
use kube_scheduler::config::{Config, FeatureGates};
use kube_scheduler::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, CycleContext, CycleState, Effects, FactoryArgs, Framework, Handle,
    HandleParts, Plugin, PluginError, PodEvent, QueueSortKey, QueueSortPlugin, Registration, Registry, Rejection,
    ScoreRun,
};
use kube_scheduler::k8s::Pod;
use kube_scheduler::metrics::Metrics;
use kube_scheduler::model::{NodeInfo, PodInfo, Snapshot};
use kube_scheduler::testing::{NodeFixture, PodFixture};

/// The two points that a profile cannot do without.
struct Rest;

impl Plugin for Rest {
    fn name(&self) -> &'static str {
        "Rest"
    }
}

impl QueueSortPlugin for Rest {
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool {
        (a.timestamp, a.pod.uid()) < (b.timestamp, b.pod.uid())
    }
}

impl BindPlugin for Rest {
    fn bind<'a>(&'a self, _cx: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
        Box::pin(std::future::ready(Ok(BindOutcome::Skip)))
    }
}

/// Lets nothing be written.
struct NoEffects;

impl Effects for NoEffects {
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        let error = PluginError::new(format!("{} cannot be bound to {node}: there is no API server", pod.key()));
        Box::pin(std::future::ready(Err(error)))
    }

    fn record(&self, _profile: &str, _event: PodEvent<'_>) {}

    fn evict(&self, _: &Arc<Pod>, _: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is deleted here"))))
    }

    fn clear_nomination(&self, _: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is written here"))))
    }

    fn spawn(&self, _: BoxFuture<'static, ()>) {}

    fn wait(&self, _: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError> {
        Err(PluginError::new("nobody waits here"))
    }
}

/// A profile with the one plugin.
pub(crate) fn profile<A: FactoryArgs>(
    name: &str,
    factory: impl Fn(A, &Handle) -> Result<Registration, PluginError> + Send + Sync + 'static,
) -> Framework {
    let mut registry = Registry::default();
    registry.register(name, factory).expect("the registry is empty");
    let rest = |(): (), _: &Handle| {
        let rest = Arc::new(Rest);
        Ok(Registration::new("Rest").queue_sort(&rest).bind(&rest))
    };
    registry.register("Rest", rest).expect("the plugin has another name");
    let text = format!(
        "{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{{plugins: \
         {{multiPoint: {{enabled: [{{name: {name}}}, {{name: Rest}}], disabled: [{{name: '*'}}]}}}}}}]}}"
    );
    let gates = FeatureGates::default();
    let data = format!("# YAML\n{text}");
    let config = Config::parse(data.as_bytes(), &gates, registry.catalog()).expect("a configuration");
    let parts = HandleParts::new(gates, Metrics::detached(), clock(), Arc::new(NoEffects));
    Framework::new(&registry, &config.profiles[0], Arc::new(parts)).expect("a profile")
}

/// One attempt to schedule a pod.
pub(crate) struct Cycle {
    pod: Arc<PodInfo>,
    snapshot: Snapshot,
    state: CycleState,
    now: Now,
}

impl Cycle {
    /// The pod, the nodes, and the pods on them.
    pub(crate) fn new(pod: PodFixture, nodes: Vec<NodeFixture>, on_nodes: &[PodFixture]) -> Self {
        let on_nodes: Vec<Arc<PodInfo>> = on_nodes.iter().map(|pod| pod.clone().info()).collect();
        let with_pods = |node: NodeFixture| {
            let mut node = node.info();
            let name = node.name_arc().clone();
            for pod in on_nodes.iter().filter(|pod| pod.pod().node_name() == Some(&*name)) {
                node.add_pod(pod.clone());
            }
            Arc::new(node)
        };
        let snapshot = Snapshot::from_nodes(nodes.into_iter().map(with_pods).collect());
        Self { pod: pod.info(), snapshot, state: CycleState::default(), now: clock().now() }
    }

    /// `PreFilter` and `Filter`: what is said of each node, nothing of those that pass.
    #[allow(dead_code, reason = "not every plugin filters")]
    pub(crate) fn filter(&mut self, profile: &Framework) -> Vec<Option<Rejection>> {
        let nodes = self.snapshot.nodes();
        let state = &mut self.state;
        let mut cx = CycleContext { pod: &self.pod, snapshot: &self.snapshot, state, now: self.now };
        let narrowed = profile.run_pre_filter(&mut cx).expect("no plugin fails");
        assert!(narrowed.rejection.is_none() && narrowed.nodes.is_none(), "{narrowed:?}");
        let verdict = |node: &Arc<NodeInfo>| profile.run_filters_on(&cx, node).expect("no plugin fails");
        nodes.iter().map(|node| verdict(node).map(|(_, rejection)| rejection)).collect()
    }

    /// `PreScore`, `Score` and `NormalizeScore` on all nodes.
    #[allow(dead_code, reason = "not every plugin scores")]
    pub(crate) fn score(&mut self, profile: &Framework) -> ScoreRun {
        let nodes: Vec<&NodeInfo> = self.snapshot.nodes().iter().map(|node| &**node).collect();
        let state = &mut self.state;
        let mut cx = CycleContext { pod: &self.pod, snapshot: &self.snapshot, state, now: self.now };
        profile.run_pre_score(&mut cx, &nodes).expect("no plugin fails");
        profile.run_score_detailed(&cx, &nodes).expect("no plugin fails")
    }
}

/// A clock that stands still.
fn clock() -> Clock {
    SimClock::new(jiff::Timestamp::UNIX_EPOCH).clock()
}
