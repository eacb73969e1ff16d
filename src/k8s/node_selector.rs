//! Node selectors, and required and preferred node affinity.
//!
//! Selectors are compiled once for each pod, and then matched against many nodes without allocation. Follows
//! `component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go @v1.36.3`.

use k8s_openapi::api::core::v1 as api;

use super::label_selector::{Operator, Requirement, Selector};
use super::{Node, Pod, StringMap};
use crate::apimachinery::field_error::{BadValue, FieldError, FieldErrors, child};

/// Terms of which a node must match at least one. A term that cannot be compiled matches no node, and its errors are reported
/// only for nodes that no other term matches. Follows `#LazyErrorNodeSelector`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSelector {
    terms: Vec<Term>,
    errors: FieldErrors,
}

/// Required node affinity of a pod: `spec.nodeSelector` and the required terms of its node affinity.
/// Follows `#RequiredNodeAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredNodeAffinity {
    labels: Selector,
    terms: Option<NodeSelector>,
}

/// Preferred node affinity of a pod: terms, each with a weight. Follows `#PreferredSchedulingTerms`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreferredTerms(Vec<(i32, Term)>);

/// A term: requirements on a node's labels and name, all of which must be met.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    labels: Vec<Requirement>,
    fields: Vec<FieldTerm>,
}

/// A requirement on a field of a node. Only `metadata.name` is supported. Any other field counts as empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    is_name: bool,
    is_equal: bool,
    value: Box<str>,
}

impl NodeSelector {
    /// Compiles the terms, and keeps the errors of malformed terms. `path` is the selector's field path for errors, and may be
    /// empty.
    /// Follows `#NewLazyErrorNodeSelector`.
    pub fn new(selector: &api::NodeSelector, path: &str) -> Self {
        let path = child(path, "nodeSelectorTerms");
        let mut compiled = Self::default();
        for (at, term) in selector.node_selector_terms.iter().enumerate().filter(|(_, term)| !is_empty(term)) {
            match Term::new(term, &format!("{path}[{at}]")) {
                Ok(term) => compiled.terms.push(term),
                Err(errors) => compiled.errors.append(errors),
            }
        }
        compiled
    }

    /// Compiles all terms, and fails if one is malformed. Follows `#NewNodeSelector`.
    ///
    /// # Errors
    /// With all errors of all terms.
    pub fn strict(selector: &api::NodeSelector, path: &str) -> Result<Self, FieldErrors> {
        let compiled = Self::new(selector, path);
        if compiled.errors.is_empty() { Ok(compiled) } else { Err(compiled.errors) }
    }

    /// Returns whether a term matches the node.
    ///
    /// # Errors
    /// If no term matches and some terms are malformed.
    pub fn matches(&self, node: &Node) -> Result<bool, &FieldErrors> {
        self.matches_by(node.name(), lookup_in(node.labels()))
    }

    /// Returns whether a term matches the node with this name. `lookup` returns the value of one of the node's labels.
    ///
    /// # Errors
    /// As [`NodeSelector::matches`].
    pub fn matches_by<'l>(
        &self,
        name: &str,
        lookup: impl Fn(&str) -> Option<&'l str> + Copy,
    ) -> Result<bool, &FieldErrors> {
        match self.terms.iter().any(|term| term.matches(name, lookup)) {
            false if !self.errors.is_empty() => Err(&self.errors),
            verdict => Ok(verdict),
        }
    }
}

impl RequiredNodeAffinity {
    /// Compiles the required node affinity of a pod. Follows `#GetRequiredNodeAffinity`.
    pub fn new(pod: &Pod) -> Self {
        let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
        let required =
            affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
        Self {
            labels: Selector::from_labels(&pod.spec.node_selector),
            terms: required.map(|selector| NodeSelector::new(selector, "")),
        }
    }

    /// Returns whether every node matches because the pod has no requirement.
    pub fn is_unrestricted(&self) -> bool {
        self.labels.is_empty() && self.terms.is_none()
    }

    /// Returns whether the node matches. Follows `#RequiredNodeAffinity.Match`.
    ///
    /// # Errors
    /// As [`NodeSelector::matches`].
    pub fn matches(&self, node: &Node) -> Result<bool, &FieldErrors> {
        self.matches_by(node.name(), lookup_in(node.labels()))
    }

    /// Returns whether the node with this name matches. `lookup` returns the value of one of the node's labels.
    ///
    /// # Errors
    /// As [`NodeSelector::matches`].
    pub fn matches_by<'l>(
        &self,
        name: &str,
        lookup: impl Fn(&str) -> Option<&'l str> + Copy,
    ) -> Result<bool, &FieldErrors> {
        if !self.labels.matches_by(lookup) {
            return Ok(false);
        }
        self.terms.as_ref().map_or(Ok(true), |terms| terms.matches_by(name, lookup))
    }
}

impl PreferredTerms {
    /// Compiles the terms that have a weight and are not empty. `path` is the list's field path for errors, and may be empty.
    /// Follows `#NewPreferredSchedulingTerms`.
    ///
    /// # Errors
    /// With all errors of all terms.
    pub fn new(terms: &[api::PreferredSchedulingTerm], path: &str) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut compiled = Vec::with_capacity(terms.len());
        for (at, term) in terms.iter().enumerate() {
            if term.weight == 0 || is_empty(&term.preference) {
                continue;
            }
            match Term::new(&term.preference, &format!("{path}[{at}]")) {
                Ok(preference) => compiled.push((term.weight, preference)),
                Err(complaints) => errors.append(complaints),
            }
        }
        errors.or(Self(compiled))
    }

    /// Returns whether there is no term that can contribute to a score.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the sum of the weights of the terms that match the node. Follows `#PreferredSchedulingTerms.Score`.
    pub fn score(&self, node: &Node) -> i64 {
        self.score_by(node.name(), lookup_in(node.labels()))
    }

    /// Returns the score of the node with this name. `lookup` returns the value of one of the node's labels.
    pub fn score_by<'l>(&self, name: &str, lookup: impl Fn(&str) -> Option<&'l str> + Copy) -> i64 {
        self.0.iter().filter(|(_, term)| term.matches(name, lookup)).map(|(weight, _)| i64::from(*weight)).sum()
    }
}

impl Term {
    fn new(term: &api::NodeSelectorTerm, path: &str) -> Result<Self, FieldErrors> {
        let mut errors = FieldErrors::default();
        let mut compiled = Self { labels: Vec::new(), fields: Vec::new() };
        for (at, requirement) in term.match_expressions.iter().flatten().enumerate() {
            match label_requirement(requirement, &format!("{path}.matchExpressions[{at}]")) {
                Ok(requirement) => compiled.labels.push(requirement),
                Err(complaints) => errors.append(complaints),
            }
        }
        for (at, requirement) in term.match_fields.iter().flatten().enumerate() {
            match FieldTerm::new(requirement, &format!("{path}.matchFields[{at}]")) {
                Ok(field) => compiled.fields.push(field),
                Err(complaint) => errors.push(complaint),
            }
        }
        errors.or(compiled)
    }

    fn matches<'l>(&self, name: &str, lookup: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(lookup(requirement.key())))
            // Upstream ignores field requirements for a node without a name.
            && (name.is_empty() || self.fields.iter().all(|field| field.matches(name)))
    }
}

impl FieldTerm {
    /// Compiles a requirement on a field. Follows `#nodeSelectorRequirementsAsFieldSelector`.
    fn new(requirement: &api::NodeSelectorRequirement, path: &str) -> Result<Self, FieldError> {
        let is_equal = match requirement.operator.as_str() {
            "In" => true,
            "NotIn" => false,
            other => {
                return Err(FieldError::not_supported(
                    child(path, "operator"),
                    BadValue::json(other),
                    &["In", "NotIn"],
                ));
            }
        };
        match requirement.values.as_deref() {
            Some([value]) => {
                Ok(Self { is_name: requirement.key == "metadata.name", is_equal, value: value.as_str().into() })
            }
            values => Err(FieldError::invalid(child(path, "values"), BadValue::json(&values), "must have one element")),
        }
    }

    fn matches(&self, name: &str) -> bool {
        let value = if self.is_name { name } else { "" };
        (*self.value == *value) == self.is_equal
    }
}

/// Compiles a requirement on a label. Follows `#nodeSelectorRequirementsAsSelector`.
fn label_requirement(requirement: &api::NodeSelectorRequirement, path: &str) -> Result<Requirement, FieldErrors> {
    let operator = match requirement.operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        other => {
            let supported = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
            return Err(FieldError::not_supported(child(path, "operator"), BadValue::json(other), &supported).into());
        }
    };
    Requirement::new(&requirement.key, operator, requirement.values.clone(), path)
}

fn is_empty(term: &api::NodeSelectorTerm) -> bool {
    term.match_expressions.as_ref().is_none_or(Vec::is_empty) && term.match_fields.as_ref().is_none_or(Vec::is_empty)
}

fn lookup_in<'l>(labels: &'l StringMap) -> impl Fn(&str) -> Option<&'l str> + Copy {
    |key| labels.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests;
