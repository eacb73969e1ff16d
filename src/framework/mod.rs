//! The contract between the scheduler and its plugins, and the machinery that runs them.
//!
//! A plugin implements one trait per extension point ([`FilterPlugin`], [`ScorePlugin`], …) and lists these traits in a
//! [`Registration`]. Each extension point has an enum of its outcomes. A plugin keeps the values that it computes once per
//! cycle in a typed [`Slot`] of the [`CycleState`]. The [`Handle`] gives access to the rest of the scheduler.

mod candidates;
mod context;
mod diagnosis;
mod enqueue;
mod fragment;
mod handle;
mod host;
mod node_ref;
mod node_scores;
mod outcome;
mod parallel;
mod plugin;
mod pre_bind;
pub mod preemption;
mod registration;
mod registry;
mod runtime;
mod scratch;
mod shared_state;
mod state;
mod waiting;

pub use crate::config::{ExtensionPoint, FactoryArgs, PluginArgs, RawArgs};
pub use candidates::Candidates;
pub(crate) use candidates::NodeOutcome;
pub use context::CycleContext;
pub use diagnosis::{Diagnosis, EXTENDER, FilterRunner, NO_NODES_AVAILABLE, NodeRejection};
pub use enqueue::{EnqueueExtensions, EventRegistration, QueueingHint, QueueingHintFn};
pub use fragment::Fragment;
pub use handle::{
    Activator, Effects, Handle, HandleParts, NominatingInfo, Nominator, PodEvent, PodsToActivate, SlotAllocator,
    resource_gates,
};
pub(crate) use host::{Rank, Ranking};
pub use node_ref::NodeRef;
pub use node_scores::NodeScores;
pub use outcome::{
    BindOutcome, Code, PermitOutcome, PluginError, PostFilterOutcome, PreBindOutcome, PreBindPreFlight,
    PreFilterOutcome, PreScoreOutcome, Reasons, Rejection, RejectionKind, SignOutcome, Verdict,
};
pub use parallel::Parallelizer;
pub use plugin::{
    BindContext, BindPlugin, BoxFuture, FilterPlugin, NormalizeScore, PermitPlugin, Plugin, PostBindPlugin,
    PostFilterContext, PostFilterPlugin, PreBindPlugin, PreEnqueuePlugin, PreFilterExtensions, PreFilterPlugin,
    PreScorePlugin, QueueSortKey, QueueSortPlugin, ReservePlugin, ScorePlugin, SignPlugin,
};
pub use pre_bind::{PodInPreBind, PodsInPreBind};
pub use preemption::CandidateReview;
pub use registration::Registration;
pub use registry::{DuplicatePlugin, PluginEntry, PluginFactory, Registry};
pub(crate) use runtime::BlockRun;
pub use runtime::{
    BuildError, Entry, EventPlugin, Framework, MAX_NODE_SCORE, PermitRun, PluginScores, PostFilterRun, PreFilterRun,
    PreFlight, ScoreEntry, ScoreRun,
};
pub use scratch::Scratch;
pub(crate) use scratch::ScratchBoard;
pub use shared_state::SharedStates;
pub use state::{CycleState, Slot};
pub use waiting::{MAX_PERMIT_TIMEOUT, WaitDecision, WaitingPod, WaitingPods};
