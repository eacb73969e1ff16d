//! Tests of the union of all registered events.

use super::fixture::{Answer, NODE_ADD, NODE_LABEL, POD_DELETE, fake, setup};
use crate::config::Gate;
use crate::model::{ActionType, ClusterEvent, EventResource};

fn registered(setup: super::fixture::Setup) -> Vec<(EventResource, ActionType)> {
    setup.build().queue.registered_events().into_iter().collect()
}

#[test]
fn registered_events_are_the_union_of_all_profiles() {
    let assigned = ClusterEvent::new(EventResource::Pod, ActionType::DELETE);
    let setup = setup([fake("A").on(NODE_ADD, Answer::Skip), fake("B").on(assigned, Answer::Skip)])
        .profile("other", [fake("A").on(NODE_LABEL, Answer::Skip)]);
    let node = ActionType::ADD | ActionType::UPDATE_NODE_TAINT | ActionType::UPDATE_NODE_LABEL;
    assert_eq!(registered(setup), [(EventResource::Pod, ActionType::DELETE), (EventResource::Node, node)]);
}

#[test]
fn unregistered_plugins_and_extenders_watch_every_kind() {
    use EventResource as R;
    let mut kinds = vec![
        R::Pod,
        R::Node,
        R::PersistentVolume,
        R::PersistentVolumeClaim,
        R::CsiNode,
        R::CsiDriver,
        R::CsiStorageCapacity,
        R::StorageClass,
        R::ResourceClaim,
        R::DeviceClass,
    ];
    let all = |kinds: &[R]| kinds.iter().map(|kind| (kind.clone(), ActionType::ALL)).collect::<Vec<_>>();
    assert_eq!(registered(setup([fake("A").silent()])), all(&kinds));
    assert_eq!(registered(setup([]).options(|options| options.extenders = true)), all(&kinds));
    kinds.push(R::PodGroup);
    assert_eq!(registered(setup([fake("A").silent()]).gate(Gate::GenericWorkload, true)), all(&kinds));
    assert_eq!(registered(setup([fake("A")])), []);
}

#[test]
fn failed_event_registration_is_an_error_at_startup() {
    let setup = setup([fake("A").fails(), fake("B").on(POD_DELETE, Answer::Skip), fake("C").fails()])
        .profile("other", [fake("D").fails()]);
    let error = setup.try_build().err().expect("it must not start");
    assert_eq!(error.to_string(), "A fails\nC fails\nD fails");
}
