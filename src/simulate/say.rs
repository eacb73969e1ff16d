//! Lines of text on stderr, which may be closed.

use std::fmt;
use std::io::Write as _;

/// Writes a line to stderr. Errors are ignored, unlike in `eprintln!`, which panics.
pub fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
