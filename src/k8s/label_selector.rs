//! Label selectors, compiled from the API's `LabelSelector` or parsed from a query string.

mod parse;
mod requirement;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::StringMap;
use crate::go::quote::quote;
pub use parse::ParseSelectorError;
pub use requirement::{Operator, Requirement};

/// A selector of objects by their labels. Follows `apimachinery/pkg/labels/selector.go#Selector @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Selects no object at all.
    Nothing,
    /// Selects the objects that meet all requirements, which are sorted by key. Without requirements, selects every object.
    All(Vec<Requirement>),
}

impl Default for Selector {
    fn default() -> Self {
        Self::everything()
    }
}

impl Selector {
    /// Creates a selector of every object.
    pub const fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Creates a selector of the objects that meet all `requirements`.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key().cmp(b.key()));
        Self::All(requirements)
    }

    /// Creates a selector of the objects that have all `labels`. The labels are not validated.
    /// Follows `apimachinery/pkg/labels/selector.go#SelectorFromSet @v1.36.3`.
    pub fn from_labels(labels: &StringMap) -> Self {
        Self::All(labels.iter().map(|(key, value)| Requirement::equals(key, value)).collect())
    }

    /// Compiles the API's `LabelSelector`. `None` selects no object, and an empty selector every object.
    /// Follows `apimachinery/pkg/apis/meta/v1/helpers.go#LabelSelectorAsSelector @v1.36.3`.
    ///
    /// # Errors
    /// If a requirement is malformed. The text is upstream's for the first malformed requirement.
    pub fn from_label_selector(selector: Option<&LabelSelector>) -> Result<Self, ParseSelectorError> {
        let Some(selector) = selector else { return Ok(Self::Nothing) };
        let labels = selector.match_labels.iter().flatten();
        let mut requirements = labels
            .map(|(key, value)| Requirement::new(key, Operator::Equals, Some(vec![value.clone()]), ""))
            .collect::<Result<Vec<_>, _>>()?;
        for expression in selector.match_expressions.iter().flatten() {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let message = format!("{} is not a valid label selector operator", quote(other));
                    return Err(ParseSelectorError::Syntax(message));
                }
            };
            let values = expression.values.clone().filter(|values| !values.is_empty());
            requirements.push(Requirement::new(&expression.key, operator, values, "")?);
        }
        Ok(Self::new(requirements))
    }

    /// Parses a query such as `a=b,c in (x,y),!d,e>5`.
    /// Follows `apimachinery/pkg/labels/selector.go#Parse @v1.36.3`.
    ///
    /// # Errors
    /// If the query is malformed. The text is upstream's.
    pub fn parse(text: &str) -> Result<Self, ParseSelectorError> {
        parse::parse(text).map(Self::new)
    }

    /// Adds a requirement to the selector.
    #[must_use]
    pub fn and(self, requirement: Requirement) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::All(mut requirements) => {
                requirements.push(requirement);
                Self::new(requirements)
            }
        }
    }

    /// Returns whether an object with `labels` is selected.
    pub fn matches(&self, labels: &StringMap) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// Returns whether an object is selected. `lookup` returns the value of a label.
    pub fn matches_by<'l>(&self, lookup: impl Fn(&str) -> Option<&'l str>) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => {
                requirements.iter().all(|requirement| requirement.matches(lookup(requirement.key())))
            }
        }
    }

    /// Returns whether there is no requirement, so that every object is selected.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// Returns the requirements, sorted by key, or `None` if no object is selected.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        match self {
            Self::Nothing => None,
            Self::All(requirements) => Some(requirements),
        }
    }

    /// Returns the value that label `key` must have, if the first requirement on the label allows only one.
    /// Follows `apimachinery/pkg/labels/selector.go#internalSelector.RequiresExactMatch @v1.36.3`.
    pub fn exact_match(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements()?.iter().find(|requirement| requirement.key() == key)?;
        match (requirement.operator(), requirement.values()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

/// Prints the query that selects the same objects. [`Selector::Nothing`] has no query, and prints nothing.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements().unwrap_or_default().iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
