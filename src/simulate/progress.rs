//! Progress bar on stderr, which is shown only on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Minimum time between two updates of the bar.
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows the progress of a task.
pub(crate) struct Progress {
    /// The total amount of work. `None` if it is unknown, and then a count is shown without a bar.
    total: Option<usize>,
    /// Name of the counted unit.
    unit: &'static str,
    /// Time of the last update. `None` if stderr is not a terminal.
    drawn: Option<Instant>,
}

impl Progress {
    /// Creates a bar for a total amount of `unit`.
    pub(crate) fn new(total: usize, unit: &'static str) -> Self {
        Self::start(Some(total), unit)
    }

    /// Creates a count of `unit` without a known total.
    pub(crate) fn counting(unit: &'static str) -> Self {
        Self::start(None, unit)
    }

    #[expect(clippy::disallowed_methods, reason = "what is shown on stderr follows the wall clock")]
    fn start(total: Option<usize>, unit: &'static str) -> Self {
        Self { total, unit, drawn: std::io::stderr().is_terminal().then(Instant::now) }
    }

    /// Draws the bar, unless it was drawn less than [`INTERVAL`] ago.
    #[expect(clippy::disallowed_methods, reason = "what is shown on stderr follows the wall clock")]
    pub(crate) fn show(&mut self, done: usize) {
        if let Some(drawn) = &mut self.drawn
            && drawn.elapsed() >= INTERVAL
        {
            *drawn = Instant::now();
            let shown = match self.total {
                Some(total) => {
                    let percent = done * 100 / total.max(1);
                    format!("[{:<40}] {done}/{total}", "#".repeat(percent.min(100) * 40 / 100))
                }
                None => done.to_string(),
            };
            // Errors while the bar is drawn are ignored.
            let _ = write!(std::io::stderr(), "\r{shown} {}", self.unit);
        }
    }
}

/// Removes the bar, so that an error has a line of its own.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r{:<80}\r", "");
        }
    }
}
