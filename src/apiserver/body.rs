//! Bodies of replies: slices of stored objects, or the stream of a watch.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::ApiServer;
use super::watcher::End;

/// Body of a reply. A request with a plain body counts as open until the body is dropped. Each line of a watch counts as
/// undelivered until the client has read it.
pub struct ReplyBody(Kind);

enum Kind {
    Plain { frames: VecDeque<Bytes>, _open: OpenRequest },
    Watch(WatchBody),
}

/// Guard that counts a request as open until it is dropped.
pub(super) struct OpenRequest(ApiServer);

impl OpenRequest {
    pub(super) fn new(server: &ApiServer) -> Self {
        server.with(|state| state.open += 1);
        Self(server.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.with(|state| state.open -= 1);
    }
}

struct WatchBody {
    server: ApiServer,
    id: u64,
    /// Unread slices of the line being read.
    line: VecDeque<Bytes>,
    done: bool,
}

impl ReplyBody {
    pub(super) fn plain(frames: VecDeque<Bytes>, open: OpenRequest) -> Self {
        Self(Kind::Plain { frames, _open: open })
    }

    pub(super) fn watch(server: ApiServer, id: u64) -> Self {
        Self(Kind::Watch(WatchBody { server, id, line: VecDeque::new(), done: false }))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Kind::Plain { frames, .. } => Poll::Ready(frames.pop_front().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Watch(watch) => watch.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Plain { frames, .. } => frames.is_empty(),
            Kind::Watch(watch) => watch.done,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Plain { frames, .. } => SizeHint::with_exact(frames.iter().map(|frame| frame.len() as u64).sum()),
            Kind::Watch(_) => SizeHint::default(),
        }
    }
}

impl WatchBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if self.line.is_empty() {
            let id = self.id;
            let next = self.server.with(|state| {
                if let Some(item) = state.next_item(id) {
                    return Poll::Ready(Ok(item));
                }
                let Some(watcher) = state.watchers.get_mut(&id) else { return Poll::Ready(Err(End::Broken)) };
                if let Some(end) = watcher.end {
                    return Poll::Ready(Err(end));
                }
                watcher.waker = Some(cx.waker().clone());
                Poll::Pending
            });
            match next {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(item)) => self.line.extend(item.frames().into_iter().filter(|frame| !frame.is_empty())),
                Poll::Ready(Err(end)) => return self.end(end),
            }
        }
        let frame = self.line.pop_front().unwrap_or_default();
        if self.line.is_empty() {
            self.server.with(super::store::State::delivered);
        }
        Poll::Ready(Some(Ok(Frame::data(frame))))
    }

    fn end(&mut self, end: End) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.done = true;
        Poll::Ready(match end {
            End::Clean => None,
            End::Broken => Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the watch was dropped"))),
        })
    }
}

impl Drop for WatchBody {
    fn drop(&mut self) {
        let (id, in_line) = (self.id, !self.line.is_empty());
        self.server.with(|state| {
            if in_line {
                state.delivered();
            }
            state.close_watch(id);
        });
    }
}
