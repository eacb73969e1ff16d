//! `VolumeRestrictions`, which is not implemented yet: pods whose volumes may conflict with other pods on a node are not
//! scheduled.
//!
//! Follows `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go @v1.36.3` in deciding which pods need the
//! plugin.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;

use super::event::{hint, unexpected};
use super::unsupported::{Missing, Unsupported, not_supported, sign_volumes};
use crate::framework::{CycleContext, EventRegistration, Handle, PluginError, QueueingHint, Registration, SignOutcome};
use crate::k8s::VolumeSource;
use crate::listers::Lister;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, Object, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "VolumeRestrictions";

/// In-line volume sources that several pods on a node cannot always use at the same time.
/// Follows `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go#needsRestrictionsCheck @v1.36.3`.
const EXCLUSIVE_DISKS: [&str; 4] = ["gcePersistentDisk", "awsElasticBlockStore", "rbd", "iscsi"];

struct VolumeRestrictions {
    claims: Lister<PersistentVolumeClaim>,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Unsupported::new(VolumeRestrictions { claims: handle.lister()? });
    Ok(Registration::new(NAME).events(&plugin).pre_filter(&plugin).filter(&plugin).sign(&plugin))
}

impl Missing for VolumeRestrictions {
    const NAME: &'static str = NAME;

    fn requirement(&self, cx: &CycleContext<'_>) -> Option<Cow<'static, str>> {
        let volumes = &cx.pod.pod().spec.volumes;
        let mut exclusive = volumes.iter().any(|volume| {
            matches!(&volume.source, VolumeSource::Other { kind, .. } if EXCLUSIVE_DISKS.contains(&kind.as_str()))
        });
        for volume in volumes {
            let VolumeSource::PersistentVolumeClaim { claim_name, .. } = &volume.source else { continue };
            match self.claims.get_in(cx.pod.namespace(), claim_name) {
                None => return Some(format!("persistentvolumeclaim \"{claim_name}\" not found").into()),
                Some(claim) => exclusive |= is_for_one_pod(&claim),
            }
        }
        exclusive.then(|| not_supported(NAME, "ReadWriteOncePod claims or exclusive disks"))
    }

    fn sign(&self, pod: &PodInfo) -> SignOutcome {
        sign_volumes(pod, NAME)
    }

    fn events(self: Arc<Self>) -> Vec<EventRegistration> {
        let claim_added = ClusterEvent::new(EventResource::PersistentVolumeClaim, ActionType::ADD);
        vec![EventRegistration::with_hint(claim_added, after_claim_added)]
    }
}

fn is_for_one_pod(claim: &PersistentVolumeClaim) -> bool {
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    modes.iter().any(|mode| mode == "ReadWriteOncePod")
}

/// Returns the hint for an added claim.
/// Follows
/// `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go#isSchedulableAfterPersistentVolumeClaimAdded
/// @v1.36.3`.
fn after_claim_added(pod: &PodInfo, objects: &EventObjects) -> Result<QueueingHint, PluginError> {
    let claim = objects.new.as_ref().and_then(Object::downcast::<PersistentVolumeClaim>);
    let claim = claim.ok_or_else(|| unexpected("a claim"))?;
    let key = crate::k8s::object_key(&claim.metadata);
    let used = pod.claims().iter().any(|used| **used == *key);
    Ok(hint(used))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::needless_pass_by_value, reason = "drivers take what fixtures build")]

    use serde_json::{Value, json};

    use super::*;
    use crate::framework::Verdict;
    use crate::testing::{Harness, PodFixture, node, pod};

    fn with_volume(volume: Value) -> PodFixture {
        pod("p").set("spec.volumes", json!([volume]))
    }

    fn claim(name: &str, mode: &str) -> Arc<PersistentVolumeClaim> {
        let claim = json!({"metadata": {"namespace": "default", "name": name}, "spec": {"accessModes": [mode]}});
        Arc::new(serde_json::from_value(claim).expect("a claim"))
    }

    fn check(pod: &PodFixture, expected: &Verdict) {
        let harness = Harness::new(factory);
        harness.handle.listers().put(claim("shared", "ReadWriteOnce"));
        harness.handle.listers().put(claim("own", "ReadWriteOncePod"));
        harness.check_filter(pod, node("n"), expected);
    }

    #[test]
    fn exclusive_volumes_are_rejected() {
        let rejected = || Verdict::unresolvable(not_supported(NAME, "ReadWriteOncePod claims or exclusive disks"));
        check(&pod("p"), &Verdict::Pass);
        check(&with_volume(json!({"name": "v", "emptyDir": {}})), &Verdict::Pass);
        check(&with_volume(json!({"name": "v", "iscsi": {"iqn": "x"}})), &rejected());
        check(&with_volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": "shared"}})), &Verdict::Pass);
        check(&with_volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": "own"}})), &rejected());
        check(
            &with_volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": "x"}})),
            &Verdict::unresolvable("persistentvolumeclaim \"x\" not found"),
        );
    }

    #[test]
    fn added_claim_of_the_pod_requeues() {
        let harness = Harness::new(factory);
        assert_eq!(harness.events(), ["PersistentVolumeClaimAdd"]);
        let waiting = with_volume(json!({"name": "v", "persistentVolumeClaim": {"claimName": "x"}}));
        let check = |name: &str, expected| {
            let added = Object::Other(claim(name, "ReadWriteOnce"));
            assert_eq!(harness.hint(&waiting, 0, None, Some(added)), expected);
        };
        check("x", QueueingHint::Queue);
        check("y", QueueingHint::Skip);
    }
}
