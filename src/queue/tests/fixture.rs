//! A queue with a simulated clock and fake plugins whose answers the tests choose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::{Mono, Now, SimClock};
use crate::config::{FeatureGates, Gate, Plugin as PluginName, Profile};
use crate::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, CycleContext, EnqueueExtensions, EventRegistration, FilterPlugin,
    Framework, HandleParts, NodeRef, Plugin, PluginError, PreEnqueuePlugin, QueueSortKey, QueueSortPlugin,
    QueueingHint, Registration, Registry, Scratch, SignOutcome, SignPlugin, Verdict,
};
use crate::listers::Listers;
use crate::metrics::Metrics;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, LabelClasses, PodInfo};
use crate::queue::{Place, Queue, QueueOptions, QueuedPodInfo, pod_events};
use crate::testing::{NoEffects, PodFixture};

pub(super) const NODE_ADD: ClusterEvent = ClusterEvent::new(EventResource::Node, ActionType::ADD);
pub(super) const NODE_LABEL: ClusterEvent = ClusterEvent::new(EventResource::Node, ActionType::UPDATE_NODE_LABEL);
pub(super) const NODE_TAINT: ClusterEvent = ClusterEvent::new(EventResource::Node, ActionType::UPDATE_NODE_TAINT);
pub(super) const POD_DELETE: ClusterEvent = ClusterEvent::new(EventResource::AssignedPod, ActionType::DELETE);

/// Answer of a fake plugin's hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Queue,
    Skip,
    Error,
    /// The plugin has no hint function.
    None,
}

/// State shared by the fakes and the test.
#[derive(Default)]
pub(super) struct Shared {
    /// Pairs of plugin and pod that the plugin gates.
    closed: Mutex<BTreeSet<(String, String)>>,
    /// The calls of hints and gates, as `plugin pod`.
    calls: Mutex<Vec<String>>,
}

/// Description of a fake plugin.
#[derive(Clone)]
pub(super) struct Fake {
    name: &'static str,
    events: Option<Vec<(ClusterEvent, Answer)>>,
    gates: bool,
    fails: bool,
}

/// Describes a plugin that registers no events yet.
pub(super) fn fake(name: &'static str) -> Fake {
    Fake { name, events: Some(Vec::new()), gates: false, fails: false }
}

impl Fake {
    /// Registers the plugin for an event, with this answer of its hint.
    pub(super) fn on(mut self, event: ClusterEvent, answer: Answer) -> Self {
        self.events.get_or_insert_default().push((event, answer));
        self
    }

    /// Removes the event registration from the plugin, so that the plugin gets all events.
    pub(super) fn silent(mut self) -> Self {
        self.events = None;
        self
    }

    /// Adds `PreEnqueue` to the plugin.
    pub(super) fn gates(mut self) -> Self {
        self.gates = true;
        self
    }

    /// Makes the registration of events fail.
    pub(super) fn fails(mut self) -> Self {
        self.fails = true;
        self
    }

    fn register(self, registry: &mut Registry, shared: &Arc<Shared>) {
        let (name, gates, says) = (self.name, self.gates, self.events.is_some());
        let plugin = Arc::new(Running { fake: self, shared: shared.clone() });
        let factory = move |(), _: &_| {
            let registration = Registration::new(name).filter(&plugin);
            let registration = if says { registration.events(&plugin) } else { registration };
            Ok(if gates { registration.pre_enqueue(&plugin) } else { registration })
        };
        registry.register(name, factory).expect("names differ");
    }
}

struct Running {
    fake: Fake,
    shared: Arc<Shared>,
}

impl Plugin for Running {
    fn name(&self) -> &str {
        self.fake.name
    }
}

impl FilterPlugin for Running {
    fn filter(&self, _: &CycleContext<'_>, _: NodeRef<'_>, _: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(Verdict::Pass)
    }
}

impl PreEnqueuePlugin for Running {
    fn pre_enqueue(&self, pod: &PodInfo) -> Verdict {
        let (plugin, pod) = (self.fake.name.to_owned(), pod.name().to_owned());
        self.shared.calls.lock().unwrap().push(format!("{plugin} {pod}"));
        if self.shared.closed.lock().unwrap().contains(&(plugin, pod)) {
            Verdict::unresolvable("closed")
        } else {
            Verdict::Pass
        }
    }
}

impl EnqueueExtensions for Running {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        if self.fake.fails {
            return Err(PluginError::new(format!("{} fails", self.fake.name)));
        }
        let register = |(event, answer): &(ClusterEvent, Answer)| {
            let (plugin, answer) = (self.clone(), *answer);
            let hint = move |pod: &PodInfo, _: &EventObjects| {
                plugin.shared.calls.lock().unwrap().push(format!("{} {}", plugin.fake.name, pod.name()));
                match answer {
                    Answer::Skip => Ok(QueueingHint::Skip),
                    Answer::Error => Err(PluginError::new("broken")),
                    Answer::Queue | Answer::None => Ok(QueueingHint::Queue),
                }
            };
            match answer {
                Answer::None => EventRegistration::new(event.clone()),
                _ => EventRegistration::with_hint(event.clone(), hint),
            }
        };
        Ok(self.fake.events.iter().flatten().map(register).collect())
    }
}

/// Plugin that orders by priority, then by time, binds, and signs the labels.
struct Basics;

impl FilterPlugin for Basics {
    fn filter(&self, _: &CycleContext<'_>, _: NodeRef<'_>, _: &mut Scratch) -> Result<Verdict, PluginError> {
        Ok(Verdict::Pass)
    }
}

impl Plugin for Basics {
    fn name(&self) -> &'static str {
        "Basics"
    }
}

impl EnqueueExtensions for Basics {
    fn events_to_register(self: Arc<Self>) -> Result<Vec<EventRegistration>, PluginError> {
        Ok(Vec::new())
    }
}

impl QueueSortPlugin for Basics {
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool {
        (b.pod.priority(), a.timestamp) < (a.pod.priority(), b.timestamp)
    }
}

impl BindPlugin for Basics {
    fn bind<'a>(&'a self, _: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
        Box::pin(async { Ok(BindOutcome::Skip) })
    }
}

impl SignPlugin for Basics {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        Ok(SignOutcome::Fragments(vec![("labels", serde_json::json!(pod.pod().labels()).into())]))
    }
}

/// Settings of a queue under test.
pub(super) struct Setup {
    gates: FeatureGates,
    /// Plugins of each profile, by scheduler name.
    profiles: Vec<(&'static str, Vec<Fake>)>,
    options: QueueOptions,
    /// Milliseconds between the last whole wall second and the start of the monotonic clock.
    phase_ms: i64,
}

/// Describes a queue with one profile and these plugins.
pub(super) fn setup(plugins: impl IntoIterator<Item = Fake>) -> Setup {
    Setup {
        gates: FeatureGates::default(),
        profiles: vec![("default-scheduler", plugins.into_iter().collect())],
        options: QueueOptions::default(),
        phase_ms: 0,
    }
}

impl Setup {
    pub(super) fn gate(mut self, gate: Gate, on: bool) -> Self {
        self.gates = self.gates.with(gate, on);
        self
    }

    pub(super) fn profile(mut self, name: &'static str, plugins: impl IntoIterator<Item = Fake>) -> Self {
        self.profiles.push((name, plugins.into_iter().collect()));
        self
    }

    pub(super) fn options(mut self, change: impl FnOnce(&mut QueueOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(super) fn phase_ms(mut self, phase_ms: i64) -> Self {
        self.phase_ms = phase_ms;
        self
    }

    pub(super) fn build(self) -> Bench {
        self.try_build().expect("a queue")
    }

    pub(super) fn try_build(self) -> Result<Bench, PluginError> {
        let clock = SimClock::new(Timestamp::from_millisecond(1_767_225_600_000 + self.phase_ms).expect("a time"));
        let (metrics, shared) = (Metrics::detached(), Arc::new(Shared::default()));
        let parts =
            Arc::new(HandleParts::new(self.gates, metrics.clone(), clock.clock(), Arc::new(NoEffects::default())));
        let listers = parts.listers.clone();
        let framework = |(name, fakes): (&str, Vec<Fake>)| {
            let mut registry = Registry::default();
            let basics = Arc::new(Basics);
            let factory = move |(), _: &_| {
                let registration = Registration::new("Basics").queue_sort(&basics).bind(&basics);
                Ok(registration.events(&basics).filter(&basics).sign(&basics))
            };
            registry.register("Basics", factory).expect("names differ");
            let mut profile = Profile { scheduler_name: name.to_owned(), ..Profile::default() };
            profile.plugins.multi_point.enabled.push(PluginName::new("Basics"));
            for fake in fakes {
                profile.plugins.multi_point.enabled.push(PluginName::new(fake.name));
                fake.register(&mut registry, &shared);
            }
            Arc::new(Framework::new(&registry, &profile, parts.clone()).expect("a profile"))
        };
        let profiles: Vec<_> = self.profiles.into_iter().map(framework).collect();
        let queue = Queue::new(&profiles, self.options, clock.now())?;
        let classes = LabelClasses::default();
        Ok(Bench { queue, clock, listers, metrics, shared, gates: self.gates, classes, popped: BTreeMap::new() })
    }
}

/// A queue under test, and the operations on it.
pub(super) struct Bench {
    pub(super) queue: Arc<Queue>,
    pub(super) clock: SimClock,
    pub(super) listers: Arc<Listers>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) shared: Arc<Shared>,
    gates: FeatureGates,
    classes: LabelClasses,
    /// Popped pods that did not come back, by name.
    popped: BTreeMap<String, QueuedPodInfo>,
}

impl Bench {
    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    pub(super) fn info(&self, pod: PodFixture) -> Arc<PodInfo> {
        Arc::new(PodInfo::new(pod.build(), &self.classes))
    }

    /// Adds a pod to the listers, then to the queue.
    pub(super) fn add(&self, pod: PodFixture) {
        let pod = self.info(pod);
        self.listers.put(pod.pod().clone());
        self.queue.add(pod, self.now());
    }

    pub(super) fn update(&self, old: PodFixture, new: PodFixture) {
        let new = self.info(new);
        self.listers.put(new.pod().clone());
        let old = old.build();
        self.queue.update(&old, &new, &pod_events(&old, new.pod(), &self.gates), self.now());
    }

    pub(super) fn delete(&self, pod: PodFixture) {
        let pod = pod.build();
        self.listers.store::<crate::k8s::Pod>().expect("the queue asked for pods").remove(&pod.key());
        self.queue.delete(&pod);
    }

    /// Pops a pod and returns its name, or an empty string.
    pub(super) fn pop(&mut self) -> String {
        let popped = self.queue.try_pop(self.now());
        self.keep(popped)
    }

    pub(super) fn pop_specific(&mut self, name: &str) -> String {
        let popped = self.queue.pop_specific(&format!("default/{name}"), self.now());
        self.keep(popped)
    }

    fn keep(&mut self, popped: Option<QueuedPodInfo>) -> String {
        let Some(info) = popped else { return String::new() };
        let name = info.pod.name().to_owned();
        self.popped.insert(name.clone(), info);
        name
    }

    /// Returns a pod that was popped and did not come back.
    pub(super) fn popped(&mut self, name: &str) -> &mut QueuedPodInfo {
        self.popped.get_mut(name).unwrap_or_else(|| panic!("{name} was not popped"))
    }

    /// Fails the pod's attempt with these rejecting and pending plugins.
    pub(super) fn fail_pending(&mut self, name: &str, plugins: &[&str], pending: &[&str]) {
        let mut info = self.popped.remove(name).unwrap_or_else(|| panic!("{name} was not popped"));
        let set = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        info.clear_rejector_plugins();
        (info.unschedulable_plugins, info.pending_plugins) = (set(plugins), set(pending));
        self.queue.add_unschedulable_if_not_present(info, self.now()).expect("the pod is not queued");
    }

    /// Fails the pod's attempt with these rejecting plugins, or with an error if there are none.
    pub(super) fn fail(&mut self, name: &str, plugins: &[&str]) {
        self.fail_pending(name, plugins, &[]);
    }

    /// Adds a pod, pops it and fails its attempt.
    pub(super) fn reject(&mut self, pod: PodFixture, plugins: &[&str]) {
        let name = pod.clone().build().name().to_owned();
        self.add(pod);
        assert_eq!(self.pop(), name);
        self.fail(&name, plugins);
    }

    pub(super) fn event(&self, event: &ClusterEvent) {
        self.queue.move_all(event, &EventObjects::default(), self.now(), None);
    }

    pub(super) fn activate(&self, names: &[&str]) {
        let keys: Vec<String> = names.iter().map(|name| format!("default/{name}")).collect();
        self.queue.activate_at(&keys, self.now());
    }

    pub(super) fn advance_ms(&self, milliseconds: u64) {
        self.clock.advance(Duration::from_millis(milliseconds));
    }

    /// Advances the clock to a time since its start, and runs the timers.
    pub(super) fn flush_at_ms(&self, milliseconds: u64) {
        self.clock.advance_to(ms(milliseconds));
        self.queue.flush(self.now());
    }

    pub(super) fn close(&self, plugin: &str, pod: &str) {
        self.shared.closed.lock().unwrap().insert((plugin.to_owned(), pod.to_owned()));
    }

    pub(super) fn open(&self, plugin: &str, pod: &str) {
        self.shared.closed.lock().unwrap().remove(&(plugin.to_owned(), pod.to_owned()));
    }

    /// Returns the calls of hints and gates since the last call of this function.
    pub(super) fn calls(&self) -> String {
        std::mem::take(&mut *self.shared.calls.lock().unwrap()).join(", ")
    }

    /// Returns the places of all pods, such as `active: a b; backoff: c`. Pods in flight come last, in the order of popping.
    pub(super) fn places(&self) -> String {
        let mut places: BTreeMap<Place, Vec<String>> = BTreeMap::new();
        for (pod, place) in self.queue.places() {
            assert_eq!(self.queue.locate(pod.uid()), Some(place));
            places.entry(place).or_default().push(pod.name().to_owned());
        }
        let name = |place: Place| match place {
            Place::Active => "active",
            Place::Backoff => "backoff",
            Place::ErrorBackoff => "error",
            Place::Unschedulable => "unschedulable",
        };
        let mut texts: Vec<String> =
            places.into_iter().map(|(place, pods)| format!("{}: {}", name(place), pods.join(" "))).collect();
        let in_flight: Vec<String> = self.queue.in_flight_pods().iter().map(|pod| pod.name().to_owned()).collect();
        if !in_flight.is_empty() {
            texts.push(format!("in flight: {}", in_flight.join(" ")));
        }
        texts.join("; ")
    }

    #[track_caller]
    pub(super) fn check(&self, expected: &str) {
        assert_eq!(self.places(), expected);
    }

    /// Returns the value of a series, which is named in text format: `name{label="value"}`.
    pub(super) fn metric(&self, series: &str) -> Option<String> {
        self.metrics.flush();
        let text = self.metrics.gather_text();
        text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ').map(str::to_owned))
    }

    #[track_caller]
    pub(super) fn check_metric(&self, series: &str, expected: Option<&str>) {
        assert_eq!(self.metric(series).as_deref(), expected, "{series}");
    }

    /// Checks the gauges of active, backoff, unschedulable and gated pods.
    #[track_caller]
    pub(super) fn check_pending(&self, expected: [u64; 4]) {
        let gauge = |queue: &str| -> u64 {
            self.metric(&format!("scheduler_pending_pods{{queue=\"{queue}\"}}"))
                .expect("pre-created")
                .parse()
                .expect("a number")
        };
        assert_eq!(["active", "backoff", "unschedulable", "gated"].map(gauge), expected);
    }
}

/// Returns a time since the clock's start.
pub(super) fn ms(milliseconds: u64) -> Mono {
    Mono::ZERO + Duration::from_millis(milliseconds)
}
