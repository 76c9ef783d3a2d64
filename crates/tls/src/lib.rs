//! TLS of the server: certificates, handshakes, and certificates by ACME.
//!
//! What belongs here: which certificate and protocol a client gets, reading key pairs, and
//! obtaining certificates. What does not: sockets, limits and times of connections, when
//! files are read again or a certificate is renewed, settings and metrics (`weir-server`),
//! and TLS to other servers (`weir-egress`, `weir-mail`).
//!
//! Invariant: a new certificate changes the next handshake and no open connection.
//! Invariant: a private key is shown in no error and no log line.

pub mod acme;
mod challenges;
mod pair;

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{Acceptor, ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::LazyConfigAcceptor;

pub use challenges::Challenges;
pub use pair::{Pair, PairError};
pub use tokio_rustls::server::TlsStream;

/// The protocols that clients can choose, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// The protocol in which an ACME server checks a name.
const ACME_PROTOCOL: &[u8] = b"acme-tls/1";

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up")]
pub struct SetUpError(#[from] rustls::Error);

/// The certificate that clients get, and the handshakes with them. Cheap to clone: clones
/// have the same certificate.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    provider: Arc<CryptoProvider>,
    served: Arc<Served>,
    config: Arc<ServerConfig>,
    challenges: Challenges,
}

/// How a connection began.
#[derive(Debug)]
pub enum Handshake<S> {
    /// The connection is encrypted.
    Done(Box<TlsStream<S>>),
    /// An ACME server has checked a name. The connection has ended.
    Checked,
    /// The client closed the connection before it sent a request.
    Left,
}

impl Tls {
    /// TLS without a certificate: every handshake fails until [`Tls::install`].
    ///
    /// # Errors
    /// [`SetUpError`] if the cryptography of this program supports no version of TLS.
    pub fn new() -> Result<Self, SetUpError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let served = Arc::new(Served(ArcSwapOption::empty()));
        let certificates: Arc<dyn ResolvesServerCert> = served.clone();
        let mut config = config(&provider, certificates)?;
        config.alpn_protocols = Vec::from(PROTOCOLS.map(<[u8]>::to_vec));
        let (config, challenges) = (Arc::new(config), Challenges::default());
        Ok(Self(Arc::new(Shared { provider, served, config, challenges })))
    }

    /// Serves this pair from the next handshake on.
    pub fn install(&self, pair: Pair) {
        self.0.served.0.store(Some(Arc::new(pair)));
    }

    /// The pair that is served.
    pub fn pair(&self) -> Option<Arc<Pair>> {
        self.0.served.0.load_full()
    }

    /// The open challenges of an ACME order.
    pub fn challenges(&self) -> &Challenges {
        &self.0.challenges
    }

    pub(crate) fn provider(&self) -> &Arc<CryptoProvider> {
        &self.0.provider
    }

    /// Performs the handshake with a client. It has no limit of time: the caller must set
    /// one. Dropping the future closes the connection.
    ///
    /// # Errors
    /// The error of the connection, or the reason why the handshake failed. The client has
    /// been notified of the latter.
    pub async fn accept<S>(&self, stream: S) -> io::Result<Handshake<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let begun = match LazyConfigAcceptor::new(Acceptor::default(), stream).await {
            Ok(begun) => begun,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Handshake::Left);
            }
            Err(error) => return Err(error),
        };
        let challenge = self.challenge(&begun.client_hello());
        let Some(key) = challenge else {
            let stream = begun.into_stream(Arc::clone(&self.0.config)).await?;
            return Ok(Handshake::Done(Box::new(stream)));
        };
        let mut config =
            config(&self.0.provider, Arc::new(Fixed(key))).map_err(io::Error::other)?;
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        let mut stream = begun.into_stream(Arc::new(config)).await?;
        // The check is over when the server has seen the certificate, and it may leave then.
        let _ = stream.shutdown().await;
        Ok(Handshake::Checked)
    }

    /// The certificate that answers the check of an ACME server, if this is one.
    fn challenge(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut protocols = hello.alpn()?;
        let is_check = protocols.next() == Some(ACME_PROTOCOL) && protocols.next().is_none();
        if !is_check {
            return None;
        }
        self.0.challenges.certificate(hello.server_name()?)
    }
}

fn config(
    provider: &Arc<CryptoProvider>,
    certificates: Arc<dyn ResolvesServerCert>,
) -> Result<ServerConfig, SetUpError> {
    let builder = ServerConfig::builder_with_provider(Arc::clone(provider));
    let builder = builder.with_safe_default_protocol_versions()?.with_no_client_auth();
    Ok(builder.with_cert_resolver(certificates))
}

/// The pair of the next handshake.
#[derive(Debug)]
struct Served(ArcSwapOption<Pair>);

impl ResolvesServerCert for Served {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full().map(|pair| Arc::clone(pair.key()))
    }
}

/// The same certificate for all.
#[derive(Debug)]
struct Fixed(Arc<CertifiedKey>);

impl ResolvesServerCert for Fixed {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests;
