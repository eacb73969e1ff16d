//! Metrics that every control plane component has: its build, versions, feature gates and numbers of metrics.
//!
//! Follows `component-base/metrics/version.go`, `metrics/prometheus/feature`, `component-base/metrics/registry.go`,
//! `component-base/compatibility/registry.go#componentGlobalsRegistry.AddMetrics @v1.36.3`.

use prometheus::{Error, IntCounter, Registry};

use super::register::Registrar;
use super::register::Stability::{Alpha, Beta};

/// Build and versions of the emulated Kubernetes release, as label values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Build<'a> {
    /// Major version, always `1`.
    pub major: &'a str,
    /// Minor version, such as `36`.
    pub minor: &'a str,
    /// Full version with a `v`, such as `v1.36.3`.
    pub git_version: &'a str,
    /// Operating system and architecture, such as `linux/amd64`.
    pub platform: &'a str,
    /// Name of the compiler.
    pub compiler: &'a str,
    /// Version that is emulated, such as `1.36`.
    pub emulation: &'a str,
    /// Oldest version in the control plane with which this one is compatible.
    pub min_compat: &'a str,
}

/// Registers the metrics of build, versions and feature gates. Each gate has its name, its stage as upstream writes it, and
/// whether it is enabled.
pub fn register<'a>(
    registry: &Registry,
    build: Build<'_>,
    gates: impl Iterator<Item = (&'a str, &'a str, bool)>,
) -> Result<(), Error> {
    let always = Registrar { registry, enabled: true };
    let labels = [
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ];
    let info = always.gauges(
        Beta,
        "kubernetes_build_info",
        &labels,
        "Always 1; the labels have the version and the build.",
    )?;
    let values = [build.major, build.minor, build.git_version, "", "", "", "", build.compiler, build.platform];
    info.with_label_values(&values).set(1);
    let labels = ["component", "binary", "emulation", "min_compat"];
    let versions = always.gauges(
        Alpha,
        "version_info",
        &labels,
        "Always 1; the labels have the binary, emulation and minimum compatibility versions.",
    )?;
    let binary = format!("{}.{}", build.major, build.minor);
    versions.with_label_values(&["kube", &binary, build.emulation, build.min_compat]).set(1);
    let enabled = always.gauges(
        Beta,
        "kubernetes_feature_enabled",
        &["name", "stage"],
        "Whether a feature gate is enabled: 1 or 0.",
    )?;
    for (name, stage, on) in gates {
        enabled.with_label_values(&[name, stage]).set(on.into());
    }
    always.counter(Beta, "hidden_metrics_total", "Number of hidden metrics.")?;
    Ok(())
}

/// Build of this program itself, as the labels of its own metric.
#[derive(Clone, Copy, Debug)]
pub struct OwnBuild<'a> {
    /// Version, without a `v`.
    pub version: &'a str,
    /// Git commit of the sources, or `unknown`.
    pub git_commit: &'a str,
    /// Name and version of the compiler.
    pub compiler: &'a str,
    /// Operating system and architecture, such as `linux/amd64`.
    pub platform: &'a str,
}

/// Registers `kube_scheduler_rs_build_info`, which upstream does not have.
pub fn register_own(registry: &Registry, build: OwnBuild<'_>) -> Result<(), Error> {
    let always = Registrar { registry, enabled: true };
    let labels = ["version", "git_commit", "compiler", "platform"];
    let help = "Always 1; the labels have the version and the build of kube-scheduler-rs.";
    let info = always.gauges(Alpha, "kube_scheduler_rs_build_info", &labels, help)?;
    info.with_label_values(&[build.version, build.git_commit, build.compiler, build.platform]).set(1);
    Ok(())
}

/// Metrics about `--disabled-metrics` and `--allow-metric-labels`.
#[derive(Clone, Debug)]
pub struct ShownMetrics {
    /// Number of metrics disabled by `--disabled-metrics`.
    pub disabled: IntCounter,
    /// Number of observations with a label value that `--allow-metric-labels` does not allow.
    pub unexpected: IntCounter,
}

impl ShownMetrics {
    /// Registers the two families.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let always = Registrar { registry, enabled: true };
        let help = "Metrics disabled by --disabled-metrics.";
        let disabled = always.counter(Beta, "disabled_metrics_total", help)?;
        let help = "Observations with a label value that --allow-metric-labels does not allow.";
        let name = "cardinality_enforcement_unexpected_categorizations_total";
        Ok(Self { disabled, unexpected: always.counter(Alpha, name, help)? })
    }
}

/// Counts the families of a registry by stability level. Call this after all families are registered.
pub fn count_registered(registry: &Registry) -> Result<(), Error> {
    let families = registry.gather();
    let help = "Registered metrics, by stability level and version of deprecation.";
    let labels = ["stability_level", "deprecated_version"];
    let counts = Registrar { registry, enabled: true }.counters(Beta, "registered_metrics_total", &labels, help)?;
    for family in families {
        let level =
            family.help().strip_prefix('[').and_then(|help| help.split_once(']')).map_or("", |(level, _)| level);
        counts.with_label_values(&[level, ""]).inc();
    }
    Ok(())
}
