//! Number of pods of each label class on a node.

use std::sync::Arc;

use super::occurrence::Count;
use super::{LabelClass, PodInfo};

/// Number of pods of one label class on a node.
#[derive(Clone, Debug)]
pub struct ClassCount {
    class: Arc<LabelClass>,
    pods: u32,
    terminating: u32,
}

impl ClassCount {
    /// The label class of the pods.
    pub fn class(&self) -> &Arc<LabelClass> {
        &self.class
    }

    /// Number of pods, including pods that are being deleted.
    pub fn pods(&self) -> usize {
        self.pods as usize
    }

    /// Number of pods that are not being deleted.
    pub fn staying(&self) -> usize {
        (self.pods - self.terminating) as usize
    }

    pub(super) fn count(&self) -> Count {
        Count { pods: self.pods, staying: self.pods - self.terminating }
    }
}

/// The counts of one node, sorted by class number. A class without pods has no entry.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassCounts(Vec<ClassCount>);

impl ClassCounts {
    pub(super) fn as_slice(&self) -> &[ClassCount] {
        &self.0
    }

    pub(super) fn add(&mut self, pod: &PodInfo) {
        let terminating = u32::from(pod.pod().is_terminating());
        match self.find(pod) {
            Ok(at) => {
                self.0[at].pods += 1;
                self.0[at].terminating += terminating;
            }
            Err(at) => self.0.insert(at, ClassCount { class: pod.class().clone(), pods: 1, terminating }),
        }
    }

    /// Removes a pod that was added before.
    pub(super) fn sub(&mut self, pod: &PodInfo) {
        let Ok(at) = self.find(pod) else { return };
        self.0[at].pods -= 1;
        self.0[at].terminating -= u32::from(pod.pod().is_terminating());
        if self.0[at].pods == 0 {
            self.0.remove(at);
        }
    }

    fn find(&self, pod: &PodInfo) -> Result<usize, usize> {
        self.0.binary_search_by_key(&pod.class().id(), |count| count.class.id())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{node, pod};

    #[test]
    fn class_counts_follow_added_and_removed_pods() {
        let classes = crate::model::LabelClasses::default();
        let make = |name: &str, app: &str, terminating: bool| {
            let pod = pod(name).label("app", app).on("n");
            let pod = if terminating { pod.terminating() } else { pod };
            std::sync::Arc::new(crate::model::PodInfo::new(pod.build(), &classes))
        };
        let pods = [make("p", "a", false), make("q", "b", false), make("r", "a", true)];
        let mut info = node("n").info();
        pods.iter().for_each(|pod| info.add_pod(pod.clone()));
        let counts = |info: &crate::model::NodeInfo| {
            let mut counts: Vec<(String, usize, usize)> = info
                .classes()
                .iter()
                .map(|count| (count.class().labels()["app"].clone(), count.pods(), count.staying()))
                .collect();
            counts.sort();
            counts
        };
        assert_eq!(counts(&info), [("a".to_owned(), 2, 1), ("b".to_owned(), 1, 1)]);
        assert!(info.take_pod(&pods[2]) && info.take_pod(&pods[1]));
        assert_eq!(counts(&info), [("a".to_owned(), 1, 1)]);
        assert!(info.take_pod(&pods[0]));
        assert!(info.classes().is_empty());
    }
}
