//! Parses values of flags like Go, with its error texts.

use std::net::{IpAddr, Ipv4Addr};

use crate::go::duration::GoDuration;
use crate::go::number::{invalid_syntax, out_of_range, parse_bool};
use crate::go::quote::quote;
use crate::k8s::Quantity;
use crate::version::KUBERNETES;

/// The value of the flag `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionFlag {
    /// `--version=false`: nothing is printed.
    No,
    /// `--version`: prints the version and exits.
    Print,
    /// `--version=raw`: prints all build information and exits.
    Raw,
    /// `--version=vX.Y.Z…`: reports this version instead of the built one.
    Report(String),
}

pub(super) fn duration(text: &str) -> Result<GoDuration, String> {
    text.parse().map_err(|error: crate::go::duration::ParseDurationError| error.to_string())
}

/// Parses a value of `--version`. Follows `component-base/version/verflag/verflag.go#Set @v1.36.3`.
pub(super) fn version(text: &str) -> Result<VersionFlag, String> {
    match text {
        "raw" => Ok(VersionFlag::Raw),
        text if text.starts_with('v') => reported_version(text).map(VersionFlag::Report),
        text => parse_bool(text).map(|on| if on { VersionFlag::Print } else { VersionFlag::No }),
    }
}

/// Checks a version to report. It must equal the built version up to the patch number. Follows
/// `component-base/version/dynamic.go#ValidateDynamicVersion @v1.36.3`.
fn reported_version(text: &str) -> Result<String, String> {
    let numbers = text.strip_prefix('v').unwrap_or(text);
    let numbers = numbers.split(['-', '+']).next().unwrap_or_default();
    if numbers == KUBERNETES.trim_start_matches('v') {
        return Ok(text.to_owned());
    }
    let parts: Vec<&str> = numbers.split('.').collect();
    if parts.len() != 3 || parts.iter().any(|part| part.parse::<u32>().is_err()) {
        return Err(format!("could not parse {} as version", quote(text)));
    }
    Err(format!("version {} must match major/minor/patch of default version {}", quote(text), quote(KUBERNETES)))
}

/// Parses a 32-bit integer: decimal, or with the prefix `0x`, `0o`, `0b` or `0`. `_` may separate digits, and follow a prefix.
pub(super) fn int32(text: &str) -> Result<i32, String> {
    integer(text, |digits, base| i32::from_str_radix(digits, base).ok())
}

/// Parses a 64-bit integer in the same notation as [`int32`].
pub(super) fn int(text: &str) -> Result<i64, String> {
    integer(text, |digits, base| i64::from_str_radix(digits, base).ok())
}

fn integer<T>(text: &str, read: impl Fn(&str, u32) -> Option<T>) -> Result<T, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // A prefix counts as a digit, so `_` may follow it.
    let stray = (base == 10 && digits.starts_with('_')) || digits.ends_with('_') || digits.contains("__");
    let digits = digits.replace('_', "");
    if stray || digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return Err(invalid_syntax("ParseInt", text));
    }
    read(&format!("{sign}{digits}"), base).ok_or_else(|| out_of_range("ParseInt", text))
}

/// Parses a log level: decimal, below 2³¹, without a sign. Follows `component-base/logs/api/v1/pflags.go @v1.36.3`.
pub(super) fn level(text: &str) -> Result<u32, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_syntax("ParseUint", text));
    }
    let value: Option<u32> = text.parse().ok().filter(|value| *value < 1 << 31);
    value.ok_or_else(|| out_of_range("ParseUint", text))
}

pub(super) fn float32(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value.is_nan() && text.starts_with(['+', '-']) => Err(invalid_syntax("ParseFloat", text)),
        Ok(value) if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
            Err(out_of_range("ParseFloat", text))
        }
        Ok(value) => Ok(value),
        Err(_) => Err(invalid_syntax("ParseFloat", text)),
    }
}

/// Parses an IP address without a port. An empty text means the unspecified address. Follows `github.com/spf13/pflag/ip.go#Set`.
pub(super) fn ip(text: &str) -> Result<IpAddr, String> {
    if text.is_empty() {
        return Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    }
    text.trim().parse().map_err(|_| format!("failed to parse IP: {}", quote(text)))
}

/// Parses a quantity and keeps its notation.
pub(super) fn quantity(text: &str) -> Result<Quantity, String> {
    Quantity::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_parsed_as_in_go() {
        for (text, expected) in [("5", 5), ("-7", -7), ("+3", 3), ("0x1f", 31), ("010", 8), ("0b11", 3), ("0", 0)] {
            assert_eq!(int32(text), Ok(expected), "{text}");
        }
        for (text, expected) in [("1_000", 1000), ("-1_0_0", -100), ("0x_1f", 31), ("0_7", 7), ("0b1_1", 3)] {
            assert_eq!(int32(text), Ok(expected), "{text}");
        }
        for text in ["_1", "1_", "1__0", "0x1_", "0x__1", "-_1", "_", "0x", "0_", "+"] {
            assert_eq!(int32(text), Err(format!("strconv.ParseInt: parsing {text:?}: invalid syntax")), "{text}");
        }
        assert_eq!(int32("x"), Err("strconv.ParseInt: parsing \"x\": invalid syntax".to_owned()));
        assert_eq!(int32(""), Err("strconv.ParseInt: parsing \"\": invalid syntax".to_owned()));
        assert_eq!(int32("2147483648"), Err("strconv.ParseInt: parsing \"2147483648\": value out of range".to_owned()));
    }

    #[test]
    fn verbosity_must_be_a_non_negative_integer() {
        assert_eq!(level("4"), Ok(4));
        assert_eq!(level("-1"), Err("strconv.ParseUint: parsing \"-1\": invalid syntax".to_owned()));
        assert_eq!(
            level("2147483648"),
            Err("strconv.ParseUint: parsing \"2147483648\": value out of range".to_owned())
        );
    }

    #[test]
    fn floats_are_parsed_as_in_go() {
        assert_eq!(float32("1.5"), Ok(1.5));
        assert_eq!(float32("x"), Err("strconv.ParseFloat: parsing \"x\": invalid syntax".to_owned()));
        assert_eq!(float32("1e99"), Err("strconv.ParseFloat: parsing \"1e99\": value out of range".to_owned()));
    }

    #[test]
    fn version_flag_values_are_parsed() {
        assert_eq!(version("true"), Ok(VersionFlag::Print));
        assert_eq!(version("0"), Ok(VersionFlag::No));
        assert_eq!(version("raw"), Ok(VersionFlag::Raw));
        assert_eq!(version("v1.36.3-mine"), Ok(VersionFlag::Report("v1.36.3-mine".to_owned())));
        let text = "version \"v1.35.0\" must match major/minor/patch of default version \"v1.36.3\"";
        assert_eq!(version("v1.35.0"), Err(text.to_owned()));
        assert_eq!(version("vx"), Err("could not parse \"vx\" as version".to_owned()));
        assert_eq!(version("x"), Err("strconv.ParseBool: parsing \"x\": invalid syntax".to_owned()));
    }
}
