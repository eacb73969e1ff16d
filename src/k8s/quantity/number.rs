//! Arithmetic of [`Quantity`]: comparison, hash, and conversion between powers of ten.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{MAX_I64_POWER, MAX_I128_POWER, NANO, Quantity, Repr};

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Repr::Scaled { scale, value, .. }, Repr::Scaled { scale: other_scale, value: other_value, .. }) =
            (self.0, other.0)
            && scale == other_scale
        {
            return value.cmp(&other_value);
        }
        match (self.checked_nanos(), other.checked_nanos()) {
            (Some(nanos), Some(other)) => nanos.cmp(&other),
            (None, Some(_)) => self.signum().cmp(&0),
            (Some(_), None) => 0.cmp(&other.signum()),
            (None, None) => self.signum().cmp(&other.signum()).then_with(|| compare_large(*self, *other)),
        }
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        normal(*self).hash(state);
    }
}

/// Returns the mantissa without trailing zeros, and the power of ten. Equal amounts have equal results.
fn normal(quantity: Quantity) -> (i128, i64) {
    let (mut mantissa, mut exponent) = match quantity.0 {
        Repr::Scaled { scale, value, .. } => (i128::from(value), i64::from(scale)),
        Repr::Wide { nanos, .. } => (nanos.get(), i64::from(NANO)),
    };
    if mantissa == 0 {
        return (0, 0);
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    (mantissa, exponent)
}

/// Compares two scaled integers of the same sign that are both too large for 128 bits of billionths.
fn compare_large(a: Quantity, b: Quantity) -> Ordering {
    let (a_mantissa, a_exponent) = normal(a);
    let (b_mantissa, b_exponent) = normal(b);
    let magnitude = |mantissa: i128, exponent: i64| exponent + i64::from(mantissa.unsigned_abs().ilog10());
    let by_magnitude = magnitude(a_mantissa, a_exponent).cmp(&magnitude(b_mantissa, b_exponent));
    // At equal magnitude, the exponents differ by less than 19, because a mantissa has at most 19 digits. So neither product
    // overflows.
    let lower = a_exponent.min(b_exponent);
    let align = |mantissa: i128, exponent: i64| {
        let power = u32::try_from(exponent - lower).unwrap_or_default();
        mantissa.unsigned_abs().saturating_mul(10_u128.saturating_pow(power))
    };
    let by_size = by_magnitude.then_with(|| align(a_mantissa, a_exponent).cmp(&align(b_mantissa, b_exponent)));
    if a.signum() < 0 { by_size.reverse() } else { by_size }
}

/// Computes `value` · 10^`shift`, rounded away from zero. `None` if the result does not fit 64 bits.
/// Follows `apimachinery/pkg/api/resource/math.go#positiveScaleInt64`, `#negativeScaleInt64 @v1.36.3`.
pub(super) fn rescale(value: i64, shift: i64) -> Option<i64> {
    if shift == 0 || value == 0 {
        return Some(value);
    }
    let power = u32::try_from(shift.unsigned_abs()).ok().filter(|power| *power <= MAX_I64_POWER);
    match (power, shift > 0) {
        (Some(power), true) => value.checked_mul(10_i64.pow(power)),
        (None, true) => None,
        (Some(power), false) => {
            let unit = 10_i64.pow(power);
            let rounding = if value % unit == 0 { 0 } else { value.signum() };
            Some(value / unit + rounding)
        }
        (None, false) => Some(value.signum()),
    }
}

/// Returns upstream's result for `value` · 10^`shift` if the product does not fit 64 bits. If upstream multiplies by the power
/// in one step, the product wraps. If upstream multiplies by ten repeatedly, the result is 0.
/// Follows `apimachinery/pkg/api/resource/math.go#positiveScaleInt64 @v1.36.3`.
pub(super) fn overflowed(value: i64, shift: i64) -> i64 {
    let unit = match shift {
        1 => 10,
        2 => 100,
        3 => 1_000,
        6 => 1_000_000,
        9 => 1_000_000_000,
        _ => 0,
    };
    if value == i64::MIN { 0 } else { value.wrapping_mul(unit) }
}

/// Computes `nanos` / 10^`shift` as upstream does for amounts that are not scaled integers.
/// Follows `apimachinery/pkg/api/resource/scale_int.go#scaledValue @v1.36.3`.
#[expect(clippy::cast_possible_truncation, reason = "upstream keeps the low 64 bits")]
pub(super) fn scaled_nanos(nanos: i128, shift: i64) -> i64 {
    let power = u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX);
    if shift <= 0 {
        return if power <= MAX_I64_POWER { (nanos as i64).wrapping_mul(10_i64.pow(power)) } else { i64::MIN };
    }
    if let Ok(small) = i64::try_from(nanos)
        && small < i64::MAX
        && power <= MAX_I64_POWER
    {
        let unit = 10_i64.pow(power);
        return small / unit + i64::from(small % unit != 0);
    }
    if power > MAX_I128_POWER {
        return i64::from(nanos > 0);
    }
    let unit = 10_i128.pow(power);
    (nanos.div_euclid(unit) as i64).wrapping_add(i64::from(nanos.rem_euclid(unit) != 0))
}

/// Computes 10^`power`, correctly rounded for the powers that quantities have.
pub(super) fn power_f64(power: i32) -> f64 {
    // Powers up to 10²² are exact, so one division gives a correctly rounded fraction.
    if (-22..=22).contains(&power) {
        let exact = (0..power.unsigned_abs()).fold(1.0, |product: f64, _| product * 10.0);
        return if power < 0 { 1.0 / exact } else { exact };
    }
    format!("1e{power}").parse().unwrap_or(f64::INFINITY)
}
