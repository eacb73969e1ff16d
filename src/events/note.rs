//! What becomes of a message on its way into an event: cut to length, and read as a format string.

use std::borrow::Cow;

/// The most bytes that the API takes as a note. Follows `pkg/apis/core/validation/events.go#NoteLengthLimit @v1.36.3`.
const NOTE_LENGTH_LIMIT: usize = 1024;

/// What stands for the rest of a cut message.
const CUT: &str = " ...";

/// Numbers above this end a format's directive in failure, as in Go.
const MAX_NUMBER: u32 = 1_000_000;

/// Cuts a message that is longer than a note may be to its first 1020 bytes and ` ...`; one byte or two earlier where that would
/// split a character. Follows `pkg/scheduler/schedule_one.go#truncateMessage @v1.36.3`.
pub fn truncate(message: &str) -> Cow<'_, str> {
    if message.len() <= NOTE_LENGTH_LIMIT {
        return message.into();
    }
    let end = message.floor_char_boundary(NOTE_LENGTH_LIMIT - CUT.len());
    format!("{}{CUT}", &message[..end]).into()
}

/// What Go's `fmt.Sprintf(format)` makes of a text without any argument: `%%` becomes `%`, other directives complain.
///
/// Upstream hands messages to its recorder as formats, so a literal `%` in one (a taint's value, a claim's name) is mangled in the
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

/// Reads one directive after its `%`, writes what it says without an argument, and returns what follows it.
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

/// Skips an argument's index such as `[2]`, which no text without arguments can satisfy. Says whether it was well-formed.
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

/// Skips a number, and says whether there was one. One that is too large swallows the rest.
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
    fn long_messages_are_cut() {
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

    /// What Go 1.26's `fmt.Sprintf` printed for these.
    #[test]
    fn percent_signs_are_mangled_as_go_mangles_them() {
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
