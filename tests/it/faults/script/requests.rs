//! The faults that strike requests at the API server.

use http::Method;
use http::request::Parts;
use kube_scheduler::apiserver::{Fault, Gate};

use super::super::coverage::{Answer, Asked, Step};
use super::Script;

impl Script {
    /// Returns the fault that strikes a request, if any.
    pub(in super::super) fn hook(&self, parts: &Parts) -> Option<Fault> {
        self.lock().requests += 1;
        let asked = classify(parts)?;
        if asked == Asked::Binding {
            let name = parts.uri.path().rsplit('/').nth(1).unwrap_or_default().to_owned();
            if self.happen_at(Step::BindRequest, Some(&name)).is_some() {
                self.check(true, "BindRequest");
            }
        }
        let mut state = self.lock();
        if state.calm {
            return None;
        }
        let plural = parts.uri.path().rsplit('/').next().unwrap_or_default();
        if asked == Asked::Watch
            && let Some(gate) = state.held.get(plural)
        {
            return Some(Fault::Delay(gate.clone()));
        }
        let often = match asked {
            Asked::Watch => 20,
            Asked::List => 70,
            Asked::Binding => 50,
            _ => 35,
        };
        if !state.rng.chance(often, 100) {
            return None;
        }
        let answer = loop {
            let at = state.rng.index(Answer::ALL.len());
            if Answer::ALL[at].is_possible_for(asked) {
                break Answer::ALL[at];
            }
        };
        state.coverage.answer(asked, answer);
        state.trace.push(format!("{answer:?} to {} {}", parts.method, parts.uri.path()));
        Some(match answer {
            Answer::Conflict => Fault::Status(409, None),
            Answer::TooMany => Fault::Status(429, None),
            Answer::TooManyLater => Fault::Status(429, Some(1)),
            Answer::Internal => Fault::Status(500, None),
            Answer::InternalLater => Fault::Status(500, Some(2)),
            Answer::Unavailable => Fault::Status(503, None),
            Answer::DropBefore => Fault::DropConnectionBeforeReply,
            Answer::DropAfter => Fault::DropConnectionAfterCommit,
            Answer::DropWatch => Fault::DropWatch,
            Answer::Latency => {
                let gate = Gate::new();
                state.gates.push(gate.clone());
                Fault::Delay(gate)
            }
        })
    }
}

/// Returns the class of a request that faults can strike.
fn classify(parts: &Parts) -> Option<Asked> {
    let path = parts.uri.path();
    let watches = parts.uri.query().is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    match parts.method {
        Method::POST if path.ends_with("/binding") => Some(Asked::Binding),
        Method::PATCH if path.ends_with("/status") => Some(Asked::Status),
        Method::POST | Method::PATCH if path.contains("/events") => Some(Asked::Event),
        Method::GET if watches => Some(Asked::Watch),
        Method::GET => Some(Asked::List),
        _ => None,
    }
}
