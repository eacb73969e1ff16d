//! `docs/reference.md` against the program that it describes. With `KS_RECORD=1` its generated tables are written anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kube_scheduler::config::{BINARY_MINOR, FeatureGates, Gate};

/// Flags that are not all that they are upstream.
const FLAGS: [(&str, &str); 14] = [
    ("contention-profiling", "accepted; contention is not sampled, so the profiles `block` and `mutex` are empty"),
    ("kube-api-content-type", "accepted; requests always use JSON"),
    ("log-flush-frequency", "accepted; lines are written at once"),
    ("log-json-info-buffer-size", "needs the gate LoggingAlphaOptions, which is not supported yet"),
    ("log-json-split-stream", "needs the gate LoggingAlphaOptions, which is not supported yet"),
    ("log-text-info-buffer-size", "needs the gate LoggingAlphaOptions, which is not supported yet"),
    ("log-text-split-stream", "needs the gate LoggingAlphaOptions, which is not supported yet"),
    ("show-hidden-metrics-for-version", "accepted; no metric of 1.36 is hidden"),
    ("tls-cipher-suites", "all names that Go supports are accepted; only suites that rustls supports are offered"),
    (
        "tls-curve-preferences",
        "all numbers that Go supports are accepted; only key exchanges that rustls supports are offered",
    ),
    ("tls-min-version", "VersionTLS10 and VersionTLS11 are accepted with a warning; the minimum is then TLS 1.2"),
    ("v", "same levels as klog, but the messages at each level are this program's"),
    ("vmodule", "matches the names of this program's source files"),
    ("version", "prints `Kubernetes v1.36.3`, the release that this program is compatible with"),
];

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md")
}

/// Compares a table with what stands between its marks, or writes it there.
fn check(name: &str, table: &str) {
    let path = document();
    let text = fs::read_to_string(&path).expect("the document is there");
    let [begin, end] = ["begin", "end"].map(|which| format!("<!-- {which} of {name} -->\n"));
    let (before, rest) = text.split_once(&begin).expect("the table has a mark before it");
    let (known, after) = rest.split_once(&end).expect("the table has a mark after it");
    if std::env::var_os("KS_RECORD").is_some() {
        fs::write(&path, format!("{before}{begin}{table}{end}{after}")).expect("the document can be written");
    } else {
        assert!(known == table, "docs/reference.md is outdated; KS_RECORD=1 updates it:\n{table}");
    }
}

fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kube-scheduler")).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints UTF-8")
}

/// Both tables are in one file, which is written by one test after the other.
#[test]
fn flags_and_gates_are_documented() {
    check("flags", &flags());
    check("gates", &gates());
}

fn flags() -> String {
    let mut notes: BTreeMap<&str, &str> = FLAGS.into();
    let mut table = "| flag | purpose | here |\n|---|---|---|\n".to_owned();
    let help = run(&["--help"]);
    for line in help.lines().filter(|line| line.starts_with("  ")) {
        let Some((_, flag)) = line.split_once("--") else { continue };
        let Some((flag, what)) = flag.split_once("   ").filter(|(flag, _)| flag.split(' ').count() < 3) else {
            continue;
        };
        let name = flag.split([' ', '=']).next().unwrap_or_default();
        let note = notes.remove(name).unwrap_or("as upstream");
        let what = what.trim().replace('|', "\\|");
        writeln!(table, "| `--{flag}` | {what} | {note} |").expect("a string takes all");
    }
    assert!(notes.is_empty(), "no such flags: {notes:?}");
    table
}

fn gates() -> String {
    let used = used_gates();
    let mut table = "| gate | stage | default | here |\n|---|---|---|---|\n".to_owned();
    let mut others = Vec::new();
    for gate in Gate::ALL {
        let is_default_on = gate.default_at(BINARY_MINOR);
        let other = FeatureGates::default().with(*gate, !is_default_on);
        let is_supported = other.warnings().is_empty();
        if is_supported && !used.contains(gate.name()) {
            others.push(format!("`{}`", gate.name()));
            continue;
        }
        let stage = match gate.stage(BINARY_MINOR).name() {
            "" => "GA",
            name => name,
        };
        let locked = if gate.locked(BINARY_MINOR) { ", locked" } else { "" };
        let here = if is_supported { "as upstream" } else { "not supported yet: only the default value is accepted" };
        let default = if is_default_on { "on" } else { "off" };
        writeln!(table, "| `{}` | {stage} | {default}{locked} | {here} |", gate.name()).expect("a string takes all");
    }
    assert!(!others.is_empty() && !used.is_empty());
    write!(
        table,
        "\nAll other gates have no effect on the scheduler. They are accepted, except for values that upstream's locks forbid. \
         `AllAlpha` and `AllBeta` are rejected if they would change a gate that is not supported yet. The other gates are: {}.\n",
        others.join(", ")
    )
    .expect("a string takes all");
    table
}

/// The gates that the sources ask for.
fn used_gates() -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                if !path.ends_with("config/gates") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let names = text.split("Gate::").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next());
                used.extend(names.flatten().map(ToOwned::to_owned));
            }
        }
    }
    used
}

/// Every member of the configuration that is written out has a row.
#[test]
fn fields_are_documented() {
    let text = fs::read_to_string(document()).expect("the document is there");
    let folder = std::env::temp_dir().join(format!("kube-scheduler-reference-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let [given, written] = ["given.yaml", "written.yaml"].map(|name| folder.join(name));
    let kubeconfig = folder.join("kubeconfig");
    let server = "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n\
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n";
    fs::write(&kubeconfig, format!("apiVersion: v1\nkind: Config\n{server}")).expect("a file");
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let config = format!("{head}clientConnection: {{kubeconfig: '{}'}}\n", kubeconfig.display());
    fs::write(&given, config).expect("a file");
    run(&["--config", &given.display().to_string(), "--write-config-to", &written.display().to_string()]);
    let written: serde_yaml::Value =
        serde_yaml::from_str(&fs::read_to_string(&written).expect("it was written")).expect("it is YAML");
    fs::remove_dir_all(&folder).expect("the folder goes");
    let mut names = BTreeSet::new();
    members(&written, &mut names);
    let missing: Vec<&String> = names.iter().filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty() && names.len() > 30, "docs/reference.md says nothing of {missing:?}");
}

fn members(value: &serde_yaml::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_yaml::Value::Mapping(mapping) => {
            for (name, value) in mapping {
                names.extend(name.as_str().map(ToOwned::to_owned));
                members(value, names);
            }
        }
        serde_yaml::Value::Sequence(values) => values.iter().for_each(|value| members(value, names)),
        _ => {}
    }
}
