//! Label selectors, compiled from the API's structure or from a query's text.

mod parse;
mod requirement;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::StringMap;
use crate::go::quote::quote;
pub use parse::ParseSelectorError;
pub use requirement::{Operator, Requirement};

/// What labels an object must have. Follows `apimachinery/pkg/labels/selector.go#Selector @v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Selects no object at all.
    Nothing,
    /// Selects the objects that meet every requirement, so all of them if there is none. Sorted by key.
    All(Vec<Requirement>),
}

impl Default for Selector {
    fn default() -> Self {
        Self::everything()
    }
}

impl Selector {
    /// Selects every object.
    pub const fn everything() -> Self {
        Self::All(Vec::new())
    }

    /// Selects the objects that meet every one of `requirements`.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key().cmp(b.key()));
        Self::All(requirements)
    }

    /// Selects the objects that have all of `labels`. Nothing is validated.
    /// Follows `apimachinery/pkg/labels/selector.go#SelectorFromSet @v1.36.3`.
    pub fn from_labels(labels: &StringMap) -> Self {
        Self::All(labels.iter().map(|(key, value)| Requirement::equals(key, value)).collect())
    }

    /// Compiles the API's structure. None selects nothing, an empty one everything.
    /// Follows `apimachinery/pkg/apis/meta/v1/helpers.go#LabelSelectorAsSelector @v1.36.3`.
    ///
    /// # Errors
    /// With upstream's text, for the first requirement that is malformed.
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

    /// Compiles a query such as `a=b,c in (x,y),!d,e>5`.
    /// Follows `apimachinery/pkg/labels/selector.go#Parse @v1.36.3`.
    ///
    /// # Errors
    /// With upstream's text.
    pub fn parse(text: &str) -> Result<Self, ParseSelectorError> {
        parse::parse(text).map(Self::new)
    }

    /// The same with one more requirement.
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

    /// Whether `labels` are selected.
    pub fn matches(&self, labels: &StringMap) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// Whether the labels that `lookup` finds are selected.
    pub fn matches_by<'l>(&self, lookup: impl Fn(&str) -> Option<&'l str>) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => {
                requirements.iter().all(|requirement| requirement.matches(lookup(requirement.key())))
            }
        }
    }

    /// Whether every object is selected because nothing is required.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// What is required, sorted by key; none if nothing is selected.
    pub fn requirements(&self) -> Option<&[Requirement]> {
        match self {
            Self::Nothing => None,
            Self::All(requirements) => Some(requirements),
        }
    }

    /// The one value of label `key` that is selected, if the first requirement on it says so.
    /// Follows `apimachinery/pkg/labels/selector.go#internalSelector.RequiresExactMatch @v1.36.3`.
    pub fn exact_match(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements()?.iter().find(|requirement| requirement.key() == key)?;
        match (requirement.operator(), requirement.values()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

/// The text of a query that selects the same; nothing at all has none, and shows as empty.
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
