//! What plugins answer, one type an extension point.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Fragment;
/// Status codes, under the names that metrics and messages give them.
pub use crate::metrics::StatusCode as Code;

/// An error that is the scheduler's, a plugin's or the network's, not the pod's. The attempt ends and is retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(Arc<str>);

impl PluginError {
    /// An error with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The error, with what was being done before its text.
    #[must_use]
    pub fn context(&self, doing: impl fmt::Display) -> Self {
        Self::new(format!("{doing}: {self}"))
    }
}

impl From<crate::config::ArgsError> for PluginError {
    fn from(error: crate::config::ArgsError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<crate::listers::Sealed> for PluginError {
    fn from(error: crate::listers::Sealed) -> Self {
        Self::new(error.to_string())
    }
}

impl From<String> for PluginError {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for PluginError {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// Why a pod was rejected: one reason nearly always, and nearly always a constant, so that rejecting thousands of nodes
/// allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reasons {
    /// A single reason.
    One(Cow<'static, str>),
    /// Several, in the plugin's order.
    Many(Arc<[Cow<'static, str>]>),
}

impl Reasons {
    /// The reasons in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        match self {
            Self::One(reason) => std::slice::from_ref(reason),
            Self::Many(reasons) => reasons,
        }
        .iter()
        .map(|reason| &**reason)
    }
}

impl From<Vec<Cow<'static, str>>> for Reasons {
    fn from(mut reasons: Vec<Cow<'static, str>>) -> Self {
        match reasons.pop() {
            Some(only) if reasons.is_empty() => Self::One(only),
            last => Self::Many(reasons.into_iter().chain(last).collect()),
        }
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, reason) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            f.write_str(reason)?;
        }
        Ok(())
    }
}

/// Which kind of no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionKind {
    /// Preemption might help.
    Unschedulable,
    /// Preemption cannot help.
    Unresolvable,
    /// The plugin itself will say when to try again.
    Pending,
}

impl RejectionKind {
    /// The status code of such a rejection.
    pub fn code(self) -> Code {
        match self {
            Self::Unschedulable => Code::Unschedulable,
            Self::Unresolvable => Code::UnschedulableAndUnresolvable,
            Self::Pending => Code::Pending,
        }
    }
}

/// A no, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Which kind of no.
    pub kind: RejectionKind,
    /// Why.
    pub reasons: Reasons,
}

impl Rejection {
    /// A rejection that preemption might lift.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RejectionKind::Unschedulable, reasons: Reasons::One(reason.into()) }
    }

    /// A rejection that preemption cannot lift.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RejectionKind::Unresolvable, reasons: Reasons::One(reason.into()) }
    }

    /// A rejection that the plugin itself will lift.
    pub fn pending(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RejectionKind::Pending, reasons: Reasons::One(reason.into()) }
    }

    /// The rejection's status code.
    pub fn code(&self) -> Code {
        self.kind.code()
    }
}

/// Yes or no: the answer of `PreEnqueue`, `AddPod`, `RemovePod`, `Filter` and `Reserve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Pass,
    /// No.
    Reject(Rejection),
}

impl Verdict {
    /// [`Rejection::unschedulable`] as a verdict.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Reject(Rejection::unschedulable(reason))
    }

    /// [`Rejection::unresolvable`] as a verdict.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Reject(Rejection::unresolvable(reason))
    }

    /// The verdict's status code.
    pub fn code(&self) -> Code {
        match self {
            Self::Pass => Code::Success,
            Self::Reject(rejection) => rejection.code(),
        }
    }
}

/// The answer of `PreFilter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilterOutcome {
    /// Every node is to be filtered.
    Pass,
    /// The plugin's `Filter` has nothing to say about this pod.
    Skip,
    /// Only these nodes come into question (names, sorted).
    Nodes(std::collections::BTreeSet<String>),
    /// No node comes into question. `Unresolvable` ends `PreFilter` at once; otherwise the other plugins are still asked.
    Reject(Rejection),
}

/// The answer of `PreScore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreScoreOutcome {
    /// The plugin scores.
    Pass,
    /// The plugin's `Score` has nothing to say about this pod.
    Skip,
}

/// The answer of `PostFilter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilterOutcome {
    /// The pod may become schedulable: ends `PostFilter`. `nominated` is the node to hold for it; `None` keeps the nomination.
    Success {
        /// The node to hold, empty to clear the nomination.
        nominated: Option<String>,
    },
    /// Nothing can be done here; `Unresolvable` ends `PostFilter`, otherwise the next plugin is asked.
    Reject {
        /// Why.
        rejection: Rejection,
        /// Empty to clear the nomination; `None` keeps it.
        nominated: Option<String>,
    },
}

/// The answer of `Permit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitOutcome {
    /// Go on.
    Allow,
    /// Wait until allowed, for this long at most (and never longer than 15 minutes).
    Wait(Duration, Cow<'static, str>),
    /// No.
    Reject(Rejection),
}

/// The answer of `PreBindPreFlight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreBindPreFlight {
    /// `PreBind` has work to do.
    Work {
        /// Whether it may run beside its neighbours.
        parallel: bool,
    },
    /// `PreBind` has nothing to do and is not called.
    Skip {
        /// Whether it may run beside its neighbours: a skipped plugin that may not still splits the groups.
        parallel: bool,
    },
}

/// The answer of `PreBind`.
pub type PreBindOutcome = Verdict;

/// The answer of `Bind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    /// The pod is bound.
    Bound,
    /// Another plugin binds it.
    Skip,
    /// No.
    Reject(Rejection),
}

/// The answer of `SignPod`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignOutcome {
    /// What the plugin's answers depend on, by name.
    Fragments(Vec<(&'static str, Fragment)>),
    /// The plugin's answers depend on more than can be signed.
    Refuse(Rejection),
}
