//! Keys by which a strategic merge patch merges the lists of the API's kinds.

use crate::apimachinery::patch::{ListMerge, PatchMeta};
use crate::apiserver::kinds::Kind;
use crate::apiserver::schema::Object;

impl PatchMeta for Kind {
    fn list(&self, path: &str) -> ListMerge {
        Object::of(self).at(path).map_or(ListMerge::Replace, |member| member.merge)
    }

    fn replaces_object(&self, path: &str) -> bool {
        Object::of(self).at(path).is_some_and(|member| member.is_replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::kinds::{DEPLOYMENTS, NODES, PODS};
    use super::ListMerge::{Key, Values};
    use super::*;

    #[test]
    fn merge_keys_are_found_by_path() {
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
            assert_eq!(kind.list(path), expected, "{} {path}", kind.kind);
        }
    }
}
