//! Granularity of field ownership for server-side apply: per list element, per member, or the value as a whole.
//!
//! Follows `sigs.k8s.io/structured-merge-diff/v6/schema/elements.go` and `kube-openapi/pkg/schemaconv/smd.go`, which read the
//! `x-kubernetes-list-type`, `x-kubernetes-list-map-keys` and `x-kubernetes-map-type` of upstream's `OpenAPI` definitions.

use super::{Object, Owned, Type};
use crate::apiserver::kinds::Kind;

/// Granularity at which a value is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apiserver) enum Ownership {
    /// A list owned per element. These members are the key of an element.
    Keys(&'static [&'static str]),
    /// A list of plain values, owned per value.
    Values,
    /// The value is owned as a whole.
    Atomic,
    /// The default: structures and maps are owned per member, everything else as a whole.
    Plain,
}

/// Position in the schema: the type of a value and the granularity of its ownership.
#[derive(Clone, Copy, Debug)]
pub(in crate::apiserver) struct SchemaNode {
    pub(in crate::apiserver) how: Ownership,
    inside: NodeContent,
}

/// Content of a value according to the schema.
#[derive(Clone, Copy, Debug)]
enum NodeContent {
    Members(&'static Object),
    /// Elements or entries that all have one type.
    Each(&'static Type),
    /// A value that no type describes.
    Anything,
}

impl SchemaNode {
    /// Returns the root: an object of `kind`.
    pub(in crate::apiserver) fn root(kind: &Kind) -> Self {
        Self { how: Ownership::Plain, inside: NodeContent::Members(Object::of(kind)) }
    }

    /// Returns the node of a member, or of a map's entry.
    pub(in crate::apiserver) fn member(self, name: &str) -> Self {
        match self.inside {
            NodeContent::Members(object) => {
                object.member(name).map_or(Self::UNKNOWN, |member| Self::of(&member.kind, &member.owned))
            }
            NodeContent::Each(kind) => Self::of(kind, &Owned::Usually),
            NodeContent::Anything => Self::UNKNOWN,
        }
    }

    /// Returns the node of a list's elements.
    pub(in crate::apiserver) fn element(self) -> Self {
        match self.inside {
            NodeContent::Each(kind) => Self::of(kind, &Owned::Usually),
            _ => Self::UNKNOWN,
        }
    }

    const UNKNOWN: Self = Self { how: Ownership::Plain, inside: NodeContent::Anything };

    fn of(kind: &'static Type, owned: &'static Owned) -> Self {
        let whole_if = |is_whole| if is_whole { Ownership::Atomic } else { Ownership::Plain };
        let is_whole = *owned == Owned::Whole;
        match kind {
            Type::Optional(inner) => Self::of(inner, owned),
            Type::List(inner) => {
                let how = match owned {
                    Owned::Keys(keys) => Ownership::Keys(keys),
                    Owned::Values => Ownership::Values,
                    Owned::Usually | Owned::Whole => Ownership::Atomic,
                };
                Self { how, inside: NodeContent::Each(inner) }
            }
            Type::Map(inner) => Self { how: whole_if(is_whole), inside: NodeContent::Each(inner) },
            Type::Object(_) => kind.object().map_or(Self::UNKNOWN, |object| Self {
                how: whole_if(is_whole || object.is_atomic),
                inside: NodeContent::Members(object),
            }),
            _ => Self::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ownership::{Atomic, Keys, Plain, Values};
    use super::*;
    use crate::apiserver::kinds::{DEPLOYMENTS, JOBS, NODES, PODS, SERVICES};

    /// Checks the ownership at a path, in which `*` stands for a list's elements.
    fn check(kind: &Kind, path: &str, expected: Ownership) {
        let step = |place: SchemaNode, step: &str| if step == "*" { place.element() } else { place.member(step) };
        assert_eq!(path.split('.').fold(SchemaNode::root(kind), step).how, expected, "{} {path}", kind.kind);
    }

    #[test]
    fn field_ownership_follows_the_path() {
        check(&PODS, "spec.containers.*.ports", Keys(&["containerPort", "protocol"]));
        check(&PODS, "spec.tolerations", Atomic);
        check(&PODS, "spec.nodeSelector", Atomic);
        check(&PODS, "spec.imagePullSecrets.*", Atomic);
        check(&PODS, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution", Atomic);
        check(&DEPLOYMENTS, "spec.selector", Atomic);
        check(&DEPLOYMENTS, "spec.template.spec.containers.*.env", Keys(&["name"]));
        check(&DEPLOYMENTS, "spec.template.metadata.labels", Plain);
        check(&SERVICES, "spec.ports", Keys(&["port", "protocol"]));
        check(&PODS, "status.conditions", Keys(&["type"]));
        check(&JOBS, "status.conditions", Atomic);
        check(&NODES, "spec.podCIDRs", Values);
        check(&NODES, "metadata.finalizers", Values);
    }
}
