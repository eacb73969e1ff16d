//! Signatures of pods.

use serde_json::{Map, Value};

use super::super::{Code, SignOutcome};
use super::Framework;
use crate::metrics::Point;
use crate::model::PodInfo;

/// The fragment that every signature has. Follows `kube-scheduler/framework/signers.go#SchedulerNameSignerName @v1.36.3`.
const SCHEDULER_NAME: &str = "v1.Pod.Spec.SchedulerName";

impl Framework {
    /// The pod's signature: pods with the same one get the same answers from every plugin. None if a plugin cannot sign
    /// pods, or refuses this one. The point's status in metrics is always `Success`, as upstream's is, also if nothing was
    /// signed. Follows `pkg/scheduler/framework/runtime/framework.go#SignPod @v1.36.3`.
    pub fn sign_pod(&self, pod: &PodInfo) -> Option<String> {
        let started = self.mono();
        let signature = self.signature(pod);
        self.observe_point(Point::Sign, Code::Success, started);
        signature
    }

    fn signature(&self, pod: &PodInfo) -> Option<String> {
        let mut signature = Map::new();
        signature.insert(SCHEDULER_NAME.into(), pod.pod().scheduler_name().into());
        for entry in self.signers.as_ref()? {
            let started = self.mono();
            let outcome = entry.plugin.sign(pod);
            let code = match &outcome {
                Ok(SignOutcome::Fragments(_)) => Code::Success,
                Ok(SignOutcome::Refuse(rejection)) => rejection.code(),
                Err(_) => Code::Error,
            };
            self.recorder.observe(entry.durations.series(code), self.mono().seconds_since(started));
            match outcome {
                Ok(SignOutcome::Fragments(fragments)) => {
                    signature.extend(fragments.into_iter().map(|(name, value)| (name.to_owned(), value)));
                }
                Ok(SignOutcome::Refuse(_)) => return None,
                Err(error) => {
                    tracing::error!(plugin = &*entry.name, pod = &**pod.key(), %error, "SignPod failed for plugin");
                    return None;
                }
            }
        }
        Some(Value::Object(signature).to_string())
    }
}
