//! Certificates from a certificate authority, by ACME (RFC 8555).
//!
//! What belongs here: the account, an order from its names to the certificate, and the
//! answers to the checks of the authority. What does not: when an order is made, and the
//! port on which checks over HTTP are answered (`weir-server`).
//!
//! Times and sizes of the answers of the authority have bounds, and so does a whole order.

mod cache;
mod client;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeHandle, ChallengeType,
    Error as AcmeLibraryError, Identifier, NewAccount, NewOrder, Order, OrderStatus, RetryPolicy,
};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use crate::{Pair, PairError, Tls};
use cache::Cache;
use client::Client;

/// Time for a whole order.
const ORDER: Duration = Duration::from_secs(5 * 60);
/// Time until the authority has checked all names, and again until it has signed.
const POLL: Duration = Duration::from_secs(2 * 60);
/// Time between two questions about an order, at first. It doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Bytes of the digest in a certificate that answers a check.
const DIGEST: usize = 32;
/// Most characters of a reason that an authority gives.
const REASON: usize = 500;

/// The files of the cache.
const ACCOUNT: &str = "account.json";
const CERTIFICATE: &str = "certificate.pem";

/// The error type of an authority that does not know the account any more.
const NO_ACCOUNT: &str = "urn:ietf:params:acme:error:accountDoesNotExist";

/// How the authority checks that a name leads to this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// By a request over plain HTTP to port 80 (`http-01`).
    Http,
    /// By a handshake at port 443 (`tls-alpn-01`).
    Tls,
}

impl Check {
    fn kind(self) -> ChallengeType {
        match self {
            Self::Http => ChallengeType::Http01,
            Self::Tls => ChallengeType::TlsAlpn01,
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http-01",
            Self::Tls => "tls-alpn-01",
        })
    }
}

/// What certificates are obtained for, and from which authority.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address of the directory of the authority.
    pub directory: String,
    /// Mail address for the authority; empty: none.
    pub contact: String,
    /// The host names of the certificate; not empty.
    pub domains: Vec<String>,
    /// File of the authorities that the directory's own certificate must be from, as PEM;
    /// `None`: those of the system.
    pub root: Option<PathBuf>,
    /// The directory for the account and the certificate with their keys.
    pub cache: PathBuf,
    /// How names are checked.
    pub check: Check,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The file of the root certificates cannot be used.
    #[error(transparent)]
    Root(PairError),
    /// The HTTP client cannot be set up.
    #[error("connections to the certificate authority cannot be set up")]
    Client(#[from] reqwest::Error),
    /// The cryptography of TLS cannot be used.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// The authority could not be reached, or refused a request.
    #[error("a request to the certificate authority failed")]
    Request(#[from] AcmeLibraryError),
    /// The authority does not check names in the way that was chosen.
    #[error("the certificate authority does not offer the check {check} for {name}")]
    NoCheck {
        /// The check.
        check: Check,
        /// The host name.
        name: String,
    },
    /// The authority has refused a name.
    #[error("the certificate authority has refused the names: {0}")]
    Refused(String),
    /// The order took too long.
    #[error("the certificate authority did not issue a certificate in time")]
    TimedOut,
    /// A key or a request for a certificate cannot be made.
    #[error("a key or a request for a certificate cannot be made")]
    Key(#[from] rcgen::Error),
    /// The certificate of the authority cannot be used.
    #[error("the certificate of the authority cannot be used")]
    Certificate(#[source] PairError),
    /// The cache cannot be read or written.
    #[error("the directory of the certificate cannot be used")]
    Cache(#[from] io::Error),
    /// The account cannot be written as text.
    #[error("the account cannot be stored")]
    Account(#[from] serde_json::Error),
}

/// Obtains certificates.
pub struct Acme {
    settings: Settings,
    tls: Tls,
    client: Client,
    cache: Cache,
}

/// An account of an authority, as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredAccount {
    directory: String,
    contact: String,
    credentials: AccountCredentials,
}

impl Acme {
    /// Sets up the connections to the authority. `tls` answers the checks over TLS, and has
    /// the answers for those over HTTP. Reads the file of root certificates.
    ///
    /// # Errors
    /// [`AcmeError`] if that file or TLS cannot be used.
    pub fn new(settings: Settings, tls: Tls) -> Result<Self, AcmeError> {
        let client = Client::new(tls.provider(), settings.root.as_deref())?;
        let cache = Cache::new(settings.cache.clone());
        Ok(Self { settings, tls, client, cache })
    }

    /// The last certificate, if it was stored and can be read. It may have expired, and be
    /// for other names.
    pub async fn cached(&self) -> Option<Pair> {
        let text = self.cache.read(CERTIFICATE).await?;
        let path = self.cache.path(CERTIFICATE);
        let pair = Pair::parse(self.tls.provider(), (&path, &text), (&path, &text));
        pair.inspect_err(|error| tracing::warn!(%error, "the stored certificate is not used")).ok()
    }

    /// Whether a certificate is for all names.
    pub fn covers(&self, pair: &Pair) -> bool {
        self.settings.domains.iter().all(|name| pair.covers(name))
    }

    /// Obtains a certificate, and stores it if that is possible.
    ///
    /// # Errors
    /// [`AcmeError`] with the reason.
    pub async fn obtain(&self) -> Result<Pair, AcmeError> {
        timeout(ORDER, self.order()).await.unwrap_or(Err(AcmeError::TimedOut))
    }

    async fn order(&self) -> Result<Pair, AcmeError> {
        let account = self.account().await?;
        let names: Vec<Identifier> =
            self.settings.domains.iter().cloned().map(Identifier::Dns).collect();
        let mut order = match account.new_order(&NewOrder::new(&names)).await {
            Ok(order) => order,
            Err(error) => {
                if is_unknown_account(&error) {
                    self.cache.remove(ACCOUNT).await?;
                }
                return Err(error.into());
            }
        };
        let held = self.tls.challenges().hold();
        self.answer_checks(&mut order).await?;
        let retries = RetryPolicy::new().initial_delay(FIRST_PAUSE).backoff(2.0).timeout(POLL);
        if order.poll_ready(&retries).await? != OrderStatus::Ready {
            return Err(AcmeError::Refused(refusal(&mut order).await));
        }
        drop(held);
        let key = KeyPair::generate()?;
        let mut request = CertificateParams::new(self.settings.domains.clone())?;
        request.distinguished_name = DistinguishedName::new();
        let request = request.serialize_request(&key)?;
        order.finalize_csr(request.der()).await?;
        let chain = order.poll_certificate(&retries).await?;
        self.keep(&chain, &key.serialize_pem()).await
    }

    /// The stored account if it is of this authority and contact, else a new one.
    async fn account(&self) -> Result<Account, AcmeError> {
        let Settings { directory, contact, .. } = &self.settings;
        let builder = Account::builder_with_http(Box::new(self.client.clone()));
        let stored = self.cache.read(ACCOUNT).await;
        let stored = stored.and_then(|text| serde_json::from_slice::<StoredAccount>(&text).ok());
        if let Some(stored) = stored
            && (&stored.directory, &stored.contact) == (directory, contact)
        {
            return Ok(builder.from_credentials(stored.credentials).await?);
        }
        let address = format!("mailto:{contact}");
        let addresses = [address.as_str()];
        let contacts: &[&str] = if contact.is_empty() { &[] } else { &addresses };
        let wanted = NewAccount {
            contact: contacts,
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, credentials) = builder.create(&wanted, directory.clone(), None).await?;
        let (directory, contact) = (directory.clone(), contact.clone());
        let stored = serde_json::to_vec(&StoredAccount { directory, contact, credentials })?;
        self.cache.write(ACCOUNT, &stored).await?;
        Ok(account)
    }

    /// Prepares the answer to the check of each name, and asks for the checks. A name that
    /// was checked before may need none.
    async fn answer_checks(&self, order: &mut Order) -> Result<(), AcmeError> {
        let check = self.settings.check;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            match authorization.status {
                AuthorizationStatus::Valid => continue,
                AuthorizationStatus::Pending => {}
                _ => return Err(AcmeError::Refused("a name cannot be authorized".to_owned())),
            }
            let name = authorization.identifier().to_string();
            let Some(mut challenge) = authorization.challenge(check.kind()) else {
                return Err(AcmeError::NoCheck { check, name });
            };
            match check {
                Check::Http => {
                    let authorization = challenge.key_authorization();
                    let answer = authorization.as_str().to_owned();
                    self.tls.challenges().add_text(challenge.token.clone(), answer);
                }
                Check::Tls => {
                    let certificate = self.certificate_of_check(&name, &challenge)?;
                    self.tls.challenges().add_certificate(name, certificate);
                }
            }
            challenge.set_ready().await?;
        }
        Ok(())
    }

    /// A certificate of its own signature for one name, with the digest that proves the
    /// account (RFC 8737).
    fn certificate_of_check(
        &self,
        name: &str,
        challenge: &ChallengeHandle<'_>,
    ) -> Result<CertifiedKey, AcmeError> {
        let authorization = challenge.key_authorization();
        let digest = authorization.digest();
        let digest: &[u8] = digest.as_ref();
        if digest.len() != DIGEST {
            return Err(AcmeError::Refused("the check has another digest".to_owned()));
        }
        let key = KeyPair::generate()?;
        let mut certificate = CertificateParams::new(vec![name.to_owned()])?;
        certificate.custom_extensions.push(CustomExtension::new_acme_identifier(digest));
        let certificate = certificate.self_signed(&key)?.der().clone();
        let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let key = self.tls.provider().key_provider.load_private_key(secret)?;
        // It has an extension that must be understood, so it cannot be compared with its key.
        Ok(CertifiedKey::new(vec![certificate], key))
    }

    /// Checks a certificate, and stores it with its key if that is possible.
    async fn keep(&self, chain: &str, key: &str) -> Result<Pair, AcmeError> {
        let path = self.cache.path(CERTIFICATE);
        let (chain, key) = (chain.trim_end(), key.as_bytes());
        let pair = Pair::parse(self.tls.provider(), (&path, chain.as_bytes()), (&path, key));
        let pair = pair.map_err(AcmeError::Certificate)?;
        let text = [chain.as_bytes(), &b"\n"[..], key].concat();
        // It is used although the next start must obtain another one.
        if let Err(error) = self.cache.write(CERTIFICATE, &text).await {
            tracing::error!(%error, file = %path.display(), "the certificate was not stored");
        }
        Ok(pair)
    }
}

fn is_unknown_account(error: &AcmeLibraryError) -> bool {
    match error {
        AcmeLibraryError::Api(problem) => problem.r#type.as_deref() == Some(NO_ACCOUNT),
        _ => false,
    }
}

/// What the authority says about the first name that it refused.
async fn refusal(order: &mut Order) -> String {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        let Ok(state) = authorization.refresh().await else { continue };
        let fault = state.challenges.iter().find_map(|challenge| challenge.error.as_ref());
        if let Some(fault) = fault {
            return fault.to_string().chars().take(REASON).collect();
        }
    }
    "it gives no reason".to_owned()
}
