//! The selectors in a Prometheus expression.

/// Words that are no metric though no parenthesis follows.
const WORDS: [&str; 8] = ["and", "or", "unless", "bool", "offset", "inf", "nan", "atan2"];

/// Words after which labels stand in parentheses.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];

/// All selectors of series in an expression: names of metrics, with the labels that they are asked for.
pub(crate) fn selectors(expression: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        if first == '[' {
            rest = after(rest, ']');
        } else if first.is_ascii_alphabetic() || first == '_' {
            let is_part = |character: char| character.is_ascii_alphanumeric() || "_:".contains(character);
            let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
            let (word, following) = rest.split_at(end);
            let next = following.trim_start();
            let labels_follow = BEFORE_LABELS
                .iter()
                .any(|word| next.starts_with(word) && next[word.len()..].trim_start().starts_with('('));
            rest = if BEFORE_LABELS.contains(&word) && next.starts_with('(') {
                after(next, ')')
            } else if next.starts_with('(') || labels_follow || WORDS.contains(&word.to_lowercase().as_str()) {
                // A function, or what is aggregated by labels.
                following
            } else if next.starts_with('{') {
                let rest = after(next, '}');
                found.push(format!("{word}{}", &next[..next.len() - rest.len()]));
                rest
            } else {
                found.push(word.to_owned());
                following
            };
        } else if first.is_ascii_digit() {
            // A number, or a duration with its unit.
            rest = rest.trim_start_matches(|character: char| character.is_ascii_alphanumeric() || character == '.');
        } else {
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

/// What comes after the first of these characters; no value of a label has one.
fn after(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}
