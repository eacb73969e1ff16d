//! JSON as Go's `encoding/json` reads and writes it.

mod scanner;
mod value;
mod write;

pub use scanner::{MAX_DEPTH, Source, SyntaxError, parse, syntax_error};
pub use value::Value;
pub use write::{Members, float, text, to_string, to_string_pretty};
