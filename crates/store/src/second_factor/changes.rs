//! Changes of a factor by its user, which end all sessions and open a new one, and its
//! removal by the operator.
//!
//! An app can go while passkeys keep the factor on. What adds and removes passkeys is in
//! `passkeys`.

use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::{Timestamp, UserId};

use super::{Proof, Used, use_proof, used};
use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::mail::{self, MailRow, write_mails};
use crate::passkeys::{delete_passkeys, use_passkey};
use crate::sessions::{self, SessionRow, end_sessions, write_session};
use crate::{Result, Store};

/// A change of a factor.
#[derive(Debug)]
pub struct Change<'a> {
    /// Id of the factor.
    pub factor: Uuid,
    /// The proof that the user has the factor.
    pub proof: &'a Proof,
    /// Hash of the session in which it is changed.
    pub replaced: &'a str,
    /// The session that replaces it.
    pub session: &'a SessionRow,
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// Begins the transactions of a change. `$made` is the user of the new session if this is
/// a retry, else nothing.
macro_rules! changed_within {
    () => {
        "BEGIN;
         LET $made = (SELECT VALUE user FROM ONLY type::record('session', $hash));
         IF $made = NONE {
             LET $user_row = (SELECT * FROM ONLY type::record('user', $user));
             LET $within = (SELECT VALUE user FROM ONLY type::record('session', $replaced));
             IF $user_row = NONE OR $user_row.is_active != true OR $within = NONE { THROW 'user' };"
    };
}
pub(crate) use changed_within;

const CONFIRM: Statement = Statement::write(
    "second factor confirm",
    concat!(
        changed_within!(),
        "LET $begun = (SELECT * FROM ONLY type::record('second_factor', $user));
         IF $begun = NONE OR $begun.factor != $factor OR $begun.secret != $secret
             OR $begun.confirmed_at != NONE { THROW 'factor' };
         UPDATE type::record('second_factor', $user)
             SET confirmed_at = $now, since = since ?? $now, last_step = $step,
                 codes = $codes RETURN NONE;
         UPDATE type::record('user', $user)
             SET second_factor = $factor, updated_at = $now RETURN NONE;",
        end_sessions!(),
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Confirms the app with this sealed secret, and stores the hashes of new recovery codes and
/// the mails about it. Sign-ins ask for the factor from now on.
pub async fn confirm(
    store: &Store,
    change: Change<'_>,
    secret: &str,
    codes: Vec<String>,
    mails: &[MailRow],
) -> Result<Used> {
    let vars = bind! {
        user: change.session.user.0,
        factor: change.factor,
        secret: secret,
        step: change.proof.step(),
        codes: codes,
        replaced: change.replaced,
        hash: change.session.hash.as_str(),
        row: sessions::Stored::from(change.session),
        mails: mail::stored(mails)?,
        now: change.session.signed_in_at.micros(),
    };
    used(activity::change(store, CONFIRM, vars, change.activities).await)
}

const DISABLE: Statement = Statement::write(
    "second factor disable",
    concat!(
        changed_within!(),
        use_proof!(),
        "IF $held.confirmed_at = NONE { THROW 'factor' };
         LET $key = (SELECT VALUE 1 FROM user_passkey:[$user]..=[$user, ..] LIMIT 1);
         IF ($key != []) != $stays_on { THROW 'factor' };
         IF $stays_on {
             UPDATE type::record('second_factor', $user)
                 SET secret = NONE, confirmed_at = NONE, last_step = NONE RETURN NONE;
         } ELSE {
             DELETE type::record('second_factor', $user) RETURN NONE;
             UPDATE type::record('user', $user)
                 SET second_factor = NONE, updated_at = $now RETURN NONE;
         };",
        end_sessions!(),
        write_session!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Removes the app for its user, with the mails about it. `stays_on` says whether the user
/// has passkeys, which keep the factor on.
pub async fn disable(
    store: &Store,
    change: Change<'_>,
    stays_on: bool,
    mails: &[MailRow],
) -> Result<Used> {
    let vars = bind! {
        user: change.session.user.0,
        factor: change.factor,
        step: change.proof.step(),
        recovery: change.proof.recovery(),
        passkey: change.proof.passkey(),
        stays_on: stays_on,
        replaced: change.replaced,
        hash: change.session.hash.as_str(),
        row: sessions::Stored::from(change.session),
        mails: mail::stored(mails)?,
        now: change.session.signed_in_at.micros(),
    };
    used(activity::change(store, DISABLE, vars, change.activities).await)
}

const RENEW: Statement = Statement::write(
    "second factor renew codes",
    concat!(
        "BEGIN;
         LET $renewed_by = (SELECT VALUE renewed_by FROM ONLY type::record('second_factor', $user));
         IF $renewed_by != $attempt {",
        use_proof!(),
        "UPDATE type::record('second_factor', $user)
             SET codes = $codes, renewed_by = $attempt RETURN NONE;",
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// New recovery codes.
#[derive(Debug)]
pub struct Renewal<'a> {
    /// The user whose codes are replaced.
    pub user: UserId,
    /// Id of the factor.
    pub factor: Uuid,
    /// The proof that the user has the factor.
    pub proof: &'a Proof,
    /// Hashes of the new codes.
    pub codes: Vec<String>,
    /// An id of this call. It distinguishes a retry of the same transaction from another
    /// call.
    pub attempt: Uuid,
    /// The mails about the change.
    pub mails: &'a [MailRow],
    /// The audit entries of the change.
    pub activities: &'a [Entry],
}

/// Replaces all recovery codes.
pub async fn renew(store: &Store, renewal: Renewal<'_>) -> Result<Used> {
    let vars = bind! {
        user: renewal.user.0,
        factor: renewal.factor,
        step: renewal.proof.step(),
        recovery: renewal.proof.recovery(),
        passkey: renewal.proof.passkey(),
        codes: renewal.codes,
        attempt: renewal.attempt,
        mails: mail::stored(renewal.mails)?,
    };
    used(activity::change(store, RENEW, vars, renewal.activities).await)
}

const REMOVE: Statement = Statement::write(
    "second factor remove",
    concat!(
        "BEGIN;
         LET $marked = (SELECT VALUE second_factor FROM ONLY type::record('user', $user));
         IF $marked != NONE {
             DELETE type::record('second_factor', $user) RETURN NONE;
             UPDATE type::record('user', $user)
                 SET second_factor = NONE, updated_at = $now RETURN NONE;",
        delete_passkeys!(),
        end_sessions!(),
        write_mails!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Removes app and passkeys without a proof, for the operator, and ends all sessions. Also
/// writes the mails about it.
pub async fn remove(
    store: &Store,
    user: UserId,
    now: Timestamp,
    activities: &[Entry],
    mails: &[MailRow],
) -> Result<()> {
    let vars = bind! { user: user.0, now: now.micros(), mails: mail::stored(mails)? };
    activity::change(store, REMOVE, vars, activities).await.map(drop)
}
