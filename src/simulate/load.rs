//! Cluster files into objects, each with where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::documents::documents;
use super::files;
use super::progress::Progress;
use crate::apiserver::kinds;
use crate::config::document_text;

/// Where an object came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The document in the file, counted from 1.
    pub document: usize,
    /// The item of a list in the document, counted from 1, and of the lists in that.
    pub items: Vec<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.items.iter().try_for_each(|item| write!(f, ", item {item}"))
    }
}

/// An object and where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The object, with apiVersion and kind.
    pub object: Value,
    /// Where it came from.
    pub origin: Origin,
}

impl Loaded {
    /// `Kind namespace/name`, as messages name the object.
    pub fn title(&self) -> String {
        title(&self.object)
    }
}

/// `Kind namespace/name`.
pub(super) fn title(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    let name = if name.is_empty() { "without a name" } else { name };
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Input {
    /// The objects, in the order in which they are taken in: what others refer to first, otherwise as read.
    pub objects: Vec<Loaded>,
    /// Kinds that scheduling does not read, with how many objects of each were left out.
    pub ignored: BTreeMap<String, usize>,
}

/// Why input cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: String,
        /// Why.
        error: String,
    },
    /// A folder has no cluster file.
    #[error("{0}: the folder has no file that ends in .yaml, .yml or .json")]
    EmptyFolder(String),
    /// A document cannot be read.
    #[error("{origin}: {error}")]
    Document {
        /// Where.
        origin: String,
        /// Why.
        error: String,
    },
    /// There was nothing to read.
    #[error("{0}: no objects")]
    Nothing(String),
}

/// Reads files, folders and, for `-`, standard input.
pub fn load(paths: &[PathBuf]) -> Result<Input, LoadError> {
    let mut input = Input::default();
    for path in paths {
        for file in files::files(path)? {
            let (name, data) = files::read(&file)?;
            input.add(&name, &data)?;
        }
    }
    input.objects.sort_by_key(|loaded| rank(&loaded.object));
    Ok(input)
}

impl Input {
    /// Takes in the documents of one file.
    fn add(&mut self, file: &str, data: &[u8]) -> Result<(), LoadError> {
        let file: Arc<str> = Arc::from(file);
        let failed = |document: usize, error: String| LoadError::Document {
            origin: Origin { file: file.clone(), document, items: Vec::new() }.to_string(),
            error,
        };
        let mut text = document_text(data).map_err(|error| failed(1, error.to_string()))?;
        // Files that were put together bring their byte order marks along.
        if text.contains("\n\u{feff}") {
            text = text.replace("\n\u{feff}", "\n");
        }
        let before = self.count();
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
        if self.count() == before {
            return Err(LoadError::Nothing(file.to_string()));
        }
        Ok(())
    }

    /// How many objects there were.
    fn count(&self) -> usize {
        self.objects.len() + self.ignored.values().sum::<usize>()
    }

    /// Takes in one object, or the items of a list.
    fn take(&mut self, value: Value, origin: &Origin) -> Result<(), LoadError> {
        let failed = |error: String| Err(LoadError::Document { origin: origin.to_string(), error });
        let Value::Object(mut object) = value else {
            return failed("an object with apiVersion and kind is expected".to_owned());
        };
        let kind = match field(&object, "kind") {
            Ok(kind) => kind,
            Err(error) => return failed(error),
        };
        let version = match field(&object, "apiVersion") {
            Ok(version) => version,
            Err(error) => return failed(error),
        };
        if let Some(item_kind) = kind.strip_suffix("List").filter(|of| of.is_empty() || object.contains_key("items")) {
            let items = match object.remove("items") {
                Some(Value::Array(items)) => items,
                Some(Value::Null) | None => Vec::new(),
                Some(_) => return failed("items: a list is expected".to_owned()),
            };
            for (number, mut item) in items.into_iter().enumerate() {
                // The items of a typed list have no type of their own.
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
            return failed(format!("{kind} is a configuration, which --config takes"));
        }
        if kinds::by_name(&version, &kind).is_none() {
            if let Some(known) = misnamed(&version, &kind) {
                return failed(format!("no kind {kind:?} is read in version {version:?}, but {known}"));
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

/// The kinds of the core and of the groups of workloads that a cluster's dump may have and scheduling does not read. Any other
/// kind of these groups is misspelt; of other groups all kinds are left out that are not read.
fn others(version: &str) -> Option<&'static [&'static str]> {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    Some(match group {
        "" => &["Binding", "ComponentStatus", "Endpoints", "PodTemplate", "RangeAllocation", "ResourceQuota"],
        "apps" => &["ControllerRevision", "Scale"],
        "autoscaling" => &["HorizontalPodAutoscaler", "Scale"],
        "batch" => &["JobTemplate"],
        "policy" => &["Eviction", "PodSecurityPolicy"],
        _ => return None,
    })
}

/// The kind that is meant, as far as one can tell. A group of its own may have kinds that are called as ours are; ours and
/// the core's have no others.
fn misnamed(version: &str, kind: &str) -> Option<String> {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let known = kinds::ALL.iter().find(|known| known.kind.eq_ignore_ascii_case(kind))?;
    let api_version = known.api_version();
    (group.is_empty() || group == known.group).then(|| format!("{} in {api_version}", known.kind))
}

fn field(object: &Map<String, Value>, name: &str) -> Result<String, String> {
    match object.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::String(_) | Value::Null) | None => Err(format!("{name}: Required value")),
        Some(other) => Err(format!("{name}: Invalid value: {other}: a string is expected")),
    }
}

/// What others refer to is taken in first.
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
    fn documents_lists_and_typed_lists() {
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
    fn files_may_hold_only_what_is_left_out() {
        let mut input = Input::default();
        for file in ["a.yaml", "b.yaml"] {
            // Was once "b.yaml: no objects".
            input.add(file, b"apiVersion: networking.k8s.io/v1\nkind: Ingress\n").expect("a kind that is left out");
        }
        assert_eq!(input.ignored, BTreeMap::from([("networking.k8s.io/v1 Ingress".to_owned(), 2)]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        check("", Err("c.yaml: no objects"));
        check("apiVersion: v1\nkind: List\n", Err("c.yaml: no objects"));
        check(
            "apiVersion: v1\nkind: node\n",
            Err("c.yaml: document 1: no kind \"node\" is read in version \"v1\", but Node in v1"),
        );
        check(
            "apiVersion: v1\nkind: Deployment\n",
            Err("c.yaml: document 1: no kind \"Deployment\" is read in version \"v1\", but Deployment in apps/v1"),
        );
        check(
            "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\n",
            Err("c.yaml: document 1: no kind \"PodDisruptionBudget\" is read in version \"policy/v1beta1\", but \
                 PodDisruptionBudget in policy/v1"),
        );
        check("apiVersion: v1\nkind: Pdo\n", Err("c.yaml: document 1: no kind \"Pdo\" in version \"v1\""));
        // Was once left out with a warning.
        check(
            "apiVersion: apps/v1\nkind: Deploymnt\n",
            Err("c.yaml: document 1: no kind \"Deploymnt\" in version \"apps/v1\""),
        );
        check("apiVersion: v1\nkind: ComponentStatus\n", Ok(&[]));
        check(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
            Err("c.yaml: document 1: KubeSchedulerConfiguration is a configuration, which --config takes"),
        );
        check("apiVersion: serving.knative.dev/v1\nkind: Service\n", Ok(&[]));
        check("- a\n", Err("c.yaml: document 1: an object with apiVersion and kind is expected"));
        check("kind: Pod\n", Err("c.yaml: document 1: apiVersion: Required value"));
        check(
            "apiVersion: v1\nkind: [a]\n",
            Err("c.yaml: document 1: kind: Invalid value: [\"a\"]: a string is expected"),
        );
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
