//! What a real server keeps of an object though no scheduler can tell: defaults of fields that nobody schedules by, and what
//! Go writes of fields that are empty.
//!
//! Only done where [`Options::exact`](super::Options) asks for it, which a server for kubectl does.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::kinds::{
    CSI_DRIVERS, DAEMON_SETS, JOBS, Kind, PERSISTENT_VOLUMES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, SECRETS,
    SERVICES,
};
use super::meta::child;
use super::store::State;
use super::{meta, schema};

impl State {
    /// Completes an object that is about to be stored; `old` is the version before.
    pub(super) fn complete(&self, kind: &Kind, value: &mut Value, old: Option<&Value>) {
        if !self.settings.exact {
            return;
        }
        if kind.slot == JOBS.slot {
            job(value);
        } else if kind.slot == SERVICES.slot {
            self.service(value, old);
        }
        show(kind, value, old);
    }

    /// Gives a service an address of the range that is upstream's default.
    fn service(&self, value: &mut Value, old: Option<&Value>) {
        let spec = child(value, "spec");
        if spec.get("type").and_then(Value::as_str) == Some("ExternalName") {
            return;
        }
        let own = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default();
        let kept = old.and_then(|old| old["spec"]["clusterIP"].as_str()).unwrap_or_default();
        let address = match (own, kept) {
            ("", "") => self.free_address(),
            ("", kept) => kept.to_owned(),
            (own, _) => own.to_owned(),
        };
        spec.insert("clusterIP".to_owned(), json!(address));
        default(spec, "clusterIPs", json!([address]));
        default(spec, "ipFamilies", json!(["IPv4"]));
        default(spec, "ipFamilyPolicy", json!("SingleStack"));
    }

    fn free_address(&self) -> String {
        let services = self.shelf(&SERVICES).objects.values();
        let used: BTreeSet<String> =
            services.filter_map(|service| Some(service.field("spec.clusterIP")?.to_owned())).collect();
        let mut addresses = (1..u16::MAX).map(|number| format!("10.0.{}.{}", number >> 8, number & 0xff));
        addresses.find(|address| !used.contains(address)).unwrap_or_default()
    }
}

/// Completes an object by what Go's decoder and encoder do by themselves; the rest is the storage's work.
pub(super) fn show(kind: &Kind, value: &mut Value, old: Option<&Value>) {
    let is = |other: &Kind| kind.slot == other.slot;
    match () {
        () if is(&SECRETS) => secret(value),
        () if is(&CSI_DRIVERS) => csi_driver(child(value, "spec")),
        () if is(&RESOURCE_CLAIMS) => device_requests(child(value, "spec")),
        () if is(&RESOURCE_CLAIM_TEMPLATES) => {
            child(value, "spec")
                .get_mut("spec")
                .and_then(Value::as_object_mut)
                .map(device_requests)
                .unwrap_or_default();
        }
        () if is(&DAEMON_SETS) => daemon_set(value, old),
        () if is(&PERSISTENT_VOLUMES) => {
            let path = child(value, "spec").get_mut("hostPath").and_then(Value::as_object_mut);
            path.into_iter().for_each(|path| default(path, "type", json!("")));
        }
        () => {}
    }
    schema::as_go_writes(kind.storage(), value);
}

/// Sets `key` unless it is there.
fn default(map: &mut Map<String, Value>, key: &str, value: Value) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value);
    }
}

/// Follows `pkg/apis/core/v1/defaults.go#SetDefaults_Secret` and `conversion.go#Convert_v1_Secret_To_core_Secret @v1.36.3`.
fn secret(value: &mut Value) {
    let texts = value.as_object_mut().and_then(|map| map.remove("stringData"));
    for (key, text) in texts.iter().filter_map(Value::as_object).flatten() {
        let bytes = k8s_openapi::ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
        child(value, "data").insert(key.clone(), json!(bytes));
    }
    if meta::is_empty(&value["type"]) {
        value["type"] = json!("Opaque");
    }
}

/// Follows `pkg/apis/storage/v1/defaults.go#SetDefaults_CSIDriver @v1.36.3`.
fn csi_driver(spec: &mut Map<String, Value>) {
    default(spec, "attachRequired", json!(true));
    for key in ["podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"] {
        default(spec, key, json!(false));
    }
    default(spec, "fsGroupPolicy", json!("ReadWriteOnceWithFSType"));
    if spec.get("volumeLifecycleModes").is_none_or(meta::is_empty) {
        spec.insert("volumeLifecycleModes".to_owned(), json!(["Persistent"]));
    }
}

/// Follows `pkg/apis/resource/v1/defaults.go#SetDefaults_ExactDeviceRequest @v1.36.3`.
fn device_requests(spec: &mut Map<String, Value>) {
    let requests =
        spec.get_mut("devices").and_then(|devices| devices.get_mut("requests")).and_then(Value::as_array_mut);
    for request in requests.into_iter().flatten() {
        if let Some(exactly) = request.get_mut("exactly").and_then(Value::as_object_mut) {
            device_count(exactly);
        }
        let alternatives = request.get_mut("firstAvailable").and_then(Value::as_array_mut);
        alternatives.into_iter().flatten().filter_map(Value::as_object_mut).for_each(device_count);
    }
}

fn device_count(request: &mut Map<String, Value>) {
    if request.get("allocationMode").is_none_or(meta::is_empty) {
        request.insert("allocationMode".to_owned(), json!("ExactCount"));
    }
    if request["allocationMode"] == "ExactCount" && request.get("count").is_none_or(meta::is_empty) {
        request.insert("count".to_owned(), json!(1));
    }
}

/// Follows `pkg/apis/batch/v1/defaults.go#SetDefaults_Job @v1.36.3`, which runs again on what is stored.
fn job(value: &mut Value) {
    let labels = value["spec"]["template"]["metadata"]["labels"].clone();
    if meta::is_empty(&value["metadata"]["labels"]) && !meta::is_empty(&labels) {
        meta::metadata(value).insert("labels".to_owned(), labels);
    }
}

/// The count of templates that version 1 keeps in an annotation.
/// Follows `pkg/apis/apps/v1/conversion.go#Convert_apps_DaemonSet_To_v1_DaemonSet @v1.36.3`.
fn daemon_set(value: &mut Value, old: Option<&Value>) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let count = old.map_or(1, |old| {
        let before = old["metadata"]["annotations"][COUNT].as_str().and_then(|text| text.parse().ok()).unwrap_or(1_i64);
        before + i64::from(old["spec"]["template"] != value["spec"]["template"])
    });
    let annotations = meta::metadata(value).entry("annotations").or_insert_with(|| json!({}));
    if let Some(map) = annotations.as_object_mut() {
        map.insert(COUNT.to_owned(), json!(count.to_string()));
    }
}
