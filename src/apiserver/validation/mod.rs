//! Validation, as far as scheduling depends on it, with upstream's texts.
//!
//! Follows `pkg/apis/core/validation/validation.go` and its siblings `@v1.36.3`.
//!
//! What the real server refuses and this one takes, as `tests/controlplane/embedded/replay/scripts` have it (their lines that begin
//! with `~`):
//!
//! - of containers: environment, mounts, probes, life cycle, security contexts, resize policies, exit codes of restart rules;
//!   of pods: security contexts and shared process namespaces, and what is in volumes that scheduling does not look into;
//! - of workloads: roll-out strategies, indexes and other managers of jobs, time zones, status counts, changes of a stateful
//!   set's or a job's fixed members;
//! - of services, configuration maps, secrets, controller revisions and namespaces: everything but metadata;
//! - of devices: expressions, attributes, and changes of what is fixed; of a pod's status: its claims' names;
//! - a claim that grows although its class does not let it, and an unreadable annotation that nobody reads any more.
//!
//! Advice in `Warning` headers that is not about unknown or repeated members is not given.

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
mod pod;
mod pod_update;
mod resources;
mod schedule;
mod scheduling;
mod storage;
mod volume;
mod volumes;
mod workload;

use serde_json::Value;

use field::{Errors, Path, non_negative};

use super::kinds::{
    EVENTS, Kind, LEASES, LIMIT_RANGES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS,
    PODS, PRIORITY_CLASSES, RUNTIME_CLASSES, STORAGE_CLASSES,
};
use super::object::Object;
use super::origin::Origin;
use super::part::Part;
use crate::apimachinery::FieldError;

/// What is wrong with a new object.
pub(super) fn on_create(kind: &Kind, value: &Value, origin: Origin) -> Errors {
    if origin == Origin::Dump {
        return metadata::path_segment(value);
    }
    if kind.slot == EVENTS.slot {
        let mut errors = event::always(kind, value);
        if !kind.is_view() {
            errors.extend(metadata::on_create(kind, value));
            errors.extend(event::on_create(value));
        }
        return if errors.is_empty() { metadata::of_any_kind(kind, value) } else { errors };
    }
    let mut errors = metadata::on_create(kind, value);
    if kind.slot == PODS.slot {
        pod::on_create(value, &mut errors);
    } else if kind.slot == NODES.slot {
        node::check(value, &mut errors);
    } else if kind.slot == PRIORITY_CLASSES.slot {
        classes::on_priority_class(value, &mut errors);
    } else if kind.slot == STORAGE_CLASSES.slot {
        storage::on_class(value, &mut errors);
    } else if kind.slot == POD_DISRUPTION_BUDGETS.slot {
        budget::check(value, &mut errors);
    } else if kind.slot == PERSISTENT_VOLUMES.slot {
        volume::on_volume(value, &mut errors);
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        volume::on_claim(&value["spec"], Path::Root("spec"), &mut errors);
    } else if kind.slot == LEASES.slot {
        lease(value, &mut errors);
    } else if kind.slot == LIMIT_RANGES.slot {
        limits::on_range(value, &mut errors);
    } else if kind.slot == RUNTIME_CLASSES.slot {
        limits::on_runtime_class(value, &mut errors);
    } else {
        workload::on_create(kind, value, &mut errors);
        drivers::on_create(kind, value, &mut errors);
        device::on_create(kind, value, &mut errors);
    }
    if errors.is_empty() { metadata::of_any_kind(kind, value) } else { errors }
}

/// What is wrong with a changed object.
pub(super) fn on_update(kind: &Kind, part: Part, value: &Value, before: &Value, old: &Object) -> Errors {
    if kind.slot == EVENTS.slot {
        let mut errors = metadata::on_update_of_any_kind(value, before);
        errors.extend(event::always(kind, value));
        if !kind.is_view() {
            errors.extend(metadata::changed(value, before));
            errors.extend(event::on_update(value, before));
        }
        return errors;
    }
    let mut errors = metadata::on_update(kind, value, before);
    if kind.slot == PODS.slot {
        match part {
            Part::Main | Part::Finalizers => pod_update::check(value, before, &mut errors),
            Part::Status => pod_update::check_status(value, before, old.field("spec.nodeName"), &mut errors),
        }
    } else if part == Part::Status {
        if kind.slot == NODES.slot {
            node::check_update(value, before, &mut errors);
        } else if kind.slot == POD_DISRUPTION_BUDGETS.slot {
            budget::check_status(value, &mut errors);
        }
    } else if kind.slot == NODES.slot {
        // Nodes are asked all that new ones are asked, too.
        errors.extend(metadata::on_create(kind, value));
        node::check(value, &mut errors);
        node::check_update(value, before, &mut errors);
    } else if kind.slot == PRIORITY_CLASSES.slot {
        classes::on_priority_class_update(value, before, &mut errors);
    } else if kind.slot == POD_DISRUPTION_BUDGETS.slot {
        budget::check(value, &mut errors);
    } else if kind.slot == STORAGE_CLASSES.slot {
        storage::on_class_update(value, before, &mut errors);
    } else if kind.slot == PERSISTENT_VOLUMES.slot {
        // Both the kind's rules and those on its changes ask.
        volume::on_volume(value, &mut errors);
        volume::on_volume(value, &mut errors);
        storage::on_volume_update(value, before, &mut errors);
    } else if kind.slot == PERSISTENT_VOLUME_CLAIMS.slot {
        storage::on_claim_update(value, before, &mut errors);
    } else if kind.slot == LEASES.slot {
        lease(value, &mut errors);
    } else if kind.slot == LIMIT_RANGES.slot {
        limits::on_range(value, &mut errors);
    } else if kind.slot == RUNTIME_CLASSES.slot {
        limits::on_runtime_class_update(value, before, &mut errors);
    } else {
        workload::on_update(kind, value, before, &mut errors);
        drivers::on_update(kind, value, before, &mut errors);
    }
    errors
}

/// Follows `pkg/apis/coordination/validation/validation.go#ValidateLeaseSpec @v1.36.3`.
fn lease(lease: &Value, errors: &mut Errors) {
    let (spec, path) = (&lease["spec"], Path::Root("spec"));
    let seconds = &spec["leaseDurationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.push(FieldError::invalid(path.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    non_negative(spec, "leaseTransitions", path, errors);
}
