//! Validation of the fields that scheduling depends on, with upstream's messages.
//!
//! Follows `pkg/apis/core/validation/validation.go @v1.36.3` and the validation of the other API groups.
//!
//! This server accepts the following, which kube-apiserver rejects. The requests are in
//! `tests/controlplane/embedded/replay/scripts`, in the lines that begin with `~`.
//!
//! - Containers: invalid environment, mounts, probes, lifecycle hooks, security contexts and resize policies.
//! - Pods: invalid security contexts, shared process namespaces, contents of volumes that scheduling does not read, and claim
//!   names in the status.
//! - Workloads: invalid rollout strategies, `backoffLimitPerIndex`, `maxFailedIndexes` and `managedBy` of jobs, unknown time
//!   zones, invalid counts in the status, and updates of immutable fields of stateful sets and jobs.
//! - Services: changed addresses, and ports of nodes outside the cluster's range.
//! - Config maps, secrets, controller revisions and namespaces: errors outside metadata.
//! - Devices: invalid CEL expressions and attributes, and updates of immutable fields.
//! - Persistent volume claims: expansion that the storage class does not allow.
//!
//! `Warning` headers are sent for unknown and duplicate fields only.

mod address;
mod batch;
mod budget;
mod classes;
mod container;
mod device;
mod drivers;
mod event;
mod field;
mod limits;
mod metadata;
mod node;
mod node_annotations;
mod pod;
mod pod_update;
mod resources;
mod schedule;
mod scheduling;
mod service;
mod storage;
mod volume;
mod volumes;
mod workload;

use serde_json::Value;

use field::{Errors, Path, non_negative};

use super::kinds::{
    EVENTS, Kind, LEASES, LIMIT_RANGES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS,
    PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, SERVICES, STORAGE_CLASSES,
};
use super::object::Object;
use super::origin::Origin;
use super::part::Part;
use crate::apimachinery::FieldError;
use crate::config::FeatureGates;

/// Returns the errors of a new object.
pub(super) fn on_create(gates: &FeatureGates, kind: &Kind, value: &Value, origin: Origin) -> Vec<FieldError> {
    let mut errors = Errors::new(gates);
    if origin == Origin::Dump {
        metadata::path_segment(value, &mut errors);
        return errors.into_list();
    }
    if kind.slot == EVENTS.slot {
        errors.extend(event::always(kind, value));
        if !kind.is_view() {
            metadata::on_create(kind, value, &mut errors);
            errors.extend(event::on_create(value));
        }
    } else {
        metadata::on_create(kind, value, &mut errors);
        check_new(kind, value, &mut errors);
    }
    if errors.is_empty() {
        metadata::of_any_kind(kind, value, &mut errors);
    }
    errors.into_list()
}

/// Checks a new object that is not an event, except its metadata.
fn check_new(kind: &Kind, value: &Value, errors: &mut Errors) {
    if kind.slot == PODS.slot {
        pod::on_create(value, errors);
    } else if kind.slot == NODES.slot {
        node::check(value, errors);
    } else if kind.slot == PRIORITY_CLASSES.slot {
        classes::on_priority_class(value, errors);
    } else if kind.slot == STORAGE_CLASSES.slot {
        storage::on_class(value, errors);
    } else if kind.slot == POD_DISRUPTION_BUDGETS.slot {
        budget::check(value, errors);
    } else if kind.slot == PERSISTENT_VOLUMES.slot {
        volume::on_volume(value, errors);
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        volume::on_claim(&value["spec"], Path::Root("spec"), errors);
    } else if kind.slot == LEASES.slot {
        lease(value, errors);
    } else if kind.slot == LIMIT_RANGES.slot {
        limits::on_range(value, errors);
    } else if kind.slot == RUNTIME_CLASSES.slot {
        limits::on_runtime_class(value, errors);
    } else if kind.slot == SERVICES.slot {
        service::check(value, errors);
    } else {
        workload::on_create(kind, value, errors);
        drivers::on_create(kind, value, errors);
        device::on_create(kind, value, errors);
    }
}

/// Returns the errors of an updated object. `part` is the part of the object that the request writes.
pub(super) fn on_update(
    gates: &FeatureGates,
    kind: &Kind,
    part: Part,
    value: &Value,
    before: &Value,
    old: &Object,
) -> Vec<FieldError> {
    let mut errors = Errors::new(gates);
    if kind.slot == EVENTS.slot {
        metadata::on_update_of_any_kind(value, before, &mut errors);
        errors.extend(event::always(kind, value));
        if !kind.is_view() {
            metadata::changed(value, before, &mut errors);
            errors.extend(event::on_update(value, before));
        }
    } else {
        metadata::on_update(kind, value, before, &mut errors);
        check_changed(kind, part, value, before, old, &mut errors);
    }
    errors.into_list()
}

/// Checks an updated object that is not an event, except its metadata.
fn check_changed(kind: &Kind, part: Part, value: &Value, before: &Value, old: &Object, errors: &mut Errors) {
    if kind.slot == PODS.slot {
        match part {
            Part::Main | Part::Finalizers => pod_update::check(value, before, errors),
            Part::Status => pod_update::check_status(value, before, old.field("spec.nodeName"), errors),
        }
    } else if part == Part::Status {
        if kind.slot == NODES.slot {
            node::check_update(value, before, errors);
        } else if kind.slot == POD_DISRUPTION_BUDGETS.slot {
            budget::check_status(value, errors);
        }
    } else if kind.slot == NODES.slot {
        // Upstream also runs the checks for new nodes.
        metadata::on_create(kind, value, errors);
        node::check(value, errors);
        node::check_update(value, before, errors);
    } else if kind.slot == PRIORITY_CLASSES.slot {
        classes::on_priority_class_update(value, before, errors);
    } else if kind.slot == POD_DISRUPTION_BUDGETS.slot {
        budget::check(value, errors);
    } else if kind.slot == STORAGE_CLASSES.slot {
        storage::on_class_update(value, before, errors);
    } else if kind.slot == PERSISTENT_VOLUMES.slot {
        // Upstream validates the volume on its own and again as part of the update, so these errors occur twice.
        volume::on_volume(value, errors);
        volume::on_volume(value, errors);
        storage::on_volume_update(value, before, errors);
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        storage::on_claim_update(value, before, errors);
    } else if kind.slot == LEASES.slot {
        lease(value, errors);
    } else if kind.slot == LIMIT_RANGES.slot {
        limits::on_range(value, errors);
    } else if kind.slot == RUNTIME_CLASSES.slot {
        limits::on_runtime_class_update(value, before, errors);
    } else if kind.slot == SERVICES.slot {
        service::check_update(value, before, errors);
    } else {
        workload::on_update(kind, value, before, errors);
        drivers::on_update(kind, value, before, errors);
    }
}

/// Checks the spec of a lease. Follows `pkg/apis/coordination/validation/validation.go#ValidateLeaseSpec @v1.36.3`.
fn lease(lease: &Value, errors: &mut Errors) {
    let (spec, path) = (&lease["spec"], Path::Root("spec"));
    let seconds = &spec["leaseDurationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.push(FieldError::invalid(path.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    non_negative(spec, "leaseTransitions", path, errors);
}
