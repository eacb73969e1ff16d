//! What becomes of members that the API does not know: `fieldValidation`.
//!
//! Follows `apiserver/pkg/endpoints/handlers/create.go#createHandler`, `patch.go` and
//! `apimachinery/pkg/runtime/error.go#strictDecodingError @v1.36.3`.

use serde_json::{Value, json};

use super::field_error::FieldError;
use super::kinds::Kind;
use super::route::Query;
use super::status::Status;
use super::types;

/// What the client wants to hear of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Directive {
    /// Nothing, and they are not even looked for: what scheduling does not know, it does not read.
    Unsaid,
    Ignore,
    Warn,
    Strict,
}

impl Directive {
    /// Reads the query. A client behind a port that says nothing is warned, as by a real server.
    pub(super) fn of(query: &Query, is_remote: bool, options: &str) -> Result<Self, Status> {
        match query.text("fieldValidation") {
            "" if is_remote => Ok(Self::Warn),
            "" => Ok(Self::Unsaid),
            "Ignore" => Ok(Self::Ignore),
            "Warn" => Ok(Self::Warn),
            "Strict" => Ok(Self::Strict),
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", &json!(other), &known);
                Err(Status::invalid("meta.k8s.io", options, "", &[error]))
            }
        }
    }

    /// Takes unknown members out of an object. Gives the warnings about them.
    pub(super) fn apply(self, kind: &Kind, value: &mut Value) -> Result<Vec<String>, Unknown> {
        if self == Self::Unsaid || !value.is_object() {
            return Ok(Vec::new());
        }
        // What is of another type is found, and told, by the checks that every object passes.
        let unknown = types::check_whole(kind, value).unwrap_or_default();
        if unknown.is_empty() {
            return Ok(Vec::new());
        }
        unknown.iter().for_each(|path| remove(value, path));
        let texts: Vec<String> = unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        match self {
            Self::Strict => Err(Unknown(texts)),
            Self::Warn => Ok(texts),
            Self::Ignore | Self::Unsaid => Ok(Vec::new()),
        }
    }
}

/// Members that a strict client must not send.
#[derive(Debug)]
pub(super) struct Unknown(Vec<String>);

impl Unknown {
    fn text(&self) -> String {
        format!("strict decoding error: {}", self.0.join(", "))
    }

    /// The refusal of an object.
    pub(super) fn in_object(&self, kind: &Kind) -> Status {
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {}",
            kind.kind,
            kind.version,
            kind.kind,
            self.text()
        ))
    }

    /// The refusal of a patch.
    pub(super) fn in_patch(&self, shown: &str) -> Status {
        Status::invalid("", "", "", &[FieldError::invalid("patch", &json!(shown), self.text())])
    }
}

/// Removes the member at a path such as `spec.containers[0].image`, in which keys may have dots of their own.
fn remove(value: &mut Value, path: &str) {
    if let Some(rest) = path.strip_prefix('[') {
        let Some((index, rest)) = rest.split_once(']') else { return };
        let item = index.parse::<usize>().ok().and_then(|index| value.get_mut(index));
        if let Some(item) = item {
            remove(item, rest);
        }
        return;
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let Some(map) = value.as_object_mut() else { return };
    if map.remove(path).is_some() {
        return;
    }
    let inside = |key: &str| path.strip_prefix(key).filter(|rest| rest.starts_with(['.', '[']));
    for (key, member) in map.iter_mut() {
        if let Some(rest) = inside(key) {
            remove(member, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::PODS;
    use super::*;

    #[test]
    fn unknown_members_are_removed_and_named() {
        let pod = json!({"metadata": {"labels": {"a.b": "c"}}, "spec": {"containers": [{"name": "c", "imag": "x"}], "x": {}}});
        let mut value = pod.clone();
        let warnings = Directive::Warn.apply(&PODS, &mut value).unwrap();
        assert_eq!(warnings, ["unknown field \"spec.containers[0].imag\"", "unknown field \"spec.x\""]);
        assert_eq!(value, json!({"metadata": {"labels": {"a.b": "c"}}, "spec": {"containers": [{"name": "c"}]}}));
        let refused = Directive::Strict.apply(&PODS, &mut pod.clone()).unwrap_err().in_object(&PODS);
        assert_eq!(
            refused.message,
            "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: \
             unknown field \"spec.containers[0].imag\", unknown field \"spec.x\""
        );
    }
}
