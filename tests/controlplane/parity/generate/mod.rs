//! Random clusters: few words, much used, so that what is asked for and what is there often meet.
//!
//! A case is decided by its seed alone. It concentrates on a few [`Topic`]s, since a pod that uses everything at once fits
//! nowhere and says nothing.

pub(crate) mod affinity;
pub(crate) mod alike;
mod config;
mod device;
mod event;
mod images;
mod node;
mod placement;
mod pod;
mod preemption;
mod resources;
mod spread;

use kube_scheduler::clock::Rng;
use serde_json::Value;

use crate::parity::case::{Case, GATES, tidy};

/// What a case may concentrate on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Affinity,
    Taints,
    Ports,
    Resources,
    Resize,
    Images,
    Features,
    Nominated,
    Gates,
    Devices,
    Preemption,
    Spread,
    PodAffinity,
}

impl Topic {
    const ALL: [Self; 13] = [
        Self::Affinity,
        Self::Taints,
        Self::Ports,
        Self::Resources,
        Self::Resize,
        Self::Images,
        Self::Features,
        Self::Nominated,
        Self::Gates,
        Self::Devices,
        Self::Preemption,
        Self::Spread,
        Self::PodAffinity,
    ];
}

/// A source of chance with a taste.
pub(crate) struct Gen {
    rng: Rng,
    focus: Vec<Topic>,
    /// Whether `Lt` and `Gt` tolerations are allowed.
    compares: bool,
    /// The names of the case's nodes, and of one that does not exist.
    nodes: Vec<String>,
    /// The profiles that pods may ask for.
    profiles: Vec<String>,
    /// Whether pods may ask for devices by the name of their class.
    classes: bool,
    /// How many of a hundred requirements of label selectors are malformed.
    malformed: u64,
}

impl Gen {
    /// `true` in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.rng.chance(percent, 100)
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.rng.index(from.len())]
    }

    /// A number from `first` to `last`.
    pub(crate) fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.rng.index(last - first + 1)
    }

    /// Whether to use a feature of this topic: often where the case concentrates on it, rarely elsewhere.
    pub(crate) fn uses(&mut self, topic: Topic) -> bool {
        let percent = if self.focus.contains(&topic) { 65 } else { 8 };
        self.percent(percent)
    }

    /// Whether the case concentrates on this topic.
    pub(crate) fn is_about(&self, topic: Topic) -> bool {
        self.focus.contains(&topic)
    }

    /// So many values, made one by one.
    pub(crate) fn list(&mut self, first: usize, last: usize, mut make: impl FnMut(&mut Self) -> Value) -> Vec<Value> {
        (0..self.between(first, last)).map(|_| make(self)).collect()
    }

    /// The name of a node, rarely of none.
    pub(crate) fn node_name(&mut self) -> String {
        let at = self.rng.index(self.nodes.len());
        self.nodes[at].clone()
    }

    /// A profile's name.
    pub(crate) fn profile(&mut self) -> String {
        let at = self.rng.index(self.profiles.len());
        self.profiles[at].clone()
    }
}

/// The case of this seed.
pub(crate) fn case(seed: u64) -> Case {
    let mut rng = Rng::from_seed(seed);
    let gates = GATES[if rng.chance(1, 3) { rng.index(GATES.len()) } else { 0 }];
    let mut focus: Vec<Topic> = (0..=rng.index(3)).map(|_| Topic::ALL[rng.index(Topic::ALL.len())]).collect();
    // Spreading shows only where many pods are alike, so it gets cases of its own.
    if rng.chance(1, 4) {
        focus = vec![Topic::Spread];
    }
    let compares = gates.contains("TaintTolerationComparisonOperators=true");
    let mut g = Gen { rng, focus, compares, nodes: Vec::new(), profiles: Vec::new(), classes: false, malformed: 6 };
    let count = g.between(3, 12);
    g.nodes = (0..count).map(|at| format!("node-{at}")).collect();
    let config = config::config(&mut g);
    let mut objects = if g.uses(Topic::PodAffinity) { affinity::namespaces(&mut g) } else { Vec::new() };
    objects.extend((0..count).map(|at| node::node(&mut g, at)));
    // The plugin that allocates devices is part of the default profile.
    if !config.is_null() && g.uses(Topic::Devices) {
        g.classes = true;
        objects.extend(device::classes(&mut g));
    }
    if g.uses(Topic::Spread) {
        objects.extend(spread::groups(&mut g));
    }
    let existing = if g.is_about(Topic::Spread) { g.between(8, 45) } else { g.between(0, 20) };
    objects.extend((0..existing).map(|at| pod::existing(&mut g, at)));
    let pending = g.between(1, 6);
    objects.extend((0..pending).map(|at| pod::pending(&mut g, at)));
    if g.focus.contains(&Topic::Preemption) {
        preemption::crowd(&mut g, &mut objects);
    }
    let mut events = event::events(&mut g, &objects);
    objects.iter_mut().chain(&mut events).for_each(tidy);
    Case { seed, gates, objects, config, events }
}

/// Whether preemption has something to choose from in the case.
pub(crate) fn is_crowded(case: &Case) -> bool {
    case.objects.iter().any(preemption::is_filler)
}
