//! Errors of the cache, with upstream's texts.

use std::sync::Arc;

use crate::go::quote::quote;
use crate::k8s::Pod;

/// A failed cache operation. The texts equal upstream's: `pkg/scheduler/backend/cache/cache.go @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// The pod has no UID, and the cache identifies pods by UID.
    #[error("cannot get cache key for pod with empty UID")]
    EmptyUid,
    /// The pod cannot be assumed because it is already in the cache.
    #[error("pod {0} is in the cache, so can't be assumed")]
    AlreadyCached(PodRef),
    /// The pod cannot be forgotten because it is on another node.
    #[error("pod {pod} was assumed on {claimed} but assigned to {cached}")]
    ForgottenElsewhere {
        /// The pod to forget.
        pod: PodRef,
        /// Node named by the caller.
        claimed: Arc<str>,
        /// Node of the pod in the cache.
        cached: Arc<str>,
    },
    /// The pod cannot be forgotten because it is already confirmed.
    #[error("pod {0} wasn't assumed so cannot be forgotten")]
    NotAssumed(PodRef),
    /// The pod cannot be added because it was added before.
    #[error("pod {0} was already in added state")]
    AlreadyAdded(PodRef),
    /// The pod cannot be updated because it is not in the cache.
    #[error("pod {0} is not added to scheduler cache, so cannot be updated")]
    UnknownUpdated(PodRef),
    /// The pod cannot be updated because it is not confirmed yet.
    #[error("assumed pod {0} should not be updated")]
    AssumedUpdated(PodRef),
    /// The pod cannot be removed because it is not in the cache.
    #[error("pod {0} is not found in scheduler cache, so cannot be removed from it")]
    UnknownRemoved(PodRef),
    /// The requested pod is not in the cache.
    #[error("pod {0} does not exist in scheduler cache")]
    NoSuchPod(PodRef),
    /// The node cannot be removed because it is not in the cache.
    #[error("node {0} is not found")]
    NoSuchNode(Arc<str>),
    /// The node cannot be removed because it was removed before or never added. Its entry has only pods.
    #[error("node {} in group {} was not found", quote(.name), quote(.zone))]
    NotInTree {
        /// Name of the node.
        name: Arc<str>,
        /// Region and zone of the node.
        zone: Arc<str>,
    },
    /// The snapshot's nodes differed from the cache's. The snapshot was rebuilt, and the scheduling cycle that requested it
    /// fails.
    #[error(
        "snapshot state is not consistent, length of NodeInfoList={listed} not equal to length of nodes in tree={in_tree} \
         , length of NodeInfoMap={mapped}, length of nodes in cache={cached}, trying to recover"
    )]
    InconsistentSnapshot {
        /// Nodes in the snapshot's list.
        listed: usize,
        /// Nodes in the node tree.
        in_tree: usize,
        /// Nodes in the snapshot's index by name.
        mapped: usize,
        /// Entries of the cache, including those without a node.
        cached: usize,
    },
    /// A pod is reported on another node than before, which the API does not allow. The scheduler's further decisions may be
    /// wrong, so the process has to exit with code 1.
    #[error(
        "{doing}. Scheduler cache is corrupted and can badly affect scheduling decisions: pod {pod}, node {cached:?}, now {claimed:?}"
    )]
    Corrupted {
        /// The first sentence of the message.
        doing: &'static str,
        /// The pod whose node changed.
        pod: PodRef,
        /// Node of the pod in the cache.
        cached: Arc<str>,
        /// Node that the pod is reported on now.
        claimed: Arc<str>,
    },
}

impl CacheError {
    /// Returns whether the process has to exit with code 1.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Corrupted { .. })
    }
}

/// A pod named in an error, printed as `uid(namespace/name)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// UID of the pod.
    pub uid: String,
    /// Key of the pod, `namespace/name`.
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
    fn messages_equal_upstreams() {
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
