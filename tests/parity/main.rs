//! Compares our answers for small clusters with upstream's recorded answers, without Go. `README.md` in this folder tells how
//! the cases were recorded.

#[expect(dead_code, reason = "shared with the tests on the control plane, which ask the oracle, too")]
#[path = "../controlplane/parity/case.rs"]
mod case;
#[path = "../controlplane/parity/changes.rs"]
mod changes;
#[expect(dead_code, reason = "shared with the tests on the control plane, which shrink what fails")]
#[path = "../controlplane/parity/compare.rs"]
mod compare;
#[expect(dead_code, reason = "shared with the tests on the control plane, which write the cases")]
mod corpus;
#[expect(dead_code, reason = "shared with the tests on the control plane, which count more")]
#[path = "../controlplane/parity/coverage.rs"]
mod coverage;
#[expect(dead_code, reason = "shared with the tests on the control plane, which ask single plugins, too")]
#[path = "../controlplane/parity/ours.rs"]
mod ours;
#[expect(dead_code, reason = "shared with the tests on the control plane, which look at what is unreachable")]
#[path = "../controlplane/parity/reach.rs"]
mod reach;
#[path = "../controlplane/parity/spread.rs"]
mod spread;
#[path = "../controlplane/parity/terms.rs"]
mod terms;

use std::fmt::Write as _;

use compare::compare;
use coverage::Coverage;

/// Maximum number of mismatches that are printed for a case.
const SHOWN: usize = 8;

/// Returns the recorded cases: all of them, or only the one with the seed that `KS_CASE` names.
fn wanted() -> Vec<corpus::Recorded> {
    let mut cases = corpus::all().expect("the recorded cases can be read");
    if let Ok(seed) = std::env::var("KS_CASE") {
        cases.retain(|recorded| recorded.case.seed.to_string() == seed);
        assert!(!cases.is_empty(), "KS_CASE: no recorded case has the seed {seed:?}");
    }
    cases
}

#[test]
fn we_say_what_upstream_said() {
    let mut report = String::new();
    for corpus::Recorded { case, answer } in wanted() {
        let file = corpus::file(case.seed);
        match ours::answer(&case) {
            Ok(ours) => {
                let mismatches = compare(&case, &answer, &ours);
                for mismatch in mismatches.iter().take(SHOWN) {
                    let _ = writeln!(report, "{} {mismatch}", file.display());
                }
            }
            Err(error) => {
                let _ = writeln!(report, "{}: we refuse the case: {error}", file.display());
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn the_cases_reach_what_there_is_to_reach() {
    let mut coverage = Coverage::default();
    let mut cases_by_outcome = std::collections::BTreeMap::<String, usize>::new();
    for corpus::Recorded { case, answer } in corpus::all().expect("the recorded cases can be read") {
        coverage.add(&case, &answer);
        for outcome in Coverage::of(&case, &answer).outcomes() {
            *cases_by_outcome.entry(outcome.to_owned()).or_default() += 1;
        }
    }
    let missing = coverage.missing();
    assert!(missing.is_empty(), "in no recorded case:\n  {}", missing.join("\n  "));
    let mut list = String::new();
    for (outcome, cases) in &cases_by_outcome {
        let _ = writeln!(list, "{cases}\t{outcome}");
    }
    let written = std::fs::read_to_string(corpus::outcomes_file()).expect("the list of outcomes can be read");
    assert_eq!(written, list, "{} lists other outcomes than the cases reach", corpus::outcomes_file().display());
}
