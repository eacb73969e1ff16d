//! Tests of notations, rounding and canonical forms, and of seeded random texts and sums.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Format, ParseQuantityError, Quantity};

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn hash_of(quantity: Quantity) -> u64 {
    let mut hasher = DefaultHasher::new();
    quantity.hash(&mut hasher);
    hasher.finish()
}

/// A seeded stream of numbers (xorshift64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or_default()
    }

    fn text(&mut self, alphabet: &[u8], longest: usize) -> String {
        (0..self.below(longest + 1)).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }
}

#[test]
fn a_quantity_takes_three_words() {
    assert_eq!(std::mem::size_of::<Quantity>(), 24);
}

#[test]
fn values_and_milli_values_round_up() {
    let check = |text: &str, value: i64, milli: i64| {
        assert_eq!(quantity(text).value(), value, "value of {text}");
        assert_eq!(quantity(text).milli_value(), milli, "milli value of {text}");
    };
    check("0", 0, 0);
    check("100m", 1, 100);
    check("1.5", 2, 1500);
    check(".5", 1, 500);
    check("5.", 5, 5000);
    check("+2", 2, 2000);
    check("-2.5", -3, -2500);
    check("1n", 1, 1);
    check("1u", 1, 1);
    check("0.0001", 1, 1);
    check("2k", 2_000, 2_000_000);
    check("3M", 3_000_000, 3_000_000_000);
    check("1G", 1_000_000_000, 1_000_000_000_000);
    check("1T", 1_000_000_000_000, 1_000_000_000_000_000);
    check("1P", 1_000_000_000_000_000, 1_000_000_000_000_000_000);
    check("1Ki", 1 << 10, 1000 << 10);
    check("16Gi", 16 << 30, 16_000 << 30);
    check("1Pi", 1 << 50, 1000 << 50);
    check("0.5Gi", 1 << 29, 1000 << 29);
    check("1e3", 1000, 1_000_000);
    check("1E3", 1000, 1_000_000);
    check("1e-3", 1, 1);
    check("12e+2", 1200, 1_200_000);
    check("-1Ki", -1024, -1_024_000);
}

#[test]
fn odd_texts_parse_as_zero_as_upstream() {
    for text in ["+", "-", ".", "k", "Ki", "-0", "000", "e5", "0.000Mi"] {
        assert!(quantity(text).is_zero(), "{text}");
    }
}

#[test]
fn malformed_texts_are_rejected_with_upstreams_errors() {
    let check = |text: &str, expected: ParseQuantityError| {
        assert_eq!(Quantity::parse(text), Err(expected), "{text:?}");
    };
    for text in ["", " ", "1 ", "abc", "1..2", "1.2.3", "1e3i", "1Kb", "é", "1é", "1e3.5", "1K-i"] {
        check(text, ParseQuantityError::Format);
    }
    for text in ["--1", "1i", "1e", "1kk", "1K", "1mm", "1Mi5", "1ee3", "1m-", "1e99999999999999999999", "1e-"] {
        check(text, ParseQuantityError::Suffix);
    }
    for text in ["Pi", "Ei", "-Pi", ".Ei", "e-100"] {
        check(text, ParseQuantityError::Numeric);
    }
    assert_eq!(
        ParseQuantityError::Format.to_string(),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    );
    assert_eq!(ParseQuantityError::Numeric.to_string(), "unable to parse numeric part of quantity");
    assert_eq!(ParseQuantityError::Suffix.to_string(), "unable to parse quantity's suffix");
}

#[test]
fn overflowing_amounts_convert_as_upstream() {
    // Up to 18 digits: zero, or the low 64 bits if upstream multiplies by the power in one step.
    assert_eq!(quantity("10000T").milli_value(), 0);
    assert_eq!(quantity("10000000000000000").milli_value(), -8_446_744_073_709_551_616);
    assert_eq!(quantity("10000000000G").value(), -8_446_744_073_709_551_616);
    assert_eq!(quantity("10E").value(), 0);
    assert_eq!(quantity("10P").milli_value(), 0);
    assert_eq!(quantity("1e300").value(), 0);
    // Binary amounts are capped. Their thousandths keep the low 64 bits.
    assert_eq!(quantity("8Ei").value(), i64::MAX);
    assert_eq!(quantity("100Ei").value(), i64::MAX);
    assert_eq!(quantity("-100Ei"), Quantity::from_value(-i64::MAX));
    assert_eq!(quantity("8Ei").milli_value(), -1000);
    // More than 18 digits: the low 64 bits.
    assert_eq!(quantity("18446744073709551617").value(), 1);
}

#[test]
fn digits_below_a_billionth_round_away_from_zero() {
    assert_eq!(quantity("0.1n"), quantity("1n"));
    assert_eq!(quantity("-0.1n"), quantity("-1n"));
    assert_eq!(quantity("1.0000000001"), quantity("1.000000001"));
    assert_eq!(quantity("1e-300"), quantity("1n"));
    assert_eq!(quantity("0.00000000000000000000Ki"), Quantity::ZERO);
}

#[test]
fn binary_fractions_are_exact() {
    assert_eq!(quantity("1.25Ki"), Quantity::from_value(1280));
    // 1023 + 1024·10⁻²⁰ has a fraction below a billionth.
    assert_eq!(quantity("0.99902343750000000000001Ki"), quantity("1023.000000001"));
    assert_eq!(quantity("0.9990234375000000000000Ki"), quantity("1023"));
}

#[test]
fn displays_the_canonical_form() {
    let check = |text: &str, expected: &str| assert_eq!(quantity(text).to_string(), expected, "{text}");
    check("0", "0");
    check("0Ki", "0");
    check("1.5", "1500m");
    check("0.5", "500m");
    check("1.5Gi", "1536Mi");
    check("1024Ki", "1Mi");
    check("1000Ki", "1000Ki");
    check("512Mi", "512Mi");
    check("1000", "1k");
    check("1500", "1500");
    check("12e3", "12e3");
    check("1200e1", "12e3");
    check("0.5e1", "5");
    check("1.1Ki", "1126400m");
    check("0.5Ki", "512");
    check("0.1Ki", "102400m");
    check("1000m", "1");
    check("-1024Mi", "-1Gi");
    check("1e30", "1e30");
    check("8Ei", "9223372036854775807");
    // Upstream has no suffix for this power, and prints the number without one.
    check("1000E", "1");
}

#[test]
fn canonical_text_keeps_already_canonical_texts() {
    let check = |text: &str, expected: &str| assert_eq!(Quantity::canonical_text(text).as_deref(), Ok(expected));
    check("1.500", "1.500");
    check("+5Ki", "+5Ki");
    check("007Mi", "007Mi");
    check("5.", "5.");
    check("1.000", "1");
    check("0.500", "500m");
    check("008Mi", "8Mi");
    assert_eq!(Quantity::canonical_text("x"), Err(ParseQuantityError::Format));
}

#[test]
fn adds_and_subtracts_exactly() {
    assert_eq!(quantity("1Gi") + quantity("1n") - quantity("1Gi"), quantity("1n"));
    assert_eq!(quantity("8Ei") + quantity("8Ei"), quantity("18446744073709551614"));
    assert_eq!([quantity("100m"), quantity("0.9")].into_iter().sum::<Quantity>(), Quantity::from_value(1));
    assert_eq!(-Quantity::from_value(i64::MIN), quantity("9223372036854775808"));
    let huge = quantity("1e300");
    assert!(huge + huge > quantity("1e20"), "capped, not wrapped");
}

#[test]
fn adding_to_zero_takes_the_other_format() {
    assert_eq!((Quantity::ZERO + quantity("1Gi")).to_string(), "1Gi");
    assert_eq!((quantity("1") + quantity("1Gi")).format(), Format::DecimalSi);
    assert_eq!((quantity("0Ki") - quantity("1")).format(), Format::DecimalSi);
    assert_eq!(quantity("1Gi").with_format(Format::DecimalSi).to_string(), "1073741824");
}

#[test]
fn equal_amounts_are_equal_however_they_are_written() {
    for (a, b) in [("1", "1000m"), ("1Ki", "1024"), ("1e3", "1k"), ("1e40", "10e39"), ("1Pi", "1125899906842624")] {
        assert_eq!(quantity(a), quantity(b));
        assert_eq!(hash_of(quantity(a)), hash_of(quantity(b)), "{a} {b}");
    }
    let ascending =
        ["-1e300", "-1e40", "-1Gi", "-1n", "0", "1n", "1m", "1", "1Ki", "8Ei", "9e18", "1e40", "2e40", "1e300"];
    let ascending: Vec<Quantity> = ascending.into_iter().map(quantity).collect();
    let mut sorted = ascending.clone();
    sorted.reverse();
    sorted.sort();
    assert_eq!(sorted[..9], ascending[..9]);
    assert!(quantity("9e18") < quantity("8Ei"));
    assert!(ascending[11..].is_sorted());
}

#[test]
fn floats_are_close_to_the_amount() {
    let check = |text: &str, expected: f64| {
        assert_eq!(quantity(text).approximate_f64().to_bits(), expected.to_bits(), "{text}");
    };
    check("0", 0.0);
    check("100m", 0.1);
    check("1.5", 1.5);
    check("16Gi", 17_179_869_184.0);
    check("1e400", f64::INFINITY);
    check("-2k", -2000.0);
}

/// Zero was once multiplied by an infinite power of ten, which is not a number.
#[test]
fn zero_with_a_huge_exponent_is_zero() {
    assert_eq!(quantity("0e400").approximate_f64().to_bits(), 0.0_f64.to_bits());
}

#[test]
fn json_strings_numbers_and_null_are_read() {
    let check = |json: &str, expected: &str| {
        let read: Quantity = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(read, quantity(expected), "{json}");
    };
    check("\"1.5Gi\"", "1536Mi");
    check("\" 5 \"", "5");
    check("5", "5");
    check("-5", "-5");
    check("0.1", "100m");
    check("1e3", "1000");
    check("1e300", "1e300");
    check("18446744073709551615", "18446744073709551615");
    check("null", "0");
    for json in ["\"\"", "true", "[]", "\"1Kb\""] {
        assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
    }
    assert_eq!(serde_json::to_string(&quantity("1024Mi")).ok().as_deref(), Some("\"1Gi\""));
}

#[test]
fn canonical_text_round_trips() {
    let seed = 0x5eed_0001;
    let mut chance = Chance(seed);
    let suffixes = ["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi", "e3", "e-2", "E7"];
    for round in 0..20_000 {
        let sign = ["", "-", "+"][chance.below(3)];
        let whole = chance.text(b"0123456789", 6);
        let fraction = chance.text(b"0123456789", 8);
        let suffix = suffixes[chance.below(suffixes.len())];
        let text = format!("{sign}{whole}0.{fraction}{suffix}");
        let read = quantity(&text);
        let again = quantity(&read.to_string());
        assert_eq!(read, again, "seed {seed:#x} round {round}: {text} became {read}");
        assert_eq!(read.to_string(), again.to_string(), "seed {seed:#x} round {round}: {text}");
        assert_eq!(hash_of(read), hash_of(again), "seed {seed:#x} round {round}: {text}");
    }
}

#[test]
fn sums_and_differences_cancel() {
    let seed = 0x5eed_0002;
    let mut chance = Chance(seed);
    for round in 0..20_000 {
        let a = quantity(&format!("{}.{}Ki", chance.next() % 1_000_000, chance.next() % 1_000_000));
        let b = quantity(&format!("{}m", chance.next() >> 8));
        assert_eq!(a + b - b, a, "seed {seed:#x} round {round}");
        assert_eq!(a + b, b + a, "seed {seed:#x} round {round}");
        assert_eq!((a - b).cmp(&Quantity::ZERO), a.cmp(&b), "seed {seed:#x} round {round}");
    }
}

#[test]
fn parsing_never_panics() {
    let seed = 0x5eed_0003;
    let mut chance = Chance(seed);
    let mut last = Quantity::ZERO;
    for _ in 0..200_000 {
        let text = chance.text(b"0123456789999.+-eEinumkKMGTP ", 30);
        if let Ok(read) = Quantity::parse(&text) {
            let _ = (read.value(), read.milli_value(), read.scaled_value(-9), read.approximate_f64(), read.to_string());
            let _ = (read + last, read - last, read.cmp(&last), hash_of(read));
            last = if chance.below(4) == 0 { read } else { last + read };
        }
    }
    let digits = "9".repeat(100_000);
    for text in [digits.clone(), format!(".{digits}"), format!("{digits}.{digits}Ei"), format!("1e{digits}")] {
        let _ = Quantity::parse(&text).map(|read| (read.to_string(), read.value()));
    }
    for exponent in [i64::from(i32::MIN), i64::from(i32::MAX), i64::MIN, i64::MAX, 1 << 32] {
        let _ = Quantity::parse(&format!("1.5e{exponent}")).map(|read| (read.to_string(), read.value(), read + read));
    }
}
