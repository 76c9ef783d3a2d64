//! Links in mails to users, and the changes that they allow: the address, whether it is
//! confirmed, the password.
//!
//! What belongs here: statements about `account_link`, and those that change the address
//! or password of a user. What does not: how long a link works and when one is sent
//! (`weir-service`); the token itself, which is never stored.
//!
//! The record of a link is `account_link:[user, hash]`. It is found by the hash of its
//! token alone. So no secret is compared, and response times reveal nothing about one. A
//! change of the address or password ends all links of the user. Setting or clearing the
//! pending address ends the links that confirm an address.

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::user_links::LinkKind;
use weir_model::{Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::mail::{self, MailRow, write_mails};
use crate::proofs::{FirstProof, first_proof};
use crate::sessions::{self, SessionRow, end_sessions, write_session};
use crate::users::{PasswordHash, UserRow};
use crate::{Error, Result, Store};

/// A link as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkRow {
    /// The purpose of the link; `None`: this program does not know it.
    pub kind: Option<LinkKind>,
    /// The address that the link was sent to.
    pub email: String,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Whether it was used.
    pub is_used: bool,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    kind: String,
    email: String,
    expires_at: i64,
    /// The id of the call that used it.
    used_by: Option<Uuid>,
}

impl From<Stored> for LinkRow {
    fn from(stored: Stored) -> Self {
        let kinds = [LinkKind::Confirm, LinkKind::Reset, LinkKind::SignIn];
        Self {
            kind: kinds.into_iter().find(|kind| kind.word() == stored.kind),
            email: stored.email,
            expires_at: Timestamp::from_micros(stored.expires_at),
            is_used: stored.used_by.is_some(),
        }
    }
}

// Expired links are removed when the next one is stored, so that a user has at most as
// many records as mails of a day. Writing the user's record makes this conflict with
// transactions that end links. Otherwise a link could be stored after that, for a user
// who has changed since the mail was made. The write needs a new value: the engine does
// not write a record that stays the same.
const PUT: Statement = Statement::write(
    "user links put",
    concat!(
        "BEGIN;
     LET $found = (UPDATE type::record('user', $user)
                   SET links_made = (links_made ?? 0) + 1 RETURN AFTER);
     LET $user_row = $found[0];
     IF $user_row = NONE OR $user_row.is_active != true
         OR $user_row.email != $before OR $user_row.pending_email != $pending
         OR $user_row.is_email_verified != $verified OR $user_row.password != $password {
         THROW 'user'
     };
     DELETE account_link:[$user]..=[$user, ..] WHERE expires_at <= $now RETURN NONE;
     UPSERT type::record('account_link', [$user, $hash]) CONTENT $row RETURN NONE;",
        write_activities!(),
        "COMMIT;"
    ),
);

/// A link that is about to be sent, or to be printed for the operator.
#[derive(Debug, Clone)]
pub struct NewLink<'a> {
    /// The user, as it was read.
    pub user_row: &'a UserRow,
    /// SHA-256 of the token.
    pub hash: &'a str,
    /// The purpose of the link.
    pub kind: LinkKind,
    /// The address that it is sent to.
    pub email: &'a str,
    /// When it expires.
    pub expires_at: Timestamp,
    /// The audit entries about it.
    pub activities: &'a [Entry],
}

/// Stores a link before its mail is sent. Writes nothing if the user is deactivated, or
/// if their address or password has changed since they were read.
pub async fn put_link(store: &Store, link: NewLink<'_>, now: Timestamp) -> Result<Changed> {
    let row = Stored {
        kind: link.kind.word().to_owned(),
        email: link.email.to_owned(),
        expires_at: link.expires_at.micros(),
        used_by: None,
    };
    let user = link.user_row;
    let vars = bind! {
        user: user.id.0,
        before: user.email.as_str(),
        pending: user.pending_email.clone(),
        verified: user.is_email_verified,
        password: user.password.as_ref().map(|hash| hash.0.clone()),
        hash: link.hash,
        row: row,
        now: now.micros(),
    };
    changed(activity::change(store, PUT, vars, link.activities).await)
}

const GET: Statement = Statement::read(
    "user links get",
    "SELECT * FROM type::record('account_link', [$user, $hash]);",
);

/// The link of this user whose token has this hash, even if it is used or expired.
pub async fn link(store: &Store, user: UserId, hash: &str) -> Result<Option<LinkRow>> {
    let mut answer = store.db.run(GET, bind! { user: user.0, hash: hash }).await?;
    Ok(answer.row::<Stored>(0)?.map(LinkRow::from))
}

const LIST: Statement =
    Statement::read("user links of a user", "SELECT * FROM account_link:[$user]..=[$user, ..];");

/// All links of this user, even used and expired ones, in no particular order.
pub async fn links(store: &Store, user: UserId) -> Result<Vec<LinkRow>> {
    let mut answer = store.db.run(LIST, bind! { user: user.0 }).await?;
    Ok(answer.rows::<Stored>(0)?.into_iter().map(LinkRow::from).collect())
}

/// Ends all links of `$user`. Used by the transactions that confirm or change the address
/// or change the password.
macro_rules! end_links {
    () => {
        "DELETE account_link:[$user]..=[$user, ..] RETURN NONE;"
    };
}

/// Replaces the address `$before` (key `$before_key`) of `$user` by `$email` (key
/// `$email_key`), unless another user has it.
macro_rules! move_address {
    () => {
        "LET $owner = (SELECT VALUE user FROM ONLY type::record('user_email', $email_key));
         IF $owner != NONE AND $owner != $user { THROW 'email' };
         LET $left = (SELECT VALUE user FROM ONLY type::record('user_email', $before_key));
         IF $left = $user { DELETE type::record('user_email', $before_key) RETURN NONE; };
         UPSERT type::record('user_email', $email_key) CONTENT { user: $user } RETURN NONE;"
    };
}

/// The result of using a link, or of changing an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changed {
    /// The change was made.
    Yes,
    /// The link is not valid, or the user has changed since they were read. Nothing was
    /// written.
    Void,
    /// The address belongs to another user. Nothing was written.
    EmailTaken,
}

fn changed(outcome: Result<crate::db::Answer>) -> Result<Changed> {
    match outcome {
        Ok(_) => Ok(Changed::Yes),
        Err(Error::Refused { reason, .. }) if reason == "email" => Ok(Changed::EmailTaken),
        Err(Error::Refused { .. }) => Ok(Changed::Void),
        Err(error) => Err(error),
    }
}

/// The use of a link.
#[derive(Debug)]
pub struct Use<'a> {
    /// The user whose link it is.
    pub user: UserId,
    /// SHA-256 of the token.
    pub hash: &'a str,
    /// An id of this call. It distinguishes a retry of the same transaction from a second
    /// call.
    pub attempt: Uuid,
    /// The time of the call.
    pub now: Timestamp,
    /// The mails about the change.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// An address that is being confirmed, and the present address of the user.
#[derive(Debug)]
pub struct Address<'a> {
    /// The address that is being confirmed.
    pub email: &'a str,
    /// The normalised form, which must be unique.
    pub email_key: &'a str,
    /// The present address of the user; it may be the same.
    pub before: &'a str,
    /// The normalised form of the present address.
    pub before_key: &'a str,
}

// Concurrent uses of one link all write its record: one commits, the others run again and
// find the link used.
const CONFIRM: Statement = Statement::write(
    "users confirm",
    concat!(
        "BEGIN;
         LET $link = (SELECT * FROM ONLY type::record('account_link', [$user, $hash]));
         IF $link = NONE { THROW 'link' };
         IF $link.used_by != $attempt {
             LET $row = (SELECT * FROM ONLY type::record('user', $user));
             IF $link.used_by != NONE OR $link.kind != $kind OR $link.expires_at <= $now
                 OR $link.email != $email OR $row = NONE OR $row.is_active != true
                 OR $row.email != $before { THROW 'link' };
             IF $email != $before {
                 IF $row.pending_email != $email { THROW 'link' };",
        move_address!(),
        "};
             UPDATE type::record('user', $user) SET
                 email = $email,
                 pending_email = IF $email != $before { NONE } ELSE { pending_email },
                 is_email_verified = true,
                 must_confirm = false,
                 updated_at = $now
             RETURN NONE;",
        end_links!(),
        "UPSERT type::record('account_link', [$user, $hash]) CONTENT {
                 kind: $kind, email: $email, expires_at: $link.expires_at, used_by: $attempt
             } RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Confirms an address with a link: the present address of the user, or the pending one.
pub async fn confirm(store: &Store, with: Use<'_>, address: Address<'_>) -> Result<Changed> {
    let vars = bind! {
        user: with.user.0,
        hash: with.hash,
        attempt: with.attempt,
        kind: LinkKind::Confirm.word(),
        now: with.now.micros(),
        mails: mail::stored(with.mails)?,
        email: address.email,
        email_key: address.email_key,
        before: address.before,
        before_key: address.before_key,
    };
    changed(activity::change(store, CONFIRM, vars, with.activities).await)
}

// The person who received the mail owns the address, so it is confirmed too. A pending
// address is cleared: another person may have requested it. The memberships stay: no
// organization confirms the address here.
const RESET: Statement = Statement::write(
    "users reset",
    concat!(
        "BEGIN;
         LET $link = (SELECT * FROM ONLY type::record('account_link', [$user, $hash]));
         IF $link = NONE { THROW 'link' };
         IF $link.used_by != $attempt {
             LET $row = (SELECT * FROM ONLY type::record('user', $user));
             IF $link.used_by != NONE OR $link.kind != $kind OR $link.expires_at <= $now
                 OR $row = NONE OR $row.is_active != true OR $row.email != $link.email {
                 THROW 'link'
             };",
        first_proof!(),
        "UPDATE type::record('user', $user) SET
                 password = $password,
                 pending_email = NONE,
                 is_email_verified = true,
                 must_confirm = false,
                 updated_at = $now
             RETURN NONE;",
        end_sessions!(),
        end_links!(),
        "UPSERT type::record('account_link', [$user, $hash]) CONTENT {
                 kind: $kind, email: $link.email, expires_at: $link.expires_at,
                 used_by: $attempt
             } RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Sets a new password with a link, and ends all sessions of the user.
pub async fn reset(store: &Store, with: Use<'_>, password: &PasswordHash) -> Result<Changed> {
    let vars = bind! {
        user: with.user.0,
        hash: with.hash,
        attempt: with.attempt,
        kind: LinkKind::Reset.word(),
        now: with.now.micros(),
        mails: mail::stored(with.mails)?,
        password: password.0.as_str(),
        proof: FirstProof::new(None, Vec::new(), with.now),
    };
    changed(activity::change(store, RESET, vars, with.activities).await)
}

const SIGN_IN: Statement = Statement::sign_in(
    "users sign in",
    concat!(
        "BEGIN;
         LET $link = (SELECT * FROM ONLY type::record('account_link', [$user, $link_hash]));
         IF $link = NONE { THROW 'link' };
         IF $link.used_by != $attempt {
             LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
             IF $link.used_by != NONE OR $link.kind != $kind OR $link.expires_at <= $now
                 OR $user_row = NONE OR $user_row.is_active != true
                 OR $user_row.email != $link.email { THROW 'link' };
             UPDATE type::record('user', $user)
                 SET sessions_made = (sessions_made ?? 0) + 1, last_login = $now RETURN NONE;
             UPSERT type::record('account_link', [$user, $link_hash]) CONTENT {
                 kind: $kind, email: $link.email, expires_at: $link.expires_at,
                 used_by: $attempt
             } RETURN NONE;",
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Opens a session with a link that signs in.
pub async fn sign_in(store: &Store, with: Use<'_>, session: &SessionRow) -> Result<Changed> {
    let vars = bind! {
        user: with.user.0,
        link_hash: with.hash,
        hash: session.hash.as_str(),
        attempt: with.attempt,
        kind: LinkKind::SignIn.word(),
        now: with.now.micros(),
        row: sessions::Stored::from(session),
        mails: mail::stored(with.mails)?,
    };
    changed(activity::change(store, SIGN_IN, vars, with.activities).await)
}

// A retry may send the mail twice: the links of both work. Links for a new password stay
// valid: the address that they were sent to does not change.
const AWAIT: Statement = Statement::write(
    "users await",
    concat!(
        "BEGIN;
         LET $known = (UPDATE type::record('user', $user)
                       SET pending_email = $pending, updated_at = $now
                       WHERE email = $before RETURN VALUE uuid);
         IF $known = [] { THROW 'user' };
         DELETE account_link:[$user]..=[$user, ..] WHERE kind = $kind RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Stores the pending address that replaces `before` once it is confirmed, with the mail
/// about it; `None` clears the pending address.
pub async fn await_address(
    store: &Store,
    user: UserId,
    before: &str,
    pending: Option<&str>,
    mails: &[MailRow],
    activities: &[Entry],
    now: Timestamp,
) -> Result<Changed> {
    let vars = bind! {
        user: user.0,
        before: before,
        pending: pending.map(str::to_owned),
        kind: LinkKind::Confirm.word(),
        mails: mail::stored(mails)?,
        now: now.micros(),
    };
    changed(activity::change(store, AWAIT, vars, activities).await)
}

const MOVE: Statement = Statement::write(
    "users move",
    concat!(
        "BEGIN;
         LET $row = (SELECT * FROM ONLY type::record('user', $user));
         IF $row = NONE OR ($row.email != $before AND $row.email != $email) { THROW 'user' };",
        move_address!(),
        "UPDATE type::record('user', $user) SET
             email = $email,
             pending_email = NONE,
             is_email_verified = false,
             updated_at = $now
         RETURN NONE;",
        end_links!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Changes an address immediately, unconfirmed.
pub async fn move_address(
    store: &Store,
    user: UserId,
    address: Address<'_>,
    activities: &[Entry],
    now: Timestamp,
) -> Result<Changed> {
    let vars = bind! {
        user: user.0,
        email: address.email,
        email_key: address.email_key,
        before: address.before,
        before_key: address.before_key,
        now: now.micros(),
    };
    changed(activity::change(store, MOVE, vars, activities).await)
}

pub mod password;

#[cfg(test)]
mod tests;
