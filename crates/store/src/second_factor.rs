//! Second factors of users: the secret of their codes, recovery codes, and sign-ins that
//! wait for a code or a passkey.
//!
//! What belongs here: statements about `second_factor` and `pending_sign_in`, and the
//! field of the user that names the factor. What does not: which code is right
//! (`weir-service`); recovery codes and tokens themselves, of which only hashes are
//! stored; passkeys (`passkeys`).
//!
//! | table | id | holds |
//! |---|---|---|
//! | `second_factor` | user | since when it is on, and hashes of recovery codes. Of an authenticator app: the sealed secret; after confirmation also the time step of the last used code |
//! | `pending_sign_in` | `[user, hash]` | a right password that waits for a code or a passkey |
//!
//! The second factor is on while the user has a confirmed app or a passkey. The user's
//! record names it then too. Transactions that open a session write
//! that record, and so do changes of the factor. So they conflict, and no session is
//! opened with an outdated factor.

mod changes;

#[cfg(test)]
mod tests;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{Timestamp, UserId};

pub(crate) use changes::changed_within;
pub use changes::{Change, Renewal, confirm, disable, remove, renew};

use crate::bind::bind;
use crate::db::{Answer, Statement};
use crate::error::is_done;
use crate::passkeys::{PasskeyUse, use_passkey};
use crate::sessions::{self, SessionRow, write_session};
use crate::users::PasswordHash;
use crate::{Error, Result, Store};

/// A user's factor, on or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorRow {
    /// Id of this factor. It stays while the factor is on; the next one has another id.
    pub factor: Uuid,
    /// The secret from which an app computes codes, sealed; `None`: there is no app.
    pub secret: Option<String>,
    /// When the set-up of the app began.
    pub begun_at: Timestamp,
    /// When the app was confirmed with a code; `None`: not yet, so it counts for nothing.
    pub confirmed_at: Option<Timestamp>,
    /// Since when sign-ins ask for the factor; `None`: they do not.
    pub since: Option<Timestamp>,
    /// The time step of the last used code.
    pub last_step: Option<i64>,
    /// Hashes of the unused recovery codes.
    pub codes: Vec<String>,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    factor: Uuid,
    /// Always nil: a user belongs to no organization. Every sealed field needs it.
    organization: Uuid,
    secret: Option<String>,
    begun_at: i64,
    confirmed_at: Option<i64>,
    since: Option<i64>,
    last_step: Option<i64>,
    codes: Vec<String>,
}

impl From<Stored> for FactorRow {
    fn from(stored: Stored) -> Self {
        Self {
            factor: stored.factor,
            secret: stored.secret,
            begun_at: Timestamp::from_micros(stored.begun_at),
            confirmed_at: stored.confirmed_at.map(Timestamp::from_micros),
            since: stored.since.map(Timestamp::from_micros),
            last_step: stored.last_step,
            codes: stored.codes,
        }
    }
}

/// A proof that the user has the factor. Each works once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A code of this time step.
    Step(i64),
    /// A recovery code, by its hash.
    Recovery(String),
    /// The use of a passkey.
    Passkey(PasskeyUse),
}

impl Proof {
    fn step(&self) -> Option<i64> {
        if let Self::Step(step) = self { Some(*step) } else { None }
    }

    fn recovery(&self) -> Option<String> {
        if let Self::Recovery(hash) = self { Some(hash.clone()) } else { None }
    }

    fn passkey(&self) -> Option<PasskeyUse> {
        if let Self::Passkey(used) = self { Some(used.clone()) } else { None }
    }
}

/// The result of using a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// The proof was accepted, and the change was made.
    Yes,
    /// The proof was used before. Nothing was written.
    Before,
    /// The factor, the user, the session or the sign-in has changed. Nothing was written.
    Void,
}

fn used(outcome: Result<Answer>) -> Result<Used> {
    match outcome {
        Ok(_) => Ok(Used::Yes),
        Err(Error::Refused { reason, .. }) if reason == "used" => Ok(Used::Before),
        Err(Error::Refused { .. }) => Ok(Used::Void),
        Err(error) => Err(error),
    }
}

/// Uses up `$step`, `$recovery` or `$passkey` of the factor `$factor` of `$user`. Used by
/// the transactions that require a proof. If the stored last step is later than `$step` by
/// more than the accepted drift, it was stored while the clock was ahead. It is then
/// ignored, because it would refuse every code until that time.
macro_rules! use_proof {
    () => {
        concat!(
            "LET $held = (SELECT * FROM ONLY type::record('second_factor', $user));
         IF $held = NONE OR $held.factor != $factor OR $held.since = NONE { THROW 'factor' };
         IF $step != NONE {
             IF $held.confirmed_at = NONE { THROW 'factor' };
             LET $last = $held.last_step ?? 0;
             IF $step <= $last AND $last <= $step + 2 { THROW 'used' };
             UPDATE type::record('second_factor', $user) SET last_step = $step RETURN NONE;
         };
         IF $recovery != NONE {
             IF $held.codes CONTAINSNOT $recovery { THROW 'used' };
             UPDATE type::record('second_factor', $user)
                 SET codes = array::complement(codes, [$recovery]) RETURN NONE;
         };
         IF $passkey != NONE {",
            use_passkey!(),
            "};"
        )
    };
}
pub(crate) use use_proof;

const GET: Statement =
    Statement::read("second factor get", "SELECT * FROM type::record('second_factor', $user);");

/// The factor of this user, on or not.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, user: UserId) -> Result<Option<FactorRow>> {
    let mut answer = store.db.run(GET, bind! { user: user.0 }).await?;
    Ok(answer.row::<Stored>(0)?.map(FactorRow::from))
}

const BEGIN: Statement = Statement::write(
    "second factor begin",
    "BEGIN;
     LET $found = (UPDATE type::record('user', $user)
                   SET factors_begun = (factors_begun ?? 0) + 1 RETURN AFTER);
     LET $user_row = $found[0];
     LET $held = (SELECT * FROM ONLY type::record('second_factor', $user));
     IF $user_row = NONE OR $held.confirmed_at != NONE { THROW 'factor' };
     IF $user_row.second_factor = NONE {
         UPSERT type::record('second_factor', $user) CONTENT $row RETURN NONE;
     } ELSE {
         UPDATE type::record('second_factor', $user)
             SET secret = $row.secret, begun_at = $row.begun_at RETURN NONE;
     };
     COMMIT;",
);

/// Stores an app that is not confirmed, replacing another such one. `false`: the user has
/// a confirmed app, and nothing was written. `factor` is the id of the factor if it is not
/// on.
///
/// # Errors
/// Any failure of the store.
pub async fn begin(
    store: &Store,
    user: UserId,
    factor: Uuid,
    sealed: &str,
    now: Timestamp,
) -> Result<bool> {
    let row = Stored {
        factor,
        organization: Uuid::nil(),
        secret: Some(sealed.to_owned()),
        begun_at: now.micros(),
        confirmed_at: None,
        since: None,
        last_step: None,
        codes: Vec::new(),
    };
    is_done(store.db.run(BEGIN, bind! { user: user.0, row: row }).await)
}

const CANCEL: Statement = Statement::delete(
    "second factor cancel",
    "BEGIN;
     DELETE type::record('second_factor', $user) WHERE since = NONE RETURN NONE;
     UPDATE type::record('second_factor', $user) SET secret = NONE
         WHERE confirmed_at = NONE RETURN NONE;
     COMMIT;",
);

/// Removes an app that is not confirmed.
///
/// # Errors
/// Any failure of the store.
pub async fn cancel(store: &Store, user: UserId) -> Result<()> {
    store.db.run(CANCEL, bind! { user: user.0 }).await.map(drop)
}

/// A sign-in that waits for a code or a passkey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRow {
    /// The factor that the sign-in waits for.
    pub factor: Uuid,
    /// When the sign-in expires.
    pub expires_at: Timestamp,
    /// Number of wrong codes so far.
    pub failures: i64,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredPending {
    factor: Uuid,
    expires_at: i64,
    failures: i64,
}

impl From<StoredPending> for PendingRow {
    fn from(stored: StoredPending) -> Self {
        Self {
            factor: stored.factor,
            expires_at: Timestamp::from_micros(stored.expires_at),
            failures: stored.failures,
        }
    }
}

// Writing the user's record makes this conflict with transactions that end pending
// sign-ins.
const AWAIT: Statement = Statement::sign_in(
    "second factor await",
    "BEGIN;
     LET $found = (UPDATE type::record('user', $user)
                   SET sessions_made = (sessions_made ?? 0) + 1 RETURN AFTER);
     LET $user_row = $found[0];
     IF $user_row = NONE OR $user_row.is_active != true OR $user_row.password != $proved
         OR $user_row.second_factor != $row.factor { THROW 'proved' };
     DELETE pending_sign_in:[$user]..=[$user, ..] WHERE expires_at <= $now RETURN NONE;
     UPSERT type::record('pending_sign_in', [$user, $hash]) CONTENT $row RETURN NONE;
     COMMIT;",
);

/// A sign-in with a right password that waits for a code.
#[derive(Debug, Clone, Copy)]
pub struct NewPending<'a> {
    /// The user who signs in.
    pub user: UserId,
    /// SHA-256 of its token.
    pub hash: &'a str,
    /// The password that was proved, as stored.
    pub password: Option<&'a PasswordHash>,
    /// The factor that the sign-in waits for.
    pub factor: Uuid,
    /// When the sign-in expires.
    pub expires_at: Timestamp,
}

/// Stores a sign-in that waits for a code. `false`: the user is deactivated, or has another
/// password or factor by now, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn await_code(store: &Store, new: NewPending<'_>, now: Timestamp) -> Result<bool> {
    let row =
        StoredPending { factor: new.factor, expires_at: new.expires_at.micros(), failures: 0 };
    let vars = bind! {
        user: new.user.0,
        hash: new.hash,
        proved: new.password.map(|hash| hash.0.clone()),
        row: row,
        now: now.micros(),
    };
    is_done(store.db.run(AWAIT, vars).await)
}

const PENDING: Statement = Statement::read(
    "second factor pending",
    "SELECT * FROM type::record('pending_sign_in', [$user, $hash]);",
);

/// The sign-in with this hash, even if it has expired.
///
/// # Errors
/// Any failure of the store.
pub async fn pending(store: &Store, user: UserId, hash: &str) -> Result<Option<PendingRow>> {
    let mut answer = store.db.run(PENDING, bind! { user: user.0, hash: hash }).await?;
    Ok(answer.row::<StoredPending>(0)?.map(PendingRow::from))
}

const FAILED: Statement = Statement::sign_in(
    "second factor failed",
    "UPDATE type::record('pending_sign_in', [$user, $hash])
     SET failures = failures + 1 RETURN NONE;",
);

/// Counts a wrong code.
///
/// # Errors
/// Any failure of the store.
pub async fn failed(store: &Store, user: UserId, hash: &str) -> Result<()> {
    store.db.run(FAILED, bind! { user: user.0, hash: hash }).await.map(drop)
}

// The new session shows whether this is a retry of the same call. Two calls with one code
// both write the factor: one commits, the other runs again and finds the code used.
const SIGN_IN: Statement = Statement::sign_in(
    "second factor sign in",
    concat!(
        "BEGIN;
         LET $made = (SELECT VALUE user FROM ONLY type::record('session', $hash));
         IF $made = NONE {
             LET $found = (UPDATE type::record('user', $user)
                           SET sessions_made = (sessions_made ?? 0) + 1, last_login = $now
                           RETURN AFTER);
             LET $user_row = $found[0];
             LET $waiting = (SELECT * FROM ONLY type::record('pending_sign_in', [$user, $pending]));
             IF $user_row = NONE OR $user_row.is_active != true OR $user_row.second_factor != $factor
                 OR $waiting = NONE OR $waiting.factor != $factor OR $waiting.expires_at <= $now {
                 THROW 'pending'
             };",
        use_proof!(),
        "DELETE type::record('pending_sign_in', [$user, $pending]) RETURN NONE;",
        write_session!(),
        "};
         COMMIT;"
    ),
);

/// Opens the session of a pending sign-in, with a code, a recovery code or a passkey.
///
/// # Errors
/// Any failure of the store.
pub async fn sign_in(
    store: &Store,
    pending: &str,
    factor: Uuid,
    proof: &Proof,
    session: &SessionRow,
) -> Result<Used> {
    let vars = bind! {
        user: session.user.0,
        pending: pending,
        factor: factor,
        step: proof.step(),
        recovery: proof.recovery(),
        passkey: proof.passkey(),
        hash: session.hash.as_str(),
        row: sessions::Stored::from(session),
        now: session.signed_in_at.micros(),
    };
    used(store.db.run(SIGN_IN, vars).await)
}
