//! Second factors of accounts: what codes are made from, recovery codes, and
//! sign-ins that wait for one.
//!
//! What belongs here: statements about `second_factor` and `pending_sign_in`, and
//! the mark of the user that one is asked for. What does not: which code is right
//! (`weir-service`); recovery codes and tokens themselves, of which hashes are kept.
//!
//! | table | id | holds |
//! |---|---|---|
//! | `second_factor` | user | the sealed secret; once it is confirmed the last step whose code was used, and hashes of recovery codes |
//! | `pending_sign_in` | `[user, hash]` | a right password that waits for a code |
//!
//! A factor that is confirmed is named by the user's record too. Whatever opens a
//! session writes that record, and whatever changes the factor: so that they
//! collide, and no session is opened by what was asked for before.

mod changes;

#[cfg(test)]
mod tests;

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::{Timestamp, UserId};

pub use changes::{Change, Renewal, confirm, disable, remove, renew};

use crate::bind::bind;
use crate::db::{Answer, Statement};
use crate::error::is_done;
use crate::sessions::{self, SessionRow, write_session};
use crate::users::PasswordHash;
use crate::{Error, Result, Store};

/// An account's factor, whether it is confirmed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactorRow {
    /// Id of this factor: the next one of the account has another.
    pub factor: Uuid,
    /// What codes are made from, sealed.
    pub secret: String,
    /// When its set-up was begun.
    pub begun_at: Timestamp,
    /// When it was confirmed with a code; `None`: it is not asked for yet.
    pub confirmed_at: Option<Timestamp>,
    /// The last step whose code was used.
    pub last_step: Option<i64>,
    /// Hashes of the recovery codes that were not used.
    pub codes: Vec<String>,
}

#[derive(Debug, Clone, SurrealValue)]
struct Stored {
    factor: Uuid,
    /// None: an account is nobody's. Sealed fields stand beside one.
    organization: Uuid,
    secret: String,
    begun_at: i64,
    confirmed_at: Option<i64>,
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
            last_step: stored.last_step,
            codes: stored.codes,
        }
    }
}

/// What proves that somebody has the factor: each works once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// A code of this step.
    Step(i64),
    /// A recovery code, by its hash.
    Recovery(String),
}

impl Proof {
    fn step(&self) -> Option<i64> {
        if let Self::Step(step) = self { Some(*step) } else { None }
    }

    fn recovery(&self) -> Option<String> {
        if let Self::Recovery(hash) = self { Some(hash.clone()) } else { None }
    }
}

/// What became of using a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// It is done.
    Yes,
    /// The proof was used before; nothing was written.
    Before,
    /// The factor, the account, the session or the sign-in is not what it was;
    /// nothing was written.
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

/// Uses `$step` or `$recovery` up, of the factor `$factor` of `$user`. Part of the
/// transactions that ask for a proof. A last step that is later than
/// this one by more than codes may drift was noted while the clock was ahead: it would
/// refuse every code until then.
macro_rules! use_proof {
    () => {
        "LET $held = (SELECT * FROM ONLY type::record('second_factor', $user));
         IF $held = NONE OR $held.factor != $factor OR $held.confirmed_at = NONE { THROW 'factor' };
         IF $step != NONE {
             LET $last = $held.last_step ?? 0;
             IF $step <= $last AND $last <= $step + 2 { THROW 'used' };
             UPDATE type::record('second_factor', $user) SET last_step = $step RETURN NONE;
         };
         IF $recovery != NONE {
             IF $held.codes CONTAINSNOT $recovery { THROW 'used' };
             UPDATE type::record('second_factor', $user)
                 SET codes = array::complement(codes, [$recovery]) RETURN NONE;
         };"
    };
}
pub(crate) use use_proof;

const GET: Statement =
    Statement::read("second factor get", "SELECT * FROM type::record('second_factor', $user);");

/// The factor of this account, confirmed or not.
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
     LET $account = $found[0];
     IF $account = NONE OR $account.second_factor != NONE { THROW 'factor' };
     UPSERT type::record('second_factor', $user) CONTENT $row RETURN NONE;
     COMMIT;",
);

/// Notes a factor that waits to be confirmed, in the place of one that does.
/// `false`: the account has a confirmed one; nothing was written.
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
        secret: sealed.to_owned(),
        begun_at: now.micros(),
        confirmed_at: None,
        last_step: None,
        codes: Vec::new(),
    };
    is_done(store.db.run(BEGIN, bind! { user: user.0, row: row }).await)
}

const CANCEL: Statement = Statement::read(
    "second factor cancel",
    "DELETE type::record('second_factor', $user) WHERE confirmed_at = NONE RETURN NONE;",
);

/// Forgets a factor that waits to be confirmed.
///
/// # Errors
/// Any failure of the store.
pub async fn cancel(store: &Store, user: UserId) -> Result<()> {
    store.db.run(CANCEL, bind! { user: user.0 }).await.map(drop)
}

/// A sign-in that waits for a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRow {
    /// The factor that is asked for.
    pub factor: Uuid,
    /// When it is too late.
    pub expires_at: Timestamp,
    /// How many codes were wrong.
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

// Writing the user's record makes this collide with whatever ends sign-ins that
// wait.
const AWAIT: Statement = Statement::sign_in(
    "second factor await",
    "BEGIN;
     LET $found = (UPDATE type::record('user', $user)
                   SET sessions_made = (sessions_made ?? 0) + 1 RETURN AFTER);
     LET $account = $found[0];
     IF $account = NONE OR $account.password != $proved
         OR $account.second_factor != $row.factor { THROW 'proved' };
     DELETE pending_sign_in:[$user]..=[$user, ..] WHERE expires_at <= $now RETURN NONE;
     UPSERT type::record('pending_sign_in', [$user, $hash]) CONTENT $row RETURN NONE;
     COMMIT;",
);

/// A sign-in whose password was right.
#[derive(Debug, Clone, Copy)]
pub struct NewPending<'a> {
    /// Whose.
    pub user: UserId,
    /// SHA-256 of its token.
    pub hash: &'a str,
    /// The password that was proved.
    pub password: Option<&'a PasswordHash>,
    /// The factor that is asked for.
    pub factor: Uuid,
    /// When it is too late.
    pub expires_at: Timestamp,
}

/// Notes a sign-in that waits for a code. `false`: the account has another
/// password or factor by now; nothing was written.
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

/// The sign-in with this hash, whether it is too late or not.
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

/// Notes that a code was wrong.
///
/// # Errors
/// Any failure of the store.
pub async fn failed(store: &Store, user: UserId, hash: &str) -> Result<()> {
    store.db.run(FAILED, bind! { user: user.0, hash: hash }).await.map(drop)
}

// The new session says whether this is the second run of the same call. Of two
// calls with one code both write the factor: one wins, the other runs again and
// finds the code used.
const SIGN_IN: Statement = Statement::sign_in(
    "second factor sign in",
    concat!(
        "BEGIN;
         LET $made = (SELECT VALUE user FROM ONLY type::record('session', $hash));
         IF $made = NONE {
             LET $found = (UPDATE type::record('user', $user)
                           SET sessions_made = (sessions_made ?? 0) + 1, last_login = $now
                           RETURN AFTER);
             LET $account = $found[0];
             LET $waiting = (SELECT * FROM ONLY type::record('pending_sign_in', [$user, $pending]));
             IF $account = NONE OR $account.is_active != true OR $account.second_factor != $factor
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

/// Opens the session of a sign-in that waited, with a code or a recovery code.
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
        hash: session.hash.as_str(),
        row: sessions::Stored::from(session),
        now: session.signed_in_at.micros(),
    };
    used(store.db.run(SIGN_IN, vars).await)
}
