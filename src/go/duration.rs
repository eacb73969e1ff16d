//! Go durations: a signed count of nanoseconds, read and printed as Go's `time.Duration` does.

use std::fmt::{self, Write};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A signed duration in nanoseconds (about ±292 years). `Display` is Go's `time.Duration.String` (`1h2m3.5s`, `5m0s`, `1.5ms`,
/// `0s`). `FromStr` is Go's `time.ParseDuration`, with its error texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(i64);

/// Error for a text that is not a duration, with the text of Go's `time.ParseDuration`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseDurationError(String);

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
/// The magnitude of the most negative duration.
const LIMIT: u64 = 1 << 63;

impl GoDuration {
    /// The duration of length zero.
    pub const ZERO: Self = Self(0);

    /// Creates a duration of `seconds` whole seconds, saturating.
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Creates a duration of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the length in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Converts to a standard duration. `None` if it is negative.
    pub fn to_std(self) -> Option<std::time::Duration> {
        u64::try_from(self.0).ok().map(std::time::Duration::from_nanos)
    }
}

/// The conversion saturates at the longest `GoDuration`.
impl From<std::time::Duration> for GoDuration {
    fn from(duration: std::time::Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl std::str::FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, ParseDurationError> {
        let invalid = || ParseDurationError(format!("time: invalid duration {}", quote(text)));
        let (negative, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (part, after) = parse_part(rest, text)?;
            total = total.checked_add(part).filter(|total| *total <= LIMIT).ok_or_else(invalid)?;
            rest = after;
        }
        match (negative, i64::try_from(total)) {
            (false, Ok(nanos)) => Ok(Self(nanos)),
            (true, Ok(nanos)) => Ok(Self(-nanos)),
            (true, Err(_)) => Ok(Self(i64::MIN)),
            (false, Err(_)) => Err(invalid()),
        }
    }
}

/// Parses one number with its unit at the start of `rest`. Returns the nanoseconds and the remaining text.
fn parse_part<'a>(rest: &'a str, whole: &str) -> Result<(u64, &'a str), ParseDurationError> {
    let quoted = || quote(whole);
    let invalid = || ParseDurationError(format!("time: invalid duration {}", quoted()));
    let (integer, after) = split_digits(rest);
    let mut value: u64 = 0;
    for digit in integer.bytes() {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|value| *value <= LIMIT)
            .ok_or_else(invalid)?;
    }
    let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
    if integer.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let unit_end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
    let (name, after) = after.split_at(unit_end);
    if name.is_empty() {
        return Err(ParseDurationError(format!("time: missing unit in duration {}", quoted())));
    }
    let unit = unit(name)
        .ok_or_else(|| ParseDurationError(format!("time: unknown unit {} in duration {}", quote(name), quoted())))?;
    let whole_units = value.checked_mul(unit).filter(|nanos| *nanos <= LIMIT).ok_or_else(invalid)?;
    let nanos = whole_units + fraction_nanos(fraction, unit);
    if nanos > LIMIT {
        return Err(invalid());
    }
    Ok((nanos, after))
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Returns `0.fraction` of `unit` in nanoseconds, truncated. Digits after the eighteenth are too small to matter.
fn fraction_nanos(fraction: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u128, 1u128);
    for digit in fraction.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    u64::try_from(value * u128::from(unit) / scale).unwrap_or(0)
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        "us" | "µs" | "μs" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

/// Quotes `text` as Go's package `time` does: bytes that are not printable ASCII are escaped one by one.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..=b'~' | 0x7f => out.push(char::from(byte)),
            other => {
                let _ = write!(out, "\\x{other:02x}");
            }
        }
    }
    out.push('"');
    out
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.unsigned_abs();
        if nanos == 0 {
            return f.write_str("0s");
        }
        if self.0 < 0 {
            f.write_str("-")?;
        }
        match nanos {
            0..MICROSECOND => write!(f, "{nanos}ns"),
            MICROSECOND..MILLISECOND => write_fraction(f, nanos, MICROSECOND, "µs"),
            MILLISECOND..SECOND => write_fraction(f, nanos, MILLISECOND, "ms"),
            _ => {
                if nanos >= HOUR {
                    write!(f, "{}h", nanos / HOUR)?;
                }
                if nanos >= MINUTE {
                    write!(f, "{}m", nanos / MINUTE % 60)?;
                }
                write_fraction(f, nanos % MINUTE, SECOND, "s")
            }
        }
    }
}

/// Writes `nanos` in `unit`s, with as many decimals as necessary.
fn write_fraction(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let rest = nanos % unit;
    if rest != 0 {
        let width = unit.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        write!(f, ".{}", digits.trim_end_matches('0'))?;
    }
    f.write_str(name)
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::GoDuration;

    fn check(text: &str, expected: Result<&str, &str>) {
        let got = text.parse::<GoDuration>().map(|d| d.to_string()).map_err(|e| e.to_string());
        assert_eq!(got, expected.map(str::to_owned).map_err(str::to_owned), "{text:?}");
    }

    #[test]
    fn durations_are_parsed_and_printed_as_in_go() {
        check("0", Ok("0s"));
        check("-0", Ok("0s"));
        check("5m", Ok("5m0s"));
        check("90m", Ok("1h30m0s"));
        check("3723.5s", Ok("1h2m3.5s"));
        check("+1h1ns", Ok("1h0m0.000000001s"));
        check("-1.5h", Ok("-1h30m0s"));
        check(".5s", Ok("500ms"));
        check("1.s", Ok("1s"));
        check("1500us", Ok("1.5ms"));
        check("7µs", Ok("7µs"));
        check("7μs", Ok("7µs"));
        check("12ns", Ok("12ns"));
        check("9223372036854775807ns", Ok("2562047h47m16.854775807s"));
        check("-9223372036854775808ns", Ok("-2562047h47m16.854775808s"));
    }

    #[test]
    fn malformed_durations_give_gos_errors() {
        check("", Err("time: invalid duration \"\""));
        check("-", Err("time: invalid duration \"-\""));
        check("x", Err("time: invalid duration \"x\""));
        check(".s", Err("time: invalid duration \".s\""));
        check("3", Err("time: missing unit in duration \"3\""));
        check("3 s", Err("time: unknown unit \" s\" in duration \"3 s\""));
        check("1é\n", Err("time: unknown unit \"\\xc3\\xa9\\x0a\" in duration \"1\\xc3\\xa9\\x0a\""));
        check("1d", Err("time: unknown unit \"d\" in duration \"1d\""));
        check("9223372036854775808ns", Err("time: invalid duration \"9223372036854775808ns\""));
        check("3000000h", Err("time: invalid duration \"3000000h\""));
    }

    #[test]
    fn negative_duration_has_no_std_equivalent() {
        assert_eq!(GoDuration::from_secs(-1).to_std(), None);
        assert_eq!(GoDuration::from_secs(2).to_std(), Some(std::time::Duration::from_secs(2)));
    }
}
