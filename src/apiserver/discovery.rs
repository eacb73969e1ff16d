//! Discovery documents: the server's groups, their kinds, and the verbs of each kind.
//!
//! There are two forms: one document per group (`kube-aggregator`'s legacy discovery), and one document for all groups
//! (`apidiscovery.k8s.io/v2`), which kubectl asks for first.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::accept::Form;
use super::kinds::{self, Kind};
use super::reply::Reply;
use crate::version::KUBERNETES;

/// Content type of the document of all groups.
const GROUPS: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Groups in upstream's order of preference, which matters for short names that several groups have. All other groups follow,
/// sorted by name.
/// `pkg/controlplane/apiserver/aggregator.go#DefaultGenericAPIServicePriorities @v1.36.3`.
const ORDER: [&str; 10] = [
    "apps",
    "events.k8s.io",
    "batch",
    "policy",
    "storage.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "autoscaling",
];

const READ_WRITE: [&str; 3] = ["get", "patch", "update"];

/// Returns the document at `/version`.
pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36", "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35", "gitVersion": KUBERNETES, "gitCommit": "", "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

/// Returns the reply at a path below `/api` or `/apis`.
pub(super) fn reply(path: &[String], form: Form) -> Reply {
    if let (Form::Groups, [root]) = (form, path) {
        let document = aggregated(root == "api");
        return Reply::document(&document, GROUPS, hash(&document));
    }
    document(path).map_or_else(Reply::not_found_page, |value| Reply::json(200, &value))
}

/// Returns a short hash of a document.
pub(super) fn hash(document: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    document.to_string().hash(&mut hasher);
    format!("{:016X}", hasher.finish())
}

/// Returns the groups that have kinds, except the core group.
fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = kinds::served().map(|kind| kind.group).filter(|group| !group.is_empty()).collect();
    let place = |group: &str| ORDER.iter().position(|known| *known == group).unwrap_or(ORDER.len());
    groups.sort_by_key(|group| (place(group), *group));
    groups.dedup();
    groups
}

/// Returns the kinds of a version of a group, by their plural names.
pub(super) fn kinds_of(group: &str, version: &str) -> BTreeMap<&'static str, &'static Kind> {
    let found = kinds::served().filter(|kind| kind.group == group && kind.version == version);
    found.map(|kind| (kind.plural, kind)).collect()
}

fn document(path: &[String]) -> Option<Value> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["api", version] => resources("", version),
        ["apis"] => {
            let groups: Vec<Value> = groups().into_iter().filter_map(group).collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let mut document = group(name)?;
            document["kind"] = json!("APIGroup");
            document["apiVersion"] = json!("v1");
            Some(document)
        }
        ["apis", group, version] => resources(group, version),
        _ => None,
    }
}

fn group(name: &str) -> Option<Value> {
    let kind = kinds::served().find(|kind| kind.group == name && !name.is_empty())?;
    let version = json!({"groupVersion": kind.api_version(), "version": kind.version});
    Some(json!({"name": name, "versions": [version], "preferredVersion": version}))
}

/// A subresource as discovery describes it.
struct Subresource {
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
}

/// Returns the subresources of a kind, sorted by name.
fn subresources(kind: &Kind) -> Vec<Subresource> {
    let own = |name, verbs| Subresource { name, group: "", version: "", kind: kind.kind, verbs };
    let mut list = Vec::new();
    if kind.plural == "pods" {
        list.push(Subresource { kind: "Binding", ..own("binding", &["create"]) });
        list.push(Subresource { group: "policy", version: "v1", kind: "Eviction", ..own("eviction", &["create"]) });
    }
    if kind.plural == "namespaces" {
        list.push(own("finalize", &["update"]));
    }
    if kind.has_scale() {
        list.push(Subresource { group: "autoscaling", version: "v1", kind: "Scale", ..own("scale", &READ_WRITE) });
    }
    if kind.has_status {
        list.push(own("status", &READ_WRITE));
    }
    list
}

fn verbs(kind: &Kind) -> Vec<&'static str> {
    let mut verbs = vec!["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    // Namespaces can only be deleted one by one.
    verbs.retain(|verb| kind.plural != "namespaces" || *verb != "deletecollection");
    verbs
}

fn singular(kind: &Kind) -> String {
    kind.kind.to_lowercase()
}

fn is_in_all(kind: &Kind) -> bool {
    matches!(kind.group, "apps" | "batch") && kind.has_status
        || kind.group.is_empty() && matches!(kind.plural, "pods" | "replicationcontrollers" | "services")
}

/// Adds the short names and categories of a kind, if it has any.
fn add_names(entry: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if is_in_all(kind) {
        entry["categories"] = json!(["all"]);
    }
}

fn resources(group: &str, version: &str) -> Option<Value> {
    let kinds = kinds_of(group, version);
    let api_version = kinds.values().next()?.api_version();
    let mut list: Vec<Value> = kinds.into_values().flat_map(entries).collect();
    if group.is_empty() {
        let bindings = json!({"name": "bindings", "singularName": "binding", "namespaced": true, "kind": "Binding",
            "verbs": ["create"]});
        list.insert(0, bindings);
    }
    let mut document = json!({"kind": "APIResourceList", "groupVersion": api_version, "resources": list});
    // For the core group, upstream omits this member.
    if !group.is_empty() {
        document["apiVersion"] = json!("v1");
    }
    Some(document)
}

fn entries(kind: &Kind) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural, "singularName": singular(kind), "namespaced": kind.namespaced, "kind": kind.kind,
        "verbs": verbs(kind),
    });
    add_names(&mut main, kind);
    let mut list = vec![main];
    for sub in subresources(kind) {
        let mut entry = json!({"name": format!("{}/{}", kind.plural, sub.name), "singularName": "",
            "namespaced": kind.namespaced, "kind": sub.kind, "verbs": sub.verbs});
        if !sub.group.is_empty() {
            entry["group"] = json!(sub.group);
            entry["version"] = json!(sub.version);
        }
        list.push(entry);
    }
    list
}

/// Returns the document of all groups with their kinds, or the document of the core group alone.
/// Follows `apiserver/pkg/endpoints/discovery/aggregated @v1.36.3`.
fn aggregated(is_core: bool) -> Value {
    let names = if is_core { vec![""] } else { groups() };
    let items: Vec<Value> = names.into_iter().map(aggregated_group).collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_group(group: &str) -> Value {
    let mut resources: Vec<Value> = kinds_of(group, "v1").into_values().map(aggregated_entry).collect();
    if group.is_empty() {
        let kind = json!({"group": "", "version": "", "kind": "Binding"});
        resources.insert(
            0,
            json!({"resource": "bindings", "responseKind": kind, "scope": "Namespaced", "singularResource": "binding",
                "verbs": ["create"]}),
        );
    }
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": [{"version": "v1", "resources": resources, "freshness": "Current"}]})
}

fn aggregated_entry(kind: &'static Kind) -> Value {
    let of_kind = |group: &str, version: &str, name: &str| json!({"group": group, "version": version, "kind": name});
    let mut entry = json!({
        "resource": kind.plural, "responseKind": of_kind("", "", kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": singular(kind), "verbs": verbs(kind),
    });
    add_names(&mut entry, kind);
    let subs: Vec<Value> = subresources(kind)
        .into_iter()
        .map(|sub| {
            let kind = of_kind(sub.group, sub.version, sub.kind);
            json!({"subresource": sub.name, "responseKind": kind, "verbs": sub.verbs})
        })
        .collect();
    if !subs.is_empty() {
        entry["subresources"] = json!(subs);
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &[&str]) -> Option<Value> {
        document(&path.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn discovery_lists_groups_and_resources() {
        let events = at(&["apis", "events.k8s.io", "v1"]).unwrap();
        assert_eq!(events["groupVersion"], "events.k8s.io/v1");
        assert_eq!(events["resources"][0]["name"], "events");
        let names: Vec<Value> = at(&["api", "v1"]).unwrap()["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["name"].clone())
            .collect();
        assert!(["events", "pods", "pods/binding", "pods/status"].iter().all(|name| names.contains(&json!(name))));
        assert_eq!(at(&["apis", "none.k8s.io", "v1"]), None);
        assert!(at(&["apis"]).unwrap()["groups"].as_array().unwrap().len() > 5);
    }

    #[test]
    fn aggregated_discovery_has_every_kind() {
        let documents = [aggregated(true), aggregated(false)];
        for kind in kinds::served() {
            let groups = documents.iter().flat_map(|document| document["items"].as_array().unwrap());
            let group = groups.filter(|item| item["metadata"]["name"].as_str().unwrap_or_default() == kind.group);
            let mut resources = group.flat_map(|item| item["versions"][0]["resources"].as_array().unwrap());
            assert!(resources.any(|entry| entry["resource"] == kind.plural), "{kind:?}");
        }
        let apps = documents[1]["items"][0].clone();
        assert_eq!(apps["metadata"]["name"], "apps");
        let deployments = &apps["versions"][0]["resources"][2];
        assert_eq!(deployments["subresources"][0]["responseKind"]["group"], "autoscaling");
        assert_eq!(deployments["shortNames"], json!(["deploy"]));
    }
}
