//! State that plugins keep during one attempt to schedule a pod.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use crate::model::IndexSet;

/// A typed slot in the [`CycleState`], allocated with [`super::Handle::slot`] when the profile is built. Reading it costs an
/// array access and a type check.
pub struct Slot<T> {
    index: usize,
    marker: PhantomData<fn() -> T>,
}

impl<T> Slot<T> {
    pub(super) fn new(index: usize) -> Self {
        Self { index, marker: PhantomData }
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", self.index)
    }
}

/// A value that a slot can hold.
trait Value: Any + Send + Sync {
    fn clone_value(&self) -> Box<dyn Value>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Any + Send + Sync + Clone> Value for T {
    fn clone_value(&self) -> Box<dyn Value> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// State that plugins keep during one attempt to schedule a pod, from `PreFilter` to `PostBind`. The state is written only at
/// the extension points that run one after another. Calls of `Filter` and `Score` share it and may only read. A clone of the
/// state has a clone of every value. Preemption and nominated pods change such clones.
#[derive(Default)]
pub struct CycleState {
    slots: Vec<Option<Box<dyn Value>>>,
    /// Indexes of the plugins whose `Filter`, `AddPod` and `RemovePod` are skipped.
    pub(crate) skip_filter: IndexSet,
    /// Indexes of the plugins whose `Score` is skipped.
    pub(crate) skip_score: IndexSet,
    /// Indexes of the plugins whose `PreBind` is skipped.
    pub(crate) skip_pre_bind: IndexSet,
    /// Indexes of the plugins whose `PreBind` may run in parallel with adjacent plugins.
    pub(crate) parallel_pre_bind: IndexSet,
    /// Whether this attempt's plugin calls are measured.
    pub(crate) record_plugin_metrics: bool,
}

impl CycleState {
    /// Returns the value in the slot, if there is one.
    pub fn get<T: Any + Send + Sync + Clone>(&self, slot: Slot<T>) -> Option<&T> {
        // The method must be called on the value inside the box: a `Box<dyn Value>` is itself a `Value` too.
        let value: &dyn Value = &**self.slots.get(slot.index)?.as_ref()?;
        value.as_any().downcast_ref()
    }

    /// Returns the value in the slot for modification, if there is one.
    pub fn get_mut<T: Any + Send + Sync + Clone>(&mut self, slot: Slot<T>) -> Option<&mut T> {
        let value: &mut dyn Value = &mut **self.slots.get_mut(slot.index)?.as_mut()?;
        value.as_any_mut().downcast_mut()
    }

    /// Stores a value in the slot.
    pub fn set<T: Any + Send + Sync + Clone>(&mut self, slot: Slot<T>, value: T) {
        if self.slots.len() <= slot.index {
            self.slots.resize_with(slot.index + 1, || None);
        }
        self.slots[slot.index] = Some(Box::new(value));
    }
}

impl Clone for CycleState {
    fn clone(&self) -> Self {
        Self {
            slots: self.slots.iter().map(|slot| slot.as_ref().map(|value| (**value).clone_value())).collect(),
            skip_filter: self.skip_filter.clone(),
            skip_score: self.skip_score.clone(),
            skip_pre_bind: self.skip_pre_bind.clone(),
            parallel_pre_bind: self.parallel_pre_bind.clone(),
            record_plugin_metrics: self.record_plugin_metrics,
        }
    }
}

impl fmt::Debug for CycleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filled = self.slots.iter().filter(|slot| slot.is_some()).count();
        write!(f, "CycleState({filled} slots filled)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_keep_values_and_clones_are_independent() {
        let (numbers, text): (Slot<Vec<i32>>, Slot<String>) = (Slot::new(0), Slot::new(3));
        let mut state = CycleState::default();
        assert_eq!(state.get(numbers), None);
        state.set(numbers, vec![1]);
        state.set(text, "a".to_owned());
        let clone = state.clone();
        state.get_mut(numbers).expect("set above").push(2);
        assert_eq!(state.get(numbers), Some(&vec![1, 2]));
        assert_eq!(clone.get(numbers), Some(&vec![1]));
        assert_eq!(clone.get(text).map(String::as_str), Some("a"));
    }
}
