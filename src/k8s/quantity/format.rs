//! Formatting of a [`Quantity`] as its canonical text.

use std::fmt;

use super::{Format, NANO, NANOS_PER_UNIT, Quantity, Repr};

/// Prints the canonical form: an integer without trailing zeros, and the largest suffix for which the number is an integer. An
/// amount without an exact binary notation is printed in decimal. As in upstream, an amount whose power has no suffix is printed
/// without its power: `1000E` becomes `1`.
/// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.CanonicalizeBytes @v1.36.3`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.format() {
            Format::BinarySi => match binary(*self) {
                Some((number, suffix)) => write!(f, "{number}{suffix}"),
                None => decimal_si(*self, f),
            },
            Format::DecimalSi => decimal_si(*self, f),
            Format::DecimalExponent => match decimal(*self) {
                (number, 0) => write!(f, "{number}"),
                (number, exponent) => write!(f, "{number}e{exponent}"),
            },
        }
    }
}

fn decimal_si(quantity: Quantity, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (number, exponent) = decimal(quantity);
    let suffix = match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    };
    write!(f, "{number}{suffix}")
}

/// Returns an integer and its power of ten, which is a multiple of three.
fn decimal(quantity: Quantity) -> (i128, i32) {
    let (mut number, mut exponent) = match quantity.0 {
        Repr::Scaled { scale, value, .. } => (i128::from(value), scale),
        Repr::Wide { nanos, .. } => (nanos.get(), NANO),
    };
    while number != 0 && number % 10 == 0 {
        number /= 10;
        exponent = exponent.wrapping_add(1);
    }
    // The multiplication does not saturate. The power of an amount in 128 bits, -9, is a multiple of three, so the number is
    // multiplied only if it was divided above. All other numbers have 64 bits.
    while exponent % 3 != 0 {
        number = number.saturating_mul(10);
        exponent = exponent.wrapping_sub(1);
    }
    (number, exponent)
}

/// Returns an integer and its binary suffix, if the amount is a whole number of at least 1024.
fn binary(quantity: Quantity) -> Option<(i128, &'static str)> {
    let nanos = quantity.saturating_nanos();
    if nanos.unsigned_abs() < (1024 * NANOS_PER_UNIT).unsigned_abs() || !is_whole(quantity) {
        return None;
    }
    let mut number = nanos / NANOS_PER_UNIT;
    let mut power = 0;
    while number % 1024 == 0 {
        number /= 1024;
        power += 1;
    }
    let suffix = match power {
        1 => "Ki",
        2 => "Mi",
        3 => "Gi",
        4 => "Ti",
        5 => "Pi",
        6 => "Ei",
        _ => "",
    };
    Some((number, suffix))
}

fn is_whole(quantity: Quantity) -> bool {
    match quantity.0 {
        Repr::Scaled { scale, .. } if scale >= 0 => true,
        _ => quantity.checked_nanos().is_some_and(|nanos| nanos % NANOS_PER_UNIT == 0),
    }
}
