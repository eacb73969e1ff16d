//! A program that a test runs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::support::cluster::wait_for;

/// Timeout for a process to exit after a signal. The API server takes three seconds.
const END: Duration = Duration::from_secs(30);

/// A process that ends with its owner, its output in a file.
pub(crate) struct Process {
    pub(crate) name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program; its output goes to `<name>.log` in `folder`.
    pub(crate) fn start(name: &str, folder: &Path, command: &mut Command) -> Result<Self, String> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = file.try_clone().map_err(|error| error.to_string())?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        let child = child.map_err(|error| format!("starting {name}: {error}"))?;
        Ok(Self { name: name.to_owned(), child, log })
    }

    /// Output of the process.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of what it has printed.
    pub(crate) fn tail(&self) -> String {
        let text = self.output();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n");
        format!("the end of {}:\n{tail}", self.log.display())
    }

    /// Sends it a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) -> Result<(), String> {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        if sent.is_ok_and(|status| status.success()) { Ok(()) } else { Err(format!("{} got no {name}", self.name)) }
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|error| format!("{}: {error}", self.name))?;
        self.child.wait().map(drop).map_err(|error| format!("{}: {error}", self.name))
    }

    /// A line of what the kernel says of it, such as `VmRSS` in KiB or `Threads`.
    pub(crate) fn status(&self, what: &str) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| format!("{path} has no {what}"))
    }

    /// Processor time that the process has used so far, in user and kernel mode. The kernel counts it in hundredths of a second.
    pub(crate) fn processor_time(&self) -> Result<Duration, String> {
        let path = format!("/proc/{}/stat", self.child.id());
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        // The command's name is in brackets and may have blanks; utime and stime are the 14th and 15th field.
        let fields = text.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').skip(11).take(2);
        let ticks = fields.map(str::parse::<u64>).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        if ticks.len() == 2 {
            Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 10))
        } else {
            Err(format!("{path}: {text}"))
        }
    }

    /// Exit status, if the process has exited.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Tells it to end, and waits until it has.
    pub(crate) fn terminate(&mut self) -> Result<ExitStatus, String> {
        if let Some(status) = self.ended() {
            return Ok(status);
        }
        self.signal("TERM")?;
        let name = self.name.clone();
        wait_for(&format!("the end of {name}"), END, || Ok(self.ended()))
            .map_err(|error| format!("{error}; {}", self.tail()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.terminate().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
