//! Validates the flags about metrics, and reads the allowed values of labels.
//!
//! Follows `component-base/metrics/api/v1/config.go#Validate @v1.36.3`. The manifest's top level is the mapping itself, although
//! upstream's help mentions a field `allowListMapping`.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::decode::parse_yaml;
use super::super::load;
use super::observing::MetricsFlags;
use crate::go::json::Value;
use crate::go::json::text as json;
use crate::go::quote::quote;

/// The only version whose hidden metrics may be shown.
const PREVIOUS: &str = "1.35";

/// Allowed values of labels, by `metric,label`.
type Allowed = BTreeMap<String, String>;

impl MetricsFlags {
    /// The allowed values of labels, by `metric,label`. The flag takes precedence over the manifest.
    pub fn labels(&self) -> Result<Allowed, String> {
        match (self.allowed_labels(), self.manifest()) {
            (Some(allowed), _) => Ok(allowed),
            (None, Some(path)) => read(path),
            (None, None) => Ok(Allowed::new()),
        }
    }

    fn manifest(&self) -> Option<&str> {
        self.allow_metric_labels_manifest.as_deref().filter(|path| !path.is_empty())
    }

    pub(super) fn check(&self, errors: &mut Vec<String>) {
        let mut invalid = |field: &str, value: &str, why: &str| {
            errors.push(format!("metrics{field}: Invalid value: {value}: {why}"));
        };
        let version = self.show_hidden_metrics_for_version.as_deref().unwrap_or_default();
        if !version.is_empty() && version != PREVIOUS {
            let why =
                format!("must be omitted or have the value '{PREVIOUS}'; only the previous minor version is allowed");
            invalid(".showHiddenMetricsForVersion", &quote(version), &why);
        }
        let disabled = self.disabled();
        if let Some(name) = disabled.iter().find(|name| !is_metric(name)) {
            let why = format!(
                "must be fully qualified metric names matching \"^[a-zA-Z_:][a-zA-Z0-9_:]*$\", got {}",
                quote(name)
            );
            invalid(".disabledMetrics", &json(&disabled.clone().into()), &why);
        }
        let allowed = self.allowed_labels();
        if let Some((shown, why)) = allowed.as_ref().and_then(wrong_keys) {
            invalid(".allowListMapping", &shown, &why);
        }
        let Some(path) = self.manifest() else { return };
        let field = ".allowListMappingManifest";
        match read(path).map(|labels| wrong_keys(&labels)) {
            Ok(None) => {}
            Ok(Some((shown, why))) => {
                let inner = format!("[metrics{field}: Invalid value: {shown}: {why}]");
                invalid(field, &quote(path), &format!("invalid allow list mapping in manifest: {inner}"));
            }
            Err(why) => invalid(field, &quote(path), &why),
        }
        if let Some(allowed) = allowed {
            let labels = json(&serde_json::Value::from_iter(allowed));
            invalid("", &self.whole(&labels), "cannot specify both allowListMapping and allowListMappingManifest");
        }
    }

    /// Formats `MetricsConfiguration` as JSON, with the fields in Go's order.
    fn whole(&self, allowed: &str) -> String {
        let text = |text: &str| json(&text.into());
        let version = self.show_hidden_metrics_for_version.as_deref().unwrap_or_default();
        let disabled = self.disabled();
        let fields = [
            (!version.is_empty()).then(|| format!("\"showHiddenMetricsForVersion\":{}", text(version))),
            (!disabled.is_empty()).then(|| format!("\"disabledMetrics\":{}", json(&disabled.into()))),
            Some(format!("\"allowListMapping\":{allowed}")),
            self.manifest().map(|path| format!("\"allowListMappingManifest\":{}", text(path))),
        ];
        format!("{{{}}}", fields.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// Reads the manifest: a mapping whose values are scalars. Unlike Go's, errors about values contain no line numbers.
fn read(path: &str) -> Result<Allowed, String> {
    let data = load::read(Path::new(path)).map_err(|error| format!("failed to read allow list manifest: {error}"))?;
    let failed = |why: String| format!("failed to parse allow list manifest: {why}");
    let value = parse_yaml(&String::from_utf8_lossy(&data)).map_err(|error| failed(error.to_string()))?;
    let entries = match value {
        Value::Null => Vec::new(),
        Value::Object(entries) => entries,
        other => {
            return Err(failed(format!("yaml: unmarshal errors: cannot unmarshal {} into mapping", other.describe())));
        }
    };
    let text = |(key, value): (String, Value)| match value {
        Value::Null => Ok((key, String::new())),
        Value::Bool(value) => Ok((key, value.to_string())),
        Value::Number(text) | Value::String(text) => Ok((key, text)),
        other => {
            let (key, kind) = (quote(&key), other.describe());
            Err(failed(format!("yaml: unmarshal errors: cannot unmarshal {kind} of {key} into string")))
        }
    };
    entries.into_iter().map(text).collect()
}

/// Checks the keys of labels. If one is invalid, returns the labels as JSON and the error's text.
fn wrong_keys(labels: &Allowed) -> Option<(String, String)> {
    let is_key = |key: &String| key.split_once(',').is_some_and(|(metric, label)| is_metric(metric) && is_label(label));
    if labels.keys().all(is_key) {
        return None;
    }
    let why = "must have keys with format `metricName,labelName` where metricName matches \"[a-zA-Z_:][a-zA-Z0-9_:]*\" and \
               labelName matches \"[a-zA-Z_][a-zA-Z0-9_]*\"";
    Some((json(&serde_json::Value::from_iter(labels.clone())), why.to_owned()))
}

fn is_metric(name: &str) -> bool {
    is_label(&name.replace(':', "_"))
}

fn is_label(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    name.starts_with(is_letter) && name.chars().all(|letter| is_letter(letter) || letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::Flags;
    use crate::config::FeatureGates;

    fn check(line: &[&str], expected: &str) {
        let flags = Flags::parse(line.iter().map(|word| (*word).to_owned())).expect("grammar");
        assert_eq!(flags.check(&FeatureGates::default()).err().unwrap_or_default(), expected, "{line:?}");
    }

    #[test]
    fn invalid_metric_names_and_manifests_are_errors() {
        check(&["--disabled-metrics=a:b,_c"], "");
        let text = "metrics.disabledMetrics: Invalid value: [\"a\",\"1x\"]: must be fully qualified metric names matching \
                    \"^[a-zA-Z_:][a-zA-Z0-9_:]*$\", got \"1x\"";
        check(&["--disabled-metrics=a,1x"], text);
        let missing = "metrics.allowListMappingManifest: Invalid value: \"/nowhere/x\": failed to read allow list manifest: \
                       open /nowhere/x: no such file or directory";
        check(&["--allow-metric-labels-manifest=/nowhere/x"], missing);
        let both = "metrics: Invalid value: {\"allowListMapping\":{\"a,b\":\"c\"},\"allowListMappingManifest\":\"/nowhere/x\"}: \
                    cannot specify both allowListMapping and allowListMappingManifest";
        let line = ["--allow-metric-labels=a,b=c", "--allow-metric-labels-manifest=/nowhere/x"];
        check(&line, &format!("[{missing}, {both}]"));
    }

    #[test]
    fn allow_list_manifest_must_map_strings_to_strings() {
        let path = std::env::temp_dir().join(format!("labels-{}", std::process::id()));
        let file = path.display().to_string();
        let labels = |text: &str| {
            std::fs::write(&path, text).expect("written");
            let flags = Flags::parse([format!("--allow-metric-labels-manifest={file}")]).expect("grammar");
            (flags.metrics.labels(), flags.check(&FeatureGates::default()))
        };
        let (read, checked) = labels("\"a,b\": c,d\n'e,f': 3\n");
        let expected = [("a,b", "c,d"), ("e,f", "3")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!((read, checked), (Ok(expected.into()), Ok(())));
        assert_eq!(labels(""), (Ok(std::collections::BTreeMap::new()), Ok(())));
        let (_, checked) = labels("a: c\n");
        let text = checked.expect_err("no label");
        let inner = "invalid allow list mapping in manifest: [metrics.allowListMappingManifest: Invalid value: {\"a\":\"c\"}: must";
        assert!(text.contains(inner), "{text}");
        let (read, checked) = labels("a,b: [c]\n");
        let text = "failed to parse allow list manifest: yaml: unmarshal errors: cannot unmarshal array of \"a,b\" into string";
        assert_eq!(read, Err(text.to_owned()));
        assert!(checked.is_err_and(|error| error.ends_with(text)));
        std::fs::remove_file(&path).expect("removed");
    }
}
