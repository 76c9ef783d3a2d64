//! Invites to organizations, until they are taken up or deleted.
//!
//! What belongs here: statements about `invite` and its two lists. What does
//! not: who may invite whom, when an invite expires (`weir-service`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `invite` | invite | the record |
//! | `org_invite` | `[organization, invite]` | nothing: the list, oldest first |
//! | `invite_email` | `[organization, address]` | the one invite of the address |
//! | `invite_link` | SHA-256 of a token | the invite that a link with this token opens |

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{InviteId, MembershipId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::members::write_membership;
use crate::organizations::{StoredMembership, to_level, touch_organization};
use crate::users::{self, UserRow};
use crate::{Error, Result, Store, lists};

/// An invite as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteRow {
    /// Id.
    pub id: InviteId,
    /// The organization.
    pub organization: OrganizationId,
    /// Address as it was given.
    pub target_email: String,
    /// The form in which addresses are compared.
    pub email_key: String,
    /// First name of the invited person; may be empty.
    pub first_name: String,
    /// Level that the person gets.
    pub level: Level,
    /// Words for the invited person.
    pub message: Option<String>,
    /// Who invited.
    pub created_by: UserId,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether a mail was tried to be sent.
    pub emailing_attempt_made: bool,
    /// SHA-256 of the tokens of its links: the one that was handed out when it
    /// was made, and one for each try to mail it. Empty in data from before links
    /// had tokens.
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

/// The invite with this id, whichever organization it is to: for mails.
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

/// The invite that a link opens whose token has this hash. It is found by the hash,
/// so that no secret is compared.
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

/// Notes one more link of an invite, by the hash of its token. `false`: the invite
/// is gone.
///
/// # Errors
/// Any failure of the store.
pub async fn add_link(store: &Store, invite: InviteId, hash: &str) -> Result<bool> {
    is_done(store.db.run(ADD_LINK, bind! { invite: invite.0, hash: hash }).await)
}

const ORDERED: Statement = Statement::read(
    "invites ordered",
    "SELECT VALUE record::id(id)[1] FROM org_invite:[$organization]..=[$organization, ..];",
);

/// The invites of an organization, oldest first: ids only.
///
/// # Errors
/// Any failure of the store.
pub async fn ordered(store: &Store, organization: OrganizationId) -> Result<Vec<InviteId>> {
    lists::ids(store, ORDERED, bind! { organization: organization.0 }, InviteId).await
}

/// Invites of an organization, in the order of `invites`; what is gone is left
/// out.
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

// It writes the organization's record for the reason given at
// `projects::CREATE`. A second run after a lost answer finds its last invite
// there and writes nothing, so that no mail is sent twice.
const CREATE: Statement = Statement::write(
    "invites create",
    concat!(
        "BEGIN;",
        touch_organization!("$organization", "organization"),
        "LET $present = (SELECT VALUE uuid FROM ONLY type::record('invite', $last));
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
             };",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Adds invites to an organization with the mails that tell of them, all or
/// none. Each replaces an earlier one of its address, in the same list too.
/// `false`: the organization is gone.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    organization: OrganizationId,
    invites: &[InviteRow],
    mails: &[MailRow],
    activities: &[Entry],
) -> Result<bool> {
    let Some(last) = invites.last() else { return Ok(true) };
    let vars = bind! {
        organization: organization.0,
        last: last.id.0,
        invites: invites.iter().map(Stored::from).collect::<Vec<_>>(),
        mails: mail::stored(mails)?,
    };
    is_done(activity::change(store, CREATE, vars, activities).await)
}

/// Removes the invite `$invite` of `$organization` with the record `$row` from
/// its lists. Part of the transactions that do so.
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

const DELETE: Statement = Statement::read(
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

/// Deletes an invite of this organization. Deleting what is gone does nothing.
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

/// A user who takes up an invite.
#[derive(Debug)]
pub struct Acceptance<'a> {
    /// The invite.
    pub invite: &'a InviteRow,
    /// The user.
    pub user: UserId,
    /// The user's account, when it is made with this.
    pub account: Option<&'a UserRow>,
    /// Id of the membership.
    pub membership: MembershipId,
    /// Level of the membership.
    pub level: Level,
    /// The project that the user looks at first.
    pub project: Option<ProjectId>,
    /// Mails that tell of it.
    pub mails: &'a [MailRow],
    /// What the activity log tells.
    pub activities: &'a [Entry],
}

/// What became of the attempt to take up an invite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// The user is a member, and the invite is gone.
    Yes,
    /// The invite, or its organization, is gone; nothing was written.
    Gone,
    /// Who made the invite has left, may not act, or no longer has its level;
    /// nothing was written.
    Void,
    /// The user was a member before; nothing was written.
    AlreadyMember,
    /// The address of the new account belongs to another; nothing was written.
    EmailTaken,
}

// Whoever comes second finds no invite. A second run of the winner itself finds
// its own membership and writes nothing. Writing the organization's record makes this
// collide with whatever changes the level of who made the invite.
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
        "IF $member != NONE { THROW 'member' };
             LET $inviter_level = (SELECT VALUE level FROM ONLY
                 type::record('membership', [$organization, $row.created_by]));
             LET $inviter_acts = (SELECT VALUE is_active FROM ONLY
                 type::record('user', $row.created_by));
             IF $inviter_acts != true OR $inviter_level = NONE
                 OR $inviter_level < $row.level { THROW 'void' };
             IF $account != NONE {
                 LET $owner = (SELECT VALUE user FROM ONLY type::record('user_email', $row.email_key));
                 IF $owner != NONE { THROW 'email' };
                 UPSERT type::record('user_email', $row.email_key)
                     CONTENT { user: $user } RETURN NONE;
                 UPSERT type::record('user', $user) CONTENT $account RETURN NONE;
             };",
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

/// Makes a user, who may be new, a member by an invite, and ends the invite.
///
/// # Errors
/// Any failure of the store.
pub async fn accept(store: &Store, new: Acceptance<'_>, now: Timestamp) -> Result<Accepted> {
    let vars = bind! {
        invite: new.invite.id.0,
        organization: new.invite.organization.0,
        user: new.user.0,
        account: new.account.map(users::Stored::from),
        membership: StoredMembership::new(new.membership, new.level, now),
        project: new.project.map(|project| project.0),
        mails: mail::stored(new.mails)?,
    };
    match activity::change(store, ACCEPT, vars, new.activities).await {
        Ok(_) => Ok(Accepted::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "member" => Accepted::AlreadyMember,
            "email" => Accepted::EmailTaken,
            "void" => Accepted::Void,
            _ => Accepted::Gone,
        }),
        Err(error) => Err(error),
    }
}
