//! The oracle: upstream's own plugins in a process beside this one, asked a line at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::support::programs::program;

/// A running oracle.
pub(crate) struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts one with these feature gates.
    pub(crate) fn start(gates: &str) -> Self {
        let mut command = Command::new(program("oracle"));
        command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
        if !gates.is_empty() {
            command.args(["--feature-gates", gates]);
        }
        let mut child = command.spawn().expect("the oracle was just built");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    /// Asks about one case.
    pub(crate) fn ask(&mut self, request: &Value) -> Result<Value, String> {
        let lost = |error: &dyn std::fmt::Display| format!("the oracle is gone: {error}");
        writeln!(self.input, "{request}").map_err(|error| lost(&error))?;
        self.input.flush().map_err(|error| lost(&error))?;
        let mut line = String::new();
        if self.output.read_line(&mut line).map_err(|error| lost(&error))? == 0 {
            return Err(lost(&"it closed its output"));
        }
        let answer: Value =
            serde_json::from_str(&line).map_err(|error| format!("unreadable answer: {error}: {line}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(format!("the oracle refuses the case: {error}")),
            None => Ok(answer),
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
