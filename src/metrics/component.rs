//! What every component of a control plane says of itself: its build, its versions, its feature gates, its metrics.
//!
//! Follows `component-base/metrics/version.go`, `metrics/prometheus/feature`, `component-base/metrics/registry.go`,
//! `component-base/compatibility/registry.go#componentGlobalsRegistry.AddMetrics @v1.36.3`.

use prometheus::{Error, IntCounter, Registry};

use super::register::Registrar;
use super::register::Stability::{Alpha, Beta};

/// What is said of the build, in the order of the labels.
#[derive(Clone, Copy, Debug, Default)]
pub struct Build<'a> {
    /// `1`.
    pub major: &'a str,
    /// The minor version.
    pub minor: &'a str,
    /// The whole version, with a `v`.
    pub git_version: &'a str,
    /// The platform, such as `linux/amd64`.
    pub platform: &'a str,
    /// What has compiled it.
    pub compiler: &'a str,
    /// The version that is emulated.
    pub emulation: &'a str,
    /// The oldest version in the control plane.
    pub min_compat: &'a str,
}

/// Registers build, versions and gates; a gate is its name, its stage as upstream writes it, and whether it is on.
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
    let info =
        always.gauges(Beta, "kubernetes_build_info", &labels, "Always 1; its labels say which build this is.")?;
    let values = [build.major, build.minor, build.git_version, "", "", "", "", build.compiler, build.platform];
    info.with_label_values(&values).set(1);
    let labels = ["component", "binary", "emulation", "min_compat"];
    let versions =
        always.gauges(Alpha, "version_info", &labels, "Always 1; its labels say which versions are in force.")?;
    let binary = format!("{}.{}", build.major, build.minor);
    versions.with_label_values(&["kube", &binary, build.emulation, build.min_compat]).set(1);
    let enabled =
        always.gauges(Beta, "kubernetes_feature_enabled", &["name", "stage"], "1 for a feature gate that is on.")?;
    for (name, stage, on) in gates {
        enabled.with_label_values(&[name, stage]).set(on.into());
    }
    always.counter(Beta, "hidden_metrics_total", "Metrics that are hidden.")?;
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

/// What is done to metrics before they are shown.
#[derive(Clone, Debug)]
pub struct ShownMetrics {
    /// Metrics that are left out.
    pub disabled: IntCounter,
    /// Observations whose labels had values that are not allowed.
    pub unexpected: IntCounter,
}

impl ShownMetrics {
    /// Registers the families.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let always = Registrar { registry, enabled: true };
        let help = "Metrics that are not shown because a flag says so.";
        let disabled = always.counter(Beta, "disabled_metrics_total", help)?;
        let help = "Observations whose labels had values that are not allowed.";
        let name = "cardinality_enforcement_unexpected_categorizations_total";
        Ok(Self { disabled, unexpected: always.counter(Alpha, name, help)? })
    }
}

/// Counts the families of a registry by how settled they are, once all are registered.
pub fn count_registered(registry: &Registry) -> Result<(), Error> {
    let families = registry.gather();
    let help = "Metrics by how settled they are, and by the version in which they were given up.";
    let labels = ["stability_level", "deprecated_version"];
    let counts = Registrar { registry, enabled: true }.counters(Beta, "registered_metrics_total", &labels, help)?;
    for family in families {
        let level =
            family.help().strip_prefix('[').and_then(|help| help.split_once(']')).map_or("", |(level, _)| level);
        counts.with_label_values(&[level, ""]).inc();
    }
    Ok(())
}
