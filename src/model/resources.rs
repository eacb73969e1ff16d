//! Amounts of resources in the units that scheduling computes with.

use std::sync::Arc;

use crate::k8s::names::is_scalar_resource;
use crate::k8s::quantity::Format;
use crate::k8s::{Quantity, ResourceList};

/// API name of the CPU resource.
pub const CPU: &str = "cpu";
/// API name of the memory resource.
pub const MEMORY: &str = "memory";
/// API name of the local disk resource.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// API name of a node's limit on its number of pods.
pub const PODS: &str = "pods";

/// Amounts of resources: CPU in thousandths of a core, everything else in whole units (bytes, devices), each rounded up.
/// Sums wrap on overflow, as they do upstream. Follows `kube-scheduler/framework/types.go#Resource @v1.36.3`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// CPU in thousandths of a core.
    pub milli_cpu: i64,
    /// Amount of memory in bytes.
    pub memory: i64,
    /// Amount of local disk in bytes.
    pub ephemeral_storage: i64,
    /// Number of pods that a node allows; 0 in requests.
    pub allowed_pods: i64,
    /// Extended and other scalar resources, sorted by name. A resource with amount 0 stays listed.
    scalars: Vec<(Arc<str>, i64)>,
}

/// Returns an amount of `resource`, given in the units of [`Resources`], as the API writes it: bytes have binary suffixes.
pub fn quantity_of(resource: &str, amount: i64) -> Quantity {
    match resource {
        CPU => Quantity::from_milli(amount),
        MEMORY | EPHEMERAL_STORAGE => Quantity::from_value(amount).with_format(Format::BinarySi),
        _ => Quantity::from_value(amount),
    }
}

impl Resources {
    /// Returns the amounts in `list`. Resources that scheduling does not count are left out.
    pub fn from_list(list: &ResourceList) -> Self {
        Self::from_quantities(list.iter().map(|(name, quantity)| (name, *quantity)))
    }

    /// Returns the amounts of these names and quantities. The quantities of a repeated name are added up.
    /// Follows `pkg/scheduler/framework/types.go#Resource.Add @v1.36.3`.
    pub fn from_quantities<'a>(quantities: impl IntoIterator<Item = (&'a str, Quantity)>) -> Self {
        let mut resources = Self::default();
        let add = |sum: &mut i64, amount: i64| *sum = sum.wrapping_add(amount);
        for (name, quantity) in quantities {
            match name {
                CPU => add(&mut resources.milli_cpu, quantity.milli_value()),
                MEMORY => add(&mut resources.memory, quantity.value()),
                EPHEMERAL_STORAGE => add(&mut resources.ephemeral_storage, quantity.value()),
                PODS => add(&mut resources.allowed_pods, quantity.value()),
                name if is_scalar_resource(name) => resources.add_scalar(name, quantity.value()),
                _ => {}
            }
        }
        resources
    }

    /// Returns the amounts with negative amounts raised to 0, and with `allowed_pods` set to 0. Pod requests have this form.
    /// Follows `pkg/scheduler/framework/types.go#Resource.SetMaxResource @v1.36.3` on an empty resource.
    #[must_use]
    pub fn floored(mut self) -> Self {
        for amount in [&mut self.milli_cpu, &mut self.memory, &mut self.ephemeral_storage] {
            *amount = (*amount).max(0);
        }
        for (_, amount) in &mut self.scalars {
            *amount = (*amount).max(0);
        }
        self.allowed_pods = 0;
        self
    }

    /// The scalar resources, sorted by name.
    pub fn scalars(&self) -> impl ExactSizeIterator<Item = (&str, i64)> {
        self.scalars.iter().map(|(name, amount)| (&**name, *amount))
    }

    /// Whether no scalar resource is listed, not even with an amount of 0.
    pub fn has_no_scalars(&self) -> bool {
        self.scalars.is_empty()
    }

    /// The amount of scalar resource `name`, or 0 if it is not listed.
    pub fn scalar(&self, name: &str) -> i64 {
        self.position(name).map_or(0, |at| self.scalars[at].1)
    }

    /// The amount of any resource by its API name.
    pub fn get(&self, name: &str) -> i64 {
        match name {
            CPU => self.milli_cpu,
            MEMORY => self.memory,
            EPHEMERAL_STORAGE => self.ephemeral_storage,
            PODS => self.allowed_pods,
            name => self.scalar(name),
        }
    }

    /// Adds an amount to scalar resource `name`.
    pub fn add_scalar(&mut self, name: &str, amount: i64) {
        let total = self.entry(name, || Arc::from(name));
        *total = total.wrapping_add(amount);
    }

    /// Adds the CPU, memory, local disk and scalars of `other`, as when a pod is added to a node.
    pub fn add(&mut self, other: &Self) {
        self.milli_cpu = self.milli_cpu.wrapping_add(other.milli_cpu);
        self.memory = self.memory.wrapping_add(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.wrapping_add(other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            let total = self.entry(name, || name.clone());
            *total = total.wrapping_add(*amount);
        }
    }

    /// Subtracts the CPU, memory, local disk and scalars of `other`. Scalars with amount 0 stay listed.
    pub fn sub(&mut self, other: &Self) {
        self.milli_cpu = self.milli_cpu.wrapping_sub(other.milli_cpu);
        self.memory = self.memory.wrapping_sub(other.memory);
        self.ephemeral_storage = self.ephemeral_storage.wrapping_sub(other.ephemeral_storage);
        for (name, amount) in &other.scalars {
            let total = self.entry(name, || name.clone());
            *total = total.wrapping_sub(*amount);
        }
    }

    /// Returns the amount of a scalar resource for modification. If the resource is not listed yet, it is added with amount 0
    /// under the name that `owned` returns.
    fn entry(&mut self, name: &str, owned: impl FnOnce() -> Arc<str>) -> &mut i64 {
        let at = self.position(name).unwrap_or_else(|at| {
            self.scalars.insert(at, (owned(), 0));
            at
        });
        &mut self.scalars[at].1
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.scalars.binary_search_by(|(key, _)| (**key).cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(cpu: i64, memory: i64, disk: i64, scalars: &[(&str, i64)]) -> Resources {
        let mut resources =
            Resources { milli_cpu: cpu, memory, ephemeral_storage: disk, allowed_pods: 7, ..Resources::default() };
        scalars.iter().for_each(|(name, amount)| resources.add_scalar(name, *amount));
        resources
    }

    #[test]
    fn sub_keeps_zeros_and_the_pod_limit() {
        let (pod, before) =
            (amounts(1, 2, 3, &[("a/x", 4), ("c/x", 5)]), amounts(10, 20, 30, &[("a/x", 40), ("b/x", 50)]));
        let mut node = before;
        node.add(&pod);
        assert_eq!(node, amounts(11, 22, 33, &[("a/x", 44), ("b/x", 50), ("c/x", 5)]));
        node.sub(&pod);
        assert_eq!(node, amounts(10, 20, 30, &[("a/x", 40), ("b/x", 50), ("c/x", 0)]));
    }

    #[test]
    fn get_finds_amounts_by_resource_name() {
        let resources = amounts(1, 2, 3, &[("a/x", 4)]);
        let found = ["cpu", "memory", "ephemeral-storage", "pods", "a/x", "b/x"].map(|name| resources.get(name));
        assert_eq!(found, [1, 2, 3, 7, 4, 0]);
    }
}
