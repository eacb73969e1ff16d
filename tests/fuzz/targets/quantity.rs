//! Quantities: any text either is not a quantity, or survives display, serde, arithmetic and rounding.
//!
//! The input is up to two texts with a line break between them.
#![no_main]

use std::cmp::Ordering;

use kube_scheduler::k8s::Quantity;
use kube_scheduler::k8s::quantity::Format;
use libfuzzer_sys::fuzz_target;

/// Amounts below this are exact in every unit that is checked, because their number of billionths fits an `i64`.
const EXACT_UNITS: f64 = 9e9;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, second) = text.split_once('\n').unwrap_or((text, "0"));
    let Some(first) = check_text(first) else { return };
    let Some(second) = check_text(second) else { return };
    check_order(first, second);
    check_sums(first, second);
});

/// Whether the amount can be written in the format. Upstream has no suffix beyond E, and caps amounts with a binary suffix.
/// This crate caps amounts with many digits.
fn has_notation(quantity: Quantity, format: Format) -> bool {
    let largest = match format {
        Format::DecimalSi => 9.99e20,
        Format::BinarySi => 9.22e18,
        Format::DecimalExponent => 1.7e29,
    };
    quantity.approximate_f64().abs() <= largest
}

/// Checks the properties of a single text. Returns its quantity, if it is one.
fn check_text(text: &str) -> Option<Quantity> {
    let canonical = Quantity::canonical_text(text);
    let Ok(quantity) = Quantity::parse(text) else {
        assert!(canonical.is_err(), "{text:?} has a canonical form but is no quantity");
        return None;
    };
    let canonical = canonical.expect("a quantity has a canonical form");
    let stored = Quantity::parse(&canonical).unwrap_or_else(|error| panic!("{text:?} is {canonical:?}: {error}"));
    if has_notation(quantity, quantity.format()) {
        let twice = Quantity::canonical_text(&canonical);
        assert!(quantity.format() == Format::BinarySi || twice.as_ref() == Ok(&canonical), "{text:?}: {twice:?}");
        assert_eq!(stored, quantity, "{text:?} is stored as {canonical:?}");
        let json = serde_json::to_string(&quantity).expect("a quantity is text");
        assert_eq!(serde_json::from_str::<Quantity>(&json).ok(), Some(quantity), "{text:?} as JSON is {json}");
    }
    if let Ok(bare) = serde_json::from_str::<Quantity>(text) {
        let _ = bare.to_string();
    }

    for format in [Format::DecimalSi, Format::BinarySi, Format::DecimalExponent] {
        let written = quantity.with_format(format);
        assert_eq!(written, quantity);
        let shown = written.to_string();
        let again = Quantity::parse(&shown).unwrap_or_else(|error| panic!("{text:?} shows as {shown:?}: {error}"));
        if has_notation(quantity, format) {
            assert_eq!(again, quantity, "{text:?} shows as {shown:?} in {format:?}");
            // A number without a suffix is decimal when it is parsed again.
            assert!(format == Format::BinarySi || again.to_string() == shown, "{text:?} shows as {shown:?}");
        }
    }
    for scale in [i32::MIN, -30, -9, -6, -3, -1, 0, 1, 3, 9, 30, i32::MAX] {
        let _ = quantity.scaled_value(scale);
    }
    assert_eq!(quantity.is_zero(), quantity.signum() == 0);
    assert_eq!(quantity.cmp(&Quantity::ZERO), quantity.signum().cmp(&0), "{text:?}");
    assert!(!quantity.approximate_f64().is_nan(), "{text:?}");
    Some(quantity)
}

/// Checks that rounded values keep the order of the amounts, if they fit. Upstream increases negative amounts of many digits
/// when it rounds them, so negative amounts are not compared.
fn check_order(a: Quantity, b: Quantity) {
    assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    assert_eq!(a == b, a.cmp(&b) == Ordering::Equal);
    let fits = |quantity: Quantity| quantity.signum() >= 0 && quantity.approximate_f64() < EXACT_UNITS;
    if !fits(a) || !fits(b) {
        return;
    }
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    assert!(low.value() <= high.value(), "{low} <= {high} but {} > {}", low.value(), high.value());
    assert!(low.milli_value() <= high.milli_value(), "{low} <= {high} in thousandths");
    for quantity in [low, high] {
        let (units, milli) = (quantity.value(), quantity.milli_value());
        assert!(Quantity::from_value(units) >= quantity, "{quantity} is rounded up to {units}");
        assert!(Quantity::from_milli(milli) >= quantity, "{quantity} is rounded up to {milli}m");
        assert!(Quantity::from_value(units - 1) < quantity || units == 0, "{quantity} is less than one above {units}");
        assert!(Quantity::from_milli(milli - 1) < quantity || milli == 0, "{quantity} is less than 1m above {milli}m");
    }
}

/// Checks the sums and differences of amounts that are not capped.
fn check_sums(a: Quantity, b: Quantity) {
    let (sum, difference) = (a + b, a - b);
    let negated = -a;
    if a.approximate_f64().abs() > 1e19 || b.approximate_f64().abs() > 1e19 {
        return;
    }
    assert_eq!(sum, b + a, "{a} + {b}");
    assert_eq!(sum - b, a, "{a} + {b} - {b}");
    assert_eq!(difference + b, a, "{a} - {b} + {b}");
    assert_eq!(difference.signum().cmp(&0), a.cmp(&b), "{a} - {b}");
    assert_eq!(-negated, a, "-(-{a})");
    if has_notation(sum, sum.format()) {
        let shown = sum.to_string();
        assert_eq!(Quantity::parse(&shown).ok(), Some(sum), "{a} + {b} shows as {shown:?}");
    }
}
