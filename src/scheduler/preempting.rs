//! What extenders leave of the candidates for preemption.

use std::sync::Arc;

use super::Extender;
use crate::framework::preemption::Candidate;
use crate::framework::{CandidateReview, PluginError};
use crate::model::{PodInfo, Snapshot};

/// The extenders in the order in which they are asked.
pub(super) struct Preempting<'a>(pub(super) &'a [Arc<dyn Extender>]);

impl CandidateReview for Preempting<'_> {
    /// Follows `pkg/scheduler/framework/preemption/preemption.go#Evaluator.callExtenders @v1.36.3`.
    fn review(
        &self,
        pod: &PodInfo,
        mut candidates: Vec<Candidate>,
        snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, PluginError> {
        for extender in self.0 {
            if candidates.is_empty() {
                break;
            }
            if !extender.supports_preemption() || !extender.is_interested(pod) {
                continue;
            }
            let left = match extender.preempt(pod, candidates.clone(), snapshot) {
                Ok(left) => left,
                Err(error) if extender.is_ignorable() => {
                    let extender = extender.name();
                    tracing::info!(extender, %error, "Skipped extender as it returned error and has ignorable flag set");
                    continue;
                }
                Err(error) => return Err(error),
            };
            candidates = left
                .into_iter()
                .filter_map(|candidate| match candidate.victims.is_empty() {
                    false => Some(Ok(candidate)),
                    true if extender.is_ignorable() => None,
                    true => {
                        let message = format!("expected at least one victim pod on node {:?}", &*candidate.node);
                        Some(Err(PluginError::new(message)))
                    }
                })
                .collect::<Result<_, _>>()?;
        }
        Ok(candidates)
    }
}
