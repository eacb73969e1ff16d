//! The grammar of the command line, which is pflag's. clap parses the arguments. Before and after that, this module handles the
//! differences between clap and pflag.
//!
//! Names may contain `_` instead of `-`. A flag may be repeated: its last value is used, and lists grow. Errors have upstream's
//! texts.
//! Follows `github.com/spf13/pflag/flag.go#parseArgs`, `github.com/spf13/pflag/errors.go` and
//! `cmd/kube-scheduler/app/server.go#NewSchedulerCommand @v1.36.3`.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Parser};

use super::Flags;
use crate::go::quote::quote;

/// The error of an invalid command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// Printed as `Error: …` after the usage, with exit code 1.
    #[error("{0}")]
    Usage(String),
    /// Printed as `Error: …` without the usage, with exit code 1.
    #[error("{0}")]
    Arguments(String),
}

impl Flags {
    /// Parses the command line, without the program's name.
    pub fn parse<I: IntoIterator<Item = String>>(args: I) -> Result<Self, FlagError> {
        let command = Self::command();
        let (args, no_flag) = normalize(&command, args);
        let with_name = std::iter::once(command.get_name().to_owned()).chain(args.iter().cloned());
        let flags = Self::try_parse_from(with_name).map_err(|error| usage_error(&command, &error, &args))?;
        if let Some(text) = no_flag {
            return Err(FlagError::Usage(format!("bad flag syntax: {text}")));
        }
        // `--help` takes precedence over the error about arguments.
        if flags.global.help != Some(true) && flags.positional.iter().any(|text| !text.is_empty()) {
            let shown: Vec<String> = flags.positional.iter().map(|text| quote(text)).collect();
            let name = quote(command.get_name());
            let text = format!("{name} does not take any arguments, got [{}]", shown.join(" "));
            return Err(FlagError::Arguments(text));
        }
        Ok(flags)
    }
}

/// Replaces `_` by `-` in the names of flags, but not in values. Stops at a text that cannot be a flag, and returns it.
fn normalize<I: IntoIterator<Item = String>>(command: &Command, args: I) -> (Vec<String>, Option<String>) {
    let mut out = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        if arg == "--" {
            out.push(arg);
            out.extend(args);
            break;
        }
        let Some(flag) = arg.strip_prefix("--") else {
            out.push(arg);
            continue;
        };
        if flag.starts_with(['-', '=']) {
            return (out, Some(arg));
        }
        let (name, value) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        let normal = name.replace('_', "-");
        // The error about an unknown flag contains the name as given.
        let name = if find(command, &normal).is_some() { normal } else { name.to_owned() };
        let takes_next = value.is_none() && find(command, &name).is_some_and(|arg| !arg.is_require_equals_set());
        out.push(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")));
        if takes_next {
            out.extend(args.next());
        }
    }
    (out, None)
}

fn find<'a>(command: &'a Command, name: &str) -> Option<&'a clap::Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(name))
}

/// Converts an error of clap to pflag's text.
fn usage_error(command: &Command, error: &clap::Error, args: &[String]) -> FlagError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let given = context(ContextKind::InvalidArg);
    let text = match error.kind() {
        ErrorKind::UnknownArgument => unknown(given, args),
        ErrorKind::ValueValidation => {
            let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            let value = quote(context(ContextKind::InvalidValue));
            format!("invalid argument {value} for {} flag: {cause}", quote(&flag_name(command, given)))
        }
        ErrorKind::InvalidValue => missing(command, given, args),
        _ => error.to_string(),
    };
    FlagError::Usage(text)
}

/// The error for an unknown flag: `--name`, or the first unknown letter of `-letters`.
fn unknown(given: &str, args: &[String]) -> String {
    if let Some(name) = given.strip_prefix("--") {
        let name = name.split('=').next().unwrap_or_default();
        return format!("unknown flag: --{name}");
    }
    let letters = given.trim_start_matches('-');
    let cluster = args.iter().find(|arg| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letters));
    let cluster = cluster.map_or(given, String::as_str);
    format!("unknown shorthand flag: '{letters}' in {cluster}")
}

/// pflag's name for a flag: `--name`, or `-n, --name` if it has a short form.
fn flag_name(command: &Command, given: &str) -> String {
    let long = given.split([' ', '=', '[']).next().unwrap_or_default();
    let name = long.trim_start_matches('-');
    match find(command, name).and_then(clap::Arg::get_short) {
        Some(short) => format!("-{short}, --{name}"),
        None => format!("--{name}"),
    }
}

fn missing(command: &Command, given: &str, args: &[String]) -> String {
    let long = given.split([' ', '=', '[']).next().unwrap_or_default();
    let short = find(command, long.trim_start_matches('-')).and_then(clap::Arg::get_short);
    match (short, args.last()) {
        (Some(short), Some(last)) if !last.starts_with("--") => {
            format!("flag needs an argument: '{short}' in {last}")
        }
        _ => format!("flag needs an argument: {long}"),
    }
}
