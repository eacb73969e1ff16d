//! The binding subresource of pods. Every scheduled pod needs this write, so it is optimized for speed.
//!
//! Follows `pkg/registry/core/pod/storage/storage.go#BindingREST.Create @v1.36.3`. A pod's bytes are split into metadata,
//! spec and status. Only the members that change are parsed. All other members are copied as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::kinds::{self, NODES, PODS};
use super::object::{Object, append, assemble, text_of};
use super::store::State;
use super::{meta, pods};
use crate::apimachinery::field_error::aggregate;
use crate::apimachinery::{FieldError, Status};
use crate::config::Gate;

/// Node labels that are copied to the pods bound to the node.
/// `plugin/pkg/admission/podtopologylabels/admission.go#defaultConfig @v1.36.3`.
pub(super) const TOPOLOGY_LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Members of an object sorted by name, as in the canonical layout.
type Members<'a> = BTreeMap<&'a str, &'a RawValue>;

/// The parts of a pod's bytes that a binding reads or writes.
#[derive(Deserialize)]
struct PodParts<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
    #[serde(borrow)]
    spec: Members<'a>,
    #[serde(borrow)]
    status: Members<'a>,
}

impl State {
    /// Binds a pod to a node. `name` is the pod's name from the URL, or `None` for the legacy collection.
    pub(super) fn bind(
        &mut self,
        namespace: &str,
        name: Option<&str>,
        body: &Value,
        dry_run: bool,
    ) -> Result<(), Status> {
        let own_name = meta::text(body, "name");
        if name.is_none() && own_name.is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let name = name.unwrap_or(own_name);
        if name != own_name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        let own_namespace = meta::text(body, "namespace");
        if !own_namespace.is_empty() && own_namespace != namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let node = target(body)?;
        let pod = self.existing(&PODS, namespace, name)?;
        check_precondition(&pod, body)?;
        let refuse = |why: String| Err(Status::conflict_on("", "pods/binding", name, &why));
        let unreadable = || Status::internal(format!("pods {name:?} cannot be decoded"));
        let mut cut: PodParts<'_> = serde_json::from_slice(&pod.bytes).map_err(|_| unreadable())?;
        let mut metadata: Map<String, Value> = serde_json::from_str(cut.metadata.get()).map_err(|_| unreadable())?;
        if metadata.contains_key("deletionTimestamp") {
            return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        if let Some(assigned) = pod.fields.get(kinds::POD_NODE_NAME).filter(|assigned| !assigned.is_empty()) {
            return refuse(format!("pod {name} is already assigned to node {assigned:?}"));
        }
        if cut.spec.get("schedulingGates").is_some_and(|gates| gates.get().contains('{')) {
            return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        self.merge_metadata(&mut metadata, body, node);
        let mut conditions: Value = cut
            .status
            .get("conditions")
            .map_or(Ok(Value::Null), |raw| serde_json::from_str(raw.get()))
            .map_err(|_| unreadable())?;
        pods::set_scheduled(&mut conditions, self.now);
        let node_text = raw(&json!(node));
        let conditions_text = raw(&conditions);
        cut.spec.insert("nodeName", &node_text);
        cut.status.insert("conditions", &conditions_text);
        if self.settings.gates.enabled(Gate::ClearingNominatedNodeNameAfterBinding) {
            cut.status.remove("nominatedNodeName");
        }
        if !dry_run {
            let object = self.bound(&pod, node, &metadata, &cut);
            self.replace_with(&pod, object);
        }
        Ok(())
    }

    /// Encodes the bound pod with the next resource version.
    fn bound(&self, pod: &Arc<Object>, node: &str, metadata: &Map<String, Value>, cut: &PodParts<'_>) -> Object {
        let version = self.version + 1;
        let mut rest = Vec::with_capacity(pod.bytes.len() + 128);
        append_members(&mut rest, "spec", &cut.spec);
        append_members(&mut rest, "status", &cut.status);
        let members = text_of(Some(metadata), |key| key != "resourceVersion");
        let mut fields = pod.fields.clone();
        fields[kinds::POD_NODE_NAME] = node.into();
        fields[kinds::POD_HOST] = node.into();
        if self.settings.gates.enabled(Gate::ClearingNominatedNodeNameAfterBinding) {
            fields[kinds::POD_NOMINATED] = "".into();
        }
        Object {
            kind: &PODS,
            key: pod.key.clone(),
            uid: pod.uid.clone(),
            version,
            labels: super::object::labels_of(metadata.get("labels"), Some(pod)),
            fields,
            bytes: assemble(&PODS, version, &members, &rest),
            raw: false,
        }
    }

    /// Merges the binding's annotations and labels, and the node's topology labels, into the pod's metadata.
    fn merge_metadata(&self, metadata: &mut Map<String, Value>, body: &Value, node: &str) {
        let has_labels = self.settings.gates.enabled(Gate::PodTopologyLabelsAdmission);
        let labels = body["metadata"]["labels"].as_object().filter(|_| has_labels);
        let mut labels: Map<String, Value> = labels.cloned().unwrap_or_default();
        // `plugin/pkg/admission/podtopologylabels/admission.go#Plugin.admitBinding` ignores a target without a kind.
        if has_labels
            && body["target"]["kind"] == "Node"
            && let Some(node) = self.find(&NODES, node)
        {
            for key in TOPOLOGY_LABELS {
                if let Some(value) = node.label(key) {
                    labels.insert(key.to_owned(), json!(value));
                }
            }
        }
        let annotations = body["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        for (field, entries) in [("labels", labels), ("annotations", annotations)] {
            if entries.is_empty() {
                continue;
            }
            let slot = metadata.entry(field).or_insert_with(|| json!({}));
            if !slot.is_object() {
                *slot = json!({});
            }
            if let Some(map) = slot.as_object_mut() {
                map.extend(entries);
            }
        }
    }
}

/// Returns the name of the node that a binding targets. As in upstream, the error has no `reason`.
/// Follows `pkg/apis/core/validation/validation.go#ValidatePodBinding @v1.36.3`.
fn target(body: &Value) -> Result<&str, Status> {
    let kind = body["target"]["kind"].as_str().unwrap_or_default();
    let name = body["target"]["name"].as_str().unwrap_or_default();
    let mut errors = Vec::new();
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported("target.kind", &json!(kind), &["Node", "<empty>"]));
    }
    if name.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    if errors.is_empty() { Ok(name) } else { Err(Status::unknown(aggregate(&errors))) }
}

/// Checks the pod against the UID and the resource version in the binding, if the binding has them.
/// Follows `apiserver/pkg/storage/interfaces.go#Preconditions.Check @v1.36.3`.
fn check_precondition(pod: &Object, body: &Value) -> Result<(), Status> {
    let (uid, version) = (meta::text(body, "uid"), meta::text(body, "resourceVersion"));
    let why = if !uid.is_empty() && *uid != *pod.uid {
        format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", pod.uid)
    } else if !version.is_empty() && version != pod.version.to_string() {
        format!(
            "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {}",
            pod.version
        )
    } else {
        return Ok(());
    };
    let text = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: {why}",
        pod.key
    );
    Err(Status::conflict(&PODS, pod.name(), &text))
}

fn raw(value: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("JSON values always serialise")
}

fn append_members(out: &mut Vec<u8>, name: &str, members: &Members<'_>) {
    out.push(b',');
    append(out, name);
    out.extend_from_slice(b":{");
    for (at, (key, value)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        append(out, key);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    out.push(b'}');
}
