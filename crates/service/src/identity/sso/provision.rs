//! Whether an identity provider may add the user of an address: the same table that decides
//! who joins by signing in (SSO-22, SSO-25, SSO-53).
//!
//! What belongs here: asking that table without a sign-in. What does not: what the provider
//! says about users, and storing it (`scim`).

use weir_model::sso::Connection;
use weir_store::domains::DomainRow;
use weir_store::invites::InviteRow;
use weir_store::scim;
use weir_store::users::UserRow;

use super::conclude::AnsweringProvider;
use super::decide::{Decision, Rules, decide};
use crate::Result;
use crate::identity::Identity;
use crate::sso::Verified;

/// The user whom an identity provider may add.
#[derive(Debug)]
pub(crate) enum AddedUser {
    /// A new user with this address, and the form of the address that must be unique.
    New(Box<UserRow>, String),
    /// A user who belongs to no organization, or who never proved the address. Whether
    /// an identity provider deactivated the user, perhaps an earlier one of the domain.
    Existing(Box<UserRow>, bool),
}

/// Whether an identity provider may add a user.
#[derive(Debug)]
pub(crate) enum Provisioning {
    /// It may. The invite of the address is used up, and its level counts.
    Allowed(AddedUser, Option<Box<InviteRow>>),
    /// The user is a member already.
    Member,
    /// It may not, with the reason for administrators.
    Refused(&'static str),
}

impl Identity {
    /// Whether the identity provider of a domain may add the user with this address. The
    /// token of the domain is its permission, so the domain needs no just-in-time
    /// provisioning.
    pub(crate) async fn provisioning(
        &self,
        domain: &DomainRow,
        email: &str,
    ) -> Result<Provisioning> {
        let connection = Connection::Saml(domain.id);
        let answering = AnsweringProvider { connection, provider: None, saml: Some(domain) };
        // No identity has an empty issuer, so that none is found.
        let verified = Verified {
            issuer: String::new(),
            subject: String::new(),
            email: Some(email.to_owned()),
            email_verified: true,
            name: None,
            signed_in_at: None,
        };
        let mut found = self.read_facts(&answering, &verified, None).await?;
        let mut activates_user = false;
        if let (Some(user), Some(candidate)) =
            (&found.user_of_address, &mut found.facts.user_of_address)
        {
            // A member is only reported. The staff of the instance is not added.
            candidate.is_above = user.is_staff && !candidate.is_member;
            if !candidate.is_active {
                activates_user = scim::was_deactivated(&self.core.store, user.id).await?;
                candidate.is_active |= activates_user;
            }
        }
        let is_own = found.domain.as_ref().is_some_and(|acting| acting.id == domain.id);
        found.facts.rules = is_own.then_some(Rules {
            trusts: true,
            needs_other_method: false,
            has_jit: true,
            has_invite: found.invite.is_some(),
            // The transaction counts the members: a deactivated user is none.
            is_full: false,
        });
        let allowed = match decide(&found.facts) {
            Decision::Refuse(reason) => return Ok(Provisioning::Refused(reason.text())),
            Decision::Enter { joins: None, .. } => return Ok(Provisioning::Member),
            Decision::Enter { joins: Some(_), .. } => found
                .user_of_address
                .map(|user| AddedUser::Existing(Box::new(user), activates_user)),
            Decision::Create(_) => match (found.email, found.email_key) {
                (Some(email), Some(key)) => {
                    let local = email.split('@').next().unwrap_or_default().to_owned();
                    let user = self.confirmed_user(email, local).await?;
                    Some(AddedUser::New(Box::new(user), key))
                }
                _ => None,
            },
        };
        Ok(match allowed {
            Some(added) => Provisioning::Allowed(added, found.invite.map(Box::new)),
            None => Provisioning::Refused("The address cannot be read."),
        })
    }
}
