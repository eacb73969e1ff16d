//! Somebody who stands between the scheduler and the API server, takes TLS off, and answers requests in the server's place,
//! passes them on and loses the answer, or lets it wait.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyDataStream, BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::ConfigExt as _;
use kube_scheduler::clock::Clock;
use rustls::server::WebPkiClientVerifier;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::relay::Counts;
use crate::certificates::{self, Authority};
use crate::support::cluster::ControlPlane;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is passed on, and so is its answer.
    None,
    /// 429 instead, as API priority and fairness says it, with a time to wait or without.
    Busy { wait: bool },
    /// This code instead.
    Code(u16),
    /// It is passed on, and answered with this code.
    Instead(u16),
    /// The same with 503 and a time after which to try it again.
    InsteadBusy,
    /// The stream is cut; it is passed on before that, or is not.
    Cut { passed: bool },
    /// It is passed on after this time.
    Late(Duration),
    /// Its answer comes in small pieces.
    Slow,
    /// A watch ends after this time; in the middle of what it tells, or as it should.
    EndOfWatch { after: Duration, is_clean: bool },
}

impl Fault {
    /// All that are counted.
    pub(crate) const NAMES: &[&str] = &[
        "429",
        "429, wait",
        "500",
        "502",
        "503",
        "504",
        "500 though done",
        "504 though done",
        "503 though done, wait",
        "cut",
        "cut though done",
        "late",
        "slow answer",
        "watch cut",
        "watch ended",
    ];

    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::Busy { wait: true } => "429, wait",
            Self::Busy { wait: false } => "429",
            Self::Code(500) => "500",
            Self::Code(502) => "502",
            Self::Code(503) => "503",
            Self::Code(_) => "504",
            Self::Instead(500) => "500 though done",
            Self::Instead(_) => "504 though done",
            Self::InsteadBusy => "503 though done, wait",
            Self::Cut { passed: false } => "cut",
            Self::Cut { passed: true } => "cut though done",
            Self::Late(_) => "late",
            Self::Slow => "slow answer",
            Self::EndOfWatch { is_clean: false, .. } => "watch cut",
            Self::EndOfWatch { is_clean: true, .. } => "watch ended",
        })
    }
}

/// A request, as far as a script needs it.
pub(crate) struct Asked {
    pub(crate) method: http::Method,
    pub(crate) path: String,
    pub(crate) is_watch: bool,
}

impl Asked {
    /// The pod that is to be bound.
    pub(crate) fn bound(&self) -> Option<&str> {
        self.path.strip_suffix("/binding")?.rsplit('/').next()
    }
}

type Script = Box<dyn FnMut(&Asked) -> Fault + Send>;
type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

struct Shared {
    server: legacy::Client<hyper_rustls::HttpsConnector<HttpConnector>, Incoming>,
    authority: String,
    script: Mutex<Script>,
    counts: Counts,
    clock: Clock,
}

/// A proxy; it ends with the runtime of its control plane.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// In front of this control plane's API server. Passes everything on until it has a script.
    pub(crate) fn start(plane: &ControlPlane) -> Result<Self, String> {
        // Nobody checks the certificate.
        let pair = Authority::new().pair("127.0.0.1");
        let tls = certificates::http_server(&pair, WebPkiClientVerifier::no_client_auth());
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let authority = plane.addresses()[1].to_string();
        let mut config = kube::Config::new(Uri::from_static("https://127.0.0.1"));
        config.accept_invalid_certs = true;
        let shared = Arc::new(Shared {
            server: legacy::Client::builder(TokioExecutor::new())
                .build(config.rustls_https_connector().map_err(|error| error.to_string())?),
            authority,
            script: Mutex::new(Box::new(|_| Fault::None)),
            counts: Counts::of(Fault::NAMES),
            clock: Clock::real(),
        });
        let listener = plane.runtime.block_on(TcpListener::bind("127.0.0.1:0")).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let serving = shared.clone();
        plane.runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone(), serving.clone()));
            }
        });
        Ok(Self { address, shared })
    }

    /// From now on requests have happen to them what the script says.
    pub(crate) fn play(&self, script: impl FnMut(&Asked) -> Fault + Send + 'static) {
        *self.shared.script.lock().expect("no script panics") = Box::new(script);
    }

    /// From now on everything is passed on.
    pub(crate) fn calm(&self) {
        self.play(|_| Fault::None);
    }

    pub(crate) fn counts(&self) -> std::collections::BTreeMap<&'static str, usize> {
        self.shared.counts.all()
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { shared.answer(request).await }
    });
    // Who has gone away needs no answer.
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> io::Result<Answer> {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let asked = Asked { method, path, is_watch };
        let fault = (self.script.lock().expect("no script panics"))(&asked);
        if let Some(name) = fault.name() {
            self.counts.add(name);
        }
        match fault {
            Fault::None => Ok(self.pass(request).await?.map(whole)),
            Fault::Busy { wait } => Ok(if wait { waiting(busy()) } else { busy() }),
            Fault::Code(code) => Ok(plain(code)),
            Fault::Instead(code) => {
                self.pass(request).await?.into_body().collect().await.map_err(io::Error::other)?;
                Ok(plain(code))
            }
            Fault::InsteadBusy => {
                self.pass(request).await?.into_body().collect().await.map_err(io::Error::other)?;
                Ok(waiting(plain(503)))
            }
            Fault::Cut { passed } => {
                if passed {
                    self.pass(request).await?.into_body().collect().await.map_err(io::Error::other)?;
                }
                Err(io::Error::other("cut"))
            }
            Fault::Late(time) => {
                self.clock.sleep(time).await;
                Ok(self.pass(request).await?.map(whole))
            }
            Fault::Slow => Ok(self.pass(request).await?.map(|body| trickle(self.clock.clone(), body))),
            Fault::EndOfWatch { after, is_clean } => {
                Ok(self.pass(request).await?.map(|body| until(self.clock.clone(), body, after, is_clean)))
            }
        }
    }

    /// Has the API server answer.
    async fn pass(&self, request: Request<Incoming>) -> io::Result<Response<Incoming>> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = format!("https://{}{path}", self.authority).parse().map_err(io::Error::other)?;
        parts.version = http::Version::HTTP_11;
        parts.headers.remove(header::HOST);
        let mut response = self.server.request(Request::from_parts(parts, body)).await.map_err(io::Error::other)?;
        // These are about that connection, and not allowed in HTTP/2.
        response.headers_mut().remove(header::CONNECTION);
        response.headers_mut().remove(header::TRANSFER_ENCODING);
        Ok(response)
    }
}

fn whole(body: Incoming) -> UnsyncBoxBody<Bytes, io::Error> {
    body.map_err(io::Error::other).boxed_unsync()
}

fn text(code: u16, text: String) -> Answer {
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).expect("a code");
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

fn plain(code: u16) -> Answer {
    text(code, format!("{code} from somebody in between\n"))
}

/// Follows `apiserver/pkg/server/filters/priority-and-fairness.go#tooManyRequests @v1.36.3`.
fn busy() -> Answer {
    text(429, "Too many requests, please try again later.\n".to_owned())
}

/// The same, to be asked again after a second.
fn waiting(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// The same body, a few bytes at a time.
fn trickle(clock: Clock, body: Incoming) -> UnsyncBoxBody<Bytes, io::Error> {
    let pieces = BodyDataStream::new(body).flat_map(|data| match data {
        Ok(data) => stream::iter(data.chunks(64).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect::<Vec<_>>()),
        Err(error) => stream::iter(vec![Err(io::Error::other(error))]),
    });
    let slowly = pieces.then(move |piece| {
        let clock = clock.clone();
        async move {
            clock.sleep(Duration::from_millis(20)).await;
            piece.map(Frame::data)
        }
    });
    StreamBody::new(slowly).boxed_unsync()
}

/// The same body up to a time.
fn until(clock: Clock, body: Incoming, after: Duration, is_clean: bool) -> UnsyncBoxBody<Bytes, io::Error> {
    let data = BodyDataStream::new(body).map(|data| data.map(Frame::data).map_err(io::Error::other));
    let ended = data.take_until(Box::pin(async move { clock.sleep(after).await }));
    if is_clean {
        return StreamBody::new(ended).boxed_unsync();
    }
    StreamBody::new(ended.chain(stream::iter([Err(io::Error::other("cut"))]))).boxed_unsync()
}
