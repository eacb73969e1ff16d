//! Test with seeded random operations. After about two of three operations, the incrementally updated snapshot is compared with a
//! snapshot that a simple model of upstream's rules builds from scratch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;

use super::super::{Cache, Counts, zone_key};
use crate::clock::Rng;
use crate::k8s::{Node, Pod};
use crate::model::{AffinityTerms, ImageState, LabelClass, NodeInfo, Occurrence, PodInfo, Snapshot};
use crate::testing::{node, pod};

const SEEDS: u64 = 1_000;
const STEPS: usize = 40;
const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];
const PODS: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// Model that the cache has to agree with. Holds plain maps and recomputes everything else from them.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<String, Arc<Node>>,
    /// Pods by name, and whether each is assumed.
    pods: BTreeMap<String, (Arc<PodInfo>, bool)>,
    /// Zones and their nodes, in order.
    tree: Vec<(String, Vec<String>)>,
    /// Size of each image, and the nodes that have it.
    images: BTreeMap<String, (i64, BTreeSet<String>)>,
    /// Nodes that changed since the last snapshot.
    changed: BTreeSet<String>,
    /// Nodes of the last snapshot, in order.
    order: Vec<String>,
    /// Image counts of each node in the last snapshot.
    snapshot_images: BTreeMap<String, Vec<(String, i64, usize)>>,
}

impl Model {
    fn tree_remove(&mut self, name: &str) {
        for (_, nodes) in &mut self.tree {
            nodes.retain(|other| other != name);
        }
        self.tree.retain(|(_, nodes)| !nodes.is_empty());
    }

    fn images_remove(&mut self, name: &str) {
        for (_, nodes) in self.images.values_mut() {
            nodes.remove(name);
        }
        self.images.retain(|_, (_, nodes)| !nodes.is_empty());
    }

    fn set_node(&mut self, node: &Arc<Node>) {
        let name = node.name().to_owned();
        let zone = zone_key(node);
        if self.nodes.get(&name).is_none_or(|old| zone_key(old) != zone) {
            self.tree_remove(&name);
            match self.tree.iter_mut().find(|(key, _)| *key == zone) {
                Some((_, nodes)) => nodes.push(name.clone()),
                None => self.tree.push((zone, vec![name.clone()])),
            }
        }
        self.images_remove(&name);
        for image in &node.status.images {
            for image_name in &image.names {
                let entry = self.images.entry(image_name.clone()).or_insert((image.size_bytes, BTreeSet::new()));
                entry.1.insert(name.clone());
            }
        }
        self.changed.insert(name.clone());
        self.nodes.insert(name, node.clone());
    }

    fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        self.tree_remove(name);
        self.images_remove(name);
    }

    /// Recomputes the content that a snapshot taken now must have.
    fn snapshot(&mut self) {
        let before: BTreeSet<&String> = self.order.iter().collect();
        if before != self.nodes.keys().collect() {
            let longest = self.tree.iter().map(|(_, nodes)| nodes.len()).max().unwrap_or(0);
            self.order = (0..longest)
                .flat_map(|turn| self.tree.iter().filter_map(move |(_, nodes)| nodes.get(turn).cloned()))
                .collect();
        }
        for name in std::mem::take(&mut self.changed) {
            let images = self.images.iter().filter(|(_, (_, nodes))| nodes.contains(&name));
            let images = images.map(|(image, (size, nodes))| (image.clone(), *size, nodes.len())).collect();
            self.snapshot_images.insert(name, images);
        }
    }

    fn check(&self, cache: &Cache, snapshot: &Snapshot) {
        let order: Vec<&str> = snapshot.nodes().iter().map(|node| node.name()).collect();
        assert_eq!(order, self.order);
        for info in snapshot.nodes() {
            let name = info.name();
            assert!(Arc::ptr_eq(info.node(), &self.nodes[name]), "{name} is not the newest");
            let images = info.images().iter();
            let images: Vec<(String, i64, usize)> = images.map(|i| (i.name.to_string(), i.size, i.num_nodes)).collect();
            assert_eq!(images, self.snapshot_images[name], "images of {name}");
            check_sums(info, &self.pods_on(name));
            let entry = cache.node(name).expect("it is known");
            assert_eq!(info.generation(), entry.generation());
            assert!(info.pods().iter().zip(entry.pods()).all(|(a, b)| Arc::ptr_eq(a, b)), "order of pods on {name}");
        }
        let claims = (0..4).map(|n| format!("default/c{n}"));
        for claim in claims {
            let used = self
                .order
                .iter()
                .any(|name| self.pods_on(name).iter().any(|pod| pod.claims().iter().any(|other| **other == *claim)));
            assert_eq!(snapshot.is_claim_used(&claim), used, "{claim}");
        }
        self.check_occurrences(snapshot);
        self.check_cache(cache);
    }

    /// Compares the snapshot's counts per label class and affinity term with counts made pod by pod.
    fn check_occurrences(&self, snapshot: &Snapshot) {
        let mut classes: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut terms: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (position, name) in self.order.iter().enumerate() {
            for pod in self.pods_on(name) {
                *classes.entry((pod.class().id().index(), position)).or_default() += 1;
                if let Some(set) = pod.affinity_terms() {
                    *terms.entry((set.number(), position)).or_default() += 1;
                }
            }
        }
        let of_class = |one: &Occurrence<LabelClass>| {
            let number = one.shared().id().index();
            one.nodes().map(move |(node, pods)| ((number, node.index()), pods)).collect::<Vec<_>>()
        };
        assert_eq!(snapshot.classes().flat_map(of_class).collect::<BTreeMap<_, _>>(), classes);
        let of_terms = |one: &Occurrence<AffinityTerms>| {
            let number = one.shared().number();
            one.nodes().map(move |(node, pods)| ((number, node.index()), pods)).collect::<Vec<_>>()
        };
        assert_eq!(snapshot.affinity_terms().flat_map(of_terms).collect::<BTreeMap<_, _>>(), terms);
    }

    fn check_cache(&self, cache: &Cache) {
        let with_pods = self.pods.values().filter_map(|(pod, _)| pod.pod().node_name());
        let entries: BTreeSet<&str> = self.nodes.keys().map(String::as_str).chain(with_pods).collect();
        let cached = cache.nodes();
        assert_eq!(cached.iter().map(|node| node.name()).collect::<BTreeSet<_>>(), entries);
        let assumed_pods = self.pods.values().filter(|(_, assumed)| *assumed).count();
        assert_eq!(cache.counts(), Counts { nodes: entries.len(), pods: self.pods.len(), assumed_pods });
        let pods: Vec<(String, bool)> =
            cache.pods().iter().map(|pod| (pod.pod.uid().to_owned(), pod.assumed)).collect();
        let expected: Vec<(String, bool)> =
            self.pods.iter().map(|(name, (_, assumed))| (name.clone(), *assumed)).collect();
        assert_eq!(pods, expected);
        for info in cached {
            check_sums(&info, &self.pods_on(info.name()));
        }
    }

    fn pods_on(&self, node: &str) -> Vec<Arc<PodInfo>> {
        self.pods.values().filter(|(pod, _)| pod.pod().node_name() == Some(node)).map(|(pod, _)| pod.clone()).collect()
    }
}

/// Compares all sums of an entry with those of a new entry to which the pods are added one by one.
fn check_sums(info: &NodeInfo, pods: &[Arc<PodInfo>]) {
    let mut fresh = NodeInfo::imaginary(info.name_arc().clone());
    for pod in pods {
        fresh.add_pod(pod.clone());
    }
    let uids = |pods: &[Arc<PodInfo>]| pods.iter().map(|pod| pod.uid().to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(uids(info.pods()), uids(fresh.pods()), "pods of {}", info.name());
    assert_eq!(info.pods().len(), pods.len());
    let terms = |info: &NodeInfo| -> Vec<(usize, usize)> {
        info.affinity_terms().iter().map(|count| (count.terms().number(), count.pods())).collect()
    };
    assert_eq!(terms(info), terms(&fresh));
    assert_eq!(info.used_ports(), fresh.used_ports());
    assert_eq!(info.non_zero_requested(), fresh.non_zero_requested());
    assert_eq!(info.claims().collect::<Vec<_>>(), fresh.claims().collect::<Vec<_>>());
    let (requested, expected) = (info.requested(), fresh.requested());
    assert_eq!(
        (requested.milli_cpu, requested.memory, requested.ephemeral_storage),
        (expected.milli_cpu, expected.memory, expected.ephemeral_storage)
    );
    // A scalar resource stays listed with 0 after its last pod.
    assert!(requested.scalars().all(|(name, amount)| amount == expected.scalar(name)));
    assert!(expected.scalars().all(|(name, amount)| amount == requested.scalar(name)));
}

fn random_node(rng: &mut Rng, name: &str) -> Arc<Node> {
    let zone = ["", "z1", "z2", "z3"][rng.index(4)];
    let mut fixture = if zone.is_empty() { node(name) } else { node(name).zone(zone) };
    for image in 0..3 {
        if rng.index(2) == 0 {
            fixture = fixture.image(&format!("image{image}"), 100 + i64::try_from(rng.index(2)).expect("small"));
        }
    }
    fixture.build()
}

fn random_pod(rng: &mut Rng, name: &str, node: &str) -> Arc<PodInfo> {
    let number: i32 = name[1..].parse().expect("a number");
    let mut fixture =
        pod(name).on(node).cpu(&format!("{}m", 1 + rng.index(500))).memory("64Mi").host_port(8000 + number);
    if rng.index(3) == 0 {
        fixture = fixture.request("example.com/gpu", "1");
    }
    if rng.index(3) == 0 {
        let claim = format!("c{}", rng.index(4));
        fixture = fixture.set("spec.volumes", json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]));
    }
    if rng.index(4) == 0 {
        let terms = if rng.index(2) == 0 { json!([]) } else { json!([{"topologyKey": "zone"}]) };
        fixture = fixture.set(
            "spec.affinity",
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}),
        );
    }
    fixture.info()
}

/// Runs one random operation on the cache and on the model.
fn step(rng: &mut Rng, cache: &Cache, model: &mut Model) {
    let node_name = NODES[rng.index(NODES.len())];
    let pod_name = PODS[rng.index(PODS.len())];
    let known = model.pods.get(pod_name).cloned();
    match (rng.index(10), known) {
        (0..=2, _) => {
            let node = random_node(rng, node_name);
            model.set_node(&node);
            cache.set_node(node);
        }
        (3, _) => {
            let outcome = cache.remove_node(&node(node_name).build());
            assert_eq!(outcome.is_ok(), model.nodes.contains_key(node_name));
            model.remove_node(node_name);
        }
        (4..=6, None) => {
            let pod = random_pod(rng, pod_name, node_name);
            let assumed = rng.index(2) == 0;
            if assumed {
                cache.assume_pod(pod.clone()).expect("it is new");
            } else {
                cache.add_pod(pod.clone()).expect("it is new");
            }
            put(model, pod, assumed);
        }
        (4..=6, Some((_, true))) => {
            let pod = random_pod(rng, pod_name, node_name);
            cache.add_pod(pod.clone()).expect("it was assumed");
            take(model, pod_name);
            put(model, pod, false);
        }
        (4..=6, Some((old, false))) => {
            let pod = random_pod(rng, pod_name, old.pod().node_name().expect("it has a node"));
            cache.update_pod(old.pod(), pod.clone()).expect("it was added");
            take(model, pod_name);
            put(model, pod, false);
        }
        (7, Some((old, assumed))) => {
            assert_eq!(cache.forget_pod(old.pod()).is_ok(), assumed);
            if assumed {
                take(model, pod_name);
            }
        }
        (_, Some((old, _))) => {
            cache.remove_pod(old.pod()).expect("it is known");
            take(model, pod_name);
        }
        (_, None) => {
            let absent: Arc<Pod> = pod(pod_name).on(node_name).build();
            assert!(cache.remove_pod(&absent).is_err() && cache.forget_pod(&absent).is_ok());
        }
    }
}

fn put(model: &mut Model, pod: Arc<PodInfo>, assumed: bool) {
    let node = pod.pod().node_name().expect("it has a node").to_owned();
    model.changed.insert(node);
    model.pods.insert(pod.name().to_owned(), (pod, assumed));
}

fn take(model: &mut Model, name: &str) {
    let (pod, _) = model.pods.remove(name).expect("it is known");
    model.changed.insert(pod.pod().node_name().expect("it has a node").to_owned());
}

#[test]
fn incremental_snapshots_agree_with_a_model() {
    for seed in 0..SEEDS {
        let outcome = std::panic::catch_unwind(|| {
            let mut rng = Rng::from_seed(seed);
            let (cache, mut model, mut snapshot) = (Cache::new(), Model::default(), Snapshot::default());
            let mut held = Vec::new();
            for _ in 0..STEPS {
                step(&mut rng, &cache, &mut model);
                if rng.index(3) > 0 {
                    cache.update_snapshot(&mut snapshot).expect("it is consistent");
                    model.snapshot();
                    model.check(&cache, &snapshot);
                    // Sometimes hold nodes of an earlier snapshot, so that they cannot be changed in place.
                    held = if rng.index(4) == 0 { snapshot.nodes().to_vec() } else { held };
                    if rng.index(4) == 0 {
                        held.clear();
                    }
                }
            }
        });
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn image_states_are_found_by_name() {
    let cache = Cache::new();
    let info = cache.set_node(node("a").image("y", 2).image("x", 1).build());
    assert_eq!(info.image("x"), Some(&ImageState { name: "x".into(), size: 1, num_nodes: 1 }));
    assert_eq!(info.image("z"), None);
}
