//! What plugins remember during one attempt to schedule a pod.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use crate::model::IndexSet;

/// A place in the [`CycleState`] for a `T`, resolved once when the profile is built: reading it is an index and a type
/// check. Got from [`super::Handle::slot`].
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

/// A value that can stand in a slot.
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

/// What plugins remember during one attempt to schedule a pod, from `PreFilter` to `PostBind`. Written at the serial
/// points only; `Filter` and `Score` see it shared. A clone clones every value, as preemption and nominated pods need it.
#[derive(Default)]
pub struct CycleState {
    slots: Vec<Option<Box<dyn Value>>>,
    /// By plugin position in the profile: `Filter`, `AddPod` and `RemovePod` are not called.
    pub(crate) skip_filter: IndexSet,
    /// `Score` is not called.
    pub(crate) skip_score: IndexSet,
    /// `PreBind` is not called.
    pub(crate) skip_pre_bind: IndexSet,
    /// `PreBind` may run beside its neighbours.
    pub(crate) parallel_pre_bind: IndexSet,
    /// Whether this attempt's plugin calls are timed.
    pub(crate) record_plugin_metrics: bool,
}

impl CycleState {
    /// What the slot holds.
    pub fn get<T: Any + Send + Sync + Clone>(&self, slot: Slot<T>) -> Option<&T> {
        // The call goes through the box to the value: a `Box<dyn Value>` is itself a `Value` otherwise.
        let value: &dyn Value = &**self.slots.get(slot.index)?.as_ref()?;
        value.as_any().downcast_ref()
    }

    /// What the slot holds, to change it.
    pub fn get_mut<T: Any + Send + Sync + Clone>(&mut self, slot: Slot<T>) -> Option<&mut T> {
        let value: &mut dyn Value = &mut **self.slots.get_mut(slot.index)?.as_mut()?;
        value.as_any_mut().downcast_mut()
    }

    /// Puts a value into the slot.
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
    fn slots_hold_what_was_put_in_and_clones_are_apart() {
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
