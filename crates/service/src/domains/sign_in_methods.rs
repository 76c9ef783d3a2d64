//! The sign-in methods that a domain can require.

use weir_model::domains::SsoEnforcement;
use weir_store::domains::DomainRow;

use super::Domains;
use crate::Result;
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// A sign-in method that a domain can require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInMethod {
    /// The value of the field `sso_enforcement` that requires it.
    pub sso: SsoEnforcement,
    /// The name of a provider; empty for other methods.
    pub label: String,
    /// Whether users can sign in with it now.
    pub is_set_up: bool,
}

impl Domains {
    /// The sign-in methods that a domain can require, and whether each is set up.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn sign_in_methods(&self, org: &OrgCtx, domain: &str) -> Result<Vec<SignInMethod>> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, domain).await?;
        self.sign_in_methods_of(&row).await
    }

    pub(super) async fn sign_in_methods_of(&self, row: &DomainRow) -> Result<Vec<SignInMethod>> {
        let offered = self.core.provider_facts().await?.into_iter();
        let known = SsoEnforcement::KNOWN.into_iter().map(|sso| {
            let label = match sso {
                SsoEnforcement::Provider(name) => name.label().to_owned(),
                SsoEnforcement::Off | SsoEnforcement::Saml => String::new(),
            };
            (sso, label)
        });
        let offered = offered.map(|facts| (SsoEnforcement::Provider(facts.name), facts.label));
        let mut methods: Vec<SignInMethod> = Vec::new();
        for (sso, label) in known.chain(offered) {
            let is_set_up = self.core.can_enforce(row, sso).await?;
            match methods.iter_mut().find(|method| method.sso == sso) {
                Some(method) => method.label = label,
                None => methods.push(SignInMethod { sso, label, is_set_up }),
            }
        }
        Ok(methods)
    }
}
