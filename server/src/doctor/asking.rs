//! Requests to a server that runs on this machine.
//!
//! What belongs here: how a connection to it begins, and the bounds of a request. What does
//! not: what is requested, and what the report says about the answer (`doctor`).

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use weir_egress::{Egress, Rules, Trust};

use crate::config::Config;

const REQUEST_TIME: Duration = Duration::from_secs(5);
/// Largest answer that is read, bytes.
const ANSWER: u64 = 1 << 20;
/// A header of the PROXY protocol that names no client.
const PROXY_HEADER: &[u8] = b"PROXY UNKNOWN\r\n";
/// The name of the server in a handshake. Its certificate is not checked.
const HOST: &str = "localhost";

/// Sends a request to the address of `listen`. Returns the status and the body, or what
/// happened instead.
pub(super) async fn get(config: &Config, path: &str) -> Result<(u16, String), String> {
    in_time(&config.listen, async {
        let mut stream = TcpStream::connect(&config.listen).await?;
        if config.proxy_protocol && config.trusted_proxies.contain(stream.local_addr()?.ip()) {
            stream.write_all(PROXY_HEADER).await?;
        }
        if !config.serves_tls() {
            return exchange(stream, path).await;
        }
        let egress = Egress::new(Rules::default()).map_err(io::Error::other)?;
        let stream =
            egress.tls(stream, HOST, Trust::AnyCertificate).await.map_err(io::Error::other)?;
        exchange(stream, path).await
    })
    .await
}

/// The same for an address that speaks plain http, such as the one of metrics.
pub(super) async fn get_plain(address: &str, path: &str) -> Result<(u16, String), String> {
    in_time(address, async { exchange(TcpStream::connect(address).await?, path).await }).await
}

async fn in_time(
    address: &str,
    asking: impl Future<Output = io::Result<String>>,
) -> Result<(u16, String), String> {
    let answer = match tokio::time::timeout(REQUEST_TIME, asking).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => return Err(format!("no answer at {address}: {error}")),
        Err(_elapsed) => return Err(format!("no answer at {address} in time")),
    };
    let parts = answer.split_once("\r\n\r\n").and_then(|(head, body)| {
        let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        Some((status, body.to_owned()))
    });
    parts.ok_or_else(|| format!("the answer at {address} is not HTTP"))
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
) -> io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    match stream.take(ANSWER).read_to_end(&mut answer).await {
        // A connection may end without the notice of TLS.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        read => _ = read?,
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
