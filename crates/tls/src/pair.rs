//! A certificate with its chain, and the private key that belongs to it.
//!
//! What belongs here: reading and checking them. What does not: when they are read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};
use weir_model::Timestamp;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::time::Time;

use crate::Tls;

/// Most bytes of a file with certificates or a key.
const LARGEST: u64 = 1 << 20;

/// Why a certificate and a key cannot be used. The texts name files, and show nothing of
/// their content.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The file cannot be read.
    #[error("cannot read `{path}`")]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The file has more than 1 MiB.
    #[error("`{0}` is larger than 1 MiB")]
    TooLarge(PathBuf),
    /// The file has no certificate.
    #[error("`{0}` has no certificate in the PEM format")]
    NoCertificate(PathBuf),
    /// A certificate cannot be parsed.
    #[error("a certificate in `{0}` is damaged")]
    BadCertificate(PathBuf),
    /// The file has no key.
    #[error("`{0}` has no private key in the PEM format, or one that is encrypted")]
    NoKey(PathBuf),
    /// The kind of the key is not supported, or it is damaged.
    #[error("the private key in `{path}` cannot be used")]
    BadKey {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: TlsError,
    },
    /// The key belongs to another certificate.
    #[error("the private key in `{key}` does not belong to the certificate in `{certificate}`")]
    Mismatch {
        /// Path of the certificate.
        certificate: PathBuf,
        /// Path of the key.
        key: PathBuf,
    },
    /// The certificate is not valid any more.
    #[error("the certificate in `{path}` expired at {at}")]
    Expired {
        /// Path of the certificate.
        path: PathBuf,
        /// The end of its validity.
        at: Timestamp,
    },
    /// The certificate is not valid yet.
    #[error("the certificate in `{path}` is not valid before {at}; is the clock right?")]
    NotYet {
        /// Path of the certificate.
        path: PathBuf,
        /// The beginning of its validity.
        at: Timestamp,
    },
}

/// A certificate with its chain and its private key, which belong together.
#[derive(Debug, Clone)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    path: PathBuf,
    valid_from: Timestamp,
    expires_at: Timestamp,
}

impl Pair {
    /// Reads a pair from two PEM files. Blocks the thread.
    ///
    /// # Errors
    /// [`PairError`] with the reason. Whether the certificate is valid now is not checked.
    pub fn read(tls: &Tls, certificate: &Path, key: &Path) -> Result<Self, PairError> {
        let (chain, secret) = (bytes_of(certificate)?, bytes_of(key)?);
        Self::parse(tls.provider(), (certificate, &chain), (key, &secret))
    }

    /// A pair from the content of two PEM files, with their paths for errors.
    pub(crate) fn parse(
        provider: &CryptoProvider,
        (certificate, chain): (&Path, &[u8]),
        (key, secret): (&Path, &[u8]),
    ) -> Result<Self, PairError> {
        let damaged = || PairError::BadCertificate(certificate.to_owned());
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<_, _>>()
            .map_err(|_| damaged())?;
        let leaf = chain.first().ok_or_else(|| PairError::NoCertificate(certificate.to_owned()))?;
        let validity = Certificate::from_der(leaf).map_err(|_| damaged())?.tbs_certificate.validity;
        let secret =
            PrivateKeyDer::from_pem_slice(secret).map_err(|_| PairError::NoKey(key.to_owned()))?;
        let pair =
            CertifiedKey::from_der(chain, secret, provider).map_err(|error| match error {
                TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                    let (certificate, key) = (certificate.to_owned(), key.to_owned());
                    PairError::Mismatch { certificate, key }
                }
                TlsError::InvalidCertificate(_) => damaged(),
                source => PairError::BadKey { path: key.to_owned(), source },
            })?;
        Ok(Self {
            key: Arc::new(pair),
            path: certificate.to_owned(),
            valid_from: timestamp(validity.not_before),
            expires_at: timestamp(validity.not_after),
        })
    }

    /// Checks whether the certificate is valid at this time.
    ///
    /// # Errors
    /// [`PairError::Expired`], [`PairError::NotYet`].
    pub fn check(&self, now: Timestamp) -> Result<(), PairError> {
        if now >= self.expires_at {
            return Err(PairError::Expired { path: self.path.clone(), at: self.expires_at });
        }
        if now < self.valid_from {
            return Err(PairError::NotYet { path: self.path.clone(), at: self.valid_from });
        }
        Ok(())
    }

    /// The end of the certificate's validity.
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// Whether less than a third of the certificate's time is left.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let whole = self.expires_at.micros() - self.valid_from.micros();
        let left = self.expires_at.micros() - now.micros();
        left < whole / 3
    }

    /// Whether the certificate is for this host name or address.
    pub fn covers(&self, host: &str) -> bool {
        let (Ok(name), Some(leaf)) = (ServerName::try_from(host), self.key.cert.first()) else {
            return false;
        };
        let parsed = ParsedCertificate::try_from(leaf);
        parsed.is_ok_and(|parsed| verify_server_name(&parsed, &name).is_ok())
    }

    /// Whether both have the same certificates.
    pub fn is_same(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }

    pub(crate) fn key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }
}

/// The content of a file with certificates or a key.
pub(crate) fn bytes_of(path: &Path) -> Result<Vec<u8>, PairError> {
    let unreadable = |source| PairError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        return Err(PairError::TooLarge(path.to_owned()));
    }
    Ok(bytes)
}

fn timestamp(time: Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    Timestamp::EPOCH.plus_seconds(seconds)
}
