//! Cluster events: the kind of object and the action on it, as queueing hints receive them.

use std::any::Any;
use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;

use crate::k8s::{Node, Pod};

/// A set of actions on an object, one bit each. The bits are in upstream's order, because [`ClusterEvent::matches`] compares the
/// sets as numbers.
/// Follows `kube-scheduler/framework/types.go#ActionType @v1.36.3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionType(u32);

impl ActionType {
    /// The object was added.
    pub const ADD: Self = Self(1);
    /// The object was deleted.
    pub const DELETE: Self = Self(1 << 1);
    /// A node's allocatable resources changed.
    pub const UPDATE_NODE_ALLOCATABLE: Self = Self(1 << 2);
    /// A node's labels changed.
    pub const UPDATE_NODE_LABEL: Self = Self(1 << 3);
    /// A node's taints changed, or it became schedulable.
    pub const UPDATE_NODE_TAINT: Self = Self(1 << 4);
    /// A node's conditions changed.
    pub const UPDATE_NODE_CONDITION: Self = Self(1 << 5);
    /// A node's annotations changed.
    pub const UPDATE_NODE_ANNOTATION: Self = Self(1 << 6);
    /// A node's declared features changed.
    pub const UPDATE_NODE_DECLARED_FEATURE: Self = Self(1 << 7);
    /// A pod's labels changed.
    pub const UPDATE_POD_LABEL: Self = Self(1 << 8);
    /// A pod's resource requests became smaller.
    pub const UPDATE_POD_SCALE_DOWN: Self = Self(1 << 9);
    /// A pod's tolerations changed.
    pub const UPDATE_POD_TOLERATION: Self = Self(1 << 10);
    /// A pod lost its last scheduling gate.
    pub const UPDATE_POD_SCHEDULING_GATES_ELIMINATED: Self = Self(1 << 11);
    /// A resource claim was generated for a pod.
    pub const UPDATE_POD_GENERATED_RESOURCE_CLAIM: Self = Self(1 << 12);
    /// Any kind of update.
    pub const UPDATE: Self = Self(((1 << 13) - 1) & !0b11);
    /// Any action at all.
    pub const ALL: Self = Self((1 << 13) - 1);

    /// The bits of the set.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The actions that are in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the two sets share an action.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The name in metrics labels, such as `UpdateNodeTaint`. Empty for a combination that has no name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ADD => "Add",
            Self::DELETE => "Delete",
            Self::UPDATE_NODE_ALLOCATABLE => "UpdateNodeAllocatable",
            Self::UPDATE_NODE_LABEL => "UpdateNodeLabel",
            Self::UPDATE_NODE_TAINT => "UpdateNodeTaint",
            Self::UPDATE_NODE_CONDITION => "UpdateNodeCondition",
            Self::UPDATE_NODE_ANNOTATION => "UpdateNodeAnnotation",
            Self::UPDATE_NODE_DECLARED_FEATURE => "UpdateNodeDeclaredFeature",
            Self::UPDATE_POD_LABEL => "UpdatePodLabel",
            Self::UPDATE_POD_SCALE_DOWN => "UpdatePodScaleDown",
            Self::UPDATE_POD_TOLERATION => "UpdatePodToleration",
            Self::UPDATE_POD_SCHEDULING_GATES_ELIMINATED => "UpdatePodSchedulingGatesEliminated",
            Self::UPDATE_POD_GENERATED_RESOURCE_CLAIM => "UpdatePodGeneratedResourceClaim",
            Self::UPDATE => "Update",
            Self::ALL => "All",
            _ => "",
        }
    }
}

impl BitOr for ActionType {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A kind of object in an event. Follows `kube-scheduler/framework/types.go#EventResource @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventResource {
    /// Pods, assigned or not. Plugins register for this kind, but an event never has it.
    Pod,
    /// Pods that have a node.
    AssignedPod,
    /// Pods that have no node.
    UnschedulablePod,
    /// Nodes of the cluster.
    Node,
    /// `PersistentVolume` objects of `v1`.
    PersistentVolume,
    /// `PersistentVolumeClaim` objects of `v1`.
    PersistentVolumeClaim,
    /// `CSINode` objects of `storage.k8s.io`.
    CsiNode,
    /// `CSIDriver` objects of `storage.k8s.io`.
    CsiDriver,
    /// `VolumeAttachment` objects of `storage.k8s.io`.
    VolumeAttachment,
    /// `CSIStorageCapacity` objects of `storage.k8s.io`.
    CsiStorageCapacity,
    /// `StorageClass` objects of `storage.k8s.io`.
    StorageClass,
    /// `ResourceClaim` objects of `resource.k8s.io`.
    ResourceClaim,
    /// `ResourceSlice` objects of `resource.k8s.io`.
    ResourceSlice,
    /// `DeviceClass` objects of `resource.k8s.io`.
    DeviceClass,
    /// `PodGroup` objects of `scheduling.k8s.io`.
    PodGroup,
    /// Every kind of object.
    WildCard,
    /// Any other kind, as `<plural>.<version>.<group>`.
    Other(Arc<str>),
}

impl EventResource {
    /// The name in metrics labels, such as `storage.k8s.io/CSINode`.
    pub fn name(&self) -> &str {
        match self {
            Self::Pod => "Pod",
            Self::AssignedPod => "AssignedPod",
            Self::UnschedulablePod => "UnschedulablePod",
            Self::Node => "Node",
            Self::PersistentVolume => "PersistentVolume",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::CsiNode => "storage.k8s.io/CSINode",
            Self::CsiDriver => "storage.k8s.io/CSIDriver",
            Self::VolumeAttachment => "storage.k8s.io/VolumeAttachment",
            Self::CsiStorageCapacity => "storage.k8s.io/CSIStorageCapacity",
            Self::StorageClass => "storage.k8s.io/StorageClass",
            Self::ResourceClaim => "resource.k8s.io/ResourceClaim",
            Self::ResourceSlice => "resource.k8s.io/ResourceSlice",
            Self::DeviceClass => "resource.k8s.io/DeviceClass",
            Self::PodGroup => "scheduling.k8s.io/PodGroup",
            Self::WildCard => "*",
            Self::Other(name) => name,
        }
    }

    fn covers(&self, incoming: &Self) -> bool {
        self == incoming
            || *self == Self::WildCard
            || (*self == Self::Pod && matches!(incoming, Self::AssignedPod | Self::UnschedulablePod))
    }
}

/// A cluster event: the kind of object and the action on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterEvent {
    /// The kind of object that changed.
    pub resource: EventResource,
    /// The action on the object.
    pub action: ActionType,
    /// Label of an event that is not about an object. It replaces the label derived from `resource` and `action`.
    label: Option<&'static str>,
}

impl ClusterEvent {
    /// Returns an event whose label is derived from its resource and action.
    pub const fn new(resource: EventResource, action: ActionType) -> Self {
        Self { resource, action, label: None }
    }

    const fn special(label: &'static str) -> Self {
        Self { resource: EventResource::WildCard, action: ActionType::ALL, label: Some(label) }
    }

    /// A pod with a node was added. Follows `pkg/scheduler/framework/events.go#EventAssignedPodAdd @v1.36.3`. The constants
    /// below follow the events of the same names.
    pub const ASSIGNED_POD_ADD: Self = Self::new(EventResource::AssignedPod, ActionType::ADD);
    /// A pod with a node was updated.
    pub const ASSIGNED_POD_UPDATE: Self = Self::new(EventResource::AssignedPod, ActionType::UPDATE);
    /// A pod with a node was deleted.
    pub const ASSIGNED_POD_DELETE: Self = Self::new(EventResource::AssignedPod, ActionType::DELETE);
    /// A pod without a node was added.
    pub const UNSCHEDULED_POD_ADD: Self = Self::new(EventResource::UnschedulablePod, ActionType::ADD);
    /// A pod without a node was updated.
    pub const UNSCHEDULED_POD_UPDATE: Self = Self::new(EventResource::UnschedulablePod, ActionType::UPDATE);
    /// A pod without a node was deleted.
    pub const UNSCHEDULED_POD_DELETE: Self = Self::new(EventResource::UnschedulablePod, ActionType::DELETE);
    /// A scheduling attempt failed and the pod returned to the queue.
    pub const SCHEDULE_ATTEMPT_FAILURE: Self = Self::special("ScheduleAttemptFailure");
    /// A pod's backoff ended.
    pub const BACKOFF_COMPLETE: Self = Self::special("BackoffComplete");
    /// A pod was popped from backoffQ before its backoff ended because activeQ was empty.
    pub const POP_FROM_BACKOFF_Q: Self = Self::special("PopFromBackoffQ");
    /// A plugin asked to activate the pod.
    pub const FORCE_ACTIVATE: Self = Self::special("ForceActivate");
    /// The pod stayed unschedulable for longer than the time limit.
    pub const UNSCHEDULABLE_TIMEOUT: Self = Self::special("UnschedulableTimeout");

    /// The event's label in metrics and logs.
    pub fn label(&self) -> EventLabel<'_> {
        EventLabel(self)
    }

    /// Whether the event stands for every event.
    pub fn is_wildcard(&self) -> bool {
        self.resource == EventResource::WildCard && self.action == ActionType::ALL
    }

    /// Whether a plugin that registered for `self` receives the event `incoming`. Besides a common action, the actions of
    /// `incoming`, as a number, must not exceed the registered actions.
    /// Follows `pkg/scheduler/framework/types.go#MatchClusterEvents @v1.36.3`.
    pub fn matches(&self, incoming: &Self) -> bool {
        self.is_wildcard()
            || (self.resource.covers(&incoming.resource)
                && self.action.intersects(incoming.action)
                && incoming.action.bits() <= self.action.bits())
    }
}

/// Prints the label of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventLabel<'a>(&'a ClusterEvent);

impl fmt::Display for EventLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.label {
            Some(label) => f.write_str(label),
            None => write!(f, "{}{}", self.0.resource.name(), self.0.action.name()),
        }
    }
}

/// The object that an event is about.
#[derive(Clone, Debug)]
pub enum Object {
    /// A pod that changed.
    Pod(Arc<Pod>),
    /// A node that changed.
    Node(Arc<Node>),
    /// An object of another kind, as its k8s-openapi type or, if k8s-openapi has no type, as a `kube::api::DynamicObject`.
    Other(Arc<dyn Any + Send + Sync>),
}

impl Object {
    /// The pod, or `None` for another kind.
    pub fn as_pod(&self) -> Option<&Arc<Pod>> {
        if let Self::Pod(pod) = self { Some(pod) } else { None }
    }

    /// The node, or `None` for another kind.
    pub fn as_node(&self) -> Option<&Arc<Node>> {
        if let Self::Node(node) = self { Some(node) } else { None }
    }

    /// The object as a `T`, or `None` if it has another type.
    pub fn downcast<T: 'static>(&self) -> Option<&T> {
        if let Self::Other(object) = self { object.downcast_ref() } else { None }
    }
}

/// The object of an event before and after the change: an add has only `new`, a delete only `old`, an update both.
#[derive(Clone, Debug, Default)]
pub struct EventObjects {
    /// The object before the change.
    pub old: Option<Object>,
    /// The object after the change.
    pub new: Option<Object>,
}

impl EventObjects {
    /// The old and the new pod of a pod event.
    pub fn pods(&self) -> (Option<&Arc<Pod>>, Option<&Arc<Pod>>) {
        (self.old.as_ref().and_then(Object::as_pod), self.new.as_ref().and_then(Object::as_pod))
    }

    /// Returns the objects of a pod event.
    pub fn of_pods(old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) -> Self {
        Self { old: old.cloned().map(Object::Pod), new: new.cloned().map(Object::Pod) }
    }

    /// The old and the new node of a node event.
    pub fn nodes(&self) -> (Option<&Arc<Node>>, Option<&Arc<Node>>) {
        (self.old.as_ref().and_then(Object::as_node), self.new.as_ref().and_then(Object::as_node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_labels_equal_upstreams() {
        let check = |event: ClusterEvent, label: &str| assert_eq!(event.label().to_string(), label);
        check(ClusterEvent::new(EventResource::Node, ActionType::UPDATE_NODE_TAINT), "NodeUpdateNodeTaint");
        check(ClusterEvent::new(EventResource::AssignedPod, ActionType::DELETE), "AssignedPodDelete");
        check(ClusterEvent::new(EventResource::CsiNode, ActionType::UPDATE), "storage.k8s.io/CSINodeUpdate");
        check(ClusterEvent::FORCE_ACTIVATE, "ForceActivate");
    }

    #[test]
    fn registered_events_match_by_resource_and_action() {
        use ActionType as A;
        use EventResource as R;
        let check = |registered: (R, A), incoming: (R, A), expected: bool| {
            let registered = ClusterEvent::new(registered.0, registered.1);
            let incoming = ClusterEvent::new(incoming.0, incoming.1);
            assert_eq!(registered.matches(&incoming), expected, "{registered:?} {incoming:?}");
        };
        check((R::Node, A::ADD | A::UPDATE_NODE_LABEL), (R::Node, A::ADD), true);
        check((R::Node, A::ADD | A::UPDATE_NODE_LABEL), (R::Node, A::UPDATE_NODE_TAINT), false);
        check((R::Pod, A::DELETE), (R::AssignedPod, A::DELETE), true);
        check((R::AssignedPod, A::DELETE), (R::UnschedulablePod, A::DELETE), false);
        check((R::WildCard, A::ALL), (R::PodGroup, A::ADD), true);
        check((R::WildCard, A::ADD), (R::PodGroup, A::ADD), true);
        check((R::Node, A::UPDATE_NODE_LABEL), (R::Node, A::ALL), false);
        check((R::Pod, A::UPDATE), (R::UnschedulablePod, A::UPDATE_POD_LABEL), true);
    }
}
