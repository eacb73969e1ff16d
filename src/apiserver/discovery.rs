//! What the server says it has, in the legacy form: enough for a client that asks whether a group exists.

use serde_json::{Value, json};

use super::kinds::{self, Kind};

/// The version that the server stands for.
const GIT_VERSION: &str = "v1.36.3";

/// `/version`.
pub(super) fn version() -> Value {
    json!({"major": "1", "minor": "36", "gitVersion": GIT_VERSION, "platform": "linux/amd64"})
}

/// The document at a path below `/api` or `/apis`; `None` if there is none.
pub(super) fn document(path: &[String]) -> Option<Value> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["api", version] => resources("", version),
        ["apis"] => {
            let mut groups: Vec<&str> =
                kinds::served().map(|kind| kind.group).filter(|group| !group.is_empty()).collect();
            groups.sort_unstable();
            groups.dedup();
            let groups: Vec<Value> = groups.into_iter().filter_map(group).collect();
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

fn resources(group: &str, version: &str) -> Option<Value> {
    let mut list: Vec<Value> =
        kinds::served().filter(|kind| kind.group == group && kind.version == version).flat_map(entries).collect();
    if list.is_empty() {
        return None;
    }
    list.sort_by(|one, two| one["name"].as_str().cmp(&two["name"].as_str()));
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}))
}

fn entries(kind: &Kind) -> Vec<Value> {
    const VERBS: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let mut main = json!({
        "name": kind.plural, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        main["shortNames"] = json!(kind.short_names);
    }
    let sub = |name: &str, kind_name: &str, verbs: &[&str]| {
        json!({"name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
            "kind": kind_name, "verbs": verbs})
    };
    let mut list = vec![main];
    if kind.has_status {
        list.push(sub("status", kind.kind, &["get", "patch", "update"]));
    }
    if kind.plural == "pods" {
        list.push(sub("binding", "Binding", &["create"]));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &[&str]) -> Option<Value> {
        document(&path.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn groups_and_resources_come_from_the_table() {
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
}
