//! YAML errors in the words of upstream's parser.
//!
//! `serde_yaml` wraps libyaml, whose port upstream uses, so that problems are worded alike; only the line needs care. Follows
//! `go.yaml.in/yaml/v2/decode.go#fail`, the version that `@v1.36.3` depends on.

use super::DecodeError;
use super::scalar::resolve;

/// Which lines errors name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines {
    /// Upstream's, which are off by one, or none, in some errors.
    Upstream,
    /// Those on which the problem is.
    True,
}

/// `error`, met in `text`, as upstream prints it where it has such an error.
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
    // A path to the field may stand before the problem.
    match problem.rsplit(": ").next().unwrap_or(problem) {
        "unknown anchor" => DecodeError(format!("yaml: unknown anchor '{}' referenced", alias(error, text))),
        "repetition limit exceeded" => "yaml: document contains excessive aliasing".into(),
        "recursion limit exceeded" => too_deep(),
        problem => DecodeError(format!("yaml: {problem}")),
    }
}

/// The error about a document that is nested too deep.
pub(super) fn too_deep() -> DecodeError {
    "yaml: exceeded max depth".into()
}

/// The text for a scalar that is not what its tag says.
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
    // Lines here are counted from 0; a scanner is still on the line before.
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

/// The line, counted from 0, of the mark called `name`; 0 where there is none.
fn line_of(details: &str, name: &str) -> usize {
    let mark = details.split_once(&format!("{name}: Mark {{ line: ")).map(|(_, rest)| rest);
    let digits = mark.and_then(|rest| rest.split(',').next());
    digits.and_then(|digits| digits.parse::<usize>().ok()).map_or(0, |line| line.saturating_sub(1))
}

/// The name of the alias at which `error` was met.
fn alias<'a>(error: &serde_yaml::Error, text: &'a str) -> &'a str {
    let at = error.location().map_or(0, |location| location.index());
    let rest = text.get(at..).unwrap_or_default().trim_start_matches('*');
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
    &rest[..end]
}
