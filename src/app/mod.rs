//! The `kube-scheduler` command, which runs the scheduler or one of its subcommands.

mod connect;
mod debugger;
mod endpoints;
mod lead;
mod logging;
mod serve;
mod serving;
mod signals;
mod version;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use version::VersionArgs;

use crate::explain::{ExplainArgs, Form, explain};
use crate::framework::{DuplicatePlugin, FactoryArgs, Handle, PluginError, Registration, Registry};
use crate::plugins;
use crate::simulate::{Output, Report, SimulateArgs, say, simulate};

/// The allocator of the binary. A program without it has no heap profiles and uses more memory.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: kube_scheduler::app::Allocator = kube_scheduler::app::Allocator;
/// ```
pub use tikv_jemallocator::Jemalloc as Allocator;

/// Exit code: all pods were scheduled, or the command succeeded.
const DONE: u8 = 0;

/// Exit code: bad input or usage, or the scheduler failed, lost its lease, or was told to shut down without leader election.
const FAILED: u8 = 1;

/// Exit code: some pods are pending.
const PENDING: u8 = 2;

/// Maximum characters of an error that are shown. Some errors quote their input, which may be a whole file.
const MAX_ERROR: usize = 2000;

/// A scheduler with the in-tree plugins and with added out-of-tree plugins.
///
/// ```no_run
/// # use kube_scheduler::app::App;
/// # use kube_scheduler::framework::{Handle, PluginError, Registration};
/// # fn factory(_: (), _: &Handle) -> Result<Registration, PluginError> { Ok(Registration::new("MyPlugin")) }
/// App::new().with_plugin("MyPlugin", factory).run();
/// ```
#[derive(Debug)]
#[must_use]
pub struct App {
    plugins: Registry,
    duplicate: Option<DuplicatePlugin>,
}

/// The commands that schedule no running cluster.
#[derive(Parser, Debug)]
#[command(name = "kube-scheduler", disable_help_subcommand = true)]
struct Commands {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Schedule the pods of cluster files on a simulated cluster
    Simulate(SimulateArgs),
    /// Explain where a pending pod would be scheduled, or why it is unschedulable
    Explain(ExplainArgs),
    /// Print the version of this program and of the compatible Kubernetes release
    Version(VersionArgs),
}

impl Default for App {
    fn default() -> Self {
        Self::new()
    }
}

impl App {
    /// Creates a scheduler with the in-tree plugins.
    pub fn new() -> Self {
        Self { plugins: plugins::registry(), duplicate: None }
    }

    /// Adds an out-of-tree plugin, which a profile can then enable by its name.
    ///
    /// The factory's first parameter is the plugin's arguments. Its type is one of these:
    ///
    /// - a type that implements [`PluginArgs`](crate::framework::PluginArgs), which reads, defaults and validates the arguments
    /// - [`RawArgs`](crate::framework::RawArgs) for the arguments as written
    /// - `()` for no arguments
    pub fn with_plugin<A: FactoryArgs>(
        mut self,
        name: &str,
        factory: impl Fn(A, &Handle) -> Result<Registration, PluginError> + Send + Sync + 'static,
    ) -> Self {
        if let Err(error) = self.plugins.register(name, factory) {
            self.duplicate.get_or_insert(error);
        }
        self
    }

    /// Runs the command line of this process.
    pub fn run(self) -> ExitCode {
        self.run_with(std::env::args_os())
    }

    /// Runs a command line, whose first element is the program's name.
    pub fn run_with(self, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        if let Some(error) = &self.duplicate {
            return fail(error);
        }
        let is_command = |name: &OsString| Commands::command().find_subcommand(name).is_some();
        if arguments.get(1).is_some_and(is_command) {
            self.command(arguments)
        } else {
            serve::run(self.plugins, arguments)
        }
    }

    fn command(self, arguments: Vec<OsString>) -> ExitCode {
        let matches = match Commands::command().try_get_matches_from(arguments) {
            Ok(matches) => matches,
            Err(error) => {
                // Clap exits with 2 on bad usage, which here means that pods are pending.
                let code = if error.use_stderr() { FAILED } else { DONE };
                let _ = error.print();
                return ExitCode::from(code);
            }
        };
        let commands = Commands::from_arg_matches(&matches).expect("the matches are those of this command");
        match commands.command {
            Command::Simulate(args) => {
                serve::log_warnings();
                match simulate(&args, self.plugins) {
                    Ok(report) => print(&report, args.output),
                    Err(error) => fail(&error),
                }
            }
            Command::Version(args) => match version::text(args) {
                Ok(text) => write(&text, DONE),
                Err(error) => fail(&error),
            },
            Command::Explain(args) => {
                serve::log_warnings();
                match explain(&args, self.plugins).map(|explanation| match args.output {
                    Form::Table => Ok(explanation.to_string()),
                    Form::Json => serde_json::to_string_pretty(&explanation).map(|text| text + "\n"),
                }) {
                    Ok(Ok(text)) => write(&text, DONE),
                    Ok(Err(error)) => fail(&error),
                    Err(error) => fail(&error),
                }
            }
        }
    }
}

/// Prints a report in the requested format.
fn print(report: &Report, output: Output) -> ExitCode {
    let text = match output {
        Output::Table => report.to_string(),
        Output::Json => match serde_json::to_string_pretty(report) {
            Ok(text) => text + "\n",
            Err(error) => return fail(&error),
        },
        Output::Yaml => match serde_yaml::to_string(report) {
            Ok(text) => text,
            Err(error) => return fail(&error),
        },
    };
    write(&text, if report.all_placed() { DONE } else { PENDING })
}

/// Writes to stdout and returns `code`. A reader that has gone away is not an error.
fn write(text: &str, code: u8) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => fail(&error),
        _ => ExitCode::from(code),
    }
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    let text = error.to_string();
    match text.char_indices().nth(MAX_ERROR) {
        None => say(format_args!("error: {text}")),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            say(format_args!("error: {} … and {more} more characters", &text[..end]));
        }
    }
    ExitCode::from(FAILED)
}
