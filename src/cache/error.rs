//! What can be wrong with a request to the cache, in upstream's words.

use std::sync::Arc;

use crate::go::quote::quote;
use crate::k8s::Pod;

/// A request that the cache did not carry out. Texts are those of `pkg/scheduler/backend/cache/cache.go @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// The pod has no UID, by which the cache knows pods.
    #[error("cannot get cache key for pod with empty UID")]
    EmptyUid,
    /// A pod that is to be assumed is in the cache already.
    #[error("pod {0} is in the cache, so can't be assumed")]
    AlreadyCached(PodRef),
    /// A pod that is to be forgotten is on another node.
    #[error("pod {pod} was assumed on {claimed} but assigned to {cached}")]
    ForgottenElsewhere {
        /// The pod.
        pod: PodRef,
        /// The node that the caller named.
        claimed: Arc<str>,
        /// The node that the pod is on.
        cached: Arc<str>,
    },
    /// A pod that is to be forgotten is confirmed.
    #[error("pod {0} wasn't assumed so cannot be forgotten")]
    NotAssumed(PodRef),
    /// A pod that is to be added was added before.
    #[error("pod {0} was already in added state")]
    AlreadyAdded(PodRef),
    /// A pod that is to be updated is not known.
    #[error("pod {0} is not added to scheduler cache, so cannot be updated")]
    UnknownUpdated(PodRef),
    /// A pod that is to be updated is not confirmed yet.
    #[error("assumed pod {0} should not be updated")]
    AssumedUpdated(PodRef),
    /// A pod that is to be removed is not known.
    #[error("pod {0} is not found in scheduler cache, so cannot be removed from it")]
    UnknownRemoved(PodRef),
    /// A pod that is looked for is not known.
    #[error("pod {0} does not exist in scheduler cache")]
    NoSuchPod(PodRef),
    /// A node that is to be removed is not known.
    #[error("node {0} is not found")]
    NoSuchNode(Arc<str>),
    /// A node that is to be removed has been removed before, or was never added, and only pods are left of it.
    #[error("node {} in group {} was not found", quote(.name), quote(.zone))]
    NotInTree {
        /// The node.
        name: Arc<str>,
        /// Its region and zone.
        zone: Arc<str>,
    },
    /// The snapshot did not hold the nodes that there are. It has been built anew; the cycle that asked for it fails.
    #[error(
        "snapshot state is not consistent, length of NodeInfoList={listed} not equal to length of nodes in tree={in_tree} \
         , length of NodeInfoMap={mapped}, length of nodes in cache={cached}, trying to recover"
    )]
    InconsistentSnapshot {
        /// Nodes in the snapshot's list.
        listed: usize,
        /// Nodes that there are.
        in_tree: usize,
        /// Nodes that the snapshot finds by name.
        mapped: usize,
        /// Entries of the cache, those of unknown nodes included.
        cached: usize,
    },
    /// A pod changed its node, which no pod can: what the scheduler decides from here on may be wrong, so the process has
    /// to end with code 1.
    #[error(
        "{doing}. Scheduler cache is corrupted and can badly affect scheduling decisions: pod {pod}, node {cached:?}, now {claimed:?}"
    )]
    Corrupted {
        /// What was found.
        doing: &'static str,
        /// The pod.
        pod: PodRef,
        /// The node that the pod was on.
        cached: Arc<str>,
        /// The node that it is said to be on.
        claimed: Arc<str>,
    },
}

impl CacheError {
    /// Whether the process has to end with code 1.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Corrupted { .. })
    }
}

/// A pod in an error: `uid(namespace/name)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// The UID.
    pub uid: String,
    /// `namespace/name`.
    pub key: String,
}

impl PodRef {
    pub(super) fn of(pod: &Pod) -> Self {
        Self { uid: pod.uid().to_owned(), key: pod.key() }
    }
}

impl std::fmt::Display for PodRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({})", self.uid, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let check = |error: CacheError, text: &str| assert_eq!(error.to_string(), text);
        let pod = || PodRef { uid: "u1".into(), key: "ns/p".into() };
        check(CacheError::EmptyUid, "cannot get cache key for pod with empty UID");
        check(CacheError::AlreadyCached(pod()), "pod u1(ns/p) is in the cache, so can't be assumed");
        check(
            CacheError::ForgottenElsewhere { pod: pod(), claimed: "a".into(), cached: "b".into() },
            "pod u1(ns/p) was assumed on a but assigned to b",
        );
        check(CacheError::NotAssumed(pod()), "pod u1(ns/p) wasn't assumed so cannot be forgotten");
        check(CacheError::AlreadyAdded(pod()), "pod u1(ns/p) was already in added state");
        check(CacheError::UnknownUpdated(pod()), "pod u1(ns/p) is not added to scheduler cache, so cannot be updated");
        check(CacheError::AssumedUpdated(pod()), "assumed pod u1(ns/p) should not be updated");
        check(
            CacheError::UnknownRemoved(pod()),
            "pod u1(ns/p) is not found in scheduler cache, so cannot be removed from it",
        );
        check(CacheError::NoSuchPod(pod()), "pod u1(ns/p) does not exist in scheduler cache");
        check(CacheError::NoSuchNode("n".into()), "node n is not found");
        check(
            CacheError::NotInTree { name: "n".into(), zone: "r:\0:z".into() },
            r#"node "n" in group "r:\x00:z" was not found"#,
        );
        check(
            CacheError::InconsistentSnapshot { listed: 1, in_tree: 2, mapped: 3, cached: 4 },
            "snapshot state is not consistent, length of NodeInfoList=1 not equal to length of nodes in tree=2 , length of \
             NodeInfoMap=3, length of nodes in cache=4, trying to recover",
        );
    }
}
