//! Values of table cells: members of an object, ages and durations, labels and selectors.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Subject;
use crate::apiserver::meta;

impl Subject<'_> {
    /// Returns the value at a JSON pointer, or null if it is absent.
    pub(super) fn at(&self, pointer: &str) -> &Value {
        self.value.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// Returns the string at a pointer, or "" if it is absent.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// Returns the string at a pointer, or `absent` if it is absent or empty.
    pub(super) fn text_or<'b>(&'b self, pointer: &str, absent: &'b str) -> &'b str {
        Some(self.text(pointer)).filter(|text| !text.is_empty()).unwrap_or(absent)
    }

    /// Returns the number at a pointer, or 0 if it is absent.
    pub(super) fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or(0)
    }

    /// Returns the boolean at a pointer, or `absent` if it is absent.
    pub(super) fn flag(&self, pointer: &str, absent: bool) -> bool {
        self.at(pointer).as_bool().unwrap_or(absent)
    }

    pub(super) fn name(&self) -> Value {
        json!(self.text("/metadata/name"))
    }

    pub(super) fn is_deleting(&self) -> bool {
        meta::is_deleting(self.value)
    }

    /// Returns the time since the object was created.
    pub(super) fn age(&self) -> Value {
        json!(self.since("/metadata/creationTimestamp"))
    }

    /// Returns the time elapsed since the timestamp at a pointer.
    /// Follows `pkg/printers/internalversion/printers.go#translateTimestampSince @v1.36.3`.
    pub(super) fn since(&self, pointer: &str) -> String {
        time(self.at(pointer)).map_or_else(|| "<unknown>".to_owned(), |then| human(self.now.duration_since(then)))
    }
}

/// Parses a value as a timestamp.
pub(super) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Formats a duration with its one or two largest units.
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

/// Returns the names and the images of containers, each joined by commas.
/// Follows `pkg/printers/internalversion/printers.go#layoutContainerCells @v1.36.3`.
pub(super) fn containers(spec: &Value) -> [Value; 2] {
    ["name", "image"].map(|member| {
        let texts: Vec<&str> =
            meta::list(&spec["containers"]).map(|container| container[member].as_str().unwrap_or_default()).collect();
        json!(texts.join(","))
    })
}

/// Formats labels as `key=value` pairs, or `<none>` if there are none.
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

/// Formats a label selector. The text is empty if the selector is absent or selects everything.
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

/// Formats a label selector, as `<none>` if the text would be empty.
/// Follows `apimachinery/pkg/apis/meta/v1/helpers.go#FormatLabelSelector @v1.36.3`.
pub(super) fn selector_or_none(value: &Value) -> String {
    Some(selector(value)).filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned())
}

/// Whether the condition of type `sort` is `True`.
pub(super) fn has_condition(conditions: &Value, sort: &str) -> bool {
    let found = meta::list(conditions).find(|condition| condition["type"] == sort);
    found.is_some_and(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_formatted_as_in_kubectl() {
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
