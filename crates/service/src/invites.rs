//! Invites to an organization: creating them, one or many, and deleting them (API-33,
//! API-34).
//!
//! What belongs here: what members do with invites. What does not: accepting one, which
//! a person without a user may do (`identity`).

mod listed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::invites::{
    self as model, BULK_MAX, INVITES_MAX, Invite, InviteInput, KEPT_SECONDS, LinkToken,
    VALID_SECONDS,
};
use weir_model::mail::MailContent;
use weir_model::organizations::Level;
use weir_model::pagination::{Page, Paged};
use weir_model::user_links::TOKEN_MAX;
use weir_model::users::User;
use weir_model::{InviteId, OrganizationId, Timestamp, UserId};
use weir_store::invites::{self as rows, Created, InviteBounds, InviteRow};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{ids, organizations};

use crate::activity::{self, About, Changes};
use crate::ctx::{Ctx, OrgCtx};
use crate::error::{Error, NOT_FOUND};
use crate::identity::emails;
use crate::limits::{self, INVITES_FULL, LIMIT_REACHED};
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::{Core, Result, mail, secrets, users};

pub use listed::{Listed, Verdict};

/// The message for inviting with a level above one's own.
pub const LEVEL_ABOVE: &str =
    "You cannot invite a user with a higher permission level than your own.";
/// The message for an address that has an invite with a level above one's own.
pub const INVITED_ABOVE: &str =
    "This address is invited already, with a higher permission level than your own.";
/// The message for inviting a member.
pub const MEMBER_ALREADY: &str =
    "A user with this email address already belongs to the organization.";
/// The message for too many invites in one request.
pub const TOO_MANY: &str = "A maximum of 20 invites can be sent in a single request.";

/// The service for invites.
#[derive(Clone)]
pub struct Invites {
    core: Arc<Core>,
}

impl Invites {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// The invites to the organization, newest first, with expired ones. Only callers
    /// who may delete an invite see its id: keys that write, and members who have its
    /// level.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn list(&self, org: &OrgCtx, page: Page) -> Result<Paged<Invite>> {
        policy::check(org, Action::ReadMembers)?;
        let store = &self.core.store;
        let mut ids = rows::ordered(store, org.organization).await?;
        ids.reverse();
        let count = ids.len() as u64;
        let found = rows::rows(store, org.organization, &page.slice(ids)).await?;
        let mut inviters: BTreeMap<UserId, Inviter> = BTreeMap::new();
        for user in found.iter().map(|row| row.created_by).collect::<BTreeSet<_>>() {
            inviters.insert(user, inviter(&self.core, org.organization, user).await?);
        }
        let writes = org.ctx.require(Action::ManageInvites.scope()).is_ok();
        let show = |row: InviteRow| {
            let inviter = inviters.get(&row.created_by);
            let level = inviter.and_then(|inviter| inviter.level);
            let user = inviter.and_then(|inviter| inviter.user.as_ref()).map(users::shown);
            let invite = shown(row, user, level, org.ctx.now);
            match writes && Self::may_hold(org, &invite) {
                true => invite,
                false => Invite { id: stand_in(invite.id), ..invite },
            }
        };
        Ok(Paged { count, results: found.into_iter().map(show).collect() })
    }

    /// Invites a person. An earlier invite of the address ends. Where mail is set up, a
    /// mail to the address is stored and sent in the background. Only this answer
    /// contains the token of the link; the mail has its own token.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] for a level above one's own;
    /// [`Error::Invalid`] for an address of a member, and when the organization has the
    /// maximum number of invites, or would get more members than its limit (API-58).
    pub async fn create(
        &self,
        org: &OrgCtx,
        input: impl Into<Unchecked<'_, InviteInput>>,
    ) -> Result<Invite> {
        let input = input.into();
        let made = self.create_all(org, Unchecked::new(|| Ok(vec![input.read()?]))).await?;
        made.into_iter().next().ok_or_else(|| Error::Internal("no invite was made".to_owned()))
    }

    /// Refuses a list of more invites than one request may have, before they are
    /// checked.
    ///
    /// # Errors
    /// The count is too large.
    pub fn refuse_too_many(count: usize) -> Result<(), FieldError> {
        if count > BULK_MAX {
            return Err(FieldError::body("max_length", TOO_MANY));
        }
        Ok(())
    }

    /// Invites any number of people. Of several invites of one address only the last
    /// one remains. The answer has all of them, in the order of the request.
    ///
    /// # Errors
    /// As [`Invites::create`]; [`Error::Invalid`] for too many.
    pub async fn create_all(
        &self,
        org: &OrgCtx,
        inputs: impl Into<Unchecked<'_, Vec<InviteInput>>>,
    ) -> Result<Vec<Invite>> {
        policy::check(org, Action::ManageInvites)?;
        let inputs = inputs.into().read()?;
        Self::refuse_too_many(inputs.len())?;
        let store = &self.core.store;
        let inviter = user_rows::get(store, org.ctx.user()).await?;
        let inviter = inviter.ok_or(Error::NotAuthenticated)?;
        let home = organizations::get(store, org.organization).await?;
        let home = home.ok_or(Error::NotFound(NOT_FOUND))?;
        let mut drafts = Vec::with_capacity(inputs.len());
        let mut tokens = BTreeMap::new();
        for input in inputs {
            if input.level > org.level {
                return Err(Error::Forbidden(LEVEL_ABOVE.to_owned()));
            }
            let email_key = emails::normalise(&input.target_email);
            self.refuse_members(org, &email_key).await?;
            // A new invite replaces that of the same address.
            let earlier = rows::of_address(store, org.organization, &email_key).await?;
            let is_above = |row: &InviteRow| {
                row.level > org.level && model::expires_at(row.created_at) >= org.ctx.now
            };
            if earlier.as_ref().is_some_and(is_above) {
                return Err(FieldError::body("invalid_input", INVITED_ABOVE).into());
            }
            let token = secrets::token()?;
            let draft = draft(org, input, email_key, token.hash());
            tokens.insert(draft.0.id, token);
            drafts.push(draft);
        }
        let lasting: BTreeSet<InviteId> = drafts
            .iter()
            .map(|(row, _)| (&row.email_key, row.id))
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect();
        let new_mails = drafts
            .iter()
            .filter(|(row, send_email)| *send_email && lasting.contains(&row.id))
            .map(|(row, _)| mail::to(&row.target_email, news(row, &inviter, &home.name)));
        let mails = self.core.mailing.rows(org.ctx.now, new_mails);
        let rows: Vec<InviteRow> = drafts.into_iter().map(|(row, _)| row).collect();
        let kept: Vec<InviteRow> =
            rows.iter().filter(|row| lasting.contains(&row.id)).cloned().collect();
        let activities: Vec<Entry> = kept.iter().map(|row| created(org, row)).collect();
        let bounds = InviteBounds {
            most: INVITES_MAX,
            members: limits::members_most(&self.core, &home),
            valid_since: org.ctx.now.plus_seconds(-VALID_SECONDS),
        };
        match rows::create(store, org.organization, &kept, bounds, &mails, &activities).await? {
            Created::Yes => {}
            Created::TooMany => return Err(too_many()),
            Created::OverLimit => {
                let fault = FieldError::new("target_email", LIMIT_REACHED, INVITES_FULL);
                return Err(fault.into());
            }
            Created::Gone => return Err(Error::NotFound(NOT_FOUND)),
        }
        if !mails.is_empty() {
            self.core.mailing.wake();
        }
        let inviter = users::shown(&inviter);
        let show = |row: InviteRow| {
            let token = tokens.remove(&row.id).filter(|_| lasting.contains(&row.id));
            let token = token.map(|token| LinkToken(token.reveal()));
            let invite = shown(row, Some(inviter.clone()), Some(org.level), org.ctx.now);
            Invite { token, ..invite }
        };
        Ok(rows.into_iter().map(show).collect())
    }

    /// Invites the person of an invite again with the same data, a new link and a new
    /// expiry.
    ///
    /// # Errors
    /// As [`Invites::create`]; [`Error::NotFound`].
    pub async fn renew(&self, org: &OrgCtx, invite: &str) -> Result<Invite> {
        policy::check(org, Action::ManageInvites)?;
        let missing = || Error::NotFound(NOT_FOUND);
        let invite = parse_id(invite).ok_or_else(missing)?;
        let row = rows::get(&self.core.store, org.organization, invite).await?;
        let row = row.ok_or_else(missing)?;
        let input = InviteInput {
            target_email: row.target_email,
            first_name: row.first_name,
            level: row.level,
            message: row.message,
            send_email: true,
        };
        self.create(org, input).await
    }

    /// Whether the actor may delete or renew an invite: only if they could have created
    /// it.
    pub fn may_hold(org: &OrgCtx, invite: &Invite) -> bool {
        invite.level <= org.level
    }

    /// Deletes an invite: its link stops working immediately.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::NotFound`], also for an invite above the actor's
    /// level.
    pub async fn delete(&self, org: &OrgCtx, invite: &str) -> Result<()> {
        policy::check(org, Action::ManageInvites)?;
        let store = &self.core.store;
        let missing = || Error::NotFound(NOT_FOUND);
        let invite = parse_id(invite).ok_or_else(missing)?;
        let row = rows::get(store, org.organization, invite).await?;
        // Members do not learn the id of an invite above their level.
        let row = row.filter(|row| row.level <= org.level).ok_or_else(missing)?;
        let activities = [entry(&org.ctx, &row, AuditAction::Deleted, Changes::none())];
        Ok(rows::delete(store, org.organization, invite, &activities).await?)
    }

    /// Removes invites that expired long ago.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn prune(&self) -> Result<()> {
        let before = self.core.clock.now().plus_seconds(-VALID_SECONDS - KEPT_SECONDS);
        Ok(rows::prune(&self.core.store, before).await?)
    }

    async fn refuse_members(&self, org: &OrgCtx, email_key: &str) -> Result<()> {
        if self.is_member(org, email_key).await? {
            return Err(FieldError::body("invalid_input", MEMBER_ALREADY).into());
        }
        Ok(())
    }

    async fn is_member(&self, org: &OrgCtx, email_key: &str) -> Result<bool> {
        let store = &self.core.store;
        let Some(user) = user_rows::by_email(store, email_key).await? else { return Ok(false) };
        Ok(organizations::level(store, org.organization, user.id).await?.is_some())
    }
}

fn too_many() -> Error {
    let detail = format!(
        "An organization may have at most {INVITES_MAX} invites that are not accepted, expired \
         ones too. Delete some first."
    );
    FieldError::body("invalid_input", detail).into()
}

fn draft(org: &OrgCtx, input: InviteInput, email_key: String, link: String) -> (InviteRow, bool) {
    let row = InviteRow {
        id: InviteId(ids::time_ordered(org.ctx.now)),
        organization: org.organization,
        target_email: input.target_email,
        email_key,
        first_name: input.first_name,
        level: input.level,
        message: input.message,
        created_by: org.ctx.user(),
        created_at: org.ctx.now,
        updated_at: org.ctx.now,
        emailing_attempt_made: false,
        links: vec![link],
    };
    (row, input.send_email)
}

fn news(row: &InviteRow, inviter: &UserRow, organization: &str) -> MailContent {
    MailContent::Invited {
        invite: row.id,
        token: None,
        first_name: row.first_name.clone(),
        inviter_name: inviter.first_name.clone(),
        inviter_email: inviter.email.clone(),
        organization: organization.to_owned(),
        message: row.message.clone(),
        expires_at: model::expires_at(row.created_at),
    }
}

fn created(org: &OrgCtx, row: &InviteRow) -> Entry {
    let changes = Changes::none().field("target_email", &None, &Some(&row.target_email)).field(
        "level",
        &None,
        &Some(row.level),
    );
    entry(&org.ctx, row, AuditAction::Created, changes)
}

/// The audit entry about an invite. It names the address, because more people read the
/// log than may know the id.
pub(crate) fn entry(ctx: &Ctx, row: &InviteRow, action: AuditAction, changes: Changes) -> Entry {
    let about = About {
        subject: Subject::Invite,
        id: row.target_email.clone(),
        name: Some(&row.target_email),
        project: None,
    };
    activity::entry(ctx, row.organization, about, action, changes)
}

/// The replacement for the id of an invite that is hidden from the caller. It is always
/// the same for an invite, and no operation accepts it.
fn stand_in(id: InviteId) -> InviteId {
    let hash = secrets::sha256_hex(&format!("weir invite {id}"));
    let number = hash.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok());
    InviteId(Uuid::from_u128(number.unwrap_or_default()))
}

/// The present state of the user who created an invite.
pub(crate) struct Inviter {
    /// The user, unless deleted.
    pub(crate) user: Option<UserRow>,
    /// Their level in the organization of the invite, if they still belong to it.
    pub(crate) level: Option<Level>,
}

/// The user behind `created_by` of an invite to this organization.
pub(crate) async fn inviter(
    core: &Core,
    organization: OrganizationId,
    user: UserId,
) -> Result<Inviter> {
    let user = user_rows::get(&core.store, user).await?;
    let level = match user.as_ref().filter(|user| user.is_active) {
        Some(user) => organizations::level(&core.store, organization, user.id).await?,
        None => None,
    };
    Ok(Inviter { user, level })
}

/// Whether an invite cannot be used at this time: it is too old, has no link, or its
/// inviter could not create it any more.
pub(crate) fn is_expired(row: &InviteRow, inviter: Option<Level>, now: Timestamp) -> bool {
    model::expires_at(row.created_at) < now
        || row.links.is_empty()
        || inviter.is_none_or(|level| level < row.level)
}

/// The invite that a link with this token opens.
pub(crate) async fn by_token(core: &Core, token: &str) -> Result<Option<InviteRow>> {
    if token.len() > TOKEN_MAX {
        return Ok(None);
    }
    Ok(rows::by_link(&core.store, &secrets::sha256_hex(token)).await?)
}

/// A new link for the mail of an invite; `None`: the invite is deleted. It is made when
/// the mail is sent, so that no store and no backup contains a token.
pub(crate) async fn mailed_link(core: &Core, invite: InviteId) -> Result<Option<LinkToken>> {
    let token = secrets::token()?;
    let noted = rows::add_link(&core.store, invite, &token.hash()).await?;
    Ok(noted.then(|| LinkToken(token.reveal())))
}

/// The id in a path. Only its usual written form is accepted.
fn parse_id(text: &str) -> Option<InviteId> {
    let id: InviteId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

fn shown(
    row: InviteRow,
    created_by: Option<User>,
    inviter: Option<Level>,
    now: Timestamp,
) -> Invite {
    Invite {
        is_expired: is_expired(&row, inviter, now),
        id: row.id,
        target_email: row.target_email,
        first_name: row.first_name,
        emailing_attempt_made: row.emailing_attempt_made,
        level: row.level,
        created_by,
        created_at: row.created_at,
        updated_at: row.updated_at,
        message: row.message,
        private_project_access: Vec::new(),
        token: None,
    }
}

#[cfg(test)]
mod tests;
