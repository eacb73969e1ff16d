//! Which images are on how many nodes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::k8s::Node;
use crate::model::ImageState;

#[derive(Debug)]
struct Image {
    /// As the first node reported it that has had the image since.
    size: i64,
    nodes: usize,
}

/// Every image that is on a node, by each of its names. Follows
/// `pkg/scheduler/backend/cache/cache.go#cacheImpl.addNodeImageStates @v1.36.3` and its counterpart for removal.
#[derive(Debug, Default)]
pub(super) struct Images {
    /// Looked up only, never iterated.
    by_name: HashMap<Arc<str>, Image>,
    version: u64,
}

impl Images {
    /// Changes whenever a count or size does.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Counts the images of a node that came.
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

    /// Counts off the images of a node that went.
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

    /// A node reports anew. `None` if its images are the same as before, as in most reports; then no count changes, but an
    /// image that is on this node alone takes the size that it reports, as if it went and came back.
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

    /// `states` with the counts of now; `None` if they are those of now.
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

/// A node's images by each of their names, sorted by name, and the size first reported with each.
fn reported(node: &Node) -> Vec<(&str, i64)> {
    let images = node.status.images.iter();
    let mut reported: Vec<(&str, i64)> =
        images.flat_map(|image| image.names.iter().map(|name| (name.as_str(), image.size_bytes))).collect();
    reported.sort_by_key(|(name, _)| *name);
    reported.dedup_by_key(|(name, _)| *name);
    reported
}
