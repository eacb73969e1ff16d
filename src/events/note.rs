//! Conversion of a message to an event's note: truncation, and formatting like `fmt.Sprintf` without arguments.

use std::borrow::Cow;

/// Maximum length of a note in bytes, set by the API. Follows `pkg/apis/core/validation/events.go#NoteLengthLimit @v1.36.3`.
const NOTE_LENGTH_LIMIT: usize = 1024;

/// Suffix of a truncated message.
const CUT: &str = " ...";

/// Largest number in a format directive. As in Go, parsing fails for larger ones.
const MAX_NUMBER: u32 = 1_000_000;

/// Truncates a message that is longer than a note may be to its first 1020 bytes and ` ...`. Cuts earlier by up to three bytes if
/// the cut would split a character. Follows `pkg/scheduler/schedule_one.go#truncateMessage @v1.36.3`.
pub fn truncate(message: &str) -> Cow<'_, str> {
    if message.len() <= NOTE_LENGTH_LIMIT {
        return message.into();
    }
    let end = message.floor_char_boundary(NOTE_LENGTH_LIMIT - CUT.len());
    format!("{}{CUT}", &message[..end]).into()
}

/// Formats a text like Go's `fmt.Sprintf(format)` without arguments: `%%` becomes `%`, and other directives become error texts.
///
/// Upstream passes messages to its recorder as formats, so a literal `%` in a message (in a taint's value, say) is changed in the
/// event. Follows Go's `fmt/print.go#doPrintf`.
pub fn without_arguments(format: &str) -> Cow<'_, str> {
    if !format.contains('%') {
        return format.into();
    }
    let mut out = String::with_capacity(format.len() + 16);
    let mut rest = format;
    while let Some(percent) = rest.find('%') {
        out.push_str(&rest[..percent]);
        rest = directive(&rest[percent + 1..], &mut out);
    }
    out.push_str(rest);
    out.into()
}

/// Parses one directive after its `%`, writes its output for a missing argument, and returns the rest of the text.
fn directive<'a>(text: &'a str, out: &mut String) -> &'a str {
    let mut good = true;
    let mut rest = text.trim_start_matches(['#', '0', '+', '-', ' ']);
    let mut indexed;
    (rest, indexed) = index(rest, &mut good);

    if let Some(after) = rest.strip_prefix('*') {
        out.push_str("%!(BADWIDTH)");
        (rest, indexed) = (after, false);
    } else {
        let (after, number) = digits(rest);
        good &= !(indexed && number);
        rest = after;
    }

    // A dot at the very end is a verb, not a precision.
    if rest.len() > 1
        && let Some(after) = rest.strip_prefix('.')
    {
        good &= !indexed;
        (rest, indexed) = index(after, &mut good);
        if let Some(after) = rest.strip_prefix('*') {
            out.push_str("%!(BADPREC)");
            (rest, indexed) = (after, false);
        } else {
            rest = digits(rest).0;
        }
    }

    if !indexed {
        (rest, _) = index(rest, &mut good);
    }
    let mut characters = rest.chars();
    match characters.next() {
        None => out.push_str("%!(NOVERB)"),
        Some('%') => out.push('%'),
        Some(verb) => {
            out.push_str("%!");
            out.push(verb);
            out.push_str(if good { "(MISSING)" } else { "(BADINDEX)" });
        }
    }
    characters.as_str()
}

/// Skips an argument index such as `[2]`, and returns whether the index was well-formed. Sets `good` to false for any index,
/// because there are no arguments.
fn index<'a>(text: &'a str, good: &mut bool) -> (&'a str, bool) {
    if !text.starts_with('[') {
        return (text, false);
    }
    *good = false;
    match text.find(']') {
        Some(end) if text.len() >= 3 => {
            let (after, number) = digits(&text[1..end]);
            (&text[end + 1..], number && after.is_empty())
        }
        _ => (&text[1..], false),
    }
}

/// Skips a number, and returns whether there was one. After a number that is too large, the rest of the text is skipped, too.
fn digits(text: &str) -> (&str, bool) {
    let mut value = 0;
    for (place, byte) in text.bytes().enumerate() {
        if !byte.is_ascii_digit() {
            return (&text[place..], place > 0);
        }
        if value > MAX_NUMBER {
            return ("", false);
        }
        value = value * 10 + u32::from(byte - b'0');
    }
    ("", !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_truncated() {
        let check = |length: usize, expected: usize| {
            let message = "x".repeat(length);
            let note = truncate(&message);
            assert_eq!(note.len(), expected);
            assert_eq!(note.ends_with(" ..."), length > expected);
        };
        check(1024, 1024);
        check(1025, 1024);
        check(5000, 1024);
        let split = format!("{}é{}", "x".repeat(1019), "x".repeat(10));
        assert_eq!(truncate(&split), format!("{} ...", "x".repeat(1019)));
    }

    /// The expected texts are the output of Go 1.26's `fmt.Sprintf`.
    #[test]
    fn percent_signs_are_formatted_as_go_does() {
        let check = |format: &str, expected: &str| assert_eq!(without_arguments(format), expected, "{format}");
        check("plain", "plain");
        check("100%", "100%!(NOVERB)");
        check("50% of", "50%!o(MISSING)f");
        check("%%", "%");
        check("%", "%!(NOVERB)");
        check("a%sb", "a%!s(MISSING)b");
        check("%d%%", "%!d(MISSING)%");
        check("%[1]d", "%!d(BADINDEX)");
        check("%[x]d", "%!d(BADINDEX)");
        check("%[", "%!(NOVERB)");
        check("%[]", "%!](BADINDEX)");
        check("%[1", "%!(NOVERB)");
        check("%[1]", "%!(NOVERB)");
        check("%*d", "%!(BADWIDTH)%!d(MISSING)");
        check("%.*f", "%!(BADPREC)%!f(MISSING)");
        check("%.", "%!.(MISSING)");
        check("%5.", "%!.(MISSING)");
        check("%5.2f", "%!f(MISSING)");
        check("%[2]*d", "%!(BADWIDTH)%!d(BADINDEX)");
        check("%[2]5d", "%!d(BADINDEX)");
        check("%.[2]5d", "%!d(BADINDEX)");
        check("%[2].3d", "%!d(BADINDEX)");
        check("%-+# 0x", "%!x(MISSING)");
        check("%é", "%!é(MISSING)");
        check("%!", "%!!(MISSING)");
        check("%99999999d", "%!(NOVERB)");
        check("%9999999d", "%!d(MISSING)");
        check("% %", "%");
        check("%[1]%", "%");
        check("%.[1]%", "%");
        check("%5%", "%");
        check("%]", "%!](MISSING)");
        check("%[1]*.[2]*[3]f", "%!(BADWIDTH)%!(BADPREC)%!f(BADINDEX)");
        check("%.3", "%!(NOVERB)");
        check("%.[1]", "%!(NOVERB)");
        check("%.[", "%!(NOVERB)");
        check("%3", "%!(NOVERB)");
        check("%+", "%!(NOVERB)");
        check("100% sure %v, 20%", "100%!s(MISSING)ure %!v(MISSING), 20%!(NOVERB)");
        check("%d%5 55", "%!d(MISSING)%! (MISSING)55");
    }
}
