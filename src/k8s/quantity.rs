//! Exact resource quantities.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

/// An exact amount of a resource, kept in billionths (nano) of its unit: upstream's whole range, ±(2⁶³−1) with nine
/// decimals, fits an `i128`. Follows `apimachinery/pkg/api/resource/quantity.go#Quantity @v1.36.3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseQuantityError(String);

impl Quantity {
    /// Parses `text` in any of the API's notations: `1.5`, `100m`, `2Gi`, `1e3`, `12E`.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        let _ = text;
        Err(ParseQuantityError(String::new()))
    }
    /// The amount in whole units, rounded up (away from zero), saturating.
    pub fn value(self) -> i64 {
        0
    }
    /// The amount in thousandths, rounded up (away from zero), saturating.
    pub fn milli_value(self) -> i64 {
        0
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct QuantityVisitor;
        impl Visitor<'_> for QuantityVisitor {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(QuantityVisitor)
    }
}
