//! What a plugin may ask of the scheduler.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use super::{BoxFuture, Parallelizer, PluginError, PodsInPreBind, SharedStates, Slot, WaitingPods};
use crate::clock::Clock;
use crate::config::{FeatureGates, Gate};
use crate::k8s::Pod;
use crate::listers::{Kind, Lister, Listers};
use crate::metrics::Metrics;
use crate::model::{LabelClasses, PodInfo, ResourceGates};

/// How a failed attempt changes the node that is held for the pod.
/// Follows `kube-scheduler/framework/interface.go#NominatingInfo @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NominatingInfo {
    /// It stays.
    #[default]
    Keep,
    /// It becomes this one; empty clears it.
    Override(String),
}

/// Holds nodes for pods until they are scheduled. Has its own lock and may be called at any time.
/// Follows `kube-scheduler/framework/interface.go#PodNominator @v1.36.3`.
pub trait Nominator: Send + Sync {
    /// Whether a node is held for any pod. Cheap: asked once a cycle.
    fn has_nominated_pods(&self) -> bool;
    /// The pods for which `node` is held, in the order in which it was.
    fn nominated_pods_for_node(&self, node: &str) -> Vec<Arc<PodInfo>>;
    /// Holds a node for the pod.
    fn add_nominated_pod(&self, pod: &Arc<PodInfo>, nominating: &NominatingInfo);
    /// The pod changed.
    fn update_nominated_pod(&self, old: &PodInfo, new: &Arc<PodInfo>);
    /// No node is held for the pod any more.
    fn delete_nominated_pod_if_exists(&self, pod: &PodInfo);
}

/// Moves pods to activeQ. Takes the queue's lock: not to be called from `PreEnqueue`, a hint or `Less`.
pub trait Activator: Send + Sync {
    /// Moves these pods (`namespace/name`) to activeQ if they wait elsewhere; one that is just being scheduled is tried
    /// again if this attempt fails.
    fn activate(&self, pods: &[String]);
}

/// An event about a pod, as users see it.
#[derive(Clone, Copy, Debug)]
pub struct PodEvent<'a> {
    /// The pod.
    pub regarding: &'a Pod,
    /// Whether it is a warning.
    pub warning: bool,
    /// Why the event was written, such as `FailedScheduling`.
    pub reason: &'a str,
    /// What was being done, such as `Scheduling`.
    pub action: &'a str,
    /// For people.
    pub note: &'a str,
}

/// What a plugin writes to the API by way of the scheduler. No call blocks but [`Self::wait`].
pub trait Effects: Send + Sync {
    /// Binds the pod to the node; the future ends with the API server's answer.
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>>;
    /// Records an event about a pod; `profile` is the schedulerName that reports it.
    fn record(&self, profile: &str, event: PodEvent<'_>);
    /// Marks a victim of preemption and deletes it; says whether there was anything to delete.
    fn evict(&self, victim: &Arc<Pod>, preemptor: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>>;
    /// Takes back the node that the pod's status says is held for it.
    fn clear_nomination(&self, pod: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>>;
    /// Runs a task to its end beside the scheduling thread.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Runs a task and waits for its end, but not for ever. For the scheduling thread alone, where nothing else will do.
    fn wait(&self, task: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError>;
}

/// Pods to move to activeQ once the cycle is past `Permit`, and again after `PostBind`: plugins put keys in, from any point.
/// Follows `pkg/scheduler/framework/interface.go#PodsToActivate @v1.36.3`.
#[derive(Clone, Debug, Default)]
pub struct PodsToActivate(Arc<Mutex<std::collections::BTreeSet<String>>>);

impl PodsToActivate {
    /// Adds a pod (`namespace/name`).
    pub fn insert(&self, pod: impl Into<String>) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(pod.into());
    }

    /// Takes all pods out.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)).into_iter().collect()
    }
}

/// Which of a pod's resources count with these feature gates.
pub fn resource_gates(gates: &FeatureGates) -> ResourceGates {
    ResourceGates {
        resize: gates.enabled(Gate::InPlacePodVerticalScaling),
        pod_level: gates.enabled(Gate::PodLevelResources),
        pod_level_resize: gates.enabled(Gate::InPlacePodLevelResourcesVerticalScaling),
        claims: gates.enabled(Gate::DRANodeAllocatableResources),
    }
}

/// Hands out the places in the cycle state of one profile.
#[derive(Debug, Default)]
pub struct SlotAllocator(AtomicUsize);

impl SlotAllocator {
    /// The next place.
    pub fn allocate<T>(&self) -> Slot<T> {
        Slot::new(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// What all profiles share and a [`Handle`] gives access to.
pub struct HandleParts {
    /// The scheduler's API client; none where there is no API server, as in benchmarks.
    pub client: Option<kube::Client>,
    /// Feature gates.
    pub gates: FeatureGates,
    /// Whether extenders have a say: no signature tells what they look at.
    pub has_extenders: bool,
    /// The kinds that were asked for, with their stores.
    pub listers: Arc<Listers>,
    /// State of plugins that all profiles share.
    pub shared_states: SharedStates,
    /// Metric families.
    pub metrics: Arc<Metrics>,
    /// Time.
    pub clock: Clock,
    /// Interned label classes.
    pub classes: LabelClasses,
    /// Pods that wait at Permit.
    pub waiting_pods: WaitingPods,
    /// Pods between Permit and Bind.
    pub pods_in_pre_bind: PodsInPreBind,
    /// Worker threads.
    pub parallelizer: Arc<Parallelizer>,
    /// API writes.
    pub effects: Arc<dyn Effects>,
    /// Set once the queue exists, after all plugins are built.
    pub nominator: OnceLock<Arc<dyn Nominator>>,
    /// Set once the queue exists, after all plugins are built.
    pub activator: OnceLock<Arc<dyn Activator>>,
}

impl HandleParts {
    /// An empty cluster without API client, on one thread.
    pub fn new(gates: FeatureGates, metrics: Arc<Metrics>, clock: Clock, effects: Arc<dyn Effects>) -> Self {
        Self {
            client: None,
            gates,
            has_extenders: false,
            listers: Arc::new(Listers::default()),
            shared_states: SharedStates::default(),
            metrics,
            clock,
            classes: LabelClasses::default(),
            waiting_pods: WaitingPods::default(),
            pods_in_pre_bind: PodsInPreBind::default(),
            parallelizer: Arc::new(Parallelizer::new(1)),
            effects,
            nominator: OnceLock::new(),
            activator: OnceLock::new(),
        }
    }
}

/// What a plugin may ask of the scheduler; cheap to clone and keep. The nodes of a cycle are not here but in the
/// [`super::CycleContext`], since they may be looked at during a cycle only.
#[derive(Clone)]
pub struct Handle {
    parts: Arc<HandleParts>,
    profile: Arc<str>,
    slots: Arc<SlotAllocator>,
    pods_to_activate: Slot<PodsToActivate>,
}

impl Handle {
    /// A handle for the plugins of one profile.
    pub fn new(parts: Arc<HandleParts>, profile: &str) -> Self {
        let slots = Arc::new(SlotAllocator::default());
        let pods_to_activate = slots.allocate();
        Self { parts, profile: Arc::from(profile), slots, pods_to_activate }
    }

    /// The profile's schedulerName. Any time.
    pub fn profile_name(&self) -> &Arc<str> {
        &self.profile
    }

    /// A place in this profile's cycle state. In a factory only.
    pub fn slot<T>(&self) -> Slot<T> {
        self.slots.allocate()
    }

    /// Where plugins leave pods to be moved to activeQ after the cycle. Any time.
    pub fn pods_to_activate(&self) -> Slot<PodsToActivate> {
        self.pods_to_activate
    }

    /// The API client. Any time, but never inside the cycle's hot points.
    pub fn client(&self) -> Option<&kube::Client> {
        self.parts.client.as_ref()
    }

    /// Feature gates. Any time.
    pub fn gates(&self) -> &FeatureGates {
        &self.parts.gates
    }

    /// Whether there are extenders.
    pub(super) fn has_extenders(&self) -> bool {
        self.parts.has_extenders
    }

    /// Returns the lister of a kind, and has the kind watched: its objects are there before the first pod is scheduled, and
    /// may lag behind or be ahead of a cycle's snapshot. In a factory only: fails once watching has begun, unless the kind is
    /// watched already. The lister itself may be read at any time.
    pub fn lister<K>(&self) -> Result<Lister<K>, PluginError>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        Ok(self.parts.listers.ask()?)
    }

    /// Returns the lister of a kind that has no Rust type, such as one that a CRD defines, and has the kind watched. In a
    /// factory only, as [`Self::lister`].
    pub fn dynamic_lister(&self, kind: Kind) -> Result<Lister<DynamicObject>, PluginError> {
        Ok(self.parts.listers.ask_dynamic(kind)?)
    }

    /// Returns the state of type `T` that all profiles share. The first factory that asks for it builds it, and may make it
    /// follow changes with [`Lister::observe`]. In a factory only.
    pub fn shared<T: Any + Send + Sync>(
        &self,
        build: impl FnOnce() -> Result<Arc<T>, PluginError>,
    ) -> Result<Arc<T>, PluginError> {
        self.parts.shared_states.get_or_build(build)
    }

    /// The stores of all kinds, for tests that fill them.
    pub(crate) fn listers(&self) -> &Arc<Listers> {
        &self.parts.listers
    }

    /// Metric families. Any time.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.parts.metrics
    }

    /// Time, for deadlines outside a cycle; in a cycle use [`super::CycleContext::now`].
    pub fn clock(&self) -> &Clock {
        &self.parts.clock
    }

    /// Interned label classes. Any time.
    pub fn classes(&self) -> &LabelClasses {
        &self.parts.classes
    }

    /// A pod with what is derived from it. Any time.
    pub fn pod_info(&self, pod: Arc<Pod>) -> Arc<PodInfo> {
        Arc::new(PodInfo::with_gates(pod, self.classes(), resource_gates(self.gates())))
    }

    /// The pods of all profiles that wait at Permit. Any time.
    pub fn waiting_pods(&self) -> &WaitingPods {
        &self.parts.waiting_pods
    }

    /// The pods of all profiles between Permit and Bind. Any time.
    pub fn pods_in_pre_bind(&self) -> &PodsInPreBind {
        &self.parts.pods_in_pre_bind
    }

    /// Worker threads. At the parallel points.
    pub fn parallelizer(&self) -> &Arc<Parallelizer> {
        &self.parts.parallelizer
    }

    /// API writes. Any time but in a hint, `PreEnqueue` or `Less`.
    pub fn effects(&self) -> &Arc<dyn Effects> {
        &self.parts.effects
    }

    /// Holds nodes for pods. Any time but in a factory, where there is none yet.
    pub fn nominator(&self) -> Option<&Arc<dyn Nominator>> {
        self.parts.nominator.get()
    }

    /// Moves pods to activeQ. Any time but in a factory, a hint, `PreEnqueue` or `Less`.
    pub fn activate(&self, pods: &[String]) {
        if let Some(activator) = self.parts.activator.get() {
            activator.activate(pods);
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({})", self.profile)
    }
}
