//! Which fault was reached at which step, and how often.

use std::collections::BTreeMap;

/// Place of a fault: a call of the probe, a request, or between two steps of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    PreEnqueue,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    BindRequest,
    PostBind,
    Unreserve,
    Between,
}

/// Faults of the cluster, or of the connection to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Act {
    DeletePod,
    DeleteOtherPod,
    TerminatePod,
    ReplacePod,
    UpdatePod,
    FinishPod,
    BindPod,
    CreatePod,
    DeleteNode,
    UpdateNode,
    CreateNode,
    DropWatches,
    EndWatches,
    Compact,
    HoldWatches,
    Garbage,
    Activate,
    AllowWaiting,
    RejectWaiting,
    PreemptWaiting,
    CancelPreBind,
    OpenGate,
    TimePasses,
}

/// A request that a fault may strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    Binding,
    Status,
    Event,
    List,
    Watch,
}

/// Outcomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    Conflict,
    TooMany,
    TooManyLater,
    Internal,
    InternalLater,
    Unavailable,
    DropBefore,
    DropAfter,
    Latency,
    DropWatch,
}

impl Step {
    pub(super) const ALL: [Self; 14] = [
        Self::PreEnqueue,
        Self::PreFilter,
        Self::Filter,
        Self::PostFilter,
        Self::PreScore,
        Self::Score,
        Self::Reserve,
        Self::Permit,
        Self::PreBind,
        Self::Bind,
        Self::BindRequest,
        Self::PostBind,
        Self::Unreserve,
        Self::Between,
    ];

    /// Results that a plugin may return here, besides success.
    fn outcomes(self) -> &'static [&'static str] {
        match self {
            Self::PreEnqueue => &["reject"],
            Self::PreFilter => &["reject", "unresolvable", "pending", "error", "skip", "nodes"],
            Self::Filter | Self::Reserve => &["reject", "unresolvable", "pending", "error"],
            Self::PostFilter => &["nominate", "clear", "unresolvable", "error"],
            Self::PreScore => &["skip", "error"],
            Self::Score => &["error", "too much"],
            Self::Permit => &["reject", "unresolvable", "error", "wait"],
            Self::PreBind => &["reject", "error", "delay", "error in flight", "nothing to do"],
            Self::Bind => &["reject", "error"],
            Self::PostBind | Self::Unreserve => &["delay", "activate"],
            Self::BindRequest => &[],
            Self::Between => &["timeout"],
        }
    }
}

impl Act {
    pub(super) const ALL: [Self; 23] = [
        Self::DeletePod,
        Self::DeleteOtherPod,
        Self::TerminatePod,
        Self::ReplacePod,
        Self::UpdatePod,
        Self::FinishPod,
        Self::BindPod,
        Self::CreatePod,
        Self::DeleteNode,
        Self::UpdateNode,
        Self::CreateNode,
        Self::DropWatches,
        Self::EndWatches,
        Self::Compact,
        Self::HoldWatches,
        Self::Garbage,
        Self::Activate,
        Self::AllowWaiting,
        Self::RejectWaiting,
        Self::PreemptWaiting,
        Self::CancelPreBind,
        Self::OpenGate,
        Self::TimePasses,
    ];

    /// Whether it can happen there: the queue must not be called under its own lock.
    pub(super) fn is_possible_at(self, step: Step) -> bool {
        self != Self::Activate || step != Step::PreEnqueue
    }
}

impl Asked {
    const ALL: [Self; 5] = [Self::Binding, Self::Status, Self::Event, Self::List, Self::Watch];
}

impl Answer {
    pub(super) const ALL: [Self; 10] = [
        Self::Conflict,
        Self::TooMany,
        Self::TooManyLater,
        Self::Internal,
        Self::InternalLater,
        Self::Unavailable,
        Self::DropBefore,
        Self::DropAfter,
        Self::Latency,
        Self::DropWatch,
    ];

    pub(super) fn is_possible_for(self, asked: Asked) -> bool {
        match self {
            Self::DropWatch => asked == Asked::Watch,
            // A read commits nothing, and meets no conflict.
            Self::DropAfter | Self::Conflict => !matches!(asked, Asked::List | Asked::Watch),
            _ => true,
        }
    }
}

/// Counts of what was reached.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage(BTreeMap<String, u64>);

impl Coverage {
    pub(super) fn act(&mut self, step: Step, act: Act) {
        self.count(format!("{act:?} at {step:?}"));
    }

    pub(super) fn outcome(&mut self, step: Step, outcome: &str) {
        debug_assert!(step.outcomes().contains(&outcome), "{step:?} {outcome}");
        self.count(format!("{outcome} by {step:?}"));
    }

    pub(super) fn answer(&mut self, asked: Asked, answer: Answer) {
        self.count(format!("{answer:?} to {asked:?}"));
    }

    /// Events of the watches were read in the midst of this step.
    pub(super) fn delivered(&mut self, step: Step) {
        self.count(format!("events during {step:?}"));
    }

    fn count(&mut self, what: String) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Coverage that a full run must reach: every fault at every step.
    pub(super) fn everything() -> Vec<String> {
        let mut all = Vec::new();
        for step in Step::ALL {
            let possible = Act::ALL.into_iter().filter(|act| act.is_possible_at(step));
            all.extend(possible.map(|act| format!("{act:?} at {step:?}")));
            all.extend(step.outcomes().iter().map(|outcome| format!("{outcome} by {step:?}")));
        }
        for asked in Asked::ALL {
            let possible = Answer::ALL.into_iter().filter(|answer| answer.is_possible_for(asked));
            all.extend(possible.map(|answer| format!("{answer:?} to {asked:?}")));
        }
        let readable = [Step::PreEnqueue, Step::Unreserve, Step::BindRequest];
        all.extend(
            Step::ALL.iter().filter(|step| !readable.contains(step)).map(|step| format!("events during {step:?}")),
        );
        all
    }

    /// What a short run has to reach: every answer of a plugin, every answer to a request but for lists, which are rare, and
    /// each fault and each step once.
    pub(super) fn sample() -> Vec<String> {
        let mut all: Vec<String> = Self::everything()
            .into_iter()
            .filter(|what| !what.contains(" at ") && !what.ends_with(" to List"))
            .collect();
        all.extend(Step::ALL.iter().map(|step| format!(" at {step:?}")));
        all.extend(Act::ALL.iter().map(|act| format!("{act:?} at ")));
        all
    }

    /// What of `wanted` was never reached; a part of a name stands for all that have it.
    pub(super) fn missing(&self, wanted: &[String]) -> Vec<String> {
        let reached = |wanted: &String| {
            self.0.contains_key(wanted) || self.0.keys().any(|what| what.starts_with(wanted) || what.ends_with(wanted))
        };
        wanted.iter().filter(|wanted| !reached(wanted)).cloned().collect()
    }
}
