//! Tests of [`super`]: command lines, and the flags, configurations or texts expected for them.

use super::{FlagError, Flags, VersionFlag};
use crate::config::{FeatureGates, Gate};
use crate::go::duration::GoDuration;
use crate::plugins::registry;

fn parse(line: &[&str]) -> Result<Flags, FlagError> {
    Flags::parse(line.iter().map(|word| (*word).to_owned()))
}

fn flags(line: &[&str]) -> Flags {
    parse(line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

fn check_usage(line: &[&str], expected: &str) {
    assert_eq!(parse(line), Err(FlagError::Usage(expected.to_owned())), "{line:?}");
}

#[test]
fn empty_command_line_sets_no_flag() {
    assert_eq!(flags(&[]), Flags::default());
    assert_eq!(flags(&[]).pod_max_in_unschedulable_pods().to_string(), "5m0s");
    assert_eq!(flags(&[]).verbosity(), 0);
}

#[test]
fn booleans_take_a_value_only_with_an_equals_sign() {
    let elect = |line: &[&str]| flags(line).leader_election.leader_elect;
    assert_eq!(elect(&["--leader-elect"]), Some(true));
    assert_eq!(elect(&["--leader-elect=false"]), Some(false));
    assert_eq!(elect(&["--leader_elect=F"]), Some(false));
    assert_eq!(elect(&["--leader-elect=false", "--leader-elect"]), Some(true));
    let text = "invalid argument \"x\" for \"--leader-elect\" flag: strconv.ParseBool: parsing \"x\": invalid syntax";
    check_usage(&["--leader-elect=x"], text);
    let text = "\"kube-scheduler\" does not take any arguments, got [\"false\"]";
    assert_eq!(parse(&["--leader-elect", "false"]), Err(FlagError::Arguments(text.to_owned())));
}

#[test]
fn values_may_be_separate_attached_or_look_like_flags() {
    for line in [&["--config", "/a_b"][..], &["--config=/a_b"], &["--config=x", "--config", "/a_b"]] {
        assert_eq!(flags(line).misc.config.as_deref(), Some("/a_b"), "{line:?}");
    }
    assert_eq!(flags(&["--config", "--a_b"]).misc.config.as_deref(), Some("--a_b"));
    assert_eq!(flags(&["--config="]).misc.config.as_deref(), Some(""));
    for line in [&["-v", "4"][..], &["-v4"], &["-v=4"], &["--v=4"], &["--v", "4"]] {
        assert_eq!(flags(line).verbosity(), 4, "{line:?}");
    }
    assert_eq!(flags(&["--kube-api-qps=-1"]).deprecated.kube_api_qps, Some(-1.0));
    assert_eq!(flags(&["--kube_api_burst", "-5"]).deprecated.kube_api_burst, Some(-5));
}

#[test]
fn invalid_command_lines_give_upstreams_errors() {
    check_usage(&["--bogus"], "unknown flag: --bogus");
    check_usage(&["--bogus_flag=3"], "unknown flag: --bogus_flag");
    check_usage(&["---x"], "bad flag syntax: ---x");
    check_usage(&["--=5"], "bad flag syntax: --=5");
    check_usage(&["--config", "--=4", "--=5", "--bogus"], "bad flag syntax: --=5");
    check_usage(&["--bogus", "--=5"], "unknown flag: --bogus");
    check_usage(&["-x"], "unknown shorthand flag: 'x' in -x");
    check_usage(&["--config"], "flag needs an argument: --config");
    check_usage(&["-v"], "flag needs an argument: 'v' in -v");
    let text = "invalid argument \"x\" for \"-v, --v\" flag: strconv.ParseUint: parsing \"x\": invalid syntax";
    check_usage(&["-v", "x"], text);
    let text = "invalid argument \"5\" for \"--pod-max-in-unschedulable-pods-duration\" flag: \
                time: missing unit in duration \"5\"";
    check_usage(&["--pod-max-in-unschedulable-pods-duration=5"], text);
    let text = "invalid argument \"z\" for \"--kube-api-burst\" flag: strconv.ParseInt: parsing \"z\": invalid syntax";
    check_usage(&["--kube-api-burst", "z"], text);
}

#[test]
fn non_empty_positional_arguments_are_rejected() {
    let text = "\"kube-scheduler\" does not take any arguments, got [\"foo\" \"\"]";
    assert_eq!(parse(&["foo", ""]), Err(FlagError::Arguments(text.to_owned())));
    assert!(parse(&["", ""]).is_ok());
    let text = "\"kube-scheduler\" does not take any arguments, got [\"--leader-elect\"]";
    assert_eq!(parse(&["--", "--leader-elect"]), Err(FlagError::Arguments(text.to_owned())));
    assert_eq!(flags(&["--help", "foo"]).global.help, Some(true), "help comes first");
}

#[test]
fn version_and_help_flags_are_parsed() {
    let version = |line: &[&str]| flags(line).global.version;
    assert_eq!(version(&["--version"]), Some(VersionFlag::Print));
    assert_eq!(version(&["--version=raw"]), Some(VersionFlag::Raw));
    assert_eq!(version(&["--version=false"]), Some(VersionFlag::No));
    assert_eq!(flags(&["-h"]).global.help, Some(true));
    assert_eq!(flags(&["--help=false"]).global.help, Some(false));
    let help = Flags::help();
    assert!(help.contains("--leader-elect") && help.contains("Leader election flags:"), "{help}");
}

#[test]
fn feature_gates_and_emulated_version_are_applied() {
    let gates =
        flags(&["--feature-gates=SchedulerPopFromBackoffQ=false", "--feature_gates", "PodLevelResources=true"]).gates();
    assert_eq!(gates.map(|gates| gates.enabled(Gate::SchedulerPopFromBackoffQ)), Ok(false));
    let gates = flags(&["--emulated-version=1.34"]).gates().expect("in range");
    assert_eq!(gates.emulated_minor(), 34);
}

#[test]
fn without_a_file_flags_override_the_defaults() {
    let gates = FeatureGates::default();
    let line = ["--kubeconfig=/k", "--kube-api-qps=7", "--leader-elect=false", "--profiling=false"];
    let config = flags(&line).config(&gates, registry().catalog()).expect("valid");
    assert_eq!(config.client_connection.kubeconfig, "/k");
    assert_eq!((config.client_connection.qps, config.client_connection.burst), (7.0, 100));
    assert!(!config.leader_election.leader_elect);
    assert_eq!((config.enable_profiling, config.enable_contention_profiling), (false, true));
    // Only the defaults are validated, not the flags.
    let config = flags(&["--leader-elect-lease-duration=-1s"]).config(&gates, registry().catalog()).expect("unchecked");
    assert_eq!(config.leader_election.lease_duration, GoDuration::from_secs(-1));
}

#[test]
fn with_a_file_only_leader_election_flags_override() {
    let gates = FeatureGates::default();
    let path = std::env::temp_dir().join(format!("flags-test-{}.yaml", std::process::id()));
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 3\n";
    std::fs::write(&path, text).expect("a temporary file");
    let file = format!("--config={}", path.display());
    let config = flags(&[&file, "--kubeconfig=/k", "--leader-elect-resource-name=mine"])
        .config(&gates, registry().catalog())
        .expect("valid");
    assert_eq!(config.parallelism, 3);
    assert_eq!(config.client_connection.kubeconfig, "");
    assert_eq!(config.leader_election.resource_name, "mine");
    let error = flags(&[&file, "--leader-elect-resource-lock=endpoints"])
        .config(&gates, registry().catalog())
        .expect_err("checked");
    let text = "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be \"leases\"";
    assert_eq!(error.to_string(), text);
    std::fs::remove_file(&path).expect("removes");
}
