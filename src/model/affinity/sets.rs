//! Interned sets of terms: pods with the same namespace, pod affinity and pod anti-affinity share one set.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{AffinityTerm, Lists, WeightedAffinityTerm};
use crate::k8s::{ParseSelectorError, Pod};

/// The compiled terms of all pods of a namespace that have the same pod affinity and anti-affinity.
pub struct AffinityTerms {
    number: u32,
    key: Arc<str>,
    lists: Lists,
    table: Weak<Mutex<Table>>,
}

impl AffinityTerms {
    /// Dense number of the set, unique among live sets. The number is reused once the last pod of the set is gone.
    pub fn number(&self) -> usize {
        self.number as usize
    }

    /// The required affinity terms; empty if one of them is malformed.
    pub fn required_affinity(&self) -> &[AffinityTerm] {
        self.lists.required.as_deref().unwrap_or_default()
    }

    /// The required anti-affinity terms; empty if one of them is malformed.
    pub fn required_anti_affinity(&self) -> &[AffinityTerm] {
        self.lists.required_anti.as_deref().unwrap_or_default()
    }

    /// The preferred affinity terms; empty if one of them is malformed.
    pub fn preferred_affinity(&self) -> &[WeightedAffinityTerm] {
        self.lists.preferred.as_deref().unwrap_or_default()
    }

    /// The preferred anti-affinity terms; empty if one of them is malformed.
    pub fn preferred_anti_affinity(&self) -> &[WeightedAffinityTerm] {
        self.lists.preferred_anti.as_deref().unwrap_or_default()
    }

    /// The required affinity terms, with the error if one of them is malformed.
    ///
    /// # Errors
    /// Returns the error of the first malformed term.
    pub fn checked_required_affinity(&self) -> Result<&[AffinityTerm], &ParseSelectorError> {
        self.lists.required.as_deref()
    }

    /// The required anti-affinity terms, with the error if one of them is malformed.
    ///
    /// # Errors
    /// Returns the error of the first malformed term.
    pub fn checked_required_anti_affinity(&self) -> Result<&[AffinityTerm], &ParseSelectorError> {
        self.lists.required_anti.as_deref()
    }

    /// The errors of all lists with a malformed term, in upstream's words.
    pub fn error(&self) -> Option<String> {
        self.lists.error()
    }
}

impl fmt::Debug for AffinityTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AffinityTerms({}, {})", self.number, self.key)
    }
}

impl Drop for AffinityTerms {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            table.lock().unwrap_or_else(PoisonError::into_inner).evict(self);
        }
    }
}

#[derive(Default)]
struct Table {
    sets: BTreeMap<Arc<str>, (u32, Weak<AffinityTerms>)>,
    free: Vec<u32>,
    next: u32,
}

impl Table {
    /// Removes the entry of a set whose last user is gone, unless a new set replaced the entry in the meantime.
    fn evict(&mut self, set: &AffinityTerms) {
        if self.sets.get(&set.key).is_some_and(|(number, _)| *number == set.number) {
            self.sets.remove(&set.key);
        }
        self.free.push(set.number);
    }
}

/// The sets of all live pods. A set lives as long as a pod refers to it. The lock guards the table. It is held for one look-up,
/// or while a new set is compiled.
#[derive(Clone, Default)]
pub(in crate::model) struct AffinityTermSets(Arc<Mutex<Table>>);

impl AffinityTermSets {
    /// The terms of this pod. `None` if its spec sets neither `podAffinity` nor `podAntiAffinity`. An empty `podAffinity` or
    /// `podAntiAffinity` counts as set.
    pub(in crate::model) fn intern(&self, pod: &Pod) -> Option<Arc<AffinityTerms>> {
        let affinity = pod.spec.affinity.as_deref()?;
        if affinity.pod_affinity.is_none() && affinity.pod_anti_affinity.is_none() {
            return None;
        }
        let terms = (&affinity.pod_affinity, &affinity.pod_anti_affinity);
        let key = (pod.namespace(), serde_json::to_string(&terms).expect("lists and maps by text are JSON"));
        let key = format!("{} {}", key.0, key.1);
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = table.sets.get(&*key).and_then(|(_, set)| set.upgrade()) {
            return Some(set);
        }
        let number = table.free.pop().unwrap_or_else(|| {
            table.next += 1;
            table.next - 1
        });
        let key: Arc<str> = key.into();
        let (lists, table_of_set) = (Lists::compile(pod), Arc::downgrade(&self.0));
        let set = Arc::new(AffinityTerms { number, key: key.clone(), lists, table: table_of_set });
        table.sets.insert(key, (number, Arc::downgrade(&set)));
        Some(set)
    }

    /// Number of live sets of terms.
    #[cfg(test)]
    pub(in crate::model) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).sets.len()
    }
}
