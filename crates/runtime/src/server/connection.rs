//! One connection: TLS, HTTP/1.1 or HTTP/2, and the time that each part of it may take.

use std::{
    convert::Infallible,
    fmt::Display,
    future::{pending, poll_fn},
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{Router, body::Body};
use hyper::{
    Request, Response,
    body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint},
    server::conn::{http1, http2},
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    Limits,
    slots::{Activity, Slot, State, UnderWay},
};

/// How long a connection without a request is kept after it was asked to close.
const LINGER: Duration = Duration::from_secs(1);
/// The bytes of a head, for all fields together.
const HEAD_BYTES: u16 = 16 << 10;
/// How much is buffered of a connection or stream before it is read. It also bounds the bytes that do not yet count as
/// the memory of a body.
const WINDOW: u16 = u16::MAX;
/// The first bytes of an HTTP/2 client: the preface and one frame of settings.
const PREFACE_BYTES: u64 = 24 + 9;
/// How many streams a client may open and reset in a row.
const RESETS: usize = 32;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The client closed it, or broke the protocol.
    ByClient,
    /// The server stops.
    Stopped,
    /// There was no TLS session.
    HandshakeFailed,
    /// There was no TLS session in time.
    HandshakeSlow,
    /// A request began, and its head was not complete in time.
    HeadSlow,
    /// A client did not send its request, or did not read the answer, in time.
    RequestSlow,
    /// There was no request for a long time.
    Idle,
    /// It was idle, and its slot was needed.
    Displaced,
}

/// Serves a connection until it ends.
pub async fn run(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    slot: &Slot,
    limits: &Limits,
) -> Ending {
    let Some(acceptor) = acceptor else { return http1(stream, router, slot, limits).await };
    let stream = tokio::select! {
        // A connection that was accepted before the server was asked to stop is still served.
        () = displaced(slot) => return Ending::Displaced,
        accepted = timeout(limits.handshake, acceptor.accept(stream)) => match accepted {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                return Ending::HandshakeFailed;
            }
            Err(_) => return Ending::HandshakeSlow,
        },
    };
    // Both sides have agreed on the version. To detect it from the first bytes would be to wait for them.
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        http2(stream, router, slot, limits).await
    } else {
        http1(stream, router, slot, limits).await
    }
}

async fn displaced(slot: &Slot) {
    slot.leave().cancelled().await;
    if !slot.is_displaced() {
        pending::<()>().await;
    }
}

async fn http1(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    slot: &Slot,
    limits: &Limits,
) -> Ending {
    let mut http = http1::Builder::new();
    // The timers are those of [`deadline`]: hyper's cannot distinguish an idle connection from a slow head.
    http.header_read_timeout(None).max_buf_size(4 * usize::from(HEAD_BYTES));
    let io = TokioIo::new(Observed { stream, activity: slot.activity() });
    drive(http.serve_connection(io, service(router, slot.activity())), slot, limits, false).await
}

async fn http2(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    slot: &Slot,
    limits: &Limits,
) -> Ending {
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(HEAD_BYTES.into())
        .initial_stream_window_size(u32::from(WINDOW))
        .initial_connection_window_size(4 * u32::from(WINDOW))
        .max_send_buf_size(WINDOW.into())
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS);
    let io = TokioIo::new(Observed { stream, activity: slot.activity() });
    drive(http.serve_connection(io, service(router, slot.activity())), slot, limits, true).await
}

fn service(
    router: Router,
    activity: Activity,
) -> impl Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible, Future: Send + 'static> {
    let router = TowerToHyperService::new(router);
    service_fn(move |request: Request<Incoming>| {
        let under_way = activity.request();
        let answer = router.call(request);
        async move { answer.await.map(|answer| answer.map(|body| TrackedBody { body, _under_way: under_way })) }
    })
}

/// Polls a connection, and ends it when its time is over.
async fn drive<C>(connection: C, slot: &Slot, limits: &Limits, is_http2: bool) -> Ending
where
    C: GracefulConnection,
    C::Error: Display,
{
    let mut connection = pin!(connection);
    let mut leave = pin!(slot.leave().cancelled());
    let mut timer = pin!(sleep(limits.idle));
    let mut told: Option<Instant> = None;
    let told_ending = || if slot.is_displaced() { Ending::Displaced } else { Ending::Stopped };
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                if let Err(error) = result {
                    tracing::debug!(%error, "connection closed early");
                }
                return Poll::Ready(told.map_or(Ending::ByClient, |_| told_ending()));
            }
            if told.is_some() || leave.as_mut().poll(cx).is_pending() {
                break;
            }
            if slot.is_to_end_at_once() {
                return Poll::Ready(Ending::Displaced);
            }
            told = Some(Instant::now());
            connection.as_mut().graceful_shutdown();
        }
        let (deadline, ending) = deadline(&slot.state(), limits, is_http2, told, told_ending());
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(ending)
    })
    .await
}

/// When to close a connection in this state, and why.
fn deadline(state: &State, limits: &Limits, is_http2: bool, told: Option<Instant>, then: Ending) -> (Instant, Ending) {
    if let Some(oldest) = state.requests.values().next() {
        return (*oldest + limits.request, Ending::RequestSlow);
    }
    match state.head_since {
        // With HTTP/2 bytes arrive also without a request: settings, pings, windows.
        Some(since) if !is_http2 => return (since + limits.head, Ending::HeadSlow),
        _ if is_http2 && state.received < PREFACE_BYTES => return (state.idle_since + limits.head, Ending::HeadSlow),
        _ => {}
    }
    match told {
        Some(told) => (told.max(state.idle_since) + LINGER, then),
        None => (state.idle_since + limits.idle, Ending::Idle),
    }
}

/// A stream that records the activity on it.
struct Observed<S> {
    stream: S,
    activity: Activity,
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let count = buffer.filled().len() - before;
        if count > 0 {
            self.activity.received(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of a response. Until it is sent, the request is in progress.
struct TrackedBody {
    body: Body,
    _under_way: UnderWay,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_phase_of_a_connection_has_its_timeout() {
        let (limits, start) = (Limits::default(), Instant::now());
        let new = || State { idle_since: start, head_since: None, requests: BTreeMap::new(), begun: 0, received: 0 };
        let of = |state: &State, http2, told| {
            let (when, why) = deadline(state, &limits, http2, told, Ending::Stopped);
            (when - start, why)
        };
        // Like an API server's connection: silent, but for less than the time for which API servers keep it.
        assert_eq!(of(&new(), false, None), (limits.idle, Ending::Idle));
        assert!(limits.idle > Duration::from_secs(90));
        assert_eq!(of(&State { received: 33, ..new() }, true, None), (limits.idle, Ending::Idle));
        assert_eq!(of(&State { received: 16, ..new() }, true, None), (limits.head, Ending::HeadSlow));
        let begun = State { head_since: Some(start + Duration::from_secs(1)), received: 100, ..new() };
        assert_eq!(of(&begun, false, None), (Duration::from_secs(1) + limits.head, Ending::HeadSlow));
        assert_eq!(of(&begun, true, None), (limits.idle, Ending::Idle));
        let busy = State { requests: BTreeMap::from([(3, start), (4, start + limits.idle)]), begun: 5, ..new() };
        assert_eq!(of(&busy, true, Some(start)), (limits.request, Ending::RequestSlow));
        assert_eq!(of(&new(), false, Some(start + LINGER)), (2 * LINGER, Ending::Stopped));
    }
}
