//! `/debug/pprof`: profiles in the format that `go tool pprof` reads.
//!
//! CPU profiles are equivalent to upstream's, and so are heap profiles with the binary's allocator. The other profiles depend
//! on Go's runtime, so they contain less here and say so:
//!
//! | profile | content |
//! |---|---|
//! | goroutine | threads by name, and the number of the runtime's tasks |
//! | threadcreate | threads by name |
//! | heap, allocs | memory in use and ever allocated, in bytes and allocations; with an allocator other than the binary's, the resident memory as one sample |
//! | block, mutex | empty: contention is not sampled |
//! | trace | not implemented |
//!
//! Symbol names come from the binary, so a stripped binary has none. If the binary is linked with musl, CPU profiles have no
//! stacks either.
//!
//! Follows Go's `net/http/pprof` and `apiserver/pkg/server/routes/profiling.go @v1.36.3`.

mod cpu;
mod format;
mod heap;
mod process;

use std::time::Duration;

use http::header::{CONTENT_DISPOSITION, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use tokio::task::JoinError;

use super::mux::RequestHead;
use super::negotiate::Query;
use super::reply::{HTML, Reply, no_sniff, redirect, reply, text, with};
use crate::clock::Clock;
use cpu::Cpu;
use format::Profile;

const PREFIX: &str = "/debug/pprof/";

/// Default duration of a CPU profile in seconds.
const SECONDS: u64 = 30;

/// Names and descriptions of the profiles.
const PROFILES: &[(&str, &str)] = &[
    ("allocs", "Sampled memory allocations since the process started"),
    ("block", "Empty: blocking is not sampled"),
    ("goroutine", "Threads and tasks of the async runtime"),
    ("heap", "Sampled memory allocations that are still in use"),
    ("mutex", "Empty: contention is not sampled"),
    ("profile", "CPU profile for go tool pprof; the parameter seconds sets its duration"),
    ("symbol", "Symbol names of the addresses in the request, separated by +"),
    ("threadcreate", "Threads"),
];

/// Handler of all profile requests.
pub(super) struct Pprof {
    cpu: Cpu,
    clock: Clock,
}

impl Pprof {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { cpu: Cpu::default(), clock: clock.clone() }
    }

    /// Whether the response depends on the request's body.
    pub(super) fn reads_body(method: &Method, path: &str) -> bool {
        *method == Method::POST && path == "/debug/pprof/symbol"
    }

    /// Answers a request under `/debug/pprof`. Returns `None` for other paths.
    pub(super) async fn serve(&self, asked: &RequestHead<'_>, body: &[u8]) -> Option<Reply> {
        if asked.path == "/debug/pprof" {
            return Some(redirect(PREFIX, matches!(*asked.method, Method::GET | Method::HEAD)));
        }
        let name = asked.path.strip_prefix(PREFIX)?;
        Some(match name {
            "" => index(),
            "profile" => self.profile(&asked.query).await,
            "symbol" => {
                let addresses =
                    if *asked.method == Method::POST { String::from_utf8_lossy(body) } else { asked.raw_query.into() };
                symbols(&addresses)
            }
            "trace" => {
                refused(StatusCode::NOT_IMPLEMENTED, "Execution traces are not supported: they require the Go runtime")
            }
            name => named(name, &asked.query, self.clock.now().wall.as_nanosecond()).await,
        })
    }

    async fn profile(&self, query: &Query) -> Reply {
        let seconds = query.first("seconds").and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
        let duration = Duration::from_secs(seconds.unwrap_or(SECONDS));
        match self.cpu.profile(&self.clock, duration).await {
            Ok(profile) => attached("profile", &profile),
            Err(error) => {
                refused(StatusCode::INTERNAL_SERVER_ERROR, &format!("Could not enable CPU profiling: {error}"))
            }
        }
    }
}

fn index() -> Reply {
    let rows: String = PROFILES.iter().fold(String::new(), |rows, (name, what)| {
        rows + &format!("<tr><td><a href='{name}?debug=1'>{name}</a></td><td>{what}</td></tr>\n")
    });
    let page = format!(
        "<html>\n<head>\n<title>{PREFIX}</title>\n</head>\n<body>\n{PREFIX}\n<br>\n<table>\n{rows}</table>\n</body>\n</html>\n"
    );
    no_sniff(reply(StatusCode::OK, HTML, page))
}

/// Answers with a profile of the process's current state.
async fn named(name: &str, query: &Query, now: i128) -> Reply {
    let profile = match name {
        "goroutine" => process::threads("goroutine"),
        "threadcreate" => process::threads("threadcreate"),
        "heap" | "allocs" => match heap::profile().await {
            Ok(Some(profile)) => profile.by_default(if name == "heap" { heap::IN_USE } else { heap::ALLOCATED }),
            Ok(None) => process::memory(),
            Err(error) => {
                let why = format!("Could not take a heap profile: {error}");
                return refused(StatusCode::INTERNAL_SERVER_ERROR, &why);
            }
        },
        "block" | "mutex" => process::contention(),
        _ => return refused(StatusCode::NOT_FOUND, "Unknown profile"),
    };
    let profile = profile.taken(now);
    let has = |name: &str| query.first(name).is_some_and(|value| !value.is_empty());
    if has("seconds") {
        let why = "\"seconds\" parameter is not supported for this profile type";
        return refused(StatusCode::BAD_REQUEST, why);
    }
    let debug = query.first("debug").and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
    if debug == 0 { attached(name, &profile) } else { no_sniff(text(profile.text(name))) }
}

/// Returns the result of a blocking task. A panic of the task continues here.
fn ended<T>(end: Result<Result<T, String>, JoinError>) -> Result<T, String> {
    end.unwrap_or_else(|end| match end.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Err("the process is shutting down".to_owned()),
    })
}

/// Returns a profile as a file to download. Follows Go's `net/http/pprof.handler.ServeHTTP`.
fn attached(name: &str, profile: &Profile) -> Reply {
    let binary = HeaderValue::from_static("application/octet-stream");
    let file = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    let reply = no_sniff(reply(StatusCode::OK, binary, profile.gzipped()));
    match file {
        Ok(file) => with(reply, CONTENT_DISPOSITION, file),
        Err(_) => reply,
    }
}

/// Response to a failed request. Follows Go's `net/http/pprof.serveError`.
fn refused(status: StatusCode, why: &str) -> Reply {
    let reply = no_sniff(reply(status, super::reply::TEXT, format!("{why}\n")));
    with(reply, HeaderName::from_static("x-go-pprof"), HeaderValue::from_static("1"))
}

/// Looks up the names of functions by address. Follows Go's `net/http/pprof.Symbol`.
fn symbols(addresses: &str) -> Reply {
    use std::fmt::Write as _;

    let mut lines = "num_symbols: 1\n".to_owned();
    for word in addresses.split('+') {
        let parsed = match word.strip_prefix("0x") {
            Some(digits) => usize::from_str_radix(digits, 16),
            None => word.parse(),
        };
        let Some(address) = parsed.ok().filter(|address| *address != 0) else { continue };
        // `resolve` expects a return address and looks up the instruction before it.
        let after = std::ptr::without_provenance_mut(address.saturating_add(1));
        backtrace::resolve(after, |symbol| {
            if let Some(name) = symbol.name() {
                // Writing into a string cannot fail.
                let _ = writeln!(lines, "{address:#x} {name}");
            }
        });
    }
    no_sniff(text(lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::reply::shown;

    #[tokio::test]
    async fn a_profile_that_is_not_there_is_unknown() {
        let unknown = (404, "Unknown profile\n".to_owned());
        assert_eq!(shown(named("cmdline", &Query::default(), 0).await), unknown);
        let (status, text) = shown(named("threadcreate", &Query::parse("debug=1"), 0).await);
        assert_eq!(status, 200);
        assert!(text.starts_with("threadcreate profile: total "), "{text}");
        assert_eq!(shown(named("heap", &Query::parse("seconds=1"), 0).await).0, 400);
    }

    #[test]
    fn addresses_have_names() {
        let address = symbols as fn(&str) -> Reply as usize;
        let (_, text) = shown(symbols(&format!("{address:#x}+0+x")));
        let lines: Vec<&str> = text.lines().collect();
        assert!(matches!(lines[..], ["num_symbols: 1", named, ..] if named.contains("symbols")), "{text}");
    }
}
