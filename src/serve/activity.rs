//! Activity of a connection, and the deadline that follows from it.
//!
//! An idle client, a slow sender of headers and a client that does not read its response each occupy a connection, so each of
//! them has a time limit. The limits for headers and for idle clients are upstream's.
//! Follows `apiserver/pkg/server/secure_serving.go#Serve @v1.36.3` and Go's `net/http.Server`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

use crate::clock::{Clock, Mono};

/// Time limit of a request's headers, and of a handshake.
pub(super) const HEADERS: Duration = Duration::from_secs(32);
/// Time limit of a connection without requests, and of a client that does not read its response.
pub(super) const IDLE: Duration = Duration::from_secs(90);
/// Time limit of a graceful connection shutdown.
const ENDING: Duration = Duration::from_secs(5);
/// Time since the last response after which a connection without a new request is closed, even if the client still reads
/// the response or sends pings.
const TAKING: Duration = Duration::from_mins(10);

/// Maximum bytes of headers that a connection may send without a permit. Normal clients send less.
const SMALL_HEADERS: usize = 32 * 1024;
/// Maximum bytes that are still read from a client after the write side is shut down.
const LEFT: usize = 1024 * 1024;
/// Number of connections whose headers may exceed [`SMALL_HEADERS`] at the same time. Such headers are buffered until they are
/// complete. Other connections with long headers wait.
const LARGE_HEADERS: usize = 1;

/// Activity of a connection. Cheap to clone. The lock guards a few numbers.
#[derive(Clone)]
pub(super) struct Activity {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    began: Mono,
    /// Whether requests are sequential (HTTP/1.1), so that bytes between two requests are the headers of the next.
    one_at_a_time: bool,
    /// Number of requests being answered.
    answering: usize,
    /// When the headers that are being read began.
    reading: Option<Mono>,
    /// Bytes read since the last request was complete.
    read: usize,
    /// Permit to send headers above [`SMALL_HEADERS`].
    header_permits: Option<OwnedSemaphorePermit>,
    /// When bytes were last written or a request was last answered.
    last: Mono,
    /// When the last request was answered.
    answered: Option<Mono>,
    /// Whether the connection ends after the responses in progress.
    last_answer: bool,
    /// When the connection began to end.
    ending: Option<Mono>,
}

/// Guard that counts a request as being served until it is dropped.
pub(super) struct RequestGuard(Activity);

impl Activity {
    /// Creates the state of a new connection.
    pub(super) fn new(clock: &Clock, one_at_a_time: bool) -> Self {
        let now = clock.mono();
        let state = State {
            began: now,
            one_at_a_time,
            answering: 0,
            reading: Some(now),
            read: 0,
            header_permits: None,
            last: now,
            answered: None,
            last_answer: false,
            ending: None,
        };
        Self { clock: clock.clone(), state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a request was read and is being answered.
    pub(super) fn answer(&self) -> RequestGuard {
        let mut state = self.state();
        state.answering += 1;
        state.reading = None;
        state.read = 0;
        state.header_permits = None;
        RequestGuard(self.clone())
    }

    /// Ends the connection after the requests in progress.
    pub(super) fn end(&self) {
        let now = self.clock.mono();
        self.state().ending.get_or_insert(now);
    }

    /// Ends the connection only after the response in progress was sent. A client that receives the shutdown notice before
    /// its response may assume that its request was rejected.
    pub(super) fn end_after_this(&self) {
        self.state().last_answer = true;
    }

    /// Whether the connection is ending.
    pub(super) fn is_ending(&self) -> bool {
        self.state().ending.is_some()
    }

    /// Returns the time at which the connection is closed unless its activity changes.
    pub(super) fn deadline(&self) -> Mono {
        let state = self.state();
        match (state.answering, state.ending, state.reading) {
            (1.., _, _) => Mono::MAX,
            (_, Some(since), _) => since + ENDING,
            (_, _, Some(since)) => since + HEADERS,
            // Replies to pings update `last`, so the time since the last answered request is limited, too.
            _ => state.answered.map_or(state.began + IDLE, |answered| (state.last + IDLE).min(answered + TAKING)),
        }
    }

    fn read(&self, length: usize) {
        let now = self.clock.mono();
        let mut state = self.state();
        if !state.one_at_a_time {
            // In HTTP/2, the first bytes show that the client speaks the protocol. After that only requests count.
            state.reading = None;
        } else if state.answering == 0 {
            state.reading.get_or_insert(now);
            state.read += length;
        }
    }

    /// Whether the connection reads long headers and has no permit for them.
    fn wants_room(&self) -> bool {
        let state = self.state();
        state.read > SMALL_HEADERS && state.header_permits.is_none()
    }

    fn wrote(&self) {
        let now = self.clock.mono();
        let mut state = self.state();
        state.last = now;
        if state.last_answer && state.answering == 0 {
            state.ending.get_or_insert(now);
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let now = self.0.clock.mono();
        let mut state = self.0.state();
        state.answering -= 1;
        state.last = now;
        state.answered = Some(now);
    }
}

/// Permits to read long headers, shared by all connections. For HTTP/2 the crate `h2` limits the size of headers.
#[derive(Clone)]
pub(super) struct HeaderPermits(Arc<Semaphore>);

impl HeaderPermits {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_HEADERS)))
    }
}

/// A stream whose reads and writes are recorded in an [`Activity`].
pub(super) struct TrackedStream<T> {
    inner: T,
    activity: Activity,
    header_permits: PollSemaphore,
    /// Whether the write side is shut down.
    is_shut: bool,
    /// Bytes that may still be read after the shutdown.
    left: usize,
}

impl<T> TrackedStream<T> {
    pub(super) fn new(inner: T, activity: Activity, header_permits: &HeaderPermits) -> Self {
        Self {
            inner,
            activity,
            header_permits: PollSemaphore::new(header_permits.0.clone()),
            is_shut: false,
            left: LEFT,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for TrackedStream<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.activity.wants_room() {
            let header_permits = ready!(self.header_permits.poll_acquire(cx));
            self.activity.state().header_permits = header_permits;
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let length = buffer.filled().len() - before;
        if length > 0 {
            self.activity.read(length);
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TrackedStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.wrote();
        }
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bytes);
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.activity.wrote();
        }
        written
    }

    /// Reports vectored writes as supported. Otherwise hyper would copy each response before sending it.
    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    /// Shuts down the write side, then reads until the client closes its side or the limits are reached. Closing a socket with
    /// unread bytes resets it, and the client would lose the rest of the response.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(Pin::new(&mut self.inner).poll_shutdown(cx))?;
            self.is_shut = true;
            self.activity.end();
            self.activity.state().header_permits = None;
        }
        let mut scratch = [0; 4096];
        while self.left > 0 {
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.inner).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            self.left = self.left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::SimClock;

    #[test]
    fn header_timeout_is_shorter_than_idle_timeout() {
        let clock = SimClock::new(Timestamp::UNIX_EPOCH);
        let activity = Activity::new(&clock.clock(), true);
        let at = Mono::from_secs;
        assert_eq!(activity.deadline(), at(32), "the first request's headers");
        clock.advance(Duration::from_secs(10));
        activity.read(1);
        assert_eq!(activity.deadline(), at(32), "drops do not count");
        let answering = activity.answer();
        assert_eq!(activity.deadline(), Mono::MAX);
        clock.advance(Duration::from_secs(50));
        drop(answering);
        assert_eq!(activity.deadline(), at(60 + 90), "waiting for the next");
        clock.advance(Duration::from_secs(40));
        activity.read(1);
        assert_eq!(activity.deadline(), at(100 + 32), "its headers");
        drop(activity.answer());
        clock.advance(Duration::from_secs(10));
        activity.wrote();
        assert_eq!(activity.deadline(), at(110 + 90), "who takes an answer may go on");
        activity.end();
        assert_eq!(activity.deadline(), at(110 + 5));
    }

    #[test]
    fn last_response_is_written_before_the_close() {
        let clock = SimClock::new(Timestamp::UNIX_EPOCH);
        let activity = Activity::new(&clock.clock(), false);
        let answering = activity.answer();
        activity.end_after_this();
        activity.wrote();
        assert!(!activity.is_ending());
        drop(answering);
        assert!(!activity.is_ending());
        activity.wrote();
        assert!(activity.is_ending());
    }

    #[test]
    fn pings_do_not_extend_the_idle_timeout() {
        let clock = SimClock::new(Timestamp::UNIX_EPOCH);
        let ping = |activity: &Activity, seconds: u64| {
            for _ in 0..seconds {
                clock.advance(Duration::from_secs(1));
                activity.read(17);
                activity.wrote();
            }
        };
        let stranger = Activity::new(&clock.clock(), false);
        ping(&stranger, 60);
        assert_eq!(stranger.deadline(), Mono::from_secs(90), "nothing was asked");
        drop(stranger.answer());
        stranger.end_after_this();
        ping(&stranger, 4);
        assert_eq!(stranger.deadline(), Mono::from_secs(61 + 5), "its last answer was sent");
        let known = Activity::new(&clock.clock(), false);
        drop(known.answer());
        ping(&known, 599);
        assert_eq!(known.deadline(), Mono::from_secs(64 + 600), "it asks for nothing any more");
    }

    #[test]
    fn http2_has_only_the_idle_timeout_between_requests() {
        let clock = SimClock::new(Timestamp::UNIX_EPOCH);
        let activity = Activity::new(&clock.clock(), false);
        assert_eq!(activity.deadline(), Mono::from_secs(32));
        activity.read(1);
        assert_eq!(activity.deadline(), Mono::from_secs(90));
        let both = [activity.answer(), activity.answer()];
        clock.advance(Duration::from_secs(1));
        let [one, other] = both;
        drop(one);
        activity.read(1);
        assert_eq!(activity.deadline(), Mono::MAX);
        drop(other);
        assert_eq!(activity.deadline(), Mono::from_secs(91));
    }

    #[tokio::test]
    async fn concurrent_large_headers_are_limited() {
        use futures::FutureExt as _;
        use tokio::io::AsyncReadExt as _;

        let clock = SimClock::new(Timestamp::UNIX_EPOCH).clock();
        let header_permits = HeaderPermits::new();
        let connection = |one_at_a_time| {
            let activity = Activity::new(&clock, one_at_a_time);
            (TrackedStream::new(tokio::io::repeat(1), activity.clone(), &header_permits), activity)
        };
        let mut buffer = vec![0; SMALL_HEADERS + 1];
        let mut connections: Vec<_> = (0..=LARGE_HEADERS).map(|_| connection(true)).collect();
        for (stream, _) in &mut connections {
            stream.read_exact(&mut buffer).now_or_never().expect("this much is nobody else's").expect("read");
        }
        let (last, others) = connections.split_last_mut().expect("there are some");
        for (stream, _) in &mut *others {
            stream.read_exact(&mut buffer).now_or_never().expect("there is room").expect("read");
        }
        assert!(last.0.read(&mut buffer).now_or_never().is_none(), "there is no more room");
        let answering = others[0].1.answer();
        assert!(last.0.read(&mut buffer).now_or_never().is_some(), "one has its headers whole");
        drop(answering);
        others[0].0.read_exact(&mut buffer).now_or_never().expect("its next headers are short so far").expect("read");
        assert!(others[0].0.read(&mut buffer).now_or_never().is_none(), "there is no more room");
        drop(connections);
        let (mut many, _) = connection(false);
        let _all = header_permits
            .0
            .clone()
            .try_acquire_many_owned(u32::try_from(LARGE_HEADERS).expect("few"))
            .expect("all are gone");
        for _ in 0..3 {
            many.read_exact(&mut buffer).now_or_never().expect("of streams others take care").expect("read");
        }
    }
}
