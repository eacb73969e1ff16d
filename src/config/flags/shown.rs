//! Every flag with its type, default and value, as pflag prints them: for `--help` and `/flagz`.

use std::fmt::Display;

use super::Flags;
use crate::go::quote::quote;

/// A flag and what it is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagValue {
    /// The name, without dashes.
    pub name: &'static str,
    /// The type as `--help` names it; empty for a switch.
    pub kind: &'static str,
    /// The value, which is the default where the flag is not given.
    pub value: String,
    /// The default as `--help` shows it; empty where it is not worth showing.
    pub default: String,
}

/// Collects flags.
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

    /// A list, given in brackets; `default` is what it is when it is not given.
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
    /// All flags, section by section.
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
