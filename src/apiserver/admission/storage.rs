//! Admission for storage: default storage classes, and finalizers that prevent the deletion of claims and volumes in use.
//!
//! Follows `plugin/pkg/admission/storage/storageclass/setdefault/admission.go#claimDefaulterPlugin.Admit` and
//! `plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go @v1.36.3`.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::apiserver::kinds::STORAGE_CLASSES;
use crate::apiserver::meta;
use crate::apiserver::store::State;
use crate::apiserver::strategy::add_finalizer;

const IS_DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// Annotation that named a claim's class before the field `storageClassName` existed.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// Sets a claim's class to the newest default class, unless the claim has a class, even an empty one.
pub(super) fn default_class(state: &State, claim: &mut Value) {
    let asks = !claim["spec"]["storageClassName"].is_null() || !claim["metadata"]["annotations"][BETA_CLASS].is_null();
    if asks {
        return;
    }
    let classes = state.shelf(&STORAGE_CLASSES).objects.values().map(|class| (class.name().to_owned(), class.value()));
    let defaults =
        classes.filter(|(_, class)| IS_DEFAULT.iter().any(|key| class["metadata"]["annotations"][key] == "true"));
    let newest =
        defaults.min_by_key(|(name, class)| (Reverse(meta::text(class, "creationTimestamp").to_owned()), name.clone()));
    if let Some((name, _)) = newest {
        meta::child(claim, "spec").insert("storageClassName".to_owned(), json!(name));
    }
}

pub(super) fn protect_claim(claim: &mut Value) {
    add_finalizer(meta::metadata(claim), "finalizers", "kubernetes.io/pvc-protection");
}

pub(super) fn protect_volume(volume: &mut Value) {
    add_finalizer(meta::metadata(volume), "finalizers", "kubernetes.io/pv-protection");
}
