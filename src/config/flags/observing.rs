//! The sections of flags about metrics and logs.
//!
//! Follows `component-base/metrics/options.go`, `component-base/logs/api/v1/options.go @v1.36.3`.

use std::collections::BTreeMap;

use clap::Args;

use super::super::gates::{FeatureGates, Gate};
use super::lists::{Items, Pairs, VModule, items, pairs, vmodule, written};
use super::shown::Shown;
use super::values::{duration, level, quantity};
use crate::apimachinery::field_error::aggregate;
use crate::go::duration::GoDuration;
use crate::go::number::parse_bool;
use crate::k8s::Quantity;

/// Flags of the section "metrics".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Metrics flags")]
pub struct MetricsFlags {
    /// Allowed values of metric labels: metric,label='v1,v2'. Other values become "unexpected".
    #[arg(long, allow_hyphen_values = true, value_parser = pairs)]
    pub allow_metric_labels: Vec<Pairs>,
    /// File with the allowed values of metric labels. --allow-metric-labels overrides it.
    #[arg(long, allow_hyphen_values = true)]
    pub allow_metric_labels_manifest: Option<String>,
    /// Comma-separated full names of metrics to disable.
    #[arg(long, allow_hyphen_values = true, value_parser = items)]
    pub disabled_metrics: Vec<Items>,
    /// Show metrics that are hidden since this version, which must be the previous minor version.
    #[arg(long, allow_hyphen_values = true)]
    pub show_hidden_metrics_for_version: Option<String>,
}

/// Flags of the section "logs".
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Logs flags")]
pub struct LogFlags {
    /// Maximum delay of a log line. This scheduler writes each line at once.
    #[arg(long, allow_hyphen_values = true, value_parser = duration)]
    pub log_flush_frequency: Option<GoDuration>,
    /// [Alpha] Size of the buffer for JSON log lines other than errors.
    #[arg(long, allow_hyphen_values = true, value_parser = quantity)]
    pub log_json_info_buffer_size: Option<Quantity>,
    /// [Alpha] Write JSON errors to stderr and other JSON lines to stdout.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub log_json_split_stream: Option<bool>,
    /// [Alpha] Size of the buffer for text log lines other than errors.
    #[arg(long, allow_hyphen_values = true, value_parser = quantity)]
    pub log_text_info_buffer_size: Option<Quantity>,
    /// [Alpha] Write text errors to stderr and other text lines to stdout.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub log_text_split_stream: Option<bool>,
    /// Format of log lines: "text" or "json".
    #[arg(long, allow_hyphen_values = true)]
    pub logging_format: Option<String>,
    /// Verbosity of the log, from 0 up.
    #[arg(short, long, allow_hyphen_values = true, value_parser = level)]
    pub v: Option<u32>,
    /// Comma-separated verbosities of files whose names match: pattern=N. Text format only.
    #[arg(long, allow_hyphen_values = true, value_parser = vmodule)]
    pub vmodule: Vec<VModule>,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The text format of klog.
    Text,
    /// One JSON object per line.
    Json,
}

const FLUSH: GoDuration = GoDuration::from_secs(5);
const TEXT: &str = "text";
const JSON: &str = "json";

impl MetricsFlags {
    /// Names of the disabled metrics.
    pub fn disabled(&self) -> Vec<String> {
        self.disabled_metrics.iter().flat_map(|items| items.0.iter().cloned()).collect()
    }

    /// The values that the flag allows for labels, by `metric,label`. `None` if the flag is not given.
    pub(super) fn allowed_labels(&self) -> Option<BTreeMap<String, String>> {
        let pairs = self.allow_metric_labels.iter().flat_map(|pairs| pairs.0.clone());
        (!self.allow_metric_labels.is_empty()).then(|| pairs.collect())
    }

    pub(super) fn show(&self, shown: &mut Shown) {
        let allowed = self.allowed_labels().unwrap_or_default();
        let allowed: Vec<String> = allowed.iter().map(|(key, value)| format!("{key}={value}")).collect();
        shown.list("allow-metric-labels", "stringToString", Some(&written(&allowed)), "");
        shown.text("allow-metric-labels-manifest", self.allow_metric_labels_manifest.as_ref(), "");
        shown.list("disabled-metrics", "strings", Some(&written(&self.disabled())), "");
        shown.text("show-hidden-metrics-for-version", self.show_hidden_metrics_for_version.as_ref(), "");
    }
}

impl LogFlags {
    /// The log format, or the default if the flag's value is invalid.
    pub fn format(&self) -> LogFormat {
        if self.logging_format.as_deref() == Some(JSON) { LogFormat::Json } else { LogFormat::Text }
    }

    /// Log levels by source file pattern.
    pub fn levels(&self) -> Vec<(String, u32)> {
        self.vmodule.iter().flat_map(|levels| levels.0.iter().cloned()).collect()
    }

    /// Validates the flags of this section. Follows `component-base/logs/api/v1/options.go#Validate @v1.36.3`.
    pub fn check(&self, gates: &FeatureGates) -> Result<(), String> {
        let mut errors = Vec::new();
        let format = self.logging_format.as_deref().unwrap_or(TEXT);
        let flush = self.log_flush_frequency.unwrap_or(FLUSH);
        if flush <= GoDuration::ZERO {
            errors.push(format!("flushFrequency: Invalid value: \"{flush}\": Must be greater than zero"));
        }
        let invalid = |why: &str| format!("format: Invalid value: {}: {why}", crate::go::quote::quote(format));
        match format {
            TEXT => {}
            JSON if gates.enabled(Gate::LoggingBetaOptions) => {}
            JSON => {
                let text = "format: Forbidden: Log format json is disabled, see LoggingBetaOptions feature";
                errors.push(text.to_owned());
            }
            _ => errors.push(invalid("Unsupported log format")),
        }
        if !matches!(format, "" | TEXT) && !self.levels().is_empty() {
            errors.push("vmodule: Forbidden: Only supported for text log format".to_owned());
        }
        let alpha = gates.enabled(Gate::LoggingAlphaOptions);
        let is_some = |size: Option<Quantity>| size.is_some_and(|size| !size.is_zero());
        for (field, given) in [
            ("text.splitStream", self.log_text_split_stream == Some(true)),
            ("text.infoBufferSize", is_some(self.log_text_info_buffer_size)),
            ("json.splitStream", self.log_json_split_stream == Some(true)),
            ("json.infoBufferSize", is_some(self.log_json_info_buffer_size)),
        ] {
            if given && !alpha {
                errors.push(format!("options.{field}: Forbidden: Feature LoggingAlphaOptions is disabled"));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(aggregate(errors)) }
    }

    pub(super) fn show(&self, shown: &mut Shown) {
        shown.value("log-flush-frequency", "duration", self.log_flush_frequency.as_ref(), &FLUSH);
        let none = Quantity::default();
        shown.value("log-json-info-buffer-size", "quantity", self.log_json_info_buffer_size.as_ref(), &none);
        shown.flag("log-json-split-stream", self.log_json_split_stream, false);
        shown.value("log-text-info-buffer-size", "quantity", self.log_text_info_buffer_size.as_ref(), &none);
        shown.flag("log-text-split-stream", self.log_text_split_stream, false);
        shown.text("logging-format", self.logging_format.as_ref(), TEXT);
        shown.value("v", "Level", self.v.as_ref(), &0);
        let levels = self.vmodule.iter().map(VModule::to_string).collect::<Vec<_>>().join(",");
        shown.raw("vmodule", "pattern=N,...", &levels, "");
    }
}
