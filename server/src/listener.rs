//! The accept loop (SEC-16): the number of connections, and the time that a client has
//! for its first bytes and headers.
//!
//! What belongs here: connections. The loop exists because `axum::serve` installs no
//! timer, so its header timeout would never fire. What does not: what comes before HTTP
//! (`opening`), and requests, which are answered by the [`Dispatcher`].

mod opening;
mod proxy_protocol;

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{Request, Version};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

use crate::app::Stopping;
use crate::config::Config;
use crate::dispatcher::Dispatcher;
use crate::http::peer::{forget_forwarded, networks_of};
use crate::limits::{ConnectionLimits, NetworkPart, NetworkParts};
use crate::metrics::Metrics;

pub use opening::Transport;
use opening::{Client, Opened, open};

/// Time that an idle connection has after it was asked to end. Until then a request may
/// show that it was already on its way.
const LAST_WORD: Duration = Duration::from_secs(1);

/// The parts of the service that a listener needs. The store may not be open yet.
#[derive(Clone)]
pub struct Terms {
    /// Limits on connections.
    pub limits: ConnectionLimits,
    /// The effective settings.
    pub config: Arc<Config>,
    /// Metrics of the process.
    pub metrics: Metrics,
    /// Whether the service is stopping.
    pub stopping: Stopping,
}

/// What a request holds until its answer is sent completely, in the extensions of the
/// answer.
#[derive(Debug, Clone)]
pub struct HeldUntilSent(pub Arc<NetworkPart>);

/// Answers the requests of a listener.
pub trait RequestHandler: Clone + Send + Sync + 'static {
    /// Answers a request of the client or proxy at `peer`.
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response> + Send;
}

impl RequestHandler for Dispatcher {
    async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response {
        Self::answer(self, peer, request).await
    }
}

/// Serves connections until the application stops, then waits a limited time for requests
/// in flight.
pub async fn serve(
    tcp: TcpListener,
    terms: Terms,
    transport: Transport,
    dispatcher: impl RequestHandler,
) {
    let limits = terms.limits;
    let builder = Arc::new(protocols(&limits));
    let table = Arc::new(Table::new(terms.clone()));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = tcp.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = terms.stopping.begun() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        let entered = table.enter(peer.ip()).zip(table.begin(&transport));
        let Some((mut guard, permit)) = entered else {
            terms.metrics.connections_refused.inc();
            continue;
        };
        let (builder, table, dispatcher) =
            (Arc::clone(&builder), Arc::clone(&table), dispatcher.clone());
        let transport = transport.clone();
        connections.spawn(async move {
            // Answers are small; waiting to fill a packet only delays them.
            let _ = stream.set_nodelay(true);
            let opened = open(&table, &transport, &mut guard, stream, peer).await;
            drop(permit);
            let terms = &table.terms;
            match opened {
                Some(Opened::Plain(stream, client)) => {
                    connection(&builder, terms, dispatcher, stream, client).await;
                }
                Some(Opened::Encrypted(stream, client)) => {
                    connection(&builder, terms, dispatcher, stream, client).await;
                }
                None => {}
            }
            drop(guard);
        });
    }
    drop(tcp);
    let rest = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain, rest).await.is_err() {
        tracing::warn!("connections were still busy when the time to stop ran out");
    }
}

/// An error of a single client needs no wait. Without free file descriptors, waiting lets
/// other connections end.
async fn rest_after(error: &io::Error) {
    let gone = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
    );
    if !gone {
        tracing::error!(%error, "cannot accept connections");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn protocols(limits: &ConnectionLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Hyper's timeout would also end connections that wait for their next request.
        // `FirstByteTimeout` has its own.
        .header_read_timeout(None)
        .max_headers(limits.header_lines)
        .max_buf_size(limits.header_bytes)
        .half_close(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.idle)
        .keep_alive_timeout(limits.header_read);
    builder
}

async fn connection<S>(
    builder: &Builder<TokioExecutor>,
    terms: &Terms,
    dispatcher: impl RequestHandler,
    stream: S,
    client: Client,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let limits = &terms.limits;
    let activity = Arc::new(Activity::default());
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |mut request: Request<Incoming>| {
            if client.is_unnamed {
                forget_forwarded(request.headers_mut());
            }
            let (dispatcher, open, busy) =
                (dispatcher.clone(), Open::new(&activity), Busy::new(&activity));
            let is_http2 = request.version() == Version::HTTP_2;
            async move {
                let mut response = dispatcher.answer(client.address, request).await;
                drop(busy);
                let held = response.extensions_mut().remove::<HeldUntilSent>();
                if is_http2 {
                    open.waits(true);
                }
                let sending = response.map(|body| Sending {
                    body,
                    is_http2,
                    last_byte: None,
                    open,
                    _held: held,
                });
                Ok::<_, std::convert::Infallible>(sending)
            }
        }
    });
    let io = TokioIo::new(FirstByteTimeout::new(stream, Arc::clone(&activity), limits));
    let mut served = std::pin::pin!(builder.serve_connection(io, service));
    let mut stopping = std::pin::pin!(terms.stopping.begun());
    let mut is_stopping = false;
    let mut last_word = None;
    loop {
        let idle_at = activity.quiet_since() + limits.idle;
        let look = last_word.unwrap_or_else(|| idle_at.max(Instant::now() + limits.idle / 60));
        tokio::select! {
            outcome = served.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            // A connection that was asked to end finishes its requests.
            () = stopping.as_mut(), if !is_stopping => {
                is_stopping = true;
                served.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(look) => {
                if activity.is_unread(limits.idle) {
                    return;
                }
                let is_idle = activity.is_idle(limits.idle);
                match last_word {
                    // The connection is closed even if the client ignores the request to
                    // end: HTTP/2 waits for the client to agree.
                    Some(_) if is_idle => return,
                    None if is_idle => {
                        last_word = Some(Instant::now() + LAST_WORD);
                        served.as_mut().graceful_shutdown();
                    }
                    Some(_) | None => last_word = None,
                }
            }
        }
    }
}

/// Requests of one connection.
#[derive(Debug)]
struct Activity {
    /// Requests that are being answered.
    busy: AtomicUsize,
    begun: AtomicUsize,
    /// The number of the next answer.
    numbers: AtomicUsize,
    /// Requests whose answer is not sent completely.
    open: AtomicUsize,
    /// When a request began or ended last, or a part of an answer was sent.
    // Locked for single reads and writes only.
    last: Mutex<Instant>,
    /// The answers of HTTP/2 that wait until their reader takes a part, by number, and since
    /// when. HTTP/1 sends one answer at a time: its connection is idle if that is unread.
    // Locked for single map operations only.
    unread: Mutex<HashMap<usize, Instant>>,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            busy: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            numbers: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            unread: Mutex::default(),
        }
    }
}

impl Activity {
    fn last(&self) -> Instant {
        *self.last.lock()
    }

    /// Since when nothing has happened, or an answer is unread.
    fn quiet_since(&self) -> Instant {
        let unread = self.unread.lock().values().min().copied();
        unread.map_or(self.last(), |unread| unread.min(self.last()))
    }

    fn note(&self) {
        *self.last.lock() = Instant::now();
    }

    /// Whether the reader has taken nothing of one of the answers for this long. Other
    /// requests of the connection change nothing: an unread answer holds memory.
    fn is_unread(&self, idle: Duration) -> bool {
        self.unread.lock().values().any(|since| since.elapsed() >= idle)
    }

    /// Whether no request is processed, and nothing has happened for this long.
    fn is_idle(&self, idle: Duration) -> bool {
        self.busy.load(Ordering::Acquire) == 0 && self.last().elapsed() >= idle
    }
}

/// A request that is being answered; ends when dropped.
struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.busy.fetch_add(1, Ordering::AcqRel);
        activity.begun.fetch_add(1, Ordering::AcqRel);
        activity.note();
        Self(Arc::clone(activity))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
        self.0.note();
    }
}

/// A request whose answer is not sent completely; ends when dropped.
struct Open {
    activity: Arc<Activity>,
    number: usize,
}

impl Open {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.open.fetch_add(1, Ordering::AcqRel);
        let number = activity.numbers.fetch_add(1, Ordering::AcqRel);
        Self { activity: Arc::clone(activity), number }
    }

    /// Records whether the answer waits for its reader, and not the reader for the answer.
    fn waits(&self, for_reader: bool) {
        let mut unread = self.activity.unread.lock();
        if for_reader {
            unread.insert(self.number, Instant::now());
        } else {
            unread.remove(&self.number);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.waits(false);
        self.activity.open.fetch_sub(1, Ordering::AcqRel);
        self.activity.note();
    }
}

/// The body of an answer while it is sent.
///
/// Hyper gives a part of an HTTP/2 answer to its library as soon as the reader takes one
/// byte, which forgets the body after the last part and keeps all bytes in memory. So the
/// last byte of each part is a part of its own: there is room for it when all bytes before
/// it are sent, and until then the answer counts as open.
struct Sending {
    body: Body,
    is_http2: bool,
    last_byte: Option<Bytes>,
    open: Open,
    _held: Option<HeldUntilSent>,
}

impl Sending {
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(last_byte) = self.last_byte.take() {
            return Poll::Ready(Some(Ok(Frame::data(last_byte))));
        }
        let polled = hyper::body::Body::poll_frame(Pin::new(&mut self.body), cx);
        let Poll::Ready(Some(Ok(frame))) = polled else { return polled };
        let frame = match frame.into_data() {
            Ok(mut data) if self.is_http2 && data.len() > 1 => {
                self.last_byte = Some(data.split_off(data.len() - 1));
                Frame::data(data)
            }
            Ok(data) => Frame::data(data),
            Err(trailers) => trailers,
        };
        Poll::Ready(Some(Ok(frame)))
    }
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = self.next(cx);
        if self.is_http2 {
            self.open.waits(frame.is_ready());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.last_byte.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Open connections, in total and by network.
struct Table {
    terms: Terms,
    all: Arc<Semaphore>,
    /// Connections on which HTTP has not begun.
    openings: Arc<Semaphore>,
    networks: NetworkParts,
}

/// A connection's entry in the table, removed when dropped.
struct ConnectionGuard {
    metrics: Metrics,
    _one: OwnedSemaphorePermit,
    _of_networks: Option<NetworkPart>,
}

impl Table {
    fn new(terms: Terms) -> Self {
        let ConnectionLimits { total, openings, per_network, .. } = terms.limits;
        let of_networks = [1, 2, 4].map(|times| per_network.saturating_mul(times));
        let permits = |number: usize| Arc::new(Semaphore::new(number.min(Semaphore::MAX_PERMITS)));
        let (all, openings) = (permits(total), permits(openings));
        Self { all, openings, networks: NetworkParts::new(of_networks), terms }
    }

    /// A permit for what comes before HTTP, if there is one. The inner `None`: nothing
    /// comes before it.
    fn begin(&self, transport: &Transport) -> Option<Option<OwnedSemaphorePermit>> {
        if !transport.has_opening() {
            return Some(None);
        }
        Arc::clone(&self.openings).try_acquire_owned().ok().map(Some)
    }

    fn enter(&self, peer: IpAddr) -> Option<ConnectionGuard> {
        let one = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let of_networks = self.part_of(peer)?;
        let metrics = self.terms.metrics.clone();
        metrics.connections.inc();
        Some(ConnectionGuard { metrics, _one: one, _of_networks: of_networks })
    }

    /// Counts a connection for its client, when the proxy has named it. Returns whether the
    /// client may have one more.
    fn count(&self, guard: &mut ConnectionGuard, client: IpAddr) -> bool {
        let of_networks = self.part_of(client);
        let has_place = of_networks.is_some();
        guard._of_networks = of_networks.flatten();
        has_place
    }

    /// One connection in the parts of the networks of an address. The inner `None`: a proxy
    /// has the clients of many networks behind it.
    fn part_of(&self, address: IpAddr) -> Option<Option<NetworkPart>> {
        if self.terms.config.trusted_proxies.contain(address) {
            return Some(None);
        }
        let mut part = self.networks.of(networks_of(address));
        part.grow_to(1).ok()?;
        Some(Some(part))
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.metrics.connections.dec();
    }
}

/// The first bytes of an HTTP/2 client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that fails when a client takes too long to send its first bytes, or the
/// headers of an HTTP/1 request. Detecting the protocol reads bytes before any of hyper's
/// timers runs. Without this type, a client could open a connection, send a `P` and stay.
struct FirstByteTimeout<S> {
    stream: S,
    activity: Arc<Activity>,
    header_read: Duration,
    /// Until the protocol is known, or the headers of a request are complete.
    deadline: Option<Pin<Box<Sleep>>>,
    /// The reason for the deadline.
    waits_for: WaitsFor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    /// The protocol. This many bytes of the preface have arrived.
    Protocol(usize),
    /// The headers of an HTTP/1 request. This many requests had begun before it.
    Headers(usize),
    /// HTTP/2, which has its own limits.
    Nothing,
}

impl<S> FirstByteTimeout<S> {
    fn new(stream: S, activity: Arc<Activity>, limits: &ConnectionLimits) -> Self {
        Self {
            stream,
            activity,
            header_read: limits.header_read,
            deadline: Some(Box::pin(tokio::time::sleep(limits.first_bytes))),
            waits_for: WaitsFor::Protocol(0),
        }
    }

    /// Records arrived bytes.
    fn note(&mut self, bytes: &[u8]) {
        if let WaitsFor::Protocol(matched) = self.waits_for {
            // The protocol is known at the first byte that differs from the preface, or
            // when the preface is complete.
            let expected = PREFACE.iter().skip(matched);
            let same = bytes.iter().zip(expected).take_while(|(a, b)| a == b).count();
            if matched + same == PREFACE.len() {
                self.waits_for = WaitsFor::Nothing;
                self.deadline = None;
            } else if same < bytes.len() {
                self.waits_for = WaitsFor::Headers(0);
                self.deadline = Some(Box::pin(tokio::time::sleep(self.header_read)));
            } else {
                self.waits_for = WaitsFor::Protocol(matched + same);
            }
        } else if matches!(self.waits_for, WaitsFor::Headers(_))
            && self.deadline.is_none()
            && self.activity.busy.load(Ordering::Acquire) == 0
        {
            self.waits_for = WaitsFor::Headers(self.activity.begun.load(Ordering::Acquire));
            self.deadline = Some(Box::pin(tokio::time::sleep(self.header_read)));
        }
    }

    /// Records a sent part of an answer. Other frames of HTTP/2 do not count as activity.
    fn sent(&self, outcome: &Poll<io::Result<usize>>) {
        if outcome.is_ready() && self.activity.open.load(Ordering::Acquire) > 0 {
            self.activity.note();
        }
    }

    /// Checks whether the headers are complete: they are when their request has begun.
    fn look(&mut self) {
        if let WaitsFor::Headers(before) = self.waits_for
            && self.activity.begun.load(Ordering::Acquire) != before
        {
            self.deadline = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FirstByteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        self.look();
        let outcome = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Some(new) = buffer.filled().get(before..).filter(|new| !new.is_empty()) {
            self.note(new);
        }
        if outcome.is_pending()
            && let Some(deadline) = &mut self.deadline
            && deadline.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FirstByteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.sent(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.sent(&outcome);
        outcome
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
