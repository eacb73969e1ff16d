//! Exact resource quantities.
//!
//! A quantity is a decimal number that remembers which of three notations it was written in. Small ones (up to 18 digits,
//! which is all that is seen in practice) are a 64-bit integer with a decimal scale; the rest count billionths in 128 bits.
//! The two kinds are told apart because upstream converts them differently where a result does not fit 64 bits, and a
//! scheduler that answers otherwise than the control plane around it is of no use.

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

/// The decimal scale of a billionth, the finest amount that is told from zero.
const NANO: i32 = -9;
/// Billionths in one.
const NANOS_PER_UNIT: i128 = 1_000_000_000;
/// 10¹⁸ is the largest power of ten in an `i64`.
const MAX_I64_POWER: u32 = 18;
/// 10³⁸ is the largest power of ten in an `i128`.
const MAX_I128_POWER: u32 = 38;

/// An exact amount of a resource. Follows `apimachinery/pkg/api/resource/quantity.go#Quantity @v1.36.3`.
///
/// Equality, order and hash are those of the number: the notation does not count. Amounts beyond ±1.7·10²⁹ units that are
/// not written as up to 18 digits and an exponent are capped there; upstream has no such limit, and no use for one either.
#[derive(Clone, Copy)]
pub struct Quantity(Repr);

/// The notation that a quantity is written in.
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

/// The formats sit inside the variants so that the whole takes three words.
#[derive(Clone, Copy)]
enum Repr {
    /// `value` · 10^`scale`.
    Scaled { format: Format, scale: i32, value: i64 },
    /// A count of billionths.
    Wide { format: Format, nanos: Nanos },
}

/// An `i128` that does not ask for an alignment of 16.
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
    /// Nothing.
    pub const ZERO: Self = Self::from_value(0);

    /// `value` whole units.
    pub const fn from_value(value: i64) -> Self {
        Self::scaled(value, 0, Format::DecimalSi)
    }

    /// `value` thousandths.
    pub const fn from_milli(value: i64) -> Self {
        Self::scaled(value, -3, Format::DecimalSi)
    }

    const fn scaled(value: i64, scale: i32, format: Format) -> Self {
        Self(Repr::Scaled { format, scale, value })
    }

    const fn wide(nanos: i128, format: Format) -> Self {
        Self(Repr::Wide { format, nanos: Nanos::new(nanos) })
    }

    /// The same amount, written in `format` from now on.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        match self.0 {
            Repr::Scaled { scale, value, .. } => Self(Repr::Scaled { format, scale, value }),
            Repr::Wide { nanos, .. } => Self(Repr::Wide { format, nanos }),
        }
    }

    /// The notation that the quantity is written in.
    pub const fn format(self) -> Format {
        match self.0 {
            Repr::Scaled { format, .. } | Repr::Wide { format, .. } => format,
        }
    }

    /// Parses `text` in any of the API's notations: `1.5`, `100m`, `2Gi`, `1e3`, `12E`.
    ///
    /// What is finer than a billionth is rounded away from zero, and binary amounts are capped at ±(2⁶³−1).
    ///
    /// # Errors
    /// With upstream's text, if `text` is no quantity.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse::parse(text).map(|parsed| parsed.quantity)
    }

    /// How the API server writes a quantity that it was given as `text`: in the canonical form that [`Quantity`] displays,
    /// except that texts which are close to it (`1.500`, `+5Ki`) stay as they are.
    ///
    /// # Errors
    /// As [`Quantity::parse`].
    pub fn canonical_text(text: &str) -> Result<String, ParseQuantityError> {
        let parsed = parse::parse(text)?;
        Ok(if parsed.keeps_text { text.to_owned() } else { parsed.quantity.to_string() })
    }

    /// Whether the amount is zero.
    pub const fn is_zero(self) -> bool {
        self.signum() == 0
    }

    /// -1, 0 or 1, as the amount is less than, equal to or greater than zero.
    pub const fn signum(self) -> i32 {
        match self.0 {
            Repr::Scaled { value, .. } => value.signum() as i32,
            Repr::Wide { nanos, .. } => nanos.get().signum() as i32,
        }
    }

    /// The amount in whole units, rounded up. See [`Quantity::scaled_value`] for amounts that do not fit.
    pub fn value(self) -> i64 {
        self.scaled_value(0)
    }

    /// The amount in thousandths, rounded up. See [`Quantity::scaled_value`] for amounts that do not fit: ten quadrillion
    /// (10¹⁶) units already do not.
    pub fn milli_value(self) -> i64 {
        self.scaled_value(-3)
    }

    /// The amount in units of 10^`scale`, rounded away from zero.
    ///
    /// An amount that does not fit is what upstream makes of it, not a saturated one: its low 64 bits, or 0 if it was
    /// written with up to 18 digits and `scale` is not 1, 2, 3, 6 or 9 below its own. Negative amounts that were written
    /// with more digits lose their fraction and are raised by one; API validation keeps negative amounts out.
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

    /// The amount as a float, within a few units in the last place, infinite if it is too large. Zero is 0
    /// whatever its exponent, where upstream multiplies it with infinity.
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

    /// The same amount as upstream keeps it once it has compared it with `other`: with a decimal of many digits as another
    /// such, which counts where it does not fit 64 bits (see [`Quantity::scaled_value`]).
    /// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.Cmp @v1.36.3`.
    #[must_use]
    pub(crate) fn compared_with(self, other: Self) -> Self {
        match (self.0, other.0) {
            (Repr::Scaled { format, .. }, Repr::Wide { .. }) => Self::wide(self.saturating_nanos(), format),
            _ => self,
        }
    }

    /// The amount in billionths, unless it is beyond what 128 bits hold.
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

    /// The amount in billionths, capped at what 128 bits hold.
    fn saturating_nanos(self) -> i128 {
        self.checked_nanos().unwrap_or(if self.signum() < 0 { i128::MIN } else { i128::MAX })
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

/// Zero takes the notation of what is added to it.
/// Follows `apimachinery/pkg/api/resource/quantity.go#Quantity.Add @v1.36.3`.
impl AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        let format = if self.is_zero() { other.format() } else { self.format() };
        *self = add_scaled(*self, other)
            .unwrap_or_else(|| Self::wide(self.saturating_nanos().saturating_add(other.saturating_nanos()), format))
            .with_format(format);
    }
}

/// The sum of two scaled integers, if it is one too.
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

/// Text, a bare number, or `null` for zero.
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
                // The shortest text that reads back as this number, which is what a person wrote. Rust never uses an
                // exponent unless asked; large numbers are asked for it so that their digits stay few.
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
