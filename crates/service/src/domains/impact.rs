//! Which members the rules of a domain affect, before they are changed (SSO-32).

use weir_model::UserId;
use weir_model::domains::{SignInImpact, SsoEnforcement, WayImpact};
use weir_model::organizations::Level;
use weir_model::sso::Connection;
use weir_store::domains::DomainRow;
use weir_store::members::{self, MemberRow};
use weir_store::sso::identities;

use super::Domains;
use crate::Result;
use crate::ctx::OrgCtx;
use crate::policy::{self, Action};

impl Domains {
    /// The members with an address of the domain, and for each way of signing in that the
    /// domain could require, who of them could no longer sign in.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn impact(&self, org: &OrgCtx, domain: &str) -> Result<SignInImpact> {
        policy::check(org, Action::ReadMembers)?;
        let domain = self.find(org, domain).await?;
        let ways = self.ways_of(&domain).await?.into_iter();
        let usable = ways.filter(|way| way.is_set_up && way.sso != SsoEnforcement::Off);
        let usable: Vec<SsoEnforcement> = usable.map(|way| way.sso).collect();
        self.impact_of(org, &domain, &usable).await
    }

    /// Whether no owner is known to be able to sign in if the domain requires this way.
    pub(super) async fn would_lock_out(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
        sso: SsoEnforcement,
    ) -> Result<bool> {
        let impact = self.impact_of(org, domain, &[sso]).await?;
        Ok(impact.ways.iter().any(|way| way.locks_out_owners))
    }

    async fn impact_of(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
        ways: &[SsoEnforcement],
    ) -> Result<SignInImpact> {
        let (bound, others) = self.members_by_domain(org, domain).await?;
        let users: Vec<UserId> = bound.iter().map(|row| row.user.id).collect();
        let connections = identities::connections(&self.core.store, &users).await?;
        let is_owner = |row: &&MemberRow| row.level == Level::Owner;
        let email = |row: &MemberRow| row.user.email.clone();
        let owners_elsewhere: Vec<String> = others.iter().filter(is_owner).map(email).collect();
        let way = |sso: &SsoEnforcement| {
            let is_proved = |row: &&MemberRow| {
                let mut own = connections.iter().filter(|(user, _)| *user == row.user.id);
                own.any(|(_, connection)| way_of(domain, connection) == Some(*sso))
            };
            let (proved, unproved): (Vec<&MemberRow>, Vec<&MemberRow>) =
                bound.iter().partition(is_proved);
            let owner_remains = !owners_elsewhere.is_empty() || proved.iter().any(is_owner);
            WayImpact {
                sso_enforcement: *sso,
                proved: proved.into_iter().map(email).collect(),
                unproved: unproved.into_iter().map(email).collect(),
                locks_out_owners: !owner_remains,
            }
        };
        Ok(SignInImpact {
            ways: ways.iter().map(way).collect(),
            includes_you: users.contains(&org.ctx.user()),
            members: bound.iter().map(email).collect(),
            owners_elsewhere,
        })
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
