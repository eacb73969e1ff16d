//! A requirement of a label selector.

use std::fmt;

use crate::apimachinery::field_error::{BadValue, FieldError, FieldErrors, child};
use crate::k8s::names::{label_value_errors, qualified_name_errors};

/// The operator between a label and the values of a requirement.
/// Follows `apimachinery/pkg/selection/operator.go#Operator @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label has the value. Written `=`.
    Equals,
    /// The label has the value. Written `==`.
    DoubleEquals,
    /// The label does not have the value, or is absent.
    NotEquals,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is an integer greater than the value.
    GreaterThan,
    /// The label is an integer less than the value.
    LessThan,
}

/// A requirement on a label: key, operator and values. Follows `apimachinery/pkg/labels/selector.go#Requirement @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Values as given, neither sorted nor deduplicated.
    values: Box<[String]>,
    /// Integer to compare with, for `GreaterThan` and `LessThan`. `None` if the value is not an integer.
    bound: Option<i64>,
}

impl Requirement {
    /// Creates a validated requirement. `path` is its field path for errors, and may be empty.
    /// Follows `apimachinery/pkg/labels/selector.go#NewRequirement @v1.36.3`.
    ///
    /// # Errors
    /// If the key or a value is invalid, or the operator does not allow the number of values. All errors are returned.
    pub fn new(key: &str, operator: Operator, values: Option<Vec<String>>, path: &str) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let complaints = qualified_name_errors(key);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(child(path, "key"), key, complaints.join("; ")));
        }
        let path = child(path, "values");
        let count = values.as_ref().map_or(0, Vec::len);
        if let Some(detail) = operator.count_error(count) {
            errors.push(FieldError::invalid(&path, BadValue::json(&values), detail));
        }
        let values = values.unwrap_or_default();
        if operator.compares() {
            for (at, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err()) {
                let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(format_args!("{path}[{at}]"), value.as_str(), detail));
            }
        }
        for (at, value) in values.iter().enumerate() {
            let complaints = label_value_errors(value);
            if !complaints.is_empty() {
                let field = format!("{path}[{at}][{key}]");
                errors.push(FieldError::invalid(field, value.as_str(), complaints.join("; ")));
            }
        }
        errors.or(Self::unchecked(key, operator, values))
    }

    /// Creates a requirement that label `key` has `value`, without validation.
    pub fn equals(key: &str, value: &str) -> Self {
        Self::unchecked(key, Operator::Equals, vec![value.to_owned()])
    }

    fn unchecked(key: &str, operator: Operator, values: Vec<String>) -> Self {
        let bound = values.first().filter(|_| operator.compares()).and_then(|value| value.parse().ok());
        Self { key: key.into(), operator, values: values.into(), bound }
    }

    /// Returns the label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the operator between the label and the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Returns the values as given.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns whether a label with `value`, or an absent label (`None`), meets the requirement.
    /// Follows `apimachinery/pkg/labels/selector.go#Requirement.Matches @v1.36.3`.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let is_listed = |value: &str| self.values.iter().any(|listed| listed == value);
        let compares = |holds: fn(i64, i64) -> bool| {
            let value = value.and_then(|value| value.parse().ok());
            matches!((value, self.bound), (Some(value), Some(bound)) if holds(value, bound))
        };
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => value.is_some_and(is_listed),
            Operator::NotIn | Operator::NotEquals => !value.is_some_and(is_listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => compares(|value, bound| value > bound),
            Operator::LessThan => compares(|value, bound| value < bound),
        }
    }
}

impl Operator {
    fn compares(self) -> bool {
        matches!(self, Self::GreaterThan | Self::LessThan)
    }

    /// Returns the error for `count` values, if the operator does not allow this number.
    fn count_error(self, count: usize) -> Option<&'static str> {
        let (fits, detail) = match self {
            Self::In | Self::NotIn => (count > 0, "for 'in', 'notin' operators, values set can't be empty"),
            Self::Equals | Self::DoubleEquals | Self::NotEquals => {
                (count == 1, "exact-match compatibility requires one single value")
            }
            Self::Exists | Self::DoesNotExist => (count == 0, "values set must be empty for exists and does not exist"),
            Self::GreaterThan | Self::LessThan => {
                (count == 1, "for 'Gt', 'Lt' operators, exactly one value is required")
            }
        };
        (!fits).then_some(detail)
    }
}

/// Prints the query for the requirement, with sorted values.
/// Follows `apimachinery/pkg/labels/selector.go#Requirement.String @v1.36.3`.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, || {
            let mut values: Vec<&str> = self.values.iter().map(String::as_str).collect();
            values.sort_unstable();
            values.join(",")
        });
        match self.operator {
            Operator::In => write!(f, "{key} in ({})", values()),
            Operator::NotIn => write!(f, "{key} notin ({})", values()),
            Operator::Equals => write!(f, "{key}={}", values()),
            Operator::DoubleEquals => write!(f, "{key}=={}", values()),
            Operator::NotEquals => write!(f, "{key}!={}", values()),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{}", values()),
            Operator::LessThan => write!(f, "{key}<{}", values()),
        }
    }
}
