//! Exact amounts of resources.
//!
//! A quantity is a decimal number that remembers in which of three notations it was written. A decimal text of up to 18 digits
//! becomes a 64-bit integer with a decimal scale, and so does a binary text with a small integer, such as `2Gi`. Other texts,
//! such as `1.5Gi`, become a count of billionths in 128 bits. The two representations are kept apart because upstream converts
//! them differently if a result does not fit 64 bits, and this scheduler must compute the same amounts as the rest of the
//! control plane.

mod format;
mod number;
mod parse;

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use number::{overflowed, power_f64, rescale, scaled_nanos};
pub use parse::ParseQuantityError;

/// Decimal scale of a billionth, the smallest amount that differs from zero.
const NANO: i32 = -9;
/// Number of billionths in one unit.
const NANOS_PER_UNIT: i128 = 1_000_000_000;
/// Exponent of the largest power of ten in an `i64`, 10¹⁸.
const MAX_I64_POWER: u32 = 18;
/// Exponent of the largest power of ten in an `i128`, 10³⁸.
const MAX_I128_POWER: u32 = 38;

/// An exact amount of a resource. Follows `apimachinery/pkg/api/resource/quantity.go#Quantity @v1.36.3`.
///
/// Equality, order and hash depend on the number alone, not on the notation. Amounts beyond ±1.7·10²⁹ units are capped there,
/// unless they are written with up to 18 digits and an exponent. Upstream has no such limit.
#[derive(Clone, Copy)]
pub struct Quantity(Repr);

/// The notation of a quantity.
/// Follows `apimachinery/pkg/api/resource/quantity.go#Format @v1.36.3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Powers of a thousand: `12M`, `100m`.
    #[default]
    DecimalSi,
    /// Powers of 1024: `12Mi`.
    BinarySi,
    /// Powers of ten: `12e6`.
    DecimalExponent,
}

/// The two representations of a quantity. The format is inside the variants so that a quantity takes three words.
#[derive(Clone, Copy)]
enum Repr {
    /// The amount `value` · 10^`scale`.
    Scaled { format: Format, scale: i32, value: i64 },
    /// A count of billionths.
    Wide { format: Format, nanos: Nanos },
}

/// An `i128` without its alignment of 16 bytes.
#[derive(Clone, Copy)]
struct Nanos {
    high: i64,
    low: u64,
}

impl Nanos {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the two halves of the value")]
    const fn new(nanos: i128) -> Self {
        Self { high: (nanos >> 64) as i64, low: nanos as u64 }
    }

    const fn get(self) -> i128 {
        ((self.high as i128) << 64) | (self.low as i128)
    }
}

impl Quantity {
    /// The amount of zero.
    pub const ZERO: Self = Self::from_value(0);

    /// Creates a quantity of `value` whole units.
    pub const fn from_value(value: i64) -> Self {
        Self::scaled(value, 0, Format::DecimalSi)
    }

    /// Creates a quantity of `value` thousandths.
    pub const fn from_milli(value: i64) -> Self {
        Self::scaled(value, -3, Format::DecimalSi)
    }

    const fn scaled(value: i64, scale: i32, format: Format) -> Self {
        Self(Repr::Scaled { format, scale, value })
    }

    const fn wide(nanos: i128, format: Format) -> Self {
        Self(Repr::Wide { format, nanos: Nanos::new(nanos) })
    }

    /// Returns the same amount with another notation.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        match self.0 {
            Repr::Scaled { scale, value, .. } => Self(Repr::Scaled { format, scale, value }),
            Repr::Wide { nanos, .. } => Self(Repr::Wide { format, nanos }),
        }
    }

    /// Returns the notation of the quantity.
    pub const fn format(self) -> Format {
        match self.0 {
            Repr::Scaled { format, .. } | Repr::Wide { format, .. } => format,
        }
    }

    /// Parses `text` in any of the API's notations: `1.5`, `100m`, `2Gi`, `1e3`, `12E`.
    ///
    /// Digits below a billionth are rounded away from zero, and binary amounts are capped at ±(2⁶³−1).
    ///
    /// # Errors
    /// With upstream's text, if `text` is not a quantity.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse::parse(text).map(|parsed| parsed.quantity)
    }

    /// Returns the text that the API server writes for a quantity it received as `text`: the canonical form that [`Quantity`]
    /// prints, except that texts close to it (`1.500`, `+5Ki`) stay as they are.
    ///
    /// # Errors
    /// As [`Quantity::parse`].
    pub fn canonical_text(text: &str) -> Result<String, ParseQuantityError> {
        let parsed = parse::parse(text)?;
        Ok(if parsed.keeps_text { text.to_owned() } else { parsed.quantity.to_string() })
    }

    /// Returns whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.signum() == 0
    }

    /// Returns -1, 0 or 1 for an amount less than, equal to or greater than zero.
    pub const fn signum(self) -> i32 {
        match self.0 {
            Repr::Scaled { value, .. } => value.signum() as i32,
            Repr::Wide { nanos, .. } => nanos.get().signum() as i32,
        }
    }

    /// Returns the amount in whole units, rounded up. See [`Quantity::scaled_value`] for amounts that do not fit.
    pub fn value(self) -> i64 {
        self.scaled_value(0)
    }

    /// Returns the amount in thousandths, rounded up. See [`Quantity::scaled_value`] for amounts that do not fit, such as ten
    /// quadrillion (10¹⁶) units.
    pub fn milli_value(self) -> i64 {
        self.scaled_value(-3)
    }

    /// Returns the amount in units of 10^`scale`, rounded away from zero.
    ///
    /// An amount that does not fit 64 bits does not saturate, as in upstream. The result is its low 64 bits. For an amount that
    /// is stored in 64 bits, the result is 0 unless `scale` is 1, 2, 3, 6 or 9 below the amount's own scale. A negative amount
    /// that is stored as a count of billionths is not rounded away from zero: it loses its fraction and, if the count fits 64
    /// bits, is raised by one. API validation rejects negative amounts.
    /// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.ScaledValue @v1.36.3`.
    pub fn scaled_value(self, scale: i32) -> i64 {
        match self.0 {
            Repr::Scaled { scale: own, value, .. } => {
                let shift = i64::from(own) - i64::from(scale);
                rescale(value, shift).unwrap_or_else(|| overflowed(value, shift))
            }
            Repr::Wide { nanos, .. } => scaled_nanos(nanos.get(), i64::from(scale) - i64::from(NANO)),
        }
    }

    /// Returns the amount as a float, exact to a few units in the last place, or infinity if it is too large. Zero with any
    /// exponent is 0, whereas upstream multiplies zero by infinity.
    /// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.AsApproximateFloat64 @v1.36.3`.
    #[expect(clippy::cast_precision_loss, reason = "approximate by contract")]
    pub fn approximate_f64(self) -> f64 {
        match self.0 {
            Repr::Scaled { scale: 0, value, .. } => value as f64,
            Repr::Scaled { value: 0, .. } => 0.0,
            Repr::Scaled { scale, value, .. } => value as f64 * power_f64(scale),
            Repr::Wide { nanos, .. } => nanos.get() as f64 * power_f64(NANO),
        }
    }

    /// Returns the same amount in the representation that upstream gives it when comparing it with `other`: 128-bit billionths if
    /// `other` has them. The representation matters for amounts that do not fit 64 bits (see [`Quantity::scaled_value`]).
    /// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.Cmp @v1.36.3`.
    #[must_use]
    pub(crate) fn compared_with(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Repr::Scaled { format, .. }, Repr::Wide { .. }) => Self::wide(self.saturating_nanos(), format),
            _ => self,
        }
    }

    /// Returns the amount in billionths, unless it does not fit 128 bits.
    fn checked_nanos(self) -> Option<i128> {
        match self.0 {
            Repr::Scaled { value: 0, .. } => Some(0),
            Repr::Scaled { scale, value, .. } => {
                let power = u32::try_from(i64::from(scale) - i64::from(NANO)).ok()?;
                i128::from(value).checked_mul(10_i128.checked_pow(power)?)
            }
            Repr::Wide { nanos, .. } => Some(nanos.get()),
        }
    }

    /// Returns the amount in billionths, capped to 128 bits.
    fn saturating_nanos(self) -> i128 {
        self.checked_nanos().unwrap_or(if self.signum() < 0 { i128::MIN } else { i128::MAX })
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Adds another amount to this one. The sum has the notation of the left side, or that of the right side if the left one is zero.
/// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.Add @v1.36.3`.
impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        let format = if self.is_zero() { other.format() } else { self.format() };
        *self = add_scaled(*self, other)
            .unwrap_or_else(|| Self::wide(self.saturating_nanos().saturating_add(other.saturating_nanos()), format))
            .with_format(format);
    }
}

/// Returns the sum of two scaled integers, if the sum is a scaled integer, too.
/// Follows `apimachinery/pkg/api/resource/amount.go#int64Amount.Add @v1.36.3`.
fn add_scaled(a: Quantity, b: Quantity) -> Option<Quantity> {
    let (Repr::Scaled { scale: a_scale, value: a_value, format }, Repr::Scaled { scale: b_scale, value: b_value, .. }) =
        (a.0, b.0)
    else {
        return None;
    };
    if b_value == 0 {
        return Some(a);
    }
    if a_value == 0 {
        return Some(b);
    }
    let scale = a_scale.min(b_scale);
    let aligned = |value, own: i32| rescale(value, i64::from(own) - i64::from(scale));
    let sum = aligned(a_value, a_scale)?.checked_add(aligned(b_value, b_scale)?)?;
    Some(Quantity::scaled(sum, scale, format))
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        match self.0 {
            Repr::Scaled { format, scale, value } if value != i64::MIN => Self::scaled(-value, scale, format),
            _ => Self::wide(self.saturating_nanos().saturating_neg(), self.format()),
        }
    }
}

impl SubAssign for Quantity {
    fn sub_assign(&mut self, other: Self) {
        *self += -other;
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(mut self, other: Self) -> Self {
        self -= other;
        self
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self})")
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Decodes a string, a number, or `null` as zero.
/// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.UnmarshalJSON @v1.36.3`.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct QuantityVisitor;
        impl Visitor<'_> for QuantityVisitor {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text.trim()).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Quantity, E> {
                // `to_string` returns the shortest text that parses to this number, which is usually the original text. Large
                // numbers are printed with an exponent, because Rust would otherwise print all their digits.
                if number.abs() < 1e15 {
                    self.visit_str(&number.to_string())
                } else {
                    self.visit_str(&format!("{number:e}"))
                }
            }

            fn visit_unit<E>(self) -> Result<Quantity, E> {
                Ok(Quantity::ZERO)
            }
        }
        deserializer.deserialize_any(QuantityVisitor)
    }
}

#[cfg(test)]
mod tests;
