//! Validation of the schedules of cron jobs.
//!
//! Follows `pkg/util/parsers` and the parser that upstream uses, `github.com/robfig/cron/v3/parser.go: ParseStandard`.

/// Smallest and largest number of a schedule's field. `names` are the names of the numbers from `min` on.
struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Bounds of the five fields: minute, hour, day of the month, month, day of the week.
const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds { min: 1, max: 12, names: &MONTHS },
    Bounds { min: 0, max: 6, names: &DAYS },
];

/// Returns the error of a schedule, or `None` if the schedule is valid.
pub(super) fn error(schedule: &str) -> Option<String> {
    check(schedule).err()
}

fn check(schedule: &str) -> Result<(), String> {
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(field, bounds)| {
        field.split(',').filter(|part| !part.is_empty()).try_for_each(|part| range(part, bounds))
    })
}

fn descriptor(text: &str) -> Result<(), String> {
    const KNOWN: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if KNOWN.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) => {
            duration_error(duration).map_or(Ok(()), |why| Err(format!("failed to parse duration {text}: time: {why}")))
        }
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// Returns the error of Go's `time.ParseDuration` for a text, if any.
fn duration_error(text: &str) -> Option<String> {
    let invalid = Some(format!("invalid duration {text:?}"));
    let mut rest = text.trim_start_matches(['+', '-']);
    if rest == "0" {
        return None;
    }
    if rest.is_empty() {
        return invalid;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        if !rest[..digits].bytes().any(|byte| byte.is_ascii_digit()) {
            return invalid;
        }
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(|byte| !byte.is_ascii_digit() && *byte != b'.').count();
        let unit = &rest[..letters];
        if unit.is_empty() {
            return Some(format!("missing unit in duration {text:?}"));
        }
        if !["ns", "us", "µs", "ms", "s", "m", "h"].contains(&unit) {
            return Some(format!("unknown unit {unit:?} in duration {text:?}"));
        }
        rest = &rest[letters..];
    }
    None
}

/// Checks a range: `number`, `number-number`, `*` or `?`, optionally followed by `/number`.
fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let (span, step) = match text.split('/').collect::<Vec<_>>().as_slice() {
        [span] => (*span, None),
        [span, step] => (*span, Some(*step)),
        _ => return Err(format!("too many slashes: {text}")),
    };
    let ends: Vec<&str> = span.split('-').collect();
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?", ..] => (bounds.min, bounds.max),
        [one] => {
            let number = named_number(one, bounds)?;
            (number, number)
        }
        [first, last] => (named_number(first, bounds)?, named_number(last, bounds)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = step.map(number).transpose()?;
    if step.is_some() && ends.len() == 1 {
        end = bounds.max;
    }
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == Some(0) {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn named_number(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let name = text.to_lowercase();
    match (0_u32..).zip(bounds.names).find(|(_, known)| **known == name) {
        Some((at, _)) => Ok(at + bounds.min),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let parsed: i64 = text
        .parse()
        .map_err(|_| format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))?;
    u32::try_from(parsed).map_err(|_| format!("negative number ({parsed}) not allowed: {text}"))
}

#[cfg(test)]
mod tests {
    use super::error;

    #[test]
    fn malformed_cron_schedules_are_rejected() {
        for good in ["* * * * *", "*/5 1-3,5 * JAN mon", "@hourly", "@every 5m", "0 0 1 1 0", "5/15 * * * ?"] {
            assert_eq!(error(good), None, "{good}");
        }
        for (bad, why) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("61 * * * *", "end of range (61) above maximum (59): 61"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ] {
            assert_eq!(error(bad).as_deref(), Some(why), "{bad}");
        }
    }
}
