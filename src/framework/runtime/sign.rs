//! Extension point `SignPod`: signatures of pods.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::{Code, Fragment, SignOutcome};
use super::Framework;
use crate::go::json;
use crate::metrics::Point;
use crate::model::PodInfo;

/// Name of the fragment that every signature has. Follows
/// `kube-scheduler/framework/signers.go#SchedulerNameSignerName @v1.36.3`.
const SCHEDULER_NAME: &str = "v1.Pod.Spec.SchedulerName";

impl Framework {
    /// Returns the pod's signature. For pods with the same signature, all plugins decide the same. `None` if a plugin cannot
    /// sign pods, or refuses to sign this pod. As in upstream, the metrics always show the status `Success` for this point.
    /// Follows `pkg/scheduler/framework/runtime/framework.go#SignPod @v1.36.3`.
    pub fn sign_pod(&self, pod: &PodInfo) -> Option<String> {
        let started = self.mono();
        let signature = self.signature(pod);
        self.observe_point(Point::Sign, Code::Success, started);
        signature
    }

    fn signature(&self, pod: &PodInfo) -> Option<String> {
        let scheduler_name = Fragment::from(Value::from(pod.pod().scheduler_name()));
        let mut signature = BTreeMap::from([(SCHEDULER_NAME, scheduler_name)]);
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
                    signature.extend(fragments);
                }
                Ok(SignOutcome::Refuse(_)) => return None,
                Err(error) => {
                    tracing::error!(plugin = &*entry.name, pod = &**pod.key(), %error, "SignPod failed for plugin");
                    return None;
                }
            }
        }
        Some(joined(&signature))
    }
}

/// Joins all fragments into a JSON object, sorted by name.
fn joined(signature: &BTreeMap<&'static str, Fragment>) -> String {
    let mut text = String::from("{");
    for (name, fragment) in signature {
        if text.len() > 1 {
            text.push(',');
        }
        text.push_str(&json::to_string(*name).expect("a name can be written"));
        text.push(':');
        text.push_str(fragment.as_str());
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_sorted_by_name() {
        let fragment = |text: &str| Fragment::from(Value::from(text));
        let signature = BTreeMap::from([("b", fragment("2")), ("a<", fragment("<")), ("B", fragment("3"))]);
        assert_eq!(joined(&signature), r#"{"B":"3","a\u003c":"\u003c","b":"2"}"#);
    }
}
