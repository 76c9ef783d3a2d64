//! Encryption at rest: secrets of organizations are sealed before they reach the store
//! (SEC-22, ADR 7).
//!
//! What belongs here: which key seals, sealing and opening, changing to another key.
//! What does not: where the operator keeps the key (the binary), and which values are
//! secret (each resource).
//!
//! A sealed text opens only at the [`SealedLocation`] that it was sealed for. A copy in another
//! record, field or organization is refused.

mod cipher;
mod key;
mod rotation;

use std::sync::Arc;

use tokio::sync::OnceCell;
use weir_model::OrganizationId;
use weir_store::Store;
use weir_store::sealing as rows;
use zeroize::Zeroizing;

pub use key::{BadKey, MasterKey};
pub use rotation::{RotationError, check_present, rotate};
pub use weir_store::sealing::SealedField;

use crate::Result;
use crate::error::Error;
use cipher::Cipher;

/// An opened secret, wiped when it is dropped. It has neither `Debug` nor `Serialize`,
/// so that it cannot be printed or written by accident.
pub struct Plain(Zeroizing<Vec<u8>>);

impl Plain {
    /// The secret, for the one caller that needs it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Where a sealed text is stored: its field, its record and its organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedLocation {
    field: SealedField,
    record: String,
    organization: OrganizationId,
}

impl SealedLocation {
    /// A field of a record. `record` is the record's id within its table, as text.
    pub fn new(
        field: SealedField,
        record: impl std::fmt::Display,
        organization: OrganizationId,
    ) -> Self {
        Self { field, record: record.to_string(), organization }
    }
}

/// Where the operator keeps the master key.
pub trait KeySource: Send + Sync {
    /// The key, if there is one.
    ///
    /// # Errors
    /// [`KeyError::Source`] when there is one that cannot be used.
    fn find(&self) -> Result<Option<MasterKey>, KeyError>;

    /// Makes a key when one is needed for the first time, and stores it.
    ///
    /// # Errors
    /// [`KeyError::Source`] when it cannot be stored.
    fn make(&self) -> Result<MasterKey, KeyError>;

    /// A description of the source for the operator, such as a path.
    fn location(&self) -> String;
}

/// A key that is not stored: for a store in memory.
#[derive(Debug)]
pub struct EphemeralKey;

impl KeySource for EphemeralKey {
    fn find(&self) -> Result<Option<MasterKey>, KeyError> {
        Ok(None)
    }

    fn make(&self) -> Result<MasterKey, KeyError> {
        MasterKey::random().map_err(|error| KeyError::Source(error.to_string()))
    }

    fn location(&self) -> String {
        "nowhere".to_owned()
    }
}

/// Why nothing can be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Secrets are stored, and the key is not there.
    #[error(
        "the stored secrets are sealed with the master key {expected}, which is not in {location}; \
         put it back, or run `weir rotate-key` again if that was cut short; nothing was changed"
    )]
    Missing {
        /// Id of the key.
        expected: String,
        /// Where it was looked for.
        location: String,
    },
    /// Secrets are stored, and the key is another one.
    #[error(
        "the stored secrets are sealed with the master key {expected}, but in {location} is the key \
         {found}; put the right one there, or run `weir rotate-key` again if that was cut short; \
         nothing was changed"
    )]
    Wrong {
        /// Id of the key.
        expected: String,
        /// Id of the key that was found.
        found: String,
        /// Where it was found.
        location: String,
    },
    /// Some secrets are sealed with one key and some with another.
    #[error("a change of the master key was cut short; run `weir rotate-key` again to end it")]
    Unfinished,
    /// The key cannot be read or stored.
    #[error("{0}")]
    Source(String),
    /// The store failed.
    #[error("cannot read which master key is in use")]
    Store(#[from] weir_store::Error),
}

/// Seals and opens secrets. Clones share one key.
#[derive(Clone)]
pub struct Sealer(Arc<Inner>);

struct Inner {
    store: Store,
    source: Option<Box<dyn KeySource>>,
    cipher: OnceCell<Cipher>,
}

impl Sealer {
    /// A sealer with the key of `source`. As long as nothing was sealed no key is
    /// needed. The first use makes one.
    ///
    /// # Errors
    /// [`KeyError`] when secrets are stored that could not be opened.
    pub async fn start(store: Store, source: Box<dyn KeySource>) -> Result<Self, KeyError> {
        // A key that cannot be used is reported now, not at the first use.
        let found = source.find()?;
        let cipher = match rows::in_use(&store).await? {
            None => None,
            Some(in_use) if in_use.next.is_some() => return Err(KeyError::Unfinished),
            Some(in_use) => {
                let (expected, location) = (in_use.key, source.location());
                let Some(key) = found else { return Err(KeyError::Missing { expected, location }) };
                let found = key.id();
                if found != expected {
                    return Err(KeyError::Wrong { expected, found, location });
                }
                Some(Cipher::new(key))
            }
        };
        let inner = Inner { store, source: Some(source), cipher: OnceCell::new_with(cipher) };
        Ok(Self(Arc::new(inner)))
    }

    /// A sealer without a key, for work with no secrets.
    pub fn without_key(store: Store) -> Self {
        Self(Arc::new(Inner { store, source: None, cipher: OnceCell::new() }))
    }

    /// Seals a secret for this location only.
    ///
    /// # Errors
    /// [`Error::Internal`] when there is no key and none can be made; any failure of
    /// the store at the first use.
    pub async fn seal(&self, location: &SealedLocation, plain: &[u8]) -> Result<String> {
        let cipher = self.0.cipher.get_or_try_init(|| self.first_key()).await?;
        cipher.seal(location, plain)
    }

    /// Opens a sealed text.
    ///
    /// # Errors
    /// [`Error::Internal`] when the text was not sealed for this location with the
    /// present key.
    pub fn open(&self, location: &SealedLocation, sealed: &str) -> Result<Plain> {
        let no_key = || Error::Internal("a secret was to be opened without a key".to_owned());
        self.0.cipher.get().ok_or_else(no_key)?.open(location, sealed)
    }

    /// The key that is used from now on. It is recorded before anything is sealed with
    /// it.
    async fn first_key(&self) -> Result<Cipher> {
        let location = |error: KeyError| match error {
            KeyError::Store(error) => Error::Store(error),
            other => Error::Internal(other.to_string()),
        };
        let Some(source) = &self.0.source else {
            return Err(Error::Internal("a secret was to be sealed without a key".to_owned()));
        };
        let key = match source.find().map_err(location)? {
            Some(key) => key,
            None => source.make().map_err(location)?,
        };
        if !rows::use_key(&self.0.store, &key.id()).await? {
            let detail = "the master key changed while the service was running; start it again";
            return Err(Error::Internal(detail.to_owned()));
        }
        Ok(Cipher::new(key))
    }
}

#[cfg(test)]
mod tests;
