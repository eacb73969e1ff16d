//! The object or collection that a request addresses.

use std::borrow::Cow;

/// Parts of a request's path. Error texts contain them, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// Version of the API group.
    pub version: &'a str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Plural name of the resource.
    pub resource: &'a str,
    /// The object's name; empty for the collection.
    pub name: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
}

impl<'a> Target<'a> {
    /// The target for a pod.
    pub const fn pod(namespace: &'a str, name: &'a str) -> Self {
        Self { group: "", version: "v1", namespace, resource: "pods", name, subresource: "" }
    }

    /// The given subresource of the same object.
    #[must_use]
    pub const fn subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// Returns `resource`, or `resource.group` outside the core group.
    pub fn qualified_resource(&self) -> Cow<'a, str> {
        if self.group.is_empty() { self.resource.into() } else { format!("{}.{}", self.resource, self.group).into() }
    }

    /// Path of the request's URL.
    pub fn path(&self) -> String {
        let capacity = 40 + self.group.len() + self.namespace.len() + self.name.len() + self.subresource.len();
        let mut path = String::with_capacity(capacity);
        path.push_str(if self.group.is_empty() { "/api" } else { "/apis" });
        let namespaces = if self.namespace.is_empty() { "" } else { "namespaces" };
        let segments =
            [self.group, self.version, namespaces, self.namespace, self.resource, self.name, self.subresource];
        for segment in segments.iter().filter(|segment| !segment.is_empty()) {
            path.push('/');
            path.push_str(segment);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_the_object() {
        let check = |target: Target<'_>, path: &str, resource: &str| {
            assert_eq!(target.path(), path);
            assert_eq!(target.qualified_resource(), resource);
        };
        let pod = Target::pod("ns", "p").subresource("binding");
        check(pod, "/api/v1/namespaces/ns/pods/p/binding", "pods");
        let events =
            Target { group: "events.k8s.io", version: "v1", namespace: "ns", resource: "events", ..Target::default() };
        check(events, "/apis/events.k8s.io/v1/namespaces/ns/events", "events.events.k8s.io");
        let node = Target { version: "v1", resource: "nodes", name: "n", ..Target::default() };
        check(node, "/api/v1/nodes/n", "nodes");
    }
}
