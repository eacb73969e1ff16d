//! Times this scheduler and upstream's alternately, so that other load on the machine affects both alike.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Setting;
use crate::workload::{PLAIN, PREEMPTION, WORKLOADS};

/// Number of times that each scheduler is timed. The median is used.
const ROUNDS: usize = 5;

/// Number of cycles in one timing.
const CYCLES: usize = 100;

/// Prints a table of the named workloads, or of all workloads if none is named: the mean times of a cycle, and upstream's time
/// as a multiple of ours. `bench` is the path of the program that is built from `tests/controlplane/cmd/bench`.
pub(crate) fn print(bench: &str, workloads: &[String]) {
    println!("{:36} {:>6} {:>9} {:>9} {:>9} {:>6}", "workload", "nodes", "scored", "ours ms", "theirs ms", "ratio");
    for workload in WORKLOADS.iter().filter(|known| workloads.is_empty() || workloads.iter().any(|name| name == *known))
    {
        for nodes in if *workload == PLAIN { &[1000, 5000, 15000][..] } else { &[5000] } {
            // In the preemption workload, no node fits, so no node is scored.
            for percentage in if *workload == PREEMPTION { &[0][..] } else { &[0, 100] } {
                let (nodes, percentage) = (*nodes, *percentage);
                let setting = Setting { workload, nodes, parallelism: 16, percentage, assume: true, cycles: CYCLES };
                print_row(bench, &setting);
            }
        }
    }
}

fn print_row(bench: &str, setting: &Setting) {
    let times = |_| (crate::time(setting), upstream(bench, setting));
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..ROUNDS).map(times).unzip();
    let (ours, theirs) = (median(ours), median(theirs));
    let scored = match (setting.workload, setting.percentage) {
        (PREEMPTION, _) => "none",
        (_, 0) => "adaptive",
        _ => "all",
    };
    let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
    let [ours, theirs] = [ours, theirs].map(|time| time.as_secs_f64() * 1000.0);
    println!("{:36} {:>6} {scored:>9} {ours:>9.3} {theirs:>9.3} {ratio:>6.1}", setting.workload, setting.nodes);
}

fn upstream(bench: &str, setting: &Setting) -> Duration {
    let mut command = Command::new(bench);
    for (flag, value) in [
        ("-workload", setting.workload),
        ("-nodes", &setting.nodes.to_string()),
        ("-percentage", &setting.percentage.to_string()),
        ("-cycles", &setting.cycles.to_string()),
    ] {
        command.args([flag, value]);
    }
    let output = command.output().expect("upstream's bench can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    Duration::from_nanos(line["nsPerOp"].as_u64().expect("a time"))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
