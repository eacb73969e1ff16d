//! The name of a kind of API object, as URLs and RBAC rules spell it.

use std::fmt;
use std::str::FromStr;

/// A kind of API object: its group, version and plural. Sorted by group, version and plural.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural in lower case, such as `pods`.
    pub plural: String,
}

/// The text names no kind: it is not `<plural>.<version>.<group>`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not <plural>.<version>.<group>")]
pub struct MalformedKind(String);

impl Kind {
    /// The kind with this group (empty for the core group), version and plural.
    pub fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
    }

    /// The kind of a Rust type.
    pub fn of<K: kube::Resource<DynamicType = ()>>() -> Self {
        Self::new(&K::group(&()), &K::version(&()), &K::plural(&()))
    }

    /// The path of all objects of the kind in all namespaces, such as `/apis/apps/v1/replicasets`.
    pub fn path(&self) -> String {
        let Self { group, version, plural } = self;
        if group.is_empty() { format!("/api/{version}/{plural}") } else { format!("/apis/{group}/{version}/{plural}") }
    }

    /// The resource as `kubectl create clusterrole --resource` takes it: `pods`, `replicasets.apps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, plural } = self;
        if group.is_empty() { write!(f, "{plural}.{version}") } else { write!(f, "{plural}.{version}.{group}") }
    }
}

impl FromStr for Kind {
    type Err = MalformedKind;

    /// Reads the name of a kind in the form `<plural>.<version>.<group>`. The core group has no such form.
    /// Follows `apimachinery/pkg/runtime/schema/group_version.go#ParseResourceArg @v1.36.3`.
    fn from_str(text: &str) -> Result<Self, MalformedKind> {
        let mut parts = text.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(plural), Some(version), Some(group)) => Ok(Self::new(group, version, plural)),
            _ => Err(MalformedKind(text.to_owned())),
        }
    }
}
