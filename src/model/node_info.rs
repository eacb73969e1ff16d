//! A node with the pods on it and what they add up to.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Taint;

use super::class_count::{ClassCount, ClassCounts};
use super::term_count::{TermCount, TermCounts};
use super::{HostPorts, NonZeroRequest, PodInfo, Resources};
use crate::k8s::Node;

/// An image on a node, as scoring sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageState {
    /// One of the names it goes by.
    pub name: Arc<str>,
    /// Its size in bytes, as the first node reported it.
    pub size: i64,
    /// On how many nodes it was when this node last changed.
    pub num_nodes: usize,
}

/// A node with the pods on it and what they add up to. Plugins read it through accessors only, so that its layout can
/// change under them. Follows `pkg/scheduler/framework/types.go#NodeInfo @v1.36.3`.
///
/// What every cycle reads of every node comes first and stays together, so that it is in few lines of the processor's cache.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct NodeInfo {
    allocatable: Resources,
    requested: Resources,
    non_zero_requested: NonZeroRequest,
    pods: Vec<Arc<PodInfo>>,
    /// Sorted by name.
    images: Arc<[ImageState]>,
    /// Of the node, and here to spare most cycles the way to it.
    is_unschedulable: bool,
    has_taints: bool,
    node: Option<Arc<Node>>,
    name: Arc<str>,
    classes: ClassCounts,
    affinity_terms: TermCounts,
    used_ports: HostPorts,
    /// How many pods on the node use a claim, by `namespace/claim`, sorted.
    claim_refs: Vec<(Arc<str>, usize)>,
    generation: u64,
}

impl NodeInfo {
    /// An entry for a node that is not known yet, but has pods.
    pub fn imaginary(name: Arc<str>) -> Self {
        Self { name, ..Self::default() }
    }

    /// An entry for `node` without pods.
    pub fn new(node: Arc<Node>) -> Self {
        let mut info = Self::imaginary(Arc::from(node.name()));
        info.set_node(node);
        info
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node's name, shared.
    pub fn name_arc(&self) -> &Arc<str> {
        &self.name
    }

    /// The node.
    ///
    /// # Panics
    ///
    /// Of an entry whose node is not known; such an entry is never in a snapshot.
    pub fn node(&self) -> &Arc<Node> {
        self.node.as_ref().expect("nodes in a snapshot are known")
    }

    /// The node, unless it is not known (yet, or any more).
    pub fn try_node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    /// Whether the node is closed for pods.
    pub fn is_unschedulable(&self) -> bool {
        self.is_unschedulable
    }

    /// The node's taints.
    pub fn taints(&self) -> &[Taint] {
        if self.has_taints { &self.node().spec.taints } else { &[] }
    }

    /// The pods on the node, in no stable order.
    pub fn pods(&self) -> &[Arc<PodInfo>] {
        &self.pods
    }

    /// How many pods of each class are on the node.
    pub fn classes(&self) -> &[ClassCount] {
        self.classes.as_slice()
    }

    /// How many pods of each set of affinity terms are on the node.
    pub fn affinity_terms(&self) -> &[TermCount] {
        self.affinity_terms.as_slice()
    }

    /// The host ports in use.
    pub fn used_ports(&self) -> &HostPorts {
        &self.used_ports
    }

    /// What the pods request together.
    pub fn requested(&self) -> &Resources {
        &self.requested
    }

    /// The same, with upstream's assumption for containers that request no CPU or memory.
    pub fn non_zero_requested(&self) -> NonZeroRequest {
        self.non_zero_requested
    }

    /// What the node has for pods.
    pub fn allocatable(&self) -> &Resources {
        &self.allocatable
    }

    /// The state of image `name`, if it is on the node.
    pub fn image(&self, name: &str) -> Option<&ImageState> {
        self.images.binary_search_by(|image| (*image.name).cmp(name)).ok().map(|at| &self.images[at])
    }

    /// The images on the node, sorted by name.
    pub fn images(&self) -> &[ImageState] {
        &self.images
    }

    /// The same, shared.
    pub fn images_arc(&self) -> &Arc<[ImageState]> {
        &self.images
    }

    /// How many pods on the node use claim `namespace/name`.
    pub fn claim_users(&self, claim: &str) -> usize {
        self.claim_refs.binary_search_by(|(key, _)| (**key).cmp(claim)).map_or(0, |at| self.claim_refs[at].1)
    }

    /// The claims in use on the node, as `namespace/name`, sorted.
    pub fn claims(&self) -> impl ExactSizeIterator<Item = &str> {
        self.claim_refs.iter().map(|(key, _)| &**key)
    }

    /// The same, shared.
    pub(super) fn claim_arcs(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.claim_refs.iter().map(|(key, _)| key)
    }

    /// Grows with every change of the entry.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Stamps a change of the entry.
    pub fn set_generation(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// Sets the images on the node; they have to be sorted by name.
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

    /// Forgets the node, while its pods stay.
    pub fn remove_node(&mut self) {
        self.node = None;
        (self.is_unschedulable, self.has_taints) = (false, false);
    }

    /// Puts a pod onto the node.
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

    /// Takes the pod with this UID off the node, and returns it; `None` if it is not there. The last pod takes its place.
    pub fn remove_pod(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let pod = self.pods.iter().find(|pod| pod.uid() == uid)?.clone();
        self.take_pod(&pod);
        Some(pod)
    }

    /// Takes this very pod off the node; false if it is not there. Does not look into the other pods, which takes most of
    /// the time of a search by UID.
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
