//! The outcomes of plugin calls, one type per extension point.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Fragment;
/// Status codes, with the names used in metrics and messages.
pub use crate::metrics::StatusCode as Code;

/// An error of the scheduler, a plugin or the network, not of the pod. The attempt ends and the pod is retried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PluginError(Arc<str>);

impl PluginError {
    /// Creates an error with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the error with a prefix that names the failed operation.
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

/// The reasons of a rejection. Nearly always there is a single constant reason, so rejecting thousands of nodes allocates
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reasons {
    /// There is one reason.
    One(Cow<'static, str>),
    /// There are several reasons, in the plugin's order.
    Many(Arc<[Cow<'static, str>]>),
}

impl Reasons {
    /// Iterates over the reasons in order.
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

/// The kind of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RejectionKind {
    /// Preemption may make the pod schedulable.
    Unschedulable,
    /// Preemption cannot make the pod schedulable.
    Unresolvable,
    /// The plugin that rejected the pod decides itself when the pod is retried.
    Pending,
}

impl RejectionKind {
    /// Returns the status code of this kind.
    pub fn code(self) -> Code {
        match self {
            Self::Unschedulable => Code::Unschedulable,
            Self::Unresolvable => Code::UnschedulableAndUnresolvable,
            Self::Pending => Code::Pending,
        }
    }
}

/// A rejection of a pod, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The kind of the rejection.
    pub kind: RejectionKind,
    /// The reasons of the rejection.
    pub reasons: Reasons,
}

impl Rejection {
    /// Returns a rejection that preemption may resolve.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RejectionKind::Unschedulable, reasons: Reasons::One(reason.into()) }
    }

    /// Returns a rejection that preemption cannot resolve.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RejectionKind::Unresolvable, reasons: Reasons::One(reason.into()) }
    }

    /// Returns a rejection after which the plugin itself makes the pod schedulable again.
    pub fn pending(reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RejectionKind::Pending, reasons: Reasons::One(reason.into()) }
    }

    /// Returns the rejection's status code.
    pub fn code(&self) -> Code {
        self.kind.code()
    }
}

/// The outcome of `PreEnqueue`, `AddPod`, `RemovePod`, `Filter` and `Reserve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The plugin accepts the pod.
    Pass,
    /// The plugin rejects the pod.
    Reject(Rejection),
}

impl Verdict {
    /// Returns [`Rejection::unschedulable`] as a verdict.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Reject(Rejection::unschedulable(reason))
    }

    /// Returns [`Rejection::unresolvable`] as a verdict.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Reject(Rejection::unresolvable(reason))
    }

    /// Returns the verdict's status code.
    pub fn code(&self) -> Code {
        match self {
            Self::Pass => Code::Success,
            Self::Reject(rejection) => rejection.code(),
        }
    }
}

/// The outcome of `PreFilter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilterOutcome {
    /// The filters run on all nodes.
    Pass,
    /// The plugin's `Filter` is skipped for this pod.
    Skip,
    /// Only the nodes with these names can take the pod.
    Nodes(std::collections::BTreeSet<String>),
    /// No node can take the pod. `Unresolvable` ends `PreFilter` at once. With any other kind, the remaining plugins still run.
    Reject(Rejection),
}

/// The outcome of `PreScore`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreScoreOutcome {
    /// The plugin's `Score` runs for this pod.
    Pass,
    /// The plugin's `Score` is skipped for this pod.
    Skip,
}

/// The outcome of `PostFilter`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostFilterOutcome {
    /// The pod may become schedulable. This ends `PostFilter`.
    Success {
        /// Name of the nominated node. Empty clears the nomination, and `None` keeps it.
        nominated: Option<String>,
    },
    /// The plugin cannot help the pod. `Unresolvable` ends `PostFilter`. With any other kind, the next plugin runs.
    Reject {
        /// The reasons of the rejection.
        rejection: Rejection,
        /// Name of the nominated node. Empty clears the nomination, and `None` keeps it.
        nominated: Option<String>,
    },
}

/// The outcome of `Permit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermitOutcome {
    /// The pod may be bound.
    Allow,
    /// The pod waits until the plugin allows it, for at most this duration and at most 15 minutes. The text is the reason.
    Wait(Duration, Cow<'static, str>),
    /// The plugin rejects the pod.
    Reject(Rejection),
}

/// The outcome of `PreBindPreFlight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreBindPreFlight {
    /// `PreBind` has work to do.
    Work {
        /// Whether `PreBind` may run in parallel with adjacent plugins.
        parallel: bool,
    },
    /// `PreBind` has nothing to do and is not called.
    Skip {
        /// Whether the plugin allows parallel execution. If it does not, it still separates the groups of plugins before and
        /// after it.
        parallel: bool,
    },
}

/// The outcome of `PreBind`.
pub type PreBindOutcome = Verdict;

/// The outcome of `Bind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    /// The plugin bound the pod.
    Bound,
    /// The plugin leaves the binding to another plugin.
    Skip,
    /// The plugin rejects the pod.
    Reject(Rejection),
}

/// The outcome of `SignPod`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignOutcome {
    /// The parts of the pod that the plugin's decisions depend on, by name.
    Fragments(Vec<(&'static str, Fragment)>),
    /// The plugin's decisions for this pod depend on more than a signature can cover.
    Refuse(Rejection),
}
