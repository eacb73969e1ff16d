//! State of plugins that all profiles share.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::PluginError;

/// One value of each type, built by the first factory that asks for it. The lock guards the map and is held for a lookup. It is
/// not held while a value is built, so the `build` function of one value may ask for another value.
#[derive(Default)]
pub struct SharedStates(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl SharedStates {
    /// Returns the value of this type. Calls `build` if there is none yet, and fails if `build` fails.
    pub(super) fn get_or_build<T: Any + Send + Sync>(
        &self,
        build: impl FnOnce() -> Result<Arc<T>, PluginError>,
    ) -> Result<Arc<T>, PluginError> {
        let known = self.lock().get(&TypeId::of::<T>()).cloned();
        let value = if let Some(value) = known {
            value
        } else {
            let built = build()?;
            self.lock().entry(TypeId::of::<T>()).or_insert(built).clone()
        };
        Ok(value.downcast().unwrap_or_else(|_| panic!("values are found by their type")))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SharedStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedStates({})", self.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_state_is_built_once_and_errors_are_not_cached() {
        let states = SharedStates::default();
        let failed = states.get_or_build::<u32>(|| Err(PluginError::new("no")));
        assert_eq!(failed, Err(PluginError::new("no")));
        let nested = || {
            let text = states.get_or_build(|| Ok(Arc::new("seven".to_owned())))?;
            Ok(Arc::new(u32::try_from(text.len()).unwrap_or(0)))
        };
        let first = states.get_or_build(nested).expect("it can be built");
        let second = states.get_or_build(|| Ok(Arc::new(8_u32))).expect("it is there");
        assert!(Arc::ptr_eq(&first, &second) && *first == 5);
    }
}
