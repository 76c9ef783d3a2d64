//! Which members the rules of a domain affect, before they are changed.

use std::collections::BTreeSet;

use weir_model::UserId;
use weir_model::domains::SsoEnforcement;
use weir_model::organizations::Level;
use weir_model::sso::Connection;
use weir_store::domains::DomainRow;
use weir_store::members::{self, MemberRow};
use weir_store::sso::identities;

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
    /// Ways of signing in with a provider, each with the addresses of those members who
    /// have signed in this way. The others may not be able to.
    pub proved: Vec<(SsoEnforcement, Vec<String>)>,
    /// Addresses of owners with an address elsewhere: the rules do not affect them.
    pub free_owners: Vec<String>,
}

impl Domains {
    /// The members with an address of the domain, whom its rules for signing in affect.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn impact(&self, org: &OrgCtx, domain: &str) -> Result<Impact> {
        policy::check(org, Action::ReadMembers)?;
        let domain = self.find(org, domain).await?;
        let (bound, others) = self.members_by_domain(org, &domain).await?;
        let users: Vec<UserId> = bound.iter().map(|row| row.user.id).collect();
        let connections = identities::connections(&self.core.store, &users).await?;
        let mut impact = Impact::default();
        for row in others.into_iter().filter(|row| row.level == Level::Owner) {
            impact.free_owners.push(row.user.email);
        }
        for row in bound {
            let own = connections.iter().filter(|(user, _)| *user == row.user.id);
            for (_, connection) in own {
                let Some(sso) = way_of(&domain, connection) else { continue };
                match impact.proved.iter_mut().find(|(known, _)| *known == sso) {
                    Some((_, members)) => members.push(row.user.email.clone()),
                    None => impact.proved.push((sso, vec![row.user.email.clone()])),
                }
            }
            impact.includes_actor |= row.user.id == org.ctx.user();
            impact.members.push(row.user.email);
        }
        Ok(impact)
    }

    /// Whether no owner is known to be able to sign in if the domain requires this way.
    pub(super) async fn would_lock_out(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
        sso: SsoEnforcement,
    ) -> Result<bool> {
        let (bound, others) = self.members_by_domain(org, domain).await?;
        let is_owner = |row: &MemberRow| row.level == Level::Owner;
        if others.iter().any(is_owner) {
            return Ok(false);
        }
        let owners: Vec<UserId> =
            bound.iter().filter(|row| is_owner(row)).map(|row| row.user.id).collect();
        let connections = identities::connections(&self.core.store, &owners).await?;
        let proved: BTreeSet<UserId> = connections
            .iter()
            .filter(|(_, connection)| way_of(domain, connection) == Some(sso))
            .map(|(user, _)| *user)
            .collect();
        Ok(proved.is_empty())
    }

    /// The members with an address of the domain, and the others.
    async fn members_by_domain(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
    ) -> Result<(Vec<MemberRow>, Vec<MemberRow>)> {
        let store = &self.core.store;
        let users = members::ordered(store, org.organization).await?;
        let rows = members::rows(store, org.organization, &users).await?;
        let is_bound = |row: &MemberRow| {
            let of = row.user.email.rsplit_once('@').map(|(_, of)| of);
            of.is_some_and(|of| of.eq_ignore_ascii_case(&domain.domain))
        };
        Ok(rows.into_iter().partition(is_bound))
    }
}

/// The way of signing in that a connection is for a domain.
fn way_of(domain: &DomainRow, connection: &str) -> Option<SsoEnforcement> {
    match Connection::parse(connection)? {
        Connection::Provider(name) => Some(SsoEnforcement::Provider(name)),
        Connection::Saml(of) => (of == domain.id).then_some(SsoEnforcement::Saml),
    }
}
