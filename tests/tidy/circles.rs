//! No circle of files is larger than 4, except a parent with its own children.
//!
//! A file needs another one if a path in its code, followed through re-exports, leads to an item there. A circle is a
//! strongly connected component of that graph. Code that is compiled for tests only does not count.
//!
//! The exception: a module may call its children while they use the types that it defines. So a larger circle is allowed on two
//! conditions. First, one of its files is the parent of all other files in the circle: they are in the parent's folder, at any
//! depth. Second, without that file no circle is left that breaks this rule. So the check finds children that need each other in
//! a circle of more than 4 files, and a circle that leaves the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::findings::{Finding, check};
use crate::resolve::references;
use crate::{relative, root};

/// Maximum number of files in a circle.
const MAX_FILES: usize = 4;

/// Root files of the crates whose files are checked.
const CRATES: &[&str] = &[
    "src/lib.rs",
    "tests/it/main.rs",
    "tests/parity/main.rs",
    "tests/controlplane/main.rs",
    "tests/tidy/main.rs",
    "tests/mutants/src/main.rs",
];

type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

#[test]
fn no_import_cycle_has_more_than_four_files() {
    let mut found = Vec::new();
    for root_file in CRATES {
        let graph = references(&root().join(root_file));
        for circle in forbidden(&graph) {
            for file in &circle {
                let needed = graph[file].iter().filter(|needed| circle.contains(needed));
                let names: Vec<String> = needed.map(|file| relative(file).display().to_string()).collect();
                let text = format!("is in a circle of {} files and needs {}", circle.len(), names.join(", "));
                found.push(Finding { file: file.clone(), line: 1, text });
            }
        }
    }
    check("circle", &found);
}

/// The circles that the rule forbids.
fn forbidden(graph: &Graph) -> Vec<Vec<PathBuf>> {
    let mut found = Vec::new();
    for circle in circles(graph) {
        if circle.len() <= MAX_FILES {
            continue;
        }
        let parent = circle.iter().find(|file| circle.iter().all(|other| other == *file || is_below(other, file)));
        if let Some(parent) = parent {
            let rest: BTreeSet<&PathBuf> = circle.iter().filter(|file| *file != parent).collect();
            found.extend(forbidden(&part(graph, &rest)));
        } else {
            found.push(circle);
        }
    }
    found
}

/// Whether the file is in the folder of the module `parent`.
fn is_below(file: &Path, parent: &Path) -> bool {
    let is_folder = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| parent.ends_with(name));
    let folder = if is_folder { parent.parent().unwrap_or(parent).to_owned() } else { parent.with_extension("") };
    file.starts_with(folder)
}

/// Returns the part of the graph that consists of these files.
fn part(graph: &Graph, files: &BTreeSet<&PathBuf>) -> Graph {
    let inside = |needed: &BTreeSet<PathBuf>| needed.iter().filter(|file| files.contains(file)).cloned().collect();
    graph.iter().filter(|(file, _)| files.contains(file)).map(|(file, needed)| (file.clone(), inside(needed))).collect()
}

/// The strongly connected components with more than one file, by Tarjan's algorithm.
fn circles(graph: &Graph) -> Vec<Vec<PathBuf>> {
    let mut search = Search::new(graph);
    for file in graph.keys() {
        if !search.index.contains_key(file) {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'a> {
    graph: &'a Graph,
    index: BTreeMap<&'a PathBuf, usize>,
    low: BTreeMap<&'a PathBuf, usize>,
    stack: Vec<&'a PathBuf>,
    found: Vec<Vec<PathBuf>>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        Self { graph, index: BTreeMap::new(), low: BTreeMap::new(), stack: Vec::new(), found: Vec::new() }
    }

    fn visit(&mut self, file: &'a PathBuf) {
        let index = self.index.len();
        self.index.insert(file, index);
        self.low.insert(file, index);
        self.stack.push(file);
        for needed in self.graph.get(file).into_iter().flatten() {
            let reached = if !self.index.contains_key(needed) {
                self.visit(needed);
                self.low[needed]
            } else if self.stack.contains(&needed) {
                self.index[needed]
            } else {
                continue;
            };
            let low = self.low[file].min(reached);
            self.low.insert(file, low);
        }
        if self.low[file] == index {
            let begin = self.stack.iter().position(|other| *other == file).expect("a file that is visited");
            let mut circle: Vec<PathBuf> = self.stack.drain(begin..).cloned().collect();
            circle.sort();
            if circle.len() > 1 {
                self.found.push(circle);
            }
        }
    }
}

#[cfg(test)]
fn graph(edges: &[(&str, &str)]) -> Graph {
    let mut graph = Graph::new();
    for (file, needed) in edges {
        graph.entry(PathBuf::from(file)).or_default().insert(PathBuf::from(needed));
        graph.entry(PathBuf::from(needed)).or_default();
    }
    graph
}

#[test]
fn cycles_of_a_parent_and_its_children_are_allowed() {
    let star =
        ["a/b.rs", "a/c.rs", "a/d.rs", "a/e.rs", "a/f/mod.rs"].map(|child| [("a/mod.rs", child), (child, "a/mod.rs")]);
    assert_eq!(forbidden(&graph(&star.concat())), Vec::<Vec<PathBuf>>::new());
}

#[test]
fn cycle_of_five_children_is_found() {
    let files = ["a/b.rs", "a/c.rs", "a/d.rs", "a/e.rs", "a/f.rs"];
    let ring = [0, 1, 2, 3, 4].map(|at: usize| (files[at], files[(at + 1) % 5]));
    let mut edges = ring.to_vec();
    assert_eq!(forbidden(&graph(&edges)).len(), 1);
    edges.extend([("a/mod.rs", "a/b.rs"), ("a/b.rs", "a/mod.rs")]);
    assert_eq!(forbidden(&graph(&edges)), [files.map(PathBuf::from).to_vec()]);
}

#[test]
fn cycle_that_leaves_the_folder_is_found() {
    let edges =
        [("a/mod.rs", "a/b.rs"), ("a/b.rs", "a/c.rs"), ("a/c.rs", "a/d.rs"), ("a/d.rs", "x.rs"), ("x.rs", "a/mod.rs")];
    assert_eq!(forbidden(&graph(&edges)).len(), 1);
}
