//! The rules of a domain about signing in (API-40), and signing in through a provider
//! (SSO-20 and later).
//!
//! What belongs here: which addresses may use a password. What does not: which sessions
//! are valid (`valid_sessions`), the domains (`domains`), the protocols (`sso` of this crate), the
//! steps of a sign-in (`flow`), who may sign in (`decide`), and linked accounts (`links`).

mod again;
mod conclude;
mod decide;
mod flow;
mod links;
mod operator;
mod proof;
mod provision;
mod refused;
#[cfg(test)]
mod tests;
mod valid_sessions;

use weir_model::OrganizationId;
use weir_model::domains::{Precheck, SsoEnforcement};
use weir_model::errors::FieldError;
use weir_model::sso::{Connection, OpenedBy};
use weir_store::domains::{self as rows, DomainRow};
use weir_store::sessions::SessionRow;
use weir_store::sso::identities::IdentityRow;

use self::conclude::AnsweringProvider;
use super::{Identity, Peer, emails};
use crate::domains::{acts, has_saml};
use crate::error::Error;
use crate::{Core, Result};

pub use again::Confirming;
pub use flow::{LoginRequest, Origin, SignedOn};
pub use links::LinkedAccount;
pub(super) use links::last_method;
pub(crate) use provision::{AddedUser, Provisioning};
pub(super) use refused::RefusalLists;
pub use refused::RefusedSignIns;

/// The message for a sign-up with a password where the domain of the address allows
/// none.
const NO_PASSWORD_USER: &str = "Sign up with a password is disabled because SSO login is \
                                   enforced for this domain. Please log in with your SSO \
                                   credentials.";

/// The message for setting a password where the domain of the address allows none.
const NO_PASSWORD_RESET: &str =
    "Password reset is disabled because SSO login is enforced for this domain.";
/// The message for changing an address from or to a domain with a provider.
const NO_OTHER_ADDRESS: &str =
    "This address cannot be changed here, because SSO login is enforced for its domain.";

impl Identity {
    /// How the domain of this address wants users to sign in. The answer says nothing
    /// about users.
    ///
    /// # Errors
    /// [`Error::Throttled`].
    pub async fn precheck(&self, email: &str, peer: &Peer) -> Result<Precheck> {
        self.count_precheck(peer).await?;
        let row = self.acting_domain(&emails::normalise(email)).await?;
        let Some(row) = row else {
            return Ok(Precheck { sso_enforcement: None, saml_available: false });
        };
        let sso_enforcement = self.core.in_force(&row).await?;
        Ok(Precheck { sso_enforcement, saml_available: has_saml(&row) })
    }

    /// Refuses a password or a passkey where the domain of the address allows none, whether
    /// or not there is such a user.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced`.
    pub(super) async fn refuse_password(&self, email_key: &str) -> Result<()> {
        match self.enforcement(email_key).await? {
            None => Ok(()),
            Some(sso) => Err(refused(format!(
                "You can only login with SSO for this account ({}).",
                sso.text()
            ))),
        }
    }

    /// Refuses a new user with a password where the domain of the address allows none.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced`.
    pub(super) async fn refuse_password_user(&self, email_key: &str) -> Result<()> {
        match self.enforcement(email_key).await? {
            None => Ok(()),
            Some(_) => Err(refused(NO_PASSWORD_USER)),
        }
    }

    /// Refuses a new password where the domain of the address allows none, whether or
    /// not there is such a user.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced`.
    pub(super) async fn refuse_password_reset(&self, email_key: &str) -> Result<()> {
        match self.enforcement(email_key).await? {
            None => Ok(()),
            Some(_) => Err(refused(NO_PASSWORD_RESET)),
        }
    }

    /// Refuses to change an address from or to a domain that says how its users sign
    /// in.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced` at `email`.
    pub(super) async fn refuse_address_change(&self, email_key: &str) -> Result<()> {
        match self.enforcement(email_key).await? {
            None => Ok(()),
            Some(_) => Err(FieldError::new("email", "sso_enforced", NO_OTHER_ADDRESS).into()),
        }
    }

    async fn enforcement(&self, email_key: &str) -> Result<Option<SsoEnforcement>> {
        self.core.enforcement(email_key).await
    }

    async fn acting_domain(&self, email_key: &str) -> Result<Option<DomainRow>> {
        self.core.acting_domain(email_key).await
    }
}

impl Core {
    /// What the domain of an address requires.
    pub(crate) async fn enforcement(&self, email: &str) -> Result<Option<SsoEnforcement>> {
        match self.acting_domain(email).await? {
            Some(row) => self.in_force(&row).await,
            None => Ok(None),
        }
    }

    /// Whether a session was opened by a connection that proved the address of its user, and
    /// that this organization trusts about the domain of that address.
    pub(crate) async fn is_trusted(
        &self,
        session: &SessionRow,
        organization: OrganizationId,
    ) -> Result<bool> {
        let (OpenedBy::Connection(connection), Some(address)) =
            (session.opened_by, &session.proves)
        else {
            return Ok(false);
        };
        let domain = self.acting_domain(address).await?;
        let Some(domain) = domain.filter(|domain| domain.organization == organization) else {
            return Ok(false);
        };
        let provider = match connection {
            Connection::Provider(name) => self.provider(name).await?,
            Connection::Saml(_) => None,
        };
        let answering = AnsweringProvider { connection, provider: provider.as_ref(), saml: None };
        Ok(answering.is_trusted_by(&domain, self.in_force(&domain).await?))
    }

    /// The domain of an address, if its rules are in force: exactly this one, not a
    /// parent domain.
    async fn acting_domain(&self, email: &str) -> Result<Option<DomainRow>> {
        let Some(domain) = domain_of(email) else { return Ok(None) };
        Ok(rows::by_name(&self.store, &domain).await?.filter(acts))
    }
}

/// Whether an account at a provider is the user's own: it has the address `own_key` of the
/// user. `confirmed` is the address that the provider confirms now. A provider that confirms
/// for none must have done so before: `proved` is the address that it proved then.
fn is_own_account(own_key: &str, confirmed: Option<&str>, proved: Option<&str>) -> bool {
    confirmed.or(proved) == Some(own_key)
}

/// Whether a linked account is the user's own, as its provider said last.
pub(crate) fn is_own_identity(own_key: &str, identity: &IdentityRow) -> bool {
    let confirmed = identity.email.as_deref().filter(|_| identity.email_verified);
    let confirmed = confirmed.map(emails::normalise);
    is_own_account(own_key, confirmed.as_deref(), identity.proved_for.as_deref())
}

/// Whether a connection is the one that a domain requires.
fn is_required(domain: &DomainRow, sso: SsoEnforcement, connection: Connection) -> bool {
    match (sso, connection) {
        (SsoEnforcement::Provider(required), Connection::Provider(name)) => required == name,
        (SsoEnforcement::Saml, Connection::Saml(of)) => of == domain.id,
        _ => false,
    }
}

/// The name of the domain of an address; `None`: it is not the name of a domain, so it has
/// no rules.
pub(crate) fn domain_of(email: &str) -> Option<String> {
    let email_key = emails::normalise(email);
    let (_, domain) = email_key.rsplit_once('@')?;
    weir_model::domains::name(domain).ok()
}

fn refused(detail: impl Into<String>) -> Error {
    FieldError::body("sso_enforced", detail).into()
}
