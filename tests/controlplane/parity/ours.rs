//! The library's answers to a case, in the oracle's format.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use futures::FutureExt as _;
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::DeviceClass;
use kube_scheduler::cache::Cache;
use kube_scheduler::clock::{Clock, Now};
use kube_scheduler::config::{Config, FeatureGates, GateFlags};
use kube_scheduler::framework::preemption::{Candidate, Evaluator, MinCandidates};
use kube_scheduler::framework::{
    BoxFuture, Code, CycleContext, Diagnosis, Effects, Framework, HandleParts, PluginError, PodEvent,
    PostFilterContext, resource_gates,
};
use kube_scheduler::k8s::{Node, Pod};
use kube_scheduler::listers::Listers;
use kube_scheduler::metrics::Metrics;
use kube_scheduler::model::{ActionType, ClusterEvent, EventResource, LabelClasses, PodInfo, ResourceGates, Snapshot};
use kube_scheduler::plugins;
use kube_scheduler::queue::{Queue, QueueOptions, registrations};
use kube_scheduler::scheduler::{evaluate_filters, evaluate_then};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::case::Case;
use super::changes;

/// Binds and records nothing, since nothing here gets that far, and keeps in mind whom preemption sends away.
#[derive(Default)]
struct Pretended {
    evicted: Mutex<Vec<String>>,
}

impl Pretended {
    fn take_evicted(&self) -> Vec<String> {
        std::mem::take(&mut self.evicted.lock().expect("nothing panics under the lock"))
    }
}

impl Effects for Pretended {
    fn bind(&self, _pod: &Arc<PodInfo>, _node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is bound here"))))
    }

    fn record(&self, _profile: &str, _event: PodEvent<'_>) {}

    fn evict(&self, victim: &Arc<Pod>, _: &Arc<Pod>) -> BoxFuture<'static, Result<bool, PluginError>> {
        self.evicted.lock().expect("nothing panics under the lock").push(victim.key());
        Box::pin(std::future::ready(Ok(true)))
    }

    fn clear_nomination(&self, _: &Arc<Pod>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        task.now_or_never().expect("nothing here has to be waited for");
    }

    fn wait(&self, task: BoxFuture<'static, Result<(), PluginError>>) -> Result<(), PluginError> {
        task.now_or_never().expect("nothing here has to be waited for")
    }
}

/// A case made into a scheduler that has seen all of its objects.
pub(crate) struct Cluster {
    pub(crate) gates: FeatureGates,
    pub(crate) profiles: BTreeMap<String, Arc<Framework>>,
    /// The profile that comes first in the configuration.
    first: Arc<Framework>,
    pub(crate) pending: Vec<Arc<PodInfo>>,
    resource_gates: ResourceGates,
    effects: Arc<Pretended>,
    /// By profile.
    preemption: BTreeMap<String, MinCandidates>,
    classes: LabelClasses,
    snapshot: Snapshot,
    now: Now,
}

/// Feature gates as the flag takes them.
pub(crate) fn gates(text: &str) -> Result<FeatureGates, String> {
    let flag = [text.to_owned()];
    let flags = GateFlags { feature_gates: if text.is_empty() { &[] } else { &flag }, ..GateFlags::default() };
    FeatureGates::from_flags(flags).map_err(|error| error.to_string())
}

fn decode<T: DeserializeOwned>(object: &Value) -> Result<T, String> {
    T::deserialize(object).map_err(|error| format!("{error}: {object}"))
}

/// What a case's profiles share. Metric families are registered once: they are no part of the comparison.
fn parts(gates: &FeatureGates, effects: Arc<Pretended>) -> Arc<HandleParts> {
    static METRICS: OnceLock<Arc<Metrics>> = OnceLock::new();
    Arc::new(HandleParts::new(*gates, METRICS.get_or_init(Metrics::detached).clone(), Clock::real(), effects))
}

/// The objects that say which pods belong together.
fn fill_groups(case: &Case, listers: &Listers) -> Result<(), String> {
    for object in &case.objects {
        match object["kind"].as_str() {
            Some("Service") => listers.put(Arc::new(decode::<Service>(object)?)),
            Some("ReplicationController") => {
                listers.put(Arc::new(decode::<ReplicationController>(object)?));
            }
            Some("ReplicaSet") => listers.put(Arc::new(decode::<ReplicaSet>(object)?)),
            Some("StatefulSet") => listers.put(Arc::new(decode::<StatefulSet>(object)?)),
            _ => {}
        }
    }
    Ok(())
}

impl Cluster {
    /// Builds the scheduler and shows it the objects: all pods, then all nodes, as the oracle does.
    pub(crate) fn new(case: &Case) -> Result<Self, String> {
        let gates = gates(case.gates)?;
        let registry = plugins::registry();
        let config = if case.config.is_null() {
            Config::defaults(&gates, registry.catalog())
        } else {
            Config::parse(case.config.to_string().as_bytes(), &gates, registry.catalog())
                .map_err(|error| error.to_string())?
        };
        let effects = Arc::<Pretended>::default();
        let parts = parts(&gates, effects.clone());
        let mut profiles = Vec::new();
        for profile in &config.profiles {
            let built = Framework::new(&registry, profile, parts.clone());
            profiles.push(Arc::new(built.map_err(|error| format!("profile {}: {error}", profile.scheduler_name))?));
        }
        let now = parts.clock.now();
        let queue = Queue::new(&profiles, QueueOptions::default(), now).map_err(|error| error.to_string())?;
        // Nobody is brought back here, and a queue that its own plugins hold would stay for good.
        let _ = parts.nominator.set(queue.nominator().clone());
        let mut cluster = Self {
            resource_gates: resource_gates(&gates),
            effects,
            preemption: plugins::default_preemption::min_candidates(&config),
            gates,
            first: profiles[0].clone(),
            profiles: profiles.into_iter().map(|profile| (profile.name().to_string(), profile)).collect(),
            pending: Vec::new(),
            classes: parts.classes.clone(),
            snapshot: Snapshot::default(),
            now,
        };
        cluster.fill(case, &parts.listers, &queue)?;
        Ok(cluster)
    }

    fn fill(&mut self, case: &Case, listers: &Listers, queue: &Queue) -> Result<(), String> {
        fill_groups(case, listers)?;
        let cache = Cache::new();
        let mut pods = Vec::new();
        for object in case.objects.iter().filter(|object| object["kind"] == "Pod") {
            let pod = Arc::new(decode::<Pod>(object)?);
            // The informer selects by phase.
            if !pod.is_terminal() {
                listers.put(pod.clone());
                pods.push(self.info(pod));
            }
        }
        for pod in pods {
            if pod.pod().node_name().is_some() {
                cache.add_pod(pod).map_err(|error| error.to_string())?;
            } else {
                if self.profiles.contains_key(pod.pod().scheduler_name()) {
                    queue.add(pod.clone(), self.now);
                }
                self.pending.push(pod);
            }
        }
        for object in case.objects.iter().filter(|object| object["kind"] == "Namespace") {
            listers.put(Arc::new(decode::<Namespace>(object)?));
        }
        for object in case.objects.iter().filter(|object| object["kind"] == "Node") {
            let node = Arc::new(decode::<Node>(object)?);
            listers.put(node.clone());
            cache.set_node(node);
        }
        // Upstream knows device classes only where some plugin registered their events.
        let watches = changes::watches(self, &ClusterEvent::new(EventResource::DeviceClass, ActionType::ALL))?;
        for object in case.objects.iter().filter(|object| watches && object["kind"] == "DeviceClass") {
            listers.put(Arc::new(decode::<DeviceClass>(object)?));
        }
        for object in case.objects.iter().filter(|object| object["kind"] == "PodDisruptionBudget") {
            listers.put(Arc::new(decode::<PodDisruptionBudget>(object)?));
        }
        cache.update_snapshot(&mut self.snapshot).map_err(|error| error.to_string())
    }

    /// The pod with what is derived from it.
    pub(crate) fn info(&self, pod: Arc<Pod>) -> Arc<PodInfo> {
        Arc::new(PodInfo::with_gates(pod, &self.classes, self.resource_gates))
    }

    /// Everything about every pending pod, and about every change.
    fn answer(&self, case: &Case) -> Result<Value, String> {
        let pods: Vec<Value> = self.pending.iter().map(|pod| self.evaluate(pod)).collect();
        let events: Result<Vec<Value>, String> =
            case.events.iter().enumerate().map(|(at, event)| changes::answer(self, at, event)).collect();
        Ok(json!({"pods": pods, "events": events?, "registered": self.registered()?}))
    }

    fn evaluate(&self, pod: &Arc<PodInfo>) -> Value {
        let scheduler = pod.pod().scheduler_name();
        match self.profiles.get(scheduler) {
            Some(framework) => {
                let mut post_filter = Value::Null;
                let evaluation = evaluate_then(framework, &self.snapshot, pod, self.now, &mut |cx, diagnosis| {
                    if framework.has_post_filter_plugins() {
                        post_filter = self.post_filter(framework, cx, diagnosis);
                    }
                });
                let mut evaluation = serde_json::to_value(evaluation).expect("an evaluation is plain data");
                evaluation["postFilter"] = post_filter;
                evaluation
            }
            None => json!({
                "pod": &**pod.key(), "scheduler": scheduler,
                "error": format!("profile not found for scheduler name {scheduler:?}"),
            }),
        }
    }

    /// Runs `PostFilter`, adds what it says to the diagnosis, and tells everything about it.
    fn post_filter(&self, framework: &Framework, cx: &mut CycleContext<'_>, diagnosis: &mut Diagnosis) -> Value {
        let failed = PostFilterContext { diagnosis, filters: framework, extenders: &(), random: 0 };
        let run = framework.run_post_filter(cx, &failed);
        let evicted = self.effects.take_evicted();
        // A search that comes to nothing has found nobody, and one that was ruled out would not have begun.
        let succeeded = run.code == Code::Success;
        let candidates = self.preemption.get(&**framework.name()).filter(|_| succeeded).map(|args| {
            let evaluator = Evaluator::new("DefaultPreemption", framework.handle(), *args);
            let evaluator = evaluator.expect("nothing is watched here");
            let found = evaluator.candidates(cx, &failed).map(|found| found.candidates).unwrap_or_default();
            let mut candidates: Vec<Value> = found.iter().map(candidate).collect();
            candidates.sort_by_key(|candidate| candidate["node"].to_string());
            candidates
        });
        let answer = json!({
            "code": run.code.as_str(), "message": run.message, "nominated": run.nominated, "evicted": evicted,
            "candidates": candidates,
        });
        diagnosis.post_filter_message = run.message;
        answer
    }

    /// What one plugin of the first profile says of one node, asked alone.
    pub(crate) fn filter(&self, plugin: &str, pod: &Value, node: &str) -> Result<Value, String> {
        let pod = self.info(Arc::new(decode(pod)?));
        let node = self.snapshot.ordinal(node).ok_or_else(|| format!("no node {node}"))?;
        let verdicts = evaluate_filters(&self.first, &self.snapshot, &pod, node, self.now);
        let verdict = verdicts.into_iter().find(|verdict| *verdict.plugin == *plugin);
        serde_json::to_value(verdict).map_err(|error| error.to_string())
    }

    /// What the plugins of the first profile registered, as `<resource>/<action bits>`.
    fn registered(&self) -> Result<Value, String> {
        let mut by_plugin = Map::new();
        for (plugin, registered) in registrations(&self.first, false).map_err(|errors| format!("{errors:?}"))? {
            let label = changes::label(&registered.event).into();
            match by_plugin.entry(&*plugin).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(labels) => labels.push(label),
                _ => unreachable!("only arrays are inserted"),
            }
        }
        Ok(by_plugin.into())
    }
}

/// A candidate in the oracle's words.
fn candidate(candidate: &Candidate) -> Value {
    let victims: Vec<&str> = candidate.victims.iter().map(|pod| &**pod.key()).collect();
    json!({"node": &*candidate.node, "victims": victims, "pdbViolations": candidate.pdb_violations})
}

/// The library's answer to a case.
pub(crate) fn answer(case: &Case) -> Result<Value, String> {
    Cluster::new(case)?.answer(case)
}
