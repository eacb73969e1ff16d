//! `DefaultBinder`: binds a pod by creating a Binding.
//!
//! Follows `pkg/scheduler/framework/plugins/defaultbinder/default_binder.go @v1.36.3`. The dispatcher orders, merges and
//! retries the writes.

use std::sync::Arc;

use crate::framework::{
    BindContext, BindOutcome, BindPlugin, BoxFuture, Effects, Handle, Plugin, PluginError, Registration,
};

/// Name of the plugin.
pub const NAME: &str = "DefaultBinder";

/// The in-tree plugin `DefaultBinder`.
struct DefaultBinder {
    effects: Arc<dyn Effects>,
}

/// Builds the plugin, which takes no arguments.
pub fn factory(_args: (), handle: &Handle) -> Result<Registration, PluginError> {
    Ok(Registration::new(NAME).bind(&Arc::new(DefaultBinder { effects: handle.effects().clone() })))
}

impl Plugin for DefaultBinder {
    fn name(&self) -> &str {
        NAME
    }
}

impl BindPlugin for DefaultBinder {
    fn bind<'a>(&'a self, cx: BindContext<'a>) -> BoxFuture<'a, Result<BindOutcome, PluginError>> {
        let answer = self.effects.bind(cx.pod, cx.node);
        Box::pin(async { answer.await.map(|()| BindOutcome::Bound) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framework::CycleState;
    use crate::testing::{Harness, pod};

    fn check(answer: Result<(), PluginError>, expected: &Result<BindOutcome, PluginError>) {
        let harness = Harness::with_binding_result(answer, factory);
        let plugin = harness.registration.bind.clone().expect("Bind");
        let (pod, node, state) = (pod("p").info(), Arc::from("n"), CycleState::default());
        let outcome = futures::executor::block_on(plugin.bind(BindContext { pod: &pod, node: &node, state: &state }));
        assert_eq!(outcome, *expected);
        assert_eq!(harness.effects().bindings(), [("default/p".to_owned(), "n".to_owned())]);
    }

    #[test]
    fn bind_returns_the_api_servers_result() {
        check(Ok(()), &Ok(BindOutcome::Bound));
        check(Err(PluginError::new("gone")), &Err(PluginError::new("gone")));
    }
}
