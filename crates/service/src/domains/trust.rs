//! For whom the provider of a domain may speak (SSO-45).
//!
//! What belongs here: the rank of a caller who sets a provider or rules, the rank that a
//! user needs, and comparing the two. What does not: the decision about a sign-in
//! (`identity::sso::decide`).
//!
//! An administrator, and a key, may change the provider of a domain. With a provider of
//! their own they could otherwise sign in as an owner, as the staff of the instance, or as
//! a member of other organizations. So settings count for users up to the rank of the
//! caller who made them.

use weir_model::domains::{DomainPatch, SsoEnforcement};
use weir_model::organizations::Level;
use weir_model::sso::Connection;
use weir_model::{Patch, Timestamp};
use weir_store::domains::DomainRow;
use weir_store::users::{self, UserRow};

use crate::ctx::{Actor, OrgCtx};
use crate::{Core, Result};

/// The rank of a caller or a user: that of a level, or above all levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(i64);

impl Rank {
    const STAFF: Self = Self(100);

    fn of(level: Level) -> Self {
        Self(i64::from(level))
    }

    /// A stored rank. One that is not stored is the lowest.
    fn stored(rank: Option<i64>) -> Self {
        rank.map_or(Self::of(Level::Member), Self)
    }

    /// The rank of a caller. A key is no session, and must not become one of a higher
    /// level: it has the lowest rank.
    pub(super) async fn of_caller(core: &Core, org: &OrgCtx) -> Result<Self> {
        if matches!(org.ctx.actor, Actor::Key { .. }) {
            return Ok(Self::of(Level::Member));
        }
        let user = users::get(&core.store, org.ctx.user()).await?;
        let is_staff = user.is_some_and(|user| user.is_staff);
        Ok(if is_staff { Self::STAFF } else { Self::of(org.level) })
    }

    /// The rank that a sign-in of this user needs. `level`: the one in the organization of
    /// the domain, if the user is its member.
    pub(crate) fn needed(user: &UserRow, level: Option<Level>, is_elsewhere: bool) -> Self {
        match (user.is_staff, is_elsewhere) {
            (true, _) => Self::STAFF,
            (false, true) => Self::of(Level::Owner),
            (false, false) => Self::of(level.unwrap_or(Level::Member)),
        }
    }
}

/// Whether an address alone says who signs in through a connection that the domain trusts.
pub(crate) fn speaks_for(domain: &DomainRow, connection: Connection, needed: Rank) -> bool {
    needed
        <= Rank::stored(match connection {
            Connection::Saml(_) => domain.provider_rank,
            Connection::Provider(_) => domain.rules_rank,
        })
}

/// Whether settings with this stored rank count for members alone: a key saved them, or
/// Weir did not store yet who did.
pub(super) fn is_lowest(rank: Option<i64>) -> bool {
    Rank::stored(rank) == Rank::of(Level::Member)
}

/// Whether an identity of the SAML provider counts that was linked at this time. One of
/// before the last change may belong to another provider with the same entity id.
pub(crate) fn counts(domain: &DomainRow, needed: Rank, linked_at: Timestamp) -> bool {
    needed <= Rank::stored(domain.provider_rank)
        || domain.provider_set_at.is_none_or(|set_at| linked_at >= set_at)
}

/// Whether another SAML provider may speak after a change.
pub(super) fn provider_differs(before: &DomainRow, after: &DomainRow) -> bool {
    before.saml_entity_id != after.saml_entity_id
        || before.saml_acs_url != after.saml_acs_url
        || before.saml_x509_cert != after.saml_x509_cert
        || before.saml_x509_cert_next != after.saml_x509_cert_next
}

/// Whether sign-ins that worked before may fail after a change: the provider is another
/// one, or a certificate is accepted no more.
pub(super) fn provider_breaks(before: &DomainRow, after: &DomainRow) -> bool {
    let accepted = [&after.saml_x509_cert, &after.saml_x509_cert_next];
    let is_accepted = |one: &&Option<String>| one.is_none() || accepted.contains(one);
    before.saml_entity_id != after.saml_entity_id
        || before.saml_acs_url != after.saml_acs_url
        || ![&before.saml_x509_cert, &before.saml_x509_cert_next].iter().all(is_accepted)
}

/// Stores who made a change of the provider or of the rules. A caller who sends all fields
/// as they are stored confirms them.
pub(super) fn stamp(
    before: &DomainRow,
    row: &mut DomainRow,
    patch: &DomainPatch,
    rank: Rank,
    now: Timestamp,
) {
    if provider_differs(before, row) {
        row.provider_rank = Some(rank.0);
        row.provider_set_at = Some(now);
    } else if names_provider(row, patch) && rank > Rank::stored(row.provider_rank) {
        row.provider_rank = Some(rank.0);
    }
    let names_rules =
        patch.jit_provisioning_enabled != Patch::Keep || patch.sso_enforcement != Patch::Keep;
    let rules_differ = before.jit_provisioning_enabled != row.jit_provisioning_enabled
        || before.sso_enforcement != row.sso_enforcement;
    let has_rules = row.jit_provisioning_enabled || row.sso_enforcement != SsoEnforcement::Off;
    let confirms = names_rules && has_rules && rank > Rank::stored(row.rules_rank);
    if rules_differ || confirms {
        row.rules_rank = Some(rank.0);
    }
}

/// Whether a patch names every field of the provider that is stored.
fn names_provider(row: &DomainRow, patch: &DomainPatch) -> bool {
    let fields = [
        (&row.saml_entity_id, &patch.saml.entity_id),
        (&row.saml_acs_url, &patch.saml.acs_url),
        (&row.saml_x509_cert, &patch.saml.x509_cert),
        (&row.saml_x509_cert_next, &patch.saml.x509_cert_next),
    ];
    let is_named = |(stored, sent): &(&Option<String>, &Patch<String>)| {
        stored.is_none() || **sent != Patch::Keep
    };
    fields.iter().any(|(stored, _)| stored.is_some()) && fields.iter().all(is_named)
}
