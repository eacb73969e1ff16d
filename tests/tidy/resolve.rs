//! Resolves the paths of a crate to files: which file needs which other one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::{ModuleId, ModuleTree};

/// Maximum number of re-exports that are followed.
const MAX_REEXPORTS: usize = 16;

/// The end of a resolved path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The path ends at a module.
    Module(ModuleId),
    /// The path ends at an item of this module.
    Item(ModuleId),
}

/// Returns each file of the crate with the files that its code needs.
///
/// A path leads to the file that defines the item: re-exports (`pub use`) are followed. The import of a module alone
/// (`use super::module`) is not a reference, since the paths that begin with its name are resolved on their own. A `mod`
/// declaration is not a reference, either.
pub(crate) fn references(root: &Path) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let tree = ModuleTree::read(root);
    let mut found: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for (id, module) in tree.modules.iter().enumerate() {
        let file = &module.file;
        let needed = found.entry(file.clone()).or_default();
        let imported = module.imports.values().filter_map(|path| match resolve(&tree, id, path, 0) {
            Some(Target::Item(target)) => Some(target),
            _ => None,
        });
        let all = |path: &Vec<String>| match resolve(&tree, id, path, 0)? {
            Target::Module(target) | Target::Item(target) => Some(target),
        };
        let named = module.globs.iter().chain(&module.paths).filter_map(all);
        needed.extend(imported.chain(named).map(|target| tree.modules[target].file.clone()));
        needed.remove(file);
    }
    found
}

/// Resolves a path that the module names. Paths into other crates have no target.
fn resolve(tree: &ModuleTree, from: ModuleId, path: &[String], depth: usize) -> Option<Target> {
    let mut module = from;
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            module = 0;
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                module = tree.modules[module].parent?;
                rest = &rest[1..];
            }
        }
        first => {
            if !knows(tree, from, first) {
                return None;
            }
        }
    }
    walk(tree, module, rest, depth)
}

/// Whether the module itself defines or imports the name.
fn knows(tree: &ModuleTree, module: ModuleId, name: &str) -> bool {
    let module = &tree.modules[module];
    module.children.contains_key(name) || module.imports.contains_key(name)
}

/// Resolves the rest of a path from the module on.
fn walk(tree: &ModuleTree, mut module: ModuleId, mut rest: &[String], depth: usize) -> Option<Target> {
    if depth > MAX_REEXPORTS {
        return None;
    }
    while let Some(name) = rest.first() {
        let this = &tree.modules[module];
        if let Some(child) = this.children.get(name) {
            (module, rest) = (*child, &rest[1..]);
            continue;
        }
        if let Some(path) = this.imports.get(name) {
            let path: Vec<String> = path.iter().chain(&rest[1..]).cloned().collect();
            return resolve(tree, module, &path, depth + 1);
        }
        if this.items.contains(name) {
            return Some(Target::Item(module));
        }
        let of_globs = this.globs.iter().filter_map(|glob| match resolve(tree, module, glob, depth + 1)? {
            Target::Module(target) => Some(target),
            Target::Item(_) => None,
        });
        for target in of_globs.collect::<Vec<_>>() {
            if target != module && defines(tree, target, name) {
                return walk(tree, target, rest, depth + 1);
            }
        }
        return Some(Target::Item(module));
    }
    Some(Target::Module(module))
}

fn defines(tree: &ModuleTree, module: ModuleId, name: &str) -> bool {
    knows(tree, module, name) || tree.modules[module].items.contains(name)
}
