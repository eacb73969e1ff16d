//! The table of kinds that the server knows: what they are called and how their storage behaves.
//!
//! A kind that is not here does not exist. Everything that differs from kind to kind without being code of its own
//! (subresources, generations, selectable fields, what a PUT may do) is a column of this table.

use serde_json::Value;

/// Every kind, in the order of the table.
pub static ALL: &[&Kind] = &KINDS;

/// One kind of object, as its REST storage behaves.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table, written by name")]
pub struct Kind {
    /// Where its objects are stored.
    pub(super) slot: Slot,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version inside the group.
    pub version: &'static str,
    /// Name in URLs.
    pub plural: &'static str,
    /// Name in objects.
    pub kind: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it has a status subresource.
    pub has_status: bool,
    /// Whether `metadata.generation` counts changes of everything but metadata and status.
    pub generation: bool,
    /// Whether a PUT of a missing object creates it (`AllowCreateOnUpdate`).
    pub create_on_update: bool,
    /// Whether an update may leave out the resource version (`AllowUnconditionalUpdate`).
    pub unconditional_update: bool,
    /// Whether a delete answers with the object (`ReturnDeletedObject`).
    pub returns_deleted: bool,
    /// Fields that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub fields: &'static [Field],
    /// Short names, as discovery lists them.
    pub short_names: &'static [&'static str],
}

/// A field that selectors can name.
#[derive(Debug)]
pub struct Field {
    /// The name in selectors; with a `#` in front, no selector can name it.
    pub label: &'static str,
    /// Where the value is in the stored object.
    pub path: &'static [&'static str],
    /// The value of an object without that field.
    pub absent: &'static str,
}

impl Kind {
    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// The resource as messages name it: `pods`, `leases.coordination.k8s.io`.
    /// Follows `apimachinery/pkg/runtime/schema/group_version.go#GroupResource.String @v1.36.3`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The group that messages about invalid objects name: that of the type which upstream checks.
    pub(super) fn error_group(&self) -> &'static str {
        if self.slot == Slot::Event { "" } else { self.group }
    }

    /// The kind under whose name objects are stored: `self`, but for core events, which are another view of the
    /// objects of `events.k8s.io`.
    pub(super) fn storage(&self) -> &'static Kind {
        KINDS[self.slot as usize]
    }

    /// Whether objects are stored in another form than this kind's.
    pub(super) fn is_view(&self) -> bool {
        !std::ptr::eq(self, self.storage())
    }

    /// Whether selectors may name more than metadata.
    pub(super) fn has_own_fields(&self) -> bool {
        self.fields.iter().any(|field| !field.label.starts_with('#'))
    }

    /// Whether its objects say how many pods they want, so that the `scale` subresource can.
    pub(super) fn has_scale(&self) -> bool {
        matches!(self.kind, "Deployment" | "ReplicaSet" | "ReplicationController" | "StatefulSet")
    }

    /// The position of a field.
    pub(super) fn field(&self, label: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.label == label)
    }

    const fn new(
        slot: Slot,
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self {
            slot,
            group,
            version,
            plural,
            kind,
            namespaced: true,
            has_status: false,
            generation: false,
            create_on_update: false,
            unconditional_update: true,
            returns_deleted: false,
            fields: &[],
            short_names: &[],
        }
    }

    const fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    const fn status(mut self) -> Self {
        self.has_status = true;
        self
    }

    const fn generation(mut self) -> Self {
        self.generation = true;
        self
    }

    const fn put_creates(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    const fn put_needs_version(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    const fn returns_deleted(mut self) -> Self {
        self.returns_deleted = true;
        self
    }

    const fn fields(mut self, fields: &'static [Field]) -> Self {
        self.fields = fields;
        self
    }

    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }
}

impl Field {
    const fn new(label: &'static str, path: &'static [&'static str]) -> Self {
        Self { label, path, absent: "" }
    }

    const fn or(mut self, absent: &'static str) -> Self {
        self.absent = absent;
        self
    }

    /// The field's value in `object`, as selectors compare it.
    pub(super) fn read(&self, object: &Value) -> Box<str> {
        let mut at = object;
        for step in self.path {
            at = match at {
                Value::Array(items) => items.first().unwrap_or(&Value::Null),
                other => other,
            };
            at = at.get(step).unwrap_or(&Value::Null);
        }
        match at {
            Value::String(text) => text.as_str().into(),
            Value::Bool(flag) => if *flag { "true" } else { "false" }.into(),
            Value::Number(number) => number.to_string().into(),
            _ => self.absent.into(),
        }
    }
}

/// The kind with this group, version and plural name.
pub fn by_plural(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    served().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
}

/// The kind that an object names in `apiVersion` and `kind`.
pub fn by_name(api_version: &str, name: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    served().find(|kind| kind.kind == name && kind.group == group && kind.version == version)
}

/// All kinds with their other views.
pub(super) fn served() -> impl Iterator<Item = &'static Kind> {
    ALL.iter().copied().chain([&CORE_EVENTS])
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $slot:ident $name:ident = $group:literal $version:literal $plural:literal $(. $method:ident($($arg:expr),*))*;)*) => {
        /// The position of a kind's store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Slot { $($slot),* }

        $($(#[$doc])* pub static $name: Kind =
            Kind::new(Slot::$slot, $group, $version, $plural, stringify!($slot))$(.$method($($arg),*))*;)*

        static KINDS: [&Kind; [$(Slot::$slot),*].len()] = [$(&$name),*];
    };
}

kinds! {
    /// Pods.
    Pod PODS = "" "v1" "pods".status().generation().returns_deleted().short(&["po"]).fields(POD_FIELDS);
    /// Nodes.
    Node NODES = "" "v1" "nodes".cluster().status().short(&["no"]).fields(NODE_FIELDS);
    /// Events, stored in their `events.k8s.io` form.
    Event EVENTS = "events.k8s.io" "v1" "events".put_creates().short(&["ev"]).fields(EVENT_FIELDS);
    /// Leases.
    Lease LEASES = "coordination.k8s.io" "v1" "leases".put_creates().put_needs_version();
    /// Namespaces.
    Namespace NAMESPACES = "" "v1" "namespaces".cluster().status().returns_deleted().short(&["ns"]).fields(NAMESPACE_FIELDS);
    /// Services.
    Service SERVICES = "" "v1" "services".status().put_creates().returns_deleted().short(&["svc"]).fields(SERVICE_FIELDS);
    /// Replication controllers.
    ReplicationController REPLICATION_CONTROLLERS = "" "v1" "replicationcontrollers".status().generation().short(&["rc"]).fields(RC_FIELDS);
    /// Persistent volumes.
    PersistentVolume PERSISTENT_VOLUMES = "" "v1" "persistentvolumes".cluster().status().returns_deleted().short(&["pv"]);
    /// Claims of persistent volumes.
    PersistentVolumeClaim PERSISTENT_VOLUME_CLAIMS = "" "v1" "persistentvolumeclaims".status().returns_deleted().short(&["pvc"]);
    /// Configuration maps.
    ConfigMap CONFIG_MAPS = "" "v1" "configmaps".short(&["cm"]);
    /// Limit ranges.
    LimitRange LIMIT_RANGES = "" "v1" "limitranges".put_creates().short(&["limits"]);
    /// Secrets.
    Secret SECRETS = "" "v1" "secrets".fields(SECRET_FIELDS);
    /// Service accounts.
    ServiceAccount SERVICE_ACCOUNTS = "" "v1" "serviceaccounts".returns_deleted().short(&["sa"]);
    /// Replica sets.
    ReplicaSet REPLICA_SETS = "apps" "v1" "replicasets".status().generation().short(&["rs"]);
    /// Deployments.
    Deployment DEPLOYMENTS = "apps" "v1" "deployments".status().generation().short(&["deploy"]);
    /// Stateful sets.
    StatefulSet STATEFUL_SETS = "apps" "v1" "statefulsets".status().generation().short(&["sts"]);
    /// Daemon sets.
    DaemonSet DAEMON_SETS = "apps" "v1" "daemonsets".status().generation().short(&["ds"]);
    /// Revisions of stateful sets and daemon sets.
    ControllerRevision CONTROLLER_REVISIONS = "apps" "v1" "controllerrevisions";
    /// Jobs.
    Job JOBS = "batch" "v1" "jobs".status().generation().fields(JOB_FIELDS);
    /// Cron jobs.
    CronJob CRON_JOBS = "batch" "v1" "cronjobs".status().generation().short(&["cj"]);
    /// Disruption budgets.
    PodDisruptionBudget POD_DISRUPTION_BUDGETS = "policy" "v1" "poddisruptionbudgets".status().generation().put_needs_version().short(&["pdb"]);
    /// Priority classes.
    PriorityClass PRIORITY_CLASSES = "scheduling.k8s.io" "v1" "priorityclasses".cluster().generation().short(&["pc"]).fields(PRIORITY_CLASS_COLUMNS);
    /// Runtime classes.
    RuntimeClass RUNTIME_CLASSES = "node.k8s.io" "v1" "runtimeclasses".cluster().put_creates().put_needs_version();
    /// Storage classes.
    StorageClass STORAGE_CLASSES = "storage.k8s.io" "v1" "storageclasses".cluster().returns_deleted().short(&["sc"]);
    /// What each node's volume drivers can do.
    CSINode CSI_NODES = "storage.k8s.io" "v1" "csinodes".cluster().put_needs_version().returns_deleted();
    /// Volume drivers.
    CSIDriver CSI_DRIVERS = "storage.k8s.io" "v1" "csidrivers".cluster().put_needs_version().returns_deleted();
    /// Capacities that volume drivers report.
    CSIStorageCapacity CSI_STORAGE_CAPACITIES = "storage.k8s.io" "v1" "csistoragecapacities".put_needs_version();
    /// Attachments of volumes to nodes.
    VolumeAttachment VOLUME_ATTACHMENTS = "storage.k8s.io" "v1" "volumeattachments".cluster().status().put_needs_version().returns_deleted();
    /// Classes of volume attributes.
    VolumeAttributesClass VOLUME_ATTRIBUTES_CLASSES = "storage.k8s.io" "v1" "volumeattributesclasses".cluster().returns_deleted().short(&["vac"]);
    /// Claims of devices.
    ResourceClaim RESOURCE_CLAIMS = "resource.k8s.io" "v1" "resourceclaims".status().returns_deleted();
    /// Templates of device claims.
    ResourceClaimTemplate RESOURCE_CLAIM_TEMPLATES = "resource.k8s.io" "v1" "resourceclaimtemplates".returns_deleted();
    /// Devices that drivers offer.
    ResourceSlice RESOURCE_SLICES = "resource.k8s.io" "v1" "resourceslices".cluster().generation().returns_deleted().fields(SLICE_FIELDS);
    /// Classes of devices.
    DeviceClass DEVICE_CLASSES = "resource.k8s.io" "v1" "deviceclasses".cluster().generation().returns_deleted();
}

/// Events in their core form: the same objects as [`EVENTS`].
pub static CORE_EVENTS: Kind =
    Kind::new(Slot::Event, "", "v1", "events", "Event").put_creates().short(&["ev"]).fields(CORE_EVENT_FIELDS);

/// `pkg/registry/core/pod/strategy.go#ToSelectableFields`, with `spec.host` as the conversion of core/v1 names it.
const POD_FIELDS: &[Field] = &[
    Field::new("spec.nodeName", &["spec", "nodeName"]),
    Field::new("status.phase", &["status", "phase"]),
    Field::new("status.nominatedNodeName", &["status", "nominatedNodeName"]),
    Field::new("spec.schedulerName", &["spec", "schedulerName"]),
    Field::new("spec.restartPolicy", &["spec", "restartPolicy"]),
    Field::new("spec.serviceAccountName", &["spec", "serviceAccountName"]),
    Field::new("spec.hostNetwork", &["spec", "hostNetwork"]).or("false"),
    Field::new("status.podIP", &["status", "podIPs", "ip"]),
    // Selectors may name it, but upstream gives it no value.
    Field::new("status.podIPs", &[]),
    Field::new("spec.host", &["spec", "nodeName"]),
];
/// Positions in `POD_FIELDS` that the binding path writes.
pub(super) const POD_NODE_NAME: usize = 0;
pub(super) const POD_NOMINATED: usize = 2;
pub(super) const POD_HOST: usize = 9;

const NODE_FIELDS: &[Field] = &[Field::new("spec.unschedulable", &["spec", "unschedulable"]).or("false")];
const NAMESPACE_FIELDS: &[Field] = &[Field::new("status.phase", &["status", "phase"])];
const SERVICE_FIELDS: &[Field] =
    &[Field::new("spec.clusterIP", &["spec", "clusterIP"]), Field::new("spec.type", &["spec", "type"])];
const RC_FIELDS: &[Field] = &[Field::new("status.replicas", &["status", "replicas"]).or("0")];
const SECRET_FIELDS: &[Field] = &[Field::new("type", &["type"])];
/// No selector names these: admission reads them for each pod.
const PRIORITY_CLASS_COLUMNS: &[Field] =
    &[Field::new("#globalDefault", &["globalDefault"]), Field::new("#value", &["value"]).or("0")];
const JOB_FIELDS: &[Field] = &[Field::new("status.successful", &["status", "succeeded"]).or("0")];
const SLICE_FIELDS: &[Field] =
    &[Field::new("spec.nodeName", &["spec", "nodeName"]), Field::new("spec.driver", &["spec", "driver"])];

/// `pkg/apis/events/v1/conversion.go#AddFieldLabelConversionsForEvent @v1.36.3`; `source` is only served by the core view,
/// which reads the same positions under its own names.
const EVENT_FIELDS: &[Field] = &[
    Field::new("regarding.kind", &["regarding", "kind"]),
    Field::new("regarding.namespace", &["regarding", "namespace"]),
    Field::new("regarding.name", &["regarding", "name"]),
    Field::new("regarding.uid", &["regarding", "uid"]),
    Field::new("regarding.apiVersion", &["regarding", "apiVersion"]),
    Field::new("regarding.resourceVersion", &["regarding", "resourceVersion"]),
    Field::new("regarding.fieldPath", &["regarding", "fieldPath"]),
    Field::new("reason", &["reason"]),
    Field::new("reportingController", &["reportingController"]),
    Field::new("type", &["type"]),
    Field::new("#source", &["deprecatedSource", "component"]),
];
/// `pkg/apis/core/v1/conversion.go#AddFieldLabelConversionsForEvent @v1.36.3`, position by position as `EVENT_FIELDS`.
const CORE_EVENT_FIELDS: &[Field] = &[
    Field::new("involvedObject.kind", &[]),
    Field::new("involvedObject.namespace", &[]),
    Field::new("involvedObject.name", &[]),
    Field::new("involvedObject.uid", &[]),
    Field::new("involvedObject.apiVersion", &[]),
    Field::new("involvedObject.resourceVersion", &[]),
    Field::new("involvedObject.fieldPath", &[]),
    Field::new("reason", &[]),
    Field::new("reportingComponent", &[]),
    Field::new("type", &[]),
    Field::new("source", &[]),
];

/// Returns the message about a kind that the server does not know.
pub(super) fn unregistered(api_version: &str, name: &str) -> String {
    format!("no kind {name:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_is_found_by_both_of_its_names() {
        for kind in served() {
            assert!(std::ptr::eq(by_plural(kind.group, kind.version, kind.plural).unwrap(), kind), "{kind:?}");
            assert!(std::ptr::eq(by_name(&kind.api_version(), kind.kind).unwrap(), kind), "{kind:?}");
        }
        assert!(CORE_EVENTS.is_view());
        assert!(ALL.iter().all(|kind| !kind.is_view()));
    }

    #[test]
    fn the_positions_that_binding_writes_are_the_fields_it_means() {
        for (position, label) in
            [(POD_NODE_NAME, "spec.nodeName"), (POD_NOMINATED, "status.nominatedNodeName"), (POD_HOST, "spec.host")]
        {
            assert_eq!(PODS.field(label), Some(position));
        }
        assert_eq!(EVENT_FIELDS.len(), CORE_EVENT_FIELDS.len());
    }

    #[test]
    fn fields_are_read_as_selectors_compare_them() {
        let pod = json!({"spec": {"hostNetwork": true}, "status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]}});
        let read = |label: &str| PODS.fields[PODS.field(label).unwrap()].read(&pod);
        assert_eq!(&*read("spec.hostNetwork"), "true");
        assert_eq!(&*read("status.podIP"), "10.0.0.1");
        assert_eq!(&*read("spec.nodeName"), "");
        assert_eq!(&*JOBS.fields[0].read(&json!({})), "0");
        assert_eq!(&*JOBS.fields[0].read(&json!({"status": {"succeeded": 3}})), "3");
    }
}
