//! Resources that device classes stand behind: a node that has none of one by itself may still have devices for it.

use k8s_openapi::api::resource::v1::DeviceClass;

use crate::config::Gate;
use crate::framework::{Handle, PluginError};
use crate::k8s::names::DEVICE_CLASS_PREFIX;
use crate::listers::Lister;

/// Tells which resources a device class stands behind. Asked once a pod, never once a node.
/// Follows `dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go#ExtendedResourceCache
/// @v1.36.3`.
#[derive(Clone, Debug)]
pub struct DeviceClasses {
    /// Whether `DRAExtendedResource` is on.
    is_enabled: bool,
    /// None if the gate is off, or if no devices are watched because `DynamicResourceAllocation` is off.
    classes: Option<Lister<DeviceClass>>,
}

impl DeviceClasses {
    /// Asks for the device classes if the gates of `handle` say that they matter.
    pub fn new(handle: &Handle) -> Result<Self, PluginError> {
        let is_enabled = handle.gates().enabled(Gate::DRAExtendedResource);
        let is_watched = is_enabled && handle.gates().enabled(Gate::DynamicResourceAllocation);
        Ok(Self { is_enabled, classes: is_watched.then(|| handle.lister()).transpose()? })
    }

    /// Whether device classes may stand behind resources at all.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Whether a device class stands behind `resource`: by its name, or by the extended resource that it declares.
    pub fn is_mapped(&self, resource: &str) -> bool {
        let Some(classes) = self.classes.as_ref().filter(|classes| !classes.is_empty()) else { return false };
        resource.strip_prefix(DEVICE_CLASS_PREFIX).is_some_and(|name| classes.get(name).is_some())
            || classes.list().iter().any(|class| class.spec.extended_resource_name.as_deref() == Some(resource))
    }
}
