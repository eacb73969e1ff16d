//! Every flag with its type, default and value, formatted as pflag does, for `--help` and `/flagz`.

use std::fmt::Display;

use super::Flags;
use crate::go::quote::quote;

/// A flag and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagValue {
    /// Name of the flag, without dashes.
    pub name: &'static str,
    /// Type of the flag as `--help` shows it; empty for a switch.
    pub kind: &'static str,
    /// The value; the default if the flag is not given.
    pub value: String,
    /// The default as `--help` shows it; empty if `--help` omits it.
    pub default: String,
}

/// Collects flags and their values.
#[derive(Debug, Default)]
pub(super) struct Shown(Vec<FlagValue>);

impl Shown {
    pub(super) fn flag(&mut self, name: &'static str, given: Option<bool>, default: bool) {
        let shown = if default { "true" } else { "" };
        self.put(name, "", given.unwrap_or(default).to_string(), shown.to_owned());
    }

    pub(super) fn text(&mut self, name: &'static str, given: Option<&String>, default: &str) {
        let shown = if default.is_empty() { String::new() } else { quote(default) };
        self.put(name, "string", given.map_or(default, String::as_str).to_owned(), shown);
    }

    pub(super) fn value<T: Display>(&mut self, name: &'static str, kind: &'static str, given: Option<&T>, default: &T) {
        let shown = default.to_string();
        let is_zero = matches!(shown.as_str(), "0" | "0s");
        self.put(name, kind, given.unwrap_or(default).to_string(), if is_zero { String::new() } else { shown });
    }

    /// Adds a list, shown in brackets. `default` is the value of a flag that is not given.
    pub(super) fn list(&mut self, name: &'static str, kind: &'static str, given: Option<&str>, default: &str) {
        let shown = if default.is_empty() { String::new() } else { format!("[{default}]") };
        self.put(name, kind, format!("[{}]", given.unwrap_or(default)), shown);
    }

    pub(super) fn raw(&mut self, name: &'static str, kind: &'static str, value: &str, default: &str) {
        self.put(name, kind, if value.is_empty() { default } else { value }.to_owned(), String::new());
    }

    fn put(&mut self, name: &'static str, kind: &'static str, value: String, default: String) {
        self.0.push(FlagValue { name, kind, value, default });
    }
}

impl Flags {
    /// All flags with their values, section by section.
    pub fn values(&self) -> Vec<FlagValue> {
        let mut shown = Shown::default();
        self.misc.show(&mut shown);
        self.secure_serving.show(&mut shown);
        self.authentication.show(&mut shown);
        self.authorization.show(&mut shown);
        self.deprecated.show(&mut shown);
        self.leader_election.show(&mut shown);
        self.feature_gate.show(&mut shown);
        self.metrics.show(&mut shown);
        self.logs.show(&mut shown);
        self.global.show(&mut shown);
        shown.0
    }
}
