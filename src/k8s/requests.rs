//! What a pod asks for as a whole: requests and limits over its containers.
//!
//! Called once or twice for each pod that arrives, so names are borrowed from the pod and sums are kept in one small sorted
//! vector.

use super::conditions::is_pod_resize_infeasible;
use super::names::HUGE_PAGES_PREFIX;
use super::{Container, ContainerStatus, Pod, Quantity, ResourceList, ResourceRequirements};

/// What a container that names no CPU counts for in scores, in thousandths of a core.
/// From `pkg/scheduler/util/pod_resources.go#DefaultMilliCPURequest @v1.36.3`.
pub const DEFAULT_MILLI_CPU_REQUEST: i64 = 100;
/// What a container that names no memory counts for in scores: 200 MiB, in bytes.
/// From `pkg/scheduler/util/pod_resources.go#DefaultMemoryRequest @v1.36.3`.
pub const DEFAULT_MEMORY_REQUEST: i64 = 200 * 1024 * 1024;

/// Both defaults, for [`RequestOptions::non_missing`].
pub const DEFAULT_REQUESTS: &[(&str, Quantity)] = &[
    ("cpu", Quantity::from_milli(DEFAULT_MILLI_CPU_REQUEST)),
    ("memory", Quantity::from_value(DEFAULT_MEMORY_REQUEST)),
];

/// Amounts by resource name, sorted by name, with the names borrowed from the pod. A resource that is listed with zero is
/// not the same as one that is not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests<'a>(Vec<(&'a str, Quantity)>);

/// What goes into a pod's requests or limits.
/// Follows `component-helpers/resource/helpers.go#PodResourcesOptions @v1.36.3`; the default is its zero value.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, each named after a field of upstream's options"
)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions {
    /// Containers count with what their status says is allocated and in effect, if that is more.
    pub use_status: bool,
    /// So does the pod as a whole; only together with `use_status`.
    pub use_pod_level_status: bool,
    /// Leaves out the pod's overhead.
    pub exclude_overhead: bool,
    /// Leaves out what the pod asks for as a whole, which otherwise replaces its containers' sum.
    pub skip_pod_level: bool,
    /// Leaves out the containers. Requests only, as upstream.
    pub skip_containers: bool,
    /// Adds what resource claims take of the node, as the pod's status says. Requests only.
    pub use_claim_status: bool,
    /// What a container counts with for a resource that it does not name. Requests only.
    pub non_missing: &'static [(&'static str, Quantity)],
}

impl<'a> Requests<'a> {
    /// The amount of `name`, if it is listed.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.position(name).ok().map(|at| self.0[at].1)
    }

    /// The amount of `name` in the unit that scheduling counts it in: CPU in thousandths of a core, anything else in whole
    /// units, rounded up. 0 if it is not listed.
    pub fn units(&self, name: &str) -> i64 {
        self.get(name).map_or(0, |quantity| if name == "cpu" { quantity.milli_value() } else { quantity.value() })
    }

    /// Name and amount, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, Quantity)> {
        self.0.iter().copied()
    }

    /// How many resources are listed.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no resource is listed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with names of its own.
    pub fn to_resource_list(&self) -> ResourceList {
        self.iter().collect()
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(key, _)| (*key).cmp(name))
    }

    fn set(&mut self, name: &'a str, quantity: Quantity) {
        match self.position(name) {
            Ok(at) => self.0[at].1 = quantity,
            Err(at) => self.0.insert(at, (name, quantity)),
        }
    }

    fn add(&mut self, items: impl Iterator<Item = (&'a str, Quantity)>) {
        for (name, quantity) in items {
            match self.position(name) {
                Ok(at) => self.0[at].1 += quantity,
                Err(at) => self.0.insert(at, (name, quantity)),
            }
        }
    }

    /// Keeps the greater of both for each name; the present one, with its notation, if they are equal.
    fn raise(&mut self, items: impl Iterator<Item = (&'a str, Quantity)>) {
        for (name, quantity) in items {
            match self.position(name) {
                Ok(at) if quantity > self.0[at].1 => self.0[at].1 = quantity.compared_with(self.0[at].1),
                Ok(_) => {}
                Err(at) => self.0.insert(at, (name, quantity)),
            }
        }
    }
}

/// The pod's requests. Containers run side by side with all restartable init containers; each init container runs beside the
/// restartable ones that were started before it; the pod needs the greater of both. What the pod asks for as a whole replaces
/// that, and its overhead is added. Follows `component-helpers/resource/helpers.go#PodRequests @v1.36.3`.
pub fn pod_requests<'a>(pod: &'a Pod, options: &RequestOptions) -> Requests<'a> {
    let side = Side::new(pod, options, Kind::Requests);
    let mut requests = if options.skip_containers { Requests::default() } else { side.aggregate() };
    if !options.skip_pod_level
        && let Some(resources) = pod.spec.resources.as_deref()
        && are_pod_level_requests_set(pod)
    {
        side.replace_by_pod_level(&mut requests, &resources.requests);
    }
    if let Some(overhead) = pod.spec.overhead.as_ref().filter(|_| !options.exclude_overhead) {
        requests.add(items(overhead));
    }
    requests
}

/// The pod's limits, by the same rule; overhead is added to those that are not zero.
/// Follows `component-helpers/resource/helpers.go#PodLimits @v1.36.3`.
pub fn pod_limits<'a>(pod: &'a Pod, options: &RequestOptions) -> Requests<'a> {
    let side = Side::new(pod, options, Kind::Limits);
    let mut limits = side.aggregate();
    if !options.skip_pod_level
        && let Some(resources) = pod.spec.resources.as_deref()
        && are_pod_level_resources_set(pod)
    {
        side.replace_by_pod_level(&mut limits, &resources.limits);
    }
    if let Some(overhead) = pod.spec.overhead.as_ref().filter(|_| !options.exclude_overhead) {
        for (name, quantity) in items(overhead) {
            if let Ok(at) = limits.position(name)
                && !limits.0[at].1.is_zero()
            {
                limits.0[at].1 += quantity;
            }
        }
    }
    limits
}

/// What a pod that names no CPU or memory counts with in the totals that scores look at, for [`RequestOptions::non_missing`]:
/// both defaults, or, if the pod asks for resources as a whole, those that `requests` does not list.
/// Follows `pkg/scheduler/framework/types.go#getNonMissingContainerRequests @v1.36.3`.
pub fn non_missing_requests(
    requests: &Requests<'_>,
    pod_level_requests_set: bool,
) -> &'static [(&'static str, Quantity)] {
    if !pod_level_requests_set {
        return DEFAULT_REQUESTS;
    }
    match (requests.get("cpu"), requests.get("memory")) {
        (None, None) => DEFAULT_REQUESTS,
        (None, Some(_)) => &DEFAULT_REQUESTS[..1],
        (Some(_), None) => &DEFAULT_REQUESTS[1..],
        (Some(_), Some(_)) => &[],
    }
}

/// Whether `name` can be asked for by the pod as a whole.
/// Follows `component-helpers/resource/helpers.go#IsSupportedPodLevelResource @v1.36.3`.
pub fn is_pod_level_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with(HUGE_PAGES_PREFIX)
}

/// Whether the pod as a whole requests a resource that can be asked for that way.
/// Follows `component-helpers/resource/helpers.go#IsPodLevelRequestsSet @v1.36.3`.
pub fn are_pod_level_requests_set(pod: &Pod) -> bool {
    pod.spec.resources.as_deref().is_some_and(|resources| lists_pod_level(&resources.requests))
}

/// Whether the pod as a whole requests or limits such a resource.
/// Follows `component-helpers/resource/helpers.go#IsPodLevelResourcesSet @v1.36.3`.
pub fn are_pod_level_resources_set(pod: &Pod) -> bool {
    pod.spec
        .resources
        .as_deref()
        .is_some_and(|resources| lists_pod_level(&resources.requests) || lists_pod_level(&resources.limits))
}

fn lists_pod_level(list: &ResourceList) -> bool {
    list.iter().any(|(name, _)| is_pod_level_resource(name))
}

fn items(list: &ResourceList) -> impl Iterator<Item = (&str, Quantity)> {
    list.iter().map(|(name, quantity)| (name, *quantity))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Requests,
    Limits,
}

impl Kind {
    fn of(self, resources: &ResourceRequirements) -> &ResourceList {
        match self {
            Self::Requests => &resources.requests,
            Self::Limits => &resources.limits,
        }
    }
}

/// One computation: either all requests of a pod, or all its limits.
struct Side<'a, 'o> {
    pod: &'a Pod,
    options: &'o RequestOptions,
    kind: Kind,
    /// Whether the node refused the resize, so that what the specification asks for does not count.
    is_infeasible: bool,
}

impl<'a, 'o> Side<'a, 'o> {
    fn new(pod: &'a Pod, options: &'o RequestOptions, kind: Kind) -> Self {
        Self { pod, options, kind, is_infeasible: options.use_status && is_pod_resize_infeasible(pod) }
    }

    /// Follows `component-helpers/resource/helpers.go#AggregateContainerRequests`, `#AggregateContainerLimits @v1.36.3`.
    fn aggregate(&self) -> Requests<'a> {
        let mut total = Requests(Vec::with_capacity(4));
        let mut container_items = Requests::default();
        for container in &self.pod.spec.containers {
            self.fill(&mut container_items, container, self.options.use_status);
            total.add(container_items.iter());
        }
        let mut restartable = Requests::default();
        let mut peak = Requests::default();
        for container in &self.pod.spec.init_containers {
            let is_restartable = container.is_restartable_init();
            self.fill(&mut container_items, container, self.options.use_status && is_restartable);
            if is_restartable {
                total.add(container_items.iter());
                restartable.add(container_items.iter());
                peak.raise(restartable.iter());
            } else {
                container_items.add(restartable.iter());
                peak.raise(container_items.iter());
            }
        }
        total.raise(peak.iter());
        if self.kind == Kind::Requests && self.options.use_claim_status {
            for claim in &self.pod.status.node_allocatable_resource_claim_statuses {
                total.add(items(&claim.resources));
            }
        }
        total
    }

    /// Sets `target` to what one container counts with.
    fn fill(&self, target: &mut Requests<'a>, container: &'a Container, use_status: bool) {
        let spec = self.kind.of(&container.resources);
        let status = if use_status { self.status_of(&container.name) } else { None };
        if let Some((status, actuated)) = status.and_then(|status| Some((status, status.resources.as_ref()?))) {
            self.fill_effective(target, spec, self.kind.of(actuated), status.allocated_resources.as_ref());
        } else {
            target.0.clear();
            target.0.extend(items(spec));
        }
        if self.kind == Kind::Requests {
            for (name, quantity) in self.options.non_missing {
                if let Err(at) = target.position(name) {
                    target.0.insert(at, (name, *quantity));
                }
            }
        }
    }

    /// Sets `target` to the greatest of what is asked for (unless the node cannot give it), in effect and, for requests,
    /// allocated. Follows `component-helpers/resource/helpers.go#determineEffectiveRequests`, `#determineEffectiveLimits
    /// @v1.36.3`.
    fn fill_effective(
        &self,
        target: &mut Requests<'a>,
        spec: &'a ResourceList,
        actuated: &'a ResourceList,
        allocated: Option<&'a ResourceList>,
    ) {
        target.0.clear();
        if !self.is_infeasible {
            target.0.extend(items(spec));
        }
        target.raise(items(actuated));
        if let Some(allocated) = allocated.filter(|_| self.kind == Kind::Requests) {
            target.raise(items(allocated));
        }
    }

    /// The status of a container; an init container's wins where names clash, and the last of several.
    fn status_of(&self, name: &str) -> Option<&'a ContainerStatus> {
        let status = &self.pod.status;
        let mut latest_first =
            status.init_container_statuses.iter().rev().chain(status.container_statuses.iter().rev());
        latest_first.find(|status| status.name == name)
    }

    fn replace_by_pod_level(&self, total: &mut Requests<'a>, spec: &'a ResourceList) {
        let mut effective = Requests::default();
        let actuated = self.pod.status.resources.as_deref();
        let actuated = actuated.filter(|_| self.options.use_status && self.options.use_pod_level_status);
        // In upstream, a copy of no limits at all counts as no status.
        let actuated = actuated
            .filter(|actuated| self.kind == Kind::Requests || !self.is_infeasible || !actuated.limits.is_empty());
        if let Some(actuated) = actuated {
            let allocated = self.pod.status.allocated_resources.as_ref();
            self.fill_effective(&mut effective, spec, self.kind.of(actuated), allocated);
        }
        for (name, quantity) in items(spec).filter(|(name, _)| is_pod_level_resource(name)) {
            let effective = || effective.get(name).unwrap_or_default();
            total.set(name, if actuated.is_some() { effective() } else { quantity });
        }
    }
}

#[cfg(test)]
mod tests;
