//! JSON log lines with the members of component-base's JSON logs.

use jiff::Zoned;
use serde_json::{Map, Value, json};
use tracing::{Level, Metadata};

use super::fields::Fields;

pub(super) fn line(metadata: &Metadata<'_>, fields: &Fields, now: &Zoned) -> String {
    let micros = now.timestamp().as_microsecond();
    let mut object = Map::new();
    // Milliseconds with a fraction, which fit into a double.
    #[expect(clippy::cast_precision_loss, reason = "microseconds since 1970 fit into 53 bits until 2255")]
    object.insert("ts".to_owned(), json!(micros as f64 / 1000.0));
    object.insert("caller".to_owned(), caller(metadata).into());
    object.insert("msg".to_owned(), fields.message.clone().into());
    let v = match *metadata.level() {
        Level::ERROR => None,
        Level::WARN | Level::INFO => Some(0),
        Level::DEBUG => Some(2),
        Level::TRACE => Some(4),
    };
    if let Some(v) = v {
        object.insert("v".to_owned(), v.into());
    }
    for (key, value) in &fields.values {
        object.insert((*key).to_owned(), value.clone());
    }
    Value::Object(object).to_string() + "\n"
}

/// Returns the file with its parent directory, and the line.
fn caller(metadata: &Metadata<'_>) -> String {
    let file = metadata.file().unwrap_or("unknown");
    let short = file.rmatch_indices('/').nth(1).map_or(file, |(at, _)| &file[at + 1..]);
    format!("{short}:{}", metadata.line().unwrap_or(1))
}
