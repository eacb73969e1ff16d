//! Allocation of service addresses, on a server that is [`exact`](super::Options::exact).
//!
//! Follows `pkg/registry/core/service/storage/alloc.go#Allocators.allocateCreate @v1.36.3`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kinds::{Kind, SERVICES};
use super::meta::{self, child};
use super::store::State;

impl State {
    /// Sets the address of a service that is about to be stored. The first of these that exists is used: the address in
    /// `value`, the address in `old` (the version before), a free address in upstream's default range.
    pub(super) fn give_address(&self, kind: &Kind, value: &mut Value, old: Option<&Value>) {
        if !self.settings.exact || kind.slot != SERVICES.slot {
            return;
        }
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
        let defaults = [
            ("clusterIPs", json!([address])),
            ("ipFamilies", json!(["IPv4"])),
            ("ipFamilyPolicy", json!("SingleStack")),
        ];
        for (key, value) in defaults {
            if spec.get(key).is_none_or(meta::is_empty) {
                spec.insert(key.to_owned(), value);
            }
        }
    }

    fn free_address(&self) -> String {
        let services = self.shelf(&SERVICES).objects.values();
        let used: BTreeSet<String> =
            services.filter_map(|service| Some(service.field("spec.clusterIP")?.to_owned())).collect();
        let mut addresses = (1..u16::MAX).map(|number| format!("10.0.{}.{}", number >> 8, number & 0xff));
        addresses.find(|address| !used.contains(address)).unwrap_or_default()
    }
}
