//! Which members the rules of a domain affect, before they are changed.

use weir_store::members;

use super::Domains;
use crate::Result;
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

/// Members with an address of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impact {
    /// Their addresses, in the order in which the members joined.
    pub members: Vec<String>,
    /// Whether the actor is among them.
    pub includes_actor: bool,
}

impl Domains {
    /// The members with an address of the domain, whom its rules for signing in affect.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn impact(&self, org: &OrgCtx, domain: &str) -> Result<Impact> {
        policy::check(org, Action::ReadMembers)?;
        let domain = self.find(org, domain).await?.domain;
        let store = &self.core.store;
        let users = members::ordered(store, org.organization).await?;
        let mut impact = Impact::default();
        for row in members::rows(store, org.organization, &users).await? {
            let of = row.user.email.rsplit_once('@').map(|(_, of)| of);
            if of.is_some_and(|of| of.eq_ignore_ascii_case(&domain)) {
                impact.includes_actor |= row.user.id == org.ctx.user();
                impact.members.push(row.user.email);
            }
        }
        Ok(impact)
    }
}
