//! The accept loop (SECURITY-NOTES 7): how many connections there may be, and
//! how long a client may take to say what it wants.
//!
//! What belongs here: connections. Own loop, because `axum::serve` installs no
//! timer and the header timeout would never fire. What does not: requests,
//! which go to the [`Front`].

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

use crate::app::App;
use crate::front::Front;
use crate::limits::ConnectionLimits;

/// What answers the requests of a listener.
pub trait Answers: Clone + Send + Sync + 'static {
    /// Answers a request of the client or proxy at `peer`.
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response> + Send;
}

impl Answers for Front {
    async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response {
        Self::answer(self, peer, request).await
    }
}

/// Serves connections until the application stops, then waits for requests in
/// flight, but not for ever.
pub async fn serve(tcp: TcpListener, app: App, front: impl Answers) {
    let limits = app.limits.connections;
    let builder = Arc::new(protocols(&limits));
    let table = Arc::new(Table::new(app.clone()));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = tcp.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = app.stopping.begun() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                rest_after(&error).await;
                continue;
            }
        };
        let Some(place) = Table::enter(&table, peer.ip()) else {
            app.metrics.connections_refused.inc();
            continue;
        };
        let (builder, app, front) = (Arc::clone(&builder), app.clone(), front.clone());
        connections.spawn(async move {
            connection(&builder, &app, front, stream, peer).await;
            drop(place);
        });
    }
    drop(tcp);
    let rest = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.drain, rest).await.is_err() {
        tracing::warn!("connections were still busy when the time to stop ran out");
    }
}

/// A client that gave up is nothing; running out of descriptors is, and passes
/// only if somebody closes one.
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
        // Hyper's would also end connections that wait for their next request;
        // the stream has its own.
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

async fn connection(
    builder: &Builder<TokioExecutor>,
    app: &App,
    front: impl Answers,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let limits = &app.limits.connections;
    // Answers are small; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let activity = Arc::new(Activity::default());
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request| {
            let (front, busy) = (front.clone(), Busy::new(&activity));
            async move {
                let response = front.answer(peer, request).await;
                drop(busy);
                Ok::<_, std::convert::Infallible>(response)
            }
        }
    });
    let io = TokioIo::new(Patience::new(stream, Arc::clone(&activity), limits));
    let mut served = std::pin::pin!(builder.serve_connection(io, service));
    let mut stopping = std::pin::pin!(app.stopping.begun());
    let mut told = false;
    let mut seen = 0;
    let mut look = tokio::time::interval_at(Instant::now() + limits.idle, limits.idle);
    loop {
        let idle = tokio::select! {
            outcome = served.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(%error, "connection ended");
                }
                return;
            }
            () = stopping.as_mut(), if !told => false,
            _ = look.tick(), if !told => true,
        };
        // Idle: no request now, and none since the last look. A connection that
        // is told to end finishes what it has begun.
        let begun = activity.begun.load(Ordering::Acquire);
        if !idle || (activity.busy.load(Ordering::Acquire) == 0 && begun == seen) {
            told = true;
            served.as_mut().graceful_shutdown();
        }
        seen = begun;
    }
}

/// Requests of one connection.
#[derive(Debug, Default)]
struct Activity {
    busy: AtomicUsize,
    begun: AtomicUsize,
}

/// A request that is being answered; ends when dropped.
struct Busy(Arc<Activity>);

impl Busy {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.busy.fetch_add(1, Ordering::AcqRel);
        activity.begun.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(activity))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Open connections, in all and by network.
struct Table {
    app: App,
    // Held for single map operations only.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    total: usize,
    networks: HashMap<IpAddr, usize>,
}

/// A connection's entry in the table; leaves it when dropped.
struct Place {
    table: Arc<Table>,
    network: Option<IpAddr>,
}

impl Table {
    fn new(app: App) -> Self {
        Self { app, open: Mutex::default() }
    }

    fn enter(table: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let limits = &table.app.limits.connections;
        // A proxy brings the clients of many networks.
        let network = (!table.app.config.trusted_proxies.contain(peer)).then(|| network_of(peer));
        let mut open = table.open.lock();
        if open.total >= limits.total {
            return None;
        }
        if let Some(network) = network {
            let count = open.networks.entry(network).or_default();
            if *count >= limits.per_network {
                return None;
            }
            *count += 1;
        }
        open.total += 1;
        table.app.metrics.connections.inc();
        Some(Place { table: Arc::clone(table), network })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.table.open.lock();
        open.total -= 1;
        if let Some(network) = self.network
            && let Some(count) = open.networks.get_mut(&network)
        {
            *count -= 1;
            if *count == 0 {
                open.networks.remove(&network);
            }
        }
        self.table.app.metrics.connections.dec();
    }
}

/// One IPv4 address, or the /64 that one IPv6 subscriber has at least.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !(u128::MAX >> 64)))
        }
    }
}

/// What an HTTP/2 client sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream that fails when a client takes too long to say what it wants: with
/// its first bytes, and with the headers of every HTTP/1 request. Telling the
/// protocols apart reads bytes before any of hyper's timers runs: without this,
/// a client could open a connection, send a `P` and stay.
struct Patience {
    stream: TcpStream,
    activity: Arc<Activity>,
    header_read: Duration,
    /// Until the protocol is known, or the headers of a request are complete.
    deadline: Option<Pin<Box<Sleep>>>,
    /// What the deadline is for.
    waits_for: WaitsFor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitsFor {
    /// The protocol; so many bytes of the preface came.
    Protocol(usize),
    /// The headers of a request of HTTP/1; so many requests had begun before.
    Headers(usize),
    /// HTTP/2, which has limits of its own.
    Nothing,
}

impl Patience {
    fn new(stream: TcpStream, activity: Arc<Activity>, limits: &ConnectionLimits) -> Self {
        Self {
            stream,
            activity,
            header_read: limits.header_read,
            deadline: Some(Box::pin(tokio::time::sleep(limits.first_bytes))),
            waits_for: WaitsFor::Protocol(0),
        }
    }

    /// Bytes came.
    fn note(&mut self, bytes: &[u8]) {
        if let WaitsFor::Protocol(matched) = self.waits_for {
            // Known at the first byte that is not the preface's, or when the
            // preface is complete.
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

    /// The headers are complete when their request has begun.
    fn look(&mut self) {
        if let WaitsFor::Headers(before) = self.waits_for
            && self.activity.begun.load(Ordering::Acquire) != before
        {
            self.deadline = None;
        }
    }
}

impl AsyncRead for Patience {
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

impl AsyncWrite for Patience {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
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

#[cfg(test)]
mod tests {

    use super::network_of;

    #[test]
    fn networks() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(
                network_of(address.parse().unwrap()),
                network.parse::<std::net::IpAddr>().unwrap()
            );
        }
    }
}
