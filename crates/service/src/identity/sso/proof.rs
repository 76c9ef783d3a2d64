//! What follows from the first proof of an address, and which sign-in methods work
//! (SSO-30, SSO-46).
//!
//! What belongs here: what a user leaves with the first proof, and the methods that are left
//! when one is removed. What does not: storing either (`weir_store::proofs`).

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::organizations::Level;
use weir_model::sso::Connection;
use weir_model::{OrganizationId, Timestamp, UserId};
use weir_store::organizations::{self, Belonging};
use weir_store::proofs::{FirstProof, SignInMethods};
use weir_store::sso::identities::{self, IdentityRow};
use weir_store::users::UserRow;
use weir_store::{domains, members, passkeys};

use super::{domain_of, is_own_identity, is_required};
use crate::Result;
use crate::activity::{About, Changes, own_entry};
use crate::domains::{acts, has_saml};
use crate::identity::{Identity, emails};

impl Identity {
    /// The first proof of the address of a user, by the identity with this hash or by SCIM,
    /// for the organization that trusts it, with its audit entries. `None`: the address was
    /// proved before.
    ///
    /// Where the user is the only owner, the membership stays: it opens nothing, and the
    /// organization would have no owner.
    pub(crate) async fn first_proof(
        &self,
        user: &UserRow,
        identity: Option<&str>,
        home: OrganizationId,
    ) -> Result<Option<(FirstProof, Vec<Entry>)>> {
        if !user.is_unproved() {
            return Ok(None);
        }
        let now = self.core.clock.now();
        let store = &self.core.store;
        let (mut leaves, mut entries) = (Vec::new(), vec![proved(now, home, user)]);
        for other in organizations::of_user(store, user.id).await? {
            let organization = other.row.id;
            if organization == home || self.is_only_owner(&other, user.id).await? {
                continue;
            }
            let row = members::rows(store, organization, &[user.id]).await?.into_iter().next();
            let Some(row) = row else { continue };
            leaves.push(organization);
            let about = About {
                subject: Subject::Member,
                id: row.id.to_string(),
                name: Some(&user.email),
                project: None,
            };
            let changes = Changes::none().field("level", &Some(row.level), &None);
            entries.push(own_entry(now, organization, about, AuditAction::Deleted, changes));
        }
        Ok(Some((FirstProof::new(identity, leaves, now), entries)))
    }

    async fn is_only_owner(&self, of: &Belonging, user: UserId) -> Result<bool> {
        if of.level != Level::Owner {
            return Ok(false);
        }
        let store = &self.core.store;
        let others = members::ordered(store, of.row.id).await?;
        let others = members::rows(store, of.row.id, &others).await?;
        let is_owner = |row: &members::MemberRow| {
            row.level == Level::Owner && row.user.id != user && row.user.is_active
        };
        Ok(!others.iter().any(is_owner))
    }

    /// The sign-in methods of a user now: those that exist, and that the domain of
    /// the user's address allows.
    pub(in crate::identity) async fn sign_in_methods(
        &self,
        user: &UserRow,
    ) -> Result<SignInMethods> {
        let store = &self.core.store;
        let own_key = emails::normalise(&user.email);
        let is_free = self.enforcement(&own_key).await?.is_none();
        let passkeys = match is_free {
            true => passkeys::of_user(store, user.id).await?,
            false => Vec::new(),
        };
        let mut linked = Vec::new();
        for identity in identities::of_user(store, user.id).await? {
            if self.works(user, &own_key, &identity).await? {
                linked.push(identity.hash);
            }
        }
        Ok(SignInMethods {
            password: is_free && user.password.is_some(),
            passkeys: passkeys.into_iter().map(|row| row.hash).collect(),
            identities: linked,
        })
    }

    /// Whether a linked account signs the user in: its provider is set up, and the domain of
    /// the user's address allows it.
    async fn works(&self, user: &UserRow, own_key: &str, identity: &IdentityRow) -> Result<bool> {
        let store = &self.core.store;
        let Some(connection) = Connection::parse(&identity.connection) else { return Ok(false) };
        let is_set_up = match connection {
            Connection::Provider(name) => self.core.provider(name).await?.is_some(),
            Connection::Saml(of) => match domains::get_any(store, of).await? {
                Some(domain) => {
                    let level = organizations::level(store, domain.organization, user.id).await?;
                    let is_own = domain_of(own_key).as_deref() == Some(&*domain.domain);
                    acts(&domain) && has_saml(&domain) && is_own && level.is_some()
                }
                None => false,
            },
        };
        if !is_set_up {
            return Ok(false);
        }
        let Some(domain) = self.acting_domain(own_key).await? else { return Ok(true) };
        Ok(match self.core.in_force(&domain).await? {
            Some(sso) => {
                is_required(&domain, sso, connection) && is_own_identity(own_key, identity)
            }
            None => true,
        })
    }
}

/// The audit entry about a user whose address is proved.
fn proved(now: Timestamp, home: OrganizationId, user: &UserRow) -> Entry {
    let about = About {
        subject: Subject::User,
        id: user.id.to_string(),
        name: Some(&user.email),
        project: None,
    };
    let changes = Changes::none().field("is_email_verified", &false, &true).secret("password");
    own_entry(now, home, about, AuditAction::Updated, changes)
}
