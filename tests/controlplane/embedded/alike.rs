//! Normalises the output of two clusters so that it can be compared: identities, times and versions are taken out of texts.

/// The text without what differs from server to server.
pub(super) fn normalised(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(line).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n")
}

fn line(text: &str) -> String {
    let text = cut(text, 36, "UID", is_uid);
    let text = versions(&text);
    let indent = text.len() - text.trim_start().len();
    // Columns are as wide as their widest cell, which may be an age.
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    format!("{}{}", &text[..indent], words.join(" ")).trim_end().to_owned()
}

/// Replaces each run of `length` characters that is what is looked for.
fn cut(text: &str, length: usize, by: &str, is: fn(&str) -> bool) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        match rest.get(..length) {
            Some(run) if is(run) => {
                out.push_str(by);
                rest = &rest[length..];
            }
            _ => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    out
}

fn is_uid(run: &str) -> bool {
    run.char_indices().all(|(at, letter)| {
        if matches!(at, 8 | 13 | 18 | 23) {
            letter == '-'
        } else {
            letter.is_ascii_hexdigit() && !letter.is_uppercase()
        }
    })
}

/// Takes out the number of a resource version.
fn versions(text: &str) -> String {
    for opens in ["resourceVersion: \"", "resourceVersion: '", "\"resourceVersion\": \""] {
        if let Some((before, after)) = text.split_once(opens) {
            let after = after.trim_start_matches(|letter: char| letter.is_ascii_digit());
            return format!("{before}{opens}VERSION{after}");
        }
    }
    text.to_owned()
}

/// Takes out a time, the age of an object, and the parts of a date as people write it.
fn word(word: &str) -> String {
    let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let is_time = bare.len() >= 20 && bare.ends_with('Z') && bare.get(10..11) == Some("T") && bare.starts_with("20");
    let is_clock = bare.len() == 8 && bare.bytes().filter(|byte| *byte == b':').count() == 2;
    if is_time || is_clock {
        return word.replace(bare, "TIME");
    }
    if is_age(bare) { word.replace(bare, "AGE") } else { word.to_owned() }
}

/// Whether a word is a span of seconds and minutes; thousandths of a processor end in `m`, too, but none has one digit.
fn is_age(word: &str) -> bool {
    let seconds = word.strip_suffix('s').map(|rest| rest.split_once('m').unwrap_or(("0", rest)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    seconds.is_some_and(|(minutes, seconds)| digits(minutes) && digits(seconds))
        || word.strip_suffix('m').is_some_and(|minutes| minutes.len() == 1 && digits(minutes))
}
