//! `InterPodAffinity`, which is not built yet: pods that have to be near to or away from others are not scheduled, nor are
//! pods that others have to be away from, wherever those are. Preferences count for nothing.
//!
//! Follows `pkg/scheduler/framework/plugins/interpodaffinity/plugin.go @v1.36.3` in who needs it and whom it signs.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PodAffinityTerm;

use super::event::hint;
use super::json;
use super::unsupported::{Missing, Unsupported, not_supported};
use crate::config::InterPodAffinityArgs;
use crate::framework::{
    CycleContext, EventRegistration, Handle, PluginArgs, PluginError, QueueingHint, Registration, Rejection,
    SignOutcome,
};
use crate::k8s::{Pod, Selector, StringMap, labels};
use crate::listers::Listers;
use crate::model::{ActionType, ClusterEvent, EventObjects, EventResource, PodInfo};

/// The plugin's name.
pub const NAME: &str = "InterPodAffinity";

struct InterPodAffinity {
    args: InterPodAffinityArgs,
    listers: Arc<Listers>,
}

/// Builds the plugin from [`InterPodAffinityArgs`].
#[expect(clippy::needless_pass_by_value, reason = "every factory is called alike")]
pub fn factory(args: PluginArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let args = args.decode().map_err(|error| PluginError::new(error.to_string()))?;
    let plugin = Unsupported::new(InterPodAffinity { args, listers: handle.listers().clone() }, handle);
    Ok(Registration::new(NAME)
        .events(&plugin)
        .pre_filter(&plugin)
        .filter(&plugin)
        .pre_score(&plugin)
        .score(&plugin)
        .normalize(&plugin)
        .sign(&plugin))
}

fn required_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.affinity.as_deref().and_then(|affinity| affinity.pod_affinity.as_ref());
    affinity.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn required_anti_affinity(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.affinity.as_deref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    affinity.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn has_required(pod: &Pod) -> bool {
    !required_affinity(pod).is_empty() || !required_anti_affinity(pod).is_empty()
}

/// Terms for and against other pods, with what each weighs aside.
fn preferred(pod: &Pod) -> impl Iterator<Item = &PodAffinityTerm> {
    let affinity = pod.spec.affinity.as_deref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let away = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
    let away = away.and_then(|own| own.preferred_during_scheduling_ignored_during_execution.as_deref());
    near.into_iter().chain(away).flatten().map(|weighted| &weighted.pod_affinity_term)
}

/// Whether the term of a pod in namespace `owner` is about `pod`. One that cannot be compiled is about nobody.
/// Follows `kube-scheduler/framework/types.go#AffinityTerm.Matches @v1.36.3`.
fn concerns(term: &PodAffinityTerm, owner: &str, pod: &Pod, namespace_labels: &StringMap) -> bool {
    let listed = term.namespaces.as_deref().unwrap_or_default();
    let in_namespace = if listed.is_empty() && term.namespace_selector.is_none() {
        owner == pod.namespace()
    } else {
        let selector = Selector::from_label_selector(term.namespace_selector.as_ref());
        listed.iter().any(|name| name == pod.namespace())
            || selector.is_ok_and(|selector| selector.matches(namespace_labels))
    };
    in_namespace
        && Selector::from_label_selector(term.label_selector.as_ref())
            .is_ok_and(|selector| selector.matches(pod.labels()))
}

impl InterPodAffinity {
    /// The labels of the pod's namespace; none while it is not known.
    fn namespace_labels(&self, pod: &Pod) -> StringMap {
        let namespace = self.listers.namespaces.get(pod.namespace());
        namespace.map_or_else(StringMap::new, |namespace| labels(&namespace.metadata).clone())
    }

    /// Whether a pod in the cluster must not share some domain with this one. In which domain that pod is, is not asked.
    fn is_kept_away(&self, cx: &CycleContext<'_>) -> bool {
        let nodes = cx.snapshot.nodes_with_required_anti_affinity();
        let mut others = nodes.flat_map(|node| node.pods_with_required_anti_affinity()).peekable();
        if others.peek().is_none() {
            return false;
        }
        let namespace_labels = self.namespace_labels(cx.pod.pod());
        others.any(|other| {
            let mut terms = required_anti_affinity(other.pod()).iter();
            terms.any(|term| concerns(term, other.namespace(), cx.pod.pod(), &namespace_labels))
        })
    }

    /// Whether a pod in the cluster would draw this one nearer or push it away.
    fn is_wanted(&self, cx: &CycleContext<'_>) -> bool {
        let nodes = cx.snapshot.nodes_with_affinity();
        let mut others = nodes.flat_map(|node| node.pods_with_affinity()).peekable();
        if others.peek().is_none() {
            return false;
        }
        let namespace_labels = self.namespace_labels(cx.pod.pod());
        let hard = self.args.hard_pod_affinity_weight > 0;
        others.any(|other| {
            let required = if hard { required_affinity(other.pod()) } else { &[] };
            let mut terms = preferred(other.pod()).chain(required);
            terms.any(|term| concerns(term, other.namespace(), cx.pod.pod(), &namespace_labels))
        })
    }

    /// Helps a pod that is kept away by others only: if one of those goes, or if its own labels change.
    fn after_pod_change(&self, pod: &PodInfo, objects: &EventObjects) -> QueueingHint {
        let helps = match objects.pods() {
            _ if has_required(pod.pod()) => false,
            (_, Some(updated)) => updated.uid() == pod.uid(),
            (Some(deleted), None) => {
                let terms = required_anti_affinity(deleted);
                deleted.node_name().is_some() && !terms.is_empty() && {
                    let namespace_labels = self.namespace_labels(pod.pod());
                    terms.iter().any(|term| concerns(term, deleted.namespace(), pod.pod(), &namespace_labels))
                }
            }
            (None, None) => true,
        };
        hint(helps)
    }
}

impl Missing for InterPodAffinity {
    const NAME: &'static str = NAME;

    fn requirement(&self, cx: &CycleContext<'_>) -> Option<Cow<'static, str>> {
        (has_required(cx.pod.pod()) || self.is_kept_away(cx)).then(|| not_supported(NAME))
    }

    fn preference(&self, cx: &CycleContext<'_>) -> bool {
        let own = preferred(cx.pod.pod()).next().is_some();
        own || (!self.args.ignore_preferred_terms_of_existing_pods && self.is_wanted(cx))
    }

    fn sign(&self, pod: &PodInfo) -> SignOutcome {
        if pod.has_affinity() {
            SignOutcome::Refuse(Rejection::unschedulable("pods with InterPodAffinity are not signable"))
        } else if self.args.ignore_preferred_terms_of_existing_pods {
            SignOutcome::Fragments(Vec::new())
        } else {
            SignOutcome::Fragments(vec![json::labels(pod.pod())])
        }
    }

    fn events(self: Arc<Self>) -> Vec<EventRegistration> {
        let actions = ActionType::UPDATE_POD_LABEL | ActionType::DELETE;
        let hint = move |pod: &PodInfo, objects: &EventObjects| Ok(self.after_pod_change(pod, objects));
        vec![EventRegistration::with_hint(ClusterEvent::new(EventResource::Pod, actions), hint)]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::framework::{PreScoreOutcome, Verdict};
    use crate::plugins::tests::harness::Harness;
    use crate::testing::{PodFixture, node, pod};

    fn harness(existing: &[PodFixture], hard_weight: i32, ignore_existing: bool) -> Harness {
        let args = InterPodAffinityArgs {
            hard_pod_affinity_weight: hard_weight,
            ignore_preferred_terms_of_existing_pods: ignore_existing,
        };
        let harness = Harness::with_args(PluginArgs::InterPodAffinity(args), factory);
        let namespace = json!({"metadata": {"name": "default", "labels": {"team": "a"}}});
        harness.handle.listers().namespaces.apply(Arc::new(serde_json::from_value(namespace).expect("a namespace")));
        harness.cluster(vec![node("n")], existing)
    }

    fn term(selector: &Value) -> Value {
        json!({"topologyKey": "zone", "labelSelector": selector})
    }

    /// A pod on the node with a required term of this kind.
    fn required(kind: &str, term: &Value) -> PodFixture {
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        pod("existing").on("n").set("spec.affinity", json!({kind: terms}))
    }

    fn preferring(kind: &str, term: &Value) -> PodFixture {
        let weighted = json!([{"weight": 1, "podAffinityTerm": term}]);
        let terms = json!({"preferredDuringSchedulingIgnoredDuringExecution": weighted});
        pod("existing").on("n").set("spec.affinity", json!({kind: terms}))
    }

    fn app() -> Value {
        term(&json!({"matchLabels": {"app": "a"}}))
    }

    fn check(pod: &PodFixture, existing: &[PodFixture], passes: bool) {
        let rejected = Verdict::unresolvable("InterPodAffinity is not supported yet");
        let expected = if passes { Verdict::Pass } else { rejected };
        harness(existing, 1, false).check_filter(pod, node("n"), &expected);
    }

    #[test]
    fn own_required_terms_are_rejected() {
        check(&pod("p"), &[], true);
        check(&required("podAffinity", &app()), &[], false);
        check(&required("podAntiAffinity", &app()), &[], false);
        check(&preferring("podAffinity", &app()), &[], true);
        let empty = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}});
        check(&pod("p").set("spec.affinity", empty), &[], true);
    }

    #[test]
    fn pods_that_others_keep_away_are_rejected() {
        let labelled = || pod("p").label("app", "a");
        let away = |term: &Value| [required("podAntiAffinity", term)];
        check(&labelled(), &away(&app()), false);
        check(&pod("p"), &away(&app()), true);
        check(&labelled(), &[required("podAffinity", &app())], true);
        check(&labelled().namespace("other"), &away(&app()), true);
        check(&labelled(), &away(&term(&Value::Null)), true);
        check(&labelled(), &away(&term(&json!({}))), false);
        let bad = json!({"matchExpressions": [{"key": "app", "operator": "Near"}]});
        check(&labelled(), &away(&term(&bad)), true);
    }

    #[test]
    fn terms_reach_into_other_namespaces() {
        let labelled = || pod("p").label("app", "a");
        let from_other = |namespaces: Value, selector: Value| {
            let mut term = app();
            term["namespaces"] = namespaces;
            term["namespaceSelector"] = selector;
            [required("podAntiAffinity", &term).namespace("other")]
        };
        check(&labelled(), &from_other(json!([]), Value::Null), true);
        check(&labelled(), &from_other(json!(["default"]), Value::Null), false);
        check(&labelled(), &from_other(json!(["x"]), Value::Null), true);
        check(&labelled(), &from_other(json!(["x"]), json!({"matchLabels": {"team": "a"}})), false);
        check(&labelled(), &from_other(json!([]), json!({"matchLabels": {"team": "b"}})), true);
        check(&labelled(), &from_other(json!([]), json!({})), false);
        check(&labelled().namespace("unknown"), &from_other(json!([]), json!({})), false);
    }

    #[test]
    fn preferences_are_counted() {
        let check = |pod: &PodFixture, existing: &[PodFixture], hard_weight: i32, ignore: bool, counted: u64| {
            let harness = harness(existing, hard_weight, ignore);
            assert_eq!(harness.pre_score(pod).0, Ok(PreScoreOutcome::Skip));
            assert_eq!(harness.handle.metrics().ignored_preferences(NAME).get(), counted);
        };
        let labelled = pod("p").label("app", "a");
        let near = [preferring("podAffinity", &app())];
        let away = [preferring("podAntiAffinity", &app())];
        let hard = [required("podAffinity", &app())];
        check(&labelled, &[], 1, false, 0);
        check(&near[0], &[], 1, true, 1);
        check(&away[0], &[], 1, false, 1);
        check(&labelled, &near, 1, false, 1);
        check(&labelled, &away, 1, false, 1);
        check(&labelled, &near, 1, true, 0);
        check(&labelled, &hard, 1, false, 1);
        check(&labelled, &hard, 0, false, 0);
        check(&pod("p"), &near, 1, false, 0);
    }

    #[test]
    fn a_pod_that_kept_it_away_and_goes_helps() {
        let harness = harness(&[], 1, false);
        assert_eq!(harness.registered[0].event.action, ActionType::UPDATE_POD_LABEL | ActionType::DELETE);
        let labelled = || pod("p").label("app", "a");
        let keeps_away = || required("podAntiAffinity", &app());
        assert_eq!(harness.pod_delete(&labelled(), 0, keeps_away()), QueueingHint::Queue);
        assert_eq!(harness.pod_delete(&labelled(), 0, keeps_away().on("")), QueueingHint::Skip);
        assert_eq!(harness.pod_delete(&pod("p"), 0, keeps_away()), QueueingHint::Skip);
        assert_eq!(harness.pod_delete(&labelled(), 0, pod("other").on("n")), QueueingHint::Skip);
        assert_eq!(harness.pod_delete(&keeps_away().label("app", "a"), 0, keeps_away()), QueueingHint::Skip);
        assert_eq!(harness.pod_update(&labelled(), 0, labelled(), pod("p")), QueueingHint::Queue);
        assert_eq!(harness.pod_update(&labelled(), 0, pod("q"), pod("q").label("x", "y")), QueueingHint::Skip);
    }

    #[test]
    fn signature_is_the_labels() {
        harness(&[], 1, false).check_signature(&pod("p").label("a", "b"), &[("v1.Pod.Labels", r#"{"a":"b"}"#)]);
        harness(&[], 1, true).check_signature(&pod("p").label("a", "b"), &[]);
        let signer = harness(&[], 1, false).registration.sign.expect("Sign");
        let affine = pod("p").set("spec.affinity", json!({"podAffinity": {}}));
        assert!(matches!(signer.sign(&affine.info()), Ok(SignOutcome::Refuse(_))));
    }
}
