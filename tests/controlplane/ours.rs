//! What the library makes of a case, in the oracle's words.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::DeviceClass;
use kube_scheduler::cache::Cache;
use kube_scheduler::clock::{Clock, Now};
use kube_scheduler::config::{Config, FeatureGates, Gate, GateFlags};
use kube_scheduler::framework::{
    BoxFuture, Effects, Framework, HandleParts, PluginError, PodEvent, evaluate, evaluate_filters,
};
use kube_scheduler::k8s::{Node, Pod};
use kube_scheduler::listers::Listers;
use kube_scheduler::metrics::Metrics;
use kube_scheduler::model::{ActionType, ClusterEvent, EventResource, LabelClasses, PodInfo, ResourceGates, Snapshot};
use kube_scheduler::plugins;
use kube_scheduler::queue::{Queue, QueueOptions, registrations};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::changes;

/// Neither binds nor records: nothing here gets that far.
struct NoEffects;

impl Effects for NoEffects {
    fn bind(&self, _pod: &Arc<PodInfo>, _node: &Arc<str>) -> BoxFuture<'static, Result<(), PluginError>> {
        Box::pin(std::future::ready(Err(PluginError::new("nothing is bound here"))))
    }

    fn record(&self, _profile: &str, _event: PodEvent<'_>) {}
}

/// A case made into a scheduler that has seen all of its objects.
pub(crate) struct Cluster {
    pub(crate) gates: FeatureGates,
    pub(crate) profiles: BTreeMap<String, Arc<Framework>>,
    /// The profile that comes first in the configuration.
    first: Arc<Framework>,
    pub(crate) pending: Vec<Arc<PodInfo>>,
    resource_gates: ResourceGates,
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
fn parts(gates: &FeatureGates) -> Arc<HandleParts> {
    static METRICS: OnceLock<Arc<Metrics>> = OnceLock::new();
    Arc::new(HandleParts::new(
        *gates,
        METRICS.get_or_init(Metrics::detached).clone(),
        Clock::real(),
        Arc::new(NoEffects),
    ))
}

impl Cluster {
    /// Builds the scheduler and shows it the objects: all pods, then all nodes, as the oracle does.
    pub(crate) fn new(case: &Case) -> Result<Self, String> {
        let gates = gates(case.gates)?;
        let config = if case.config.is_null() {
            Config::defaults(&gates)
        } else {
            Config::parse(case.config.to_string().as_bytes(), &gates).map_err(|error| error.to_string())?
        };
        let parts = parts(&gates);
        let registry = plugins::registry();
        let mut profiles = Vec::new();
        for profile in &config.profiles {
            let built = Framework::new(&registry, profile, parts.clone());
            profiles.push(Arc::new(built.map_err(|error| format!("profile {}: {error}", profile.scheduler_name))?));
        }
        let now = parts.clock.now();
        let queue = Queue::new(&profiles, QueueOptions::default(), now).map_err(|error| error.to_string())?;
        let _ = parts.nominator.set(queue.nominator().clone());
        let _ = parts.activator.set(queue.clone());
        let mut cluster = Self {
            resource_gates: ResourceGates {
                resize: gates.enabled(Gate::InPlacePodVerticalScaling),
                pod_level: gates.enabled(Gate::PodLevelResources),
                pod_level_resize: gates.enabled(Gate::InPlacePodLevelResourcesVerticalScaling),
                claims: gates.enabled(Gate::DRANodeAllocatableResources),
            },
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
        let cache = Cache::new();
        let mut pods = Vec::new();
        for object in case.objects.iter().filter(|object| object["kind"] == "Pod") {
            let pod = Arc::new(decode::<Pod>(object)?);
            // The informer selects by phase.
            if !pod.is_terminal() {
                listers.pods.apply(pod.clone());
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
            listers.namespaces.apply(Arc::new(decode::<Namespace>(object)?));
        }
        for object in case.objects.iter().filter(|object| object["kind"] == "Node") {
            let node = Arc::new(decode::<Node>(object)?);
            listers.nodes.apply(node.clone());
            cache.add_node(node);
        }
        // Upstream knows device classes only where some plugin registered their events.
        let watches = changes::watches(self, &ClusterEvent::new(EventResource::DeviceClass, ActionType::ALL))?;
        for object in case.objects.iter().filter(|object| watches && object["kind"] == "DeviceClass") {
            listers.device_classes.apply(Arc::new(decode::<DeviceClass>(object)?));
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
                let evaluation = evaluate(framework, &self.snapshot, pod, self.now);
                serde_json::to_value(evaluation).expect("an evaluation is plain data")
            }
            None => json!({
                "pod": &**pod.key(), "scheduler": scheduler,
                "error": format!("profile not found for scheduler name {scheduler:?}"),
            }),
        }
    }

    /// What one plugin of the first profile says of one node, asked alone.
    pub(crate) fn filter(&self, plugin: &str, pod: &Value, node: &str) -> Result<Value, String> {
        let pod = self.info(Arc::new(decode(pod)?));
        let node = self.snapshot.get(node).ok_or_else(|| format!("no node {node}"))?;
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

/// The library's answer to a case.
pub(crate) fn answer(case: &Case) -> Result<Value, String> {
    Cluster::new(case)?.answer(case)
}
