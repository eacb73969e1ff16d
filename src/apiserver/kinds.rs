//! Table of the kinds that the server knows: their names and the behavior of their storage.
//!
//! A kind that is not in this table is unknown to the server. Every difference between kinds that needs no code of its own
//! (subresources, generations, selectable fields, PUT semantics) is a column of this table.

use serde_json::Value;

/// All stored kinds, in the order of the table.
pub static ALL: &[&Kind] = &KINDS;

/// One kind of object, with the behavior of its REST storage.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a row of a table, written by name")]
pub struct Kind {
    /// Position of the kind's objects in the store.
    pub(super) slot: Slot,
    /// The API group, or "" for the core group.
    pub group: &'static str,
    /// The version within the API group.
    pub version: &'static str,
    /// Plural name, as used in URLs.
    pub plural: &'static str,
    /// Name of the kind, as used in objects.
    pub kind: &'static str,
    /// Whether objects of this kind are namespaced.
    pub namespaced: bool,
    /// Whether the kind has a status subresource.
    pub has_status: bool,
    /// Whether new objects get the generation 1, and each change of the spec increments it.
    pub generation: bool,
    /// Whether a PUT of a missing object creates it (`AllowCreateOnUpdate`).
    pub create_on_update: bool,
    /// Whether an update may leave out the resource version (`AllowUnconditionalUpdate`).
    pub unconditional_update: bool,
    /// Whether a delete returns the object instead of a status (`ReturnDeletedObject`).
    pub returns_deleted: bool,
    /// Fields that a field selector may name besides `metadata.name` and `metadata.namespace`.
    pub fields: &'static [Field],
    /// Short names that discovery lists.
    pub short_names: &'static [&'static str],
}

/// A field that field selectors can name.
#[derive(Debug)]
pub struct Field {
    /// Name of the field in selectors. Selectors cannot name a field whose label starts with `#`.
    pub label: &'static str,
    /// Path to the value in the stored object.
    pub path: &'static [&'static str],
    /// Value for an object that does not have the field.
    pub absent: &'static str,
}

impl Kind {
    /// Returns the `apiVersion`: `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the resource as messages name it: `pods`, `leases.coordination.k8s.io`.
    /// Follows `apimachinery/pkg/runtime/schema/group_version.go#GroupResource.String @v1.36.3`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Returns the group for messages about invalid objects: the group of the type that upstream validates.
    pub(super) fn error_group(&self) -> &'static str {
        if self.slot == Slot::Event { "" } else { self.group }
    }

    /// Returns the kind in whose form objects are stored. This is `self`, except for core events: they are a view of the events
    /// of `events.k8s.io`.
    pub(super) fn storage(&self) -> &'static Kind {
        KINDS[self.slot as usize]
    }

    /// Whether objects of this kind are stored in the form of another kind.
    pub(super) fn is_view(&self) -> bool {
        !std::ptr::eq(self, self.storage())
    }

    /// Whether field selectors may name other fields than metadata.
    pub(super) fn has_own_fields(&self) -> bool {
        self.fields.iter().any(|field| !field.label.starts_with('#'))
    }

    /// Whether the kind has a `scale` subresource.
    pub(super) fn has_scale(&self) -> bool {
        matches!(self.kind, "Deployment" | "ReplicaSet" | "ReplicationController" | "StatefulSet")
    }

    /// Returns the position of a field.
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

    /// Reads the field's value in `object`, as the text that selectors compare.
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

/// Returns the kind with this group, version and plural name.
pub fn by_plural(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    served().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
}

/// Returns the kind with this `apiVersion` and `kind`.
pub fn by_name(api_version: &str, name: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    served().find(|kind| kind.kind == name && kind.group == group && kind.version == version)
}

/// Returns all served kinds: the stored kinds and their views.
pub(super) fn served() -> impl Iterator<Item = &'static Kind> {
    ALL.iter().copied().chain([&CORE_EVENTS])
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $slot:ident $name:ident = $group:literal $version:literal $plural:literal $(. $method:ident($($arg:expr),*))*;)*) => {
        /// The position of a kind's objects in the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Slot { $($slot),* }

        $($(#[$doc])* pub static $name: Kind =
            Kind::new(Slot::$slot, $group, $version, $plural, stringify!($slot))$(.$method($($arg),*))*;)*

        static KINDS: [&Kind; [$(Slot::$slot),*].len()] = [$(&$name),*];
    };
}

kinds! {
    /// The `Pod` kind of `v1`.
    Pod PODS = "" "v1" "pods".status().generation().returns_deleted().short(&["po"]).fields(POD_FIELDS);
    /// The `Node` kind of `v1`.
    Node NODES = "" "v1" "nodes".cluster().status().short(&["no"]).fields(NODE_FIELDS);
    /// The `Event` kind of `events.k8s.io/v1`, the form in which events are stored.
    Event EVENTS = "events.k8s.io" "v1" "events".put_creates().short(&["ev"]).fields(EVENT_FIELDS);
    /// The `Lease` kind of `coordination.k8s.io/v1`.
    Lease LEASES = "coordination.k8s.io" "v1" "leases".put_creates().put_needs_version();
    /// The `Namespace` kind of `v1`.
    Namespace NAMESPACES = "" "v1" "namespaces".cluster().status().returns_deleted().short(&["ns"]).fields(NAMESPACE_FIELDS);
    /// The `Service` kind of `v1`.
    Service SERVICES = "" "v1" "services".status().put_creates().returns_deleted().short(&["svc"]).fields(SERVICE_FIELDS);
    /// The `ReplicationController` kind of `v1`.
    ReplicationController REPLICATION_CONTROLLERS = "" "v1" "replicationcontrollers".status().generation().short(&["rc"]).fields(RC_FIELDS);
    /// The `PersistentVolume` kind of `v1`.
    PersistentVolume PERSISTENT_VOLUMES = "" "v1" "persistentvolumes".cluster().status().returns_deleted().short(&["pv"]);
    /// The `PersistentVolumeClaim` kind of `v1`.
    PersistentVolumeClaim PERSISTENT_VOLUME_CLAIMS = "" "v1" "persistentvolumeclaims".status().returns_deleted().short(&["pvc"]);
    /// The `ConfigMap` kind of `v1`.
    ConfigMap CONFIG_MAPS = "" "v1" "configmaps".short(&["cm"]);
    /// The `LimitRange` kind of `v1`.
    LimitRange LIMIT_RANGES = "" "v1" "limitranges".put_creates().short(&["limits"]);
    /// The `Secret` kind of `v1`.
    Secret SECRETS = "" "v1" "secrets".fields(SECRET_FIELDS);
    /// The `ServiceAccount` kind of `v1`.
    ServiceAccount SERVICE_ACCOUNTS = "" "v1" "serviceaccounts".returns_deleted().short(&["sa"]);
    /// The `ReplicaSet` kind of `apps/v1`.
    ReplicaSet REPLICA_SETS = "apps" "v1" "replicasets".status().generation().short(&["rs"]);
    /// The `Deployment` kind of `apps/v1`.
    Deployment DEPLOYMENTS = "apps" "v1" "deployments".status().generation().short(&["deploy"]);
    /// The `StatefulSet` kind of `apps/v1`.
    StatefulSet STATEFUL_SETS = "apps" "v1" "statefulsets".status().generation().short(&["sts"]);
    /// The `DaemonSet` kind of `apps/v1`.
    DaemonSet DAEMON_SETS = "apps" "v1" "daemonsets".status().generation().short(&["ds"]);
    /// The `ControllerRevision` kind of `apps/v1`: revisions of stateful sets and daemon sets.
    ControllerRevision CONTROLLER_REVISIONS = "apps" "v1" "controllerrevisions";
    /// The `Job` kind of `batch/v1`.
    Job JOBS = "batch" "v1" "jobs".status().generation().fields(JOB_FIELDS);
    /// The `CronJob` kind of `batch/v1`.
    CronJob CRON_JOBS = "batch" "v1" "cronjobs".status().generation().short(&["cj"]);
    /// The `PodDisruptionBudget` kind of `policy/v1`.
    PodDisruptionBudget POD_DISRUPTION_BUDGETS = "policy" "v1" "poddisruptionbudgets".status().generation().put_needs_version().short(&["pdb"]);
    /// The `PriorityClass` kind of `scheduling.k8s.io/v1`.
    PriorityClass PRIORITY_CLASSES = "scheduling.k8s.io" "v1" "priorityclasses".cluster().generation().short(&["pc"]).fields(PRIORITY_CLASS_COLUMNS);
    /// The `RuntimeClass` kind of `node.k8s.io/v1`.
    RuntimeClass RUNTIME_CLASSES = "node.k8s.io" "v1" "runtimeclasses".cluster().put_creates().put_needs_version();
    /// The `StorageClass` kind of `storage.k8s.io/v1`.
    StorageClass STORAGE_CLASSES = "storage.k8s.io" "v1" "storageclasses".cluster().returns_deleted().short(&["sc"]);
    /// The `CSINode` kind of `storage.k8s.io/v1`: the volume drivers of a node.
    CSINode CSI_NODES = "storage.k8s.io" "v1" "csinodes".cluster().put_needs_version().returns_deleted();
    /// The `CSIDriver` kind of `storage.k8s.io/v1`: a volume driver.
    CSIDriver CSI_DRIVERS = "storage.k8s.io" "v1" "csidrivers".cluster().put_needs_version().returns_deleted();
    /// The `CSIStorageCapacity` kind of `storage.k8s.io/v1`: storage capacity that a volume driver reports.
    CSIStorageCapacity CSI_STORAGE_CAPACITIES = "storage.k8s.io" "v1" "csistoragecapacities".put_needs_version();
    /// The `VolumeAttachment` kind of `storage.k8s.io/v1`: the attachment of a volume to a node.
    VolumeAttachment VOLUME_ATTACHMENTS = "storage.k8s.io" "v1" "volumeattachments".cluster().status().put_needs_version().returns_deleted();
    /// The `VolumeAttributesClass` kind of `storage.k8s.io/v1`.
    VolumeAttributesClass VOLUME_ATTRIBUTES_CLASSES = "storage.k8s.io" "v1" "volumeattributesclasses".cluster().returns_deleted().short(&["vac"]);
    /// The `ResourceClaim` kind of `resource.k8s.io/v1`: a claim of devices.
    ResourceClaim RESOURCE_CLAIMS = "resource.k8s.io" "v1" "resourceclaims".status().returns_deleted();
    /// The `ResourceClaimTemplate` kind of `resource.k8s.io/v1`: a template of device claims.
    ResourceClaimTemplate RESOURCE_CLAIM_TEMPLATES = "resource.k8s.io" "v1" "resourceclaimtemplates".returns_deleted();
    /// The `ResourceSlice` kind of `resource.k8s.io/v1`: devices that a driver offers.
    ResourceSlice RESOURCE_SLICES = "resource.k8s.io" "v1" "resourceslices".cluster().generation().returns_deleted().fields(SLICE_FIELDS);
    /// The `DeviceClass` kind of `resource.k8s.io/v1`.
    DeviceClass DEVICE_CLASSES = "resource.k8s.io" "v1" "deviceclasses".cluster().generation().returns_deleted();
}

/// The `Event` kind of `v1`: a view of the same objects as [`EVENTS`].
pub static CORE_EVENTS: Kind =
    Kind::new(Slot::Event, "", "v1", "events", "Event").put_creates().short(&["ev"]).fields(CORE_EVENT_FIELDS);

/// Selectable fields of pods. Follows `pkg/registry/core/pod/strategy.go#ToSelectableFields`, plus `spec.host`, a name that
/// only the conversion of core/v1 accepts.
const POD_FIELDS: &[Field] = &[
    Field::new("spec.nodeName", &["spec", "nodeName"]),
    Field::new("status.phase", &["status", "phase"]),
    Field::new("status.nominatedNodeName", &["status", "nominatedNodeName"]),
    Field::new("spec.schedulerName", &["spec", "schedulerName"]),
    Field::new("spec.restartPolicy", &["spec", "restartPolicy"]),
    Field::new("spec.serviceAccountName", &["spec", "serviceAccountName"]),
    Field::new("spec.hostNetwork", &["spec", "hostNetwork"]).or("false"),
    Field::new("status.podIP", &["status", "podIPs", "ip"]),
    // Selectors may name this field, but upstream gives it no value.
    Field::new("status.podIPs", &[]),
    Field::new("spec.host", &["spec", "nodeName"]),
];
/// Positions in `POD_FIELDS` of the fields that a binding changes.
pub(super) const POD_NODE_NAME: usize = 0;
pub(super) const POD_NOMINATED: usize = 2;
pub(super) const POD_HOST: usize = 9;

const NODE_FIELDS: &[Field] = &[Field::new("spec.unschedulable", &["spec", "unschedulable"]).or("false")];
const NAMESPACE_FIELDS: &[Field] = &[Field::new("status.phase", &["status", "phase"])];
const SERVICE_FIELDS: &[Field] =
    &[Field::new("spec.clusterIP", &["spec", "clusterIP"]), Field::new("spec.type", &["spec", "type"])];
const RC_FIELDS: &[Field] = &[Field::new("status.replicas", &["status", "replicas"]).or("0")];
const SECRET_FIELDS: &[Field] = &[Field::new("type", &["type"])];
/// Fields of priority classes that admission reads for each pod. Selectors cannot name them.
const PRIORITY_CLASS_COLUMNS: &[Field] =
    &[Field::new("#globalDefault", &["globalDefault"]), Field::new("#value", &["value"]).or("0")];
const JOB_FIELDS: &[Field] = &[Field::new("status.successful", &["status", "succeeded"]).or("0")];
const SLICE_FIELDS: &[Field] =
    &[Field::new("spec.nodeName", &["spec", "nodeName"]), Field::new("spec.driver", &["spec", "driver"])];

/// Selectable fields of events. Follows `pkg/apis/events/v1/conversion.go#AddFieldLabelConversionsForEvent @v1.36.3`. The core
/// view reads the same positions under its own names. Only the core view can select by `source`.
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
/// Names of the fields in the core view, at the same positions as in `EVENT_FIELDS`.
/// Follows `pkg/apis/core/v1/conversion.go#AddFieldLabelConversionsForEvent @v1.36.3`.
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

/// Returns the message for a kind that the server does not know.
pub(super) fn unregistered(api_version: &str, name: &str) -> String {
    format!("no kind {name:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_is_found_by_plural_and_by_name() {
        for kind in served() {
            assert!(std::ptr::eq(by_plural(kind.group, kind.version, kind.plural).unwrap(), kind), "{kind:?}");
            assert!(std::ptr::eq(by_name(&kind.api_version(), kind.kind).unwrap(), kind), "{kind:?}");
        }
        assert!(CORE_EVENTS.is_view());
        assert!(ALL.iter().all(|kind| !kind.is_view()));
    }

    #[test]
    fn field_positions_used_by_binding_match_their_labels() {
        for (position, label) in
            [(POD_NODE_NAME, "spec.nodeName"), (POD_NOMINATED, "status.nominatedNodeName"), (POD_HOST, "spec.host")]
        {
            assert_eq!(PODS.field(label), Some(position));
        }
        assert_eq!(EVENT_FIELDS.len(), CORE_EVENT_FIELDS.len());
    }

    #[test]
    fn selectable_fields_are_read_as_text() {
        let pod = json!({"spec": {"hostNetwork": true}, "status": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "::1"}]}});
        let read = |label: &str| PODS.fields[PODS.field(label).unwrap()].read(&pod);
        assert_eq!(&*read("spec.hostNetwork"), "true");
        assert_eq!(&*read("status.podIP"), "10.0.0.1");
        assert_eq!(&*read("spec.nodeName"), "");
        assert_eq!(&*JOBS.fields[0].read(&json!({})), "0");
        assert_eq!(&*JOBS.fields[0].read(&json!({"status": {"succeeded": 3}})), "3");
    }
}
