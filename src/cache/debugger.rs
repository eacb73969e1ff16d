//! The output for SIGUSR2: differences between the cache and the informers, and a dump of the cache.
//!
//! Follows `pkg/scheduler/backend/cache/debugger @v1.36.3`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::k8s::Pod;
use crate::model::{NodeInfo, PodInfo, Resources};

/// Differences between the cache and the informers. Both lists are sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mismatch {
    /// Names that the informers have and the cache lacks.
    pub missed: Vec<String>,
    /// Names that the cache has and the informers lack.
    pub redundant: Vec<String>,
}

impl Mismatch {
    /// Returns whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.missed.is_empty() && self.redundant.is_empty()
    }
}

/// Compares the names in a lister with the cached names. A name that occurs several times has to be cached as often. The names
/// are node names or pod UIDs. For pods, `cached` has the UIDs in the cache and in the queue.
/// Follows `pkg/scheduler/backend/cache/debugger/comparer.go#compareStrings @v1.36.3`.
pub fn compare<'a>(actual: impl IntoIterator<Item = &'a str>, cached: impl IntoIterator<Item = &'a str>) -> Mismatch {
    let mut balance: BTreeMap<&str, isize> = BTreeMap::new();
    for name in actual {
        *balance.entry(name).or_default() += 1;
    }
    for name in cached {
        *balance.entry(name).or_default() -= 1;
    }
    let mut mismatch = Mismatch::default();
    for (name, count) in balance {
        let list = if count > 0 { &mut mismatch.missed } else { &mut mismatch.redundant };
        list.extend(std::iter::repeat_n(name.to_owned(), count.unsigned_abs()));
    }
    mismatch
}

/// Formats the entries of the cache, separated by blank lines. `nominated` returns the pods that are nominated to a node.
/// Follows `pkg/scheduler/backend/cache/debugger/dumper.go#CacheDumper.printNodeInfo @v1.36.3`.
pub fn dump_nodes(nodes: &[Arc<NodeInfo>], nominated: impl Fn(&str) -> Vec<Arc<PodInfo>>) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| dump_node(node, &nominated(node.name()))).collect();
    nodes.join("\n\n")
}

fn dump_node(node: &NodeInfo, nominated: &[Arc<PodInfo>]) -> String {
    let mut text = format!(
        "Node name: {}\nDeleted: {}\nRequested Resources: {}\nAllocatable Resources:{}\nScheduled Pods(number: {}):\n{}",
        node.name(),
        node.try_node().is_none(),
        dump_resources(node.requested()),
        dump_resources(node.allocatable()),
        node.pods().len(),
        dump_pods(node.pods().iter().map(|pod| &**pod.pod())),
    );
    if !nominated.is_empty() {
        let pods = dump_pods(nominated.iter().map(|pod| &**pod.pod()));
        let _ = write!(text, "Nominated Pods(number: {}):\n{pods}", nominated.len());
    }
    text
}

/// Formats pods, one per line.
/// Follows `pkg/scheduler/backend/cache/debugger/dumper.go#printPod @v1.36.3`.
pub fn dump_pods<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> String {
    let mut text = String::new();
    for pod in pods {
        let _ = writeln!(
            text,
            "name: {}, namespace: {}, uid: {}, phase: {}, nominated node: {}",
            pod.name(),
            pod.namespace(),
            pod.uid(),
            pod.status.phase.as_deref().unwrap_or_default(),
            pod.nominated_node_name().unwrap_or_default(),
        );
    }
    text
}

/// Formats resources as Go's `%+v` prints a pointer to `pkg/scheduler/framework/types.go#Resource @v1.36.3`.
fn dump_resources(resources: &Resources) -> String {
    let scalars: Vec<String> = resources.scalars().map(|(name, amount)| format!("{name}:{amount}")).collect();
    format!(
        "&{{MilliCPU:{} Memory:{} EphemeralStorage:{} AllowedPodNumber:{} ScalarResources:map[{}]}}",
        resources.milli_cpu,
        resources.memory,
        resources.ephemeral_storage,
        resources.allowed_pods,
        scalars.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{node, pod};

    #[test]
    fn comparison_counts_repeated_names() {
        let check = |actual: &str, cached: &str, missed: &str, redundant: &str| {
            let mismatch = compare(actual.split_whitespace(), cached.split_whitespace());
            assert_eq!((mismatch.missed.join(" "), mismatch.redundant.join(" ")), (missed.into(), redundant.into()));
            assert_eq!(mismatch.is_empty(), missed.is_empty() && redundant.is_empty());
        };
        check("", "", "", "");
        check("b a", "a b", "", "");
        check("c a b", "b", "a c", "");
        check("a", "d a c", "", "c d");
        check("a b", "b c", "a", "c");
        check("a a b", "a b b", "a", "b");
    }

    #[test]
    fn node_dump_equals_upstreams() {
        let mut known = node("n").allocatable("example.com/gpu", "2").info();
        known.add_pod(pod("a").uid("u-a").on("n").set("status.phase", "Running".into()).info());
        let mut unknown = NodeInfo::imaginary("x".into());
        unknown.add_pod(pod("b").uid("u-b").on("x").nominated("y").info());
        let nominated = |name: &str| if name == "n" { vec![pod("c").uid("u-c").nominated("n").info()] } else { vec![] };
        let requested = dump_resources(known.requested());
        assert_eq!(
            dump_nodes(&[Arc::new(known), Arc::new(unknown)], nominated),
            format!(
                "Node name: n\nDeleted: false\nRequested Resources: {requested}\n\
                 Allocatable Resources:&{{MilliCPU:4000 Memory:8589934592 EphemeralStorage:0 AllowedPodNumber:110 \
                 ScalarResources:map[example.com/gpu:2]}}\n\
                 Scheduled Pods(number: 1):\n\
                 name: a, namespace: default, uid: u-a, phase: Running, nominated node: \n\
                 Nominated Pods(number: 1):\n\
                 name: c, namespace: default, uid: u-c, phase: , nominated node: n\n\
                 \n\n\
                 Node name: x\nDeleted: true\nRequested Resources: &{{MilliCPU:0 Memory:0 EphemeralStorage:0 \
                 AllowedPodNumber:0 ScalarResources:map[]}}\n\
                 Allocatable Resources:&{{MilliCPU:0 Memory:0 EphemeralStorage:0 AllowedPodNumber:0 \
                 ScalarResources:map[]}}\n\
                 Scheduled Pods(number: 1):\n\
                 name: b, namespace: default, uid: u-b, phase: , nominated node: y\n"
            )
        );
    }

    #[test]
    fn resources_are_formatted_as_go_does() {
        let mut resources = Resources::default();
        (resources.milli_cpu, resources.memory, resources.ephemeral_storage) = (1500, 2, 3);
        resources.add_scalar("b.com/x", 5);
        resources.add_scalar("a.com/x", 4);
        assert_eq!(
            dump_resources(&resources),
            "&{MilliCPU:1500 Memory:2 EphemeralStorage:3 AllowedPodNumber:0 ScalarResources:map[a.com/x:4 b.com/x:5]}"
        );
    }
}
