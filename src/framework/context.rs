//! The context of an attempt: the pod, the snapshot, and the state of the cycle.

use std::sync::Arc;

use super::CycleState;
use crate::clock::Now;
use crate::model::{PodInfo, Snapshot};

/// One attempt to schedule one pod, as the plugins see it. At the extension points that run one after another, plugins get a
/// mutable context and may write the state. At the parallel points and at `Normalize`, plugins may only read the state.
#[derive(Debug)]
pub struct CycleContext<'a> {
    /// The pod to schedule.
    pub pod: &'a Arc<PodInfo>,
    /// The nodes at the start of the attempt.
    pub snapshot: &'a Snapshot,
    /// Values that plugins keep during the attempt.
    pub state: &'a mut CycleState,
    /// Time at which the attempt began.
    pub now: Now,
}
