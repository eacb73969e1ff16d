//! Queueing hints for pods that `NodeResourcesFit` rejected.
//!
//! Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fit.EventsToRegister @v1.36.3`.

use k8s_openapi::api::resource::v1::DeviceClass;

use super::DeviceClasses;
use super::demand::{Demand, Ignored};
use crate::config::{FeatureGates, Gate};
use crate::framework::{EventRegistration, PluginError, QueueingHint};
use crate::k8s::names::DEVICE_CLASS_PREFIX;
use crate::k8s::{Pod, RequestOptions, pod_requests};
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, Object, PodInfo, Resources};
use crate::plugins::event::{hint, node_event, unexpected};

/// The registered events and their hints.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    classes: DeviceClasses,
    /// Whether `SchedulerQueueingHints` is on. Without it, the plugin also registers for changed node labels and taints, because
    /// the event of an added node may have been dropped.
    are_hints_on: bool,
    /// Whether `InPlacePodVerticalScaling` is on, so that the requests of running pods may shrink.
    is_resize_on: bool,
    /// Options that decide which of a pod's requests count when a pod is scaled down.
    options: RequestOptions,
}

impl Hints {
    pub(super) fn new(gates: &FeatureGates, classes: DeviceClasses) -> Self {
        let is_resize_on = gates.enabled(Gate::InPlacePodVerticalScaling);
        let options = RequestOptions {
            use_status: is_resize_on,
            use_pod_level_status: gates.enabled(Gate::InPlacePodLevelResourcesVerticalScaling),
            ..RequestOptions::default()
        };
        Self { classes, are_hints_on: gates.enabled(Gate::SchedulerQueueingHints), is_resize_on, options }
    }

    /// Returns the events to register, with their hints.
    pub(super) fn events(&self) -> Vec<EventRegistration> {
        let mut pod_actions = ActionType::DELETE;
        if self.is_resize_on {
            pod_actions = pod_actions | ActionType::UPDATE_POD_SCALE_DOWN;
        }
        let node_actions = ActionType::ADD | ActionType::UPDATE_NODE_ALLOCATABLE;
        let register = |event, hint: Hint| {
            let hints = self.clone();
            EventRegistration::with_hint(event, move |pod, objects| hint(&hints, pod, objects))
        };
        let mut events = vec![
            register(ClusterEvent::new(EventResource::Pod, pod_actions), Self::after_pod_event),
            register(node_event(self.are_hints_on, node_actions), Self::after_node_change),
        ];
        if self.classes.is_enabled() {
            let changed = ClusterEvent::new(EventResource::DeviceClass, ActionType::ADD | ActionType::UPDATE);
            events.push(register(changed, |_, pod, objects| after_device_class_event(pod, objects)));
        }
        events
    }

    /// Returns the hint for a deleted or updated pod.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fit.isSchedulableAfterPodEvent @v1.36.3`.
    fn after_pod_event(&self, pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let helps = match (&objects.old, &objects.new) {
            (Some(Object::Pod(old)), None) => old.node_name().is_some() || old.nominated_node_name().is_some(),
            (Some(Object::Pod(old)), Some(Object::Pod(new))) => {
                self.is_resize_on && self.helps_to_scale_down(pod, old, new)
            }
            _ => return Err(unexpected("pods")),
        };
        Ok(hint(helps))
    }

    /// Whether the waiting pod benefits from the smaller requests of an updated pod.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fit.isSchedulableAfterPodScaleDown @v1.36.3`.
    fn helps_to_scale_down(&self, pod: &PodInfo, old: &Pod, new: &Pod) -> bool {
        if new.uid() == pod.uid() {
            return true;
        }
        if new.node_name().is_none() {
            return false;
        }
        let amounts = |pod| Resources::from_quantities(pod_requests(pod, &self.options).iter()).floored();
        let (before, after) = (amounts(old), amounts(new));
        pod_requests(pod.pod(), &self.options)
            .iter()
            .any(|(name, wanted)| !wanted.is_zero() && before.get(name) > after.get(name))
    }

    /// Returns the hint for an added or updated node. As in upstream, resources that `Filter` ignores count here.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fit.isSchedulableAfterNodeChange @v1.36.3`.
    fn after_node_change(&self, pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
        let (old, Some(new)) = objects.nodes() else { return Err(unexpected("a node")) };
        let demand = Demand::new(pod.spec_requests(), &Ignored::default(), &self.classes);
        let new = Resources::from_list(&new.status.allocatable);
        let gains = || old.is_none_or(|old| demand.gains(&Resources::from_list(&old.status.allocatable), &new));
        Ok(hint(demand.fits_empty(&new) && gains()))
    }
}

type Hint = fn(&Hints, &PodInfo, &EventObjects) -> Result<QueueingHint, PluginError>;

/// Returns the hint for an added or updated device class.
/// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#Fit.isSchedulableAfterDeviceClassEvent @v1.36.3`.
fn after_device_class_event(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let class = |object: &Option<Object>| match object {
        Some(object) => object.downcast::<DeviceClass>().cloned().map(Some).ok_or_else(|| unexpected("a device class")),
        None => Ok(None),
    };
    let (old, new) = (class(&objects.old)?, class(&objects.new)?.ok_or_else(|| unexpected("a device class"))?);
    let requests = pod_requests(pod.pod(), &RequestOptions::default());
    let extended = |class: &DeviceClass| class.spec.extended_resource_name.clone().unwrap_or_default();
    if let Some(old) = old {
        if extended(&old) == extended(&new) {
            return Ok(QueueingHint::Skip);
        }
    } else {
        let implicit = format!("{DEVICE_CLASS_PREFIX}{}", new.metadata.name.as_deref().unwrap_or_default());
        if requests.get(&implicit).is_some() {
            return Ok(QueueingHint::Queue);
        }
    }
    Ok(hint(new.spec.extended_resource_name.is_some_and(|name| requests.get(&name).is_some())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::framework::QueueingHint::{Queue, Skip};
    use crate::plugins::node_resources::fixture::device_class as class;
    use crate::testing::{NodeFixture, PodFixture, handle, node, pod};

    fn hints(gates: FeatureGates) -> (Hints, crate::framework::Handle) {
        let handle = handle(gates);
        (Hints::new(&gates, DeviceClasses::new(&handle).expect("nothing is watched yet")), handle)
    }

    fn ask(pending: PodFixture, at: usize, old: Option<Object>, new: Option<Object>) -> QueueingHint {
        let (hints, handle) = hints(FeatureGates::default());
        handle.listers().put(class("mapped", None));
        let registered = hints.events().swap_remove(at);
        let hint = registered.hint.expect("every event has a hint");
        hint(&pending.info(), &EventObjects { old, new }).expect("the objects are of the right kind")
    }

    #[test]
    fn events_depend_on_gates() {
        let check = |gates: FeatureGates, expected: &[(EventResource, u32)]| {
            let events = hints(gates).0.events().into_iter();
            let events: Vec<_> = events.map(|event| (event.event.resource, event.event.action.bits())).collect();
            assert_eq!(events, expected);
        };
        let on = FeatureGates::default();
        let (pods, nodes) = ((EventResource::Pod, 1 << 1 | 1 << 9), (EventResource::Node, 1 | 1 << 2));
        let classes = (EventResource::DeviceClass, ActionType::ADD.bits() | ActionType::UPDATE.bits());
        check(on, &[pods.clone(), nodes.clone(), classes]);
        let off = on.with(Gate::DRAExtendedResource, false);
        check(off, &[pods, nodes]);
        let off = off.with(Gate::InPlacePodVerticalScaling, false).with(Gate::SchedulerQueueingHints, false);
        check(off, &[(EventResource::Pod, 1 << 1), (EventResource::Node, 1 | 1 << 2 | 1 << 3 | 1 << 4)]);
    }

    #[test]
    fn deleted_pods_help_if_they_held_a_node() {
        let check = |gone: PodFixture, expected| {
            assert_eq!(ask(pod("p"), 0, Some(Object::Pod(gone.build())), None), expected);
        };
        check(pod("a"), Skip);
        check(pod("a").on("n"), Queue);
        check(pod("a").nominated("n"), Queue);
    }

    #[test]
    fn pods_that_shrink_help_those_that_want_what_they_give() {
        let check = |pending: PodFixture, old: PodFixture, new: PodFixture, expected| {
            let (old, new) = (Object::Pod(old.build()), Object::Pod(new.build()));
            assert_eq!(ask(pending, 0, Some(old), Some(new)), expected);
        };
        let (cpu, memory) = (|amount| pod("a").on("n").cpu(amount), |amount| pod("a").on("n").memory(amount));
        check(pod("p").cpu("1"), cpu("2"), cpu("1"), Queue);
        check(pod("p").cpu("1"), cpu("1"), cpu("1"), Skip);
        check(pod("p").cpu("1"), memory("2"), memory("1"), Skip);
        check(pod("p").cpu("0").memory("1"), memory("2"), memory("1"), Queue);
        check(pod("p").cpu("0"), cpu("2"), cpu("1"), Skip);
        check(pod("p").cpu("1"), pod("a").cpu("2"), pod("a").cpu("1"), Skip);
        check(pod("p").cpu("1"), pod("p").cpu("2"), pod("p").cpu("1"), Queue);
        let gpus = |amount| pod("a").on("n").request("example.com/gpu", amount);
        check(pod("p").request("example.com/gpu", "1"), gpus("2"), gpus("1"), Queue);
    }

    #[test]
    fn nodes_help_if_the_pod_fits_when_they_are_empty() {
        let check = |pending: PodFixture, old: Option<NodeFixture>, new: NodeFixture, expected| {
            let old = old.map(|old| Object::Node(old.build()));
            assert_eq!(ask(pending, 1, old, Some(Object::Node(new.build()))), expected);
        };
        let cpu = |amount| node("n").allocatable("cpu", amount);
        check(pod("p").cpu("4"), None, node("n"), Queue);
        check(pod("p").cpu("5"), None, node("n"), Skip);
        check(pod("p").cpu("5"), Some(cpu("4")), cpu("6"), Queue);
        check(pod("p").cpu("3"), Some(cpu("6")), cpu("4"), Skip);
        check(pod("p").memory("1"), Some(cpu("4")), cpu("6"), Skip);
        check(pod("p"), Some(cpu("4")), cpu("6"), Skip);
        check(pod("p"), Some(node("n")), node("n").allocatable("pods", "111"), Queue);
        check(pod("p"), None, node("n").allocatable("pods", "0"), Skip);
        let mapped = "deviceclass.resource.kubernetes.io/mapped";
        check(pod("p").request(mapped, "1"), Some(cpu("4")), cpu("4"), Queue);
        check(pod("p").request(mapped, "1"), Some(cpu("4")), cpu("4").allocatable(mapped, "1"), Queue);
    }

    #[test]
    fn device_classes_help_those_that_ask_for_them() {
        let check = |old: Option<Arc<DeviceClass>>, new: Arc<DeviceClass>, expected| {
            let pending = pod("p").request("example.com/gpu", "1").request("deviceclass.resource.kubernetes.io/c", "1");
            let old = old.map(|old| Object::Other(old));
            assert_eq!(ask(pending, 2, old, Some(Object::Other(new))), expected);
        };
        check(None, class("c", None), Queue);
        check(None, class("d", None), Skip);
        check(None, class("d", Some("example.com/gpu")), Queue);
        check(Some(class("d", None)), class("d", Some("example.com/gpu")), Queue);
        check(Some(class("d", Some("example.com/gpu"))), class("d", Some("example.com/gpu")), Skip);
        check(Some(class("c", Some("example.com/gpu"))), class("c", None), Skip);
    }

    #[test]
    fn other_objects_are_errors() {
        for registered in hints(FeatureGates::default()).0.events() {
            let objects = EventObjects { old: None, new: Some(Object::Other(Arc::new(1_u8))) };
            assert!(registered.hint.expect("a hint")(&pod("p").info(), &objects).is_err());
        }
    }
}
