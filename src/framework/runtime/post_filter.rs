//! Extension point `PostFilter`: attempts to make a pod schedulable that fits on no node.

use super::super::{Code, CycleContext, PostFilterContext, PostFilterOutcome, RejectionKind};
use super::{Framework, sampled};
use crate::metrics::Point;

/// The combined result of the `PostFilter` plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostFilterRun {
    /// `Success` if a plugin may have made the pod schedulable, otherwise the code of the rejection.
    pub code: Code,
    /// The messages of the plugins.
    pub message: String,
    /// Name of the nominated node. An empty name clears the nomination, and `None` keeps it.
    pub nominated: Option<String>,
}

impl Framework {
    /// Runs the `PostFilter` plugins. An error of a plugin does not fail the attempt: its text becomes the message.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#RunPostFilterPlugins @v1.36.3`.
    pub fn run_post_filter(&self, cx: &mut CycleContext<'_>, failed: &PostFilterContext<'_>) -> PostFilterRun {
        let started = self.mono();
        let run = self.post_filter(cx, failed);
        self.observe_point(Point::PostFilter, run.code, started);
        run
    }

    fn post_filter(&self, cx: &mut CycleContext<'_>, failed: &PostFilterContext<'_>) -> PostFilterRun {
        let mut said: Vec<String> = Vec::new();
        let mut kept = None;
        for entry in &self.post_filter {
            let outcome = self.timed(
                entry,
                sampled(cx.state),
                |plugin| plugin.post_filter(cx, failed),
                |outcome| match outcome {
                    Ok(PostFilterOutcome::Success { .. }) => Code::Success,
                    Ok(PostFilterOutcome::Reject { rejection, .. }) => rejection.code(),
                    Err(_) => Code::Error,
                },
            );
            match outcome {
                Ok(PostFilterOutcome::Success { nominated }) => {
                    return PostFilterRun { code: Code::Success, message: String::new(), nominated };
                }
                Ok(PostFilterOutcome::Reject { rejection, nominated }) => {
                    if rejection.kind == RejectionKind::Unresolvable {
                        let message = rejection.reasons.to_string();
                        return PostFilterRun { code: rejection.code(), message, nominated };
                    }
                    said.extend(rejection.reasons.iter().map(str::to_owned));
                    kept = nominated.or(kept);
                }
                Err(error) => return PostFilterRun { code: Code::Error, message: error.to_string(), nominated: None },
            }
        }
        PostFilterRun { code: Code::Unschedulable, message: said.join(", "), nominated: kept }
    }
}
