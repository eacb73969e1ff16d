//! Tests of [`super`]: flag values, and the states of gates or the errors expected for them.

use super::{FeatureGates, Gate, GateFlags};

fn gates(features: &[&str], emulated: &[&str]) -> Result<FeatureGates, String> {
    let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    let (feature_gates, emulated_version) = (own(features), own(emulated));
    let flags = GateFlags {
        feature_gates: &feature_gates,
        emulated_version: &emulated_version,
        min_compatibility_version: &[],
    };
    FeatureGates::from_flags(flags).map_err(|error| error.to_string())
}

fn check(features: &[&str], gate: Gate, on: bool) {
    assert_eq!(gates(features, &[]).map(|gates| gates.enabled(gate)), Ok(on), "{features:?}");
}

fn check_error(features: &[&str], emulated: &[&str], expected: &str) {
    assert_eq!(gates(features, emulated).expect_err(expected), expected);
}

#[test]
fn lists_repetitions_and_component_prefixes_are_parsed() {
    check(&[], Gate::SchedulerPopFromBackoffQ, true);
    check(&["SchedulerPopFromBackoffQ=false"], Gate::SchedulerPopFromBackoffQ, false);
    check(&["kube:SchedulerPopFromBackoffQ=F,"], Gate::SchedulerPopFromBackoffQ, false);
    check(&["PodLevelResources=true , SchedulerPopFromBackoffQ = 0"], Gate::SchedulerPopFromBackoffQ, false);
    check(&["SchedulerPopFromBackoffQ=0", "SchedulerPopFromBackoffQ=1"], Gate::SchedulerPopFromBackoffQ, true);
    check(&["SchedulerQueueingHints=true"], Gate::SchedulerQueueingHints, true);
    check(&["WorkloadWithJob=false"], Gate::WorkloadWithJob, false);
}

#[test]
fn invalid_gates_give_upstreams_errors() {
    check_error(&["Nope=true"], &[], "unrecognized feature gate: Nope");
    check_error(&["PodLevelResources"], &[], "missing bool value for PodLevelResources");
    let text = "invalid value of X=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax";
    check_error(&["X=maybe"], &[], text);
    let text = "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true";
    check_error(&["DynamicResourceAllocation=false"], &[], text);
    let text = "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]";
    check_error(&["GangScheduling=true"], &[], text);
    check_error(&["wardle:X=true"], &[], "component not registered: wardle");
    let text = "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use";
    check_error(&["kube:PodLevelResources=true", "PodLevelResources=true"], &[], text);
}

#[test]
fn unsupported_gates_are_rejected() {
    check_error(&["GenericWorkload=true"], &[], "GenericWorkload is not supported yet");
    check_error(&["DRAPartitionableDevices=false"], &[], "DRAPartitionableDevices=false is not supported yet");
    let text = "[GangScheduling is not supported yet, GenericWorkload is not supported yet]";
    check_error(&["GangScheduling=true,GenericWorkload=true"], &[], text);
}

#[test]
fn all_alpha_does_not_override_named_gates() {
    let error = gates(&["AllAlpha=true"], &[]).expect_err("alpha gates are not built");
    assert!(error.contains("StorageCapacityScoring is not supported yet"), "{error}");
    let gates = gates(&["AllAlpha=false,TaintTolerationComparisonOperators=true"], &[]).expect("nothing new");
    assert!(gates.enabled(Gate::TaintTolerationComparisonOperators));
    assert!(!gates.enabled(Gate::AllAlpha));
}

#[test]
fn emulated_version_decides_defaults_and_locks() {
    let off = gates(&["SchedulerQueueingHints=false"], &["1.33"]).expect("not locked in 1.33");
    assert!(!off.enabled(Gate::SchedulerQueueingHints));
    assert_eq!(off.emulated_minor(), 33);
    let text = "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true";
    check_error(&["SchedulerQueueingHints=false"], &["kube=1.34"], text);
    let text = "cannot set feature gate OpportunisticBatching to true, feature is PreAlpha at emulated version 1.34, \
                min compatibility version 1.33";
    check_error(&["OpportunisticBatching=true"], &["1.34"], text);
}

#[test]
fn emulated_version_out_of_range_is_an_error() {
    let text = "[emulation version 1.30 is not between [1.33, 1.36.0], \
                minCompatibilityVersion version 1.33 is not between [1.33, 1.30]]";
    check_error(&[], &["1.30"], text);
    check_error(&[], &["1.37"], "emulation version 1.37 is not between [1.33, 1.36.0]");
    check_error(&[], &["kube=x"], "could not parse \"x\" as version");
    check_error(&[], &["1"], "illegal version string \"1\"");
    check_error(&[], &["1.35.2"], "patch version not allowed, got: kube=1.35.2");
    check_error(&[], &["1.35", "1.34"], "duplicate version flag, kube=1.35 and kube=1.34");
    check_error(&[], &["wardle=1.2"], "component not registered: wardle");
}
