//! Passkeys of users.
//!
//! What belongs here: statements about `passkey`, `user_passkey` and `passkey_handle`. What
//! does not: whether a passkey answered a challenge (`weir-service`); challenges, which wait
//! like other sign-ins (`sso::pending`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `passkey` | SHA-256 of the id of the credential | the user, the public key with its counter, and what is shown |
//! | `user_passkey` | `[user, SHA-256]` | nothing: the list of a user |
//! | `passkey_handle` | user | the random number that authenticators keep for the user |
//!
//! A passkey is a second factor, so adding the first one turns the factor on and removing
//! the last one turns it off, as `second_factor` describes.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use surrealdb::types::{RecordId, RecordIdKey, SurrealValue};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::error::is_done;
use crate::mail::{self, MailRow, write_mails};
use crate::proofs::{SignInMethods, keep_a_method};
use crate::second_factor::changed_within;
use crate::sessions::{self, SessionRow, end_sessions, write_session};
use crate::transaction::Transaction;
use crate::{Error, Result, Store};

/// A passkey as stored.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct PasskeyRow {
    /// SHA-256 of the id of the credential.
    pub hash: String,
    /// The user who signs in with it.
    pub user: UserId,
    /// What the authenticator keeps for the user.
    pub handle: Uuid,
    /// The relying party that it was made for: the host name of the instance.
    pub rp_id: String,
    /// The name that the user gave it.
    pub name: String,
    /// The public key with its counter, as JSON text.
    pub credential: String,
    /// When it was added.
    pub added_at: Timestamp,
    /// When it was last used.
    pub used_at: Option<Timestamp>,
    /// When it was last refused because its counter went back.
    pub refused_at: Option<Timestamp>,
}

/// The use of a passkey: its credential before and after.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct PasskeyUse {
    /// The hash of the passkey.
    pub hash: String,
    /// The credential that the answer was checked with.
    pub before: String,
    /// The credential with the new counter.
    pub after: String,
    /// When it is used.
    pub at: Timestamp,
}

/// Stores the use `$passkey` of a passkey of `$user`, unless the passkey was removed or used
/// since it was read. So of two answers with one counter, one counts.
macro_rules! use_passkey {
    () => {
        "LET $present = (SELECT * FROM ONLY type::record('passkey', $passkey.hash));
         IF $present = NONE OR $present.user != $user
             OR $present.credential != $passkey.before { THROW 'used' };
         UPDATE type::record('passkey', $passkey.hash)
             SET credential = $passkey.after, used_at = $passkey.at RETURN NONE;"
    };
}
pub(crate) use use_passkey;

/// Removes all passkeys of `$user`.
macro_rules! delete_passkeys {
    () => {
        "FOR $key IN (SELECT VALUE record::id(id)[1] FROM user_passkey:[$user]..=[$user, ..]) {
             DELETE type::record('passkey', $key) RETURN NONE;
             DELETE type::record('user_passkey', [$user, $key]) RETURN NONE;
         };"
    };
}
pub(crate) use delete_passkeys;

const HANDLE: Statement = Statement::write(
    "passkeys handle",
    "UPSERT type::record('passkey_handle', $user) SET handle = handle ?? $handle
     RETURN VALUE handle;",
);

/// The handle of this user: the present one, else `new`.
///
/// # Errors
/// Any failure of the store.
pub async fn handle(store: &Store, user: UserId, new: Uuid) -> Result<Uuid> {
    let mut answer = store.db.run(HANDLE, bind! { user: user.0, handle: new }).await?;
    let missing = || Error::Shape { statement: HANDLE.name, detail: "no handle".to_owned() };
    answer.row(0)?.ok_or_else(missing)
}

const GET: Statement =
    Statement::read("passkeys get", "SELECT * FROM type::record('passkey', $hash);");

/// The passkey with this hash.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, hash: &str) -> Result<Option<PasskeyRow>> {
    store.db.run(GET, bind! { hash: hash }).await?.row(0)
}

const OF_USER: Statement = Statement::read(
    "passkeys of a user",
    "SELECT * FROM (SELECT VALUE type::record('passkey', record::id(id)[1])
                    FROM user_passkey:[$user]..=[$user, ..]);",
);

/// The passkeys of a user, oldest first.
///
/// # Errors
/// Any failure of the store.
pub async fn of_user(store: &Store, user: UserId) -> Result<Vec<PasskeyRow>> {
    let mut found: Vec<PasskeyRow> =
        store.db.run(OF_USER, bind! { user: user.0 }).await?.rows(0)?;
    found.sort_by(|one, other| (one.added_at, &one.hash).cmp(&(other.added_at, &other.hash)));
    Ok(found)
}

const HOLDERS: Operation = Operation::read("passkeys holders");

/// Those of these users who have a passkey.
///
/// # Errors
/// Any failure of the store.
pub async fn holders(store: &Store, users: &[UserId]) -> Result<Vec<UserId>> {
    let keyspace = store.db.keyspace().await?;
    let users: Arc<[UserId]> = users.into();
    let work = move |tx: Transaction| {
        let users = Arc::clone(&users);
        async move {
            let mut found = Vec::new();
            for user in &*users {
                let of_user = RecordIdKey::Array(vec![user.0.into_value()].into());
                let of_user = keyspace.beginning_with(RecordId::new("user_passkey", of_user))?;
                if !tx.ids(&of_user).await?.is_empty() {
                    found.push(*user);
                }
            }
            Ok(found)
        }
    };
    store.db.transact(HOLDERS, (), work).await
}

/// The result of a change of passkeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasskeyOutcome {
    /// The change was made.
    Yes,
    /// The credential is a passkey already. Nothing was written.
    Taken,
    /// The user has as many passkeys as allowed. Nothing was written.
    TooMany,
    /// The user, the session or the second factor has changed. Nothing was written.
    Void,
}

fn kept<T>(outcome: Result<T>) -> Result<PasskeyOutcome> {
    match outcome {
        Ok(_) => Ok(PasskeyOutcome::Yes),
        Err(Error::Refused { reason, .. }) => Ok(match reason.as_str() {
            "taken" => PasskeyOutcome::Taken,
            "full" => PasskeyOutcome::TooMany,
            _ => PasskeyOutcome::Void,
        }),
        Err(error) => Err(error),
    }
}

/// A change of a user's passkeys within a session.
#[derive(Debug)]
pub struct Change<'a> {
    /// The hash of the session in which it is made.
    pub replaced: &'a str,
    /// The session that replaces it.
    pub session: &'a SessionRow,
    /// The mails about the change.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// The second factor that the first passkey turns on.
#[derive(Debug)]
pub struct TurnsOn {
    /// Its id.
    pub factor: Uuid,
    /// Hashes of its recovery codes.
    pub codes: Vec<String>,
}

// If the second factor is turned on, all sessions end: they have not seen it. A set-up of
// an app that waits keeps waiting.
const ADD: Statement = Statement::write(
    "passkeys add",
    concat!(
        changed_within!(),
        "IF ($user_row.second_factor = NONE) != $turns_on { THROW 'factor' };
         LET $known = (SELECT VALUE user FROM ONLY type::record('passkey', $key.hash));
         IF $known != NONE { THROW 'taken' };
         LET $all = (SELECT VALUE 1 FROM user_passkey:[$user]..=[$user, ..]);
         IF array::len($all) >= $most { THROW 'full' };
         UPSERT type::record('passkey', $key.hash) CONTENT $key RETURN NONE;
         UPSERT type::record('user_passkey', [$user, $key.hash]) CONTENT {} RETURN NONE;
         IF $turns_on {
             LET $begun = (SELECT * FROM ONLY type::record('second_factor', $user));
             UPSERT type::record('second_factor', $user) CONTENT {
                 factor: $factor, organization: $organization, secret: $begun.secret,
                 begun_at: $begun.begun_at ?? $now, since: $now, codes: $codes
             } RETURN NONE;
             UPDATE type::record('user', $user)
                 SET second_factor = $factor, updated_at = $now RETURN NONE;",
        end_sessions!(),
        "} ELSE {
             UPDATE type::record('user', $user) SET updated_at = $now RETURN NONE;
             DELETE type::record('session', $replaced) RETURN NONE;
             DELETE type::record('user_session', [$user, $replaced]) RETURN NONE;
         };",
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Adds a passkey. A user may have `most`. `turns_on` is there if the user has no second
/// factor.
///
/// # Errors
/// Any failure of the store.
pub async fn add(
    store: &Store,
    row: &PasskeyRow,
    turns_on: Option<TurnsOn>,
    most: usize,
    change: Change<'_>,
) -> Result<PasskeyOutcome> {
    let (factor, codes) = turns_on.map(|on| (on.factor, on.codes)).unzip();
    let vars = bind! {
        user: row.user.0,
        key: row.clone(),
        most: i64::try_from(most).unwrap_or(i64::MAX),
        turns_on: factor.is_some(),
        factor: factor,
        // A user belongs to no organization.
        organization: Uuid::nil(),
        codes: codes,
        replaced: change.replaced,
        hash: change.session.hash.as_str(),
        row: sessions::Stored::from(change.session),
        mails: mail::stored(change.mails)?,
        now: change.session.signed_in_at.micros(),
    };
    kept(activity::change(store, ADD, vars, change.activities).await)
}

const REMOVE: Statement = Statement::write(
    "passkeys remove",
    concat!(
        changed_within!(),
        "LET $owner = (SELECT VALUE user FROM ONLY type::record('passkey', $passkey));
         IF $owner != $user { THROW 'key' };
         LET $all = (SELECT VALUE record::id(id)[1] FROM user_passkey:[$user]..=[$user, ..]);
         LET $app = (SELECT VALUE confirmed_at FROM ONLY type::record('second_factor', $user));
         IF ($all = [$passkey] AND $app = NONE) != $turns_off { THROW 'factor' };
         UPDATE type::record('user', $user)
             SET sessions_made = (sessions_made ?? 0) + 1 RETURN NONE;",
        keep_a_method!(),
        "DELETE type::record('passkey', $passkey) RETURN NONE;
         DELETE type::record('user_passkey', [$user, $passkey]) RETURN NONE;
         IF $turns_off {
             DELETE type::record('second_factor', $user) RETURN NONE;
             UPDATE type::record('user', $user)
                 SET second_factor = NONE, updated_at = $now RETURN NONE;
         } ELSE {
             UPDATE type::record('user', $user) SET updated_at = $now RETURN NONE;
         };",
        end_sessions!(),
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Removes a passkey and ends all sessions. `turns_off` says whether this turns the second
/// factor off: the user has no other passkey and no app. Of the sign-in `methods` that are
/// left, one must still be there.
///
/// # Errors
/// Any failure of the store.
pub async fn remove(
    store: &Store,
    hash: &str,
    turns_off: bool,
    methods: Option<&SignInMethods>,
    change: Change<'_>,
) -> Result<PasskeyOutcome> {
    let vars = bind! {
        user: change.session.user.0,
        methods: methods.cloned(),
        passkey: hash,
        turns_off: turns_off,
        replaced: change.replaced,
        hash: change.session.hash.as_str(),
        row: sessions::Stored::from(change.session),
        mails: mail::stored(change.mails)?,
        now: change.session.signed_in_at.micros(),
    };
    kept(activity::change(store, REMOVE, vars, change.activities).await)
}

const RENAME: Statement = Statement::write(
    "passkeys rename",
    concat!(
        "BEGIN;
         LET $owner = (SELECT VALUE user FROM ONLY type::record('passkey', $hash));
         IF $owner != $user { THROW 'key' };
         UPDATE type::record('passkey', $hash) SET name = $name RETURN NONE;",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Gives a passkey of this user another name. `false`: there is none with this hash.
///
/// # Errors
/// Any failure of the store.
pub async fn rename(
    store: &Store,
    user: UserId,
    hash: &str,
    name: &str,
    activities: &[Entry],
) -> Result<bool> {
    let vars = bind! { user: user.0, hash: hash, name: name };
    is_done(activity::change(store, RENAME, vars, activities).await)
}

const REFUSE: Statement = Statement::write(
    "passkeys refuse",
    concat!(
        "BEGIN;
         UPDATE type::record('passkey', $hash) SET refused_at = $now RETURN NONE;",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Records that a passkey was refused because its counter went back.
///
/// # Errors
/// Any failure of the store.
pub async fn refuse(store: &Store, hash: &str, now: Timestamp, activities: &[Entry]) -> Result<()> {
    let vars = bind! { hash: hash, now: now.micros() };
    activity::change(store, REFUSE, vars, activities).await.map(drop)
}

// Writing the user's record makes this conflict with transactions that end sessions.
const SIGN_IN: Statement = Statement::sign_in(
    "passkeys sign in",
    concat!(
        "BEGIN;
         LET $made = (SELECT VALUE user FROM ONLY type::record('session', $hash));
         IF $made = NONE {
             LET $found = (UPDATE type::record('user', $user)
                           SET sessions_made = (sessions_made ?? 0) + 1, last_login = $now
                           RETURN AFTER);
             LET $user_row = $found[0];
             IF $user_row = NONE OR $user_row.is_active != true { THROW 'user' };",
        use_passkey!(),
        "IF $replaced != NONE {
                 LET $of = (SELECT VALUE user FROM ONLY type::record('session', $replaced));
                 IF $of != $user { THROW 'session' };
                 DELETE type::record('session', $replaced) RETURN NONE;
                 DELETE type::record('user_session', [$user, $replaced]) RETURN NONE;
             };",
        write_session!(),
        "};
         COMMIT;"
    ),
);

/// Opens a session with a passkey; `replaced` is the hash of the session that it replaces.
/// `false`: passkey, user or session has changed since they were read, and nothing was
/// written.
///
/// # Errors
/// Any failure of the store.
pub async fn sign_in(
    store: &Store,
    used: &PasskeyUse,
    session: &SessionRow,
    replaced: Option<&str>,
) -> Result<bool> {
    let vars = bind! {
        user: session.user.0,
        passkey: used.clone(),
        replaced: replaced.map(str::to_owned),
        hash: session.hash.as_str(),
        row: sessions::Stored::from(session),
        now: session.signed_in_at.micros(),
    };
    is_done(store.db.run(SIGN_IN, vars).await)
}
