//! Images: tags, digests, registries with ports, and nodes that report them in their own words.

use serde_json::{Value, json};

use super::Gen;

/// As pods write them.
const WANTED: &[&str] = &[
    "app",
    "app:latest",
    "app:1.25",
    "registry:5000/app",
    "registry:5000/app:latest",
    "registry:5000/team/app:v2",
    "docker.io/library/app:1.25",
    "app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "registry/app:v1@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
];

/// From far below what counts to far above.
const SIZES: &[i64] = &[0, 1, 23 << 20, 24 << 20, 100 << 20, 500 << 20, 1000 << 20, 3 << 30, 40 << 30];

/// An image as a pod writes it.
pub(super) fn wanted(g: &mut Gen) -> &'static str {
    g.pick(WANTED)
}

/// The images on a node; the same image may have another size elsewhere.
pub(super) fn on_node(g: &mut Gen) -> Vec<Value> {
    let mut left: Vec<&str> = WANTED.to_vec();
    g.list(0, 5, |g| {
        let mut names = Vec::new();
        for _ in 0..g.between(1, 2) {
            if !left.is_empty() {
                let at = g.between(0, left.len() - 1);
                names.push(left.swap_remove(at));
            }
        }
        json!({"names": names, "sizeBytes": g.pick(SIZES)})
    })
}
