//! What a domain says about signing in (API-40).
//!
//! What belongs here: which addresses may use a password. What does not: the
//! domains themselves (`domains`); signing in through a provider, which this
//! instance cannot do yet.

use weir_model::domains::{Precheck, SsoEnforcement};
use weir_model::errors::FieldError;
use weir_store::domains::{self as rows, DomainRow};

use super::{Identity, Peer, emails};
use crate::Result;
use crate::domains::{PROVIDERS, acts, has_saml};
use crate::error::Error;

/// Who would sign up with a password for an address that must not have one.
const NO_PASSWORD_ACCOUNT: &str = "Sign up with a password is disabled because SSO login is \
                                   enforced for this domain. Please log in with your SSO \
                                   credentials.";

/// Who would set a password for an address that must not have one.
const NO_PASSWORD_RESET: &str =
    "Password reset is disabled because SSO login is enforced for this domain.";
/// Who would leave a domain with a provider, or come to one.
const NO_OTHER_ADDRESS: &str =
    "This address cannot be changed here, because SSO login is enforced for its domain.";

impl Identity {
    /// What somebody with this address is to know before signing in. It says
    /// nothing of accounts.
    ///
    /// # Errors
    /// [`Error::Throttled`].
    pub async fn precheck(&self, email: &str, peer: &Peer) -> Result<Precheck> {
        self.count_question(peer).await?;
        let row = self.acting_domain(&emails::normalise(email)).await?;
        let saml_works = PROVIDERS.contains(&SsoEnforcement::Saml);
        Ok(Precheck {
            sso_enforcement: row.as_ref().and_then(enforced),
            saml_available: saml_works && row.as_ref().is_some_and(has_saml),
        })
    }

    /// Refuses a password where the address's domain allows none, whether there
    /// is such an account or not.
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

    /// Refuses an account with a password where the address's domain allows none.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced`.
    pub(super) async fn refuse_password_account(&self, email_key: &str) -> Result<()> {
        match self.enforcement(email_key).await? {
            None => Ok(()),
            Some(_) => Err(refused(NO_PASSWORD_ACCOUNT)),
        }
    }

    /// Refuses a new password where the address's domain allows none, whether
    /// there is such an account or not.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `sso_enforced`.
    pub(super) async fn refuse_password_reset(&self, email_key: &str) -> Result<()> {
        match self.enforcement(email_key).await? {
            None => Ok(()),
            Some(_) => Err(refused(NO_PASSWORD_RESET)),
        }
    }

    /// Refuses to change an address from or to a domain that says how its people
    /// sign in.
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

    /// The domain of an address, if its rules act: exactly this one, not one above.
    async fn acting_domain(&self, email_key: &str) -> Result<Option<DomainRow>> {
        let Some((_, domain)) = email_key.rsplit_once('@') else { return Ok(None) };
        // What is no domain's name has no rules.
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
