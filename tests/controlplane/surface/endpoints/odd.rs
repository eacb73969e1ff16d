//! Requests as no client of a library writes them, over HTTP/1.1.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::client::Client;

/// Timeout for a response.
const PATIENCE: Duration = Duration::from_secs(20);

/// Each is the last one on its connection.
pub(super) const REQUESTS: &[&str] = &[
    "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: a\"\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: [::1]:10259\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.0\r\n\r\n",
    "GET http://other/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET http://other/healthz HTTP/1.1\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: more, 100-Continue\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nExpect:\r\nConnection: close\r\n\r\n",
    "PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\nConnection: close\r\n\r\n2",
    "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\n\r\n",
    "OPTIONS /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "get /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "BREW /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\nConnection: close\r\n\r\n",
];

/// Malformed requests, which hyper rejects with an empty body.
pub(super) const UNREADABLE: &[&str] = &[
    "GET /healthz HTTP/1.1\r\nHost: x\r\nA B: c\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "nonsense\r\n\r\n",
];

/// The number in the first line of the answer to what cannot be read.
pub(super) async fn refused(client: &Client, request: &str) -> String {
    let answer = ask(client, request).await;
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The first line of the answer, whether it is the last one, and its body.
pub(super) async fn ask(client: &Client, request: &str) -> String {
    let exchange = async {
        let (mut stream, _) = client.speaking(&["http/1.1"]).connect().await?;
        stream.write_all(request.as_bytes()).await.map_err(|error| error.to_string())?;
        let mut answer = Vec::new();
        // Who ends a connection in a hurry has still answered.
        let _ = stream.read_to_end(&mut answer).await;
        Ok::<_, String>(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = match tokio::time::timeout(PATIENCE, exchange).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return error,
        Err(_) => return "nothing, and no end".to_owned(),
    };
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let is_last = lines.any(|line| line.eq_ignore_ascii_case("connection: close"));
    format!("{first:?} {is_last} {body:?}")
}
