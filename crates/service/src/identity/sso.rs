//! The rules of a domain about signing in (API-40).
//!
//! What belongs here: which addresses may use a password. What does not: the domains
//! (`domains`); signing in through a provider, which this instance does not support
//! yet.

use weir_model::domains::{Precheck, SsoEnforcement};
use weir_model::errors::FieldError;
use weir_store::domains::{self as rows, DomainRow};

use super::{Identity, Peer, emails};
use crate::Result;
use crate::domains::{PROVIDERS, acts, has_saml};
use crate::error::Error;

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
        let saml_works = PROVIDERS.contains(&SsoEnforcement::Saml);
        Ok(Precheck {
            sso_enforcement: row.as_ref().and_then(enforced),
            saml_available: saml_works && row.as_ref().is_some_and(has_saml),
        })
    }

    /// Refuses a password where the domain of the address allows none, whether or not
    /// there is such a user.
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
        Ok(self.acting_domain(email_key).await?.as_ref().and_then(enforced))
    }

    /// The domain of an address, if its rules are in force: exactly this one, not a
    /// parent domain.
    async fn acting_domain(&self, email_key: &str) -> Result<Option<DomainRow>> {
        let Some((_, domain)) = email_key.rsplit_once('@') else { return Ok(None) };
        // A text that is not the name of a domain has no rules.
        let Ok(domain) = weir_model::domains::name(domain) else { return Ok(None) };
        Ok(rows::by_name(&self.core.store, &domain).await?.filter(acts))
    }
}

fn enforced(row: &DomainRow) -> Option<SsoEnforcement> {
    Some(row.sso_enforcement).filter(|sso| *sso != SsoEnforcement::Off)
}

fn refused(detail: impl Into<String>) -> Error {
    FieldError::body("sso_enforced", detail).into()
}
