//! The output of `--help`: the flags by section, each with its type and default.

use std::fmt::Write as _;

use clap::{Arg, CommandFactory as _};

use super::Flags;
use super::shown::FlagValue;

const INTRODUCTION: &str = "Schedules the pods of a Kubernetes cluster.\n\n";

const USAGE: &str = "\
Usage:
  kube-scheduler [flags]
  kube-scheduler simulate [OPTIONS] [FILE]...   (needs no cluster; see 'kube-scheduler simulate --help')
  kube-scheduler explain [OPTIONS] [POD]        (reads files or a running cluster; see 'kube-scheduler explain --help')
";

impl Flags {
    /// Returns the output of `--help`.
    pub fn help() -> String {
        INTRODUCTION.to_owned() + &Self::usage()
    }

    /// Returns the usage printed before an error: the help without the introduction.
    pub fn usage() -> String {
        let command = Self::command();
        let values = Self::default().values();
        let mut out = USAGE.to_owned();
        let mut sections: Vec<(&str, Vec<&Arg>)> = Vec::new();
        for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            let heading = arg.get_help_heading().unwrap_or_default();
            match sections.iter_mut().find(|(name, _)| *name == heading) {
                Some((_, args)) => args.push(arg),
                None => sections.push((heading, vec![arg])),
            }
        }
        for (heading, mut args) in sections {
            args.sort_by_key(|arg| arg.get_long());
            let rows: Vec<(String, String)> = args.iter().map(|arg| row(arg, &values)).collect();
            let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or_default();
            let _ = write!(out, "\n{heading}:\n\n");
            for (left, right) in rows {
                let _ = writeln!(out, "{left:width$}   {right}");
            }
        }
        out
    }
}

/// The two columns of a flag: its name with its type, and its help with its default.
fn row(arg: &Arg, values: &[FlagValue]) -> (String, String) {
    let name = arg.get_long().unwrap_or_default();
    let short = arg.get_short().map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = values.iter().find(|value| value.name == name);
    let kind = value.map_or("", |value| value.kind);
    let left = format!("  {short}--{name}{}{kind}", if kind.is_empty() { "" } else { " " });
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let default = value.map(|value| value.default.as_str()).filter(|default| !default.is_empty());
    (left, default.map_or_else(|| help.clone(), |default| format!("{help} (default {default})")))
}
