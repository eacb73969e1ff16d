//! Parsing of a [`Quantity`] from text.

use super::{Format, MAX_I64_POWER, MAX_I128_POWER, NANO, NANOS_PER_UNIT, Quantity};

/// Error for a text that is not a quantity. The texts equal those of
/// `apimachinery/pkg/api/resource/quantity.go#ErrFormatWrong`, `#ErrNumeric`, `#ErrSuffix @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// The text is not a number with a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// There is no number before the suffix.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is neither a known one nor an exponent.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// Largest amount in binary notation, in billionths.
const MAX_BINARY_NANOS: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

/// A parsed quantity, and whether upstream treats its text as canonical already.
pub(super) struct Parsed {
    pub(super) quantity: Quantity,
    pub(super) keeps_text: bool,
}

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Whether there is any digit before the suffix.
    has_digits: bool,
    /// Digits before the point without leading zeros; `0` if none are left.
    whole: &'a [u8],
    /// Digits after the point.
    fraction: &'a [u8],
    suffix: &'a [u8],
}

impl Parts<'_> {
    fn digits(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).map(|digit| digit - b'0')
    }

    fn digit_count(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }
}

/// The factor that a suffix stands for.
#[derive(Clone, Copy)]
enum Unit {
    /// A power of ten.
    Ten { power: i32, format: Format },
    /// A power of two.
    Two { power: u32 },
}

/// Parses a quantity from text. Follows `apimachinery/pkg/api/resource/quantity.go#ParseQuantity @v1.36.3`.
pub(super) fn parse(text: &str) -> Result<Parsed, ParseQuantityError> {
    let parts = split(text.as_bytes())?;
    let unit = interpret(parts.suffix).ok_or(ParseQuantityError::Suffix)?;
    if let Some(parsed) = parse_scaled(&parts, unit) {
        return Ok(parsed);
    }
    if !parts.has_digits {
        return Err(ParseQuantityError::Numeric);
    }
    Ok(Parsed { quantity: parse_wide(&parts, unit), keeps_text: false })
}

/// Splits a text into its parts.
/// Follows `apimachinery/pkg/api/resource/quantity.go#parseQuantityString @v1.36.3`, which reads a
/// sign without digits as zero.
fn split(text: &[u8]) -> Result<Parts<'_>, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (zeros, rest) = split_while(rest, |byte| byte == b'0');
    let (whole, rest) = split_while(rest, |byte| byte.is_ascii_digit());
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => split_while(rest, |byte| byte.is_ascii_digit()),
        _ => (&[][..], rest),
    };
    let (letters, after) = split_while(rest, |byte| b"eEinumkKMGTP".contains(&byte));
    let after = match after {
        [b'-' | b'+', after @ ..] => after,
        _ => after,
    };
    let (exponent, after) = split_while(after, |byte| byte.is_ascii_digit());
    if !after.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    debug_assert!(letters.len() + exponent.len() <= rest.len());
    let has_digits = zeros.len() + whole.len() + fraction.len() > 0;
    let whole = if whole.is_empty() { b"0" } else { whole };
    Ok(Parts { negative, has_digits, whole, fraction, suffix: rest })
}

fn split_while(text: &[u8], keep: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !keep(*byte)).unwrap_or(text.len()))
}

/// Returns the factor of a suffix. Follows `apimachinery/pkg/api/resource/suffix.go#suffixHandler.interpret @v1.36.3`.
fn interpret(suffix: &[u8]) -> Option<Unit> {
    let si = |power| Some(Unit::Ten { power, format: Format::DecimalSi });
    match suffix {
        b"" => si(0),
        b"n" => si(-9),
        b"u" => si(-6),
        b"m" => si(-3),
        b"k" => si(3),
        b"M" => si(6),
        b"G" => si(9),
        b"T" => si(12),
        b"P" => si(15),
        b"E" => si(18),
        b"Ki" => Some(Unit::Two { power: 10 }),
        b"Mi" => Some(Unit::Two { power: 20 }),
        b"Gi" => Some(Unit::Two { power: 30 }),
        b"Ti" => Some(Unit::Two { power: 40 }),
        b"Pi" => Some(Unit::Two { power: 50 }),
        b"Ei" => Some(Unit::Two { power: 60 }),
        [b'e' | b'E', exponent @ ..] => {
            let exponent: i64 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
            #[expect(clippy::cast_possible_truncation, reason = "upstream keeps the low 32 bits")]
            let power = exponent as i32;
            Some(Unit::Ten { power, format: Format::DecimalExponent })
        }
        _ => None,
    }
}

/// Returns the quantity as a scaled integer if upstream does so, too. The text must not have too many digits, and no digit below
/// a billionth. In binary notation it must be a whole number.
fn parse_scaled(parts: &Parts<'_>, unit: Unit) -> Option<Parsed> {
    let digits = parts.digit_count();
    let (factor, scale, format) = match unit {
        Unit::Ten { power, format } => {
            if digits > MAX_I64_POWER as usize {
                return None;
            }
            (1, power.wrapping_sub(i32::try_from(parts.fraction.len()).ok()?), format)
        }
        Unit::Two { power } => {
            // Upstream allows 14 digits for the number and its binary factor together. The factor takes three digits for each
            // ten bits.
            let room = 14_usize.checked_sub(power as usize / 10 * 3)?;
            if digits > room || !parts.fraction.is_empty() {
                return None;
            }
            (1_i64 << power, 0, Format::BinarySi)
        }
    };
    if scale < NANO {
        return None;
    }
    let number = parts.digits().fold(0, |number: i64, digit| number * 10 + i64::from(digit));
    let value = number.checked_mul(factor)?;
    let keeps_text = match format {
        Format::BinarySi => number & 7 != 0,
        _ => scale % 3 == 0 && !ends_in_three_zeros(parts) && parts.whole[0] != b'0',
    };
    let value = if parts.negative { -value } else { value };
    Some(Parsed { quantity: Quantity::scaled(value, scale, format), keeps_text })
}

fn ends_in_three_zeros(parts: &Parts<'_>) -> bool {
    let mut from_end = parts.whole.iter().chain(parts.fraction).rev();
    (0..3).all(|_| from_end.next() == Some(&b'0'))
}

/// Returns the quantity in billionths, rounded away from zero. Binary amounts are capped.
fn parse_wide(parts: &Parts<'_>, unit: Unit) -> Quantity {
    let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
    let (nanos, format) = match unit {
        Unit::Ten { power, format } => (nanos(parts.digits(), places.wrapping_sub(power), 0), format),
        Unit::Two { power } => match nanos(parts.digits(), places, power).min(MAX_BINARY_NANOS) {
            // Amounts below one have no binary notation.
            fraction @ 1..NANOS_PER_UNIT => (fraction, Format::DecimalSi),
            nanos => (nanos, Format::BinarySi),
        },
    };
    Quantity::wide(if parts.negative { -nanos } else { nanos }, format)
}

/// Computes a number times 2^`shift` in billionths, rounded up and capped. The last `places` of its `digits` are decimals.
fn nanos(digits: impl Iterator<Item = u8>, places: i32, shift: u32) -> i128 {
    let mut digits: Vec<u8> = digits.skip_while(|digit| *digit == 0).collect();
    if digits.is_empty() {
        return 0;
    }
    if shift > 0 {
        shift_left(&mut digits, shift);
    }
    let count = i64::try_from(digits.len()).unwrap_or(i64::MAX);
    let whole = count.saturating_sub(i64::from(places)).saturating_sub(i64::from(NANO));
    if whole > i64::from(MAX_I128_POWER) + 1 {
        return i128::MAX;
    }
    let whole = usize::try_from(whole).unwrap_or_default();
    let padded = digits.iter().copied().chain(std::iter::repeat(0)).take(whole);
    let truncated = padded.fold(0, |number: i128, digit| number.saturating_mul(10).saturating_add(i128::from(digit)));
    let is_exact = digits.iter().skip(whole).all(|digit| *digit == 0);
    truncated.saturating_add(i128::from(!is_exact))
}

/// Multiplies a number, given as decimal digits from the highest, by 2^`shift` (at most 2⁶⁰).
fn shift_left(digits: &mut Vec<u8>, shift: u32) {
    let mut carry: u128 = 0;
    let take_digit = |carry: &mut u128| {
        let digit = u8::try_from(*carry % 10).unwrap_or_default();
        *carry /= 10;
        digit
    };
    for digit in digits.iter_mut().rev() {
        carry += u128::from(*digit) << shift;
        *digit = take_digit(&mut carry);
    }
    let mut high = Vec::new();
    while carry > 0 {
        high.push(take_digit(&mut carry));
    }
    digits.splice(0..0, high.into_iter().rev());
}
