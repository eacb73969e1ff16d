//! Checks that `tests/parity/branches.tsv` lists everything that the plugins may decide. The list is compared with the sources,
//! the tests that it names, and the outcomes of the recorded cases.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{code, root, sources};

/// Files and folders of `src/plugins` that are not checked: plugins that are not compared with upstream yet, and code that
/// several plugins share.
const LEFT_OUT: &[&str] = &[
    "admission",
    "dynamic_resources",
    "event",
    "gang_scheduling",
    "json",
    "mod",
    "node_volume_limits",
    "normalize",
    "pod_group_pods_count",
    "topology_placement_generator",
    "unsupported",
    "utilization",
    "volume_binding",
    "volume_restrictions",
    "volume_zone",
];

/// Beginnings of the recorded outcomes that describe a case rather than a plugin's decision.
const ABOUT_CASES: &[&str] = &["existing ", "pending ", "spread ", "gates"];

/// A line of the list.
struct Line {
    number: usize,
    plugin: String,
    point: String,
    branch: String,
    tests: Vec<String>,
}

/// Names of actions: in the sources, and in the list.
const ACTIONS: &[(&str, &str)] = &[
    ("ADD", "Add"),
    ("DELETE", "Delete"),
    ("UPDATE", "Update"),
    ("UPDATE_NODE_ALLOCATABLE", "UpdateNodeAllocatable"),
    ("UPDATE_NODE_LABEL", "UpdateNodeLabel"),
    ("UPDATE_NODE_TAINT", "UpdateNodeTaint"),
    ("UPDATE_NODE_DECLARED_FEATURE", "UpdateNodeDeclaredFeature"),
    ("UPDATE_POD_LABEL", "UpdatePodLabel"),
    ("UPDATE_POD_SCALE_DOWN", "UpdatePodScaleDown"),
    ("UPDATE_POD_TOLERATION", "UpdatePodToleration"),
    ("UPDATE_POD_SCHEDULING_GATES_ELIMINATED", "UpdatePodSchedulingGatesEliminated"),
];

/// Code in a plugin's sources that requires a line in the list: the code, the point in the line, and the beginning of the
/// line's branch.
const HAS: &[(&str, &str, &str)] = &[
    ("PreFilterOutcome::Skip", "PreFilter", "Skip"),
    ("PreScoreOutcome::Skip", "PreScore", "Skip"),
    ("SignOutcome::Refuse", "Sign", "refused"),
    ("impl SignPlugin for", "Sign", ""),
    ("impl FilterPlugin for", "Filter", ""),
    ("impl ScorePlugin for", "Score", ""),
    ("impl NormalizeScore for", "Normalize", ""),
    ("impl PreEnqueuePlugin for", "PreEnqueue", ""),
    ("impl PostFilterPlugin for", "PostFilter", ""),
    ("impl EnqueueExtensions for", "Hint", ""),
];

fn read(name: &str) -> String {
    let path = root().join("tests/parity").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lines() -> Vec<Line> {
    let text = read("branches.tsv");
    let numbered = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    numbered
        .map(|(at, line)| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [plugin, point, branch, tests] = columns[..] else { panic!("line {}: four columns", at + 1) };
            let tests = tests.split("; ").map(str::to_owned).collect();
            Line { number: at + 1, plugin: plugin.into(), point: point.into(), branch: branch.into(), tests }
        })
        .collect()
}

/// Outcomes that recorded cases reach.
fn outcomes() -> BTreeSet<String> {
    let text = read("outcomes.tsv");
    text.lines().filter_map(|line| line.split_once('\t')).map(|(_, outcome)| outcome.to_owned()).collect()
}

/// Whether `words` stands for this outcome. A `*` at the end of `words` stands for any ending.
fn is_about(words: &str, outcome: &str) -> bool {
    words.strip_suffix('*').map_or(words == outcome, |beginning| outcome.starts_with(beginning))
}

/// Returns the files in which the module with this path may be, the innermost file first.
fn module_files(path: &[&str]) -> Vec<PathBuf> {
    let (folder, path) = match path {
        ["controlplane", rest @ ..] => ("tests/controlplane", rest),
        ["parity", rest @ ..] => ("tests/parity", rest),
        ["it", rest @ ..] => ("tests/it", rest),
        path => ("src", path),
    };
    let base = path.iter().fold(root().join(folder), |base, part| base.join(part));
    let mut files = vec![base.with_extension("rs"), base.join("mod.rs"), base.join("main.rs")];
    if path.last() == Some(&"tests") {
        let outer = base.parent().expect("a module around the tests");
        files.extend([outer.with_extension("rs"), outer.join("mod.rs")]);
    }
    files
}

/// Whether there is a test with this path.
fn exists(test: &str) -> bool {
    let parts: Vec<&str> = test.split("::").collect();
    let Some((name, module)) = parts.split_last() else { return false };
    let is_trial = module == ["controlplane"];
    module_files(module).iter().filter_map(|file| fs::read_to_string(file).ok()).any(|text| {
        let function = format!("fn {name}(");
        if is_trial {
            let quoted = format!("\"{name}\"");
            return text.split("Trial::test(").skip(1).any(|after| after.trim_start().starts_with(&quoted));
        }
        text.split("#[test]").skip(1).any(|after| after.trim_start().starts_with(&function))
    })
}

#[test]
fn every_line_names_existing_tests() {
    let outcomes = outcomes();
    let mut wrong = Vec::new();
    for line in lines() {
        for test in &line.tests {
            let fine = if let Some(words) = test.strip_prefix("corpus: ") {
                outcomes.iter().any(|outcome| is_about(words, outcome))
            } else if let Some(why) = test.strip_prefix("never: ") {
                !why.is_empty()
            } else {
                exists(test)
            };
            if !fine {
                wrong.push(format!("line {}: {test}", line.number));
            }
        }
    }
    assert!(wrong.is_empty(), "no such tests or outcomes:\n{}", wrong.join("\n"));
}

#[test]
fn unreachable_messages_are_not_in_the_sources() {
    let code: String = plugins().into_values().collect();
    for line in lines().into_iter().filter(|line| line.tests[0].starts_with("never: ")) {
        // Every other part stands between backquotes.
        let said = line.branch.split('`').skip(1).step_by(2).find(|text| code.contains(text));
        assert_eq!(said, None, "line {}", line.number);
    }
}

#[test]
fn every_recorded_outcome_is_listed() {
    let lines = lines();
    let listed: Vec<&str> =
        lines.iter().flat_map(|line| &line.tests).filter_map(|test| test.strip_prefix("corpus: ")).collect();
    let outcomes = outcomes();
    let missing: Vec<&String> = outcomes
        .iter()
        .filter(|outcome| !ABOUT_CASES.iter().any(|beginning| outcome.starts_with(beginning)))
        .filter(|outcome| !listed.iter().any(|words| is_about(words, outcome)))
        .collect();
    assert!(missing.is_empty(), "recorded, and in no line of branches.tsv: {missing:#?}");
}

/// Returns the code of each compared plugin, by the plugin's name. The code of preemption belongs to `DefaultPreemption`.
fn plugins() -> BTreeMap<String, String> {
    let folder = root().join("src/plugins");
    let mut by_module: BTreeMap<String, String> = BTreeMap::new();
    for (path, text) in sources() {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let in_tests = path.components().any(|part| part.as_os_str() == "tests") || name == "tests";
        if in_tests || name == "fixture" {
            continue;
        }
        let module = if path.starts_with(root().join("src/framework/preemption")) {
            "default_preemption"
        } else if let Ok(relative) = path.strip_prefix(&folder) {
            let first = relative.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
            // The folder of `NodeResourcesFit` also contains `NodeResourcesBalancedAllocation`.
            if name == "balanced_allocation" { name } else { first.trim_end_matches(".rs") }
        } else {
            continue;
        };
        if !LEFT_OUT.contains(&module) {
            by_module.entry(module.to_owned()).or_default().push_str(&code(&text));
        }
    }
    let named = |(module, code): (String, String)| {
        let after = code.split("pub const NAME: &str = \"").nth(1);
        let name = after.and_then(|after| after.split('"').next());
        (name.unwrap_or_else(|| panic!("{module} has no NAME")).to_owned(), code)
    };
    by_module.into_iter().map(named).collect()
}

#[test]
fn every_plugin_is_listed_with_its_extension_points() {
    let lines = lines();
    let mut wrong = Vec::new();
    for (plugin, code) in plugins() {
        let of_plugin: Vec<&Line> = lines.iter().filter(|line| line.plugin == plugin).collect();
        if of_plugin.is_empty() {
            wrong.push(format!("{plugin}: not listed"));
        }
        for (has, point, begins) in HAS {
            let is_there = of_plugin.iter().any(|line| line.point == *point && line.branch.starts_with(begins));
            // A line without such code is allowed, because plugins of one folder may share the code in its mod.rs.
            if code.contains(has) && !is_there {
                wrong.push(format!("{plugin}: {has}, and no line {point} {begins}"));
            }
        }
        for (action, name) in ACTIONS {
            let named = format!("ActionType::{action}");
            let ends = |after: &str| !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
            if !code.split(&named).skip(1).any(ends) {
                continue;
            }
            for outcome in ["Queue", "Skip"] {
                let begins = |line: &&&Line, kind: &str| {
                    line.point == "Hint" && line.branch.starts_with(&format!("{kind} {name} → {outcome}: "))
                };
                let of_kinds = ["Pod", "Node", "DeviceClass"];
                let is_there = of_kinds.iter().any(|kind| of_plugin.iter().any(|line| begins(&line, kind)));
                if !is_there && !one_sided(&plugin, name, outcome) {
                    wrong.push(format!("{plugin}: {named} is registered, and no hint {name} → {outcome}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether the plugin's hint for this event never returns this outcome.
fn one_sided(plugin: &str, event: &str, outcome: &str) -> bool {
    match outcome {
        "Queue" => plugin == "DefaultPreemption",
        _ => event == "Add" && matches!(plugin, "NodeName" | "NodePorts" | "NodeDeclaredFeatures"),
    }
}

/// Returns the string literals that contain a space, without backslashes. The texts of panics and the reasons of lint
/// attributes are left out.
fn texts(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once('"') {
        let mut text = String::new();
        let mut letters = after.char_indices();
        let mut end = after.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => text.extend(letters.next().map(|(_, escaped)| escaped)),
                letter => text.push(letter),
            }
        }
        let before = before.trim_end();
        let is_remark = ["expect(", "reason =", "panic!(", "unreachable!("].iter().any(|call| before.ends_with(call));
        if text.trim().contains(' ') && !is_remark {
            found.push(text);
        }
        rest = &after[end..];
    }
    found
}

/// Splits a format string at its placeholders. Returns the pieces that contain a space.
fn pieces(text: &str) -> Vec<&str> {
    let pieces = text.split('{').flat_map(|part| part.split_once('}').map_or([part, ""], |(_, after)| [after, ""]));
    pieces.filter(|piece| piece.trim().contains(' ')).collect()
}

#[test]
fn every_reason_is_listed() {
    let lines = lines();
    let mut missing = Vec::new();
    for (plugin, code) in plugins() {
        let branches: Vec<&str> = lines.iter().map(|line| line.branch.as_str()).collect();
        for text in texts(&code) {
            let is_listed =
                pieces(&text).iter().all(|piece| branches.iter().any(|branch| branch.contains(piece.trim())));
            if !is_listed {
                missing.push(format!("{plugin}: {text:?}"));
            }
        }
    }
    assert!(missing.is_empty(), "in the sources, and in no line of branches.tsv:\n{}", missing.join("\n"));
}
