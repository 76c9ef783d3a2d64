//! Connections to servers with the protocol of PostgreSQL, with TLS if the server has it.
//!
//! What belongs here: the request for TLS, and the bytes of the connection. What does not:
//! signing in and statements (`weir-export`, `weir-store-postgres`).

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::{Egress, Fault, FaultClass, Trust};

/// The request for TLS: its length and its code.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// The timeout for the answer to that request.
const ANSWER: Duration = Duration::from_secs(30);

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PostgresFault {
    /// The server was not reached, or the handshake failed.
    #[error(transparent)]
    Connection(#[from] Fault),
    /// The server has no TLS, and is not in a private network.
    #[error("the server has no TLS and is not in a private network")]
    NoTls,
    /// Another kind of server answered.
    #[error("the server is no PostgreSQL server")]
    OtherServer,
}

/// A connection that limits the bytes that are read.
pub struct PostgresStream {
    stream: Stream,
    left: usize,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Egress {
    /// Connects to a server with the protocol of PostgreSQL, with TLS. A server without TLS
    /// is accepted only in a private network. `most`: upper bound of the bytes that the
    /// server may send.
    ///
    /// # Errors
    /// [`PostgresFault`] with the reason.
    pub async fn dial_postgres(
        &self,
        host: &str,
        port: u16,
        trust: Trust,
        most: usize,
    ) -> Result<PostgresStream, PostgresFault> {
        let stream = self.dial(host, port).await?;
        self.negotiate_postgres(stream, host, trust, most).await
    }

    /// The same over an open connection to this host.
    ///
    /// # Errors
    /// [`PostgresFault`] with the reason.
    pub async fn negotiate_postgres(
        &self,
        mut stream: TcpStream,
        host: &str,
        trust: Trust,
        most: usize,
    ) -> Result<PostgresStream, PostgresFault> {
        let request = timeout(ANSWER, async {
            stream.write_all(&TLS_REQUEST).await?;
            stream.read_u8().await
        });
        let answer = request.await.map_err(|_| Fault::from(FaultClass::TimedOut))?;
        let stream = match answer.map_err(Fault::from)? {
            b'S' => Stream::Tls(Box::new(self.tls(stream, host, trust).await?)),
            b'N' => {
                let peer = stream.peer_addr().map_err(Fault::from)?;
                if !is_inner(peer.ip()) {
                    return Err(PostgresFault::NoTls);
                }
                Stream::Plain(stream)
            }
            _ => return Err(PostgresFault::OtherServer),
        };
        Ok(PostgresStream { stream, left: most })
    }
}

/// Whether an address is in a private network. Such an address is dialled only if the
/// operator allows it, so a connection without TLS is acceptable there.
fn is_inner(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

impl AsyncRead for PostgresStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        })?;
        let read = buffer.filled().len() - before;
        match self.left.checked_sub(read) {
            Some(left) => self.left = left,
            None => return Poll::Ready(Err(io::Error::other("the server says too much"))),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PostgresStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
