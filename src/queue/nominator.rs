//! Nominated nodes of pods that are not scheduled yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::framework::{NominatingInfo, Nominator};
use crate::k8s::Pod;
use crate::listers::Lister;
use crate::model::{LabelClasses, PodInfo};

/// Nominated nodes of pods. A nomination comes from the pod's status, or from preemption, which waits for its victims to be gone.
///
/// The lock guards both maps, which always agree. A caller may hold the queue's lock. While a function holds the nominator's
/// lock, it takes no lock but a lister's, so all functions can be called at any time. Upstream keeps names and looks the pods up
/// in the queue. This nominator keeps the pods themselves, and the queue replaces them on updates. So a scheduling cycle does
/// not need the queue's lock.
/// Follows `pkg/scheduler/backend/queue/nominator.go#nominator @v1.36.3`.
pub struct PodNominator {
    pods: Lister<Pod>,
    nominations: RwLock<Nominations>,
    /// Number of pods with a nominated node.
    count: AtomicUsize,
}

#[derive(Default)]
struct Nominations {
    /// Pods by their nominated node, in the order of nomination.
    by_node: HashMap<Arc<str>, Vec<Arc<PodInfo>>>,
    /// Nominated node of each pod, by UID.
    nodes: HashMap<String, Arc<str>>,
}

impl PodNominator {
    /// Creates an empty nominator. It looks up in `pods` whether a pod still exists and is unassigned.
    pub fn new(pods: Lister<Pod>) -> Self {
        Self { pods, nominations: RwLock::default(), count: AtomicUsize::new(0) }
    }

    /// Returns the pod's nominated node.
    pub fn node_of(&self, uid: &str) -> Option<Arc<str>> {
        self.read().nodes.get(uid).cloned()
    }

    /// Returns the pods with a nominated node, sorted by UID. For checks.
    #[expect(clippy::disallowed_methods, reason = "sorted right after")]
    pub fn pods(&self) -> Vec<Arc<PodInfo>> {
        let mut pods: Vec<Arc<PodInfo>> = self.read().by_node.values().flatten().cloned().collect();
        pods.sort_unstable_by(|a, b| a.uid().cmp(b.uid()));
        pods
    }

    /// Replaces the pod `old` by `new`. If neither status names a node, a nomination that exists only in memory is kept.
    /// Follows `pkg/scheduler/backend/queue/nominator.go#nominator.UpdateNominatedPod @v1.36.3`.
    pub(super) fn update(&self, old: &Pod, new: &Arc<PodInfo>) {
        let mut nominations = self.write();
        let unnamed = old.nominated_node_name().is_none() && new.pod().nominated_node_name().is_none();
        let held = nominations.nodes.get(old.uid()).filter(|_| unnamed);
        let nominating = held.map_or(NominatingInfo::Keep, |node| NominatingInfo::Override(node.to_string()));
        nominations.remove(old.uid());
        self.insert(&mut nominations, new, &nominating);
        self.count.store(nominations.nodes.len(), Ordering::Release);
    }

    /// Removes the nomination of the pod with this UID.
    pub(super) fn delete(&self, uid: &str) {
        if !self.has_nominated_pods() {
            return;
        }
        let mut nominations = self.write();
        nominations.remove(uid);
        self.count.store(nominations.nodes.len(), Ordering::Release);
    }

    /// Nominates the node that `nominating` names, or with `Keep` the one that the pod's status names. Does nothing if no node is
    /// named, or if the pod no longer exists or is assigned.
    fn insert(&self, nominations: &mut Nominations, pod: &Arc<PodInfo>, nominating: &NominatingInfo) {
        let node = match nominating {
            NominatingInfo::Override(node) => node,
            NominatingInfo::Keep => pod.pod().nominated_node_name().unwrap_or_default(),
        };
        if node.is_empty() {
            return;
        }
        // The pod may have been deleted or bound since the caller looked at it.
        match self.pods.get(pod.key()) {
            Some(current) if current.node_name().is_none() => nominations.insert(node, pod),
            _ => tracing::debug!(
                pod = &**pod.key(),
                node,
                "Pod is deleted or already assigned to a node, aborting adding it to the nominator"
            ),
        }
    }

    /// Reduces a nominated pod to its namespace, name and UID, because the queue no longer holds it. The reduced pod takes up
    /// only a pod slot on its nominated node.
    /// Follows `pkg/scheduler/backend/queue/scheduling_queue.go#PriorityQueue.nominatedPodToInfo @v1.36.3`.
    pub fn reduce(&self, pod: &PodInfo, classes: &LabelClasses) {
        if !self.has_nominated_pods() {
            return;
        }
        let mut nominations = self.write();
        let Some(node) = nominations.nodes.get(pod.uid()).cloned() else { return };
        let mut bare = Pod::default();
        bare.metadata.namespace = Some(pod.namespace().to_owned());
        bare.metadata.name = Some(pod.name().to_owned());
        bare.metadata.uid = Some(pod.uid().to_owned());
        let bare = Arc::new(PodInfo::new(Arc::new(bare), classes));
        let held = nominations.by_node.get_mut(&node).into_iter().flatten().find(|held| held.uid() == pod.uid());
        if let Some(held) = held {
            *held = bare;
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Nominations> {
        self.nominations.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Nominations> {
        self.nominations.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nominations {
    fn insert(&mut self, node: &str, pod: &Arc<PodInfo>) {
        let node = self.by_node.get_key_value(node).map_or_else(|| Arc::from(node), |(node, _)| node.clone());
        self.nodes.insert(pod.uid().to_owned(), node.clone());
        self.by_node.entry(node).or_default().push(pod.clone());
    }

    fn remove(&mut self, uid: &str) {
        let Some(node) = self.nodes.remove(uid) else { return };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.retain(|pod| pod.uid() != uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }
}

impl Nominator for PodNominator {
    fn has_nominated_pods(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    fn nominated_pods_for_node(&self, node: &str) -> Vec<Arc<PodInfo>> {
        if !self.has_nominated_pods() {
            return Vec::new();
        }
        self.read().by_node.get(node).cloned().unwrap_or_default()
    }

    fn add_nominated_pod(&self, pod: &Arc<PodInfo>, nominating: &NominatingInfo) {
        let mut nominations = self.write();
        nominations.remove(pod.uid());
        self.insert(&mut nominations, pod, nominating);
        self.count.store(nominations.nodes.len(), Ordering::Release);
    }

    fn update_nominated_pod(&self, old: &PodInfo, new: &Arc<PodInfo>) {
        self.update(old.pod(), new);
    }

    fn delete_nominated_pod_if_exists(&self, pod: &PodInfo) {
        self.delete(pod.uid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listers::Store;
    use crate::testing::{PodFixture, pod};

    /// Creates a nominator for these pods, all of which exist.
    fn nominator(pods: &[PodFixture]) -> PodNominator {
        let store = Arc::new(Store::default());
        for pod in pods {
            store.apply(pod.clone().build());
        }
        PodNominator::new(Lister::new(store))
    }

    fn to(node: &str) -> NominatingInfo {
        NominatingInfo::Override(node.into())
    }

    fn names(nominator: &PodNominator, node: &str) -> Vec<String> {
        nominator.nominated_pods_for_node(node).iter().map(|pod| pod.name().to_owned()).collect()
    }

    #[track_caller]
    fn check_add(status: &str, nominating: &NominatingInfo, expected: Option<&str>) {
        let nominator = nominator(&[pod("a")]);
        nominator.add_nominated_pod(&pod("a").nominated(status).info(), nominating);
        assert_eq!(nominator.node_of("a").as_deref(), expected);
        assert_eq!(nominator.has_nominated_pods(), expected.is_some());
    }

    #[test]
    fn the_node_is_the_overriding_one_or_the_status_s() {
        check_add("", &NominatingInfo::Keep, None);
        check_add("n1", &NominatingInfo::Keep, Some("n1"));
        check_add("n1", &to("n2"), Some("n2"));
        check_add("", &to("n2"), Some("n2"));
        check_add("n1", &to(""), None);
    }

    #[test]
    fn of_a_pod_that_has_left_the_queue_the_name_is_left() {
        let (big, other) = (pod("big").cpu("8").priority(7).host_port(80), pod("other").cpu("1"));
        let nominator = nominator(&[big.clone(), other.clone()]);
        for pod in [&big, &other] {
            nominator.add_nominated_pod(&pod.clone().info(), &to("n"));
        }
        nominator.reduce(&big.info(), &LabelClasses::default());
        nominator.reduce(&pod("unknown").info(), &LabelClasses::default());
        let held = nominator.nominated_pods_for_node("n");
        let seen: Vec<_> = held.iter().map(|pod| (&**pod.key(), pod.requests().milli_cpu, pod.priority())).collect();
        assert_eq!(seen, [("default/big", 0, 0), ("default/other", 1000, 0)]);
        assert!(held[0].host_ports().is_empty());
        assert_eq!(nominator.node_of("big").as_deref(), Some("n"));
    }

    #[test]
    fn pods_that_are_gone_or_assigned_hold_nothing() {
        let nominator = nominator(&[pod("assigned").on("n0"), pod("a")]);
        for name in ["assigned", "gone", "a"] {
            nominator.add_nominated_pod(&pod(name).info(), &to("n1"));
        }
        assert_eq!(names(&nominator, "n1"), ["a"]);
    }

    #[test]
    fn adding_again_moves_the_pod() {
        let nominator = nominator(&[pod("a"), pod("b")]);
        for (name, node) in [("a", "n1"), ("b", "n1"), ("a", "n1")] {
            nominator.add_nominated_pod(&pod(name).info(), &to(node));
        }
        assert_eq!(names(&nominator, "n1"), ["b", "a"]);
        nominator.add_nominated_pod(&pod("b").info(), &to("n2"));
        assert_eq!((names(&nominator, "n1"), names(&nominator, "n2")), (vec!["a".to_owned()], vec!["b".to_owned()]));
        nominator.add_nominated_pod(&pod("a").info(), &to(""));
        assert_eq!(names(&nominator, "n1"), [""; 0]);
        nominator.delete_nominated_pod_if_exists(&pod("b").info());
        assert!(!nominator.has_nominated_pods());
        nominator.delete_nominated_pod_if_exists(&pod("b").info());
    }

    /// Checks the nomination after an update of a pod whose status changes from `old` to `new`. `held` is the node before.
    #[track_caller]
    fn check_update(held: Option<&str>, old: &str, new: &str, expected: Option<&str>) {
        let nominator = nominator(&[pod("a")]);
        if let Some(node) = held {
            nominator.add_nominated_pod(&pod("a").info(), &to(node));
        }
        let new = pod("a").nominated(new).label("version", "2").info();
        nominator.update_nominated_pod(&pod("a").nominated(old).info(), &new);
        assert_eq!(nominator.node_of("a").as_deref(), expected);
        if let Some(node) = expected {
            assert!(Arc::ptr_eq(&nominator.nominated_pods_for_node(node)[0], &new));
        }
    }

    #[test]
    fn updates_keep_what_only_memory_knows() {
        check_update(None, "", "", None);
        check_update(Some("n1"), "", "", Some("n1"));
        check_update(Some("n1"), "", "n2", Some("n2"));
        check_update(Some("n1"), "n1", "n2", Some("n2"));
        check_update(Some("n1"), "n1", "", None);
        check_update(None, "", "n1", Some("n1"));
    }
}
