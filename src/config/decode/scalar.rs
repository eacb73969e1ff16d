//! Resolves plain YAML scalars by the rules of YAML 1.1, as `go-yaml` implements them. They differ from YAML 1.2 in booleans
//! (`yes`, `off`, `n`, …) and integers (`0755`, `1_000`, `0b11`).
//!
//! Follows `go.yaml.in/yaml/v2/resolve.go#resolve`, the version that Kubernetes 1.36.3 depends on.

use super::DecodeError;
use crate::go::json;

/// The value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above [`i64::MAX`].
    Uint(u64),
    Float(f64),
    String(String),
}

impl Scalar {
    /// The scalar's YAML tag, without `!!`.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) => "int",
            Self::Float(_) => "float",
            Self::String(_) => "str",
        }
    }

    /// The JSON literal of a number. Fails for a number that JSON cannot represent.
    pub(super) fn number_literal(&self) -> Option<Result<String, DecodeError>> {
        match self {
            Self::Int(value) => Some(Ok(value.to_string())),
            Self::Uint(value) => Some(Ok(value.to_string())),
            Self::Float(value) if value.is_finite() => Some(Ok(json::float(*value))),
            Self::Float(value) if value.is_nan() => Some(Err("json: unsupported value: NaN".into())),
            Self::Float(value) => {
                let sign = if *value > 0.0 { '+' } else { '-' };
                Some(Err(DecodeError(format!("json: unsupported value: {sign}Inf"))))
            }
            _ => None,
        }
    }
}

/// Resolves a plain scalar without a tag. A date is a string, as in upstream.
pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Scalar::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        _ => number(text).unwrap_or_else(|| Scalar::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Scalar> {
    match text.as_bytes().first()? {
        b'.' => go_float(text).map(Scalar::Float),
        b'+' | b'-' | b'0'..=b'9' => {
            let digits = text.replace('_', "");
            integer(&digits).or_else(|| is_yaml_float(&digits).then(|| go_float(&digits).map(Scalar::Float)).flatten())
        }
        _ => None,
    }
}

/// Parses an integer like Go's `strconv.ParseInt` with base 0: `0x`, `0o`, `0b` and the old octal `0755`.
fn integer(text: &str) -> Option<Scalar> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_str() {
        "0" => (10, "0"),
        other => match other.as_bytes() {
            [b'0', b'x', ..] => (16, &other[2..]),
            [b'0', b'o', ..] => (8, &other[2..]),
            [b'0', b'b', ..] => (2, &other[2..]),
            [b'0', ..] => (8, &other[1..]),
            _ => (10, other),
        },
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(value) => Some(Scalar::Int(value)),
        // Go parses such a number as an unsigned one, which must not have a sign.
        Err(_) => (!text.starts_with('+')).then_some(Scalar::Uint(magnitude)),
    }
}

/// Whether a text matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_yaml_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|c| c.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_ok && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

/// Parses a float like Go's `strconv.ParseFloat`. Returns `None` if it overflows.
fn go_float(text: &str) -> Option<f64> {
    if !is_yaml_float(text) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "expected values are made in place")]
    fn check(text: &str, expected: Scalar) {
        assert_eq!(resolve(text), expected, "{text:?}");
    }

    #[test]
    fn yaml_1_1_booleans_are_resolved() {
        for text in ["y", "Yes", "TRUE", "on", "ON"] {
            check(text, Scalar::Bool(true));
        }
        for text in ["n", "No", "FALSE", "off", "Off"] {
            check(text, Scalar::Bool(false));
        }
        for text in ["yEs", "oN", "truE", "t", "f"] {
            check(text, Scalar::String(text.to_owned()));
        }
    }

    #[test]
    fn yaml_1_1_integers_are_resolved() {
        check("0", Scalar::Int(0));
        check("-12", Scalar::Int(-12));
        check("+12", Scalar::Int(12));
        check("0755", Scalar::Int(0o755));
        check("0o755", Scalar::Int(0o755));
        check("-0x1F", Scalar::Int(-31));
        check("0b101", Scalar::Int(5));
        check("1_000", Scalar::Int(1000));
        check("9223372036854775807", Scalar::Int(i64::MAX));
        check("-9223372036854775808", Scalar::Int(i64::MIN));
        check("18446744073709551615", Scalar::Uint(u64::MAX));
        // Not octal digits, so this is parsed as a decimal float.
        check("09", Scalar::Float(9.0));
        check("190:20:30", Scalar::String("190:20:30".to_owned()));
        check("0x", Scalar::String("0x".to_owned()));
    }

    #[test]
    fn floats_nulls_and_dates_are_resolved() {
        check("1e3", Scalar::Float(1000.0));
        check(".5", Scalar::Float(0.5));
        check("-1.", Scalar::Float(-1.0));
        check("+.inf", Scalar::Float(f64::INFINITY));
        check("1e999", Scalar::String("1e999".to_owned()));
        check("", Scalar::Null);
        check("~", Scalar::Null);
        check("Null", Scalar::Null);
        check("2001-01-01", Scalar::String("2001-01-01".to_owned()));
        check("5m0s", Scalar::String("5m0s".to_owned()));
        check(".", Scalar::String(".".to_owned()));
    }

    #[test]
    fn floats_convert_to_json_literals() {
        assert_eq!(Scalar::Float(1000.0).number_literal(), Some(Ok("1000".to_owned())));
        assert_eq!(Scalar::Float(f64::NAN).number_literal(), Some(Err("json: unsupported value: NaN".into())));
        let negative = Scalar::Float(f64::NEG_INFINITY).number_literal();
        assert_eq!(negative, Some(Err("json: unsupported value: -Inf".into())));
        assert_eq!(Scalar::Bool(true).number_literal(), None);
    }
}
