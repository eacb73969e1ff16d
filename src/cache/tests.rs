//! Tests of the cache's public interface: scripted cases, then random operations against a simple model of upstream's rules.

use std::sync::Arc;

use super::{Cache, CacheError, Counts, PodAdded};
use crate::k8s::Pod;
use crate::model::Snapshot;
use crate::testing::{node, pod};

mod random;
mod timing;

/// Runs one operation: `node a`, `node a z1` (in a zone), `-node a`, `add p@a`, `update p@a>p@b`, `remove p@a`, `assume p@a`
/// or `forget p@a`. `p@` is a pod without a node.
fn step(cache: &Cache, step: &str) -> Result<Option<PodAdded>, CacheError> {
    let (verb, rest) = step.split_once(' ').expect("a verb and its object");
    let parse = |text: &str| {
        let (name, node) = text.split_once('@').expect("pod@node");
        if node.is_empty() { pod(name) } else { pod(name).on(node) }
    };
    match verb {
        "node" => {
            let (name, zone) = rest.split_once(' ').map_or((rest, None), |(name, zone)| (name, Some(zone)));
            let node = node(name);
            let node = zone.map_or(node.clone(), |zone| node.zone(zone)).build();
            let info = cache.set_node(node);
            assert_eq!(info.name(), name);
        }
        "-node" => cache.remove_node(&node(rest).build())?,
        "add" => return cache.add_pod(parse(rest).info()).map(Some),
        "update" => {
            let (old, new) = rest.split_once('>').expect("old>new");
            cache.update_pod(&parse(old).build(), parse(new).info())?;
        }
        "remove" => cache.remove_pod(&parse(rest).build())?,
        "assume" => cache.assume_pod(parse(rest).info())?,
        "forget" => cache.forget_pod(&parse(rest).build())?,
        other => panic!("no such step: {other}"),
    }
    Ok(None)
}

/// Prints the entries with their pods, such as `a[p q*] x?[r]`: `?` marks an entry without a node, `*` an assumed pod.
fn print(cache: &Cache) -> String {
    let pods = cache.pods();
    let assumed = |uid: &str| pods.iter().any(|pod| pod.pod.uid() == uid && pod.assumed);
    let entries = cache.nodes();
    let entries = entries.iter().map(|node| {
        let pods: Vec<String> = node
            .pods()
            .iter()
            .map(|pod| format!("{}{}", pod.name(), if assumed(pod.uid()) { "*" } else { "" }))
            .collect();
        format!("{}{}[{}]", node.name(), if node.try_node().is_none() { "?" } else { "" }, pods.join(" "))
    });
    entries.collect::<Vec<_>>().join(" ")
}

/// Runs steps, of which all but the last have to succeed. Compares the error of the last step (empty if it succeeds), and the
/// entries afterwards.
#[track_caller]
fn check(steps: &str, error: &str, expected: &str) {
    let cache = Cache::new();
    let mut steps: Vec<&str> = steps.split(';').map(str::trim).collect();
    let last = steps.pop().expect("a step");
    for earlier in steps {
        step(&cache, earlier).unwrap_or_else(|error| panic!("{earlier}: {error}"));
    }
    let outcome = step(&cache, last).err().map_or(String::new(), |error| error.to_string());
    assert_eq!((outcome.as_str(), print(&cache).as_str()), (error, expected));
}

fn order(snapshot: &Snapshot) -> String {
    snapshot.nodes().iter().map(|node| node.name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn assume_adds_a_pod_that_is_not_cached() {
    check("node a; assume p@a", "", "a[p*]");
    check("assume p@a", "", "a?[p*]");
    let error = "pod p(default/p) is in the cache, so can't be assumed";
    check("node a; assume p@a; assume p@a", error, "a[p*]");
    check("node a; add p@a; assume p@b", error, "a[p]");
}

#[test]
fn forget_removes_only_an_assumed_pod() {
    check("node a; assume p@a; forget p@a", "", "a[]");
    check("assume p@a; forget p@a", "", "");
    check("node a; forget p@a", "", "a[]");
    check("node a; assume p@a; forget p@b", "pod p(default/p) was assumed on b but assigned to a", "a[p*]");
    check("node a; assume p@a; forget p@", "pod p(default/p) was assumed on  but assigned to a", "a[p*]");
    check("node a; add p@a; forget p@a", "pod p(default/p) wasn't assumed so cannot be forgotten", "a[p]");
}

#[test]
fn add_confirms_an_assumed_pod() {
    check("node a; add p@a", "", "a[p]");
    check("node a; assume p@a; add p@a", "", "a[p]");
    check("node a; node b; assume p@a; add p@b", "", "a[] b[p]");
    check("assume p@a; add p@b", "", "b?[p]");
    check("node a; add p@a; add p@a", "pod p(default/p) was already in added state", "a[p]");
}

#[test]
fn add_returns_the_previous_state_of_the_pod() {
    let check = |steps: &str, expected: PodAdded| {
        let cache = Cache::new();
        let outcomes = steps.split("; ").map(|text| step(&cache, text).expect("no step fails"));
        assert_eq!(outcomes.last().flatten(), Some(expected), "{steps}");
    };
    check("add p@a", PodAdded::New);
    check("assume p@a; add p@a", PodAdded::Confirmed);
    check("assume p@a; add p@b", PodAdded::Moved { assumed: "a".into() });
}

#[test]
fn update_replaces_only_a_confirmed_pod() {
    check("node a; add p@a; add q@a; update p@a>p@a", "", "a[q p]");
    check("node a; add p@a; update p@a>q@a", "", "a[q]");
    check("node a; update p@a>p@a", "pod p(default/p) is not added to scheduler cache, so cannot be updated", "a[]");
    check("node a; assume p@a; update p@a>p@a", "assumed pod p(default/p) should not be updated", "a[p*]");
    check("node a; add p@a; add q@a; update p@a>q@a", "pod q(default/q) was already in added state", "a[p q]");
}

#[test]
fn remove_removes_assumed_and_confirmed_pods() {
    check("node a; add p@a; add q@a; add r@a; remove p@a", "", "a[r q]");
    check("node a; assume p@a; remove p@a", "", "a[]");
    check("node a; add p@a; remove p@", "", "a[]");
    check(
        "node a; remove p@a",
        "pod p(default/p) is not found in scheduler cache, so cannot be removed from it",
        "a[]",
    );
}

#[test]
fn changed_node_of_a_pod_is_fatal() {
    let check = |last: &str, expected: &str| {
        let cache = Cache::new();
        for earlier in ["node a", "node b", "add p@a"] {
            step(&cache, earlier).expect("it is new");
        }
        let error = step(&cache, last).expect_err("the node differs");
        assert!(error.is_fatal() && error.to_string().starts_with(expected), "{error}");
        assert_eq!(print(&cache), "a[p] b[]");
    };
    let corrupted = "Scheduler cache is corrupted and can badly affect scheduling decisions";
    check("update p@a>p@b", &format!("Pod updated on a different node than previously added to. {corrupted}"));
    check("update p@a>p@", &format!("Pod updated on a different node than previously added to. {corrupted}"));
    check("remove p@b", &format!("Pod was added to a different node than it was assumed. {corrupted}"));
    assert!(!CacheError::EmptyUid.is_fatal());
}

#[test]
fn pods_without_uid_are_rejected() {
    let cache = Cache::new();
    let nameless = pod("p").uid("").on("a");
    let check = |outcome: Result<(), CacheError>| assert_eq!(outcome, Err(CacheError::EmptyUid));
    check(cache.assume_pod(nameless.clone().info()));
    check(cache.add_pod(nameless.clone().info()).map(drop));
    check(cache.update_pod(&nameless.clone().build(), pod("p").info()));
    check(cache.forget_pod(&nameless.clone().build()));
    check(cache.remove_pod(&nameless.clone().build()));
    check(cache.is_assumed(&nameless.clone().build()).map(drop));
    check(cache.get_pod(&nameless.build()).map(drop));
    assert_eq!(cache.counts(), Counts::default());
}

#[test]
fn an_entry_without_a_node_lasts_as_long_as_its_pods() {
    // Pods may arrive before their node, and may be deleted after it.
    check("add p@a; node a", "", "a[p]");
    check("add p@a; remove p@a", "", "");
    check("node a; add p@a; -node a", "", "a?[p]");
    check("node a; add p@a; -node a; remove p@a", "", "");
    check("node a; add p@a; -node a; node a", "", "a[p]");
    check("node a; -node a", "", "");
    check("-node a", "node a is not found", "");
    check("add p@a; -node a", r#"node "a" in group "" was not found"#, "a?[p]");
    check("node a; add p@a; -node a; -node a", r#"node "a" in group "" was not found"#, "a?[p]");
}

#[test]
fn entries_without_a_node_are_in_no_snapshot() {
    let cache = Cache::new();
    let mut snapshot = Snapshot::default();
    let mut check = |text: &str, expected: &str| {
        step(&cache, text).expect("no step fails");
        cache.update_snapshot(&mut snapshot).expect("it is consistent");
        assert_eq!(order(&snapshot), expected, "{text}");
    };
    check("add p@a", "");
    check("node b", "b");
    check("node a", "b a");
    check("-node a", "b");
    check("add q@a", "b");
    check("remove p@a", "b");
    check("node a", "b a");
}

#[test]
fn snapshot_order_is_round_robin_over_zones() {
    let cache = Cache::new();
    let mut snapshot = Snapshot::default();
    let mut check = |steps: &str, expected: &str| {
        for text in steps.split("; ") {
            step(&cache, text).expect("no step fails");
        }
        cache.update_snapshot(&mut snapshot).expect("it is consistent");
        assert_eq!(order(&snapshot), expected, "{steps}");
    };
    check("node a z1; node b z1; node c z2; node d z1; node e z3", "a c e b d");
    // A node that changes its zone keeps its position in the list …
    check("node a z2", "a c e b d");
    // … until a node is added or removed. Then it is the last node of its new zone.
    check("node f z3", "b c e d a f");
    check("-node e", "b c f d a");
}

#[test]
fn later_changes_do_not_affect_a_snapshot() {
    let cache = Cache::new();
    let mut snapshot = Snapshot::default();
    for text in ["node a", "node b", "add p@a"] {
        step(&cache, text).expect("no step fails");
    }
    cache.update_snapshot(&mut snapshot).expect("it is consistent");
    let (a, b) = (snapshot.nodes()[0].clone(), snapshot.nodes()[1].clone());
    step(&cache, "assume q@a").expect("it is new");
    assert_eq!(snapshot.nodes()[0].pods().len(), 1);
    cache.update_snapshot(&mut snapshot).expect("it is consistent");
    assert_eq!((a.pods().len(), snapshot.nodes()[0].pods().len()), (1, 2));
    assert!(Arc::ptr_eq(&b, &snapshot.nodes()[1]), "an entry that did not change is not copied");
}

#[test]
fn small_changes_update_the_snapshot_in_place() {
    let cache = Cache::new();
    let mut snapshot = Snapshot::default();
    let mut check = |steps: &str, pods: usize, in_place: bool| {
        let before = snapshot.get("a").map(Arc::as_ptr);
        for text in steps.split("; ") {
            step(&cache, text).expect("no step fails");
        }
        cache.update_snapshot(&mut snapshot).expect("it is consistent");
        let after = snapshot.get("a").expect("it is known");
        assert_eq!((after.pods().len(), before == Some(Arc::as_ptr(after))), (pods, in_place), "{steps}");
    };
    check("node a; add p@a", 1, false);
    check("assume q@a", 2, true);
    check("assume r@a; forget q@a; node a z1", 2, true);
    // More changes than the log holds: the whole entry is shared instead.
    check("add 1@a; add 2@a; add 3@a; add 4@a; add 5@a; add 6@a; add 7@a; add 8@a; add 9@a", 11, false);
    check("remove 1@a", 10, true);
}

#[test]
fn an_inconsistent_snapshot_is_rebuilt_and_reported() {
    let cache = Cache::new();
    for text in ["node a", "add p@x", "node b"] {
        step(&cache, text).expect("no step fails");
    }
    let mut snapshot = Snapshot::default();
    snapshot.set_generation(1_000);
    let error = cache.update_snapshot(&mut snapshot).expect_err("it lacks both nodes");
    assert_eq!(
        error.to_string(),
        "snapshot state is not consistent, length of NodeInfoList=0 not equal to length of nodes in tree=2 , length of \
         NodeInfoMap=0, length of nodes in cache=3, trying to recover"
    );
    assert_eq!(order(&snapshot), "a b");
    assert_eq!(cache.update_snapshot(&mut snapshot), Ok(()));
}

#[test]
fn pods_are_found_by_uid() {
    let cache = Cache::new();
    for text in ["node a", "assume p@a", "add q@x"] {
        step(&cache, text).expect("no step fails");
    }
    let check = |name: &str, assumed: bool, found: Result<&str, &str>| {
        let pod: Arc<Pod> = pod(name).build();
        assert_eq!(cache.is_assumed(&pod), Ok(assumed));
        let node = cache.get_pod(&pod).map(|pod| pod.pod().node_name().unwrap_or_default().to_owned());
        assert_eq!(node.as_deref().map_err(ToString::to_string), found.map_err(str::to_owned));
    };
    check("p", true, Ok("a"));
    check("q", false, Ok("x"));
    check("r", false, Err("pod r(default/r) does not exist in scheduler cache"));
    assert_eq!(cache.counts(), Counts { nodes: 2, pods: 2, assumed_pods: 1 });
    let pods: Vec<(String, String, bool)> = cache
        .pods()
        .iter()
        .map(|cached| (cached.pod.uid().to_owned(), cached.node.to_string(), cached.assumed))
        .collect();
    assert_eq!(pods, [("p".into(), "a".into(), true), ("q".into(), "x".into(), false)]);
}

/// Runs steps: `a x:10 y:20` sets node a with its images, `-a` removes it, `+a` adds a pod to it, `|` takes a snapshot. Then
/// compares the images of each node in the snapshot. In `a(x:10*2)`, node a has image x, whose size is 10 and which is on two
/// nodes.
#[track_caller]
fn check_images(steps: &str, expected: &str) {
    let cache = Cache::new();
    let mut snapshot = Snapshot::default();
    for (at, text) in steps.split(',').map(str::trim).enumerate() {
        if text == "|" {
            cache.update_snapshot(&mut snapshot).expect("it is consistent");
        } else if let Some(name) = text.strip_prefix('-') {
            cache.remove_node(&node(name).build()).expect("it is known");
        } else if let Some(name) = text.strip_prefix('+') {
            cache.assume_pod(pod(&format!("p{at}")).on(name).info()).expect("it is new");
        } else {
            let mut words = text.split_whitespace();
            let fixture = node(words.next().expect("a name"));
            let fixture = words.fold(fixture, |node, image| {
                let (name, size) = image.split_once(':').expect("name:size");
                node.image(name, size.parse().expect("a number"))
            });
            cache.set_node(fixture.build());
        }
    }
    cache.update_snapshot(&mut snapshot).expect("it is consistent");
    let nodes = snapshot.nodes().iter().map(|node| {
        let images: Vec<String> =
            node.images().iter().map(|image| format!("{}:{}*{}", image.name, image.size, image.num_nodes)).collect();
        format!("{}({})", node.name(), images.join(" "))
    });
    assert_eq!(nodes.collect::<Vec<_>>().join(" "), expected, "{steps}");
}

#[test]
fn image_sizes_and_counts_follow_the_nodes() {
    check_images("a y:2 x:1", "a(x:1*1 y:2*1)");
    // The size reported by the first node is used as long as any node has the image.
    check_images("a x:1, b x:2", "a(x:1*2) b(x:1*2)");
    check_images("a x:1, b x:2, -a", "b(x:1*1)");
    check_images("a x:1, b x:2, -a, b x:2", "b(x:2*1)");
    check_images("a x:1, a x:3", "a(x:3*1)");
    check_images("a x:1 x:5", "a(x:1*1)");
    check_images("a x:1, -a, b x:2", "b(x:2*1)");
    // Counts are updated when the node's entry changes.
    check_images("a x:1, |, b x:1", "a(x:1*1) b(x:1*2)");
    check_images("a x:1, |, b x:1, |, +a", "a(x:1*2) b(x:1*2)");
    check_images("a x:1, b x:1, |, -b", "a(x:1*2)");
    check_images("a x:1, b x:1, |, b", "a(x:1*2) b()");
    check_images("a x:1, b x:1, |, b y:7, a x:1", "a(x:1*1) b(y:7*1)");
    // Images of a removed node are not counted while only its pods are left, and are counted again once it is back.
    check_images("a x:1, +a, b x:1, -a", "b(x:1*1)");
    check_images("a x:1, +a, b x:1, -a, a x:4", "b(x:1*2) a(x:1*2)");
}
