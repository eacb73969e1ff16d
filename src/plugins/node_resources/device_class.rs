//! Extended resources that device classes provide. A node that does not list such a resource may still have devices for it.

use k8s_openapi::api::resource::v1::DeviceClass;

use crate::config::Gate;
use crate::framework::{Handle, PluginError};
use crate::k8s::names::DEVICE_CLASS_PREFIX;
use crate::listers::Lister;

/// Tells which extended resources a device class provides. Queried once per pod, never once per node.
/// Follows `dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go#ExtendedResourceCache
/// @v1.36.3`.
#[derive(Clone, Debug)]
pub struct DeviceClasses {
    /// Whether the gate `DRAExtendedResource` is on.
    is_enabled: bool,
    /// `None` if that gate is off, or if device classes are not watched because `DynamicResourceAllocation` is off.
    classes: Option<Lister<DeviceClass>>,
}

impl DeviceClasses {
    /// Requests a lister of device classes if the feature gates of `handle` need it.
    pub fn new(handle: &Handle) -> Result<Self, PluginError> {
        let is_enabled = handle.gates().enabled(Gate::DRAExtendedResource);
        let is_watched = is_enabled && handle.gates().enabled(Gate::DynamicResourceAllocation);
        Ok(Self { is_enabled, classes: is_watched.then(|| handle.lister()).transpose()? })
    }

    /// Whether device classes can provide extended resources at all.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Whether a device class provides `resource`, by its name or by its `extendedResourceName`.
    pub fn is_mapped(&self, resource: &str) -> bool {
        let Some(classes) = self.classes.as_ref().filter(|classes| !classes.is_empty()) else { return false };
        resource.strip_prefix(DEVICE_CLASS_PREFIX).is_some_and(|name| classes.get(name).is_some())
            || classes.list().iter().any(|class| class.spec.extended_resource_name.as_deref() == Some(resource))
    }
}
