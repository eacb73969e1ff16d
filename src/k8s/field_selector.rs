//! Field selectors, such as `spec.nodeName=a,status.phase!=Failed`.

use std::borrow::Cow;
use std::fmt;

/// Requirements on an object's fields, all of which must be met. A selector without requirements selects every object.
/// Follows `apimachinery/pkg/fields/selector.go#Selector @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// A requirement that a field has, or does not have, a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Path of the field, such as `spec.nodeName`.
    pub field: String,
    /// Whether the field must have the value (true) or must not have it.
    pub is_equal: bool,
    /// Value to compare the field with.
    pub value: String,
}

/// Error for a malformed field selector. The texts equal those of `apimachinery/pkg/fields/selector.go @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseFieldSelectorError {
    /// A part of the selector has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{part}'")]
    Operator {
        /// Text of the whole selector.
        selector: String,
        /// Text of the part.
        part: String,
    },
    /// A backslash before a character that cannot be escaped, or at the end.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    Escape(String),
    /// An unescaped `=` or `,` in a value.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// Parses comma-separated parts with `=`, `==` or `!=`. In values, a backslash escapes commas, equal signs and backslashes.
    /// Follows `apimachinery/pkg/fields/selector.go#ParseSelector @v1.36.3`.
    ///
    /// # Errors
    /// If a part has no operator, or its value has a wrong escape.
    pub fn parse(text: &str) -> Result<Self, ParseFieldSelectorError> {
        let mut parts = split_parts(text);
        parts.sort_unstable();
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let mut requirements = Vec::new();
        for part in parts {
            let (field, operator, value) = split_part(part).ok_or_else(|| ParseFieldSelectorError::Operator {
                selector: text.to_owned(),
                part: part.to_owned(),
            })?;
            let value = unescape(value)?.into_owned();
            // Upstream ignores a part with neither a field nor a value.
            if !field.is_empty() || !value.is_empty() {
                requirements.push(FieldRequirement { field: field.to_owned(), is_equal: operator != "!=", value });
            }
        }
        Ok(Self(requirements))
    }

    /// Returns whether an object is selected. `lookup` returns the value of a field, which is empty for an absent field.
    pub fn matches<'f>(&self, lookup: impl Fn(&str) -> &'f str) -> bool {
        self.0.iter().all(|requirement| requirement.matches(lookup(&requirement.field)))
    }

    /// Returns whether there is no requirement, so that every object is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the requirements, sorted by the text of their parts.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }

    /// Returns the value that `field` must have, if a requirement demands one.
    pub fn exact_match(&self, field: &str) -> Option<&str> {
        let mut exact = self.0.iter().filter(|requirement| requirement.is_equal);
        exact.find(|requirement| requirement.field == field).map(|requirement| requirement.value.as_str())
    }
}

impl FieldRequirement {
    /// Returns whether a field with `value` meets the requirement.
    pub fn matches(&self, value: &str) -> bool {
        (self.value == value) == self.is_equal
    }
}

/// Prints the selector in the form that [`FieldSelector::parse`] reads.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, FieldRequirement { field, is_equal, value }) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let operator = if *is_equal { "=" } else { "!=" };
            write!(f, "{comma}{field}{operator}{}", escape(value))?;
        }
        Ok(())
    }
}

/// Escapes commas, equal signs and backslashes in a value.
/// Follows `apimachinery/pkg/fields/selector.go#EscapeValue @v1.36.3`.
pub fn escape(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', ',', '=']) {
        return Cow::Borrowed(value);
    }
    let mut escaped = String::with_capacity(value.len() + 4);
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    Cow::Owned(escaped)
}

fn unescape(value: &str) -> Result<Cow<'_, str>, ParseFieldSelectorError> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                Some(other) => return Err(ParseFieldSelectorError::Escape(format!("\\{other}"))),
                None => return Err(ParseFieldSelectorError::Escape("\\".to_owned())),
            },
            ',' | '=' => return Err(ParseFieldSelectorError::Unescaped(character)),
            other => plain.push(other),
        }
    }
    Ok(Cow::Owned(plain))
}

/// Splits the text at unescaped commas.
fn split_parts(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    let is_separator = |character| {
        let separates = character == ',' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        separates
    };
    text.split(is_separator).collect()
}

fn split_part(part: &str) -> Option<(&str, &str, &str)> {
    let at = part
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| part[*at..].starts_with("!=") || part[*at..].starts_with('='))?;
    let (field, rest) = part.split_at(at);
    let operator = ["!=", "==", "="].into_iter().find(|operator| rest.starts_with(operator))?;
    Some((field, operator, &rest[operator.len()..]))
}

#[cfg(test)]
mod tests {
    use super::{FieldSelector, escape};

    fn parse(text: &str) -> FieldSelector {
        FieldSelector::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn matches_every_requirement() {
        let fields = |field: &str| match field {
            "spec.nodeName" => "a",
            "status.phase" => "Pending",
            _ => "",
        };
        let check = |text: &str, expected: bool| assert_eq!(parse(text).matches(fields), expected, "{text}");
        check("", true);
        check(",", true);
        check("spec.nodeName=a", true);
        check("spec.nodeName==a", true);
        check("spec.nodeName!=a", false);
        check("spec.nodeName=a,status.phase!=Failed", true);
        check("spec.nodeName=a,status.phase=Failed", false);
        check("absent=", true);
        check("absent!=", false);
        check("!=", true);
        check("=x", false);
    }

    #[test]
    fn malformed_texts_are_rejected_with_upstreams_errors() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                FieldSelector::parse(text).map_err(|error| error.to_string()),
                Err(expected.to_owned()),
                "{text}"
            );
        };
        check("a", "invalid selector: 'a'; can't understand 'a'");
        check("b=c,a", "invalid selector: 'b=c,a'; can't understand 'a'");
        check("a!b", "invalid selector: 'a!b'; can't understand 'a!b'");
        check("a=b=c", "invalid field selector: unescaped character in value: 61");
        check("a=\\x", "invalid field selector: invalid escape sequence: \\x");
        check("a=\\é", "invalid field selector: invalid escape sequence: \\é");
        check("a=b\\", "invalid field selector: invalid escape sequence: \\");
    }

    #[test]
    fn display_is_sorted_and_escaped() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).to_string(), expected);
        check("b!=2,a==1", "a=1,b!=2");
        check("a=x\\,y\\=z\\\\", "a=x\\,y\\=z\\\\");
        check("", "");
        assert_eq!(parse("a=x\\,y").requirements()[0].value, "x,y");
        assert!(parse(",").is_empty());
    }

    #[test]
    fn exact_match_returns_the_required_value() {
        assert_eq!(parse("a!=1,a=2,b=3").exact_match("a"), Some("2"));
        assert_eq!(parse("a!=1").exact_match("a"), None);
    }

    #[test]
    fn any_value_survives_escaping() {
        let (seed, mut state) = (0x5eed_u64, 0x5eed_u64);
        for _ in 0..20_000 {
            let value: String = (0..state % 8)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    ['a', ',', '=', '\\', '!', 'é'][usize::try_from(state % 6).unwrap_or_default()]
                })
                .collect();
            state = state.wrapping_add(1);
            let text = format!("f={}", escape(&value));
            assert_eq!(parse(&text).exact_match("f"), Some(value.as_str()), "seed {seed:#x}: {text}");
            assert_eq!(parse(&text).to_string(), text, "seed {seed:#x}");
            let _ = FieldSelector::parse(&value);
        }
    }
}
