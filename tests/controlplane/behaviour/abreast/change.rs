//! One change of a cluster, as it is written into files.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::support::stage::Stage;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verb {
    Create,
    /// A merge patch.
    Patch,
    /// With the object's own grace.
    Delete,
    /// At once, as a kubelet ends a pod.
    End,
}

/// One change. Objects are in the namespace of the sequence where they are in one at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    #[serde(rename = "do")]
    pub(super) verb: Verb,
    /// With a subresource, if it is one that is changed: `pods/status`.
    pub(super) resource: String,
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) body: Value,
}

impl Change {
    /// Makes the change. A pod that somebody else has ended meanwhile is left alone.
    pub(super) fn make(&self, stage: &Stage<'_>) -> Result<(), String> {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        if self.verb == Verb::Create {
            return match resource {
                "priorityclasses" => stage.create_if_missing(resource, &self.body),
                _ => stage.create(resource, &self.body),
            };
        }
        let act = |stage: &Stage<'_>| match self.verb {
            Verb::Patch if subresource.is_empty() => stage.patch(resource, &self.name, "", &self.body),
            Verb::Patch => stage.patch(resource, &self.name, &format!("/{subresource}"), &self.body),
            Verb::End => stage.delete_now(&self.name),
            _ => stage.send(Method::DELETE, &stage.path(resource, &self.name), &serde_json::json!({})).map(drop),
        };
        if resource == "pods" { stage.if_there(&self.name, act) } else { act(stage) }
    }
}
