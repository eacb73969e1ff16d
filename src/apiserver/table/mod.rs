//! Tables: the columns and cells that kubectl prints for each kind.
//!
//! Follows `pkg/printers/internalversion/printers.go @v1.36.3`, and for kinds without their own columns
//! `apiserver/pkg/registry/rest/table.go#defaultTableConvertor`. Column descriptions are empty.

mod cells;
mod core;
mod events;
mod pods;
mod storage;
mod workloads;

pub(super) use cells::selector;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::accept::{Include, Table};
use super::change::ChangeKind;
use super::kinds::Kind;
use super::object::Object;

/// Definition of a table's column.
struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    /// Whether kubectl prints the column only with `-o wide`.
    wide: bool,
}

impl Column {
    const fn text(name: &'static str) -> Self {
        Self { name, kind: "string", format: "", wide: false }
    }

    const fn name(name: &'static str) -> Self {
        Self { name, kind: "string", format: "name", wide: false }
    }

    const fn number(name: &'static str) -> Self {
        Self { name, kind: "integer", format: "", wide: false }
    }

    const fn flag(name: &'static str) -> Self {
        Self { name, kind: "boolean", format: "", wide: false }
    }

    const fn wide(mut self) -> Self {
        self.wide = true;
        self
    }
}

/// Columns of a kind, and the function that returns an object's cells.
struct Layout {
    columns: &'static [Column],
    cells: fn(&Subject<'_>) -> Vec<Value>,
}

/// Object to print, in its stored form, and the time to compute ages from.
struct Subject<'a> {
    value: &'a Value,
    now: Timestamp,
}

/// Layout of kinds without their own columns,
/// `apiserver/pkg/registry/rest/table.go#NewDefaultTableConvertor @v1.36.3`.
const DEFAULT: Layout = Layout {
    columns: &[Column::name("Name"), Column { name: "Created At", kind: "date", format: "", wide: false }],
    cells: |subject| vec![subject.name(), json!(subject.text("/metadata/creationTimestamp"))],
};

fn layout(kind: &Kind) -> &'static Layout {
    match kind.plural {
        "pods" => &pods::PODS,
        "events" => &events::EVENTS,
        "nodes" => &core::NODES,
        "namespaces" => &core::NAMESPACES,
        "services" => &core::SERVICES,
        "configmaps" => &core::CONFIG_MAPS,
        "secrets" => &core::SECRETS,
        "leases" => &core::LEASES,
        "poddisruptionbudgets" => &core::BUDGETS,
        "priorityclasses" => &core::PRIORITY_CLASSES,
        "runtimeclasses" => &core::RUNTIME_CLASSES,
        "serviceaccounts" | "resourceclaimtemplates" | "deviceclasses" => &core::AGED,
        "replicationcontrollers" => &workloads::REPLICATION_CONTROLLERS,
        "replicasets" => &workloads::REPLICA_SETS,
        "deployments" => &workloads::DEPLOYMENTS,
        "statefulsets" => &workloads::STATEFUL_SETS,
        "daemonsets" => &workloads::DAEMON_SETS,
        "controllerrevisions" => &workloads::CONTROLLER_REVISIONS,
        "jobs" => &workloads::JOBS,
        "cronjobs" => &workloads::CRON_JOBS,
        "persistentvolumes" => &storage::VOLUMES,
        "persistentvolumeclaims" => &storage::CLAIMS,
        "storageclasses" => &storage::CLASSES,
        "csinodes" => &storage::CSI_NODES,
        "csidrivers" => &storage::CSI_DRIVERS,
        "volumeattachments" => &storage::ATTACHMENTS,
        "volumeattributesclasses" => &storage::ATTRIBUTES_CLASSES,
        "resourceclaims" => &storage::RESOURCE_CLAIMS,
        "resourceslices" => &storage::RESOURCE_SLICES,
        _ => &DEFAULT,
    }
}

/// Returns a table of objects with the `metadata` of their list.
pub(super) fn of<'a>(
    table: Table,
    kind: &Kind,
    metadata: &Value,
    objects: impl Iterator<Item = &'a Object>,
    now: Timestamp,
) -> Value {
    let layout = layout(kind);
    let rows: Vec<Value> = objects.map(|object| row(table, layout, kind, object, now)).collect();
    with_rows(table, metadata, &columns(layout), &rows)
}

/// Returns a table of one object with the object's resource version.
pub(super) fn of_one(table: Table, kind: &Kind, object: &Object, now: Timestamp) -> Value {
    let metadata = json!({"resourceVersion": object.version().to_string()});
    of(table, kind, &metadata, std::iter::once(object), now)
}

/// Returns the line of a watch for a change. Only the first line of a watch has the column definitions.
/// Follows `apiserver/pkg/endpoints/handlers/response.go#watchEncoder.doEncode @v1.36.3`.
pub(super) fn event(
    table: Table,
    is_first: bool,
    kind: &Kind,
    change: ChangeKind,
    object: &Object,
    now: Timestamp,
) -> Bytes {
    let layout = layout(kind);
    let columns = if is_first { columns(layout) } else { Value::Null };
    let metadata = json!({"resourceVersion": object.version().to_string()});
    let table = with_rows(table, &metadata, &columns, &[row(table, layout, kind, object, now)]);
    line(change.name(), &table)
}

/// Returns the line of a watch for a bookmark: a table with one row of null cells.
pub(super) fn bookmark(table: Table, kind: &Kind, metadata: &Value) -> Bytes {
    let layout = layout(kind);
    let row = json!({"cells": vec![Value::Null; layout.columns.len()], "object": partial(table, metadata)});
    line("BOOKMARK", &with_rows(table, metadata, &Value::Null, &[row]))
}

fn line(change: &str, table: &Value) -> Bytes {
    // `type` comes first, as in the lines of other watches.
    format!("{{\"type\":\"{change}\",\"object\":{table}}}\n").into()
}

fn with_rows(table: Table, metadata: &Value, columns: &Value, rows: &[Value]) -> Value {
    json!({
        "kind": "Table", "apiVersion": api_version(table), "metadata": metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}

fn api_version(table: Table) -> String {
    format!("meta.k8s.io/{}", table.version)
}

fn columns(layout: &Layout) -> Value {
    let column = |column: &Column| {
        json!({"name": column.name, "type": column.kind, "format": column.format, "description": "",
            "priority": u8::from(column.wide)})
    };
    layout.columns.iter().map(column).collect()
}

fn row(table: Table, layout: &Layout, kind: &Kind, object: &Object, now: Timestamp) -> Value {
    let value = object.value();
    let cells = (layout.cells)(&Subject { value: &value, now });
    debug_assert_eq!(cells.len(), layout.columns.len(), "a cell for each column of {}", kind.plural);
    let object = match table.include {
        Include::Nothing => return json!({"cells": cells}),
        Include::Metadata => partial(table, &value["metadata"]),
        Include::Object => {
            let mut value = value;
            super::events::to_view(kind, &mut value);
            value
        }
    };
    json!({"cells": cells, "object": object})
}

fn partial(table: Table, metadata: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": api_version(table), "metadata": metadata})
}
