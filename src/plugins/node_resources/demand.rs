//! What a pod needs of a node, and whether the node has it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::DeviceClasses;
use crate::framework::{Reasons, Rejection, RejectionKind, Verdict};
use crate::k8s::names::is_extended_resource;
use crate::model::{NodeInfo, Resources};

/// The reasons that are constants, in upstream's order: the bits of [`Shortage::fixed`].
const FIXED: [&str; 4] = ["Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage"];

/// Extended resources that fitting leaves out, by name and by what stands before the slash.
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
    /// Above 0.
    amount: i64,
    /// A device class stands behind it: a node that has none by itself is none of this plugin's business.
    delegable: bool,
    /// `Insufficient <name>`, as the only reason.
    reason: Reasons,
}

/// What a pod needs of a node, worked out once an attempt. Amounts of 0 are as good as none.
/// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#preFilterState @v1.36.3`.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    milli_cpu: i64,
    memory: i64,
    ephemeral_storage: i64,
    /// Sorted by name, without those that are ignored.
    scalars: Vec<ScalarDemand>,
}

/// What a node lacks for a pod.
#[derive(Debug, Default)]
struct Shortage<'a> {
    /// One bit for each of [`FIXED`].
    fixed: u8,
    scalars: Vec<&'a ScalarDemand>,
    /// Whether the node is too small even when empty.
    unresolvable: bool,
}

impl Demand {
    /// What a pod with these requests needs.
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

    /// Whether `node` has what the pod needs.
    pub(super) fn verdict(&self, node: &NodeInfo) -> Verdict {
        self.shortage(node.allocatable(), node.requested(), node.pods().len()).map_or(Verdict::Pass, |shortage| {
            let kind = if shortage.unresolvable { RejectionKind::Unresolvable } else { RejectionKind::Unschedulable };
            Verdict::Reject(Rejection { kind, reasons: shortage.reasons() })
        })
    }

    /// Whether a node with this for pods has what the pod needs while it is empty.
    pub(super) fn fits_empty(&self, allocatable: &Resources) -> bool {
        self.shortage(allocatable, &Resources::default(), 0).is_none()
    }

    /// Whether `new` has more than `old` of anything that the pod needs, or leaves some of it to device classes.
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

    /// Follows `pkg/scheduler/framework/plugins/noderesources/fit.go#fitsRequest @v1.36.3`; subtraction wraps as there.
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

    /// All three lists are sorted, so one walk over them is enough.
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

/// The amount of `name` in a sorted list, 0 if it is not there; `head` is where the walk through the list stands.
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
    /// The reasons in upstream's order; upstream leaves that of scalars open, here they are sorted by name.
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
