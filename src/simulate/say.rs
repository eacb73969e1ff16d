//! Lines for people on stderr and stdout, where nobody may be listening.

use std::fmt;
use std::io::Write as _;

/// Writes a line to stderr. That it cannot be written is no reason to stop, unlike with `eprintln!`, which panics.
pub fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
