//! By which member the elements of a list are told apart when a strategic merge patch merges it, as the API's types say.

use crate::apiserver::kinds::Kind;
pub(super) use crate::apiserver::schema::Merge as ListMerge;
use crate::apiserver::schema::Object;

/// Whether the object at `path` is replaced whole.
pub(super) fn replaces_object(kind: &Kind, path: &str) -> bool {
    Object::of(kind).at(path).is_some_and(|member| member.is_replaced)
}

/// How the list at `path` is merged; the path leaves out list positions.
pub(super) fn of(kind: &Kind, path: &str) -> ListMerge {
    Object::of(kind).at(path).map_or(ListMerge::Replace, |member| member.merge)
}

#[cfg(test)]
mod tests {
    use super::super::super::kinds::{DEPLOYMENTS, NODES, PODS};
    use super::ListMerge::{Key, Values};
    use super::*;

    #[test]
    fn lists_are_found_by_their_path() {
        for (kind, path, expected) in [
            (&PODS, "metadata.finalizers", Values),
            (&PODS, "status.conditions", Key("type")),
            (&PODS, "status.containerStatuses", ListMerge::Replace),
            (&PODS, "spec.tolerations", ListMerge::Replace),
            (&PODS, "spec.containers.ports", Key("containerPort")),
            (&DEPLOYMENTS, "spec.template.spec.containers.env", Key("name")),
            (&DEPLOYMENTS, "spec.template.metadata.ownerReferences", Key("uid")),
            (&DEPLOYMENTS, "spec.containers", ListMerge::Replace),
            (&NODES, "spec.taints", ListMerge::Replace),
        ] {
            assert_eq!(of(kind, path), expected, "{} {path}", kind.kind);
        }
    }
}
