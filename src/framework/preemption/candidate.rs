//! A candidate for preemption, and the review of candidates by extenders.

use std::sync::Arc;

use super::super::PluginError;
use crate::model::{PodInfo, Snapshot};

/// A node that takes the pod once the victims have left it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Name of the node.
    pub node: Arc<str>,
    /// Pods to evict, the most important one first.
    pub victims: Vec<Arc<PodInfo>>,
    /// Number of victims whose eviction violates a disruption budget.
    pub pdb_violations: i64,
}

/// Review of candidates by extenders that take part in preemption.
pub trait CandidateReview: Sync {
    /// Removes candidates that must not be used, or changes their victims.
    fn review(
        &self,
        pod: &PodInfo,
        candidates: Vec<Candidate>,
        snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, PluginError>;
}

/// A review that keeps every candidate.
impl CandidateReview for () {
    fn review(
        &self,
        _pod: &PodInfo,
        candidates: Vec<Candidate>,
        _snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, PluginError> {
        Ok(candidates)
    }
}
