//! The name of a kind of API object, as it appears in URLs and RBAC rules.

use std::fmt;
use std::str::FromStr;

/// A kind of API object: its group, version and plural. Kinds are compared by these fields, in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// Name of the API group. Empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural in lower case, such as `pods`.
    pub plural: String,
}

/// Error for a text that is not of the form `<plural>.<version>.<group>`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} does not have the form <plural>.<version>.<group>")]
pub struct MalformedKind(String);

impl Kind {
    /// Creates a kind from its group (empty for the core group), version and plural.
    pub fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned(), plural: plural.to_owned() }
    }

    /// Returns the kind of a Rust type.
    pub fn of<K: kube::Resource<DynamicType = ()>>() -> Self {
        Self::new(&K::group(&()), &K::version(&()), &K::plural(&()))
    }

    /// Returns the URL path of the kind's objects in all namespaces, such as `/apis/apps/v1/replicasets`.
    pub fn path(&self) -> String {
        let Self { group, version, plural } = self;
        if group.is_empty() { format!("/api/{version}/{plural}") } else { format!("/apis/{group}/{version}/{plural}") }
    }

    /// Returns the resource in the form for `kubectl create clusterrole --resource`: `pods`, `replicasets.apps`.
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

    /// Parses a kind of the form `<plural>.<version>.<group>`. A kind of the core group has an empty group: `pods.v1.`.
    /// Follows `apimachinery/pkg/runtime/schema/group_version.go#ParseResourceArg @v1.36.3`.
    fn from_str(text: &str) -> Result<Self, MalformedKind> {
        let mut parts = text.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(plural), Some(version), Some(group)) => Ok(Self::new(group, version, plural)),
            _ => Err(MalformedKind(text.to_owned())),
        }
    }
}
