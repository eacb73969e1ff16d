//! Events that plugins register for, and the queueing hints for them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::plugin_set::{PluginId, PluginNames, PluginSet};
use crate::config::{FeatureGates, Gate};
use crate::framework::{EXTENDER, EventRegistration, Framework, PluginError, QueueingHintFn};
use crate::metrics::{HintDurations, IncomingQueue, Metrics};
use crate::model::{ActionType, ClusterEvent, EventResource};

/// One event registration of a plugin.
#[derive(Clone)]
struct Registered {
    event: ClusterEvent,
    plugin: PluginId,
    /// The plugin's hint function. `None` means that the answer is always `Queue`.
    hint: Option<QueueingHintFn>,
}

/// The event registrations of all plugins in all profiles.
pub(super) struct EventTable {
    /// The registrations by profile. Within a profile they are ordered by plugin name, then in the plugin's order.
    profiles: Vec<Vec<Registered>>,
    plans: HashMap<ClusterEvent, Arc<EventPlan>>,
    metrics: Arc<Metrics>,
}

/// Effects of an event on all profiles, computed when the event is first seen.
pub(super) struct EventPlan {
    pub(super) event: ClusterEvent,
    /// Name of the event in metrics and logs.
    pub(super) label: Box<str>,
    /// Whether a plugin of any profile registered for the event, or the event is a wildcard.
    pub(super) of_interest: bool,
    /// The plugins of all profiles that registered for the event. The event may open their gates.
    pub(super) opens: PluginSet,
    /// The hints by profile.
    pub(super) hints: Vec<ProfileHints>,
    incoming: [LazySeries<prometheus::IntCounter>; IncomingQueue::ALL.len()],
    in_flight: LazySeries<prometheus::IntGauge>,
}

/// The plugins of one profile that registered for an event.
#[derive(Default)]
pub(super) struct ProfileHints {
    pub(super) plugins: PluginSet,
    pub(super) hints: Vec<Hint>,
}

/// The hint of one plugin for one event.
pub(super) struct Hint {
    pub(super) plugin: PluginId,
    /// The plugin's hint function. `None` means that the answer is always `Queue`.
    pub(super) ask: Option<QueueingHintFn>,
    pub(super) durations: Arc<HintDurations>,
}

/// A metric series that is created at its first use.
type LazySeries<T> = std::sync::OnceLock<T>;

/// Returns registrations for every resource with all actions. They apply to plugins without event registration.
/// Follows `pkg/scheduler/framework/types.go#UnrollWildCardResource @v1.36.3`.
fn all_resources(gates: &FeatureGates) -> Vec<EventRegistration> {
    let mut resources = vec![
        EventResource::Pod,
        EventResource::Node,
        EventResource::PersistentVolume,
        EventResource::PersistentVolumeClaim,
        EventResource::CsiNode,
        EventResource::CsiDriver,
        EventResource::CsiStorageCapacity,
        EventResource::StorageClass,
        EventResource::ResourceClaim,
        EventResource::DeviceClass,
    ];
    if gates.enabled(Gate::GenericWorkload) {
        resources.push(EventResource::PodGroup);
    }
    resources.into_iter().map(|resource| EventRegistration::new(ClusterEvent::new(resource, ActionType::ALL))).collect()
}

/// Returns the event registrations of a profile's plugins, ordered by plugin name. They include the registrations for taint
/// updates that the queue adds. With `extenders`, extenders are registered for all events. If plugins fail to register, returns
/// all their errors.
/// Follows `pkg/scheduler/scheduler.go#buildQueueingHintMap @v1.36.3`.
pub fn registrations(
    profile: &Framework,
    extenders: bool,
) -> Result<Vec<(Arc<str>, EventRegistration)>, Vec<PluginError>> {
    let gates = profile.handle().gates();
    let with_hints = gates.enabled(Gate::SchedulerQueueingHints);
    let (mut registered, mut errors) = (Vec::new(), Vec::new());
    let mut register = |plugin: &Arc<str>, events: Vec<EventRegistration>| {
        let extra = taint_registration(&events);
        registered.extend(events.into_iter().chain(extra).map(|EventRegistration { event, hint }| {
            (plugin.clone(), EventRegistration { event, hint: hint.filter(|_| with_hints) })
        }));
    };
    if extenders {
        register(&Arc::from(EXTENDER), all_resources(gates));
    }
    for (name, plugin) in profile.event_plugins() {
        let events =
            plugin.as_ref().map_or_else(|| Ok(all_resources(gates)), |plugin| plugin.clone().events_to_register());
        match events {
            Ok(events) => register(name, events),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(registered) } else { Err(errors) }
}

/// Returns a registration for taint updates for a plugin that registers for new nodes but not for taints. With hints off, a
/// new node with a taint that a pod does not tolerate does not move the pod. The later removal of the taint has to move it.
fn taint_registration(events: &[EventRegistration]) -> Option<EventRegistration> {
    let registers = |action: ActionType| {
        events.iter().any(|registered| {
            registered.event.resource == EventResource::Node && registered.event.action.intersects(action)
        })
    };
    (registers(ActionType::ADD) && !registers(ActionType::UPDATE_NODE_TAINT))
        .then(|| EventRegistration::new(ClusterEvent::new(EventResource::Node, ActionType::UPDATE_NODE_TAINT)))
}

impl EventTable {
    /// Collects the event registrations of all plugins in all profiles.
    pub(super) fn new(
        profiles: &[Arc<Framework>],
        extenders: bool,
        names: &mut PluginNames,
        metrics: Arc<Metrics>,
    ) -> Result<Self, PluginError> {
        let (mut table, mut errors) = (Vec::new(), Vec::new());
        for profile in profiles {
            match registrations(profile, extenders) {
                Ok(registered) => table.push(
                    registered
                        .into_iter()
                        .map(|(plugin, EventRegistration { event, hint })| Registered {
                            event,
                            plugin: names.intern(&plugin),
                            hint,
                        })
                        .collect(),
                ),
                Err(mut failed) => errors.append(&mut failed),
            }
        }
        if errors.is_empty() {
            return Ok(Self { profiles: table, plans: HashMap::new(), metrics });
        }
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Err(PluginError::new(texts.join("\n")))
    }

    /// Returns the union of the registered actions by resource.
    /// Follows `pkg/scheduler/scheduler.go#unionedGVKs @v1.36.3`.
    pub(super) fn registered(&self) -> BTreeMap<EventResource, ActionType> {
        let mut union: BTreeMap<EventResource, ActionType> = BTreeMap::new();
        for registered in self.profiles.iter().flatten() {
            let actions = union.entry(registered.event.resource.clone()).or_default();
            *actions = *actions | registered.event.action;
        }
        union
    }

    /// Returns the plan of `event`, which is computed at the first call for this event.
    pub(super) fn plan(&mut self, event: &ClusterEvent, names: &PluginNames) -> Arc<EventPlan> {
        if let Some(plan) = self.plans.get(event) {
            return plan.clone();
        }
        let plan = Arc::new(self.make_plan(event, names));
        self.plans.insert(event.clone(), plan.clone());
        plan
    }

    fn make_plan(&self, event: &ClusterEvent, names: &PluginNames) -> EventPlan {
        let label = event.label().to_string().into_boxed_str();
        let mut durations: BTreeMap<PluginId, Arc<HintDurations>> = BTreeMap::new();
        let mut profile_hints = |registered: &Vec<Registered>| {
            let mut found = ProfileHints::default();
            for Registered { plugin, hint, .. } in registered.iter().filter(|entry| entry.event.matches(event)) {
                let durations = durations
                    .entry(*plugin)
                    .or_insert_with(|| Arc::new(self.metrics.hint_durations(names.name(*plugin), &label)))
                    .clone();
                found.plugins.insert(*plugin);
                found.hints.push(Hint { plugin: *plugin, ask: hint.clone(), durations });
            }
            found
        };
        let hints: Vec<ProfileHints> = self.profiles.iter().map(&mut profile_hints).collect();
        let opens: PluginSet = hints.iter().flat_map(|profile| profile.plugins.iter()).collect();
        let of_interest = event.is_wildcard() || !opens.is_empty();
        let (incoming, in_flight) = Default::default();
        EventPlan { event: event.clone(), label, of_interest, opens, hints, incoming, in_flight }
    }
}

impl EventPlan {
    /// Counts a pod that entered `queue` because of this event.
    pub(super) fn count_incoming(&self, queue: IncomingQueue, metrics: &Metrics) {
        self.incoming[queue.index()].get_or_init(|| metrics.incoming_pods(queue, &self.label)).inc();
    }

    /// Returns the gauge of the events of this kind that are kept for pods in flight.
    pub(super) fn in_flight(&self, metrics: &Metrics) -> &prometheus::IntGauge {
        self.in_flight.get_or_init(|| metrics.inflight_events(&self.label))
    }
}
