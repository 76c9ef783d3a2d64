//! Passkeys of a user (SSO-60 to SSO-68, ADR 22): listing, adding, renaming and removing
//! them, and the challenges that they answer.
//!
//! What belongs here: what the user may do with passkeys. What does not: signing in with one
//! (`entering`), and the checks of the protocol (`weir-webauthn`).
//!
//! A passkey signs a user in alone, because the authenticator verifies the user. It is also
//! a second factor: while a user has one, a password alone signs the user in nowhere.

mod entering;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};
use weir_model::errors::FieldError;
use weir_model::mail::UserChange;
use weir_model::{Timestamp, validate};
use weir_store::passkeys::{self as rows, Change, PasskeyOutcome, PasskeyRow, TurnsOn};
use weir_store::proofs::SignInMethods;
use weir_store::sso::pending::{self as pending_rows, PendingRow};
use weir_store::update::lock;
use weir_store::users::UserRow;
use weir_store::{ids, second_factor as factor_rows};
use weir_webauthn::{Challenge, Credential, NewPasskey, RelyingParty};

use super::confirm::changed_meanwhile;
use super::second_factor::{new_codes, recent_session, switched};
use super::sso::last_method;
use super::{Identity, NewSession, Origin, Peer, emails, flash};
use crate::activity::Changes;
use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NOT_FOUND};
use crate::{Result, mail, policy, secrets, users};

/// Most passkeys that a user may have.
const PASSKEYS_MAX: usize = 20;
/// Longest name of a passkey, in characters.
const NAME_MAX: usize = 64;
/// The message for an address that passkeys do not work at.
const NO_HOST_NAME: &str = "Passkeys need a host name and https, or localhost. They do not work at \
     this address.";
/// The message for an answer that was not accepted, the same for every reason.
const REFUSED: &str = "The passkey was not accepted. Try again, or use another way.";
/// The message for an answer without a challenge.
const LATE: &str = "This took too long, or was begun in another browser. Try again.";

/// A passkey as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPasskey {
    /// Its id.
    pub id: String,
    /// The name that the user gave it.
    pub name: String,
    /// When it was added.
    pub added_at: Timestamp,
    /// When it was last used.
    pub used_at: Option<Timestamp>,
    /// When it was last refused because its counter went back: there may be a copy.
    pub refused_at: Option<Timestamp>,
}

/// A challenge for the browser.
#[derive(Clone, PartialEq, Eq)]
pub struct PasskeyChallenge {
    /// The options of `navigator.credentials`, as JSON text with binary values in base64url.
    pub options: String,
    /// The token of the browser, for the cookie. It is not stored.
    pub browser: String,
}

/// A passkey that was just added. It can hold secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct AddedPasskey {
    /// The session that replaces the one in which it was added.
    pub session: NewSession,
    /// The recovery codes, if it turned the second factor on. Only their hashes are stored.
    pub codes: Vec<String>,
}

/// A passkey that was just removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedPasskey {
    /// The session that replaces the one in which it was removed.
    pub session: NewSession,
    /// Whether that turned the second factor off.
    pub turned_off: bool,
}

/// Whether browsers use passkeys at this site: it has a host name and TLS, or is on this
/// machine.
pub fn takes_passkeys(site: &str) -> bool {
    RelyingParty::at(site).is_some()
}

/// What a challenge is for. An answer counts for this alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Adding a passkey.
    Add,
    /// Signing in, by a user who is not known yet.
    SignIn,
    /// The second step of a sign-in with a password.
    SecondStep,
    /// Proving the identity once more in a session.
    Confirm,
}

impl Purpose {
    /// The key of a waiting challenge. A browser has one of each.
    const fn key(self) -> &'static str {
        match self {
            Self::Add => "passkey add",
            Self::SignIn => "passkey sign in",
            Self::SecondStep => "passkey second step",
            Self::Confirm => "passkey confirm",
        }
    }
}

/// What is kept of a challenge, sealed with the token of the browser.
#[derive(Serialize, Deserialize)]
struct StoredChallenge {
    /// What the authenticator signs.
    challenge: Challenge,
    /// Scheme and host of the page.
    site: String,
    /// The hash of the sign-in that waits for the second step.
    sign_in: Option<String>,
    /// What the authenticator keeps for the user, of a new passkey.
    handle: Option<Uuid>,
}

impl StoredChallenge {
    fn new(
        challenge: Challenge,
        sign_in: Option<String>,
        handle: Option<Uuid>,
        from: Origin<'_>,
    ) -> Self {
        Self { challenge, site: from.site.to_owned(), sign_in, handle }
    }
}

impl Identity {
    /// The passkeys of the caller, oldest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn own_passkeys(&self, ctx: &Ctx) -> Result<Vec<OwnPasskey>> {
        policy::person_only(ctx)?;
        let rows = rows::of_user(&self.core.store, ctx.user()).await?;
        let shown = |row: PasskeyRow| OwnPasskey {
            id: row.hash,
            name: row.name,
            added_at: row.added_at,
            used_at: row.used_at,
            refused_at: row.refused_at,
        };
        Ok(rows.into_iter().map(shown).collect())
    }

    /// Begins to add a passkey to the caller.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys and at a site without a host name,
    /// [`Error::SignInAgain`]; [`Error::Invalid`] with `sso_enforced` where the domain of
    /// the address requires a provider; [`Error::Conflict`] when the caller has as many as
    /// allowed.
    pub async fn begin_adding_passkey(
        &self,
        ctx: &Ctx,
        from: Origin<'_>,
    ) -> Result<PasskeyChallenge> {
        policy::recent_person_only(ctx)?;
        let user = self.user_row(ctx).await?;
        self.refuse_password(&emails::normalise(&user.email)).await?;
        let party = party(from.site)?;
        let store = &self.core.store;
        let present = rows::of_user(store, user.id).await?;
        if present.len() >= PASSKEYS_MAX {
            return Err(too_many());
        }
        // Random, so that an authenticator reveals nothing about the user.
        let new = Builder::from_random_bytes(secrets::random::<16>()?).into_uuid();
        let handle = rows::handle(store, user.id, new).await?;
        let challenge = challenge()?;
        let new = NewPasskey {
            handle: handle.as_bytes(),
            account: &user.email,
            name: &called(&user),
            present: &made_for(&party, &present)?,
        };
        let options = party.creation_options(&challenge, &new);
        let waits = StoredChallenge::new(challenge, None, Some(handle), from);
        self.await_answer(Purpose::Add, Some(ctx), options, waits, from).await
    }

    /// Adds a passkey: the answer of the browser to [`Identity::begin_adding_passkey`]. The
    /// first one turns the second factor on, unless there is an authenticator app.
    ///
    /// # Errors
    /// As [`Identity::begin_adding_passkey`]; [`Error::Invalid`] at `name`, and with
    /// `passkey_expired` or `passkey_refused`.
    pub async fn add_passkey(
        &self,
        ctx: &Ctx,
        name: &str,
        answer: &str,
        from: Origin<'_>,
    ) -> Result<AddedPasskey> {
        let session = recent_session(ctx)?;
        let name = validate::text("name", name, NAME_MAX)?;
        let user = self.user_row(ctx).await?;
        self.refuse_password(&emails::normalise(&user.email)).await?;
        let party = party(from.site)?;
        let waits = self.take_challenge(Purpose::Add, Some(ctx), None, from).await?;
        let handle = waits.handle.ok_or_else(late)?;
        let made = party.register(answer, &waits.challenge).map_err(|fault| {
            tracing::info!(user.id = %user.id, %fault, "a new passkey was refused");
            refused()
        })?;
        let row = PasskeyRow {
            hash: hash(made.id()),
            user: user.id,
            handle,
            rp_id: party.id().to_owned(),
            name: name.clone(),
            credential: written(&made)?,
            added_at: ctx.now,
            used_at: None,
            refused_at: None,
        };
        let mut changes = Changes::none().field("passkey", &None, &Some(&name));
        let (mut codes, mut turns_on) = (Vec::new(), None);
        if user.second_factor.is_none() {
            let (new, hashes) = new_codes(user.id)?;
            turns_on = Some(TurnsOn { factor: ids::time_ordered(ctx.now), codes: hashes });
            codes = new;
            changes = changes.and(switched(true));
        }
        let activities = users::audit_entry(&self.core, ctx, &user, changes).await?;
        let news = mail::of_change(&user, UserChange::PasskeyAdded, ctx.now);
        let mails = self.core.mailing.rows(ctx.now, [news]);
        let (new, opened) = self.renewed_session(user.id, from.peer, session).await?;
        let change =
            Change { replaced: session, session: &new, mails: &mails, activities: &activities };
        match rows::add(&self.core.store, &row, turns_on, PASSKEYS_MAX, change).await? {
            PasskeyOutcome::Yes => {}
            PasskeyOutcome::Taken => {
                let detail = "This passkey belongs to an account already.";
                return Err(FieldError::body("passkey_taken", detail).into());
            }
            PasskeyOutcome::TooMany => return Err(too_many()),
            PasskeyOutcome::Void => return Err(changed_meanwhile()),
        }
        self.core.mailing.wake();
        tracing::info!(user.id = %user.id, request.id = ctx.request_id, "a passkey was added");
        Ok(AddedPasskey { session: opened, codes })
    }

    /// Gives a passkey of the caller another name.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys; [`Error::Invalid`] at `name`; [`Error::NotFound`].
    pub async fn rename_passkey(&self, ctx: &Ctx, id: &str, name: &str) -> Result<()> {
        policy::person_only(ctx)?;
        let name = validate::text("name", name, NAME_MAX)?;
        let user = self.user_row(ctx).await?;
        let row = self.passkey_of(&user, id).await?;
        let changes = Changes::none().field("passkey", &row.name, &name);
        let activities = users::audit_entry(&self.core, ctx, &user, changes).await?;
        match rows::rename(&self.core.store, user.id, &row.hash, &name, &activities).await? {
            true => Ok(()),
            false => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// Removes a passkey of the caller. Without another one and without an app, the second
    /// factor is off then. All other sessions end.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`]; [`Error::NotFound`];
    /// [`Error::Conflict`] when the caller could not sign in any more.
    pub async fn remove_passkey(&self, ctx: &Ctx, id: &str, peer: &Peer) -> Result<RemovedPasskey> {
        let session = recent_session(ctx)?;
        let store = &self.core.store;
        let _permit = lock::<UserRow>(store, &ctx.user()).await;
        let user = self.user_row(ctx).await?;
        let row = self.passkey_of(&user, id).await?;
        let is_last = rows::of_user(store, user.id).await?.len() == 1;
        let methods = self.sign_in_methods(&user).await?.without(&row.hash);
        if methods.as_ref().is_some_and(SignInMethods::is_empty) {
            return Err(last_method());
        }
        let factor = factor_rows::get(store, user.id).await?;
        let has_app = factor.is_some_and(|factor| factor.confirmed_at.is_some());
        let turned_off = is_last && !has_app;
        let mut changes = Changes::none().field("passkey", &Some(&row.name), &None);
        let mut news = UserChange::PasskeyRemoved;
        if turned_off {
            changes = changes.and(switched(false));
            news = UserChange::LastPasskeyRemoved;
        }
        let activities = users::audit_entry(&self.core, ctx, &user, changes).await?;
        let mails = self.core.mailing.rows(ctx.now, [mail::of_change(&user, news, ctx.now)]);
        let (new, opened) = self.renewed_session(user.id, peer, session).await?;
        let change =
            Change { replaced: session, session: &new, mails: &mails, activities: &activities };
        match rows::remove(store, &row.hash, turned_off, methods.as_ref(), change).await? {
            PasskeyOutcome::Yes => {}
            PasskeyOutcome::Taken | PasskeyOutcome::TooMany | PasskeyOutcome::Void => {
                return Err(changed_meanwhile());
            }
        }
        self.core.mailing.wake();
        tracing::info!(user.id = %user.id, request.id = ctx.request_id, "a passkey was removed");
        Ok(RemovedPasskey { session: opened, turned_off })
    }

    async fn passkey_of(&self, user: &UserRow, id: &str) -> Result<PasskeyRow> {
        let rows = rows::of_user(&self.core.store, user.id).await?;
        rows.into_iter().find(|row| row.hash == id).ok_or(Error::NotFound(NOT_FOUND))
    }

    /// Stores a challenge until its answer. It replaces one of the same purpose in this
    /// browser.
    async fn await_answer(
        &self,
        purpose: Purpose,
        ctx: Option<&Ctx>,
        options: String,
        waits: StoredChallenge,
        from: Origin<'_>,
    ) -> Result<PasskeyChallenge> {
        let browser = match from.browser.filter(|token| secrets::is_token(token)) {
            Some(token) => token.to_owned(),
            None => secrets::token()?.reveal(),
        };
        let key = purpose.key();
        let kept = written(&waits)?;
        let row = PendingRow {
            connection: key.to_owned(),
            purpose: key.to_owned(),
            user: ctx.map(Ctx::user),
            session: session_hash(ctx),
            domain: None,
            next: String::new(),
            sealed: flash::seal(&browser, key, &kept)?,
            expires_at: self.core.clock.now().plus_seconds(weir_webauthn::SECONDS),
        };
        let hash = secrets::sha256_hex(&browser);
        pending_rows::put(&self.core.store, &hash, key, &row).await?;
        Ok(PasskeyChallenge { options, browser })
    }

    /// The challenge that waits in this browser, for this session and this sign-in. It waits
    /// no longer, whatever its answer is.
    ///
    /// # Errors
    /// [`Error::Invalid`] with `passkey_expired` if there is none.
    async fn take_challenge(
        &self,
        purpose: Purpose,
        ctx: Option<&Ctx>,
        sign_in: Option<&str>,
        from: Origin<'_>,
    ) -> Result<StoredChallenge> {
        let browser = from.browser.filter(|token| secrets::is_token(token)).ok_or_else(late)?;
        let (key, hash) = (purpose.key(), secrets::sha256_hex(browser));
        let row = pending_rows::take(&self.core.store, &hash, key).await?.ok_or_else(late)?;
        let counts = self.core.clock.now() < row.expires_at && row.session == session_hash(ctx);
        let kept = flash::open(browser, key, &row.sealed).filter(|_| counts).ok_or_else(late)?;
        // A challenge of another program version is not read.
        let waits: StoredChallenge = serde_json::from_str(&kept).map_err(|_| late())?;
        let is_meant = waits.site == from.site && waits.sign_in.as_deref() == sign_in;
        if is_meant { Ok(waits) } else { Err(late()) }
    }
}

/// The hash of the session of a user in the web app.
fn session_hash(ctx: Option<&Ctx>) -> Option<String> {
    match &ctx?.actor {
        Actor::Session { session, .. } => Some(session.clone()),
        Actor::Key { .. } => None,
    }
}

/// The name of a user for the authenticator.
fn called(user: &UserRow) -> String {
    let name = format!("{} {}", user.first_name, user.last_name);
    let name = name.trim();
    if name.is_empty() { user.email.clone() } else { name.to_owned() }
}

/// The credentials of those passkeys that were made for this relying party.
fn made_for(party: &RelyingParty, rows: &[PasskeyRow]) -> Result<Vec<Credential>> {
    rows.iter().filter(|row| row.rp_id == party.id()).map(credential).collect()
}

fn credential(row: &PasskeyRow) -> Result<Credential> {
    serde_json::from_str(&row.credential).map_err(internal)
}

fn written<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(internal)
}

fn internal(error: serde_json::Error) -> Error {
    Error::Internal(format!("passkeys: {error}"))
}

/// The hash of the id of a credential.
fn hash(id: &[u8]) -> String {
    secrets::hex(&Sha256::digest(id))
}

fn challenge() -> Result<Challenge> {
    Ok(Challenge::new(&secrets::random::<32>()?))
}

fn party(site: &str) -> Result<RelyingParty> {
    RelyingParty::at(site).ok_or_else(|| Error::Forbidden(NO_HOST_NAME.to_owned()))
}

/// The refusal of an answer, the same for every reason.
fn refused() -> Error {
    FieldError::body("passkey_refused", REFUSED).into()
}

fn late() -> Error {
    FieldError::body("passkey_expired", LATE).into()
}

fn too_many() -> Error {
    let detail = format!("You have the maximum of {PASSKEYS_MAX} passkeys. Remove one first.");
    Error::Conflict { code: "too_many_passkeys", detail }
}
