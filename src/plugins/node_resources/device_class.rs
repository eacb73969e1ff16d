//! Resources that device classes stand behind: a node that has none of one by itself may still have devices for it.

use std::sync::Arc;

use crate::config::Gate;
use crate::framework::Handle;
use crate::k8s::names::DEVICE_CLASS_PREFIX;
use crate::listers::Listers;

/// Tells which resources a device class stands behind. Asked once a pod, never once a node.
/// Follows `dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go#ExtendedResourceCache
/// @v1.36.3`.
#[derive(Clone, Debug)]
pub struct DeviceClasses {
    /// None while `DRAExtendedResource` is off.
    listers: Option<Arc<Listers>>,
}

impl DeviceClasses {
    /// As the gates of `handle` say.
    pub fn new(handle: &Handle) -> Self {
        let is_on = handle.gates().enabled(Gate::DRAExtendedResource);
        Self { listers: is_on.then(|| handle.listers().clone()) }
    }

    /// Whether device classes may stand behind resources at all.
    pub fn is_enabled(&self) -> bool {
        self.listers.is_some()
    }

    /// Whether a device class stands behind `resource`: by its name, or by the extended resource that it declares.
    pub fn is_mapped(&self, resource: &str) -> bool {
        let Some(listers) = &self.listers else { return false };
        let classes = &listers.device_classes;
        if classes.is_empty() {
            return false;
        }
        resource.strip_prefix(DEVICE_CLASS_PREFIX).is_some_and(|name| classes.get(name).is_some())
            || classes.list().iter().any(|class| class.spec.extended_resource_name.as_deref() == Some(resource))
    }
}
