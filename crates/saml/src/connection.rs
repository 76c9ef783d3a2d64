//! The two sides of a connection: the identity provider as an administrator entered it,
//! and Weir as the identity provider knows it.
//!
//! What belongs here: what both ends are, and a login between request and response. What
//! does not: how either message is written or read.

use chrono::{DateTime, TimeDelta, Utc};
use url::Url;

use crate::certificate::Certificate;

/// How long a login may take at the identity provider.
pub const LOGIN_TIME: TimeDelta = TimeDelta::minutes(10);
/// Characters of an entity id and of a URL.
const LENGTH: usize = 512;
/// Bytes of a relay state, a limit of SAML.
const RELAY_STATE: usize = 80;

/// A connection of a domain to its identity provider.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) idp_entity_id: String,
    pub(crate) idp_sso_url: String,
    pub(crate) certificates: Vec<Certificate>,
    pub(crate) service: ServiceProvider,
}

/// Weir as a service provider.
#[derive(Debug, Clone)]
pub struct ServiceProvider {
    pub(crate) entity_id: String,
    pub(crate) acs_url: String,
}

/// The field of a connection that is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The entity id of the identity provider.
    IdpEntityId,
    /// The sign-in URL of the identity provider.
    IdpSsoUrl,
    /// The certificates of the identity provider.
    Certificates,
    /// The entity id of Weir.
    EntityId,
    /// The URL of Weir that receives responses.
    AcsUrl,
}

/// Why a connection cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct ConnectionFault {
    /// The field that is wrong.
    pub field: Field,
    /// A sentence for the form.
    pub why: &'static str,
}

impl ServiceProvider {
    /// Weir under this entity id, receiving responses at this URL.
    ///
    /// # Errors
    /// [`ConnectionFault`] with the field that is wrong.
    pub fn new(entity_id: &str, acs_url: &str) -> Result<Self, ConnectionFault> {
        check_entity_id(Field::EntityId, entity_id)?;
        check_url(Field::AcsUrl, acs_url)?;
        Ok(Self { entity_id: entity_id.to_owned(), acs_url: acs_url.to_owned() })
    }
}

impl Connection {
    /// A connection with the identity provider of this entity id, at which people sign in
    /// at this URL. Two certificates are for the time in which one replaces the other.
    ///
    /// # Errors
    /// [`ConnectionFault`] with the field that is wrong.
    pub fn new(
        idp_entity_id: &str,
        idp_sso_url: &str,
        certificates: Vec<Certificate>,
        service: ServiceProvider,
    ) -> Result<Self, ConnectionFault> {
        check_entity_id(Field::IdpEntityId, idp_entity_id)?;
        check_url(Field::IdpSsoUrl, idp_sso_url)?;
        let fault = |why| Err(ConnectionFault { field: Field::Certificates, why });
        if !(1..=2).contains(&certificates.len()) {
            return fault("Enter one certificate, or two while one replaces the other.");
        }
        if idp_entity_id == service.entity_id {
            let why = "This is the entity id of Weir. Enter that of the identity provider.";
            return Err(ConnectionFault { field: Field::IdpEntityId, why });
        }
        Ok(Self {
            idp_entity_id: idp_entity_id.to_owned(),
            idp_sso_url: idp_sso_url.to_owned(),
            certificates,
            service,
        })
    }

    /// The pinned certificates.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }
}

fn check_entity_id(field: Field, text: &str) -> Result<(), ConnectionFault> {
    let fault = |why| Err(ConnectionFault { field, why });
    if text.is_empty() {
        return fault("Enter the entity id.");
    }
    if text.len() > LENGTH {
        return fault("An entity id has at most 512 characters.");
    }
    if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return fault("An entity id has no spaces.");
    }
    Ok(())
}

fn check_url(field: Field, text: &str) -> Result<(), ConnectionFault> {
    let fault = |why| Err(ConnectionFault { field, why });
    if text.len() > LENGTH {
        return fault("A URL has at most 512 characters.");
    }
    // The parser of URLs would drop them.
    if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return fault("A URL has no spaces.");
    }
    let Ok(url) = Url::parse(text) else { return fault("Enter a complete URL.") };
    if !matches!(url.scheme(), "https" | "http") {
        return fault("The URL must begin with https:// or http://.");
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return fault("The URL must not contain a user, a password or a #.");
    }
    Ok(())
}

/// A login that was sent to an identity provider. The caller stores it, bound to the
/// browser, and passes it on once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingLogin {
    /// The id of the request, which the response must name.
    pub request_id: String,
    /// What the identity provider returns unchanged: the id of the domain.
    pub relay_state: String,
    /// When the request was made.
    pub created: DateTime<Utc>,
}

impl PendingLogin {
    /// When a response is too late.
    pub fn ends(&self) -> DateTime<Utc> {
        self.created.checked_add_signed(LOGIN_TIME).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

/// Why a relay state cannot be sent.
pub(crate) fn is_relay_state(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= RELAY_STATE
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}
