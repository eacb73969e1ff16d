//! The part of `OpenAPI` v3 that kubectl reads before it writes: the operations and their options.
//!
//! There are no schemas. kubectl checks whether a kind's PATCH supports `fieldValidation`, and if so leaves validation to the
//! server. If PATCH listed strategic merge patches as a content type, kubectl would compute its patches from the schemas.
//! PATCH does not list them, so kubectl uses its built-in types.

use serde_json::{Map, Value, json};

use super::discovery;
use super::kinds::{self, Kind};
use super::reply::Reply;
use crate::version::KUBERNETES;

/// An empty `OpenAPI` v2 document in protobuf, the form that kubectl asks for. kubectl reads v2 if v3 does not contain a kind.
/// The only content of the document is `swagger: "2.0"`.
const V2: &[u8] = b"\x0a\x032.0";

/// Returns the reply at `/openapi/v2`.
pub(super) fn v2() -> Reply {
    Reply::bytes(V2, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf")
}

/// Returns the reply at a path below `/openapi/v3`, or `None` for an unknown path.
pub(super) fn reply(path: &str) -> Option<Reply> {
    if path.is_empty() {
        return Some(Reply::json(200, &index()));
    }
    let value = document(path)?;
    let tag = discovery::hash(&value);
    Some(Reply::document(&value, "application/json", tag))
}

/// Returns the index of the documents, with a URL for each group and version.
fn index() -> Value {
    let mut paths = Map::new();
    for kind in kinds::served() {
        let root = root(kind);
        if let Some(value) = document(&root).filter(|_| !paths.contains_key(&root)) {
            let url = format!("/openapi/v3/{root}?hash={}", discovery::hash(&value));
            paths.insert(root, json!({"serverRelativeURL": url}));
        }
    }
    json!({"paths": paths})
}

/// Returns the root path of a kind's group: `api/v1` or `apis/group/version`.
fn root(kind: &Kind) -> String {
    format!("{}/{}", if kind.group.is_empty() { "api" } else { "apis" }, kind.api_version())
}

fn document(path: &str) -> Option<Value> {
    let mut paths = Map::new();
    for kind in kinds::served().filter(|kind| root(kind) == path) {
        let scope = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let collection = format!("/{path}/{scope}{}", kind.plural);
        let single = format!("{collection}/{{name}}");
        paths.insert(collection, json!({"post": operation(kind, "post", &["application/json", "application/yaml"])}));
        let patches = ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
        paths.insert(
            single,
            json!({
                "put": operation(kind, "put", &["application/json", "application/yaml"]),
                "patch": operation(kind, "patch", &patches),
            }),
        );
    }
    if paths.is_empty() {
        return None;
    }
    Some(json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": KUBERNETES}, "paths": paths,
        "components": {"schemas": {}}}))
}

fn operation(kind: &Kind, action: &str, bodies: &[&str]) -> Value {
    let text = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let mut parameters = vec![text("dryRun"), text("fieldManager"), text("fieldValidation")];
    if action == "patch" {
        parameters.push(json!({"name": "force", "in": "query", "schema": {"type": "boolean", "uniqueItems": true}}));
    }
    let content: Map<String, Value> =
        bodies.iter().map(|body| ((*body).to_owned(), json!({"schema": {"type": "object"}}))).collect();
    json!({
        "parameters": parameters,
        "requestBody": {"content": content, "required": true},
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_of_every_kind_has_field_validation() {
        let index = index();
        for kind in kinds::served() {
            let url = index["paths"][root(kind)]["serverRelativeURL"].as_str().unwrap();
            assert!(url.starts_with(&format!("/openapi/v3/{}?hash=", root(kind))), "{url}");
            let document = document(&root(kind)).unwrap();
            let patches = document["paths"].as_object().unwrap().values().map(|path| &path["patch"]);
            let own = patches.filter(|patch| patch["x-kubernetes-group-version-kind"]["kind"] == kind.kind);
            let known = own.flat_map(|patch| patch["parameters"].as_array().unwrap());
            assert!(known.into_iter().any(|parameter| parameter["name"] == "fieldValidation"), "{kind:?}");
        }
        assert_eq!(document("apis/none.k8s.io/v1"), None);
    }
}
