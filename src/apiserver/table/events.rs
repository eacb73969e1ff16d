//! Table of events, printed from their stored form.
//!
//! Follows `pkg/printers/internalversion/printers.go#printEvent @v1.36.3`.

use serde_json::json;

use super::{Column, Layout, Subject};

pub(super) const EVENTS: Layout = Layout {
    columns: &[
        Column::text("Last Seen"),
        Column::text("Type"),
        Column::text("Reason"),
        Column::text("Object"),
        Column::text("Subobject").wide(),
        Column::text("Source").wide(),
        Column::text("Message"),
        Column::text("First Seen").wide(),
        Column::text("Count").wide(),
        Column::name("Name").wide(),
    ],
    cells: |event| {
        let first = match event.text("/deprecatedFirstTimestamp") {
            "" => event.since("/eventTime"),
            _ => event.since("/deprecatedFirstTimestamp"),
        };
        let (last, count) = if event.at("/series").is_object() {
            (event.since("/series/lastObservedTime"), event.number("/series/count"))
        } else {
            (last(event, &first), event.number("/deprecatedCount").max(1))
        };
        let kind = event.text("/regarding/kind").to_lowercase();
        let target = match event.text("/regarding/name") {
            "" => kind,
            name => format!("{kind}/{name}"),
        };
        vec![
            json!(last),
            json!(event.text("/type")),
            json!(event.text("/reason")),
            json!(target),
            json!(event.text("/regarding/fieldPath")),
            json!(source(event)),
            json!(event.text("/note").trim()),
            json!(first),
            json!(count),
            event.name(),
        ]
    },
};

fn last(event: &Subject<'_>, first: &str) -> String {
    match event.text("/deprecatedLastTimestamp") {
        "" => first.to_owned(),
        _ => event.since("/deprecatedLastTimestamp"),
    }
}

fn source(event: &Subject<'_>) -> String {
    let component = event.text_or("/deprecatedSource/component", event.text("/reportingController"));
    match event.text_or("/deprecatedSource/host", event.text("/reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
