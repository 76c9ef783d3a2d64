//! Invites to organizations, until they are accepted or deleted.
//!
//! What belongs here: statements about `invite` and its lists. What does not: who may
//! invite whom, and when an invite expires (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `invite` | invite | the record |
//! | `org_invite` | `[organization, invite]` | an empty record; the ids are the list, oldest first |
//! | `invite_email` | `[organization, address]` | the invite of the address, at most one |
//! | `invite_link` | SHA-256 of a token | the invite that a link with this token opens |

use std::collections::BTreeSet;

use surrealdb::types::{SurrealValue, Value};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{InviteId, MembershipId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::limits::refuse_full;
use crate::lists::{self, Order};
use crate::mail::{self, MailRow, write_mails};
use crate::members::write_membership;
use crate::organizations::{StoredMembership, to_level, touch_organization};
use crate::proofs::{FirstProof, first_proof};
use crate::users::UserRow;
use crate::{Error, Result, Store, ids};

/// An invite as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteRow {
    /// Id of the invite.
    pub id: InviteId,
    /// The organization that the invite is for.
    pub organization: OrganizationId,
    /// Address as it was entered.
    pub target_email: String,
    /// The normalised form of the address, for comparisons.
    pub email_key: String,
    /// First name of the invited person; may be empty.
    pub first_name: String,
    /// Level of the new member.
    pub level: Level,
    /// A message to the invited person.
    pub message: Option<String>,
    /// The user who invites.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether a mail server has accepted or refused its mail.
    pub emailing_attempt_made: bool,
    /// SHA-256 of the tokens of its links: the one that was returned when the invite was
    /// created, and one for each attempt to mail it. Empty in data from before links had
    /// tokens.
    pub links: Vec<String>,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    uuid: Uuid,
    organization: Uuid,
    target_email: String,
    email_key: String,
    first_name: String,
    level: i64,
    message: Option<String>,
    created_by: Uuid,
    /// Microseconds since 1970.
    created_at: i64,
    updated_at: i64,
    emailing_attempt_made: bool,
    links: Vec<String>,
}

impl From<&InviteRow> for Stored {
    fn from(row: &InviteRow) -> Self {
        Self {
            uuid: row.id.0,
            organization: row.organization.0,
            target_email: row.target_email.clone(),
            email_key: row.email_key.clone(),
            first_name: row.first_name.clone(),
            level: row.level.into(),
            message: row.message.clone(),
            created_by: row.created_by.0,
            created_at: row.created_at.micros(),
            updated_at: row.updated_at.micros(),
            emailing_attempt_made: row.emailing_attempt_made,
            links: row.links.clone(),
        }
    }
}

impl TryFrom<Stored> for InviteRow {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        Ok(Self {
            id: InviteId(stored.uuid),
            organization: OrganizationId(stored.organization),
            target_email: stored.target_email,
            email_key: stored.email_key,
            first_name: stored.first_name,
            level: to_level("invites", stored.level)?,
            message: stored.message,
            created_by: UserId(stored.created_by),
            created_at: Timestamp::from_micros(stored.created_at),
            updated_at: Timestamp::from_micros(stored.updated_at),
            emailing_attempt_made: stored.emailing_attempt_made,
            links: stored.links,
        })
    }
}

const GET: Statement =
    Statement::read("invites get", "SELECT * FROM type::record('invite', $invite);");

/// The invite with this id, of any organization: for the mail sender, which knows only
/// the id.
///
/// # Errors
/// Any failure of the store.
pub async fn get_any(store: &Store, invite: InviteId) -> Result<Option<InviteRow>> {
    let mut answer = store.db.run(GET, bind! { invite: invite.0 }).await?;
    answer.row::<Stored>(0)?.map(InviteRow::try_from).transpose()
}

/// An invite of this organization.
///
/// # Errors
/// Any failure of the store.
pub async fn get(
    store: &Store,
    organization: OrganizationId,
    invite: InviteId,
) -> Result<Option<InviteRow>> {
    let found = get_any(store, invite).await?;
    Ok(found.filter(|row| row.organization == organization))
}

const BY_LINK: Statement = Statement::read(
    "invites by link",
    "SELECT * FROM (SELECT VALUE type::record('invite', invite)
                    FROM type::record('invite_link', $hash));",
);

/// The invite that is opened by a link whose token has this hash. It is found by the
/// hash, so that no secret is compared.
///
/// # Errors
/// Any failure of the store.
pub async fn by_link(store: &Store, hash: &str) -> Result<Option<InviteRow>> {
    let mut answer = store.db.run(BY_LINK, bind! { hash: hash }).await?;
    answer.row::<Stored>(0)?.map(InviteRow::try_from).transpose()
}

const ADD_LINK: Statement = Statement::write(
    "invites add link",
    "BEGIN;
     LET $found = (UPDATE type::record('invite', $invite)
                   SET links = array::union(links, [$hash]) RETURN VALUE uuid);
     IF $found = [] { THROW 'gone' };
     UPSERT type::record('invite_link', $hash) CONTENT { invite: $invite } RETURN NONE;
     COMMIT;",
);

/// Stores one more link of an invite, as the hash of its token. `false`: the invite is
/// deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn add_link(store: &Store, invite: InviteId, hash: &str) -> Result<bool> {
    is_done(store.db.run(ADD_LINK, bind! { invite: invite.0, hash: hash }).await)
}

const ORDERED: Order = Order { name: "invites ordered", table: "org_invite", part: 1 };

/// The invites of an organization, ids only, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<InviteId>> {
    lists::ordered(store, ORDERED, organization.0, InviteId).await
}

/// Invites of an organization, in the order of `invites`; missing ones are skipped.
///
/// # Errors
/// Any failure of the store.
pub async fn rows(
    store: &Store,
    organization: OrganizationId,
    invites: &[InviteId],
) -> Result<Vec<InviteRow>> {
    let ids: Vec<Uuid> = invites.iter().map(|invite| invite.0).collect();
    let found = lists::records::<Stored>(store, "invite", ids).await?.into_iter().flatten();
    found.filter(|row| row.organization == organization.0).map(InviteRow::try_from).collect()
}

/// Returns the addresses that have an invite to the organization, expired ones too.
/// `email_keys` are normalised and have no duplicates.
///
/// # Errors
/// Any failure of the store.
pub async fn invited(
    store: &Store,
    organization: OrganizationId,
    email_keys: Vec<String>,
) -> Result<BTreeSet<String>> {
    #[derive(Debug, SurrealValue)]
    struct Holder {
        invite: Uuid,
    }
    let key = |email: &String| vec![organization.0.into_value(), email.clone().into_value()];
    let keys: Vec<Vec<Value>> = email_keys.iter().map(key).collect();
    let found = lists::records::<Holder>(store, "invite_email", keys).await?;
    let held = |(email, holder): (String, Option<Holder>)| holder.map(|_| email);
    Ok(email_keys.into_iter().zip(found).filter_map(held).collect())
}

const OF_ADDRESS: Statement = Statement::read(
    "invites of an address",
    "LET $invite = (SELECT VALUE invite
                    FROM ONLY type::record('invite_email', [$organization, $email_key]));
     RETURN IF $invite = NONE { [] } ELSE { (SELECT * FROM type::record('invite', $invite)) };",
);

/// The invite of an address to an organization, also when it has expired. `email_key` is
/// the normalised address.
///
/// # Errors
/// Any failure of the store.
pub async fn of_address(
    store: &Store,
    organization: OrganizationId,
    email_key: &str,
) -> Result<Option<InviteRow>> {
    let vars = bind! { organization: organization.0, email_key: email_key };
    let found = store.db.run(OF_ADDRESS, vars).await?.row::<Stored>(1)?;
    found.map(InviteRow::try_from).transpose()
}

// The write of the organization's record makes concurrent calls conflict, so all invites
// are counted (see `projects::CREATE`). A retry after an unknown outcome finds the last
// invite and writes nothing, so no mail is sent twice. Invites that only replace others
// pass the limit. Of the limit of members, invites that can still be accepted take a place.
const CREATE: Statement = Statement::write(
    "invites create",
    concat!(
        "BEGIN;",
        touch_organization!("$organization", "organization"),
        "LET $present = (SELECT VALUE uuid FROM ONLY type::record('invite', $last));
         LET $before = array::len((SELECT VALUE record::id(id)[1]
                                   FROM org_invite:[$organization]..=[$organization, ..]));
         IF $present = NONE {
             FOR $invite IN $invites {
                 LET $earlier = (SELECT VALUE invite FROM ONLY
                     type::record('invite_email', [$organization, $invite.email_key]));
                 IF $earlier != NONE {
                     FOR $link IN ((SELECT VALUE links FROM ONLY
                                    type::record('invite', $earlier)) ?? []) {
                         DELETE type::record('invite_link', $link) RETURN NONE;
                     };
                     DELETE type::record('invite', $earlier) RETURN NONE;
                     DELETE type::record('org_invite', [$organization, $earlier]) RETURN NONE;
                 };
                 UPSERT type::record('invite', $invite.uuid) CONTENT $invite RETURN NONE;
                 UPSERT type::record('org_invite', [$organization, $invite.uuid])
                     CONTENT {} RETURN NONE;
                 UPSERT type::record('invite_email', [$organization, $invite.email_key])
                     CONTENT { invite: $invite.uuid } RETURN NONE;
                 FOR $link IN $invite.links {
                     UPSERT type::record('invite_link', $link)
                         CONTENT { invite: $invite.uuid } RETURN NONE;
                 };
             };
             LET $all = (SELECT VALUE record::id(id)[1]
                         FROM org_invite:[$organization]..=[$organization, ..]);
             IF array::len($all) > math::max([$before, $most]) { THROW 'full' };
             IF $members_most != NONE {
                 LET $members_now = array::len((SELECT VALUE record::id(id)[2]
                     FROM org_member:[$organization]..=[$organization, ..]));
                 LET $open = array::len((SELECT VALUE uuid FROM (
                     SELECT VALUE type::record('invite', record::id(id)[1])
                     FROM org_invite:[$organization]..=[$organization, ..])
                     WHERE created_at >= $valid_since));
                 IF $members_now + $open > $members_most { THROW 'members' };
             };",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// How many invites and members an organization may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InviteBounds {
    /// Invites that are not accepted, expired ones too.
    pub most: usize,
    /// Members, together with the invites that can be accepted; `None`: no limit.
    pub members: Option<u64>,
    /// Invites that were created before this time have expired.
    pub valid_since: Timestamp,
}

impl InviteBounds {
    /// So many invites, and no limit of members.
    #[must_use]
    pub const fn of(most: usize) -> Self {
        Self { most, members: None, valid_since: Timestamp::EPOCH }
    }
}

/// The result of creating invites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The invites are stored.
    Yes,
    /// The organization would have more invites than allowed. Nothing was written.
    TooMany,
    /// The organization would have more members than its limit, if all of them were accepted.
    /// Nothing was written.
    OverLimit,
    /// The organization is deleted. Nothing was written.
    Gone,
}

/// Adds invites to an organization together with their mails, all or none. Each replaces
/// an earlier invite of the same address, also within one call.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    invites: &[InviteRow],
    bounds: InviteBounds,
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<Created> {
    let Some(last) = invites.last() else { return Ok(Created::Yes) };
    let vars = bind! {
        most: i64::try_from(bounds.most).unwrap_or(i64::MAX),
        members_most: bounds.members.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
        valid_since: bounds.valid_since.micros(),
        organization: organization.0,
        last: last.id.0,
        invites: invites.iter().map(Stored::from).collect::<Vec<_>>(),
        mails: mail::stored(mails)?,
    };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) if reason == "full" => Ok(Created::TooMany),
        Err(Error::Refused { reason, .. }) if reason == "members" => Ok(Created::OverLimit),
        Err(Error::Refused { .. }) => Ok(Created::Gone),
        Err(error) => Err(error),
    }
}

/// Removes the invite `$invite` of `$organization` with the record `$row` from its lists.
/// Used by the transactions that do this.
macro_rules! remove_invite {
    () => {
        "FOR $link IN $row.links {
             DELETE type::record('invite_link', $link) RETURN NONE;
         };
         DELETE type::record('invite', $invite) RETURN NONE;
         DELETE type::record('org_invite', [$organization, $invite]) RETURN NONE;
         LET $of_address = (SELECT VALUE invite FROM ONLY
             type::record('invite_email', [$organization, $row.email_key]));
         IF $of_address = $invite {
             DELETE type::record('invite_email', [$organization, $row.email_key]) RETURN NONE;
         };"
    };
}
pub(crate) use remove_invite;

const DELETE: Statement = Statement::delete(
    "invites delete",
    concat!(
        "BEGIN;
         LET $row = (SELECT * FROM ONLY type::record('invite', $invite));
         IF $row != NONE AND $row.organization = $organization {",
        remove_invite!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes an invite of this organization. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(
    store: &Store,
    organization: OrganizationId,
    invite: InviteId,
    activities: &[Entry],
) -> Result<()> {
    let vars = bind! { organization: organization.0, invite: invite.0 };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}

// Ids rise with the time of creation. The statement reads the keys of all invites, which
// are small.
const OLD: Statement = Statement::read(
    "invites old",
    "SELECT VALUE record::id(id) FROM org_invite WHERE record::id(id)[1] < $before LIMIT 1000;",
)
.within(std::time::Duration::from_secs(30));

/// Removes invites that were created before this time, at most a thousand.
///
/// # Errors
/// Any failure of the store.
pub async fn prune(store: &Store, before: Timestamp) -> Result<()> {
    let vars = bind! { before: ids::first_of(before.micros().div_euclid(1_000)) };
    for key in store.db.run(OLD, vars).await?.rows::<Vec<Uuid>>(0)? {
        if let [organization, invite] = key[..] {
            delete(store, OrganizationId(organization), InviteId(invite), &[]).await?;
        }
    }
    Ok(())
}

/// A user who accepts an invite.
#[derive(Debug)]
pub struct Acceptance<'a> {
    /// The invite that is accepted.
    pub invite: &'a InviteRow,
    /// The user who accepts it.
    pub user: UserId,
    /// The record of the user, when the user is created with this call.
    pub new_user: Option<&'a UserRow>,
    /// The first proof of the address, if a provider gives one to a user who existed before.
    pub proof: Option<&'a FirstProof>,
    /// Id of the membership.
    pub membership: MembershipId,
    /// Level of the membership.
    pub level: Level,
    /// The project that the user sees first.
    pub project: Option<ProjectId>,
    /// The number of members that the organization may have; `None`: no limit.
    pub members_most: Option<u64>,
    /// The mails about the new member.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// The result of accepting an invite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// The user is a member, and the invite is deleted.
    Yes,
    /// The invite or its organization is deleted. Nothing was written.
    Gone,
    /// The user who made the invite has left the organization, is deactivated, or no
    /// longer has the level of the invite. Nothing was written.
    Void,
    /// The user was a member before. Nothing was written.
    AlreadyMember,
    /// The organization has as many members as its limit. Nothing was written.
    OverLimit,
    /// The address of the new user belongs to another user. Nothing was written.
    EmailTaken,
}

// Of two concurrent calls the second one finds no invite. A retry of the first one finds
// its own membership and writes nothing. Writing the organization's record makes this
// conflict with changes of the level of the user who made the invite.
const ACCEPT: Statement = Statement::write(
    "invites accept",
    concat!(
        "BEGIN;
         LET $member = (SELECT VALUE uuid
                        FROM ONLY type::record('membership', [$organization, $user]));
         IF $member != $membership.uuid {
             LET $row = (SELECT * FROM ONLY type::record('invite', $invite));
             IF $row = NONE { THROW 'gone' };",
        touch_organization!("$organization", "gone"),
        "IF $member != NONE { THROW 'member' };",
        refuse_full!(),
        "IF record::exists(type::record('scim_deactivated', [$organization, $user])) {
                 THROW 'void'
             };
             LET $inviter_level = (SELECT VALUE level FROM ONLY
                 type::record('membership', [$organization, $row.created_by]));
             LET $inviter_is_active = (SELECT VALUE is_active FROM ONLY
                 type::record('user', $row.created_by));
             IF $inviter_is_active != true OR $inviter_level = NONE
                 OR $inviter_level < $row.level { THROW 'void' };
             IF $new_user != NONE {
                 LET $other_user = (SELECT VALUE user FROM ONLY type::record('user_email', $row.email_key));
                 IF $other_user != NONE { THROW 'email' };
                 UPSERT type::record('user_email', $row.email_key)
                     CONTENT { user: $user } RETURN NONE;
                 UPSERT type::record('user', $user) CONTENT $new_user RETURN NONE;
             };",
        first_proof!(),
        write_membership!("$organization"),
        "UPDATE type::record('user', $user)
             SET current_organization = $organization, current_project = $project RETURN NONE;",
        remove_invite!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Makes the user a member, creates the user if `new_user` is set, and deletes the invite.
///
/// # Errors
/// Any failure of the store.
pub async fn accept(store: &Store, new: Acceptance<'_>, now: Timestamp) -> Result<Accepted> {
    let vars = bind! {
        invite: new.invite.id.0,
        organization: new.invite.organization.0,
        user: new.user.0,
        new_user: new.new_user.cloned(),
        proof: new.proof.cloned(),
        membership: StoredMembership::new(new.membership, new.level, now),
        project: new.project.map(|project| project.0),
        members_most: new.members_most.map(|most| i64::try_from(most).unwrap_or(i64::MAX)),
        mails: mail::stored(new.mails)?,
    };
    match activity::change(store, ACCEPT, vars, new.activities).await {
        Ok(_) => Ok(Accepted::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "member" => Accepted::AlreadyMember,
            "email" => Accepted::EmailTaken,
            "void" => Accepted::Void,
            "members" => Accepted::OverLimit,
            _ => Accepted::Gone,
        }),
        Err(error) => Err(error),
    }
}
