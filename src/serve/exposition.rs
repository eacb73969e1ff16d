//! Metrics in the requested format, text or protobuf, and optionally compressed. `DELETE` resets them.
//! Follows `component-base/metrics/http.go#HandlerWithReset @v1.36.3` and
//! `github.com/prometheus/common/expfmt/encode.go#Negotiate @v0.67.5`.
//!
//! Metric names contain nothing to escape, but the response still names the escaping scheme that was requested. Protobuf is
//! available in the delimited encoding only. A client that requests one of protobuf's two readable encodings gets text.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::FutureExt as _;
use futures::future::{BoxFuture, WeakShared};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Response};
use http_body_util::Full;
use prometheus::proto::{Metric, MetricFamily, MetricType};

use super::endpoints::MetricsSource;
use super::negotiate;
use super::reply::{Reply, text, with};
use crate::apimachinery::accept::{Clause, accept, clauses};
use crate::apimachinery::protobuf::Message;
use crate::clock::Clock;
use crate::metrics::encode;

const STARTED: HeaderName = HeaderName::from_static("process-start-time-unix");
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PROTOBUF: &str = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Number of unsent bodies above which new bodies are created less often.
const FREE: usize = 4;

/// Delay of the next body for each unsent body above [`FREE`], so that slow clients do not fill the memory.
const PAUSE: Duration = Duration::from_millis(20);

/// Longest delay of a body, which is still shorter than Prometheus's timeout.
const LONGEST: Duration = Duration::from_secs(2);

/// Metrics of a source for any number of concurrent clients. One thread at a time gathers them, for all requests that have
/// arrived until then.
pub(super) struct Exposition {
    source: Arc<dyn MetricsSource>,
    /// When the process was started, in seconds since 1970.
    started: i64,
    clock: Clock,
    /// Lock of the thread that gathers.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Reference count: one for each body not yet sent, plus one for this field.
    unsent: Arc<()>,
    /// Bodies that are not yet gathered. The lock is held for one look-up and never across an await.
    waiting: Arc<Mutex<Waiting>>,
}

type Waiting = BTreeMap<Form, WeakShared<BoxFuture<'static, EncodedBody>>>;

/// Format and encoding of a body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    protobuf: bool,
    gzip: bool,
}

/// An encoded body, whose bytes all its receivers share.
#[derive(Clone)]
struct EncodedBody {
    body: Bytes,
    compressed: bool,
}

impl Exposition {
    pub(super) fn new(source: Arc<dyn MetricsSource>, started: i64, clock: &Clock) -> Self {
        let (turn, unsent, waiting) = (Arc::default(), Arc::default(), Arc::default());
        Self { source, started, clock: clock.clone(), turn, unsent, waiting }
    }

    /// Answers a request with metrics gathered after it arrived.
    pub(super) async fn answer(&self, method: &Method, headers: &HeaderMap) -> Reply {
        if *method == Method::DELETE {
            self.source.reset();
            return text("metrics reset\n");
        }
        let clauses = clauses(&accept(headers));
        let (protobuf, escaping) = form(&clauses);
        let gzip = negotiate::encoding(headers, &["identity", "gzip"]) == Some("gzip");
        let EncodedBody { body, compressed } = self.body(Form { protobuf, gzip }).await;
        let mut reply = Response::new(Full::new(body));
        let kind = HeaderValue::try_from(format!("{}; escaping={escaping}", if protobuf { PROTOBUF } else { TEXT }));
        reply.headers_mut().insert(CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static(TEXT)));
        if compressed {
            reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        with(reply, STARTED, HeaderValue::from(self.started))
    }

    async fn body(&self, form: Form) -> EncodedBody {
        let made = {
            let mut waiting = lock(&self.waiting);
            if let Some(made) = waiting.get(&form).and_then(WeakShared::upgrade) {
                made
            } else {
                let made = self.make(form).boxed().shared();
                if let Some(weak) = made.downgrade() {
                    waiting.insert(form, weak);
                }
                made
            }
        };
        made.await
    }

    /// Returns a future that gathers and encodes a body on a blocking thread, since many metrics take a while.
    fn make(&self, form: Form) -> impl Future<Output = EncodedBody> + Send + 'static {
        let (source, turn, waiting) = (self.source.clone(), self.turn.clone(), self.waiting.clone());
        let (clock, unsent) = (self.clock.clone(), self.unsent.clone());
        async move {
            let turn = turn.lock_owned().await;
            let others = u32::try_from(Arc::strong_count(&unsent).saturating_sub(2 + FREE)).unwrap_or(u32::MAX);
            if others > 0 {
                clock.sleep(PAUSE.saturating_mul(others).min(LONGEST)).await;
            }
            // Requests that arrive from here on share the next body.
            lock(&waiting).remove(&form);
            let making = tokio::task::spawn_blocking(move || {
                // The blocking thread holds the lock to its end, even if the clients disconnect.
                let _turn = turn;
                make(&*source, form, unsent)
            });
            making.await.unwrap_or_else(|end| match end.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only a runtime that is shutting down cancels such a task.
                Err(_) => EncodedBody { body: Bytes::new(), compressed: false },
            })
        }
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

fn make(source: &dyn MetricsSource, form: Form, unsent: Arc<()>) -> EncodedBody {
    let families = source.gather();
    let mut body = if form.protobuf { protobuf(&families) } else { encode(&families).into_bytes() };
    drop(families);
    let compressed = form.gzip.then(|| gzip(&body)).flatten();
    let is_compressed = compressed.is_some();
    body = compressed.unwrap_or(body);
    body.shrink_to_fit();
    EncodedBody { body: Bytes::from_owner(CountedBody { body, _count: unsent }), compressed: is_compressed }
}

/// A body that is counted until every receiver has been sent all of it.
struct CountedBody {
    body: Vec<u8>,
    _count: Arc<()>,
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// Returns whether the client wants protobuf, and the escaping scheme.
fn form(clauses: &[Clause]) -> (bool, &str) {
    let mut escaping = "underscores";
    for clause in clauses {
        let param = |name: &str| clause.params.get(name).map(String::as_str);
        if let Some(wanted @ ("allow-utf-8" | "underscores" | "dots" | "values")) = param("escaping") {
            escaping = wanted;
        }
        let of_families = param("proto") == Some("io.prometheus.client.MetricFamily");
        let names = (clause.kind.as_str(), clause.subkind.as_str());
        if names == ("application", "vnd.google.protobuf") && of_families && param("encoding") == Some("delimited") {
            return (true, escaping);
        }
        if names == ("text", "plain") && matches!(param("version"), None | Some("0.0.4")) {
            return (false, escaping);
        }
    }
    (false, escaping)
}

fn gzip(body: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 8), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok()
}

/// Encodes each family with its length before it. Follows `io/prometheus/client/metrics.proto`.
fn protobuf(families: &[MetricFamily]) -> Vec<u8> {
    let mut out = Vec::new();
    for family in families {
        let kind = family.get_field_type();
        let number = match kind {
            MetricType::COUNTER => 0,
            MetricType::GAUGE => 1,
            MetricType::SUMMARY => 2,
            MetricType::UNTYPED => 3,
            MetricType::HISTOGRAM => 4,
        };
        let message = Message::default().bytes(1, family.name()).bytes(2, family.help()).number(3, number);
        let add = |message: Message, metric: &Metric| message.message(4, sample(metric, kind));
        family.get_metric().iter().fold(message, add).delimited(&mut out);
    }
    out
}

fn sample(metric: &Metric, kind: MetricType) -> Message {
    let labels = metric.get_label().iter().fold(Message::default(), |message, label| {
        message.message(1, Message::default().bytes(1, label.name()).bytes(2, label.value()))
    });
    let value = |value: f64| Message::default().double(1, value);
    match kind {
        MetricType::GAUGE => labels.message(2, value(metric.get_gauge().get_value())),
        MetricType::COUNTER => labels.message(3, value(metric.get_counter().get_value())),
        MetricType::SUMMARY => {
            let summary = metric.get_summary();
            let totals = Message::default().number(1, summary.sample_count()).double(2, summary.sample_sum());
            let all = summary.get_quantile().iter().fold(totals, |message, quantile| {
                message.message(3, Message::default().double(1, quantile.quantile()).double(2, quantile.value()))
            });
            labels.message(4, all)
        }
        MetricType::HISTOGRAM => {
            let histogram = metric.get_histogram();
            let totals =
                Message::default().number(1, histogram.get_sample_count()).double(2, histogram.get_sample_sum());
            let all = histogram.get_bucket().iter().fold(totals, |message, bucket| {
                let bound = Message::default().number(1, bucket.cumulative_count()).double(2, bucket.upper_bound());
                message.message(3, bound)
            });
            labels.message(7, all)
        }
        // The crate `prometheus` has no collector of this type.
        MetricType::UNTYPED => labels,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::mpsc;

    use futures::poll;
    use http::header::{ACCEPT, ACCEPT_ENCODING};
    use http_body_util::BodyExt as _;
    use jiff::Timestamp;
    use prometheus::{IntCounter, Registry};

    use super::*;
    use crate::clock::SimClock;

    fn registry() -> Registry {
        let registry = Registry::new();
        let counter = IntCounter::new("c", "help").expect("a counter");
        counter.inc();
        registry.register(Box::new(counter)).expect("a new name");
        registry
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
    }

    fn asked(headers: &[(HeaderName, &str)]) -> (Reply, Vec<u8>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let exposition = Exposition::new(Arc::new(registry()), 7, &Clock::real());
        let reply = block_on(exposition.answer(&Method::GET, &map));
        let (parts, body) = reply.into_parts();
        let body = futures::executor::block_on(body.collect()).expect("a whole body").to_bytes().to_vec();
        (Response::from_parts(parts, Full::default()), body)
    }

    #[test]
    fn format_follows_the_accept_header() {
        let check = |accept: &str, expected: &str| {
            let (reply, _) = asked(&[(ACCEPT, accept)]);
            assert_eq!(reply.headers()[CONTENT_TYPE], expected, "{accept}");
        };
        let plain = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
        check("", plain);
        check("application/json", plain);
        check("application/openmetrics-text;version=1.0.0,*/*;q=0.1", plain);
        let protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        check(protobuf, &format!("{PROTOBUF}; escaping=underscores"));
        check(
            "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.1",
            "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8",
        );
    }

    #[test]
    fn body_is_compressed_on_request() {
        let (reply, body) = asked(&[(ACCEPT_ENCODING, "gzip")]);
        assert_eq!(reply.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(reply.headers()[STARTED], "7");
        let mut text = String::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).expect("text");
        assert_eq!(text, "# HELP c help\n# TYPE c counter\nc 1\n");
    }

    #[test]
    fn families_are_encoded_in_protobuf() {
        let expected: &[u8] = b"\x18\x0a\x01c\x12\x04help\x18\x00\x22\x0b\x1a\x09\x09\x00\x00\x00\x00\x00\x00\xf0\x3f";
        assert_eq!(protobuf(&registry().gather()), expected);
    }

    /// A source that reports each call and blocks until it may answer with the number of calls.
    struct Slow {
        asked: mpsc::SyncSender<()>,
        may: Mutex<mpsc::Receiver<()>>,
        counter: IntCounter,
    }

    impl MetricsSource for Slow {
        fn gather(&self) -> Vec<MetricFamily> {
            use prometheus::core::Collector as _;

            self.counter.inc();
            // The receiver is gone if the test has failed.
            let _ = self.asked.send(());
            let _ = self.may.lock().expect("nobody panicked").recv();
            self.counter.collect()
        }

        fn reset(&self) {}
    }

    #[test]
    fn requests_during_a_gather_share_the_next_one() {
        let (asked, is_asked) = mpsc::sync_channel(10);
        let (allow, may) = mpsc::channel();
        let counter = IntCounter::new("c", "help").expect("a counter");
        let source = Slow { asked, may: Mutex::new(may), counter };
        let exposition = Exposition::new(Arc::new(source), 7, &Clock::real());
        block_on(async move {
            let headers = HeaderMap::new();
            let ask = || {
                Box::pin(async {
                    let reply = exposition.answer(&Method::GET, &headers).await;
                    let body = reply.into_body().collect().await.expect("a whole body").to_bytes();
                    String::from_utf8_lossy(&body).lines().last().unwrap_or_default().to_owned()
                })
            };
            let mut first = ask();
            assert!(poll!(&mut first).is_pending());
            while is_asked.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            let mut others: Vec<_> = (0..200).map(|_| ask()).collect();
            for other in &mut others {
                assert!(poll!(other).is_pending());
            }
            drop(others.pop());
            allow.send(()).expect("it waits");
            assert_eq!(first.await, "c 1");
            allow.send(()).expect("it will wait");
            for other in others {
                assert_eq!(other.await, "c 2");
            }
            assert!(lock(&exposition.waiting).is_empty());
        });
    }

    #[test]
    fn many_unsent_bodies_slow_down_gathering() {
        let time = SimClock::new(Timestamp::UNIX_EPOCH);
        let exposition = Exposition::new(Arc::new(registry()), 7, &time.clock());
        block_on(async {
            let headers = HeaderMap::new();
            let mut unsent = Vec::new();
            for _ in 0..=FREE {
                unsent.push(exposition.answer(&Method::GET, &headers).await);
            }
            let mut next = Box::pin(exposition.answer(&Method::GET, &headers));
            for _ in 0..100 {
                assert!(poll!(&mut next).is_pending());
                tokio::task::yield_now().await;
            }
            time.advance(PAUSE);
            next.await;
            drop(unsent);
            exposition.answer(&Method::GET, &headers).await;
        });
    }
}
