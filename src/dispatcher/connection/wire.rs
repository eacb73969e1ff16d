//! A connection whatever it goes through, which can be closed from outside.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The connections of the clients of a server. The lock is held for a moment.
#[derive(Debug, Default)]
pub(in super::super) struct Connections(Mutex<CancellationToken>);

impl Connections {
    /// Closes all that are open: who asks has changed, and they were opened as somebody else.
    /// Follows `client-go/util/connrotation/connrotation.go#ConnectionTracker.CloseAll @v1.36.3`.
    pub(in super::super) fn close(&self) {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).cancel();
    }

    /// Resolves once a connection that is opened now has to be closed.
    fn closed(&self) -> WaitForCancellationFutureOwned {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().cancelled_owned()
    }
}

/// What bytes go over.
trait Bytes: Read + Write + Send {}

impl<T: Read + Write + Send> Bytes for T {}

/// A connection.
pub(in super::super) struct Wire {
    bytes: Pin<Box<dyn Bytes>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Wire {
    pub(super) fn new(bytes: impl Read + Write + Send + 'static, connections: &Connections) -> Self {
        Self { bytes: Box::pin(bytes), closed: Box::pin(connections.closed()) }
    }
}

impl Read for Wire {
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

impl Write for Wire {
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

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
