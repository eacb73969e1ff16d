//! Volume sources as Go would write them.
//!
//! A pod keeps a volume source as the JSON in which it was received. This module puts the fields into the order of Go's structs,
//! leaves out the fields that Go leaves out, and adds the fields that Go always writes.
//! Follows `api/core/v1/types.go#VolumeSource @v1.36.3`.

use serde_json::Value;

use crate::go::json;
use crate::k8s::{Quantity, VolumeSource};

/// The contribution of a volume to a signature.
pub(super) enum Signed {
    /// The volume contributes this text.
    Text(String),
    /// The volume contributes nothing.
    LeftOut,
    /// The volume cannot be signed, because its source is not kept.
    Unknown,
}

/// The condition under which Go writes a field, with the text for an absent field.
#[derive(Clone, Copy)]
enum Presence {
    /// Go always writes the field. An absent field is written as this JSON.
    Always(&'static str),
    /// Go writes the field unless it is absent, `null`, `false`, 0 or empty.
    NonZero,
    /// Go writes the field unless it is absent or `null`.
    Set,
}

/// The type of a field's value.
#[derive(Clone, Copy)]
enum Kind {
    /// A string, a number, a boolean, a map of strings, or a list of strings.
    Plain,
    /// A quantity, written in canonical form.
    Quantity,
    /// A struct with these fields.
    Struct(&'static [Field]),
    /// A list of structs with these fields.
    Structs(&'static [Field]),
}

type Field = (&'static str, Presence, Kind);

const fn text(name: &'static str) -> Field {
    (name, Presence::Always("\"\""), Kind::Plain)
}

const fn number(name: &'static str) -> Field {
    (name, Presence::Always("0"), Kind::Plain)
}

const fn list(name: &'static str) -> Field {
    (name, Presence::Always("null"), Kind::Plain)
}

const fn some(name: &'static str) -> Field {
    (name, Presence::NonZero, Kind::Plain)
}

const fn set(name: &'static str) -> Field {
    (name, Presence::Set, Kind::Plain)
}

const fn set_struct(name: &'static str, fields: &'static [Field]) -> Field {
    (name, Presence::Set, Kind::Struct(fields))
}

const fn some_structs(name: &'static str, fields: &'static [Field]) -> Field {
    (name, Presence::NonZero, Kind::Structs(fields))
}

const REFERENCE: &[Field] = &[some("name")];
const SECRET_REF: Field = set_struct("secretRef", REFERENCE);
const KEY_TO_PATH: &[Field] = &[text("key"), text("path"), set("mode")];
const FIELD_REF: &[Field] = &[some("apiVersion"), text("fieldPath")];
const RESOURCE_FIELD_REF: &[Field] =
    &[some("containerName"), text("resource"), ("divisor", Presence::Always("\"0\""), Kind::Quantity)];
const DOWNWARD_FILE: &[Field] =
    &[text("path"), set_struct("fieldRef", FIELD_REF), set_struct("resourceFieldRef", RESOURCE_FIELD_REF), set("mode")];
const CONFIG_PROJECTION: &[Field] = &[some("name"), some_structs("items", KEY_TO_PATH), set("optional")];
const TOKEN_PROJECTION: &[Field] = &[some("audience"), set("expirationSeconds"), text("path")];
const REQUIREMENT: &[Field] = &[text("key"), text("operator"), some("values")];
const LABEL_SELECTOR: &[Field] = &[some("matchLabels"), some_structs("matchExpressions", REQUIREMENT)];
const TRUST_PROJECTION: &[Field] =
    &[set("name"), set("signerName"), set_struct("labelSelector", LABEL_SELECTOR), set("optional"), text("path")];
const CERTIFICATE_PROJECTION: &[Field] = &[
    some("signerName"),
    some("keyType"),
    set("maxExpirationSeconds"),
    some("credentialBundlePath"),
    some("keyPath"),
    some("certificateChainPath"),
    some("userAnnotations"),
];
const PROJECTION: &[Field] = &[
    set_struct("secret", CONFIG_PROJECTION),
    set_struct("downwardAPI", &[some_structs("items", DOWNWARD_FILE)]),
    set_struct("configMap", CONFIG_PROJECTION),
    set_struct("serviceAccountToken", TOKEN_PROJECTION),
    set_struct("clusterTrustBundle", TRUST_PROJECTION),
    set_struct("podCertificate", CERTIFICATE_PROJECTION),
];
const DISK: &[Field] = &[text("volumeID"), some("fsType"), some("partition"), some("readOnly")];
const ISCSI: &[Field] = &[
    text("targetPortal"),
    text("iqn"),
    number("lun"),
    some("iscsiInterface"),
    some("fsType"),
    some("readOnly"),
    some("portals"),
    some("chapAuthDiscovery"),
    some("chapAuthSession"),
    SECRET_REF,
    set("initiatorName"),
];
const RBD: &[Field] = &[
    list("monitors"),
    text("image"),
    some("fsType"),
    some("pool"),
    some("user"),
    some("keyring"),
    SECRET_REF,
    some("readOnly"),
];
const CEPHFS: &[Field] =
    &[list("monitors"), some("path"), some("user"), some("secretFile"), SECRET_REF, some("readOnly")];
const QUOBYTE: &[Field] =
    &[text("registry"), text("volume"), some("readOnly"), some("user"), some("group"), some("tenant")];
const AZURE_DISK: &[Field] =
    &[text("diskName"), text("diskURI"), set("cachingMode"), set("fsType"), set("readOnly"), set("kind")];
const SCALE_IO: &[Field] = &[
    text("gateway"),
    text("system"),
    ("secretRef", Presence::Always("null"), Kind::Struct(REFERENCE)),
    some("sslEnabled"),
    some("protectionDomain"),
    some("storagePool"),
    some("storageMode"),
    some("volumeName"),
    some("fsType"),
    some("readOnly"),
];
const STORAGE_OS: &[Field] =
    &[some("volumeName"), some("volumeNamespace"), some("fsType"), some("readOnly"), SECRET_REF];
const CSI: &[Field] = &[
    text("driver"),
    set("readOnly"),
    set("fsType"),
    some("volumeAttributes"),
    set_struct("nodePublishSecretRef", REFERENCE),
];

/// All sources that are kept as JSON, with their fields in Go's order.
const SOURCES: &[(&str, &[Field])] = &[
    ("hostPath", &[text("path"), set("type")]),
    ("emptyDir", &[some("medium"), ("sizeLimit", Presence::Set, Kind::Quantity)]),
    ("gcePersistentDisk", &[text("pdName"), some("fsType"), some("partition"), some("readOnly")]),
    ("awsElasticBlockStore", DISK),
    ("gitRepo", &[text("repository"), some("revision"), some("directory")]),
    ("nfs", &[text("server"), text("path"), some("readOnly")]),
    ("iscsi", ISCSI),
    ("glusterfs", &[text("endpoints"), text("path"), some("readOnly")]),
    ("rbd", RBD),
    ("flexVolume", &[text("driver"), some("fsType"), SECRET_REF, some("readOnly"), some("options")]),
    ("cinder", &[text("volumeID"), some("fsType"), some("readOnly"), SECRET_REF]),
    ("cephfs", CEPHFS),
    ("flocker", &[some("datasetName"), some("datasetUUID")]),
    ("downwardAPI", &[some_structs("items", DOWNWARD_FILE), set("defaultMode")]),
    ("fc", &[some("targetWWNs"), set("lun"), some("fsType"), some("readOnly"), some("wwids")]),
    ("azureFile", &[text("secretName"), text("shareName"), some("readOnly")]),
    ("vsphereVolume", &[text("volumePath"), some("fsType"), some("storagePolicyName"), some("storagePolicyID")]),
    ("quobyte", QUOBYTE),
    ("azureDisk", AZURE_DISK),
    ("photonPersistentDisk", &[text("pdID"), some("fsType")]),
    ("projected", &[("sources", Presence::Always("null"), Kind::Structs(PROJECTION)), set("defaultMode")]),
    ("portworxVolume", &[text("volumeID"), some("fsType"), some("readOnly")]),
    ("scaleIO", SCALE_IO),
    ("storageos", STORAGE_OS),
    ("csi", CSI),
];

/// Returns the fields of source `kind`, or `None` if the API has no such source.
fn fields(kind: &str) -> Option<&'static [Field]> {
    SOURCES.iter().find(|(name, _)| *name == kind).map(|(_, fields)| *fields)
}

impl Signed {
    /// Returns the contribution of a volume with this source to a signature.
    pub(super) fn of(source: &VolumeSource) -> Self {
        match source {
            VolumeSource::Ephemeral => Self::Unknown,
            VolumeSource::Synthetic => Self::LeftOut,
            VolumeSource::None => Self::Text("{}".into()),
            VolumeSource::PersistentVolumeClaim { claim_name, read_only } => {
                let read_only = if *read_only { r#","readOnly":true"# } else { "" };
                let name = json(claim_name);
                Self::Text(format!(r#"{{"persistentVolumeClaim":{{"claimName":{name}{read_only}}}}}"#))
            }
            VolumeSource::Image { reference, pull_policy } => {
                let field = |name, value: &str| (!value.is_empty()).then(|| format!("{}:{}", json(name), json(value)));
                let fields =
                    [field("reference", reference), field("pullPolicy", pull_policy.as_deref().unwrap_or_default())];
                let fields: Vec<String> = fields.into_iter().flatten().collect();
                Self::Text(format!(r#"{{"image":{{{}}}}}"#, fields.join(",")))
            }
            VolumeSource::Other { kind, content } => Self::Text(fields(kind).map_or_else(
                || "{}".into(),
                |fields| {
                    let mut text = format!("{{{}:", json(kind));
                    write_struct(&mut text, content, fields);
                    text + "}"
                },
            )),
        }
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> String {
    json::to_string(value).expect("texts and JSON values can be written")
}

fn write_struct(text: &mut String, value: &Value, fields: &[Field]) {
    text.push('{');
    let start = text.len();
    for (name, presence, kind) in fields {
        let value = value.get(name).filter(|value| !value.is_null());
        match (value, presence) {
            (None, Presence::NonZero | Presence::Set) => continue,
            (Some(value), Presence::NonZero) if is_zero(value) => continue,
            _ => {}
        }
        if text.len() > start {
            text.push(',');
        }
        text.push_str(&json(name));
        text.push(':');
        match (value, presence) {
            (Some(value), _) => write_value(text, value, *kind),
            (None, Presence::Always(absent)) => text.push_str(absent),
            (None, _) => unreachable!("left out above"),
        }
    }
    text.push('}');
}

fn write_value(text: &mut String, value: &Value, kind: Kind) {
    match kind {
        Kind::Plain => text.push_str(&json(value)),
        Kind::Quantity => {
            let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&json(&Quantity::canonical_text(&written).unwrap_or(written)));
        }
        Kind::Struct(fields) => write_struct(text, value, fields),
        Kind::Structs(fields) => {
            text.push('[');
            for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_struct(text, item, fields);
            }
            text.push(']');
        }
    }
}

/// Whether Go treats the value as empty.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "JSON literals are easier to read when passed by value")]
    fn check(source: Value, expected: &str) {
        let mut volume = source.clone();
        volume["name"] = "v".into();
        let volume: crate::k8s::Volume = serde_json::from_value(volume).expect("a volume");
        match Signed::of(&volume.source) {
            Signed::Text(text) => assert_eq!(text, expected),
            Signed::LeftOut => panic!("{source} is left out"),
            Signed::Unknown => panic!("{source} cannot be signed"),
        }
    }

    #[test]
    fn fields_have_gos_order() {
        check(
            json!({"hostPath": {"type": "Directory", "path": "/a"}}),
            r#"{"hostPath":{"path":"/a","type":"Directory"}}"#,
        );
        check(
            json!({"gcePersistentDisk": {"readOnly": true, "partition": 0, "pdName": "d", "fsType": ""}}),
            r#"{"gcePersistentDisk":{"pdName":"d","readOnly":true}}"#,
        );
        check(
            json!({"csi": {"volumeAttributes": {"b": "2", "a": "<"}, "readOnly": false, "driver": "d", "nodePublishSecretRef": {"name": "s"}}}),
            r#"{"csi":{"driver":"d","readOnly":false,"volumeAttributes":{"a":"\u003c","b":"2"},"nodePublishSecretRef":{"name":"s"}}}"#,
        );
    }

    #[test]
    fn required_fields_are_written_and_unknown_ones_dropped() {
        check(json!({"rbd": {"color": "red"}}), r#"{"rbd":{"monitors":null,"image":""}}"#);
        check(json!({"iscsi": {"iqn": "q"}}), r#"{"iscsi":{"targetPortal":"","iqn":"q","lun":0}}"#);
        check(json!({"scaleIO": {"secretRef": null}}), r#"{"scaleIO":{"gateway":"","system":"","secretRef":null}}"#);
        check(json!({"fc": {"lun": 0, "wwids": []}}), r#"{"fc":{"lun":0}}"#);
        check(json!({"newSource": {"a": 1}}), "{}");
        check(json!({"image": {"reference": ""}}), r#"{"image":{}}"#);
        check(
            json!({"image": {"pullPolicy": "Always", "reference": "a"}}),
            r#"{"image":{"reference":"a","pullPolicy":"Always"}}"#,
        );
    }

    #[test]
    fn quantities_are_canonical() {
        check(json!({"emptyDir": {"sizeLimit": "1024Mi"}}), r#"{"emptyDir":{"sizeLimit":"1Gi"}}"#);
        check(json!({"emptyDir": {"sizeLimit": 1000}}), r#"{"emptyDir":{"sizeLimit":"1k"}}"#);
        check(json!({"emptyDir": {}}), r#"{"emptyDir":{}}"#);
    }

    #[test]
    fn projected_volumes_have_gos_field_order() {
        check(
            json!({"projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                {"configMap": {"items": [{"path": "ca.crt", "key": "ca.crt"}], "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [
                    {"fieldRef": {"fieldPath": "metadata.namespace", "apiVersion": "v1"}, "path": "namespace"},
                    {"path": "cpu", "resourceFieldRef": {"resource": "limits.cpu"}},
                ]}},
            ]}}),
            r#"{"projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}},{"path":"cpu","resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}]}}],"defaultMode":420}}"#,
        );
    }
}
