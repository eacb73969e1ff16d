//! Feature gates: whether each one is on at the emulated version.
//!
//! Follows `k8s.io/component-base/featuregate/feature_gate.go @v1.36.3`.

mod parse;
mod table;

pub use parse::{GateError, GateFlags};
pub use table::{Gate, Stage};

use table::{Row, Spec, TABLE};

/// The minor version (of 1.x) that this scheduler implements.
pub const BINARY_MINOR: u8 = 36;
/// Oldest minor version that can be emulated.
pub const OLDEST_MINOR: u8 = 33;

/// The state of every feature gate: on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureGates {
    on: [bool; TABLE.len()],
    emulated_minor: u8,
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self::at(BINARY_MINOR)
    }
}

impl FeatureGates {
    /// The default gates of version 1.`emulated_minor`.
    pub fn at(emulated_minor: u8) -> Self {
        let mut gates = Self { on: [false; TABLE.len()], emulated_minor };
        for gate in Gate::ALL {
            gates.set(*gate, gate.spec(emulated_minor).default);
        }
        gates
    }

    /// Whether `gate` is on.
    pub fn enabled(&self, gate: Gate) -> bool {
        self.on[gate as usize]
    }

    /// The minor version (of 1.x) that is emulated.
    pub fn emulated_minor(&self) -> u8 {
        self.emulated_minor
    }

    /// The same gates with `gate` switched, regardless of its lock, dependencies and support. Meant for tests and embedders.
    #[must_use]
    pub fn with(mut self, gate: Gate, on: bool) -> Self {
        self.set(gate, on);
        self
    }

    /// Returns a warning for each gate that differs from its default at 1.36 although only the default is supported. This happens
    /// only when an older version is emulated, because the flag rejects such values.
    pub fn warnings(&self) -> Vec<String> {
        let changed =
            Gate::ALL.iter().filter(|gate| !gate.row().supported && self.enabled(**gate) != gate.default_on());
        let texts = changed.map(|gate| {
            let state = if self.enabled(*gate) { "on" } else { "off" };
            format!(
                "feature gate {} is {state} at emulated version 1.{}: not supported yet",
                gate.name(),
                self.emulated_minor
            )
        });
        texts.collect()
    }

    fn set(&mut self, gate: Gate, on: bool) {
        self.on[gate as usize] = on;
    }
}

impl Gate {
    /// The gate's name, as in `--feature-gates`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Finds the gate of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.binary_search_by(|gate| gate.name().cmp(name)).ok().map(|at| Self::ALL[at])
    }

    /// The gate's stage at version 1.`minor`.
    pub fn stage(self, minor: u8) -> Stage {
        self.spec(minor).stage
    }

    /// Whether the gate is on by default at 1.36.
    pub fn default_on(self) -> bool {
        self.spec(BINARY_MINOR).default
    }

    /// Whether the gate is on by default at version 1.`minor`.
    pub fn default_at(self, minor: u8) -> bool {
        self.spec(minor).default
    }

    /// Whether the gate is locked to its default at version 1.`minor`.
    pub fn locked(self, minor: u8) -> bool {
        self.spec(minor).locked
    }

    /// The gates that must be on for this one to be on, sorted by name.
    pub fn needs(self) -> impl Iterator<Item = Self> {
        self.row().needs.iter().copied()
    }

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The stage at version 1.`minor`: the newest stage that began at or before that version. Follows
    /// `component-base/featuregate/feature_gate.go#featureSpecAtEmulationAndMinCompatVersion @v1.36.3`. No gate of 1.36 has a
    /// stage that depends on the minimum compatibility version.
    fn spec(self, minor: u8) -> Spec {
        let unborn = Spec { since: 0, stage: Stage::PreAlpha, default: false, locked: false };
        self.row().history.iter().rev().find(|spec| spec.since <= minor).copied().unwrap_or(unborn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_histories_ascend() {
        assert!(Gate::ALL.is_sorted_by(|a, b| a.name() < b.name()));
        for gate in Gate::ALL {
            assert!(gate.row().history.is_sorted_by(|a, b| a.since < b.since), "{}", gate.name());
            assert_eq!(Gate::find(gate.name()), Some(*gate));
        }
        assert_eq!(Gate::find("Nope"), None);
    }

    #[test]
    fn defaults_satisfy_dependencies_at_every_version() {
        for minor in OLDEST_MINOR..=BINARY_MINOR {
            let gates = FeatureGates::at(minor);
            for gate in Gate::ALL.iter().filter(|gate| gates.enabled(**gate)) {
                assert!(gate.row().needs.iter().all(|need| gates.enabled(*need)), "{} at 1.{minor}", gate.name());
            }
        }
    }

    fn check(gate: Gate, minor: u8, on: bool, stage: Stage) {
        assert_eq!(
            (FeatureGates::at(minor).enabled(gate), gate.stage(minor)),
            (on, stage),
            "{} 1.{minor}",
            gate.name()
        );
    }

    #[test]
    fn emulated_version_decides_state_and_stage() {
        check(Gate::SchedulerQueueingHints, 36, true, Stage::Ga);
        check(Gate::SchedulerQueueingHints, 33, true, Stage::Beta);
        check(Gate::NodeDeclaredFeatures, 36, true, Stage::Beta);
        check(Gate::NodeDeclaredFeatures, 35, false, Stage::Alpha);
        check(Gate::NodeDeclaredFeatures, 34, false, Stage::PreAlpha);
        check(Gate::SchedulerAsyncAPICalls, 36, false, Stage::Beta);
        check(Gate::GangScheduling, 36, false, Stage::Alpha);
    }

    #[test]
    fn switching_a_gate_keeps_the_others() {
        let gates = FeatureGates::default().with(Gate::GangScheduling, true);
        assert!(gates.enabled(Gate::GangScheduling));
        assert_eq!(gates.with(Gate::GangScheduling, false), FeatureGates::default());
    }

    #[test]
    fn unsupported_gate_states_of_older_versions_are_warned_about() {
        assert_eq!(FeatureGates::default().warnings(), Vec::<String>::new());
        let warnings = FeatureGates::at(35).warnings();
        let taints = "feature gate DRADeviceTaints is off at emulated version 1.35: not supported yet".to_owned();
        assert!(warnings.contains(&taints), "{warnings:?}");
    }
}
