//! The second factor: codes from an app, and recovery codes (SEC-8, ADR 10).
//!
//! What belongs here: setting up a factor, proving it, changing and ending it. What
//! does not: the sign-in that asks for it (`pending`), the codes (`totp`, `recovery`),
//! passkeys (`passkeys`), which are a second factor too.
//!
//! A change of the factor ends all sessions of the user except the one in which it is
//! made, which gets a new token.

mod recovery;
mod totp;

#[cfg(test)]
pub(in crate::identity) mod tests;

use uuid::Uuid;
use weir_model::activity::{AuditAction, Subject};
use weir_model::errors::FieldError;
use weir_model::mail::UserChange;
use weir_model::sso::OpenedBy;
use weir_model::{OrganizationId, Timestamp, UserId};
use weir_store::second_factor::{self as rows, Change, FactorRow, Proof, Renewal, Used};
use weir_store::users::{self as user_rows, UserRow};
use weir_store::{ids, organizations, passkeys, sessions};

use super::throttle::{Caller, Counted};
use super::{Identity, NewSession, Peer, emails};
use crate::activity::{self, About, Changes};
use crate::ctx::{Actor, Ctx};
use crate::error::Error;
use crate::sealing::{SealedField, SealedLocation};
use crate::{Core, Result, mail, policy, secrets, users};

/// Seconds in which a new factor must be confirmed.
const CONFIRM_SECONDS: i64 = 10 * 60;
/// The message for a wrong code.
const WRONG: &str = "This code is not right, or was used before. Enter the one that is shown now.";
/// The message when a factor was not confirmed in time.
const LATE: &str = "This set-up is not waiting any more. Begin it again.";
/// The message when a user with a factor begins to set up another one.
const ON_ALREADY: &str = "Two-step sign-in is on already.";
/// The message when a user without a factor wants to change it.
const NOT_ON: &str = "Two-step sign-in is not on.";

/// The state of a user's second factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondFactor {
    /// Since when it is requested; `None`: it is off.
    pub since: Option<Timestamp>,
    /// Whether there is an authenticator app.
    pub has_app: bool,
    /// How many recovery codes are unused.
    pub codes_left: usize,
    /// Names of the organizations that require a second factor in this session.
    pub demanded_by: Vec<String>,
}

/// A factor that waits to be confirmed. It holds a secret, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Enrolment {
    /// The secret that codes are computed from, in base32.
    pub secret: String,
    /// The address of the user, which the app shows next to its codes.
    pub email: String,
    /// When the set-up expires.
    pub expires_at: Timestamp,
}

/// A factor that was just confirmed. It holds secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// The session that replaces the one in which the factor was confirmed.
    pub session: NewSession,
    /// The recovery codes. Only their hashes are stored.
    pub codes: Vec<String>,
}

impl Identity {
    /// The state of the caller's second factor.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn second_factor(&self, ctx: &Ctx) -> Result<SecondFactor> {
        policy::person_only(ctx)?;
        let store = &self.core.store;
        let row = rows::get(store, ctx.user()).await?.filter(|row| row.since.is_some());
        let memberships = organizations::of_user(store, ctx.user()).await?;
        let mut demanded_by = Vec::new();
        for membership in memberships.into_iter().filter(|one| one.row.enforce_2fa) {
            if !is_exempt(&self.core, ctx, membership.row.id).await? {
                demanded_by.push(membership.row.name);
            }
        }
        Ok(SecondFactor {
            since: row.as_ref().and_then(|row| row.since),
            has_app: row.as_ref().is_some_and(|row| row.confirmed_at.is_some()),
            codes_left: row.map_or(0, |row| row.codes.len()),
            demanded_by,
        })
    }

    /// Begins the set-up of an app. It replaces a set-up that was not confirmed.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`]; [`Error::Conflict`] when
    /// the user has an app.
    pub async fn begin_second_factor(&self, ctx: &Ctx) -> Result<()> {
        policy::recent_person_only(ctx)?;
        let user = ctx.user();
        let secret = zeroize::Zeroizing::new(secrets::random::<{ totp::SECRET }>()?);
        let sealed = self.core.sealer.seal(&location(user), secret.as_slice()).await?;
        let factor = ids::time_ordered(ctx.now);
        match rows::begin(&self.core.store, user, factor, &sealed, ctx.now).await? {
            true => Ok(()),
            false => Err(conflict(ON_ALREADY)),
        }
    }

    /// The caller's app that waits to be confirmed, if there is one.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`].
    pub async fn enrolment(&self, ctx: &Ctx) -> Result<Option<Enrolment>> {
        policy::recent_person_only(ctx)?;
        let Some((row, sealed)) = self.begun(ctx).await? else { return Ok(None) };
        let user = self.user_row(ctx).await?;
        let secret = self.core.sealer.open(&location(user.id), &sealed)?;
        Ok(Some(Enrolment {
            secret: totp::base32(secret.bytes()),
            email: user.email,
            expires_at: row.begun_at.plus_seconds(CONFIRM_SECONDS),
        }))
    }

    /// Cancels the set-up of an app.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn cancel_second_factor(&self, ctx: &Ctx) -> Result<()> {
        policy::person_only(ctx)?;
        Ok(rows::cancel(&self.core.store, ctx.user()).await?)
    }

    /// Confirms an app with one of its codes. From now on every sign-in asks for a
    /// code. All other sessions end, and so do sign-ins that wait. New recovery codes
    /// replace those that came with a passkey. The user gets a mail.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`]; [`Error::Invalid`] with
    /// `2fa_invalid`; [`Error::Conflict`] when no factor waits; [`Error::Throttled`].
    pub async fn confirm_second_factor(
        &self,
        ctx: &Ctx,
        code: &str,
        peer: &Peer,
    ) -> Result<Confirmed> {
        let session = recent_session(ctx)?;
        let (row, sealed) = self.begun(ctx).await?.ok_or_else(|| conflict(LATE))?;
        let user = self.user_row(ctx).await?;
        let counted = self.count_code(user.id, peer, Caller::Recognized(session)).await?;
        let step = self.step_of(user.id, &sealed, row.last_step, code, ctx.now)?;
        let step = step.ok_or_else(wrong_code)?;
        let (codes, hashes) = new_codes(user.id)?;
        let changes = match user.second_factor {
            None => switched(true),
            Some(_) => app(true),
        };
        let audit_entry = users::audit_entry(&self.core, ctx, &user, changes).await?;
        let (new, opened) = self.renewed_session(user.id, peer, session).await?;
        let proof = Proof::Step(step);
        let change = Change {
            factor: row.factor,
            proof: &proof,
            replaced: session,
            session: &new,
            activities: &audit_entry,
        };
        let news = mail::of_change(&user, UserChange::AuthenticatorAppAdded, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [news]);
        match rows::confirm(&self.core.store, change, &sealed, hashes, &mails).await? {
            Used::Yes => {}
            Used::Before | Used::Void => return Err(conflict(LATE)),
        }
        self.core.mailing.wake();
        self.attempt_succeeded(counted).await?;
        tracing::info!(user.id = %user.id, request.id = ctx.request_id, "a second factor is on");
        Ok(Confirmed { session: opened, codes })
    }

    /// Removes the app, with one of its codes or a recovery code. That turns the factor
    /// off, unless the user has passkeys. All other sessions end, and the user gets a
    /// mail.
    ///
    /// # Errors
    /// As [`Identity::confirm_second_factor`].
    pub async fn disable_second_factor(
        &self,
        ctx: &Ctx,
        code: &str,
        peer: &Peer,
    ) -> Result<NewSession> {
        let session = recent_session(ctx)?;
        let user = self.user_row(ctx).await?;
        let store = &self.core.store;
        let has_app =
            rows::get(store, user.id).await?.is_some_and(|row| row.confirmed_at.is_some());
        let factor = user.second_factor.filter(|_| has_app).ok_or_else(|| conflict(NOT_ON))?;
        let caller = Caller::Recognized(session);
        let counted = self.count_typed_code(user.id, code, peer, caller).await?;
        let proof = self.proof(user.id, factor, code).await?.ok_or_else(wrong_code)?;
        let stays_on = !passkeys::of_user(store, user.id).await?.is_empty();
        let (changes, news) = match stays_on {
            true => (app(false), UserChange::AuthenticatorAppRemoved),
            false => (switched(false), UserChange::SecondFactorOff),
        };
        let audit_entry = users::audit_entry(&self.core, ctx, &user, changes).await?;
        let (new, opened) = self.renewed_session(user.id, peer, session).await?;
        let change = Change {
            factor,
            proof: &proof,
            replaced: session,
            session: &new,
            activities: &audit_entry,
        };
        let mails = self.core.mailing.rows(ctx.now, [mail::of_change(&user, news, ctx.now)]);
        settled(rows::disable(store, change, stays_on, &mails).await?)?;
        self.core.mailing.wake();
        self.attempt_succeeded(counted).await?;
        tracing::info!(user.id = %user.id, request.id = ctx.request_id, "an app was removed");
        Ok(opened)
    }

    /// Replaces all recovery codes, with a code of the factor or a recovery code. The user
    /// gets a mail.
    ///
    /// # Errors
    /// As [`Identity::confirm_second_factor`].
    pub async fn renew_recovery_codes(
        &self,
        ctx: &Ctx,
        code: &str,
        peer: &Peer,
    ) -> Result<Vec<String>> {
        let session = recent_session(ctx)?;
        let user = self.user_row(ctx).await?;
        let factor = user.second_factor.ok_or_else(|| conflict(NOT_ON))?;
        let caller = Caller::Recognized(session);
        let counted = self.count_typed_code(user.id, code, peer, caller).await?;
        let proof = self.proof(user.id, factor, code).await?.ok_or_else(wrong_code)?;
        let codes = self.renew_with(ctx, &user, factor, &proof).await?;
        self.attempt_succeeded(counted).await?;
        Ok(codes)
    }

    /// Replaces all recovery codes, with a proof of the factor.
    pub(super) async fn renew_with(
        &self,
        ctx: &Ctx,
        user: &UserRow,
        factor: Uuid,
        proof: &Proof,
    ) -> Result<Vec<String>> {
        let (codes, hashes) = new_codes(user.id)?;
        let changes = Changes::none().secret("recovery_codes");
        let audit_entry = users::audit_entry(&self.core, ctx, user, changes).await?;
        let news = mail::of_change(user, UserChange::RecoveryCodesReplaced, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [news]);
        let renewal = Renewal {
            user: user.id,
            factor,
            proof,
            codes: hashes,
            attempt: ids::time_ordered(ctx.now),
            mails: &mails,
            activities: &audit_entry,
        };
        settled(rows::renew(&self.core.store, renewal).await?)?;
        self.core.mailing.wake();
        Ok(codes)
    }

    /// Removes the second factor of a user, app and passkeys, for the operator when the
    /// user is locked out. All sessions of the user end, and the user gets a mail. `None`:
    /// there is no such user; `false`: the user has no factor.
    pub async fn remove_second_factor(&self, email: &str) -> Result<Option<bool>> {
        let store = &self.core.store;
        let found = user_rows::by_email(store, &emails::normalise(email)).await?;
        let Some(user) = found else { return Ok(None) };
        if user.second_factor.is_none() {
            return Ok(Some(false));
        }
        let now = self.core.clock.now();
        let entry = |membership: &organizations::Belonging| {
            let about = About {
                subject: Subject::User,
                id: user.id.to_string(),
                name: Some(&user.email),
                project: None,
            };
            activity::own_entry(
                now,
                membership.row.id,
                about,
                AuditAction::Updated,
                switched(false),
            )
        };
        let memberships = organizations::of_user(store, user.id).await?;
        let audit_entry: Vec<_> = memberships.iter().map(entry).collect();
        let notice = mail::of_change(&user, UserChange::SecondFactorTakenAway, now);
        let mails = self.core.mailing.rows(now, [notice]);
        rows::remove(store, user.id, now, &audit_entry, &mails).await?;
        Ok(Some(true))
    }

    /// Counts an attempt with a typed code. A recovery code cannot be guessed, so
    /// attempts of unknown clients do not delay it.
    pub(super) async fn count_typed_code(
        &self,
        user: UserId,
        typed: &str,
        peer: &Peer,
        caller: Caller<'_>,
    ) -> Result<Counted> {
        if recovery::hash(user, typed).is_some() && caller == Caller::Unknown {
            return self.count_by_network(peer).await;
        }
        self.count_code(user, peer, caller).await
    }

    /// The kind of proof that a typed text is for this factor; `None`: it proves
    /// nothing.
    pub(super) async fn proof(
        &self,
        user: UserId,
        factor: Uuid,
        typed: &str,
    ) -> Result<Option<Proof>> {
        let row = rows::get(&self.core.store, user).await?;
        let is_meant = |row: &FactorRow| row.factor == factor && row.since.is_some();
        let Some(row) = row.filter(is_meant) else { return Ok(None) };
        if let Some(hash) = recovery::hash(user, typed) {
            return Ok(row.codes.contains(&hash).then_some(Proof::Recovery(hash)));
        }
        let Some(sealed) = row.secret.as_ref().filter(|_| row.confirmed_at.is_some()) else {
            return Ok(None);
        };
        let now = self.core.clock.now();
        Ok(self.step_of(user, sealed, row.last_step, typed, now)?.map(Proof::Step))
    }

    /// The time step of a typed code of the app with this sealed secret.
    fn step_of(
        &self,
        user: UserId,
        sealed: &str,
        last_step: Option<i64>,
        typed: &str,
        now: Timestamp,
    ) -> Result<Option<i64>> {
        let Some(code) = totp::typed(typed) else { return Ok(None) };
        let secret = self.core.sealer.open(&location(user), sealed)?;
        totp::matching(secret.bytes(), code, now, last_step)
    }

    /// The caller's app that waits to be confirmed, until it expires, with its sealed
    /// secret.
    async fn begun(&self, ctx: &Ctx) -> Result<Option<(FactorRow, String)>> {
        let row = rows::get(&self.core.store, ctx.user()).await?;
        let row = row.filter(|row| {
            row.confirmed_at.is_none() && ctx.now < row.begun_at.plus_seconds(CONFIRM_SECONDS)
        });
        Ok(row.and_then(|row| row.secret.clone().map(|sealed| (row, sealed))))
    }

    pub(super) async fn user_row(&self, ctx: &Ctx) -> Result<UserRow> {
        user_rows::get(&self.core.store, ctx.user()).await?.ok_or(Error::NotAuthenticated)
    }
}

/// Refuses a user without a second factor where the organization requires one (API-41).
/// Keys are not refused: their owner gave them their scopes. Not refused either are sessions
/// of a provider that the organization trusts about the address of the user, because that
/// provider may ask for more than a password, and sessions of the operator's link where the
/// user's domain requires a provider.
pub(crate) async fn refuse_without(
    core: &Core,
    ctx: &Ctx,
    organization: OrganizationId,
) -> Result<()> {
    if matches!(ctx.actor, Actor::Key { .. }) {
        return Ok(());
    }
    let row = organizations::get(&core.store, organization).await?;
    if !row.is_some_and(|row| row.enforce_2fa) {
        return Ok(());
    }
    let user = user_rows::get(&core.store, ctx.user()).await?;
    if user.is_some_and(|user| user.second_factor.is_some()) {
        return Ok(());
    }
    match is_exempt(core, ctx, organization).await? {
        true => Ok(()),
        false => Err(Error::SecondFactorMissing),
    }
}

/// Whether an organization that requires a second factor does not ask this caller for it.
async fn is_exempt(core: &Core, ctx: &Ctx, organization: OrganizationId) -> Result<bool> {
    let Actor::Session { session, user, .. } = &ctx.actor else { return Ok(true) };
    let found = sessions::get(&core.store, session).await?;
    let Some(session) = found else { return Ok(false) };
    match session.opened_by {
        OpenedBy::Connection(_) => core.is_trusted(&session, organization).await,
        OpenedBy::Operator => match user_rows::get(&core.store, *user).await? {
            Some(user) => Ok(core.enforcement(&user.email).await?.is_some()),
            None => Ok(false),
        },
        OpenedBy::Password | OpenedBy::Passkey => Ok(false),
    }
}

/// The refusal of a code, the same for every reason.
pub(super) fn wrong_code() -> Error {
    Error::Invalid(FieldError::body("2fa_invalid", WRONG))
}

/// The place of the sealed secret of a user. It belongs to no organization.
fn location(user: UserId) -> SealedLocation {
    SealedLocation::new(SealedField::SecondFactorSecret, user, OrganizationId(Uuid::nil()))
}

/// The session of a user who has recently proved their identity.
pub(super) fn recent_session(ctx: &Ctx) -> Result<&str> {
    policy::recent_person_only(ctx)?;
    super::sessions::session_of_user(ctx)
}

/// New recovery codes, and their hashes.
pub(super) fn new_codes(user: UserId) -> Result<(Vec<String>, Vec<String>)> {
    let codes = recovery::new()?;
    let hashes = codes.iter().filter_map(|code| recovery::hash(user, code)).collect();
    Ok((codes, hashes))
}

pub(super) fn switched(on: bool) -> Changes {
    Changes::none().field("is_2fa_enabled", &!on, &on)
}

/// The change of an app while passkeys keep the factor on.
fn app(added: bool) -> Changes {
    Changes::none().field("has_authenticator_app", &!added, &added)
}

fn settled(used: Used) -> Result<()> {
    match used {
        Used::Yes => Ok(()),
        Used::Before => Err(wrong_code()),
        Used::Void => Err(conflict(NOT_ON)),
    }
}

fn conflict(detail: &str) -> Error {
    Error::Conflict { code: "2fa_state", detail: detail.to_owned() }
}
