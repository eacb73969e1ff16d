//! A node with its pods and the totals over them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;

use super::class_count::{ClassCount, ClassCounts};
use super::term_count::{TermCount, TermCounts};
use super::{HostPorts, NonZeroRequest, PodInfo, Resources};
use crate::k8s::Node;

/// An image on a node, with the data that image locality scoring needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageState {
    /// One of the names of the image.
    pub name: Arc<str>,
    /// Size in bytes, as the first node that has the image reported it.
    pub size: i64,
    /// Number of nodes that had the image when the entry of this node last changed.
    pub num_nodes: usize,
}

/// A node with its pods and the totals over them. Plugins read it through accessors only, so its layout can change.
/// Follows `pkg/scheduler/framework/types.go#NodeInfo @v1.36.3`.
///
/// The fields that every cycle reads of every node come first, so that they share few cache lines.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct NodeInfo {
    allocatable: Resources,
    requested: Resources,
    non_zero_requested: NonZeroRequest,
    pods: Vec<Arc<PodInfo>>,
    /// Images on the node, sorted by name.
    images: Arc<[ImageState]>,
    /// Copied from `node`, like `has_taints`, so that most cycles need not follow the pointer to the node.
    is_unschedulable: bool,
    has_taints: bool,
    node: Option<Arc<Node>>,
    name: Arc<str>,
    classes: ClassCounts,
    affinity_terms: TermCounts,
    used_ports: HostPorts,
    /// Number of pods on the node that use each claim, by `namespace/claim`, sorted.
    claim_refs: Vec<(Arc<str>, usize)>,
    generation: u64,
}

impl NodeInfo {
    /// Returns an entry for a node that has pods but is not known yet.
    pub fn imaginary(name: Arc<str>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Returns an entry for `node` without pods.
    pub fn new(node: Arc<Node>) -> Self {
        let mut info = Self::imaginary(Arc::from(node.name()));
        info.set_node(node);
        info
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node's name as a shared string.
    pub fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    /// The node as the API has it.
    ///
    /// # Panics
    ///
    /// Panics if the node is not known. Such an entry is never in a snapshot.
    pub fn node(&self) -> &Arc<Node> {
        self.node.as_ref().expect("nodes in a snapshot are known")
    }

    /// The node, or `None` if it is not known yet or was deleted.
    pub fn try_node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Whether the node is marked unschedulable.
    pub fn is_unschedulable(&self) -> bool {
        self.is_unschedulable
    }

    /// The taints of the node.
    pub fn taints(&self) -> &[Taint] {
        if self.has_taints { &self.node().spec.taints } else { &[] }
    }

    /// The pods on the node, in no stable order.
    pub fn pods(&self) -> &[Arc<PodInfo>] {
        &self.pods
    }

    /// Number of pods on the node, by label class.
    pub fn classes(&self) -> &[ClassCount] {
        self.classes.as_slice()
    }

    /// Number of pods on the node, by set of affinity terms.
    pub fn affinity_terms(&self) -> &[TermCount] {
        self.affinity_terms.as_slice()
    }

    /// The host ports in use on the node.
    pub fn used_ports(&self) -> &HostPorts {
        &self.used_ports
    }

    /// Sum of the requests of the pods on the node.
    pub fn requested(&self) -> &Resources {
        &self.requested
    }

    /// Sum of the pods' requests as scoring counts them: upstream's defaults replace missing CPU and memory requests.
    pub fn non_zero_requested(&self) -> NonZeroRequest {
        self.non_zero_requested
    }

    /// The node's allocatable resources.
    pub fn allocatable(&self) -> &Resources {
        &self.allocatable
    }

    /// The state of image `name`, or `None` if the node does not have it.
    pub fn image(&self, name: &str) -> Option<&ImageState> {
        self.images.binary_search_by(|image| (*image.name).cmp(name)).ok().map(|at| &self.images[at])
    }

    /// The images on the node, sorted by name.
    pub fn images(&self) -> &[ImageState] {
        &self.images
    }

    /// The images on the node as a shared slice, sorted by name.
    pub fn images_arc(&self) -> &Arc<[ImageState]> {
        &self.images
    }

    /// Number of pods on the node that use claim `namespace/name`.
    pub fn claim_users(&self, claim: &str) -> usize {
        self.claim_refs.binary_search_by(|(key, _)| (**key).cmp(claim)).map_or(0, |at| self.claim_refs[at].1)
    }

    /// The claims in use on the node, as `namespace/name`, sorted.
    pub fn claims(&self) -> impl ExactSizeIterator<Item = &str> {
        self.claim_refs.iter().map(|(key, _)| &**key)
    }

    /// The claims in use on the node as shared strings, sorted.
    pub(super) fn claim_arcs(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.claim_refs.iter().map(|(key, _)| key)
    }

    /// The generation of the entry. It grows with every change.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Sets the generation after a change.
    pub fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// Sets the images on the node, which must be sorted by name.
    pub fn set_images(&mut self, images: Arc<[ImageState]>) {
        debug_assert!(images.is_sorted_by(|a, b| a.name <= b.name), "images are looked up by bisection");
        self.images = images;
    }

    /// Sets or replaces the node.
    pub fn set_node(&mut self, node: Arc<Node>) {
        self.allocatable = Resources::from_list(&node.status.allocatable);
        (self.is_unschedulable, self.has_taints) = (node.spec.unschedulable, !node.spec.taints.is_empty());
        self.node = Some(node);
    }

    /// Removes the node but keeps its pods.
    pub fn remove_node(&mut self) {
        self.node = None;
        (self.is_unschedulable, self.has_taints) = (false, false);
    }

    /// Adds a pod to the node and its totals.
    pub fn add_pod(&mut self, pod: Arc<PodInfo>) {
        self.classes.add(&pod);
        self.affinity_terms.add(&pod);
        self.requested.add(pod.requests());
        self.non_zero_requested.add(pod.non_zero_request());
        for port in pod.host_ports() {
            self.used_ports.add(port);
        }
        for claim in pod.claims() {
            match self.claim_refs.binary_search_by(|(key, _)| key.cmp(claim)) {
                Ok(at) => self.claim_refs[at].1 += 1,
                Err(at) => self.claim_refs.insert(at, (claim.clone(), 1)),
            }
        }
        self.pods.push(pod);
    }

    /// Removes the pod with this UID from the node. Returns the pod, or `None` if it is not on the node. The last pod in the list
    /// takes the place of the removed pod.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let pod = self.pods.iter().find(|pod| pod.uid() == uid)?.clone();
        self.take_pod(&pod);
        Some(pod)
    }

    /// Removes this pod from the node. Returns false if the pod is not on the node. The search compares pointers, which is much
    /// faster than a search by UID because the other pods are not read.
    pub fn take_pod(&mut self, pod: &Arc<PodInfo>) -> bool {
        if !swap_remove(&mut self.pods, pod) {
            return false;
        }
        self.classes.sub(pod);
        self.affinity_terms.sub(pod);
        self.requested.sub(pod.requests());
        self.non_zero_requested.sub(pod.non_zero_request());
        for port in pod.host_ports() {
            self.used_ports.remove(port);
        }
        for claim in pod.claims() {
            if let Ok(at) = self.claim_refs.binary_search_by(|(key, _)| key.cmp(claim)) {
                self.claim_refs[at].1 -= 1;
                if self.claim_refs[at].1 == 0 {
                    self.claim_refs.remove(at);
                }
            }
        }
        true
    }
}

fn swap_remove(pods: &mut Vec<Arc<PodInfo>>, pod: &Arc<PodInfo>) -> bool {
    let at = pods.iter().position(|other| Arc::ptr_eq(other, pod));
    at.map(|at| pods.swap_remove(at)).is_some()
}
