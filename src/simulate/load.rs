//! Cluster files into objects, each with where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::apiserver::kinds;
use crate::config::{document_text, parse_document};

/// Files that a folder's entries are read from.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Where an object came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The document in the file, counted from 1.
    pub document: usize,
    /// The item of a list in the document, counted from 1.
    pub item: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
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
        if path.as_os_str() == "-" {
            let mut data = Vec::new();
            std::io::stdin().read_to_end(&mut data).map_err(|error| file_error("standard input", &error))?;
            input.add("standard input", &data)?;
            continue;
        }
        for file in files(path)? {
            let name = file.display().to_string();
            let data = std::fs::read(&file).map_err(|error| file_error(&name, &error))?;
            input.add(&name, &data)?;
        }
    }
    input.objects.sort_by_key(|loaded| rank(&loaded.object));
    Ok(input)
}

fn file_error(file: &str, error: &std::io::Error) -> LoadError {
    LoadError::File { file: file.to_owned(), error: error.to_string() }
}

/// The file itself, or the cluster files below a folder, sorted by path.
fn files(path: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let name = path.display().to_string();
    let meta = std::fs::metadata(path).map_err(|error| file_error(&name, &error))?;
    if !meta.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let shown = folder.display().to_string();
        for entry in std::fs::read_dir(&folder).map_err(|error| file_error(&shown, &error))? {
            let entry = entry.map_err(|error| file_error(&shown, &error))?.path();
            let extension = entry.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if entry.is_dir() {
                folders.push(entry);
            } else if EXTENSIONS.contains(&extension) {
                found.push(entry);
            }
        }
    }
    found.sort();
    if found.is_empty() { Err(LoadError::EmptyFolder(name)) } else { Ok(found) }
}

impl Input {
    /// Takes in the documents of one file.
    fn add(&mut self, file: &str, data: &[u8]) -> Result<(), LoadError> {
        let file: Arc<str> = Arc::from(file);
        let failed = |document: usize, error: String| LoadError::Document {
            origin: Origin { file: file.clone(), document, item: None }.to_string(),
            error,
        };
        let text = document_text(data).map_err(|error| failed(1, error.to_string()))?;
        let before = self.objects.len() + self.ignored.len();
        for (number, document) in documents(&text).into_iter().enumerate() {
            let number = number + 1;
            let value = match document {
                Document::Yaml { text, line } => parse_document(text).map_err(|error| {
                    let from = if line > 1 {
                        format!(" (lines are counted from line {line} of the file)")
                    } else {
                        String::new()
                    };
                    failed(number, format!("{error}{from}"))
                })?,
                Document::Json(value) => value.map_err(|error| failed(number, error))?,
            };
            if !value.is_null() {
                self.take(value, &Origin { file: file.clone(), document: number, item: None })?;
            }
        }
        if self.objects.len() + self.ignored.len() == before {
            return Err(LoadError::Nothing(file.to_string()));
        }
        Ok(())
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
        if let Some(item_kind) = kind.strip_suffix("List").filter(|_| object.contains_key("items")) {
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
                self.take(item, &Origin { item: Some(number + 1), ..origin.clone() })?;
            }
            return Ok(());
        }
        if kinds::by_name(&version, &kind).is_none() {
            *self.ignored.entry(format!("{version} {kind}")).or_default() += 1;
            return Ok(());
        }
        self.objects.push(Loaded { object: Value::Object(object), origin: origin.clone() });
        Ok(())
    }
}

fn field(object: &Map<String, Value>, name: &str) -> Result<String, String> {
    match object.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(Value::String(_) | Value::Null) | None => Err(format!("{name}: Required value")),
        Some(other) => Err(format!("{name}: Invalid value: {other}: a string is expected")),
    }
}

enum Document<'a> {
    Yaml { text: &'a str, line: usize },
    Json(Result<Value, String>),
}

/// The documents of a text: JSON values one after the other, or YAML between lines that begin with `---`.
fn documents(text: &str) -> Vec<Document<'_>> {
    let start = text.trim_start();
    if start.starts_with('{') {
        let mut found = Vec::new();
        let mut rest = start;
        while !rest.is_empty() {
            let (value, after) = match json_value(rest) {
                Ok(found) => found,
                Err(error) => {
                    found.push(Document::Json(Err(error)));
                    break;
                }
            };
            found.push(Document::Json(Ok(value)));
            rest = after;
        }
        return found;
    }
    let mut found = Vec::new();
    let (mut from, mut from_line) = (0, 1);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let rest = line.strip_prefix("---");
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|letter: char| letter.is_whitespace())) {
            found.push(Document::Yaml { text: &text[from..at], line: from_line });
            // What follows the dashes on their line belongs to the document.
            (from, from_line) = (at + 3, number + 1);
        }
        at += line.len();
    }
    found.push(Document::Yaml { text: &text[from..], line: from_line });
    // A text that begins with dashes has nothing before them.
    if found.len() > 1 && matches!(&found[0], Document::Yaml { text, .. } if is_blank(text)) {
        found.remove(0);
    }
    found
}

/// Whether there is nothing but comments and space.
fn is_blank(text: &str) -> bool {
    text.lines().all(|line| line.trim_start().is_empty() || line.trim_start().starts_with('#'))
}

/// The first JSON value of the text and what follows it. A repeated key is an error.
fn json_value(text: &str) -> Result<(Value, &str), String> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<super::json::Unique>();
    match stream.next() {
        Some(Ok(value)) => Ok((value.0, text[stream.byte_offset()..].trim_start())),
        Some(Err(error)) => Err(error.to_string()),
        None => Ok((Value::Null, "")),
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
            r#"{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}} {"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}"#,
            Ok(&["Node a @c.yaml: document 1", "Node b @c.yaml: document 2"]),
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        check("", Err("c.yaml: no objects"));
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
