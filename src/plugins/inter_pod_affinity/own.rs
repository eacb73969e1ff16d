//! The terms of the incoming pod, with the namespaces that they select.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;

use crate::k8s::labels;
use crate::listers::Lister;
use crate::model::{AffinityTerm, LabelClass};

/// The namespaces that a term's namespace selector selected when this value was built, sorted by name.
///
/// Upstream means to drop the selector once the namespaces are known, but drops it from a copy of the term. So the selector is
/// still matched afterwards, against empty labels. A selector that matches empty labels (`NotIn`, `DoesNotExist`) therefore
/// selects all namespaces.
/// Follows
/// `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go#InterPodAffinity.mergeAffinityTermNamespacesIfNotEmpty
/// @v1.36.3`.
#[derive(Clone, Debug, Default)]
struct Selected(Vec<Arc<Namespace>>);

impl Selected {
    fn by(term: &AffinityTerm, known: &Lister<Namespace>) -> Self {
        let selector = term.namespace_selector();
        if selector.requirements().is_none() || term.selects_unlabelled_namespaces() {
            return Self::default();
        }
        let mut namespaces = known.list();
        namespaces.retain(|namespace| selector.matches(labels(&namespace.metadata)));
        Self(namespaces)
    }

    fn contains(&self, name: &str) -> bool {
        let name_of = |namespace: &Arc<Namespace>| namespace.metadata.name.as_deref().unwrap_or_default().cmp(name);
        self.0.binary_search_by(name_of).is_ok()
    }
}

/// The selected namespaces of one list of the incoming pod's terms, by position in the list.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnTerms(Vec<Selected>);

impl OwnTerms {
    /// Looks up the namespaces that these terms select now.
    pub(super) fn new<'a>(terms: impl Iterator<Item = &'a AffinityTerm>, known: &Lister<Namespace>) -> Self {
        Self(terms.map(|term| Selected::by(term, known)).collect())
    }

    /// Whether `term`, which is at position `at` of the list, selects pods of this class.
    pub(super) fn matches(&self, at: usize, term: &AffinityTerm, class: &LabelClass) -> bool {
        term.selector().matches(class.labels())
            && (term.selects_unlabelled_namespaces()
                || term.lists_namespace(class.namespace())
                || self.0.get(at).is_some_and(|selected| selected.contains(class.namespace())))
    }

    /// Whether there are terms and all of them select pods of this class.
    /// Follows `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go#podMatchesAllAffinityTerms @v1.36.3`.
    pub(super) fn all_match(&self, terms: &[AffinityTerm], class: &LabelClass) -> bool {
        !terms.is_empty() && terms.iter().enumerate().all(|(at, term)| self.matches(at, term, class))
    }
}
