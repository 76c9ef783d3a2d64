//! The ways of signing in that a domain can require.

use weir_model::domains::SsoEnforcement;
use weir_store::domains::DomainRow;

use super::Domains;
use crate::Result;
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// A way of signing in that a domain can require.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The value of the domain.
    pub sso: SsoEnforcement,
    /// The name of a provider; empty for the other ways.
    pub label: String,
    /// Whether it is set up.
    pub is_set_up: bool,
}

impl Domains {
    /// The ways of signing in that a domain can require, and whether each is set up.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn ways(&self, org: &OrgCtx, domain: &str) -> Result<Vec<Way>> {
        policy::check(org, Action::ReadOrganization)?;
        let row = self.find(org, domain).await?;
        self.ways_of(&row).await
    }

    pub(super) async fn ways_of(&self, row: &DomainRow) -> Result<Vec<Way>> {
        let offered = self.core.provider_facts().await?.into_iter();
        let known = SsoEnforcement::KNOWN.into_iter().map(|sso| {
            let label = match sso {
                SsoEnforcement::Provider(name) => name.label().to_owned(),
                SsoEnforcement::Off | SsoEnforcement::Saml => String::new(),
            };
            (sso, label)
        });
        let offered = offered.map(|facts| (SsoEnforcement::Provider(facts.name), facts.label));
        let mut ways: Vec<Way> = Vec::new();
        for (sso, label) in known.chain(offered) {
            let is_set_up = self.core.can_enforce(row, sso).await?;
            match ways.iter_mut().find(|way| way.sso == sso) {
                Some(way) => way.label = label,
                None => ways.push(Way { sso, label, is_set_up }),
            }
        }
        Ok(ways)
    }
}
