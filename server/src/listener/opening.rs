//! What comes before HTTP on a connection: the header of a proxy, and the handshake of TLS.
//!
//! What belongs here: their order, and their time together. What does not: the handshake
//! itself (`weir-tls`), and requests (`listener`).

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use weir_tls::{Handshake, Tls, TlsStream};

use super::{ConnectionGuard, Table, proxy_protocol};

/// What the connections of a listener begin with.
#[derive(Debug, Clone, Default)]
pub struct Transport {
    /// Connections from trusted proxies begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Connections are encrypted.
    pub tls: Option<Tls>,
}

impl Transport {
    /// Whether something comes before HTTP.
    pub(super) fn has_opening(&self) -> bool {
        self.proxy_protocol || self.tls.is_some()
    }
}

/// The client of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    /// The header of a proxy has no address of a client. The address is the proxy's, and the
    /// bytes of the connection may be a client's.
    pub(super) is_unnamed: bool,
}

/// A connection on which HTTP begins.
pub(super) enum Opened {
    Plain(TcpStream, Client),
    Encrypted(Box<TlsStream<TcpStream>>, Client),
}

/// Opens a connection. `None`: it is not served.
pub(super) async fn open(
    table: &Table,
    transport: &Transport,
    guard: &mut ConnectionGuard,
    stream: TcpStream,
    peer: SocketAddr,
) -> Option<Opened> {
    if !transport.has_opening() {
        return Some(Opened::Plain(stream, Client { address: peer, is_unnamed: false }));
    }
    let terms = &table.terms;
    let opening = opened(table, transport, guard, stream, peer);
    tokio::select! {
        opened = tokio::time::timeout(terms.limits.opening, opening) => {
            opened.unwrap_or_else(|_elapsed| {
                count_failure(table, transport, &io::ErrorKind::TimedOut.into());
                None
            })
        }
        () = terms.stopping.begun() => None,
    }
}

async fn opened(
    table: &Table,
    transport: &Transport,
    guard: &mut ConnectionGuard,
    mut stream: TcpStream,
    peer: SocketAddr,
) -> Option<Opened> {
    let terms = &table.terms;
    let mut client = Client { address: peer, is_unnamed: false };
    // From others the same bytes are no header, because any client could send them.
    if transport.proxy_protocol && terms.config.trusted_proxies.contain(peer.ip()) {
        match proxy_protocol::client(&mut stream).await {
            Ok(Some(address)) => client.address = address,
            Ok(None) => client.is_unnamed = true,
            Err(error) => {
                terms.metrics.proxy_headers_refused.inc();
                tracing::debug!(%error, %peer, "a connection has no header of its proxy");
                return None;
            }
        }
        if !table.count(guard, client.address.ip()) {
            terms.metrics.connections_refused.inc();
            return None;
        }
    }
    let Some(tls) = &transport.tls else { return Some(Opened::Plain(stream, client)) };
    match tls.accept(stream).await {
        Ok(Handshake::Done(stream)) => Some(Opened::Encrypted(stream, client)),
        Ok(Handshake::Checked | Handshake::Left) => None,
        Err(error) => {
            count_failure(table, transport, &error);
            None
        }
    }
}

/// A client that takes too long before TLS begins counts as a failed handshake too.
fn count_failure(table: &Table, transport: &Transport, error: &io::Error) {
    let metrics = &table.terms.metrics;
    if transport.tls.is_some() {
        metrics.tls_handshakes_failed.inc();
    } else {
        metrics.proxy_headers_refused.inc();
    }
    tracing::debug!(%error, "a connection was not opened");
}
