//! Requests to a certificate authority.
//!
//! What belongs here: whom the connection trusts, and its bounds. The address is the
//! operator's, so it is not judged as those of members are (`weir-egress`).

use std::error::Error as StdError;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use reqwest::redirect::Policy;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::AcmeError;
use crate::PairError;
use crate::pair::bytes_of;

/// Time to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time for a request up to the end of its answer.
const REQUEST: Duration = Duration::from_secs(30);
/// Most bytes of an answer. The largest one is a chain of certificates.
const ANSWER: usize = 1 << 20;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub(super) struct Client(reqwest::Client);

impl Client {
    /// A client that trusts the authorities in this file, or else those of the system.
    pub(super) fn new(
        provider: &Arc<CryptoProvider>,
        root: Option<&Path>,
    ) -> Result<Self, AcmeError> {
        let roots = match root {
            Some(path) => of_file(path)?,
            None => of_system(),
        };
        let tls = ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = reqwest::Client::builder()
            .use_preconfigured_tls(tls)
            .https_only(true)
            .redirect(Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .build()?;
        Ok(Self(client))
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = reqwest::Request::try_from(Request::from_parts(parts, body))?;
        let mut received = self.0.execute(request).await?;
        let mut body = BytesMut::new();
        while let Some(chunk) = received.chunk().await? {
            if body.len() + chunk.len() > ANSWER {
                return Err("the answer is too large".into());
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::new(Full::new(body.freeze()));
        *response.status_mut() = received.status();
        *response.headers_mut() = received.headers().clone();
        Ok(BytesResponse::from(response))
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move { client.send(request).await.map_err(Error::Other) })
    }
}

fn of_file(path: &Path) -> Result<RootCertStore, AcmeError> {
    let text = bytes_of(path).map_err(AcmeError::Root)?;
    let damaged = || AcmeError::Root(PairError::BadCertificate(path.to_owned()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots.add(certificate.map_err(|_| damaged())?).map_err(|_| damaged())?;
    }
    if roots.is_empty() {
        return Err(AcmeError::Root(PairError::NoCertificate(path.to_owned())));
    }
    Ok(roots)
}

fn of_system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate authority of the system cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}
