//! Routes paths to handlers. Exact paths precede prefixes, and few handlers look at the method.
//! Follows `cmd/kube-scheduler/app/server.go#newEndpointsHandler` and `apiserver/pkg/server/mux/pathrecorder.go @v1.36.3`.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::Full;

use super::endpoints::{Endpoints, IsLeader, Profiling};
use super::exposition::Exposition;
use super::health::HealthPath;
use super::negotiate::Query;
use super::pages::{Configz, Flagz, Statusz};
use super::pprof::Pprof;
use super::reply::{HTML, Reply, no_sniff, not_found, reply, text};
use super::resources::PodResources;
use super::slis::Slis;
use crate::clock::Clock;
use crate::go::number::{invalid_syntax, out_of_range};

/// The parts of a request's head that handlers read.
pub(super) struct RequestHead<'a> {
    pub(super) method: &'a Method,
    /// The path of the URL, with its escapes decoded.
    pub(super) path: &'a str,
    pub(super) query: Query,
    /// The query as the client wrote it.
    pub(super) raw_query: &'a str,
    pub(super) headers: &'a HeaderMap,
}

/// Handlers of all paths.
pub(super) struct Mux {
    roots: [HealthPath; 3],
    metrics: Exposition,
    slis: Exposition,
    resources: Exposition,
    is_leader: IsLeader,
    configz: Configz,
    flagz: Option<Flagz>,
    statusz: Option<Statusz>,
    profiling: Option<(Profiling, Pprof)>,
    clock: Clock,
}

impl Mux {
    pub(super) fn new(endpoints: Endpoints, clock: &Clock) -> Result<Self, prometheus::Error> {
        let slis = Slis::new(endpoints.started)?;
        let roots = [
            HealthPath::new("healthz", &endpoints.healthz, &slis),
            HealthPath::new("livez", &[], &slis),
            HealthPath::new("readyz", &endpoints.readyz, &slis),
        ];
        let seed = usize::try_from(endpoints.started.as_second()).unwrap_or(0);
        let flagz = endpoints.flags.map(|flags| Flagz::new(flags, seed));
        let mut paths: Vec<String> =
            ["/healthz", "/livez", "/readyz", "/configz", "/metrics"].map(str::to_owned).to_vec();
        paths.extend(flagz.as_ref().map(|_| "/flagz".to_owned()));
        let started = endpoints.started.as_second();
        Ok(Self {
            roots,
            metrics: Exposition::new(endpoints.metrics, started, clock),
            slis: Exposition::new(slis, started, clock),
            resources: Exposition::new(Arc::new(PodResources(endpoints.pods)), started, clock),
            is_leader: endpoints.is_leader,
            configz: Configz::new(&endpoints.config),
            flagz,
            statusz: endpoints.status.map(|versions| Statusz::new(versions, &paths, endpoints.started)),
            profiling: endpoints.profiling.map(|profiling| (profiling, Pprof::new(clock))),
            clock: clock.clone(),
        })
    }

    /// Whether the response depends on the request's body.
    pub(super) fn reads_body(&self, method: &Method, path: &str) -> bool {
        let reads = (*method == Method::PUT && path == "/debug/flags/v") || Pprof::reads_body(method, path);
        self.profiling.is_some() && reads
    }

    /// Answers one authorized request. `body` is empty unless [`Self::reads_body`] is true.
    pub(super) async fn serve(&self, asked: &RequestHead<'_>, body: Bytes) -> Reply {
        let page = match asked.path {
            "/healthz" => Some(self.roots[0].all(&asked.query)),
            "/livez" => Some(self.roots[1].all(&asked.query)),
            "/readyz" => Some(self.roots[2].all(&asked.query)),
            "/metrics" => Some(self.metrics.answer(asked.method, asked.headers).await),
            "/metrics/slis" => Some(self.slis.answer(asked.method, asked.headers).await),
            "/metrics/resources" => Some(self.resources(asked).await),
            "/configz" => Some(self.configz.reply()),
            "/flagz" => self.flagz.as_ref().map(|page| page.reply(&asked.query, asked.headers)),
            "/statusz" => {
                let now = self.clock.now().wall;
                self.statusz.as_ref().map(|page| page.reply(now, &asked.query, asked.headers))
            }
            // Boxed to keep the future of the common requests small.
            path if path.starts_with("/debug/") => Box::pin(self.debug(asked, &body)).await,
            path => self.check(path),
        };
        page.unwrap_or_else(not_found)
    }

    /// Answers `/healthz/<check>`, `/livez/<check>` and `/readyz/<check>`.
    fn check(&self, path: &str) -> Option<Reply> {
        let (root, check) = path.strip_prefix('/')?.split_once('/')?;
        let at = ["healthz", "livez", "readyz"].iter().position(|name| *name == root)?;
        self.roots[at].one(check)
    }

    async fn resources(&self, asked: &RequestHead<'_>) -> Reply {
        if (self.is_leader)() {
            return self.resources.answer(asked.method, asked.headers).await;
        }
        Response::new(Full::default())
    }

    async fn debug(&self, asked: &RequestHead<'_>, body: &Bytes) -> Option<Reply> {
        let (profiling, pprof) = self.profiling.as_ref()?;
        match asked.path {
            "/debug/flags/v" => Some(verbosity(profiling, asked.method, body)),
            path if path == "/debug/flags" || path.starts_with("/debug/flags/") => Some(flags()),
            _ => pprof.serve(asked, body).await,
        }
    }
}

/// Page that lists the flag `v`. Follows `apiserver/pkg/server/routes/flags.go#Index @v1.36.3`.
fn flags() -> Reply {
    reply(
        StatusCode::OK,
        HTML,
        "<html>\n<head>\n<title>/debug/flags/</title>\n</head>\n<body>\n/debug/flags/<br>\n<br>\nflags:<br>\n<table>\n\
         <tr>v<br>\n</table>\n<br>\nfull flags configurable<br>\n</body>\n</html>\n",
    )
}

/// Sets the log verbosity from the body of a `PUT` request.
/// Follows `apiserver/pkg/server/routes/flags.go#StringFlagPutHandler` and `component-base/logs/logs.go#GlogSetter @v1.36.3`.
fn verbosity(profiling: &Profiling, method: &Method, body: &Bytes) -> Reply {
    let (status, text) = if *method == Method::PUT {
        let value = String::from_utf8_lossy(body);
        match level(&value) {
            Ok(level) => {
                (profiling.set_verbosity)(level);
                (StatusCode::OK, format!("successfully set klog.logging.verbosity to {value}"))
            }
            Err(error) => (StatusCode::BAD_REQUEST, error),
        }
    } else {
        (StatusCode::NOT_ACCEPTABLE, "unsupported http method".to_owned())
    };
    no_sniff(reply(status, http::HeaderValue::from_static("text/plain"), format!("{text}\n")))
}

/// Parses a number below 2^31 that consists of digits. The errors have Go's texts.
fn level(value: &str) -> Result<u32, String> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid_syntax("ParseUint", value));
    }
    let number: u32 = value.parse().map_err(|_| out_of_range("ParseUint", value))?;
    if i32::try_from(number).is_err() {
        let text = out_of_range("ParseInt", value);
        return Err(format!("failed set klog.logging.verbosity {value}: {text}"));
    }
    Ok(number)
}

/// Response to a request with too large a body.
pub(super) fn too_large() -> Reply {
    let mut reply = text("error reading request body: http: request body too large\n");
    *reply.status_mut() = StatusCode::BAD_REQUEST;
    no_sniff(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_must_be_a_number() {
        let check = |value: &str, expected: Result<u32, &str>| {
            assert_eq!(level(value).as_ref().map_err(String::as_str), expected.as_ref().map_err(|text| *text));
        };
        check("4", Ok(4));
        check("2147483647", Ok(2_147_483_647));
        let large = "failed set klog.logging.verbosity 2147483648: strconv.ParseInt: parsing \"2147483648\": value out of range";
        check("2147483648", Err(large));
        check("abc", Err("strconv.ParseUint: parsing \"abc\": invalid syntax"));
        check("", Err("strconv.ParseUint: parsing \"\": invalid syntax"));
        check("+4", Err("strconv.ParseUint: parsing \"+4\": invalid syntax"));
        check("99999999999", Err("strconv.ParseUint: parsing \"99999999999\": value out of range"));
    }
}
