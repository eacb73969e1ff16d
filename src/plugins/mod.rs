//! The in-tree plugins, one file or folder each, named after it.

pub mod image_locality;
pub mod json;
pub mod node_resources;
pub mod normalize;
