//! Selection of objects for a list or a watch: by namespace, labels and fields.

use super::kinds::{JOBS, Kind, RESOURCE_SLICES};
use super::object::Object;
use crate::apimachinery::Status;
use crate::k8s::{FieldSelector, Selector};

/// Namespace and selectors of a list or watch request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// Namespace of the objects, or "" for all namespaces.
    namespace: String,
    labels: Selector,
    fields: Vec<FieldTerm>,
}

/// A requirement that a field has this value, or that it has another value.
#[derive(Clone, Debug)]
struct FieldTerm {
    source: FieldSource,
    is_equal: bool,
    value: String,
}

#[derive(Clone, Copy, Debug)]
enum FieldSource {
    Name,
    Namespace,
    /// Position in the kind's [`fields`](Kind::fields).
    Column(usize),
}

impl Selection {
    /// Parses the selectors of a request.
    pub(super) fn parse(kind: &Kind, namespace: &str, labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = Selector::parse(labels).map_err(|error| Status::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(fields).map_err(|error| Status::bad_request(error.to_string()))?;
        let term = |(field, is_equal, value): (&str, bool, &str)| {
            Ok(FieldTerm { source: FieldSource::find(kind, field)?, is_equal, value: value.to_owned() })
        };
        let required = fields.requirements().iter();
        let fields = required.map(|one| term((&one.field, one.is_equal, &one.value))).collect::<Result<_, Status>>()?;
        Ok(Self { namespace: namespace.to_owned(), labels, fields })
    }

    /// Whether a label or field selector is set.
    pub(super) fn narrows(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        self.in_namespace(object)
            && self.fields.iter().all(|term| term.matches(object))
            && self.labels.matches_by(|key| object.label(key))
    }

    /// Whether the object is in the selected namespace.
    pub(super) fn in_namespace(&self, object: &Object) -> bool {
        self.namespace.is_empty() || object.namespace() == self.namespace
    }
}

impl FieldTerm {
    fn matches(&self, object: &Object) -> bool {
        let value = match self.source {
            FieldSource::Name => object.name(),
            FieldSource::Namespace => object.namespace(),
            FieldSource::Column(column) => &object.fields[column],
        };
        (value == self.value) == self.is_equal
    }
}

impl FieldSource {
    /// Finds the source of a field by its label in selectors.
    /// Follows `apimachinery/pkg/runtime/conversion.go#DefaultMetaV1FieldSelectorConversion @v1.36.3` and the kinds' own
    /// conversions.
    fn find(kind: &Kind, label: &str) -> Result<Self, Status> {
        match label {
            "metadata.name" => return Ok(Self::Name),
            "metadata.namespace" if kind.namespaced => return Ok(Self::Namespace),
            _ => {}
        }
        if let Some(column) = kind.field(label).filter(|_| !label.starts_with('#')) {
            return Ok(Self::Column(column));
        }
        Err(Status::bad_request(if kind.slot == JOBS.slot {
            format!("field label {label:?} not supported for Job")
        } else if kind.slot == RESOURCE_SLICES.slot {
            format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}")
        } else if kind.has_own_fields() {
            format!("field label not supported: {label}")
        } else {
            format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }))
    }
}
