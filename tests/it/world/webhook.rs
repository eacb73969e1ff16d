//! A real extender: a server on a loopback socket, with a thread of its own, that speaks HTTP/1.1, over TLS too.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

/// The longest that a test waits for something that has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// Response of the server.
pub(crate) enum Reply {
    /// 200 with this.
    Json(Value),
    /// 200 with these bytes.
    Text(String),
    /// A code of its own.
    Code(u16),
    /// Nothing, ever.
    Never,
    /// A reply that begins and does not end.
    Half,
    /// The end of the connection.
    HangUp,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Behind the host.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

type Answers = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server that runs until the process ends.
pub(crate) struct Webhook {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Starts a server that answers like this.
pub(crate) fn webhook(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Webhook {
    start(None, Arc::new(answer))
}

/// The same, over TLS.
pub(crate) fn secure_webhook(
    config: ServerConfig,
    answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> Webhook {
    start(Some(Arc::new(config)), Arc::new(answer))
}

fn start(tls: Option<Arc<ServerConfig>>, answers: Arc<Answers>) -> Webhook {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let webhook = Webhook { address: listener.local_addr().expect("it is bound"), asked: Arc::default() };
    let asked = webhook.asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, tls, answers, asked) =
                (stream.expect("it listens"), tls.clone(), answers.clone(), asked.clone());
            std::thread::spawn(move || match tls {
                None => serve(stream, &answers, &asked),
                Some(config) => {
                    let connection = ServerConnection::new(config).expect("a good configuration");
                    serve(StreamOwned::new(connection, stream), &answers, &asked);
                }
            });
        }
    });
    webhook
}

/// Serves one connection until it ends, however that comes.
fn serve(stream: impl Read + Write, answers: &Arc<Answers>, log: &Mutex<Vec<Asked>>) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read(&mut stream) {
        log.lock().expect("no test panicked under the lock").push(asked.clone());
        let (status, body) = match answers(&asked) {
            Reply::Json(value) => ("200 OK".to_owned(), value.to_string()),
            Reply::Text(text) => ("200 OK".to_owned(), text),
            Reply::Code(code) => (format!("{code} Code"), "not read".to_owned()),
            Reply::HangUp => return,
            Reply::Never => {
                let _ = stream.read(&mut [0]);
                return;
            }
            Reply::Half => {
                let _ = stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{");
                let _ = stream.get_mut().flush();
                let _ = stream.read(&mut [0]);
                return;
            }
        };
        let reply = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        if stream.get_mut().write_all(reply.as_bytes()).and_then(|()| stream.get_mut().flush()).is_err() {
            return;
        }
    }
}

fn read(stream: &mut impl std::io::BufRead) -> Option<Asked> {
    let mut first = String::new();
    stream.read_line(&mut first).ok().filter(|&length| length > 0)?;
    let path = first.strip_prefix("POST ")?.split(' ').next()?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Asked { path, headers, body: serde_json::from_slice(&body).ok()? })
}

impl Webhook {
    /// `http://…`
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `https://…`
    pub(crate) fn secure_url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Requests since the last call of this function.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("no test panicked under the lock"))
    }

    /// The paths of that.
    pub(crate) fn take_paths(&self) -> Vec<String> {
        self.take().into_iter().map(|asked| asked.path).collect()
    }
}

/// An address that nobody listens at.
pub(crate) fn closed_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound")
}

/// Waits until it is so, and does `meanwhile` until then.
#[expect(clippy::disallowed_methods, reason = "another thread gets there in real time, and a bound ends a failed test")]
pub(crate) fn wait_until(mut meanwhile: impl FnMut() -> bool) {
    let began = Instant::now();
    while !meanwhile() {
        assert!(began.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}
