//! Converts YAML errors to the texts of upstream's parser.
//!
//! `serde_yaml` wraps libyaml, and upstream uses a port of libyaml, so the problems have the same texts. Only the line numbers
//! differ. Follows `go.yaml.in/yaml/v2/decode.go#fail`, the version that Kubernetes 1.36.3 depends on.

use super::DecodeError;
use super::scalar::resolve;

/// The line numbers that errors contain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines {
    /// Upstream's line numbers, which are off by one or missing in some errors.
    Upstream,
    /// The actual lines of the problems.
    True,
}

/// Converts an error of parsing `text` to upstream's text, if upstream has a corresponding error.
pub(super) fn yaml_error(error: &serde_yaml::Error, text: &str, lines: Lines) -> DecodeError {
    let details = format!("{error:?}");
    let shown = error.to_string();
    if let Some(kind) = details.strip_prefix("Error { kind: ") {
        return syntax_error(kind, &details, &shown, lines);
    }
    let problem = shown.split(" at line ").next().unwrap_or(&shown);
    if let Some(text) = tag_error(problem) {
        return text;
    }
    // The error's text may begin with the path of the field.
    match problem.rsplit(": ").next().unwrap_or(problem) {
        "unknown anchor" => DecodeError(format!("yaml: unknown anchor '{}' referenced", alias(error, text))),
        "repetition limit exceeded" => "yaml: document contains excessive aliasing".into(),
        "recursion limit exceeded" => too_deep(),
        problem => DecodeError(format!("yaml: {problem}")),
    }
}

/// The error of a document that is nested too deep.
pub(super) fn too_deep() -> DecodeError {
    "yaml: exceeded max depth".into()
}

/// Upstream's text for a scalar that does not match its tag.
fn tag_error(problem: &str) -> Option<DecodeError> {
    let (_, rest) = problem.split_once("invalid value: string \"")?;
    let (text, expected) = rest.rsplit_once("\", expected ")?;
    let tag = match expected {
        "a boolean" => "bool",
        "an integer" => "int",
        "a float" => "float",
        "null" => "null",
        _ => return None,
    };
    let found = resolve(text).tag();
    Some(DecodeError(format!("yaml: cannot decode !!{found} `{text}` as a !!{tag}")))
}

fn syntax_error(kind: &str, details: &str, shown: &str, lines: Lines) -> DecodeError {
    let end = [" at line ", " at position ", ", while ", ", block "].iter().filter_map(|word| shown.find(word)).min();
    let problem = &shown[..end.unwrap_or(shown.len())];
    // These lines are counted from 0. Upstream adds 1 only for scanner errors, so other errors name the previous line.
    let line = match line_of(details, "problem_mark") {
        line if matches!(lines, Lines::True) && (line > 0 || details.contains("problem_mark: ")) => line + 1,
        0 => line_of(details, "context_mark"),
        line if kind.starts_with("SCANNER") => line + 1,
        line => line,
    };
    DecodeError(match line {
        0 => format!("yaml: {problem}"),
        line => format!("yaml: line {line}: {problem}"),
    })
}

/// The line, counted from 0, of the mark called `name`; 0 if there is no such mark.
fn line_of(details: &str, name: &str) -> usize {
    let mark = details.split_once(&format!("{name}: Mark {{ line: ")).map(|(_, rest)| rest);
    let digits = mark.and_then(|rest| rest.split(',').next());
    digits.and_then(|digits| digits.parse::<usize>().ok()).map_or(0, |line| line.saturating_sub(1))
}

/// The name of the alias that caused `error`.
fn alias<'a>(error: &serde_yaml::Error, text: &'a str) -> &'a str {
    let at = error.location().map_or(0, |location| location.index());
    let rest = text.get(at..).unwrap_or_default().trim_start_matches('*');
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
    &rest[..end]
}
