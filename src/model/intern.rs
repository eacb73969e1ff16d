//! Interning of the data that pods share. Pods with the same namespace and labels share a label class. Pods with the same
//! namespace, pod affinity and pod anti-affinity share a set of terms.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::affinity::{AffinityTermSets, AffinityTerms};
use crate::k8s::{Pod, StringMap};

/// Dense number of a class, used as an array index. The number is reused once the last pod of the class is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u32);

impl ClassId {
    /// The number as an array index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The namespace and labels that a group of pods has in common. A selector depends on nothing else of a pod, so it is matched
/// once per class instead of once per pod.
pub struct LabelClass {
    id: ClassId,
    namespace: Arc<str>,
    labels: Arc<StringMap>,
    table: Weak<Mutex<Table>>,
}

impl LabelClass {
    /// The number of the class, unique among live classes.
    pub fn id(&self) -> ClassId {
        self.id
    }

    /// The namespace of the class's pods.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The labels of the class's pods.
    pub fn labels(&self) -> &StringMap {
        &self.labels
    }
}

impl fmt::Debug for LabelClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LabelClass({}, {}, {:?})", self.id.0, self.namespace, self.labels)
    }
}

impl Drop for LabelClass {
    fn drop(&mut self) {
        if let Some(table) = self.table.upgrade() {
            table.lock().unwrap_or_else(PoisonError::into_inner).evict(self);
        }
    }
}

/// The classes of one namespace, by labels.
type OfNamespace = BTreeMap<Arc<StringMap>, (ClassId, Weak<LabelClass>)>;

#[derive(Default)]
struct Table {
    /// The classes by namespace.
    classes: BTreeMap<Arc<str>, OfNamespace>,
    free: Vec<ClassId>,
    next: u32,
}

impl Table {
    /// Removes the entry of a class whose last user is gone, unless a new class replaced the entry in the meantime.
    fn evict(&mut self, class: &LabelClass) {
        if let Some(of_namespace) = self.classes.get_mut(&class.namespace)
            && of_namespace.get(&class.labels).is_some_and(|(id, _)| *id == class.id)
        {
            of_namespace.remove(&class.labels);
            if of_namespace.is_empty() {
                self.classes.remove(&class.namespace);
            }
        }
        self.free.push(class.id);
    }
}

/// The label classes and the sets of affinity terms of all live pods. A class lives as long as a pod refers to it. The lock
/// guards the table and is held for one look-up.
#[derive(Clone, Default)]
pub struct LabelClasses {
    table: Arc<Mutex<Table>>,
    pub(super) affinity: AffinityTermSets,
}

impl LabelClasses {
    /// Returns the class of pods with this namespace and these labels.
    pub fn intern(&self, namespace: &str, labels: &StringMap) -> Arc<LabelClass> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.classes.get_key_value(namespace);
        let found = known.and_then(|(_, of_namespace)| of_namespace.get(labels)?.1.upgrade());
        if let Some(class) = found {
            return class;
        }
        let namespace = known.map_or_else(|| Arc::from(namespace), |(namespace, _)| namespace.clone());
        let labels = Arc::new(labels.clone());
        let id = table.free.pop().unwrap_or_else(|| {
            let id = ClassId(table.next);
            table.next += 1;
            id
        });
        let class = Arc::new(LabelClass {
            id,
            namespace: namespace.clone(),
            labels: labels.clone(),
            table: Arc::downgrade(&self.table),
        });
        table.classes.entry(namespace).or_default().insert(labels, (id, Arc::downgrade(&class)));
        class
    }

    /// The affinity and anti-affinity terms of this pod. `None` if its spec sets neither `podAffinity` nor `podAntiAffinity`. An
    /// empty `podAffinity` or `podAntiAffinity` counts as set.
    pub fn affinity_terms(&self, pod: &Pod) -> Option<Arc<AffinityTerms>> {
        self.affinity.intern(pod)
    }

    /// Number of live label classes.
    pub fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).classes.values().map(BTreeMap::len).sum()
    }

    /// Whether there is no live label class.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for LabelClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LabelClasses({})", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> StringMap {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn same_namespace_and_labels_share_a_class() {
        let classes = LabelClasses::default();
        let a = classes.intern("x", &labels(&[("app", "a")]));
        assert!(Arc::ptr_eq(&a, &classes.intern("x", &labels(&[("app", "a")]))));
        assert_ne!(a.id(), classes.intern("y", &labels(&[("app", "a")])).id());
    }

    #[test]
    fn unused_class_is_dropped_and_its_id_reused() {
        let classes = LabelClasses::default();
        let a = classes.intern("x", &labels(&[("app", "a")]));
        let id = a.id();
        drop(a);
        assert!(classes.is_empty());
        assert_eq!(classes.intern("x", &labels(&[("app", "b")])).id(), id);
    }
}
