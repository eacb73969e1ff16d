//! `SelectorSpread`: spreads pods of the same services and controllers over nodes and zones.
//!
//! Kubernetes had this score plugin before `PodTopologySpread`. Here it is an out-of-tree plugin. It shows the parts of a score
//! plugin:
//!
//! - [`PreScorePlugin`] runs once per cycle. It computes the data that depends on the pod alone and stores it in a [`Slot`] of
//!   the cycle state. Here this is the selector of the pods to spread. The selector is derived from services and controllers.
//!   The factory requests their listers with [`Handle::lister`], which also makes the scheduler watch these kinds.
//! - [`ScorePlugin`] runs for each feasible node, on several threads, and only reads. If the plugin normalizes its scores, the
//!   raw scores may have any meaning. Here they are pod counts, and lower is better.
//! - [`NormalizeScore`] gets the raw scores of all nodes and scales them to the range from 0 to 100, where higher is better.
//! - [`PluginArgs`] is implemented by the type of the arguments. A configuration with an unknown field, a wrong type or an
//!   invalid value is rejected before the plugin is built. `/configz` shows the arguments with their defaults.
//!
//! By default, one third of a node's score is for having few of the pods, and two thirds are for being in a zone with few of
//! them:
//!
//! ```text
//! node  = 100 · (most on a node − on this node) / most on a node
//! zone  = 100 · (most in a zone − in this zone) / most in a zone
//! score = node · ⅓ + zone · ⅔        or node alone, for a node without a zone
//! ```
//!
//! With this configuration, only zones count:
//!
//! ```yaml
//! apiVersion: kubescheduler.config.k8s.io/v1
//! kind: KubeSchedulerConfiguration
//! profiles:
//! - plugins:
//!     multiPoint: {enabled: [{name: SelectorSpread}]}
//!   pluginConfig:
//!   - name: SelectorSpread
//!     args: {zoneWeighting: 1}
//! ```
//!
//! Follows `pkg/scheduler/framework/plugins/selectorspread/selector_spread.go @v1.22.0`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ReplicationController, Service};
use kube_scheduler::apimachinery::{FieldErrors, FieldPath};
use kube_scheduler::config::FeatureGates;
use kube_scheduler::framework::{
    CycleContext, Handle, NodeRef, NodeScores, NormalizeScore, Plugin, PluginArgs, PluginError, PreScoreOutcome,
    PreScorePlugin, Registration, ScorePlugin, Scratch, Slot,
};
use kube_scheduler::k8s::{Node, Pod, Selector, StringMap};
use kube_scheduler::listers::Lister;
use serde::{Deserialize, Serialize};

/// The name under which a profile enables the plugin.
pub const NAME: &str = "SelectorSpread";

/// The highest score that a node can get.
const MAX_NODE_SCORE: f64 = 100.0;

/// The default weight of the zone in the score of a node that has a zone.
/// Follows `pkg/scheduler/framework/plugins/selectorspread/selector_spread.go#zoneWeighting @v1.22.0`.
const ZONE_WEIGHTING: f64 = 2.0 / 3.0;

/// Arguments of the plugin. With serde's `default` on the struct, a configuration may leave out any field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SelectorSpreadArgs {
    /// The weight of the zone in the score of a node that has a zone, from 0 to 1.
    pub zone_weighting: f64,
}

impl Default for SelectorSpreadArgs {
    fn default() -> Self {
        Self { zone_weighting: ZONE_WEIGHTING }
    }
}

impl PluginArgs for SelectorSpreadArgs {
    const KIND: &'static str = "SelectorSpreadArgs";

    fn validate(&self, path: &FieldPath, _gates: &FeatureGates, errors: &mut FieldErrors) {
        if !(0.0..=1.0).contains(&self.zone_weighting) {
            errors.invalid(&path.child("zoneWeighting"), self.zone_weighting, "not in valid range [0, 1]");
        }
    }
}

/// The plugin `SelectorSpread` of one profile.
#[derive(Debug)]
pub struct SelectorSpread {
    args: SelectorSpreadArgs,
    services: Lister<Service>,
    replication_controllers: Lister<ReplicationController>,
    replica_sets: Lister<ReplicaSet>,
    stateful_sets: Lister<StatefulSet>,
    /// Slot in which `PreScore` stores the selector for `Score`. The slot is typed, and reading it costs one array index.
    selector: Slot<Arc<Selector>>,
}

/// Builds the plugin for one profile. The arguments already have their defaults and are valid. Listers and slots can be
/// requested only here.
pub fn factory(args: SelectorSpreadArgs, handle: &Handle) -> Result<Registration, PluginError> {
    let plugin = Arc::new(SelectorSpread {
        args,
        services: handle.lister()?,
        replication_controllers: handle.lister()?,
        replica_sets: handle.lister()?,
        stateful_sets: handle.lister()?,
        selector: handle.slot(),
    });
    Ok(Registration::new(NAME).pre_score(&plugin).score(&plugin).normalize(&plugin))
}

impl Plugin for SelectorSpread {
    fn name(&self) -> &str {
        NAME
    }
}

impl PreScorePlugin for SelectorSpread {
    /// Stores the selector for `Score`. Skips pods with topology spread constraints, which `PodTopologySpread` handles. After
    /// `Skip`, neither `Score` nor `NormalizeScore` is called in this cycle, and every node gets 0.
    fn pre_score(&self, cx: &mut CycleContext<'_>, _nodes: &[NodeRef<'_>]) -> Result<PreScoreOutcome, PluginError> {
        let pod = cx.pod.pod();
        if !pod.spec.topology_spread_constraints.is_empty() {
            return Ok(PreScoreOutcome::Skip);
        }
        cx.state.set(self.selector, Arc::new(self.selector_of(pod)));
        Ok(PreScoreOutcome::Pass)
    }
}

impl ScorePlugin for SelectorSpread {
    /// Counts the node's pods in the pod's namespace that the selector matches, without pods that are being deleted. An empty
    /// selector counts no pods.
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        let selector = cx.state.get(self.selector).ok_or("SelectorSpread: Score was called without PreScore")?;
        if selector.is_empty() {
            return Ok(0);
        }
        let counts = |pod: &Pod| {
            pod.namespace() == cx.pod.namespace() && !pod.is_terminating() && selector.matches(pod.labels())
        };
        let count = node.pods().iter().filter(|pod| counts(pod.pod())).count();
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl NormalizeScore for SelectorSpread {
    fn normalize(&self, _cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let most_on_a_node = scores.scores.iter().copied().max().unwrap_or(0);
        let zones: Vec<Option<Zone<'_>>> = scores.nodes.iter().map(|node| zone_of(node.node())).collect();
        let mut by_zone: BTreeMap<Zone<'_>, i64> = BTreeMap::new();
        for (zone, count) in zones.iter().zip(&*scores.scores) {
            if let Some(zone) = zone {
                *by_zone.entry(*zone).or_default() += count;
            }
        }
        let most_in_a_zone = by_zone.values().copied().max().unwrap_or(0);
        for (score, zone) in scores.scores.iter_mut().zip(&zones) {
            let mut value = part(*score, most_on_a_node);
            if let Some(zone) = zone {
                let zone = part(by_zone[zone], most_in_a_zone);
                let weighting = self.args.zone_weighting;
                value = value * (1.0 - weighting) + weighting * zone;
            }
            *score = truncated(value);
        }
        Ok(())
    }
}

/// The score for this pod count: 100 for no pods, 0 for the highest count.
#[expect(clippy::cast_precision_loss, reason = "counts of pods are small")]
fn part(count: i64, most: i64) -> f64 {
    if most > 0 { MAX_NODE_SCORE * ((most - count) as f64 / most as f64) } else { MAX_NODE_SCORE }
}

#[expect(clippy::cast_possible_truncation, reason = "from 0 to 100, and cut as upstream cuts it")]
fn truncated(value: f64) -> i64 {
    value as i64
}

/// A region and a zone in the region. One of the two may be empty.
type Zone<'a> = (&'a str, &'a str);

/// The zone of a node, or `None` if it has neither zone nor region labels. The deprecated label names take precedence.
/// Follows `component-helpers/node/topology/helpers.go#GetZoneKey @v1.36.3`.
fn zone_of(node: &Node) -> Option<Zone<'_>> {
    let label = |old: &str, new: &str| {
        let labels = node.labels();
        labels.get(old).or_else(|| labels.get(new)).map_or("", String::as_str)
    };
    let region = label("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region");
    let zone = label("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
    (!region.is_empty() || !zone.is_empty()).then_some((region, zone))
}

impl SelectorSpread {
    /// Returns a selector that combines the selectors of the pod's services and of its controller.
    /// Follows `pkg/scheduler/framework/plugins/helper/spread.go#DefaultSelector @v1.36.3`.
    fn selector_of(&self, pod: &Pod) -> Selector {
        let namespace = pod.namespace();
        let mut labels = StringMap::new();
        for service in self.services.list_in(namespace) {
            // A service without a selector selects nothing. An empty selector selects everything and adds no labels.
            let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            if let Some(selector) = selector.filter(|selector| Selector::from_labels(selector).matches(pod.labels())) {
                labels.extend(selector.clone());
            }
        }
        let owners = pod.metadata.owner_references.iter().flatten();
        let Some(owner) = owners.into_iter().find(|owner| owner.controller == Some(true)) else {
            return Selector::from_labels(&labels);
        };
        let controller = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("v1", "ReplicationController") => {
                let controller = self.replication_controllers.get_in(namespace, &owner.name);
                labels.extend(controller.and_then(|found| found.spec.clone()?.selector).unwrap_or_default());
                None
            }
            ("apps/v1", "ReplicaSet") => {
                let set = self.replica_sets.get_in(namespace, &owner.name);
                set.and_then(|found| Some(found.spec.clone()?.selector))
            }
            ("apps/v1", "StatefulSet") => {
                let set = self.stateful_sets.get_in(namespace, &owner.name);
                set.and_then(|found| Some(found.spec.clone()?.selector))
            }
            _ => None,
        };
        // A selector that cannot be parsed adds no requirements.
        let controller = Selector::from_label_selector(controller.as_ref()).unwrap_or_default();
        let requirements = controller.requirements().unwrap_or_default().iter().cloned();
        requirements.fold(Selector::from_labels(&labels), Selector::and)
    }
}

#[cfg(test)]
mod tests {
    use kube_scheduler::app::App;
    use kube_scheduler::config::Config;
    use kube_scheduler::framework::Registry;
    use kube_scheduler::simulate::{SimulateArgs, simulate};
    use kube_scheduler::testing::{Harness, NodeFixture, PodFixture, node, pod, put};
    use serde_json::{Value, json};

    use super::*;

    fn decode<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
        Arc::new(serde_json::from_value(value).expect("an object"))
    }

    fn service(namespace: &str, name: &str, selector: &Value) -> Arc<Service> {
        decode(json!({"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}))
    }

    /// The plugin in a cluster whose service `web` selects `app: web`.
    fn harness() -> Harness {
        let harness = Harness::new(factory);
        put(&harness.handle, service("default", "web", &json!({"app": "web"})));
        harness
    }

    fn web(name: &str) -> PodFixture {
        pod(name).label("app", "web")
    }

    fn owned_by(pod: PodFixture, api_version: &str, kind: &str, name: &str) -> PodFixture {
        let owner = json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": true}]);
        pod.set("metadata.ownerReferences", owner)
    }

    /// Checks the count and the score of each node.
    #[track_caller]
    fn check(harness: Harness, pod: &PodFixture, nodes: Vec<NodeFixture>, on: &[PodFixture], expected: &[(i64, i64)]) {
        let (raw, normalized) = harness.cluster(nodes, on).score_all(pod).expect("PreScore does not skip");
        let actual: Vec<(i64, i64)> = raw.into_iter().zip(normalized).collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn nodes_with_fewer_matching_pods_score_higher() {
        let nodes = || vec![node("a"), node("b"), node("c")];
        let on = [web("1").on("a"), web("2").on("a"), web("3").on("b"), pod("4").label("app", "db").on("c")];
        check(harness(), &web("p"), nodes(), &on, &[(2, 0), (1, 50), (0, 100)]);
        check(harness(), &web("p"), nodes(), &[], &[(0, 100), (0, 100), (0, 100)]);
        check(harness(), &pod("p"), nodes(), &on, &[(0, 100), (0, 100), (0, 100)]);
    }

    #[test]
    fn terminating_and_other_namespace_pods_do_not_count() {
        let on = [web("1").on("a").terminating(), web("2").on("a").namespace("other"), web("3").on("b")];
        check(harness(), &web("p"), vec![node("a"), node("b")], &on, &[(0, 100), (1, 0)]);
        let elsewhere = Harness::new(factory);
        put(&elsewhere.handle, service("other", "web", &json!({"app": "web"})));
        check(elsewhere, &web("p"), vec![node("a"), node("b")], &on, &[(0, 100), (0, 100)]);
    }

    #[test]
    fn zones_count_for_two_thirds() {
        let nodes = vec![node("a1").zone("a"), node("a2").zone("a"), node("b1").zone("b"), node("none")];
        let on = [web("1").on("a1"), web("2").on("a1"), web("3").on("b1"), web("4").on("none")];
        // Node a2: 100 · ⅓ + 0 · ⅔. Node b1: 50 · ⅓ + 50 · ⅔. The last node has no zone.
        check(harness(), &web("p"), nodes, &on, &[(2, 0), (0, 33), (1, 50), (1, 50)]);
    }

    /// A node in region x and zone 1 by the deprecated labels, although the new zone label differs.
    fn node_with_old_labels(name: &str) -> NodeFixture {
        let labels =
            [("failure-domain.beta.kubernetes.io/region", "x"), ("failure-domain.beta.kubernetes.io/zone", "1")];
        labels.into_iter().fold(node(name).zone("2"), |node, (key, value)| node.label(key, value))
    }

    #[test]
    fn zones_of_different_regions_are_distinct() {
        let node = |name: &str, region: &str| node(name).zone("1").label("topology.kubernetes.io/region", region);
        let on = [web("1").on("a")];
        check(harness(), &web("p"), vec![node("a", "x"), node("b", "y")], &on, &[(1, 0), (0, 100)]);
        check(harness(), &web("p"), vec![node("a", "x"), node("b", "x")], &on, &[(1, 0), (0, 33)]);
        check(harness(), &web("p"), vec![node("a", "x"), node_with_old_labels("b")], &on, &[(1, 0), (0, 33)]);
    }

    #[test]
    fn controller_selectors_count() {
        let check_owner = |kind: (&str, &str), fill: fn(&Handle), expected: [(i64, i64); 2]| {
            let harness = Harness::new(factory);
            fill(&harness.handle);
            let owned = owned_by(web("p"), kind.0, kind.1, "owner");
            let on = [web("1").on("a"), pod("2").label("app", "db").on("b")];
            check(harness, &owned, vec![node("a"), node("b")], &on, &expected);
        };
        let counted = [(1, 0), (0, 100)];
        check_owner(
            ("v1", "ReplicationController"),
            |handle| {
                let selector = json!({"app": "web"});
                let object =
                    json!({"metadata": {"name": "owner", "namespace": "default"}, "spec": {"selector": selector}});
                put(handle, decode::<ReplicationController>(object));
            },
            counted,
        );
        check_owner(("apps/v1", "ReplicaSet"), |handle| put(handle, decode::<ReplicaSet>(set())), counted);
        check_owner(("apps/v1", "StatefulSet"), |handle| put(handle, decode::<StatefulSet>(set())), counted);
        check_owner(("apps/v1", "DaemonSet"), |_| {}, [(0, 100), (0, 100)]);
        check_owner(("apps/v1", "ReplicaSet"), |_| {}, [(0, 100), (0, 100)]);
    }

    /// The JSON of a replica set or a stateful set.
    fn set() -> Value {
        let selector = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]});
        let template = json!({"metadata": {}, "spec": {"containers": []}});
        json!({
            "metadata": {"name": "owner", "namespace": "default"},
            "spec": {"selector": selector, "serviceName": "s", "template": template},
        })
    }

    #[test]
    fn service_and_controller_selectors_are_merged() {
        let harness = harness();
        let set = decode::<ReplicaSet>(json!({
            "metadata": {"name": "owner", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"tier": "front"}}, "template": {}},
        }));
        put(&harness.handle, set);
        let owned = owned_by(web("p").label("tier", "front"), "apps/v1", "ReplicaSet", "owner");
        let on = [web("1").on("a"), web("2").label("tier", "front").on("b")];
        check(harness, &owned, vec![node("a"), node("b")], &on, &[(0, 100), (1, 0)]);
    }

    #[test]
    fn pod_with_spread_constraints_is_not_scored() {
        let constraint = json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]);
        let pod = web("p").set("spec.topologySpreadConstraints", constraint);
        let harness = harness().cluster(vec![node("a"), node("b")], &[web("1").on("a")]);
        assert_eq!(harness.score_all(&pod), None);
    }

    /// A configuration file in a temporary folder, deleted when the test ends.
    struct ConfigFile(std::path::PathBuf);

    impl ConfigFile {
        fn new(name: &str, args: &str) -> Self {
            let path = std::env::temp_dir().join(format!("selector-spread-{name}-{}.yaml", std::process::id()));
            let text = format!(
                "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n\
                 - plugins: {{multiPoint: {{enabled: [{{name: {NAME}}}]}}}}\n  pluginConfig: [{{name: {NAME}, args: {args}}}]\n"
            );
            std::fs::write(&path, text).expect("a temporary file");
            Self(path)
        }
    }

    impl Drop for ConfigFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn plugins() -> Registry {
        let mut plugins = kube_scheduler::plugins::registry();
        plugins.register(NAME, factory).expect("no in-tree plugin has the name");
        plugins
    }

    #[test]
    fn invalid_arguments_name_the_path_of_the_field() {
        let check = |args: &str, expected: &str| {
            let file = ConfigFile::new("refused", args);
            let simulation = SimulateArgs { config: Some(file.0.clone()), ..SimulateArgs::default() };
            let error = simulate(&simulation, plugins()).expect_err("the configuration is bad");
            assert_eq!(error.to_string(), format!("{}: {expected}", file.0.display()));
        };
        let field = "profiles[0].pluginConfig[0].args.zoneWeighting";
        check("{zoneWeighting: 1.5}", &format!("{field}: Invalid value: 1.5: not in valid range [0, 1]"));
        let place = "decoding .profiles[0].pluginConfig[0]: ";
        let wrong_type =
            "decoding args for plugin SelectorSpread: zoneWeighting: invalid type: string \"all\", expected f64";
        check("{zoneWeighting: all}", &format!("{place}{wrong_type}"));
        let unknown = "strict decoding error: decoding args for plugin SelectorSpread: strict decoding error: unknown field \
                       \"weight\"";
        check("{weight: 1}", &format!("strict decoding error: {place}{unknown}"));
    }

    #[test]
    fn defaults_are_in_the_effective_configuration() {
        let file = ConfigFile::new("defaults", "{}");
        let data = std::fs::read(&file.0).expect("the file is there");
        let config = Config::parse(&data, &FeatureGates::default(), plugins().catalog()).expect("it reads");
        let expected = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "SelectorSpreadArgs",
            "zoneWeighting": ZONE_WEIGHTING,
        });
        // `/configz` serves this object, and `--write-config-to` writes it.
        let effective = config.to_v1();
        let entries = effective["profiles"][0]["pluginConfig"].as_array().expect("a list");
        let entry = entries.iter().find(|entry| entry["name"] == NAME).expect("the plugin has an entry");
        assert_eq!(entry["args"], expected);
        let written = file.0.with_extension("written");
        let app = App::new().with_plugin(NAME, factory);
        let flags = [
            "kube-scheduler".to_owned(),
            format!("--config={}", file.0.display()),
            format!("--write-config-to={}", written.display()),
            "--secure-port=0".to_owned(),
            "--master=http://127.0.0.1:1".to_owned(),
        ];
        app.run_with(flags.map(Into::into));
        let text = std::fs::read_to_string(&written).expect("the configuration was written");
        std::fs::remove_file(&written).expect("the file can be removed");
        let written: Value = serde_yaml::from_str(&text).expect("YAML");
        assert_eq!(written, effective);
    }

    #[test]
    fn zone_weighting_argument_changes_scores() {
        let check = |zone_weighting: f64, expected: [i64; 3]| {
            let nodes = vec![node("a").zone("x"), node("b").zone("x"), node("c").zone("y")];
            let harness = Harness::with_args(SelectorSpreadArgs { zone_weighting }, factory);
            put(&harness.handle, service("default", "web", &json!({"app": "web"})));
            let scores = harness.cluster(nodes, &[web("1").on("a")]).score_all(&web("p")).expect("it scores");
            assert_eq!(scores.1, expected);
        };
        check(1.0, [0, 0, 100]);
        check(0.0, [0, 100, 100]);
    }
}
