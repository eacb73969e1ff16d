//! Loads objects from cluster files, each with its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::documents::documents;
use super::files;
use super::progress::Progress;
use crate::apiserver::{Kind, kinds};
use crate::config::document_text;

/// Origin of an object in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file name, as it was given.
    pub file: Arc<str>,
    /// The document in the file, counted from 1.
    pub document: usize,
    /// The position in the document's list, counted from 1, followed by the positions in nested lists.
    pub items: Vec<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.items.iter().try_for_each(|item| write!(f, ", item {item}"))
    }
}

/// An object and its origin.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The object, with apiVersion and kind.
    pub object: Value,
    /// The origin of the object in the input.
    pub origin: Origin,
}

impl Loaded {
    /// Returns `Kind namespace/name`, as messages name the object.
    pub fn title(&self) -> String {
        title(&self.object)
    }
}

/// Returns `Kind namespace/name` of an object.
pub(super) fn title(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    let name = if name.is_empty() { "without a name" } else { name };
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// Objects read from the input.
#[derive(Debug, Default)]
pub struct Input {
    /// The objects in loading order: first those of the kinds to which other objects refer, then all others as read.
    pub objects: Vec<Loaded>,
    /// Kinds that scheduling does not use, with the number of ignored objects of each.
    pub ignored: BTreeMap<String, usize>,
}

/// Error while the input is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("{file}: {error}")]
    File {
        /// Name of the file.
        file: String,
        /// Why the file cannot be read.
        error: String,
    },
    /// A folder contains no cluster file.
    #[error("{0}: the folder has no file that ends in .yaml, .yml or .json")]
    EmptyFolder(String),
    /// A document is invalid.
    #[error("{origin}: {error}")]
    Document {
        /// Origin of the document.
        origin: String,
        /// Why the document is invalid.
        error: String,
    },
    /// The input contains no objects. Has the names of the first files, or of all of them.
    #[error("{0}: no objects")]
    Nothing(String),
}

/// Maximum number of files that the error about an empty input names.
const NAMED_FILES: usize = 3;

/// Reads files, folders and, for `-`, standard input. A file may have no objects, such as an empty list, if another file has
/// some.
pub fn load(paths: &[PathBuf]) -> Result<Input, LoadError> {
    let mut input = Input::default();
    let mut names = Vec::new();
    for path in paths {
        for file in files::files(path)? {
            let (name, data) = files::read(&file)?;
            input.add(&name, &data)?;
            names.push(name);
        }
    }
    if input.objects.is_empty() && input.ignored.is_empty() {
        return Err(LoadError::Nothing(first_names(&names)));
    }
    input.objects.sort_by_key(|loaded| rank(&loaded.object));
    Ok(input)
}

/// Returns the first names of a list, and the number of the others.
fn first_names(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED_FILES)].join(", ");
    match names.len().checked_sub(NAMED_FILES) {
        Some(more @ 1..) => format!("{shown} and {more} more"),
        _ => shown,
    }
}

impl Input {
    /// Adds the documents of one file.
    fn add(&mut self, file: &str, data: &[u8]) -> Result<(), LoadError> {
        let file: Arc<str> = Arc::from(file);
        let failed = |document: usize, error: String| LoadError::Document {
            origin: Origin { file: file.clone(), document, items: Vec::new() }.to_string(),
            error,
        };
        let mut text = document_text(data).map_err(|error| failed(1, error.to_string()))?;
        // Concatenated files contain their byte order marks.
        if text.contains("\n\u{feff}") {
            text = text.replace("\n\u{feff}", "\n");
        }
        let (mut progress, mut bytes) = (Progress::new(text.len(), "bytes read"), 0);
        let mut read = |more: usize| {
            bytes += more;
            progress.show(bytes);
        };
        for (number, value) in documents(&text, &mut read).enumerate() {
            let number = number + 1;
            let value = value.map_err(|error| failed(number, error))?;
            if !value.is_null() {
                self.take(value, &Origin { file: file.clone(), document: number, items: Vec::new() })?;
            }
        }
        drop(progress);
        Ok(())
    }

    /// Adds one object, or the items of a list.
    fn take(&mut self, value: Value, origin: &Origin) -> Result<(), LoadError> {
        let failed = |error: String| Err(LoadError::Document { origin: origin.to_string(), error });
        let Value::Object(mut object) = value else {
            return failed("expected an object with apiVersion and kind".to_owned());
        };
        let kind = match field(&object, "kind") {
            Ok(kind) => kind,
            Err(error) => return failed(error),
        };
        let version = match field(&object, "apiVersion") {
            Ok(version) => version,
            Err(error) => return failed(error),
        };
        let is_list =
            |of: &&str| of.is_empty() || object.contains_key("items") || kinds::by_name(&version, of).is_some();
        if let Some(item_kind) = kind.strip_suffix("List").filter(is_list) {
            let items = match object.remove("items") {
                Some(Value::Array(items)) => items,
                Some(Value::Null) | None => Vec::new(),
                Some(_) => return failed("items: must be a list".to_owned()),
            };
            for (number, mut item) in items.into_iter().enumerate() {
                // The items of a typed list may have no type of their own.
                if let Value::Object(fields) = &mut item
                    && !item_kind.is_empty()
                {
                    fields.entry("kind").or_insert_with(|| item_kind.into());
                    fields.entry("apiVersion").or_insert_with(|| version.as_str().into());
                }
                let mut of_item = origin.clone();
                of_item.items.push(number + 1);
                self.take(item, &of_item)?;
            }
            return Ok(());
        }
        if version.starts_with("kubescheduler.config.k8s.io/") {
            return failed(format!("{kind} is a configuration: pass it with --config"));
        }
        if kinds::by_name(&version, &kind).is_none() {
            if let Some(known) = misnamed(&version, &kind) {
                return failed(format!("no kind {kind:?} in version {version:?}: did you mean {known}?"));
            }
            if others(&version).is_some_and(|others| !others.contains(&kind.as_str())) {
                return failed(format!("no kind {kind:?} in version {version:?}"));
            }
            *self.ignored.entry(format!("{version} {kind}")).or_default() += 1;
            return Ok(());
        }
        self.objects.push(Loaded { object: Value::Object(object), origin: origin.clone() });
        Ok(())
    }
}

/// Returns the ignored kinds of a core or workload group: kinds that a cluster's dump may contain and scheduling does not use.
/// Any other unknown kind of these groups is misspelt. Returns `None` for any other group, of which all unknown kinds are
/// ignored.
fn others(version: &str) -> Option<&'static [&'static str]> {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(match group {
        "" => &["Binding", "ComponentStatus", "Endpoints", "PodTemplate", "RangeAllocation", "ResourceQuota"],
        "apps" => &["ControllerRevision", "Scale"],
        "autoscaling" => &["HorizontalPodAutoscaler", "Scale"],
        "batch" => &["JobTemplate"],
        "extensions" => &["HorizontalPodAutoscaler", "Ingress", "NetworkPolicy", "PodSecurityPolicy", "Scale"],
        "policy" => &["Eviction", "PodSecurityPolicy"],
        _ => return None,
    })
}

/// Groups that Kubernetes itself no longer serves. Their kinds have moved to other groups.
const OLD_GROUPS: [&str; 4] = ["", "extensions", "experimental", "csi.storage.k8s.io"];

/// Kinds of old releases that have another name today: their group, their name, and the kind that took their place.
static RENAMED: [(&str, &str, &Kind); 4] = [
    ("apps", "PetSet", &kinds::STATEFUL_SETS),
    ("batch", "ScheduledJob", &kinds::CRON_JOBS),
    ("csi.storage.k8s.io", "CSINodeInfo", &kinds::CSI_NODES),
    ("resource.k8s.io", "ResourceClass", &kinds::DEVICE_CLASSES),
];

/// Returns the known kind that is probably meant by a kind with wrong capitals, a wrong version, an old group or an old name.
/// Returns `None` in any other group than these and the known kind's own, because it may define a kind with the same name.
fn misnamed(version: &str, kind: &str) -> Option<String> {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let renamed = RENAMED.iter().find(|(old_group, old_kind, _)| *old_group == group && *old_kind == kind);
    let is_meant = |known: &&&Kind| known.kind.eq_ignore_ascii_case(kind);
    let known = renamed.map(|(_, _, known)| *known).or_else(|| kinds::ALL.iter().find(is_meant).copied())?;
    let is_certain = renamed.is_some() || group == known.group || OLD_GROUPS.contains(&group);
    is_certain.then(|| format!("{} in {}", known.kind, known.api_version()))
}

fn field(object: &Map<String, Value>, name: &str) -> Result<String, String> {
    match object.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::String(_) | Value::Null) | None => Err(format!("{name}: Required value")),
        Some(other) => Err(format!("{name}: Invalid value: {other}: must be a string")),
    }
}

/// Position in the loading order. Kinds to which other objects refer come first.
fn rank(object: &Value) -> usize {
    const ORDER: [&str; 12] = [
        "Namespace",
        "PriorityClass",
        "RuntimeClass",
        "LimitRange",
        "StorageClass",
        "DeviceClass",
        "PersistentVolume",
        "Node",
        "CSINode",
        "CSIDriver",
        "PersistentVolumeClaim",
        "Service",
    ];
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    ORDER.iter().position(|known| *known == kind).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&[&str], &str>) {
        let mut input = Input::default();
        let outcome = input.add("c.yaml", text.as_bytes()).map_err(|error| error.to_string());
        let titles: Vec<String> =
            input.objects.iter().map(|loaded| format!("{} @{}", loaded.title(), loaded.origin)).collect();
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        assert_eq!(outcome.as_ref().map(|()| &titles[..]).map_err(String::as_str), expected);
    }

    #[test]
    fn documents_and_lists_are_flattened() {
        check(
            "# first\n---\napiVersion: v1\nkind: Node\nmetadata: {name: a}\n---\n{apiVersion: v1, kind: PodList, items: [{metadata: {name: p, namespace: x}}]}\n",
            Ok(&["Node a @c.yaml: document 1", "Pod x/p @c.yaml: document 2, item 1"]),
        );
        check(
            "items:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: b}}]}\napiVersion: v1\nkind: List\n---\n\u{feff}apiVersion: v1\nkind: Node\nmetadata: {name: c}\n",
            Ok(&[
                "Node a @c.yaml: document 1, item 1",
                "Node b @c.yaml: document 1, item 2, item 1",
                "Node c @c.yaml: document 2",
            ]),
        );
        check(
            r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}} {"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}"#,
            Ok(&["Node a @c.yaml: document 1", "Node b @c.yaml: document 2"]),
        );
    }

    #[test]
    fn files_with_only_ignored_kinds_are_accepted() {
        let mut input = Input::default();
        for file in ["a.yaml", "b.yaml"] {
            // Regression test: the second file failed with "b.yaml: no objects".
            input.add(file, b"apiVersion: networking.k8s.io/v1\nkind: Ingress\n").expect("a kind that is left out");
        }
        assert_eq!(input.ignored, BTreeMap::from([("networking.k8s.io/v1 Ingress".to_owned(), 2)]));
    }

    #[test]
    fn files_may_have_no_objects() {
        for text in [
            "",
            "# a comment\n",
            "---\n---\nnull\n",
            "apiVersion: v1\nkind: List\nitems: []\n",
            "apiVersion: v1\nkind: List\nitems: null\n",
            "apiVersion: v1\nkind: List\n",
            "apiVersion: policy/v1\nkind: PodDisruptionBudgetList\nitems: []\n",
            "apiVersion: policy/v1\nkind: PodDisruptionBudgetList\n",
            r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": []}]}"#,
        ] {
            check(text, Ok(&[]));
        }
    }

    #[test]
    fn an_input_without_objects_names_its_files() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(first_names(&names[..1]), "a");
        assert_eq!(first_names(&names[..3]), "a, b, c");
        assert_eq!(first_names(&names), "a, b, c and 2 more");
    }

    #[test]
    fn errors_name_file_document_and_item() {
        check(
            "apiVersion: v1\nkind: node\n",
            Err("c.yaml: document 1: no kind \"node\" in version \"v1\": did you mean Node in v1?"),
        );
        check(
            "apiVersion: v1\nkind: Deployment\n",
            Err("c.yaml: document 1: no kind \"Deployment\" in version \"v1\": did you mean Deployment in apps/v1?"),
        );
        check(
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n",
            Err("c.yaml: document 1: no kind \"PodDisruptionBudget\" in version \"policy/v1beta1\": did you mean \
                 PodDisruptionBudget in policy/v1?"),
        );
        // Regression test: kinds of old groups were ignored with a warning that scheduling does not read them.
        for (version, kind, known) in [
            ("extensions/v1beta1", "Deployment", "Deployment in apps/v1"),
            ("extensions/v1beta1", "DaemonSet", "DaemonSet in apps/v1"),
            ("extensions/v1beta1", "ReplicaSet", "ReplicaSet in apps/v1"),
            ("extensions/v1beta1", "Job", "Job in batch/v1"),
            ("csi.storage.k8s.io/v1alpha1", "CSIDriver", "CSIDriver in storage.k8s.io/v1"),
            ("csi.storage.k8s.io/v1alpha1", "CSINodeInfo", "CSINode in storage.k8s.io/v1"),
            ("resource.k8s.io/v1alpha2", "ResourceClass", "DeviceClass in resource.k8s.io/v1"),
            ("apps/v1alpha1", "PetSet", "StatefulSet in apps/v1"),
            ("batch/v2alpha1", "ScheduledJob", "CronJob in batch/v1"),
        ] {
            check(
                &format!("apiVersion: {version}\nkind: {kind}\n"),
                Err(&format!("c.yaml: document 1: no kind {kind:?} in version {version:?}: did you mean {known}?")),
            );
        }
        check(
            "apiVersion: extensions/v1beta1\nkind: Deploymnt\n",
            Err("c.yaml: document 1: no kind \"Deploymnt\" in version \"extensions/v1beta1\""),
        );
        check("apiVersion: extensions/v1beta1\nkind: Ingress\n", Ok(&[]));
        check("apiVersion: v1\nkind: Pdo\n", Err("c.yaml: document 1: no kind \"Pdo\" in version \"v1\""));
        // Regression test: this kind was ignored with a warning.
        check(
            "apiVersion: apps/v1\nkind: Deploymnt\n",
            Err("c.yaml: document 1: no kind \"Deploymnt\" in version \"apps/v1\""),
        );
        check("apiVersion: v1\nkind: ComponentStatus\n", Ok(&[]));
        check(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
            Err("c.yaml: document 1: KubeSchedulerConfiguration is a configuration: pass it with --config"),
        );
        check("apiVersion: serving.knative.dev/v1\nkind: Service\n", Ok(&[]));
        check("- a\n", Err("c.yaml: document 1: expected an object with apiVersion and kind"));
        check("kind: Pod\n", Err("c.yaml: document 1: apiVersion: Required value"));
        check("apiVersion: v1\nkind: [a]\n", Err("c.yaml: document 1: kind: Invalid value: [\"a\"]: must be a string"));
        check(
            "apiVersion: v1\nkind: Node\nkind: Pod\n",
            Err("c.yaml: document 1: yaml: unmarshal errors:\n  line 3: key \"kind\" already set in map"),
        );
        check(
            r#"{"apiVersion":"v1","kind":"Node","kind":"Pod"}"#,
            Err("c.yaml: document 1: duplicate key \"kind\" at line 1 column 39"),
        );
    }
}
