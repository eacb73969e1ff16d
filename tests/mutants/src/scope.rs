//! Scope of the mutations: the modules of each plugin, and of the preemption evaluator.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use syn::{Attribute, Item};

/// Modules that are sampled and reported together.
pub struct Area {
    /// Name of the plugin, or a description of the modules.
    pub name: &'static str,
    /// Paths of the modules below the crate. A mutant is tried with their unit tests first.
    pub modules: &'static [&'static str],
    /// Size of the sample, as a multiple of the usual size.
    pub weight: usize,
}

const fn area(name: &'static str, modules: &'static [&'static str]) -> Area {
    Area { name, modules, weight: 1 }
}

/// All areas: each implemented plugin with the helpers that it uses most, then the code that several plugins share, and the
/// preemption evaluator.
pub const AREAS: &[Area] = &[
    area("DefaultBinder", &["plugins::default_binder"]),
    area("DefaultPreemption", &["plugins::default_preemption"]),
    area("ImageLocality", &["plugins::image_locality"]),
    area("InterPodAffinity", &["plugins::inter_pod_affinity", "model::affinity", "model::term_count"]),
    area("NodeAffinity", &["plugins::node_affinity", "k8s::node_selector"]),
    area("NodeDeclaredFeatures", &["plugins::node_declared_features"]),
    area("NodeName", &["plugins::node_name"]),
    area("NodePorts", &["plugins::node_ports", "model::host_port"]),
    area("NodeResourcesBalancedAllocation", &["plugins::node_resources::balanced_allocation"]),
    area(
        "NodeResourcesFit",
        &[
            "plugins::node_resources::fit",
            "plugins::node_resources::demand",
            "plugins::node_resources::device_class",
            "plugins::node_resources::hints",
            "plugins::node_resources::scorer",
            "plugins::node_resources::strategy",
            "k8s::requests",
            "model::resources",
        ],
    ),
    area("NodeUnschedulable", &["plugins::node_unschedulable"]),
    area("PodTopologySpread", &["plugins::pod_topology_spread", "model::class_count", "model::domains", "model::walk"]),
    area("PrioritySort", &["plugins::priority_sort"]),
    area("SchedulingGates", &["plugins::scheduling_gates"]),
    area("TaintToleration", &["plugins::taint_toleration", "k8s::tolerations"]),
    area("what plugins share", &["plugins::admission", "plugins::event", "plugins::json", "plugins::normalize"]),
    Area { name: "preemption evaluator", modules: &["framework::preemption"], weight: 3 },
];

/// Returns the files of a module below `src` and of its child modules, without files that are compiled for tests only.
pub fn files(src: &Path, module: &str) -> Result<Vec<PathBuf>> {
    let base = src.join(module.replace("::", "/"));
    let mut found = Vec::new();
    follow(&base, &mut found).with_context(|| format!("module {module}"))?;
    Ok(found)
}

fn follow(base: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let candidates = [base.with_extension("rs"), base.join("mod.rs")];
    let Some(file) = candidates.into_iter().find(|file| file.is_file()) else {
        bail!("there is no {}.rs and no {0}/mod.rs", base.display());
    };
    let text = std::fs::read_to_string(&file)?;
    found.push(file);
    for item in syn::parse_file(&text)?.items {
        if let Item::Mod(child) = item
            && child.content.is_none()
            && !is_for_tests(&child.attrs)
        {
            follow(&base.join(child.ident.to_string()), found)?;
        }
    }
    Ok(())
}

/// Whether the attributes say `#[test]` or `#[cfg(test)]`.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        attribute.path().is_ident("test")
            || (is_cfg && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test")))
    })
}
