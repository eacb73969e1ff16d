//! Every example, with the output that it is expected to have. `UPDATE_EXPECT=1 cargo test` rewrites the expectations.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::run;

/// Arguments of each run, and the file that has what it prints.
const RUNS: &[(&[&str], &str)] = &[
    (&["config/examples/mixed.yaml"], "mixed.txt"),
    (&["config/examples/mixed.yaml", "-o", "json"], "mixed.json"),
    (&["config/examples/mixed.yaml", "-o", "yaml", "--events"], "mixed-events.yaml"),
    (
        &["--config", "config/examples/two-profiles.yaml", "config/examples/bin-packing.yaml", "--events"],
        "bin-packing.txt",
    ),
    (&["config/examples/preemption.yaml", "--events"], "preemption.txt"),
    (&["config/examples/preemption.yaml", "--feature-gates", "SchedulerAsyncPreemption=false"], "preemption-waits.txt"),
    (&["--nodes", "5", "--pods", "12", "--seed", "7"], "generated.txt"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn expectation(name: &str) -> PathBuf {
    root().join("tests/it/expect").join(name)
}

fn simulate(arguments: &[&str]) -> String {
    let output = run(&[&["simulate"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("output is text")
}

#[test]
fn examples_print_the_recorded_output() {
    for (arguments, name) in RUNS {
        let printed = simulate(arguments);
        let path = expectation(name);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder for expectations");
            fs::write(&path, &printed).expect("an expectation is written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(printed == expected, "{arguments:?} prints something else than {name}:\n{printed}");
    }
}

#[test]
fn same_input_and_seed_print_the_same_output() {
    for (arguments, _) in RUNS {
        assert_eq!(simulate(arguments), simulate(arguments), "{arguments:?}");
    }
}

#[test]
fn every_example_is_run() {
    let named: BTreeSet<&str> = RUNS
        .iter()
        .flat_map(|(arguments, _)| *arguments)
        .filter_map(|text| text.strip_prefix("config/examples/"))
        .collect();
    let folder = fs::read_dir(root().join("config/examples")).expect("the examples");
    let forgotten: Vec<String> = folder
        .map(|entry| entry.expect("an example").file_name().to_string_lossy().into_owned())
        .filter(|name| !named.contains(name.as_str()))
        .collect();
    assert!(forgotten.is_empty(), "no run uses {forgotten:?}");
}
