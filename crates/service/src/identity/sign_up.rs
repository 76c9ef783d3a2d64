//! Accepting an invite: with the user of a session, or with a new user (API-35).
//!
//! What belongs here: the refusals and their order, and what is stored in one
//! transaction. What does not: creating invites (`invites`).

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::invites::{Invitation, LinkToken, SignUpInput, USER_FIRST_NAME_MAX};
use weir_model::mail::MailContent;
use weir_model::organizations::Level;
use weir_model::users::User;
use weir_model::{MembershipId, OrganizationId, Timestamp, UserId, validate};
use weir_store::invites::{self as invite_rows, Acceptance, Accepted, InviteRow};
use weir_store::organizations::{self, OrganizationRow};
use weir_store::proofs::FirstProof;
use weir_store::sessions::Proved;
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{ids, members};

use super::confirm::to_confirm;
use super::passwords::PasswordContext;
use super::{Identity, NewSession, Peer, emails};
use crate::activity::{self, Changes};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::invites::Inviter;
use crate::{Result, current, invites, limits, mail, secrets, users};

/// The data that the page of an invite's link shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The invitation.
    pub invitation: Invitation,
    /// First name of the inviter, unless that user is deleted.
    pub inviter: Option<String>,
    /// Level that the new member gets.
    pub level: Level,
    /// The inviter's message to the invited person.
    pub message: Option<String>,
}

/// The content of the page of an invite's link, which depends on the person who opens
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InviteLink {
    /// The invite can be accepted.
    Open(Shown),
    /// There is a user with this address, who must sign in first.
    SignIn(Shown),
    /// The signed-in user has another address.
    OtherAddress {
        /// Address that the invite is for.
        invited: String,
        /// Address of the signed-in user.
        present: String,
    },
    /// The signed-in user is a member already.
    AlreadyMember,
    /// The invite has expired.
    Expired,
    /// There is no such invite (any more).
    Unknown,
}

/// An invite that the person with its link may accept.
struct Open {
    row: InviteRow,
    token: LinkToken,
    home: OrganizationRow,
    inviter: Inviter,
}

impl Open {
    fn is_expired(&self, now: Timestamp) -> bool {
        invites::is_expired(&self.row, self.inviter.level, now)
    }
}

impl Identity {
    /// The data of an invite for the person who opens its link.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the code of API-35 when this person cannot accept it;
    /// [`Error::Throttled`].
    pub async fn invitation(&self, ctx: Option<&Ctx>, token: &str, peer: &Peer) -> Result<Shown> {
        let user = self.person(ctx).await?;
        let open = self.open_invite(token, user.as_ref(), peer).await?;
        if user.is_none() && self.has_user(&open.row).await? {
            let sign_in = format!("/login?next={}", open.token.path());
            return Err(FieldError::body("account_exists", sign_in).into());
        }
        Ok(shown(open))
    }

    /// Like [`Identity::invitation`], for the page of the link, which offers a next
    /// step in every case. A person with the link sees the content of the mail, and
    /// nothing of an expired invite.
    ///
    /// # Errors
    /// [`Error::Throttled`].
    pub async fn invite_link(
        &self,
        ctx: Option<&Ctx>,
        token: &str,
        peer: &Peer,
    ) -> Result<InviteLink> {
        let user = self.person(ctx).await?;
        let Some(open) = self.linked(token, peer).await? else { return Ok(InviteLink::Unknown) };
        if open.is_expired(self.core.clock.now()) {
            return Ok(InviteLink::Expired);
        }
        let Some(user) = user else {
            let has_user = self.has_user(&open.row).await?;
            let shown = shown(open);
            return Ok(match has_user {
                true => InviteLink::SignIn(shown),
                false => InviteLink::Open(shown),
            });
        };
        if !is_for(&open.row, &user) {
            let (invited, present) = (open.row.target_email, user.email);
            return Ok(InviteLink::OtherAddress { invited, present });
        }
        if self.belongs(&open.row, &user).await? {
            return Ok(InviteLink::AlreadyMember);
        }
        Ok(InviteLink::Open(shown(open)))
    }

    /// Makes the user of a session a member.
    ///
    /// # Errors
    /// As [`Identity::invitation`]; [`Error::Forbidden`] for a key.
    pub async fn join(&self, ctx: &Ctx, token: &str, peer: &Peer) -> Result<User> {
        crate::policy::person_only(ctx)?;
        let user = self.person(Some(ctx)).await?.ok_or(Error::NotAuthenticated)?;
        let open = self.open_invite(token, Some(&user), peer).await?;
        self.accept(ctx, &open.row, &open.home, &user, false, None).await?;
        Ok(users::shown(&user))
    }

    /// Creates a user with the address of the invite, and makes it a member. Where mail
    /// is set up, the address must be confirmed before the first sign-in, because more
    /// people know the link of an invite than can read its mailbox. Where it is not, a
    /// session is opened.
    ///
    /// # Errors
    /// As [`Identity::invitation`]; [`Error::Invalid`] at the first field that is
    /// wrong; [`Error::Unavailable`] when too many users sign in at the same time.
    pub async fn sign_up(
        &self,
        token: &str,
        input: impl FnOnce() -> Result<SignUpInput, FieldError>,
        peer: &Peer,
        request_id: &str,
    ) -> Result<(User, Option<NewSession>)> {
        let open = self.open_invite(token, None, peer).await?;
        self.refuse_password_user(&open.row.email_key).await?;
        if self.has_user(&open.row).await? {
            return Err(user_exists(&open.row));
        }
        let input = input()?;
        let first_name = validate::text("first_name", &input.first_name, USER_FIRST_NAME_MAX)?;
        let email = &open.row.target_email;
        let organization_names = [open.home.name.as_str()];
        let about =
            PasswordContext { email, organizations: &organization_names, first_name: &first_name };
        let password = self.hasher.queue_of(peer)?.choose(&input.password, &about).await?;
        let hash = self.hasher.queue_of(peer)?.hash(password).await?;
        let now = self.core.clock.now();
        let user = UserRow {
            distinct_id: secrets::name()?,
            first_name,
            email: email.clone(),
            must_confirm: self.sends_mail(),
            password: Some(hash),
            ..UserRow::new(
                UserId(ids::time_ordered(now)),
                user_rows::next_number(&self.core.store).await?,
                now,
            )
        };
        let ctx = self.owner(&user, request_id);
        self.accept(&ctx, &open.row, &open.home, &user, true, None).await?;
        tracing::info!(user.id = %user.id, request.id = request_id, "an invited person signed up");
        let session = match user.must_confirm {
            true => None,
            false => Some(self.open_session(user.id, peer, None, Proved::of(&user)).await?),
        };
        Ok((users::shown(&user), session))
    }

    async fn person(&self, ctx: Option<&Ctx>) -> Result<Option<UserRow>> {
        match ctx {
            Some(ctx) => Ok(user_rows::get(&self.core.store, ctx.user()).await?),
            None => Ok(None),
        }
    }

    /// The invite behind a link, if this user may accept it (`None`: a person without a
    /// session).
    async fn open_invite(&self, token: &str, user: Option<&UserRow>, peer: &Peer) -> Result<Open> {
        let open = self.linked(token, peer).await?.ok_or_else(unknown)?;
        if user.is_some_and(|user| !is_for(&open.row, user)) {
            return Err(refused(
                "invalid_recipient",
                "This invite is intended for another email address.",
            ));
        }
        if open.is_expired(self.core.clock.now()) {
            return Err(expired());
        }
        if let Some(user) = user
            && self.belongs(&open.row, user).await?
        {
            return Err(already_member());
        }
        Ok(open)
    }

    /// The invite behind a link, for any person.
    async fn linked(&self, token: &str, peer: &Peer) -> Result<Option<Open>> {
        let counted = self.count_link(peer).await?;
        let core = &self.core;
        let Some(row) = invites::by_token(core, token).await? else { return Ok(None) };
        let home = organizations::get(&core.store, row.organization).await?;
        let Some(home) = home else { return Ok(None) };
        self.attempt_succeeded(counted).await?;
        let inviter = invites::inviter(core, row.organization, row.created_by).await?;
        Ok(Some(Open { row, token: LinkToken(token.to_owned()), home, inviter }))
    }

    async fn belongs(&self, row: &InviteRow, user: &UserRow) -> Result<bool> {
        let store = &self.core.store;
        Ok(organizations::level(store, row.organization, user.id).await?.is_some())
    }

    async fn has_user(&self, row: &InviteRow) -> Result<bool> {
        Ok(user_rows::by_email(&self.core.store, &row.email_key).await?.is_some())
    }

    /// Makes a user, who may be new, a member by an invite, with the first proof of the
    /// address and its audit entries, if there is one.
    pub(super) async fn accept(
        &self,
        ctx: &Ctx,
        row: &InviteRow,
        home: &OrganizationRow,
        user: &UserRow,
        is_new: bool,
        proof: Option<(FirstProof, Vec<Entry>)>,
    ) -> Result<()> {
        let store = &self.core.store;
        let membership = MembershipId(ids::time_ordered(ctx.now));
        let mut mails = self.announcements(home, user).await?;
        if is_new && user.must_confirm {
            mails.push(to_confirm(user.id));
        }
        let mails = self.core.mailing.rows(ctx.now, mails);
        let (proof, mut activities) = proof.unzip();
        let activities = activities.get_or_insert_default();
        activities.push(invites::entry(ctx, row, AuditAction::Accepted, Changes::none()));
        activities.push(joined(ctx, row.organization, membership, user, row.level));
        let project = current::first_project(&self.core, home.id).await?;
        let acceptance = Acceptance {
            invite: row,
            user: user.id,
            new_user: is_new.then_some(user),
            proof: proof.as_ref(),
            membership,
            level: row.level,
            project: project.as_ref().map(|project| project.brief.id),
            members_most: limits::members_most(&self.core, home),
            mails: &mails,
            activities,
        };
        match invite_rows::accept(store, acceptance, ctx.now).await? {
            Accepted::Yes => {
                let project = project.map(|project| project.brief.id);
                current::follow(&self.core, ctx, home.id, project).await;
            }
            Accepted::Gone => return Err(unknown()),
            Accepted::Void => return Err(expired()),
            Accepted::AlreadyMember => return Err(already_member()),
            Accepted::OverLimit => return Err(limits::members_full().into()),
            Accepted::EmailTaken => return Err(user_exists(row)),
        }
        if !mails.is_empty() {
            self.core.mailing.wake();
        }
        Ok(())
    }

    /// Mails to the other members, where the organization wants them.
    pub(crate) async fn announcements(
        &self,
        home: &OrganizationRow,
        user: &UserRow,
    ) -> Result<Vec<weir_model::mail::Mail>> {
        if !home.is_member_join_email_enabled || !self.core.mailing.is_open() {
            return Ok(Vec::new());
        }
        let store = &self.core.store;
        let others = members::ordered(store, home.id).await?;
        let others = members::rows(store, home.id, &others).await?;
        let news = || MailContent::Joined {
            member_name: user.first_name.clone(),
            member_email: user.email.clone(),
            organization: home.name.clone(),
        };
        Ok(others.iter().map(|other| mail::to(&other.user.email, news())).collect())
    }
}

fn is_for(row: &InviteRow, user: &UserRow) -> bool {
    emails::normalise(&user.email) == row.email_key
}

fn shown(open: Open) -> Shown {
    let Open { row, token, home, inviter } = open;
    let invitation = Invitation {
        id: token,
        target_email: row.target_email,
        first_name: row.first_name,
        organization_name: home.name,
    };
    let inviter = inviter.user.map(|inviter| inviter.first_name);
    Shown { invitation, inviter, level: row.level, message: row.message }
}

/// The audit entry about a new member.
pub(super) fn joined(
    ctx: &Ctx,
    organization: OrganizationId,
    membership: MembershipId,
    user: &UserRow,
    level: Level,
) -> Entry {
    let about = activity::About {
        subject: Subject::Member,
        id: membership.to_string(),
        name: Some(&user.email),
        project: None,
    };
    let changes = Changes::none().field("level", &None, &Some(level));
    activity::entry(ctx, organization, about, AuditAction::Created, changes)
}

fn refused(code: &str, detail: impl Into<String>) -> Error {
    Error::Invalid(FieldError::body(code, detail))
}

fn expired() -> Error {
    refused("expired", "This invite has expired. Please ask your admin for a new one.")
}

fn unknown() -> Error {
    refused("invalid_input", "The provided invite ID is not valid.")
}

fn already_member() -> Error {
    refused("user_already_member", "You already are a member of this organization.")
}

fn user_exists(row: &InviteRow) -> Error {
    let email = &row.target_email;
    refused(
        "invalid_input",
        format!(
            "There already exists an account with email address {email}. Please log in instead."
        ),
    )
}
