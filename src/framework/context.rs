//! The context of an attempt: the pod, the snapshot, and the state of the cycle.

use std::sync::Arc;

use super::CycleState;
use crate::clock::Now;
use crate::model::{PodInfo, Snapshot};

/// One attempt to schedule one pod, as its plugins see it. The serial points get it mutable and may write the state; the
/// parallel ones share it.
#[derive(Debug)]
pub struct CycleContext<'a> {
    /// The pod to schedule.
    pub pod: &'a Arc<PodInfo>,
    /// The nodes as they were when the attempt began.
    pub snapshot: &'a Snapshot,
    /// Values that plugins keep during the attempt.
    pub state: &'a mut CycleState,
    /// When the attempt began.
    pub now: Now,
}
