//! The settings of TLS for outgoing connections: which certificates are accepted.
//!
//! What does not belong here: opening connections (`lib`), and which IP addresses are
//! allowed (`rules`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Which certificates a connection accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A certificate for the host name, from a certificate authority of the system.
    Roots,
    /// Any certificate: the connection is encrypted, but the server is not authenticated.
    /// For servers with a self-signed certificate, where the member has chosen it.
    AnyCertificate,
}

/// The settings for [`Trust::Roots`].
pub(crate) fn config_for_roots() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a certificate authority of the system cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    let builder = ClientConfig::builder_with_provider(crypto());
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The settings for [`Trust::AnyCertificate`].
pub(crate) fn config_for_any_certificate() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(crypto());
    let builder = builder.with_safe_default_protocol_versions()?;
    let verifier = Arc::new(AcceptAny(crypto()));
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(builder.with_no_client_auth())
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Accepts every certificate. The server still proves that it has the private key of the
/// certificate.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
