//! Numbers and booleans as Go's package `strconv` reads and writes them, with its error texts.

use std::fmt::{Display, LowerExp};

use super::quote::quote;

/// Formats `value` as `strconv.FormatFloat(…, 'g', -1, …)` does for the width of its type. It has the fewest digits that parse
/// to the same value. If the exponent is below -4 or above 5, it is written, with at least two digits.
pub fn general<F: Display + LowerExp + Into<f64> + Copy>(value: F) -> String {
    let wide: f64 = value.into();
    if wide.is_nan() {
        return "NaN".to_owned();
    }
    if wide.is_infinite() {
        return if wide > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    if wide == 0.0 || exponent.parse().is_ok_and(|exponent: i32| (-4..6).contains(&exponent)) {
        return value.to_string();
    }
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

/// Reads a boolean as `strconv.ParseBool` does.
pub fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(invalid_syntax("ParseBool", text)),
    }
}

/// Returns the error text for a text that the named function cannot parse as a number or boolean.
/// Follows `strconv/number.go#NumError.Error @go1.26`.
pub fn invalid_syntax(function: &str, text: &str) -> String {
    format!("strconv.{function}: parsing {}: invalid syntax", quote(text))
}

/// Returns the error text for a number that does not fit into its type.
pub fn out_of_range(function: &str, text: &str) -> String {
    format!("strconv.{function}: parsing {}: value out of range", quote(text))
}

#[cfg(test)]
mod tests {
    use super::{general, out_of_range, parse_bool};

    #[test]
    fn floats_are_formatted_with_shortest_digits() {
        let check = |value: f64, expected: &str| assert_eq!(general(value), expected);
        check(0.0, "0");
        check(1.0, "1");
        check(-1.5, "-1.5");
        check(0.0001, "0.0001");
        check(0.00001, "1e-05");
        check(0.000_022_5, "2.25e-05");
        check(123_456.0, "123456");
        check(1_000_000.0, "1e+06");
        check(1_234_567.0, "1.234567e+06");
        check(1e100, "1e+100");
        check(f64::INFINITY, "+Inf");
        check(f64::NEG_INFINITY, "-Inf");
        check(f64::NAN, "NaN");
        assert_eq!([general(0.1_f32), general(1e7_f32), general(16_777_216_f32)], ["0.1", "1e+07", "1.6777216e+07"]);
    }

    #[test]
    fn parse_errors_equal_strconvs() {
        assert_eq!(parse_bool("T"), Ok(true));
        assert_eq!(parse_bool("yes"), Err("strconv.ParseBool: parsing \"yes\": invalid syntax".to_owned()));
        assert_eq!(out_of_range("ParseInt", "9"), "strconv.ParseInt: parsing \"9\": value out of range");
    }
}
