//! One requirement of a selector.

use std::fmt;

use crate::apimachinery::field_error::{BadValue, FieldError, FieldErrors, child};
use crate::k8s::names::{label_value_errors, qualified_name_errors};

/// How a requirement relates a label to its values.
/// Follows `apimachinery/pkg/selection/operator.go#Operator @v1.36.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label has the value; written `=`.
    Equals,
    /// The same; written `==`.
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

/// A key, an operator and values. Follows `apimachinery/pkg/labels/selector.go#Requirement @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// As given: neither sorted nor rid of duplicates.
    values: Box<[String]>,
    /// The value to compare with, for the operators that compare; none if it is no integer.
    bound: Option<i64>,
}

impl Requirement {
    /// A requirement at `path`, which may be empty, with all complaints about it.
    /// Follows `apimachinery/pkg/labels/selector.go#NewRequirement @v1.36.3`.
    ///
    /// # Errors
    /// If the key or a value cannot be a label's, or the number of values does not suit the operator.
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

    /// A requirement that label `key` is `value`. Nothing is validated.
    pub fn equals(key: &str, value: &str) -> Self {
        Self::unchecked(key, Operator::Equals, vec![value.to_owned()])
    }

    fn unchecked(key: &str, operator: Operator, values: Vec<String>) -> Self {
        let bound = values.first().filter(|_| operator.compares()).and_then(|value| value.parse().ok());
        Self { key: key.into(), operator, values: values.into(), bound }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, as given.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this key may have `value`, or be absent.
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

    /// What is wrong with having `count` values.
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

/// The text of a query that requires the same, with the values sorted.
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
