//! Parses long YAML files in parts.
//!
//! A parser keeps all events of a document in memory, and a dump of a large cluster is one document of hundreds of megabytes.
//! So texts are split between documents, and lists are split between items if their layout is that of `kubectl get -o yaml`.
//! Each part has to be valid YAML by itself. If one is not, for example because of an anchor that is used in another part or
//! a quotation across items, the list is parsed as a whole.

use std::iter;
use std::ops::Range;

use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde_json::Value;

use crate::config::parse_documents;

/// Size of a part in bytes. Small parts cost parser set-ups, and large ones cannot be divided evenly among threads.
const PART: usize = 256 << 10;

/// Number of parts that are parsed in parallel between two progress updates.
const BATCH: usize = 32;

/// Maximum bytes of a list that is parsed as a whole if one of its parts is invalid.
const WHOLE: usize = 64 << 20;

/// Parses the documents of a text, up to the first that is invalid. An empty text has none. `read` is called with the number
/// of bytes read since the last call.
pub(super) fn documents(text: &str, read: impl FnMut(usize)) -> impl Iterator<Item = Result<Value, String>> {
    documents_in_parts(text, PART, read)
}

fn documents_in_parts(
    text: &str,
    size: usize,
    mut read: impl FnMut(usize),
) -> impl Iterator<Item = Result<Value, String>> {
    // A directive belongs to the document after it. Directives are rare, so a text with one is not split.
    let has_directives = text.starts_with('%') || text.contains("\n%");
    let mut has_begun = false;
    let begins = move |line: &str| {
        let before = has_begun;
        has_begun |= !line.starts_with('#') && !line.trim().is_empty();
        before && begins_document(line) && !has_directives
    };
    let whole = Part { text, line: 0 };
    whole.cut(size, begins).flat_map(move |part| {
        let list = Some(part).filter(|part| part.text.len() > size).and_then(List::find);
        list.and_then(|list| list.read(size, &mut read)).map_or_else(
            || {
                read(part.text.len());
                part.documents()
            },
            |list| vec![list],
        )
    })
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part<'a> {
    text: &'a str,
    /// Number of lines before the part, for the line numbers of errors.
    line: usize,
}

impl<'a> Part<'a> {
    /// Splits the part before lines for which `begins` is true, and joins pieces as long as they fit into `size`.
    fn cut(self, size: usize, begins: impl FnMut(&str) -> bool) -> impl Iterator<Item = Part<'a>> {
        let mut units = units(self.text, begins).peekable();
        let mut line = self.line;
        iter::from_fn(move || {
            let mut range = units.next()?;
            while let Some(next) = units.next_if(|next| next.end - range.start <= size) {
                range.end = next.end;
            }
            let part = Part { text: &self.text[range], line };
            line += part.text.matches('\n').count();
            Some(part)
        })
    }

    /// Parses the documents, up to the first that is invalid.
    fn documents(&self) -> Vec<Result<Value, String>> {
        let read = |text: &str| parse_documents(text).map(|read| read.map_err(|error| error.to_string())).collect();
        let documents: Vec<Result<Value, String>> = read(self.text);
        if self.line > 0 && documents.iter().any(Result::is_err) {
            // Parses again with preceding empty lines, so that errors have the right line numbers.
            return read(&format!("{}{}", "\n".repeat(self.line), self.text));
        }
        documents
    }

    /// Parses the items of a list.
    fn items(&self) -> Result<Vec<Value>, String> {
        let mut documents = self.documents();
        match (documents.pop(), documents.is_empty()) {
            (Some(Ok(Value::Array(items))), true) => Ok(items),
            (Some(Err(error)), _) => Err(error),
            // A line break that only YAML recognizes may end the list within a part.
            _ => Err("items: must be one list".to_owned()),
        }
    }
}

/// Returns the ranges into which a text is split. Each one but the first begins with a line for which `begins` is true.
fn units(text: &str, mut begins: impl FnMut(&str) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    iter::from_fn(move || {
        let mut end = start;
        for line in text[start..].split_inclusive('\n') {
            if begins(line) && end > start {
                break;
            }
            end += line.len();
        }
        let unit = start..end;
        start = end;
        (!unit.is_empty()).then_some(unit)
    })
}

fn begins_document(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

fn begins_item(line: &str, indent: usize) -> bool {
    indent_of(line) == indent && (line[indent..].starts_with("- ") || line.trim() == "-")
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// A document whose list of items is below a line `items:`.
#[derive(Debug)]
struct List<'a> {
    document: Part<'a>,
    before: &'a str,
    items: Part<'a>,
    /// Number of spaces before an item's dash.
    indent: usize,
    after: &'a str,
}

impl<'a> List<'a> {
    /// Finds the list by the layout of the lines. Only `apiVersion` and `kind` may precede the items, so that `items:` is certain
    /// to be a key.
    fn find(document: Part<'a>) -> Option<Self> {
        let is_key = |line: &str| {
            ["apiVersion: ", "kind: "].iter().any(|key| {
                line.strip_prefix(key)
                    .is_some_and(|word| word.bytes().all(|c| c.is_ascii_alphanumeric() || b"./".contains(&c)))
            })
        };
        let (mut from, mut line) = (0, document.line);
        for text in document.text.split_inclusive('\n') {
            from += text.len();
            line += 1;
            match text.trim_end() {
                "items:" => break,
                "" | "---" => {}
                text if text.starts_with('#') || is_key(text) => {}
                _ => return None,
            }
        }
        let (before, rest) = document.text.split_at(from);
        let indent = indent_of(rest);
        let is_within = |line: &str| {
            let text = line.trim();
            indent_of(line) > indent || begins_item(line, indent) || text.is_empty() || text.starts_with('#')
        };
        let length = rest.split_inclusive('\n').take_while(|line| is_within(line)).map(str::len).sum();
        let (text, after) = rest.split_at(length);
        begins_item(text.lines().next()?, indent).then_some(Self {
            document,
            before,
            items: Part { text, line },
            indent,
            after,
        })
    }

    /// Parses the list in parts. Returns `None` if it has to be parsed as a whole.
    fn read(&self, size: usize, read: &mut impl FnMut(usize)) -> Option<Result<Value, String>> {
        let head = format!("{}{}", self.before, self.after);
        let mut head = parse_documents(&head);
        let Some(Ok(Value::Object(mut list))) = head.next().filter(|_| head.next().is_none()) else { return None };
        if list.get("items") != Some(&Value::Null) {
            return None;
        }
        let mut items = Vec::new();
        let parts: Vec<Part<'_>> = self.items.cut(size, |line| begins_item(line, self.indent)).collect();
        for batch in parts.chunks(BATCH) {
            for part in batch.par_iter().map(Part::items).collect::<Vec<_>>() {
                match part {
                    Ok(part) => items.extend(part),
                    Err(error) if self.document.text.len() > WHOLE => {
                        let hint = if error.contains(" anchor ") {
                            format!("; in a list this long, an alias must be within {PART} bytes of its anchor")
                        } else {
                            String::new()
                        };
                        return Some(Err(error + &hint));
                    }
                    Err(_) => return None,
                }
            }
            read(batch.iter().map(|part| part.text.len()).sum());
        }
        list.insert("items".to_owned(), Value::Array(items));
        Some(Ok(Value::Object(list)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Returns the valid documents and the first error.
    fn readable(documents: impl Iterator<Item = Result<Value, String>>) -> Vec<Result<Value, String>> {
        let mut read = Vec::new();
        for document in documents {
            let failed = document.is_err();
            read.push(document);
            if failed {
                break;
            }
        }
        read
    }

    /// Checks that a text means the same in the smallest possible parts as it does as a whole.
    fn check(text: &str) {
        let as_a_whole = parse_documents(text).map(|document| document.map_err(|error| error.to_string()));
        let as_a_whole = readable(as_a_whole);
        for size in [0, 20, 100] {
            let bytes = Cell::new(0);
            let in_parts = documents_in_parts(text, size, |more| bytes.set(bytes.get() + more));
            assert_eq!(readable(in_parts), as_a_whole, "{size}: {text:?}");
            assert!(bytes.get() <= text.len(), "{size}: {text:?}");
        }
    }

    fn is_list(text: &str) -> bool {
        List::find(Part { text, line: 0 }).is_some_and(|list| list.read(0, &mut |_| ()).is_some())
    }

    #[test]
    fn parts_mean_what_the_whole_does() {
        for text in [
            "# nothing\n",
            "a: 1",
            "---\n---\n",
            "a: \"x\n---\u{a0}y\n  w\"\nb: 1\n---\nc: 2\n",
            "a: 1\n...\n%YAML 1.1\n---\nb: 2\n",
            "# first\n%YAML 1.1\n---\na: 1\n---\r\nb: 2\r\n...\n--- # third\nc: 3\n",
            "--- {a: 1}\n---\n- b\n---\nc\n",
            "a: 1\n---\nb: [\n---\nc: 3\n",
            "a: 1\n---\n\nb: 1\nb: 2\n---\nc: 3\n",
            "a: |\n  ---\n  x\n---x: 1\n",
            "a: &x 1\n---\nb: *x\n",
        ] {
            check(text);
        }
    }

    #[test]
    fn lists_in_parts_mean_what_the_whole_does() {
        let list = |items: &str| format!("---\napiVersion: v1\n# a\nitems:\n{items}kind: List\nmetadata:\n  a: b\n");
        for items in [
            "- a: 1\n  b:\n  - 2\n- c: 3\n",
            "  - a: 1\n\n\n  - |\n    x\n    - y\n\n\n  # z\n  - c: 3\n",
            "- |+\n x\n\n\n-\n - c: yes\n- d\n",
            "- a: 1\r\n  b: 2\r\n- c: 3\r\n",
        ] {
            let text = list(items);
            check(&text);
            assert!(is_list(&text), "{text:?}");
            check(&format!("{text}---\n{text}"));
        }
        // These lists are parsed as a whole.
        for items in [
            "- a: &x 1\n- b: *x\n",
            "- a: \"x\n- b\"\n",
            "- a\n-b\n",
            "- a: 1\nitems: []\n",
            "- a: 1\n  a: 2\n- c: 1\n",
            "- a: 1\n- b: [\n",
            "{a: 1}\n",
            "- a\n ... x\n...\n",
            "- a\n...\n",
            // Regression test: this list was parsed without its first item.
            "- a\n- b\r---\r- c\n",
        ] {
            let text = list(items);
            check(&text);
            assert!(!is_list(&text), "{text:?}");
        }
        check("a: \"x\nitems:\n- b\n\"\nitems:\n");
        check("items:\n- a\n");
        check("items:\n");
        check("kind: \"List\nitems:\n- a\n\"\nitems:\n");
    }

    #[test]
    fn errors_in_long_lists_name_the_line() {
        let items = format!("- a: \"{}\"\n", "x".repeat(1 << 20)).repeat((WHOLE >> 20) + 1);
        let text = format!("apiVersion: v1\nitems:\n{items}- b: ]\nkind: List\n");
        let documents: Vec<_> = documents(&text, |_| ()).collect();
        let line = text.lines().count() - 1;
        assert_eq!(documents, [Err(format!("yaml: line {line}: did not find expected node content"))]);
    }
}
