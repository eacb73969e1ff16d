//! Review of the candidates for preemption by extenders.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Extender, Victims};
use crate::framework::preemption::Candidate;
use crate::framework::{CandidateReview, PluginError};
use crate::model::{PodInfo, Snapshot};

/// The extenders, in the order in which they are called.
pub(super) struct Preempting<'a>(pub(super) &'a [Arc<dyn Extender>]);

impl CandidateReview for Preempting<'_> {
    /// Calls the extenders in order, each with the candidates that are left.
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
            let asked = candidates.iter().map(|candidate| {
                let (pods, num_pdb_violations) = (candidate.victims.clone(), candidate.pdb_violations);
                (candidate.node.to_string(), Victims { pods, num_pdb_violations })
            });
            let left = match extender.process_preemption(pod, &asked.collect(), snapshot) {
                Ok(left) => left,
                Err(error) if extender.is_ignorable() => {
                    let extender = extender.name();
                    tracing::info!(extender, %error, "Skipped extender as it returned error and has ignorable flag set");
                    continue;
                }
                Err(error) => return Err(error),
            };
            candidates = kept(&candidates, left, extender.is_ignorable())?;
        }
        Ok(candidates)
    }
}

/// Returns the candidates that an extender keeps, in their order. Nodes that the extender adds come last.
fn kept(
    asked: &[Candidate],
    mut left: BTreeMap<String, Victims>,
    is_ignorable: bool,
) -> Result<Vec<Candidate>, PluginError> {
    let known: Vec<(Arc<str>, Victims)> =
        asked.iter().filter_map(|candidate| Some((candidate.node.clone(), left.remove(&*candidate.node)?))).collect();
    let added = left.into_iter().map(|(node, victims)| (Arc::from(node), victims));
    let mut candidates = Vec::new();
    for (node, Victims { pods, num_pdb_violations }) in known.into_iter().chain(added) {
        if !pods.is_empty() {
            candidates.push(Candidate { node, victims: pods, pdb_violations: num_pdb_violations });
        } else if !is_ignorable {
            return Err(PluginError::new(format!("expected at least one victim pod on node {:?}", &*node)));
        }
    }
    Ok(candidates)
}
