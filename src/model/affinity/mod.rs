//! Pod affinity and anti-affinity, compiled once when a pod arrives.

mod sets;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Affinity, PodAffinityTerm, WeightedPodAffinityTerm};

use crate::apimachinery::field_error::aggregate;
use crate::k8s::{ParseSelectorError, Pod, Selector, StringMap};
pub(super) use sets::AffinityTermSets;
pub use sets::AffinityTerms;

/// One compiled term: the pods that it selects and the topology within which it applies.
/// Follows `kube-scheduler/framework/types.go#AffinityTerm @v1.36.3`.
#[derive(Debug)]
pub struct AffinityTerm {
    namespaces: BTreeSet<String>,
    namespace_selector: Selector,
    selects_unlabelled_namespaces: bool,
    selector: Selector,
    topology_key: Box<str>,
}

impl AffinityTerm {
    /// Compiles a term of a pod in this namespace. Follows `kube-scheduler/framework/types.go#newAffinityTerm @v1.36.3`.
    fn compile(namespace: &str, term: &PodAffinityTerm) -> Result<Self, ParseSelectorError> {
        let selector = Selector::from_label_selector(term.label_selector.as_ref())?;
        let namespace_selector = Selector::from_label_selector(term.namespace_selector.as_ref())?;
        let listed = term.namespaces.as_deref().unwrap_or_default();
        let own = (listed.is_empty() && term.namespace_selector.is_none()).then(|| namespace.to_owned());
        Ok(Self {
            namespaces: listed.iter().cloned().chain(own).collect(),
            selects_unlabelled_namespaces: namespace_selector.matches(&StringMap::new()),
            namespace_selector,
            selector,
            topology_key: term.topology_key.as_str().into(),
        })
    }

    /// Compiles a list of terms of a pod in this namespace.
    ///
    /// # Errors
    /// Returns an error with upstream's text for the first malformed selector.
    pub fn compile_all(namespace: &str, terms: &[PodAffinityTerm]) -> Result<Vec<Self>, ParseSelectorError> {
        terms.iter().map(|term| Self::compile(namespace, term)).collect()
    }

    /// The node label whose values define the topology domains.
    pub fn topology_key(&self) -> &str {
        &self.topology_key
    }

    /// The selector for the labels of the pods that the term selects.
    pub fn selector(&self) -> &Selector {
        &self.selector
    }

    /// The selector for namespaces, in addition to the namespaces that the term lists.
    pub fn namespace_selector(&self) -> &Selector {
        &self.namespace_selector
    }

    /// Whether the term lists this namespace. A term with neither a list nor a namespace selector lists the namespace of its
    /// own pod.
    pub fn lists_namespace(&self, namespace: &str) -> bool {
        self.namespaces.contains(namespace)
    }

    /// Whether the namespace selector matches a namespace without labels. If so, code that does not look up namespace labels
    /// treats the selector as matching every namespace.
    pub fn selects_unlabelled_namespaces(&self) -> bool {
        self.selects_unlabelled_namespaces
    }

    /// Whether the term selects a pod with these labels in this namespace, which has the labels `namespace_labels`.
    /// Follows `kube-scheduler/framework/types.go#AffinityTerm.Matches @v1.36.3`.
    pub fn matches(&self, namespace: &str, labels: &StringMap, namespace_labels: &StringMap) -> bool {
        (self.lists_namespace(namespace) || self.namespace_selector.matches(namespace_labels))
            && self.selector.matches(labels)
    }

    /// Whether the term selects a pod with these labels in this namespace. The labels of the namespace are not looked up, and
    /// count as empty.
    pub fn matches_unlabelled(&self, namespace: &str, labels: &StringMap) -> bool {
        (self.selects_unlabelled_namespaces || self.lists_namespace(namespace)) && self.selector.matches(labels)
    }
}

/// A term with its weight.
#[derive(Debug)]
pub struct WeightedAffinityTerm {
    /// The term that is weighted.
    pub term: AffinityTerm,
    /// The weight, which the API server restricts to 1 to 100.
    pub weight: i32,
}

impl WeightedAffinityTerm {
    fn compile_all(namespace: &str, terms: &[WeightedPodAffinityTerm]) -> Result<Vec<Self>, ParseSelectorError> {
        let compile = |weighted: &WeightedPodAffinityTerm| {
            let term = AffinityTerm::compile(namespace, &weighted.pod_affinity_term)?;
            Ok(Self { term, weight: weighted.weight })
        };
        terms.iter().map(compile).collect()
    }
}

/// The four lists of a pod's terms. A list with a malformed term counts as empty and keeps the error.
#[derive(Debug)]
struct Lists {
    required: Result<Vec<AffinityTerm>, ParseSelectorError>,
    required_anti: Result<Vec<AffinityTerm>, ParseSelectorError>,
    preferred: Result<Vec<WeightedAffinityTerm>, ParseSelectorError>,
    preferred_anti: Result<Vec<WeightedAffinityTerm>, ParseSelectorError>,
}

impl Lists {
    /// Compiles the four lists. Follows `pkg/scheduler/framework/types.go#PodInfo.Update @v1.36.3`.
    fn compile(pod: &Pod) -> Self {
        let affinity = pod.spec.affinity.as_deref();
        let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
        let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
        let preferred = near.and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
        let preferred_anti = away.and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
        let required = near.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_deref());
        let namespace = pod.namespace();
        Self {
            required: AffinityTerm::compile_all(namespace, required.unwrap_or_default()),
            required_anti: AffinityTerm::compile_all(namespace, required_anti_affinity(affinity)),
            preferred: WeightedAffinityTerm::compile_all(namespace, preferred.unwrap_or_default()),
            preferred_anti: WeightedAffinityTerm::compile_all(namespace, preferred_anti.unwrap_or_default()),
        }
    }

    /// The errors of all lists with a malformed term.
    fn error(&self) -> Option<String> {
        let errors = [
            ("requiredAffinityTerms", self.required.as_ref().err()),
            ("requiredAntiAffinityTerms", self.required_anti.as_ref().err()),
            ("preferredAffinityTerms", self.preferred.as_ref().err()),
            ("preferredAntiAffinityTerms", self.preferred_anti.as_ref().err()),
        ];
        let errors = errors.into_iter().filter_map(|(list, error)| Some(format!("{list}: {}", error?)));
        let errors: Vec<String> = errors.collect();
        (!errors.is_empty()).then(|| aggregate(errors))
    }
}

/// The required anti-affinity terms as they are in the pod's spec, not compiled.
pub fn required_anti_affinity(affinity: Option<&Affinity>) -> &[PodAffinityTerm] {
    let anti = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    anti.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
