//! The object or collection that a request is about.

use std::borrow::Cow;

/// Parts of the path of a request. An error's text names them, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The API group; empty for core.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The namespace; empty for objects that have none.
    pub namespace: &'a str,
    /// The resource's plural.
    pub resource: &'a str,
    /// The object's name; empty for the collection.
    pub name: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
}

impl<'a> Target<'a> {
    /// A pod.
    pub const fn pod(namespace: &'a str, name: &'a str) -> Self {
        Self { group: "", version: "v1", namespace, resource: "pods", name, subresource: "" }
    }

    /// The same object's subresource.
    #[must_use]
    pub const fn subresource(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }

    /// `resource`, or `resource.group`.
    pub fn qualified_resource(&self) -> Cow<'a, str> {
        if self.group.is_empty() { self.resource.into() } else { format!("{}.{}", self.resource, self.group).into() }
    }

    /// The URL's path.
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
