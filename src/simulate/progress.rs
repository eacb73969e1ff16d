//! A progress bar on a terminal; nothing in a pipe.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The bar is drawn this often at most.
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows how much of something is done.
pub(crate) struct Progress {
    /// None if nobody knows: then it is counted, without a bar.
    total: Option<usize>,
    /// What is counted.
    unit: &'static str,
    /// None in a pipe.
    drawn: Option<Instant>,
}

impl Progress {
    /// A bar for this much of `unit`.
    pub(crate) fn new(total: usize, unit: &'static str) -> Self {
        Self::start(Some(total), unit)
    }

    /// A count of `unit`, of which nobody knows how much there is.
    pub(crate) fn counting(unit: &'static str) -> Self {
        Self::start(None, unit)
    }

    #[expect(clippy::disallowed_methods, reason = "what is shown on stderr follows the wall clock")]
    fn start(total: Option<usize>, unit: &'static str) -> Self {
        Self { total, unit, drawn: std::io::stderr().is_terminal().then(Instant::now) }
    }

    /// Draws the bar, unless it has just been drawn.
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
            // A bar that cannot be drawn is no reason to stop.
            let _ = write!(std::io::stderr(), "\r{shown} {}", self.unit);
        }
    }
}

/// Takes the bar away, so that an error has a line of its own.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r{:<80}\r", "");
        }
    }
}
