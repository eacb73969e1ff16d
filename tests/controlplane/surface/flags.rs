//! The flags by what `--help` says of them.

use std::collections::BTreeMap;

use libtest_mimic::Failed;

use super::{Whose, scratch};

/// A flag: its section, its short name, its type, its default.
#[derive(Debug, PartialEq, Eq)]
struct Flag {
    section: String,
    short: Option<char>,
    kind: String,
    default: String,
}

/// Same flags, in the same sections, of the same types, with the same defaults.
pub(crate) fn flags_equal_upstreams() -> Result<(), Failed> {
    let folder = scratch("flags")?;
    let help = |whose: Whose| whose.run(&["--help".to_owned()], &folder);
    let (theirs, ours) = (help(Whose::Upstreams)?, help(Whose::Ours)?);
    if (theirs.code, ours.code) != (Some(0), Some(0)) {
        return Err(format!("exit codes: {:?} and {:?}", theirs.code, ours.code).into());
    }
    let (theirs, ours) = (read(&theirs.stdout), read(&ours.stdout));
    if theirs.len() < 50 {
        return Err(format!("only {} flags of upstream were read", theirs.len()).into());
    }
    let mut differences = Vec::new();
    for name in theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name))) {
        if theirs.get(name) != ours.get(name) {
            differences.push(format!("--{name}: upstream {:?}, ours {:?}", theirs.get(name), ours.get(name)));
        }
    }
    println!("{} flags", theirs.len());
    std::fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n").into()) }
}

fn read(help: &str) -> BTreeMap<String, Flag> {
    let mut flags: BTreeMap<String, Flag> = BTreeMap::new();
    let mut section = String::new();
    let mut last: Option<String> = None;
    for line in help.lines() {
        if let Some(name) = line.strip_suffix(" flags:").filter(|name| !name.starts_with(' ')) {
            name.clone_into(&mut section);
        } else if let Some((short, rest)) = flag_line(line) {
            let (left, right) = rest.split_once("   ").unwrap_or((rest, ""));
            let (name, kind) = left.trim_end().split_once(' ').unwrap_or((left.trim_end(), ""));
            let default = default_in(right);
            let flag = Flag { section: section.clone(), short, kind: kind.to_owned(), default };
            flags.insert(name.to_owned(), flag);
            last = Some(name.to_owned());
        } else if let Some(flag) = last.as_ref().and_then(|name| flags.get_mut(name))
            && !default_in(line).is_empty()
        {
            flag.default = default_in(line);
        }
    }
    flags
}

/// The short name of a flag and what follows its dashes, if the line begins with one.
fn flag_line(line: &str) -> Option<(Option<char>, &str)> {
    let trimmed = line.trim_start();
    // What continues a flag's text is further to the right.
    if line.len() - trimmed.len() > 6 {
        return None;
    }
    if let Some(rest) = trimmed.strip_prefix("--") {
        return Some((None, rest));
    }
    let short = trimmed.strip_prefix('-')?.chars().next()?;
    trimmed.split_once(", --").map(|(_, rest)| (Some(short), rest))
}

/// A default at the end of the text; pflag does not leave out all that are empty.
fn default_in(text: &str) -> String {
    let found = text.trim_end().strip_suffix(')').and_then(|text| text.rsplit_once("(default "));
    found.map(|(_, default)| default.to_owned()).filter(|default| default != "[]").unwrap_or_default()
}
