//! `PrioritySort`: orders pods by priority, highest first, and then by the time they were queued.
//!
//! Follows `pkg/scheduler/framework/plugins/queuesort/priority_sort.go @v1.36.3`.

use std::sync::Arc;

use crate::framework::{Handle, Plugin, PluginError, QueueSortKey, QueueSortPlugin, Registration};

/// Name of the plugin.
pub const NAME: &str = "PrioritySort";

/// The in-tree plugin `PrioritySort`.
#[derive(Debug)]
struct PrioritySort;

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), _handle: &Handle) -> Result<Registration, PluginError> {
    Ok(Registration::new(NAME).queue_sort(&Arc::new(PrioritySort)))
}

impl Plugin for PrioritySort {
    fn name(&self) -> &str {
        NAME
    }
}

impl QueueSortPlugin for PrioritySort {
    fn less(&self, a: QueueSortKey<'_>, b: QueueSortKey<'_>) -> bool {
        let (first, second) = (a.pod.priority(), b.pod.priority());
        first > second || (first == second && a.timestamp < b.timestamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Mono;
    use crate::testing::{Harness, PodFixture, pod};

    fn check(a: (PodFixture, u64), b: (PodFixture, u64), expected: bool) {
        let plugin = Harness::new(factory).registration.queue_sort.expect("QueueSort");
        let (first, second) = (a.0.info(), b.0.info());
        let key = |pod, nanos| QueueSortKey { pod, timestamp: Mono::from_nanos(nanos) };
        assert_eq!(plugin.less(key(&first, a.1), key(&second, b.1)), expected);
    }

    #[test]
    fn higher_priority_precedes_earlier_timestamp() {
        check((pod("a").priority(2), 9), (pod("b").priority(1), 1), true);
        check((pod("a").priority(1), 1), (pod("b").priority(2), 9), false);
        check((pod("a").priority(-1), 1), (pod("b"), 9), false);
    }

    #[test]
    fn equal_priorities_are_sorted_by_timestamp() {
        check((pod("a").priority(0), 1), (pod("b"), 2), true);
        check((pod("a"), 2), (pod("b").priority(0), 1), false);
        check((pod("a"), 2), (pod("b"), 2), false);
    }
}
