//! Open connections that another component can close.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Open connections of all clients of one API server. The lock is held only for an assignment.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<CancellationToken>);

impl Connections {
    /// Closes all open connections, because their credentials have been replaced.
    /// Follows `client-go/util/connrotation/connrotation.go#ConnectionTracker.CloseAll @v1.36.3`.
    pub(super) fn close(&self) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).cancel();
    }

    /// Resolves when connections opened now must be closed.
    fn closed(&self) -> WaitForCancellationFutureOwned {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().cancelled_owned()
    }
}

/// A stream of bytes: TCP, or TLS to a proxy.
trait ByteStream: Read + Write + Send {}

impl<T: Read + Write + Send> ByteStream for T {}

/// A connection that [`Connections::close`] closes.
pub(super) struct TrackedStream {
    bytes: Pin<Box<dyn ByteStream>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl TrackedStream {
    pub(super) fn new(bytes: impl Read + Write + Send + 'static, connections: &Connections) -> Self {
        Self { bytes: Box::pin(bytes), closed: Box::pin(connections.closed()) }
    }
}

impl Read for TrackedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "use of closed network connection",
            )));
        }
        self.bytes.as_mut().poll_read(cx, buffer)
    }
}

impl Write for TrackedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.bytes.as_mut().poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes.as_mut().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.bytes.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.bytes.as_mut().poll_write_vectored(cx, buffers)
    }
}

impl Connection for TrackedStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
