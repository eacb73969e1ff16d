//! Text log lines in klog's format: `Lmmdd hh:mm:ss.uuuuuu PID file:line] "message" key="value"`.

use std::fmt::Write as _;

use jiff::Zoned;
use serde_json::Value;
use tracing::{Level, Metadata};

use super::fields::Fields;
use super::file_name;
use crate::go::quote::quote;

pub(super) fn line(metadata: &Metadata<'_>, fields: &Fields, now: &Zoned, process: u32) -> String {
    let severity = match *metadata.level() {
        Level::ERROR => 'E',
        Level::WARN => 'W',
        _ => 'I',
    };
    let (file, number) = (file_name(metadata), metadata.line().unwrap_or(1));
    let mut line = format!("{severity}{} {process:7} {file}:{number}] ", now.strftime("%m%d %H:%M:%S.%6f"));
    line.push_str(&quote(&fields.message));
    for (key, value) in &fields.values {
        put(&mut line, key, value);
    }
    line.push('\n');
    line
}

/// Appends a key and its value. A text of several lines is indented as in klog.
fn put(line: &mut String, key: &str, value: &Value) {
    let _ = match value {
        Value::String(text) if text.contains('\n') => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            write!(line, " {key}=<\n\t{}\n >", text.replace('\n', "\n\t"))
        }
        Value::String(text) => write!(line, " {key}={}", quote(text)),
        other => write!(line, " {key}={other}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_formatted_as_in_klog() {
        let mut line = String::new();
        put(&mut line, "err", &"it said \"no\"".into());
        put(&mut line, "count", &3.into());
        put(&mut line, "on", &true.into());
        put(&mut line, "text", &"a\nb\n".into());
        assert_eq!(line, " err=\"it said \\\"no\\\"\" count=3 on=true text=<\n\ta\n\tb\n >");
    }
}
