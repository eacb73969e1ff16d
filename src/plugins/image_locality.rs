//! `ImageLocality`: prefers nodes that already have the pod's images.
//!
//! Follows `pkg/scheduler/framework/plugins/imagelocality/image_locality.go @v1.36.3`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::json;
use crate::framework::{
    CycleContext, Handle, MAX_NODE_SCORE, NodeRef, NodeScores, Plugin, PluginError, Registration, ScorePlugin, Scratch,
    SignOutcome, SignPlugin,
};
use crate::k8s::{Pod, VolumeSource, normalized_image_name};
use crate::model::{ImageState, NodeInfo, PodInfo};

/// Name of the plugin.
pub const NAME: &str = "ImageLocality";

/// 1 MiB in bytes.
const MIB: i64 = 1024 * 1024;

/// Total image size, in bytes, below which images do not count.
/// Follows `pkg/scheduler/framework/plugins/imagelocality/image_locality.go#minThreshold @v1.36.3`.
const MIN_THRESHOLD: i64 = 23 * MIB;

/// Upper limit of the counted image size, in bytes per container.
/// Follows `pkg/scheduler/framework/plugins/imagelocality/image_locality.go#maxContainerThreshold @v1.36.3`.
const MAX_CONTAINER_THRESHOLD: i64 = 1000 * MIB;

/// The in-tree plugin `ImageLocality`.
#[derive(Debug)]
pub struct ImageLocality;

/// The images of a pod, with normalized names as in the status of nodes.
struct Images {
    names: Vec<String>,
    num_containers: usize,
    /// Number of nodes in the cluster.
    num_nodes: usize,
}

impl ImageLocality {
    /// Builds the plugin for a profile.
    pub fn factory(_args: (), _handle: &Handle) -> Result<Registration, PluginError> {
        let plugin = Arc::new(Self);
        Ok(Registration::new(NAME).sign(&plugin).score(&plugin))
    }
}

impl Images {
    fn new(cx: &CycleContext<'_>) -> Self {
        let spec = &cx.pod.pod().spec;
        let volumes = spec.volumes.iter().filter_map(|volume| match &volume.source {
            VolumeSource::Image { reference, .. } => Some(reference.as_str()),
            _ => None,
        });
        Self {
            names: container_images(cx.pod.pod())
                .chain(volumes)
                .map(|name| normalized_image_name(name).into_owned())
                .collect(),
            num_containers: spec.init_containers.len() + spec.containers.len(),
            num_nodes: cx.snapshot.len(),
        }
    }

    fn score(&self, node: &NodeInfo) -> i64 {
        if node.images().is_empty() {
            return 0;
        }
        let present = self.names.iter().filter_map(|name| node.image(name));
        let sum = present.fold(0_i64, |sum, image| sum.wrapping_add(scaled_size(image, self.num_nodes)));
        priority(sum, self.num_containers)
    }
}

/// Returns the size of an image, scaled by the share of nodes that have it. The scaling keeps pods with the same image from
/// crowding on the few nodes that have it.
/// Follows `pkg/scheduler/framework/plugins/imagelocality/image_locality.go#scaledImageScore @v1.36.3`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "upstream computes with the same types"
)]
fn scaled_size(image: &ImageState, num_nodes: usize) -> i64 {
    let spread = image.num_nodes as f64 / num_nodes as f64;
    (image.size as f64 * spread) as i64
}

/// Returns the score for this sum of scaled image sizes. As in upstream, `max` is below `MIN_THRESHOLD` for a pod without
/// containers.
/// Follows `pkg/scheduler/framework/plugins/imagelocality/image_locality.go#calculatePriority @v1.36.3`.
fn priority(sum: i64, num_containers: usize) -> i64 {
    let max = MAX_CONTAINER_THRESHOLD.wrapping_mul(i64::try_from(num_containers).unwrap_or(i64::MAX));
    let sum = if sum < MIN_THRESHOLD { MIN_THRESHOLD } else { sum.min(max) };
    MAX_NODE_SCORE.wrapping_mul(sum - MIN_THRESHOLD) / (max - MIN_THRESHOLD)
}

fn container_images(pod: &Pod) -> impl Iterator<Item = &str> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    containers.map(|container| container.image.as_deref().unwrap_or_default())
}

impl Plugin for ImageLocality {
    fn name(&self) -> &str {
        NAME
    }
}

impl ScorePlugin for ImageLocality {
    fn score(&self, cx: &CycleContext<'_>, node: NodeRef<'_>, _scratch: Option<&Scratch>) -> Result<i64, PluginError> {
        Ok(Images::new(cx).score(&node))
    }

    fn score_block(&self, cx: &CycleContext<'_>, scores: &mut NodeScores<'_>) -> Result<(), PluginError> {
        let images = Images::new(cx);
        for (node, score) in scores.nodes.iter().zip(scores.scores.iter_mut()) {
            *score = images.score(node);
        }
        Ok(())
    }
}

impl SignPlugin for ImageLocality {
    fn sign(&self, pod: &PodInfo) -> Result<SignOutcome, PluginError> {
        let names: BTreeSet<String> =
            container_images(pod.pod()).map(|name| normalized_image_name(name).into_owned()).collect();
        Ok(SignOutcome::Fragments(vec![json::image_names(&names)]))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Clock;
    use crate::framework::CycleState;
    use crate::model::Snapshot;
    use crate::testing::{PodFixture, node, pod};

    #[test]
    fn untagged_image_names_get_latest() {
        let check = |name: &str, expected: &str| assert_eq!(normalized_image_name(name), expected);
        check("root", "root:latest");
        check("root:tag", "root:tag");
        check("registry.example:5000/root", "registry.example:5000/root:latest");
        check("registry.example:5000/root:tag", "registry.example:5000/root:tag");
        check("root@sha256:abc", "root@sha256:abc");
        check("", ":latest");
    }

    #[test]
    fn image_sizes_are_scaled_by_spread() {
        let check = |size: i64, num_nodes: usize, all: usize, expected: i64| {
            let image = ImageState { name: Arc::from("a"), size, num_nodes };
            assert_eq!(scaled_size(&image, all), expected, "{size} on {num_nodes} of {all}");
        };
        check(100 * MIB, 1, 2, 50 * MIB);
        check(100, 1, 3, 33);
        check(7, 3, 3, 7);
        check(0, 1, 3, 0);
    }

    #[test]
    fn size_sums_are_clamped() {
        let check = |sum: i64, containers: usize, expected: i64| {
            assert_eq!(priority(sum, containers), expected, "{sum} {containers}");
        };
        check(0, 1, 0);
        check(MIN_THRESHOLD, 1, 0);
        check(MAX_CONTAINER_THRESHOLD, 1, 100);
        check(MAX_CONTAINER_THRESHOLD, 2, 49);
        check(5 * MAX_CONTAINER_THRESHOLD, 2, 100);
        check(0, 0, 0);
        check(MIN_THRESHOLD, 0, 100);
        check(MAX_CONTAINER_THRESHOLD, 0, 100);
    }

    #[test]
    fn all_images_of_the_pod_count_each_time() {
        let images: Arc<[ImageState]> = ["a:latest", "b:1", "v:latest"]
            .map(|name| ImageState { name: Arc::from(name), size: 250 * MIB, num_nodes: 1 })
            .into();
        let mut info = node("n").info();
        info.set_images(images);
        let check = |pod: PodFixture, expected: i64| {
            let (pod, mut state) = (pod.info(), CycleState::default());
            let snapshot = Snapshot::from_nodes(vec![Arc::new(info.clone())]);
            let cx = CycleContext { pod: &pod, snapshot: &snapshot, state: &mut state, now: Clock::real().now() };
            let (nodes, mut scores) = ([NodeRef::outside(&info); 2], [-1; 2]);
            let mut list = NodeScores { nodes: &nodes, scores: &mut scores, scratch: &[] };
            ImageLocality.score_block(&cx, &mut list).expect("does not fail");
            assert_eq!(scores, [expected; 2]);
            assert_eq!(ImageLocality.score(&cx, nodes[0], None), Ok(expected));
        };
        let part = |times: i64, containers: i64| {
            100 * (times * 250 * MIB - MIN_THRESHOLD) / (containers * MAX_CONTAINER_THRESHOLD - MIN_THRESHOLD)
        };
        check(pod("p").image("other"), 0);
        check(pod("p").image("a"), part(1, 1));
        check(pod("p").image("b"), 0);
        let init = json!([{"name": "i", "image": "b:1"}, {"name": "j", "image": "b:1"}]);
        check(pod("p").image("a").set("spec.initContainers", init), part(3, 3));
        let volumes = json!([{"name": "v", "image": {"reference": "v"}}, {"name": "w", "emptyDir": {}}]);
        check(pod("p").image("a").set("spec.volumes", volumes), part(2, 1));
    }

    #[test]
    fn score_is_exact_at_the_byte_boundary() {
        let check = |size: i64, expected: i64| {
            let mut info = node("n").info();
            info.set_images([ImageState { name: Arc::from("a:latest"), size, num_nodes: 1 }].into());
            let (pod, mut state) = (pod("p").image("a").info(), CycleState::default());
            let snapshot = Snapshot::from_nodes(vec![Arc::new(info.clone())]);
            let cx = CycleContext { pod: &pod, snapshot: &snapshot, state: &mut state, now: Clock::real().now() };
            assert_eq!(ImageLocality.score(&cx, NodeRef::outside(&info), None), Ok(expected), "{size}");
        };
        let hundredth = (MAX_CONTAINER_THRESHOLD - MIN_THRESHOLD) / 100;
        check(MIN_THRESHOLD + hundredth, 0);
        check(MIN_THRESHOLD + hundredth + 1, 1);
    }

    #[test]
    fn nodes_without_images_score_zero() {
        let (pod, mut state, info) = (pod("p").image("a").info(), CycleState::default(), node("n").info());
        let snapshot = Snapshot::from_nodes(vec![Arc::new(info.clone())]);
        let cx = CycleContext { pod: &pod, snapshot: &snapshot, state: &mut state, now: Clock::real().now() };
        assert_eq!(ImageLocality.score(&cx, NodeRef::outside(&info), None), Ok(0));
    }

    #[test]
    fn signature_has_unique_images_without_volumes() {
        let init = json!([{"name": "i", "image": "b:1"}, {"name": "j", "image": "a:latest"}]);
        let volumes = json!([{"name": "v", "image": {"reference": "v"}}]);
        let info = pod("p").image("a").set("spec.initContainers", init).set("spec.volumes", volumes).info();
        let Ok(SignOutcome::Fragments(fragments)) = ImageLocality.sign(&info) else { panic!("not signed") };
        let [(name, fragment)] = fragments.as_slice() else { panic!("one fragment") };
        assert_eq!((*name, fragment.as_str()), ("v1.Pod.Spec.CanonicalImageNames()", r#"["a:latest","b:1"]"#));
    }
}
