//! A progress bar on a terminal; nothing in a pipe.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The bar is drawn this often at most.
const INTERVAL: Duration = Duration::from_millis(100);

/// Shows how many pods are placed.
pub(super) struct Progress {
    total: usize,
    /// None in a pipe.
    drawn: Option<Instant>,
}

impl Progress {
    /// A bar for this many pods.
    #[expect(clippy::disallowed_methods, reason = "what is shown on stderr follows the wall clock")]
    pub(super) fn new(total: usize) -> Self {
        Self { total, drawn: std::io::stderr().is_terminal().then(Instant::now) }
    }

    /// Draws the bar, unless it has just been drawn.
    #[expect(clippy::disallowed_methods, reason = "what is shown on stderr follows the wall clock")]
    pub(super) fn show(&mut self, placed: usize) {
        if let Some(drawn) = &mut self.drawn
            && drawn.elapsed() >= INTERVAL
        {
            *drawn = Instant::now();
            let percent = placed * 100 / self.total.max(1);
            let bar = "#".repeat(percent.min(100) * 40 / 100);
            // A bar that cannot be drawn is no reason to stop.
            let _ = write!(std::io::stderr(), "\r[{bar:<40}] {placed}/{} pods", self.total);
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(self) {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "\r{:<70}\r", "");
        }
    }
}
