//! Parsing and canonical form of values with their own text format: quantities and times.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::k8s::Quantity;

/// Returns the canonical form of a quantity. Follows
/// `apimachinery/pkg/api/resource/quantity.go#Quantity.UnmarshalJSON @v1.36.3`.
pub(super) fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Null => "0".to_owned(),
        other => other.to_string(),
    };
    let text = text.trim();
    Quantity::parse(text).map_err(|error| error.to_string())?;
    Quantity::canonical_text(text).map(Value::from).map_err(|error| error.to_string())
}

/// Returns the canonical form of a time: in UTC, to the second or to the microsecond. Follows
/// `apimachinery/pkg/apis/meta/v1/time.go#Time.UnmarshalJSON` and `apimachinery/pkg/apis/meta/v1/micro_time.go @v1.36.3`.
pub(super) fn time(text: &str, micro: bool) -> Result<Value, String> {
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let shape = text.as_bytes();
    let is_shaped =
        shape.get(10) == Some(&b'T') && shape.last().is_some_and(|last| *last == b'Z' || last.is_ascii_digit());
    let fraction = text.split_once('.').map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count());
    let parsed = text.parse::<Timestamp>().ok().filter(|_| is_shaped && (!micro || fraction == 6));
    let Some(time) = parsed else { return Err(why_not(text, layout)) };
    if micro {
        return Ok(json!(micro_text(time)));
    }
    Ok(json!(Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()))
}

fn micro_text(time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_nanosecond().div_euclid(1_000_000_000).try_into().unwrap_or(0));
    let text = seconds.unwrap_or(time).to_string();
    let micros = time.as_nanosecond().rem_euclid(1_000_000_000) / 1000;
    format!("{}.{micros:06}Z", text.trim_end_matches('Z'))
}

/// Returns Go's error for an invalid time, with the part of the layout at which parsing stopped.
fn why_not(text: &str, layout: &str) -> String {
    let parts = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    let mut rest = text;
    let mut stopped = if layout.contains('.') { ".000000" } else { "Z07:00" };
    for part in parts {
        let fits = if part.len() == 1 {
            rest.starts_with(part)
        } else {
            rest.len() >= part.len() && rest.as_bytes()[..part.len()].iter().all(u8::is_ascii_digit)
        };
        if !fits {
            stopped = part;
            break;
        }
        rest = &rest[part.len()..];
    }
    format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {stopped:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(time("2026-01-01T01:00:00+01:00", false), Ok(json!("2026-01-01T00:00:00Z")));
        assert_eq!(time("2026-01-01T00:00:00.5Z", false), Ok(json!("2026-01-01T00:00:00Z")));
        assert_eq!(time("2026-01-01T00:00:00.100000Z", true), Ok(json!("2026-01-01T00:00:00.100000Z")));
        let why = r#"parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006""#;
        assert_eq!(time("now", false), Err(why.to_owned()));
    }
}
