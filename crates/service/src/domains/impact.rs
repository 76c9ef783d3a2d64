//! Which members the rules of a domain affect, before they are changed (SSO-32).

use weir_model::domains::{SignInImpact, SsoEnforcement, WayImpact};
use weir_model::organizations::Level;
use weir_model::sso::Connection;
use weir_model::{Timestamp, UserId};
use weir_store::domains::DomainRow;
use weir_store::members::{self, MemberRow};
use weir_store::sso::identities::{self, IdentityRow};

use super::{Domains, trust};
use crate::Result;
use crate::ctx::OrgCtx;
use crate::identity::emails;
use crate::identity::sso::is_own_identity;
use crate::policy::{self, Action};

impl Domains {
    /// The members with an address of the domain, and for each sign-in method that the
    /// domain could require, who of them could no longer sign in.
    ///
    /// # Errors
    /// [`Error::MissingScope`](crate::Error::MissingScope);
    /// [`Error::NotFound`](crate::Error::NotFound).
    pub async fn impact(&self, org: &OrgCtx, domain: &str) -> Result<SignInImpact> {
        policy::check(org, Action::ReadMembers)?;
        let domain = self.find(org, domain).await?;
        let methods = self.sign_in_methods_of(&domain).await?.into_iter();
        let usable = methods.filter(|method| method.is_set_up && method.sso != SsoEnforcement::Off);
        let usable: Vec<SsoEnforcement> = usable.map(|method| method.sso).collect();
        self.impact_of(org, &domain, &usable, domain.provider_set_at).await
    }

    /// What happens if the domain requires this way, and no owner is then known to be able to
    /// sign in. A sign-in through the SAML provider proves it `since` this time.
    pub(super) async fn lock_out(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
        sso: SsoEnforcement,
        since: Option<Timestamp>,
    ) -> Result<Option<WayImpact>> {
        let impact = self.impact_of(org, domain, &[sso], since).await?;
        Ok(impact.ways.into_iter().find(|way| way.locks_out_owners))
    }

    async fn impact_of(
        &self,
        org: &OrgCtx,
        domain: &DomainRow,
        ways: &[SsoEnforcement],
        since: Option<Timestamp>,
    ) -> Result<SignInImpact> {
        let (bound, others) = self.members_by_domain(org, domain).await?;
        let users: Vec<UserId> = bound.iter().map(|row| row.user.id).collect();
        let identities = identities::of_users(&self.core.store, &users).await?;
        let is_owner = |row: &&MemberRow| row.level == Level::Owner;
        let email = |row: &MemberRow| row.user.email.clone();
        let owners_elsewhere: Vec<String> = others.iter().filter(is_owner).map(email).collect();
        let way = |sso: &SsoEnforcement| {
            let is_proved = |row: &&MemberRow| {
                let own_key = emails::normalise(&row.user.email);
                let mut own = identities.iter().filter(|identity| identity.user == row.user.id);
                own.any(|identity| {
                    way_of(domain, &identity.connection) == Some(*sso)
                        && is_own_identity(&own_key, identity)
                        && is_present(domain, row, identity, since)
                })
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

/// Whether an identity of the SAML provider was used `since` a time, and counts with its
/// settings. True for other connections.
fn is_present(
    domain: &DomainRow,
    member: &MemberRow,
    identity: &IdentityRow,
    since: Option<Timestamp>,
) -> bool {
    let connection = Connection::parse(&identity.connection);
    if connection != Some(Connection::Saml(domain.id)) {
        return true;
    }
    let needed = trust::Rank::needed(&member.user, Some(member.level), false);
    let entity_id = domain.saml_entity_id.as_deref().map(str::trim);
    entity_id == Some(identity.issuer.trim())
        && since.is_none_or(|since| identity.used_at >= since)
        && trust::counts(domain, needed, identity.linked_at)
}

/// The sign-in method that a connection is for a domain.
fn way_of(domain: &DomainRow, connection: &str) -> Option<SsoEnforcement> {
    match Connection::parse(connection)? {
        Connection::Provider(name) => Some(SsoEnforcement::Provider(name)),
        Connection::Saml(of) => (of == domain.id).then_some(SsoEnforcement::Saml),
    }
}
