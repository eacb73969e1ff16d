//! A cache and a queue with one plugin that registers for all events.

use std::sync::{Arc, Mutex};

use super::super::{HandlerParts, Handlers, NodeCheck};
use crate::cache::Cache;
use crate::clock::{Clock, Now, SimClock};
use crate::config::{Config, FeatureGates};
use crate::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin,
    Framework, HandleParts, NodeRef, Plugin, PluginError, QueueSortKey, QueueSortPlugin, QueueingHint, Registration,
    Registry, Scratch, Verdict, WaitingPods,
};
use crate::k8s::{Node, Pod};
use crate::listers::Change;
use crate::metrics::Metrics;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, Object, PodInfo, ResourceGates};
use crate::queue::{Queue, QueueOptions};
use crate::testing::{NoEffects, NodeFixture, PodFixture};

type Log = Arc<Mutex<Vec<String>>>;

/// A plugin that registers for all events, and logs each event for each pod that it rejected.
struct Listener {
    log: Log,
    cache: Arc<Cache>,
}

impl Plugin for Listener {
    fn name(&self) -> &'static str {
        "Listener"
    }
}

impl QueueSortPlugin for Listener {
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool {
        a.timestamp < b.timestamp
    }
}

impl FilterPlugin for Listener {
    fn filter(&self, _: &CycleContext<'_>, _: NodeRef<'_>, _: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(Verdict::Pass)
    }
}

impl BindPlugin for Listener {
    fn bind<'a>(&'a self, _: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
        Box::pin(async { Ok(BindOutcome::Skip) })
    }
}

impl EnqueueExtensions for Listener {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        let resources = [EventResource::Pod, EventResource::Node, EventResource::StorageClass];
        let registration = |resource: EventResource| {
            let listener = self.clone();
            let event = ClusterEvent::new(resource, ActionType::ALL);
            EventRegistration::with_hint(event, move |pod, objects| {
                listener.note(pod, objects);
                Ok(QueueingHint::Skip)
            })
        };
        Ok(resources.into_iter().map(registration).collect())
    }
}

impl Listener {
    /// Logs an event as `rejected: old>new`. For a node, also logs the number of nodes in the cache at this time.
    fn note(&self, pod: &PodInfo, objects: &EventObjects) {
        let name = |object: &Option<Object>| match object {
            Some(Object::Pod(pod)) => format!("{}@{}", pod.name(), pod.node_name().unwrap_or_default()),
            Some(Object::Node(node)) => format!("{} of {}", node.name(), self.cache.counts().nodes),
            Some(Object::Other(_)) => "other".to_owned(),
            None => String::new(),
        };
        let line = format!("{}: {}>{}", pod.name(), name(&objects.old), name(&objects.new));
        self.log.lock().expect("no test panics under it").push(line);
    }
}

/// Returns the change from `old`, if given, to `new`.
pub(super) fn change<K>(old: Option<&Arc<K>>, new: &Arc<K>) -> Change<K> {
    match old {
        None => Change::Added(new.clone()),
        Some(old) => Change::Updated { old: old.clone(), new: new.clone() },
    }
}

pub(super) struct World {
    pub(super) handlers: Handlers,
    pub(super) cache: Arc<Cache>,
    pub(super) queue: Arc<Queue>,
    pub(super) waiting: WaitingPods,
    metrics: Arc<Metrics>,
    log: Log,
    pub(super) clock: Clock,
    /// The observed event labels with their counts.
    seen: Mutex<std::collections::BTreeMap<String, u64>>,
}

const CONFIG: &str = "
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Listener}], disabled: [{name: '*'}]}
";

impl World {
    pub(super) fn new() -> Self {
        Self::with_gates(FeatureGates::default(), None)
    }

    pub(super) fn with_gates(gates: FeatureGates, node_check: Option<NodeCheck>) -> Self {
        let clock = SimClock::new(jiff::Timestamp::UNIX_EPOCH).clock();
        let (log, cache, metrics) = (Log::default(), Arc::new(Cache::new()), Metrics::detached());
        let parts = Arc::new(HandleParts::new(gates, metrics.clone(), clock.clone(), Arc::new(NoEffects::default())));
        let mut registry = Registry::default();
        let listener = Arc::new(Listener { log: log.clone(), cache: cache.clone() });
        let factory = move |(), _: &crate::framework::Handle| {
            let registration = Registration::new("Listener").events(&listener).queue_sort(&listener);
            Ok(registration.filter(&listener).bind(&listener))
        };
        registry.register("Listener", factory).expect("the name is new");
        let config = Config::parse(CONFIG.as_bytes(), &gates, registry.catalog()).expect("the configuration is good");
        let profile = Framework::new(&registry, &config.profiles[0], parts.clone()).expect("the profile is good");
        let queue = Queue::new(&[Arc::new(profile)], QueueOptions::default(), clock.now()).expect("events are good");
        let handlers = Handlers::new(HandlerParts {
            cache: cache.clone(),
            queue: queue.clone(),
            waiting_pods: parts.waiting_pods.clone(),
            classes: parts.classes.clone(),
            resource_gates: ResourceGates::default(),
            gates,
            profiles: ["default-scheduler".to_owned()].into(),
            metrics: metrics.clone(),
            clock: clock.clone(),
            node_check,
        });
        let waiting = parts.waiting_pods.clone();
        Self { handlers, cache, queue, waiting, metrics, log, clock, seen: Mutex::default() }
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Adds a pod that the plugin has rejected. From now on the log has each event for this pod.
    pub(super) fn rejected(&self, fixture: PodFixture) {
        self.queue.add(fixture.info(), self.now());
        let mut info = self.queue.try_pop(self.now()).expect("it was added");
        info.unschedulable_plugins.insert("Listener".into());
        self.queue.add_unschedulable_if_not_present(info, self.now()).expect("it was popped");
    }

    pub(super) fn pod(&self, old: Option<&Arc<Pod>>, new: &Arc<Pod>) {
        self.handlers.pod_changed(&change(old, new), self.now()).expect("the cache is not corrupted");
    }

    pub(super) fn pod_deleted(&self, pod: &Arc<Pod>, missed: bool) {
        let change = Change::Deleted { last: pod.clone(), missed };
        self.handlers.pod_changed(&change, self.now()).expect("the cache is not corrupted");
    }

    pub(super) fn node(&self, old: Option<NodeFixture>, new: NodeFixture) {
        let old: Option<Arc<Node>> = old.map(NodeFixture::build);
        self.handlers
            .node_changed(&change(old.as_ref(), &new.build()), self.now())
            .expect("the cache is not corrupted");
    }

    pub(super) fn node_deleted(&self, node: NodeFixture) {
        let change = Change::Deleted { last: node.build(), missed: false };
        self.handlers.node_changed(&change, self.now()).expect("the cache is not corrupted");
    }

    pub(super) fn assume(&self, fixture: PodFixture) {
        self.cache.assume_pod(fixture.info()).expect("it is new");
    }

    /// Returns the place of each pod: `p@n` in the cache, `p@n*` assumed, `p:Active` in the queue.
    pub(super) fn places(&self) -> String {
        let cached =
            self.cache.pods().into_iter().map(|cached| {
                format!("{}@{}{}", cached.pod.name(), cached.node, if cached.assumed { "*" } else { "" })
            });
        let queued = self.queue.places().into_iter().map(|(pod, place)| format!("{}:{place:?}", pod.name()));
        cached.chain(queued).collect::<Vec<_>>().join(" ")
    }

    /// Returns the events that were logged since the last call.
    pub(super) fn heard(&self) -> String {
        std::mem::take(&mut *self.log.lock().expect("no test panics under it")).join(", ")
    }

    /// Returns the labels of the events whose handling was observed since the last call.
    pub(super) fn counted(&self) -> String {
        let prefix = "scheduler_event_handling_duration_seconds_count{event=\"";
        let text = self.metrics.gather_text();
        let mut seen = self.seen.lock().expect("no test panics under it");
        let mut labels = Vec::new();
        for line in text.lines().filter_map(|line| line.strip_prefix(prefix)) {
            let (label, count) = line.split_once("\"} ").expect("a series");
            let count: u64 = count.parse().expect("a count");
            let before = seen.insert(label.to_owned(), count).unwrap_or(0);
            labels.extend((before..count).map(|_| label.to_owned()));
        }
        labels.join(" ")
    }

    /// Checks the places of pods, the logged events, and the observed event labels.
    #[track_caller]
    pub(super) fn expect(&self, places: &str, heard: &str, counted: &str) {
        assert_eq!((&*self.places(), &*self.heard(), &*self.counted()), (places, heard, counted));
    }
}
