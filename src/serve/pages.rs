//! The pages `/configz`, `/flagz` and `/statusz` with the scheduler's configuration, flags and status.
//! Follows `component-base/configz/configz.go`, `apiserver/pkg/server/flagz` and `apiserver/pkg/server/statusz @v1.36.3`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::{HeaderName, HeaderValue, WARNING};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::endpoints::Versions;
use super::negotiate::{self, Query};
use super::reply::{JSON, Reply, no_sniff, reply, text, with};
use super::status::{Form, document, not_acceptable, status_reply, yaml};
use crate::apimachinery::accept::{accept, clauses};
use crate::go::json;

const COMPONENT: &str = "kube-scheduler";
const GROUP: &str = "config.k8s.io";
/// Versions of the pages, the newest first. Responses in an older version carry a deprecation warning.
const VERSIONS: [&str; 2] = ["v1beta1", "v1alpha1"];
/// Media types of the pages, in upstream's order.
const FORMS: &[Form] = &[Form::Json, Form::Yaml, Form::Text];

const CAUTION: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
    guarantees and is for debugging purposes only.";

/// Separators between a name and a value. Upstream chooses one at random, so that nobody parses the page. Here `/statusz` takes
/// the next one for each request, and `/flagz` keeps the same one while the process runs.
const SEPARATORS: [&str; 4] = [":", ": ", "=", " "];

/// The page `/configz`, which never changes.
pub(super) struct Configz(String);

/// Contents of the page `/flagz`.
pub(super) struct Flagz {
    flags: BTreeMap<String, String>,
    /// The page as text, which never changes.
    text: String,
}

/// Contents of the page `/statusz`.
pub(super) struct Statusz {
    versions: Versions,
    paths: Vec<String>,
    started: Timestamp,
    asked: AtomicUsize,
}

/// Format of a page that the client wants.
enum Wanted {
    Text,
    Object { version: &'static str, form: Form, pretty: bool },
}

impl Configz {
    pub(super) fn new(config: &Value) -> Self {
        Self(json::text(&json!({ "componentconfig": config })))
    }

    pub(super) fn reply(&self) -> Reply {
        no_sniff(reply(StatusCode::OK, JSON, self.0.clone()))
    }
}

impl Flagz {
    /// Creates the page `/flagz`. `seed` chooses the separator.
    pub(super) fn new(flags: BTreeMap<String, String>, seed: usize) -> Self {
        let separator = SEPARATORS[seed % SEPARATORS.len()];
        let mut text = format!("\n{COMPONENT} flagz\n{CAUTION}\n");
        for (name, value) in &flags {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{name}{separator}{value}");
        }
        Self { flags, text }
    }

    pub(super) fn reply(&self, query: &Query, headers: &HeaderMap) -> Reply {
        object("Flagz", "flagz", query, headers, || self.text.clone(), || vec![("flags", json!(self.flags))])
    }
}

impl Statusz {
    /// Creates the page `/statusz`. It lists the first segments of `paths`.
    pub(super) fn new(versions: Versions, paths: &[String], started: Timestamp) -> Self {
        let folders = paths.iter().filter_map(|path| path.split('/').nth(1)).filter(|folder| !folder.is_empty());
        let mut paths: Vec<String> = folders.map(|folder| format!("/{folder}")).collect();
        paths.sort();
        paths.dedup();
        Self { versions, paths, started, asked: AtomicUsize::new(0) }
    }

    pub(super) fn reply(&self, now: Timestamp, query: &Query, headers: &HeaderMap) -> Reply {
        let up = now.as_second().saturating_sub(self.started.as_second()).max(0);
        let fields = || {
            vec![
                ("startTime", json!(self.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
                ("uptimeSeconds", json!(up)),
                ("goVersion", json!(self.versions.toolchain)),
                ("binaryVersion", json!(self.versions.binary)),
                ("emulationVersion", json!(self.versions.emulation)),
                ("paths", json!(self.paths)),
            ]
        };
        object("Statusz", "statusz", query, headers, || self.text(up), fields)
    }

    fn text(&self, up: i64) -> String {
        let turn = self.asked.fetch_add(1, Ordering::Relaxed);
        let separator = SEPARATORS[turn % SEPARATORS.len()];
        let mut text = format!("\n{COMPONENT} statusz\n{CAUTION}\n\n");
        let up = format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
        for (name, value) in [
            ("Started", self.started.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()),
            ("Up", up),
            ("Go version", self.versions.toolchain.clone()),
            ("Binary version", self.versions.binary.clone()),
            ("Emulation version", self.versions.emulation.clone()),
            ("Paths", self.paths.join(" ")),
        ] {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{name}{separator} {value}");
        }
        text
    }
}

/// Returns a page in the format that the client accepts: text, or an object of one of two versions. Follows
/// `apiserver/pkg/server/flagz/flagz.go#handleFlagz` and `apiserver/pkg/server/statusz/statusz.go#handleStatusz @v1.36.3`.
fn object(
    kind: &str,
    page: &str,
    query: &Query,
    headers: &HeaderMap,
    as_text: impl FnOnce() -> String,
    fields: impl FnOnce() -> Vec<(&'static str, Value)>,
) -> Reply {
    let accept = accept(headers);
    if accept.trim().is_empty() {
        return text(as_text());
    }
    let (version, form, pretty) = match wanted(kind, &accept) {
        Some(Wanted::Object { version, form, pretty }) => (version, form, pretty),
        Some(Wanted::Text) => return text(as_text()),
        None => return status_reply(&not_acceptable(FORMS), FORMS, query, headers),
    };
    let mut members = vec![
        ("kind", json!(kind)),
        ("apiVersion", json!(format!("{GROUP}/{version}"))),
        ("metadata", json!({ "name": COMPONENT })),
    ];
    members.extend(fields());
    let members = json::Members(members);
    let pretty = pretty || negotiate::is_for_people(query, headers);
    let body = if form == Form::Yaml { yaml(&members) } else { document(&members, pretty) };
    let content = HeaderValue::try_from(format!("{};g={GROUP};v={version};as={kind}", form.name()));
    let reply = reply(StatusCode::OK, content.unwrap_or(JSON), body);
    if version == VERSIONS[0] {
        return reply;
    }
    let warning = format!("299 - \"This version of the {page} endpoint is deprecated. Please use a newer version.\"");
    let name: HeaderName = WARNING;
    match HeaderValue::try_from(warning) {
        Ok(warning) => with(reply, name, warning),
        Err(_) => reply,
    }
}

/// Returns the first format in the `Accept` header that the page supports.
fn wanted(kind: &str, accept: &str) -> Option<Wanted> {
    for clause in clauses(accept) {
        for form in FORMS.iter().filter(|form| clause.wants(form.names().0, form.names().1)) {
            if clause.is_unservable() {
                continue;
            }
            match (form, clause.object()) {
                (Form::Text, None) => return Some(Wanted::Text),
                (Form::Json | Form::Yaml, Some([GROUP, version, named])) if named == kind => {
                    let known = VERSIONS.iter().find(|known| **known == version);
                    let Some(version) = known else { continue };
                    return Some(Wanted::Object { version, form: *form, pretty: clause.is_pretty() });
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, CONTENT_TYPE};

    use super::*;

    fn shown(reply: Reply) -> (u16, String, String) {
        let kind = reply.headers()[CONTENT_TYPE].to_str().expect("text").to_owned();
        let (status, body) = crate::serve::reply::shown(reply);
        (status, kind, body)
    }

    fn accepting(accept: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_str(accept).expect("a value"));
        headers
    }

    #[test]
    fn flagz_format_follows_the_accept_header() {
        let flags = BTreeMap::from([("v", "2"), ("config", "<a>")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        let page = Flagz::new(flags, 2);
        let check = |accept: &str, status: u16, kind: &str, part: &str| {
            let got = shown(page.reply(&Query::default(), &accepting(accept)));
            assert_eq!((got.0, got.1.as_str()), (status, kind), "{accept}");
            assert!(got.2.contains(part), "{accept}: {}", got.2);
        };
        let plain = format!("\nkube-scheduler flagz\n{CAUTION}\nconfig=<a>\nv=2\n");
        for accept in ["", " ", "text/plain", "text/*", "*/*"] {
            check(accept, 200, "text/plain; charset=utf-8", &plain);
        }
        let object = "{\"kind\":\"Flagz\",\"apiVersion\":\"config.k8s.io/v1beta1\",\"metadata\":{\"name\":\
            \"kube-scheduler\"},\"flags\":{\"config\":\"\\u003ca\\u003e\",\"v\":\"2\"}}\n";
        let json = "application/json;g=config.k8s.io;v=v1beta1;as=Flagz";
        check("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", 200, json, object);
        check("text/plain;q=0.1,application/*;v=v1beta1;g=config.k8s.io;as=Flagz", 200, json, object);
        let refused = "only the following media types are accepted: application/json, application/yaml, text/plain";
        for accept in [
            "application/json",
            "image/png",
            "garbage",
            "text/plain;v=v1beta1;g=config.k8s.io;as=Flagz",
            "application/json;v=v1;g=config.k8s.io;as=Flagz",
            "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
        ] {
            check(accept, 406, "application/json", refused);
        }
        let old = page.reply(&Query::default(), &accepting("application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz"));
        let warning = "299 - \"This version of the flagz endpoint is deprecated. Please use a newer version.\"";
        assert_eq!(old.headers()[WARNING], warning);
        assert_eq!(shown(old).1, "application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz");
    }

    #[test]
    fn statusz_shows_the_uptime() {
        let versions = Versions { toolchain: "rustc".into(), binary: "1.36.3".into(), emulation: "1.36".into() };
        let paths = ["/metrics", "/metrics/slis", "/healthz"].map(str::to_owned);
        let started: Timestamp = "2026-11-02T04:10:59Z".parse().expect("a time");
        let page = Statusz::new(versions, &paths, started);
        let now: Timestamp = "2026-11-03T05:12:02Z".parse().expect("a time");
        let text = |separator: &str| {
            format!(
                "\nkube-scheduler statusz\n{CAUTION}\n\nStarted{separator} Mon Nov  2 04:10:59 UTC 2026\n\
                 Up{separator} 25 hr 01 min 03 sec\nGo version{separator} rustc\nBinary version{separator} 1.36.3\n\
                 Emulation version{separator} 1.36\nPaths{separator} /healthz /metrics\n"
            )
        };
        for separator in SEPARATORS {
            assert_eq!(shown(page.reply(now, &Query::default(), &HeaderMap::new())).2, text(separator));
        }
        let headers = accepting("application/json;v=v1beta1;g=config.k8s.io;as=Statusz");
        let expected = "{\"kind\":\"Statusz\",\"apiVersion\":\"config.k8s.io/v1beta1\",\"metadata\":{\"name\":\
            \"kube-scheduler\"},\"startTime\":\"2026-11-02T04:10:59Z\",\"uptimeSeconds\":90063,\"goVersion\":\"rustc\",\
            \"binaryVersion\":\"1.36.3\",\"emulationVersion\":\"1.36\",\"paths\":[\"/healthz\",\"/metrics\"]}\n";
        assert_eq!(shown(page.reply(now, &Query::default(), &headers)).2, expected);
    }
}
