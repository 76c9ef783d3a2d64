//! The connection to a mail server until it is protected. The library does the rest of
//! the session.
//!
//! TLS is set up here with the same crates as in the rest of the service, so that the
//! binary has one implementation of TLS.
//!
//! What belongs here: connecting, STARTTLS and TLS. What does not: the session that sends
//! a mail (`sender`).

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use lettre::transport::smtp::client::AsyncTokioStream;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::smtp_url::{Security, SmtpServer};

/// Upper bound in bytes of an answer that is read here.
const LONGEST: usize = 16 << 10;
/// The greeting that the library receives. It expects one at the beginning, and the
/// server sent its own before the change to TLS.
const GREETING: &[u8] = b"220 ready\r\n";

/// A connection that is ready for the session.
pub(crate) struct Line {
    greeting: &'static [u8],
    stream: Stream,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Opens a connection that is as protected as the settings require.
pub(crate) async fn open(
    server: &SmtpServer,
    hello: &str,
    tls: Arc<ClientConfig>,
) -> io::Result<Line> {
    let host = server.host.trim_start_matches('[').trim_end_matches(']');
    let mut tcp = TcpStream::connect((host, server.port)).await?;
    tcp.set_nodelay(true)?;
    let stream = match server.security {
        Security::Implicit => {
            return Ok(Line { greeting: b"", stream: protect(tcp, host, tls).await? });
        }
        Security::None => return Ok(Line { greeting: b"", stream: Stream::Plain(tcp) }),
        Security::Required | Security::Offered => {
            expect(&mut tcp, "220").await?;
            let offers = ask(&mut tcp, &format!("EHLO {hello}"), "250").await?;
            let is_offered = offers.lines().any(|line| {
                line.get(4..).is_some_and(|word| word.trim().eq_ignore_ascii_case("STARTTLS"))
            });
            if is_offered {
                ask(&mut tcp, "STARTTLS", "220").await?;
                protect(tcp, host, tls).await?
            } else if server.security == Security::Offered {
                Stream::Plain(tcp)
            } else {
                return Err(io::Error::other("the mail server does not offer STARTTLS"));
            }
        }
    };
    Ok(Line { greeting: GREETING, stream })
}

async fn protect(tcp: TcpStream, host: &str, tls: Arc<ClientConfig>) -> io::Result<Stream> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let stream = TlsConnector::from(tls).connect(name, tcp).await?;
    Ok(Stream::Tls(Box::new(stream)))
}

async fn ask(tcp: &mut TcpStream, command: &str, code: &str) -> io::Result<String> {
    tcp.write_all(format!("{command}\r\n").as_bytes()).await?;
    expect(tcp, code).await
}

/// Reads one answer and not a byte more: bytes that an attacker on the network appends
/// must not count as a part of the protected session.
async fn expect(tcp: &mut TcpStream, code: &str) -> io::Result<String> {
    let mut answer = String::new();
    let mut line = Vec::new();
    loop {
        let byte = tcp.read_u8().await?;
        line.push(byte);
        if answer.len() + line.len() > LONGEST {
            return Err(io::Error::other("the mail server answers without end"));
        }
        if byte != b'\n' {
            continue;
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        line.clear();
        answer.push_str(&text);
        if text.as_bytes().get(3) != Some(&b'-') {
            break;
        }
    }
    if answer.starts_with(code) {
        Ok(answer)
    } else {
        Err(io::Error::other(format!("the mail server said: {}", answer.trim())))
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let now = self.greeting.len().min(buffer.remaining());
        if now > 0 {
            let (first, rest) = self.greeting.split_at(now);
            buffer.put_slice(first);
            self.greeting = rest;
            return Poll::Ready(Ok(()));
        }
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Line {
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
        let closed = match &mut self.stream {
            Stream::Plain(stream) => ready!(Pin::new(stream).poll_shutdown(context)),
            Stream::Tls(stream) => ready!(Pin::new(stream).poll_shutdown(context)),
        };
        Poll::Ready(closed)
    }
}

impl AsyncTokioStream for Line {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        match &self.stream {
            Stream::Plain(stream) => stream.peer_addr(),
            Stream::Tls(stream) => stream.get_ref().0.peer_addr(),
        }
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line(..)")
    }
}
