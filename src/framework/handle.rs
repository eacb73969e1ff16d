//! The services of the scheduler that plugins may use.

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

/// Change of a pod's nominated node after a failed attempt.
/// Follows `kube-scheduler/framework/interface.go#NominatingInfo @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NominatingInfo {
    /// The nominated node stays the same.
    #[default]
    Keep,
    /// The nominated node becomes this one. An empty name clears it.
    Override(String),
}

/// Keeps the nominated nodes of pods until the pods are scheduled. The nominator has its own lock and may be called at any time.
/// Follows `kube-scheduler/framework/interface.go#PodNominator @v1.36.3`.
pub trait Nominator: Send + Sync {
    /// Whether any pod has a nominated node. This must be cheap: it is called for each block of nodes, and for each node in a
    /// dry run of preemption.
    fn has_nominated_pods(&self) -> bool;
    /// Returns the pods nominated to `node`, in the order in which they were nominated.
    fn nominated_pods_for_node(&self, node: &str) -> Vec<Arc<PodInfo>>;
    /// Nominates a node for the pod.
    fn add_nominated_pod(&self, pod: &Arc<PodInfo>, nominating: &NominatingInfo);
    /// Replaces a nominated pod after the pod changed.
    fn update_nominated_pod(&self, old: &PodInfo, new: &Arc<PodInfo>);
    /// Removes the nomination of the pod, if it has one.
    fn delete_nominated_pod_if_exists(&self, pod: &PodInfo);
}

/// Moves pods to activeQ. This takes the queue's lock, so `PreEnqueue`, queueing hints and `Less` must not do it.
pub trait Activator: Send + Sync {
    /// Moves these pods (`namespace/name`) to activeQ if they wait elsewhere in the queue. A pod that is being scheduled is
    /// retried if its current attempt fails.
    fn activate(&self, pods: &[String]);
}

/// An event about a pod, before it is written to the API.
#[derive(Clone, Copy, Debug)]
pub struct PodEvent<'a> {
    /// The pod that the event is about.
    pub regarding: &'a Pod,
    /// Whether the event's type is `Warning`.
    pub warning: bool,
    /// Reason of the event, such as `FailedScheduling`.
    pub reason: &'a str,
    /// The action that was taken, such as `Scheduling`.
    pub action: &'a str,
    /// The message, for people to read.
    pub note: &'a str,
}

/// Writes to the API that plugins make through the scheduler. Only [`Self::wait`] blocks.
pub trait Effects: Send + Sync {
    /// Binds the pod to the node. The future returns the API server's response.
    fn bind(&self, pod: &Arc<PodInfo>, node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>>;
    /// Records an event about a pod; `profile` is the schedulerName that reports it.
    fn record(&self, profile: &str, event: PodEvent<'_>);
    /// Adds the `DisruptionTarget` condition to a preemption victim and deletes it. Returns whether the pod still existed.
    fn evict(&self, victim: &Arc<Pod>, preemptor: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>>;
    /// Clears `nominatedNodeName` in the pod's status.
    fn clear_nomination(&self, pod: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>>;
    /// Spawns a task that runs outside the scheduling thread.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Runs a task and waits for its end, with a timeout. Only the scheduling thread may call this, and only if it cannot go on
    /// without the result.
    fn wait(&self, task: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError>;
}

/// Pods to move to activeQ after `Permit`, and again after `PostBind`. Plugins add keys at any extension point. Follows
/// `pkg/scheduler/framework/interface.go#PodsToActivate @v1.36.3`.
#[derive(Clone, Debug, Default)]
pub struct PodsToActivate(Arc<Mutex<std::collections::BTreeSet<String>>>);

impl PodsToActivate {
    /// Adds a pod by its key (`namespace/name`).
    pub fn insert(&self, pod: impl Into<String>) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(pod.into());
    }

    /// Removes and returns all pods.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)).into_iter().collect()
    }
}

/// Returns which of a pod's resources count with these feature gates.
pub fn resource_gates(gates: &FeatureGates) -> ResourceGates {
    ResourceGates {
        resize: gates.enabled(Gate::InPlacePodVerticalScaling),
        pod_level: gates.enabled(Gate::PodLevelResources),
        pod_level_resize: gates.enabled(Gate::InPlacePodLevelResourcesVerticalScaling),
        claims: gates.enabled(Gate::DRANodeAllocatableResources),
    }
}

/// Allocates slots in the cycle state of one profile.
#[derive(Debug, Default)]
pub struct SlotAllocator(AtomicUsize);

impl SlotAllocator {
    /// Returns the next free slot.
    pub fn allocate<T>(&self) -> Slot<T> {
        Slot::new(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// The parts behind a [`Handle`], shared by all profiles.
pub struct HandleParts {
    /// The scheduler's API client. `None` without an API server, as in benchmarks.
    pub client: Option<kube::Client>,
    /// Feature gates of the scheduler.
    pub gates: FeatureGates,
    /// Whether extenders are configured. With extenders, pods are not signed, because the fields that an extender reads are
    /// not known.
    pub has_extenders: bool,
    /// Stores of all kinds that plugins or the scheduler asked for.
    pub listers: Arc<Listers>,
    /// State of plugins that all profiles share.
    pub shared_states: SharedStates,
    /// The scheduler's metric families.
    pub metrics: Arc<Metrics>,
    /// Clock of the scheduler.
    pub clock: Clock,
    /// Interned classes of pods with the same labels.
    pub classes: LabelClasses,
    /// Pods that wait at `Permit`.
    pub waiting_pods: WaitingPods,
    /// Pods between `Permit` and `Bind`.
    pub pods_in_pre_bind: PodsInPreBind,
    /// Threads for parallel work.
    pub parallelizer: Arc<Parallelizer>,
    /// Writes to the API.
    pub effects: Arc<dyn Effects>,
    /// Nominated nodes of pods. Set once the queue exists, after all plugins are built.
    pub nominator: OnceLock<Arc<dyn Nominator>>,
    /// Moves pods to activeQ. Set once the queue exists, after all plugins are built.
    pub activator: OnceLock<Arc<dyn Activator>>,
}

impl HandleParts {
    /// Returns the parts for an empty cluster, without API client and with a single thread.
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

/// A plugin's access to the scheduler. It is cheap to clone, and plugins may keep it. The nodes of a cycle are in the
/// [`super::CycleContext`] instead, because plugins may only look at them during a cycle.
#[derive(Clone)]
pub struct Handle {
    parts: Arc<HandleParts>,
    profile: Arc<str>,
    slots: Arc<SlotAllocator>,
    pods_to_activate: Slot<PodsToActivate>,
}

impl Handle {
    /// Creates the handle for the plugins of one profile.
    pub fn new(parts: Arc<HandleParts>, profile: &str) -> Self {
        let slots = Arc::new(SlotAllocator::default());
        let pods_to_activate = slots.allocate();
        Self { parts, profile: Arc::from(profile), slots, pods_to_activate }
    }

    /// Returns the profile's schedulerName. May be called at any time.
    pub fn profile_name(&self) -> &Arc<str> {
        &self.profile
    }

    /// Allocates a slot in this profile's cycle state. May be called only in a plugin factory.
    pub fn slot<T>(&self) -> Slot<T> {
        self.slots.allocate()
    }

    /// Returns the slot for pods that are moved to activeQ after the cycle. May be called at any time.
    pub fn pods_to_activate(&self) -> Slot<PodsToActivate> {
        self.pods_to_activate
    }

    /// Returns the API client. May be called at any time, but not at the hot points of a cycle, such as `Filter`.
    pub fn client(&self) -> Option<&kube::Client> {
        self.parts.client.as_ref()
    }

    /// Returns the feature gates. May be called at any time.
    pub fn gates(&self) -> &FeatureGates {
        &self.parts.gates
    }

    /// Whether any extenders are configured.
    pub(super) fn has_extenders(&self) -> bool {
        self.parts.has_extenders
    }

    /// Returns the lister of a kind, and registers the kind to be watched. The lister's store is filled before the first pod is
    /// scheduled. Later, it may be older or newer than a cycle's snapshot. This method may be called only in a plugin factory:
    /// once watches have started, it fails unless the kind is watched already. The lister may be read at any time.
    pub fn lister<K>(&self) -> Result<Lister<K>, PluginError>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        Ok(self.parts.listers.ask()?)
    }

    /// Returns the lister of a kind without a Rust type, such as a CRD's, and registers the kind to be watched. May be called
    /// only in a plugin factory, like [`Self::lister`].
    pub fn dynamic_lister(&self, kind: Kind) -> Result<Lister<DynamicObject>, PluginError> {
        Ok(self.parts.listers.ask_dynamic(kind)?)
    }

    /// Returns the state of type `T` that all profiles share. The first factory that asks for the state builds it, and may keep
    /// it up to date with [`Lister::observe`]. May be called only in a plugin factory.
    pub fn shared<T: Any + Send + Sync>(
        &self,
        build: impl FnOnce() -> Result<Arc<T>, PluginError>,
    ) -> Result<Arc<T>, PluginError> {
        self.parts.shared_states.get_or_build(build)
    }

    /// Returns the stores of all kinds, for tests that fill them.
    pub(crate) fn listers(&self) -> &Arc<Listers> {
        &self.parts.listers
    }

    /// Returns the metric families. May be called at any time.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.parts.metrics
    }

    /// Returns the clock, for deadlines outside a cycle. In a cycle, use [`super::CycleContext::now`].
    pub fn clock(&self) -> &Clock {
        &self.parts.clock
    }

    /// Returns the interned label classes. May be called at any time.
    pub fn classes(&self) -> &LabelClasses {
        &self.parts.classes
    }

    /// Creates the [`PodInfo`] of a pod. May be called at any time.
    pub fn pod_info(&self, pod: Arc<Pod>) -> Arc<PodInfo> {
        Arc::new(PodInfo::with_gates(pod, self.classes(), resource_gates(self.gates())))
    }

    /// Returns the pods of all profiles that wait at `Permit`. May be called at any time.
    pub fn waiting_pods(&self) -> &WaitingPods {
        &self.parts.waiting_pods
    }

    /// Returns the pods of all profiles between `Permit` and `Bind`. May be called at any time.
    pub fn pods_in_pre_bind(&self) -> &PodsInPreBind {
        &self.parts.pods_in_pre_bind
    }

    /// Returns the threads for parallel work. May be called at the parallel points.
    pub fn parallelizer(&self) -> &Arc<Parallelizer> {
        &self.parts.parallelizer
    }

    /// Returns the writer to the API. May be called at any time except in a hint, `PreEnqueue` or `Less`.
    pub fn effects(&self) -> &Arc<dyn Effects> {
        &self.parts.effects
    }

    /// Returns the nominated nodes of pods. `None` in a factory, where the queue does not exist yet.
    pub fn nominator(&self) -> Option<&Arc<dyn Nominator>> {
        self.parts.nominator.get()
    }

    /// Moves pods to activeQ. May be called at any time except in a factory, a hint, `PreEnqueue` or `Less`.
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
