//! What cells are made of: members of an object, spans of time, and the texts of selectors.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Subject;
use crate::apiserver::meta;

impl Subject<'_> {
    /// The value at a JSON pointer.
    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The text at a pointer; empty if there is none.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// The text at a pointer, or another one for none and an empty one.
    pub(super) fn text_or<'b>(&'b self, pointer: &str, absent: &'b str) -> &'b str {
        Some(self.text(pointer)).filter(|text| !text.is_empty()).unwrap_or(absent)
    }

    /// The number at a pointer, or 0.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or(0)
    }

    /// The flag at a pointer, or what its absence means.
    pub(super) fn flag(&self, pointer: &str, absent: bool) -> bool {
        self.at(pointer).as_bool().unwrap_or(absent)
    }

    pub(super) fn name(&self) -> Value {
        json!(self.text("/metadata/name"))
    }

    pub(super) fn is_deleting(&self) -> bool {
        meta::is_deleting(self.value)
    }

    /// How long ago the object was made.
    pub(super) fn age(&self) -> Value {
        json!(self.since("/metadata/creationTimestamp"))
    }

    /// How long ago the time at a pointer was.
    /// Follows `pkg/printers/internalversion/printers.go#translateTimestampSince @v1.36.3`.
    pub(super) fn since(&self, pointer: &str) -> String {
        time(self.at(pointer)).map_or_else(|| "<unknown>".to_owned(), |then| human(self.now.duration_since(then)))
    }
}

/// The time that a value is.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// A span of time in the two largest units that matter.
/// Follows `apimachinery/pkg/util/duration/duration.go#HumanDuration @v1.36.3`.
pub(super) fn human(span: SignedDuration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let two = |large: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => two(days, "d", hours % 24, "h"),
        () if hours < 24 * 365 * 2 => format!("{days}d"),
        () if hours < 24 * 365 * 8 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// Names and images of containers.
/// Follows `pkg/printers/internalversion/printers.go#layoutContainerCells @v1.36.3`.
pub(super) fn containers(spec: &Value) -> [Value; 2] {
    ["name", "image"].map(|member| {
        let texts: Vec<&str> =
            meta::list(&spec["containers"]).map(|container| container[member].as_str().unwrap_or_default()).collect();
        json!(texts.join(","))
    })
}

/// A map of texts.
/// Follows `apimachinery/pkg/labels/labels.go#FormatLabels @v1.36.3`.
pub(super) fn labels(map: &Value) -> String {
    let pairs: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

/// A label selector, empty where it selects everything or is none.
/// Follows `apimachinery/pkg/labels/selector.go#internalSelector.String @v1.36.3`.
pub(in crate::apiserver) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key, format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in meta::list(&selector["matchExpressions"]) {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = meta::list(&expression["values"]).filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        parts.push((
            key,
            match expression["operator"].as_str().unwrap_or_default() {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "DoesNotExist" => format!("!{key}"),
                _ => key.to_owned(),
            },
        ));
    }
    parts.sort_by_key(|(key, _)| *key);
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// The same with a word for none.
/// Follows `apimachinery/pkg/apis/meta/v1/helpers.go#FormatLabelSelector @v1.36.3`.
pub(super) fn selector_or_none(value: &Value) -> String {
    Some(selector(value)).filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned())
}

/// Whether a condition is `True`.
pub(super) fn has_condition(conditions: &Value, sort: &str) -> bool {
    let found = meta::list(conditions).find(|condition| condition["type"] == sort);
    found.is_some_and(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_as_kubectl_prints_them() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (3 * 3600 - 1, "179m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 120, "3h2m"),
            (9 * 3600 + 120, "9h"),
            (48 * 3600, "2d"),
            (50 * 3600, "2d2h"),
            (9 * 86400, "9d"),
            (800 * 86400, "2y70d"),
            (3000 * 86400, "8y"),
        ] {
            assert_eq!(human(SignedDuration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn selectors_are_sorted_by_key() {
        let value = json!({"matchLabels": {"b": "1"}, "matchExpressions": [
            {"key": "c", "operator": "DoesNotExist"}, {"key": "a", "operator": "In", "values": ["y", "x"]}]});
        assert_eq!(selector(&value), "a in (x,y),b=1,!c");
        assert_eq!(selector_or_none(&json!({})), "<none>");
    }
}
