//! The resources that a pod needs, and the check whether a node has them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::DeviceClasses;
use crate::framework::{Reasons, Rejection, RejectionKind, Verdict};
use crate::k8s::names::is_extended_resource;
use crate::model::{NodeInfo, Resources};

/// The constant reasons, in upstream's order. Each is a bit of [`Shortage::fixed`].
const FIXED: [&str; 4] = ["Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"];

/// Extended resources that `Filter` ignores, by name and by group. The group is the part of the name before the slash.
#[derive(Clone, Debug, Default)]
pub(super) struct Ignored {
    pub(super) resources: BTreeSet<String>,
    pub(super) groups: BTreeSet<String>,
}

impl Ignored {
    fn covers(&self, name: &str) -> bool {
        let group = || name.split_once('/').map_or(name, |(group, _)| group);
        (!self.resources.is_empty() || !self.groups.is_empty())
            && is_extended_resource(name)
            && (self.resources.contains(name) || self.groups.contains(group()))
    }
}

/// A scalar resource that a pod needs.
#[derive(Clone, Debug)]
struct ScalarDemand {
    name: Arc<str>,
    /// The amount, which is above 0.
    amount: i64,
    /// Whether a device class provides the resource. If so, the plugin does not check the resource on a node that does not list
    /// it.
    delegable: bool,
    /// The rejection reasons when this is the only shortage: `Insufficient <name>`.
    reason: Reasons,
}

/// The resources that a pod needs, computed once per scheduling attempt. An amount of 0 means that the resource is not needed.
/// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#preFilterState @v1.36.3`.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    milli_cpu: i64,
    memory: i64,
    ephemeral_storage: i64,
    /// The scalar resources except ignored ones, sorted by name.
    scalars: Vec<ScalarDemand>,
}

/// The resources that a node lacks for a pod.
#[derive(Debug, Default)]
struct Shortage<'a> {
    /// One bit for each reason in [`FIXED`].
    fixed: u8,
    scalars: Vec<&'a ScalarDemand>,
    /// Whether the pod would not fit even if the node were empty.
    unresolvable: bool,
}

impl Demand {
    /// Returns the demand of a pod with these requests.
    pub(super) fn new(requests: &Resources, ignored: &Ignored, classes: &DeviceClasses) -> Self {
        let needed = requests.scalars().filter(|(name, amount)| *amount != 0 && !ignored.covers(name));
        let scalars = needed.map(|(name, amount)| ScalarDemand {
            name: Arc::from(name),
            amount,
            delegable: classes.is_mapped(name),
            reason: Reasons::Many(Arc::from([Cow::Owned(format!("Insufficient {name}"))])),
        });
        Self {
            milli_cpu: requests.milli_cpu,
            memory: requests.memory,
            ephemeral_storage: requests.ephemeral_storage,
            scalars: scalars.collect(),
        }
    }

    /// Returns whether `node` has room for the pod.
    pub(super) fn verdict(&self, node: &NodeInfo) -> Verdict {
        self.shortage(node.allocatable(), node.requested(), node.pods().len()).map_or(Verdict::Pass, |shortage| {
            let kind = if shortage.unresolvable { RejectionKind::Unresolvable } else { RejectionKind::Unschedulable };
            Verdict::Reject(Rejection { kind, reasons: shortage.reasons() })
        })
    }

    /// Whether the pod fits on an empty node with these allocatable resources.
    pub(super) fn fits_empty(&self, allocatable: &Resources) -> bool {
        self.shortage(allocatable, &Resources::default(), 0).is_none()
    }

    /// Whether `new` has more than `old` of any resource that the pod needs. Also true if the pod needs a resource that a device
    /// class provides and `new` has none of it.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#haveAnyRequestedResourcesIncreased @v1.36.3`.
    pub(super) fn gains(&self, old: &Resources, new: &Resources) -> bool {
        new.allowed_pods > old.allowed_pods
            || (self.milli_cpu > 0 && new.milli_cpu > old.milli_cpu)
            || (self.memory > 0 && new.memory > old.memory)
            || (self.ephemeral_storage > 0 && new.ephemeral_storage > old.ephemeral_storage)
            || self.scalars.iter().any(|demand| {
                let has = new.scalar(&demand.name);
                has > old.scalar(&demand.name) || (demand.delegable && has <= 0)
            })
    }

    /// Returns the resources that the node lacks, or `None` if the pod fits. Subtraction wraps, as in upstream.
    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#fitsRequest @v1.36.3`.
    fn shortage(&self, allocatable: &Resources, requested: &Resources, num_pods: usize) -> Option<Shortage<'_>> {
        let mut shortage = Shortage::default();
        if i64::try_from(num_pods).is_ok_and(|pods| pods >= allocatable.allowed_pods) {
            shortage.fixed |= 1;
        }
        let amounts = [
            (self.milli_cpu, allocatable.milli_cpu, requested.milli_cpu),
            (self.memory, allocatable.memory, requested.memory),
            (self.ephemeral_storage, allocatable.ephemeral_storage, requested.ephemeral_storage),
        ];
        for (bit, (wanted, has, used)) in (1..).zip(amounts) {
            if wanted > 0 && wanted > has.wrapping_sub(used) {
                shortage.fixed |= 1 << bit;
                shortage.unresolvable |= wanted > has;
            }
        }
        if !self.scalars.is_empty() {
            self.scalar_shortage(allocatable, requested, &mut shortage);
        }
        (shortage.fixed != 0 || !shortage.scalars.is_empty()).then_some(shortage)
    }

    /// Adds missing scalar resources to `shortage`. All three lists are sorted, so one pass is enough.
    fn scalar_shortage<'a>(&'a self, allocatable: &Resources, requested: &Resources, shortage: &mut Shortage<'a>) {
        let (mut allocatable, mut requested) = (allocatable.scalars(), requested.scalars());
        let (mut has, mut used) = (allocatable.next(), requested.next());
        for demand in &self.scalars {
            let has = seek(&mut has, &mut allocatable, &demand.name);
            let used = seek(&mut used, &mut requested, &demand.name);
            if (demand.delegable && has <= 0) || demand.amount <= has.wrapping_sub(used) {
                continue;
            }
            shortage.unresolvable |= demand.amount > has;
            shortage.scalars.push(demand);
        }
    }
}

/// Returns the amount of `name` in a sorted list, or 0 if it is not listed. `head` is the next entry of the list, `rest` the
/// entries after it.
fn seek<'a>(head: &mut Option<(&'a str, i64)>, rest: &mut impl Iterator<Item = (&'a str, i64)>, name: &str) -> i64 {
    while let Some((at, amount)) = *head {
        match at.cmp(name) {
            Ordering::Less => *head = rest.next(),
            Ordering::Equal => return amount,
            Ordering::Greater => break,
        }
    }
    0
}

impl Shortage<'_> {
    /// Returns the reasons in upstream's order. Upstream does not order the scalar resources. Here they are sorted by name.
    fn reasons(&self) -> Reasons {
        match (self.fixed.count_ones(), self.scalars.as_slice()) {
            (1, []) => Reasons::One(Cow::Borrowed(FIXED[self.fixed.trailing_zeros() as usize])),
            (0, [only]) => only.reason.clone(),
            _ => {
                let fixed = FIXED.iter().enumerate().filter(|(bit, _)| self.fixed & (1 << bit) != 0);
                let mut reasons: Vec<Cow<'static, str>> = fixed.map(|(_, reason)| Cow::Borrowed(*reason)).collect();
                for demand in &self.scalars {
                    reasons.extend(demand.reason.iter().map(|reason| Cow::Owned(reason.to_owned())));
                }
                Reasons::from(reasons)
            }
        }
    }
}
