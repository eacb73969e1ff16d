//! A harness that builds one plugin and runs its extension points as a profile would.

mod hints;
mod points;

use std::sync::Arc;

pub use points::Scores;

use super::handle::handle_parts_with;
use super::{NoEffects, NodeFixture, PodFixture};
use crate::config::FeatureGates;
use crate::framework::{EventRegistration, Handle, PluginError, Registration};
use crate::model::{PodInfo, Snapshot};

/// One plugin with its handle and a cluster to run it on.
///
/// A method panics if the plugin does not register the extension point that the method runs.
pub struct Harness {
    /// The extension points that the plugin registers.
    pub registration: Registration,
    /// The events that the plugin registers, in the plugin's order.
    pub registered: Vec<EventRegistration>,
    /// The handle that the plugin was built with. [`super::put`] adds objects for its listers.
    pub handle: Handle,
    /// The nodes that the extension points see.
    pub snapshot: Snapshot,
    effects: Arc<NoEffects>,
}

impl Harness {
    /// Builds a plugin with default feature gates and default arguments.
    pub fn new<A: Default>(factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>) -> Self {
        Self::with_args(A::default(), factory)
    }

    /// Builds a plugin with arguments.
    pub fn with_args<A>(args: A, factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>) -> Self {
        Self::build(FeatureGates::default(), args, Ok(()), factory).expect("the plugin can be built")
    }

    /// Builds a plugin with these feature gates and default arguments.
    pub fn with_gates<A: Default>(
        gates: FeatureGates,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>,
    ) -> Self {
        Self::build(gates, A::default(), Ok(()), factory).expect("the plugin can be built")
    }

    /// Builds a plugin whose bindings have this result.
    pub fn with_binding_result<A: Default>(
        result: Result<(), PluginError>,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>,
    ) -> Self {
        Self::build(FeatureGates::default(), A::default(), result, factory).expect("the plugin can be built")
    }

    /// Builds a plugin from its arguments. Returns the error of the factory if it fails.
    pub fn build<A>(
        gates: FeatureGates,
        args: A,
        binding_result: Result<(), PluginError>,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError>,
    ) -> Result<Self, PluginError> {
        let effects = Arc::new(NoEffects::with_binding_result(binding_result));
        let handle = Handle::new(handle_parts_with(gates, effects.clone()), "default-scheduler");
        let registration = factory(args, &handle)?;
        let registered = match &registration.events {
            Some(events) => events.clone().events_to_register()?,
            None => Vec::new(),
        };
        Ok(Self { registration, registered, handle, snapshot: Snapshot::default(), effects })
    }

    /// Sets the nodes of the cluster. Each node gets the pods that are bound to it.
    #[must_use]
    pub fn cluster(mut self, nodes: Vec<NodeFixture>, pods: &[PodFixture]) -> Self {
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

    /// Returns the effects, which record the plugin's writes.
    pub fn effects(&self) -> &NoEffects {
        &self.effects
    }

    /// Returns the labels of the registered events. A combination of actions that has no name is left out, so that the label is
    /// only the resource.
    pub fn events(&self) -> Vec<String> {
        self.registered.iter().map(|registration| registration.event.label().to_string()).collect()
    }
}
