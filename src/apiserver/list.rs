//! List requests: their options, their resource version, and paging.
//!
//! Follows `apimachinery/pkg/apis/meta/internalversion/validation/validation.go#ValidateListOptions` and
//! `apiserver/pkg/storage/cacher`, `apiserver/pkg/storage/etcd3 @v1.36.3`.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::events;
use super::kinds::Kind;
use super::object::Object;
use super::route::Query;
use super::selectors::Selection;
use super::store::State;
use crate::apimachinery::{FieldError, Status};
use crate::go::number::invalid_syntax;

/// Meaning of the resource version in a list request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    NotOlderThan,
    Exact,
}

/// Options of a list request.
#[derive(Clone, Debug)]
pub(super) struct ListOptions {
    pub(super) version: Option<u64>,
    pub(super) version_match: Option<Match>,
    /// Largest number of objects per page, or 0 for no limit.
    pub(super) limit: usize,
    /// Start of the page, from the continue token of an earlier page.
    pub(super) start: Option<Start>,
}

/// Content of a continue token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// Version of the first page, or `None` to continue with the newest version.
    version: Option<u64>,
    /// Last key of the previous page.
    after: String,
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) version: u64,
    pub(super) objects: Vec<Arc<Object>>,
    pub(super) next: Option<String>,
    pub(super) remaining: Option<usize>,
}

impl Start {
    /// Parses a continue token.
    pub(super) fn parse(token: &str) -> Result<Self, Status> {
        let invalid = || Status::bad_request(format!("invalid continue token: {token}"));
        let (version, after) = token.strip_prefix("v1:").and_then(|rest| rest.split_once(':')).ok_or_else(invalid)?;
        let version = match version {
            "" => None,
            digits => Some(digits.parse().map_err(|_| invalid())?),
        };
        Ok(Self { version, after: after.to_owned() })
    }

    fn token(version: Option<u64>, after: &str) -> String {
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        format!("v1:{version}:{after}")
    }
}

impl ListOptions {
    /// Parses the list options of a query. Rejects combinations that are not allowed.
    pub(super) fn parse(query: &Query) -> Result<Self, Status> {
        let limit = query.number("limit")?;
        query.number("timeoutSeconds")?;
        let text = |key: &str| Some(query.text(key)).filter(|value| !value.is_empty()).map(str::to_owned);
        let (version, version_match) = (text("resourceVersion"), text("resourceVersionMatch"));
        let token = text("continue");
        let mut errors = Vec::new();
        if let Some(name) = &version_match {
            if version.is_none() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", detail));
            }
            if token.is_some() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden("resourceVersionMatch", detail));
            }
            if !matches!(&**name, "Exact" | "NotOlderThan") {
                let known = ["Exact", "NotOlderThan", ""];
                errors.push(FieldError::not_supported("resourceVersionMatch", &json!(name), &known));
            }
            if name == "Exact" && version.as_deref() == Some("0") {
                let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden("resourceVersionMatch", detail));
            }
        }
        if query.get("sendInitialEvents").is_some() {
            errors.push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
        if !errors.is_empty() {
            return Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors));
        }
        if token.is_some() && version.as_deref().is_some_and(|version| version != "0") {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        Ok(Self {
            version: version
                .as_deref()
                .map(parse_version)
                .transpose()
                .map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?,
            version_match: version_match.map(|name| if name == "Exact" { Match::Exact } else { Match::NotOlderThan }),
            limit: limit.and_then(|limit| limit.try_into().ok()).unwrap_or(0),
            start: token.as_deref().map(Start::parse).transpose()?,
        })
    }

    /// Returns the requested version if the server has not reached it yet, so that the list has to wait.
    pub(super) fn awaited(&self, current: u64) -> Option<u64> {
        self.version.filter(|version| *version > current)
    }

    /// Returns the exact version that the list must show, or `None` if it shows the newest version.
    fn exact(&self) -> Option<u64> {
        if let Some(start) = &self.start {
            return start.version;
        }
        let version = self.version.filter(|version| *version > 0)?;
        match self.version_match {
            Some(Match::Exact) => Some(version),
            None if self.limit > 0 => Some(version),
            _ => None,
        }
    }

    /// Returns the number of objects per page. A list at version 0 comes from upstream's cache and always has a single page.
    fn page_size(&self) -> usize {
        let any = self.version == Some(0) && self.version_match != Some(Match::Exact) && self.start.is_none();
        if any || self.limit == 0 { usize::MAX } else { self.limit }
    }
}

/// Parses a resource version.
/// Follows `apiserver/pkg/storage/api_object_versioner.go#ParseResourceVersion @v1.36.3`.
pub(super) fn parse_version(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| FieldError::invalid("resourceVersion", text, invalid_syntax("ParseUint", text)).to_string())
}

impl State {
    /// Returns one page of a kind's objects.
    pub(super) fn list(&self, kind: &Kind, selection: &Selection, options: &ListOptions) -> Result<Page, Status> {
        let exact = options.exact();
        let version = exact.unwrap_or(self.version);
        let undone = self.at_version(kind, version).ok_or_else(|| too_old(options))?;
        let start = options.start.as_ref().map_or(Bound::Unbounded, |start| Bound::Excluded(start.after.as_str()));
        let mut matching = Overlay {
            now: self.shelf(kind).objects.range::<str, _>((start, Bound::Unbounded)).peekable(),
            then: undone.range::<str, _>((start, Bound::Unbounded)).peekable(),
        }
        .filter(|object| selection.in_namespace(object));
        let size = options.page_size();
        let mut page = Page { version, objects: Vec::new(), next: None, remaining: None };
        page.objects.extend(matching.by_ref().filter(|object| selection.matches(object)).take(size).cloned());
        // Upstream also counts objects that the selectors exclude when it decides whether there are more.
        if size != usize::MAX
            && page.objects.len() == size
            && let Some(last) = page.objects.last()
            && matching.next().is_some()
        {
            page.next = Some(Start::token(Some(version), &last.key));
            page.remaining = (!selection.narrows()).then(|| 1 + matching.count());
        }
        Ok(page)
    }
}

/// Returns the 410 for a version that the history no longer reaches.
fn too_old(options: &ListOptions) -> Status {
    let Some(start) = &options.start else {
        return Status::expired("The resourceVersion for the provided list is too old.");
    };
    let mut status = Status::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = Some(Start::token(None, &start.after));
    status
}

/// Iterator over the objects of a shelf with its newest changes undone, in the order of keys.
struct Overlay<N: Iterator, T: Iterator> {
    now: std::iter::Peekable<N>,
    then: std::iter::Peekable<T>,
}

impl<'a, N, T> Iterator for Overlay<N, T>
where
    N: Iterator<Item = (&'a Arc<str>, &'a Arc<Object>)>,
    T: Iterator<Item = (&'a Arc<str>, &'a Option<Arc<Object>>)>,
{
    type Item = &'a Arc<Object>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((then_key, _)) = self.then.peek() else {
                return self.now.next().map(|(_, object)| object);
            };
            match self.now.peek() {
                Some((now_key, _)) if now_key < then_key => return self.now.next().map(|(_, object)| object),
                Some((now_key, _)) if now_key == then_key => drop(self.now.next()),
                _ => {}
            }
            if let Some((_, Some(object))) = self.then.next() {
                return Some(object);
            }
        }
    }
}

impl Page {
    /// Returns the list object as a sequence of slices of the stored objects.
    pub(super) fn frames(&self, kind: &Kind) -> VecDeque<Bytes> {
        list_frames(kind, &self.metadata(), &self.objects)
    }

    /// Returns the metadata of the list itself.
    pub(super) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = json!(next);
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// Returns a list of `objects` as JSON, in slices.
pub(super) fn list_frames(kind: &Kind, metadata: &Value, objects: &[Arc<Object>]) -> VecDeque<Bytes> {
    let mut frames = VecDeque::with_capacity(2 * objects.len() + 2);
    frames.push_back(Bytes::from(format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
        kind.kind,
        kind.api_version()
    )));
    for (at, object) in objects.iter().enumerate() {
        let opens: &'static [u8] = if at == 0 { b"{" } else { b",{" };
        frames.push_back(Bytes::from_static(opens));
        frames.push_back(if kind.is_view() && !object.raw { view_item(kind, object) } else { object.item_tail() });
    }
    frames.push_back(Bytes::from_static(b"]}"));
    frames
}

/// Returns an object in the form of a view, as a list item without its opening brace.
fn view_item(kind: &Kind, object: &Object) -> Bytes {
    let mut value = object.value();
    events::to_view(kind, &mut value);
    if let Some(map) = value.as_object_mut() {
        map.remove("apiVersion");
        map.remove("kind");
    }
    Bytes::from(value.to_string()).slice(1..)
}
