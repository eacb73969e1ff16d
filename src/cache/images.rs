//! Container images on the nodes: the size of each and the number of nodes that have it.

use std::collections::HashMap;
use std::sync::Arc;

use crate::k8s::Node;
use crate::model::ImageState;

#[derive(Debug)]
struct Image {
    /// Bytes, as reported by the first node that had the image.
    size: i64,
    nodes: usize,
}

/// Images of all nodes. An image is listed under each of its names. Follows
/// `pkg/scheduler/backend/cache/cache.go#cacheImpl.addNodeImageStates @v1.36.3` and its counterpart for removal.
#[derive(Debug, Default)]
pub(super) struct Images {
    /// Images by name; the map is never iterated.
    by_name: HashMap<Arc<str>, Image>,
    version: u64,
}

impl Images {
    /// Returns the version of the counts and sizes. Every change of one of them increases it.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Counts the images of an added node, and returns their states.
    pub(super) fn add(&mut self, node: &Node) -> Arc<[ImageState]> {
        let reported = reported(node);
        if !reported.is_empty() {
            self.version += 1;
        }
        let mut states = Vec::with_capacity(reported.len());
        for (name, size) in reported {
            let name = self.by_name.get_key_value(name).map_or_else(|| Arc::from(name), |(name, _)| name.clone());
            let image = self.by_name.entry(name.clone()).or_insert(Image { size, nodes: 0 });
            image.nodes += 1;
            states.push(ImageState { name, size: image.size, num_nodes: image.nodes });
        }
        states.into()
    }

    /// Removes the images of a removed node from the counts.
    pub(super) fn remove(&mut self, states: &[ImageState]) {
        if !states.is_empty() {
            self.version += 1;
        }
        for state in states {
            let image = self.by_name.get_mut(&state.name).expect("an image of a node is counted");
            image.nodes -= 1;
            if image.nodes == 0 {
                self.by_name.remove(&state.name);
            }
        }
    }

    /// Replaces the images of an updated node. Returns `None` if their names and sizes have not changed, as in most updates.
    /// No count changes then, but an image that only this node has gets the size that the node reports, as if the node had
    /// been removed and added.
    pub(super) fn report(&mut self, old: &Node, states: &[ImageState], new: &Node) -> Option<Arc<[ImageState]>> {
        if old.status.images != new.status.images {
            self.remove(states);
            return Some(self.add(new));
        }
        for (name, size) in reported(new) {
            let image = self.by_name.get_mut(name).expect("an image of a node is counted");
            if image.nodes == 1 && image.size != size {
                image.size = size;
                self.version += 1;
            }
        }
        None
    }

    /// Returns `states` with current counts and sizes, or `None` if they are current already.
    pub(super) fn refresh(&self, states: &[ImageState]) -> Option<Arc<[ImageState]>> {
        let now = |state: &ImageState| {
            let image = self.by_name.get(&state.name).expect("an image of a node is counted");
            (image.size, image.nodes)
        };
        if states.iter().all(|state| now(state) == (state.size, state.num_nodes)) {
            return None;
        }
        let fresh = states.iter().map(|state| {
            let (size, num_nodes) = now(state);
            ImageState { name: state.name.clone(), size, num_nodes }
        });
        Some(fresh.collect())
    }
}

/// Returns the names of a node's images, sorted, with the size first reported for each name.
fn reported(node: &Node) -> Vec<(&str, i64)> {
    let images = node.status.images.iter();
    let mut reported: Vec<(&str, i64)> =
        images.flat_map(|image| image.names.iter().map(|name| (name.as_str(), image.size_bytes))).collect();
    reported.sort_by_key(|(name, _)| *name);
    reported.dedup_by_key(|(name, _)| *name);
    reported
}
