//! Sessions of the web app, found by the SHA-256 of their token, and the browsers in
//! which users have signed in.
//!
//! What belongs here: statements about `session`, `user_session` and `known_browser`, and
//! the parts of other transactions that open and end sessions. What does not: when a
//! session ends (`weir-service`); the tokens themselves, which are never stored.

use std::ops::Bound;

use surrealdb::types::{RecordId, RecordIdKey, RecordIdKeyRange, SurrealValue};
use uuid::Uuid;
use weir_model::sso::OpenedBy;
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};

use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::domains::{self, DomainRow};
use crate::error::is_done;
use crate::transaction::Transaction;
use crate::users::{PasswordHash, UserRow};
use crate::{Result, Store, users};

/// A message that a page showed to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// When it was shown.
    pub at: Timestamp,
    /// The text of the message.
    pub text: String,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredMessage {
    at: i64,
    text: String,
}

/// A session as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// SHA-256 of the token, as hexadecimal digits.
    pub hash: String,
    /// The user of the session.
    pub user: UserId,
    /// When the user signed in.
    pub signed_in_at: Timestamp,
    /// When it was last used, to the minute.
    pub seen_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
    /// Client address at sign-in.
    pub address: Option<String>,
    /// User agent at sign-in.
    pub agent: Option<String>,
    /// SHA-256 of the token of the browser; `None` in older data.
    pub browser: Option<String>,
    /// How the user proved their identity.
    pub opened_by: OpenedBy,
    /// The normalised address of the user, if the connection that opened the session
    /// proved it.
    pub proves: Option<String>,
}

#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct Stored {
    hash: String,
    user: Uuid,
    signed_in_at: i64,
    seen_at: i64,
    expires_at: i64,
    address: Option<String>,
    agent: Option<String>,
    browser: Option<String>,
    opened_by: Option<String>,
    proves: Option<String>,
}

impl From<Stored> for SessionRow {
    fn from(stored: Stored) -> Self {
        Self {
            hash: stored.hash,
            user: UserId(stored.user),
            signed_in_at: Timestamp::from_micros(stored.signed_in_at),
            seen_at: Timestamp::from_micros(stored.seen_at),
            expires_at: Timestamp::from_micros(stored.expires_at),
            address: stored.address,
            agent: stored.agent,
            browser: stored.browser,
            opened_by: OpenedBy::of_word(stored.opened_by.as_deref()),
            proves: stored.proves,
        }
    }
}

impl From<&SessionRow> for Stored {
    fn from(row: &SessionRow) -> Self {
        Self {
            hash: row.hash.clone(),
            user: row.user.0,
            signed_in_at: row.signed_in_at.micros(),
            seen_at: row.seen_at.micros(),
            expires_at: row.expires_at.micros(),
            address: row.address.clone(),
            agent: row.agent.clone(),
            browser: row.browser.clone(),
            opened_by: Some(row.opened_by.word()),
            proves: row.proves.clone(),
        }
    }
}

/// The factors that were checked before a session is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct Proved<'a> {
    /// The password; `None`: another way of signing in, and the second factor is not
    /// compared.
    pub password: Option<&'a PasswordHash>,
    /// The second factor of the user, as it was read together with the password.
    pub second_factor: Option<Uuid>,
}

impl<'a> Proved<'a> {
    /// The factors of this user, as they were read.
    #[must_use]
    pub fn of(user: &'a UserRow) -> Self {
        Self { password: user.password.as_ref(), second_factor: user.second_factor }
    }
}

/// Writes the session `$row` of `$user` with the hash `$hash`, and stores that its
/// browser is known, unless the user is deactivated. Used by the transactions that open a
/// session, which write the user's record. Removes expired sessions of the user, and all
/// known browsers except the twenty that were used last.
macro_rules! write_session {
    () => {
        "LET $may_enter = (SELECT VALUE is_active FROM ONLY type::record('user', $user));
         IF $may_enter != true { THROW 'user' };
         FOR $ended IN (SELECT VALUE record::id(id)[1] FROM user_session:[$user]..=[$user, ..]
                        WHERE expires_at <= $now) {
             DELETE type::record('session', $ended) RETURN NONE;
             DELETE type::record('user_session', [$user, $ended]) RETURN NONE;
         };
         UPSERT type::record('session', $hash) CONTENT $row RETURN NONE;
         UPSERT type::record('user_session', [$user, $hash])
             CONTENT { expires_at: $row.expires_at } RETURN NONE;
         IF $row.browser != NONE {
             UPSERT type::record('known_browser', [$user, $row.browser])
                 CONTENT { seen_at: $now } RETURN NONE;
             FOR $old IN (SELECT id, seen_at FROM known_browser:[$user]..=[$user, ..]
                          ORDER BY seen_at DESC START 20) {
                 DELETE $old.id RETURN NONE;
             };
         };"
    };
}
pub(crate) use write_session;

/// Ends all sessions of `$user` except `$kept`, and all sign-ins that wait for a second
/// factor.
macro_rules! end_other_sessions {
    () => {
        "FOR $open IN (SELECT VALUE record::id(id)[1] FROM user_session:[$user]..=[$user, ..]) {
             IF $open != $kept {
                 DELETE type::record('session', $open) RETURN NONE;
                 DELETE type::record('user_session', [$user, $open]) RETURN NONE;
             };
         };
         DELETE pending_sign_in:[$user]..=[$user, ..] RETURN NONE;"
    };
}
pub(crate) use end_other_sessions;

/// Ends all sessions of `$user`, and all sign-ins that wait for a second factor. Used by
/// the transactions that change the password or the second factor, or that remove a user
/// from their last organization. They write the user's record, so that they conflict with
/// transactions that open a session.
macro_rules! end_sessions {
    () => {
        "FOR $open IN (SELECT VALUE record::id(id)[1] FROM user_session:[$user]..=[$user, ..]) {
             DELETE type::record('session', $open) RETURN NONE;
             DELETE type::record('user_session', [$user, $open]) RETURN NONE;
         };
         DELETE pending_sign_in:[$user]..=[$user, ..] RETURN NONE;"
    };
}
pub(crate) use end_sessions;

// Expired sessions are removed when their user signs in again, so the table has at most
// about one record per user and browser. Writing the user's record makes this conflict
// with a reset of the password and with a change of the second factor, which end all
// sessions. Otherwise they could miss a session that is being opened. The write needs a
// new value: the engine does not write a record that stays the same.
const CREATE: Statement = Statement::sign_in(
    "sessions create",
    concat!(
        "BEGIN;
         LET $found = (UPDATE type::record('user', $user) SET
                           sessions_made = (sessions_made ?? 0) + 1,
                           last_login = IF $proved != NONE { $now } ELSE { last_login }
                       RETURN AFTER);
         LET $user_row = $found[0];
         IF $proved != NONE AND ($user_row = NONE OR $user_row.password != $proved
             OR $user_row.second_factor != $factor) { THROW 'proved' };
         IF $replaced != NONE {
             DELETE type::record('session', $replaced) RETURN NONE;
             DELETE type::record('user_session', [$user, $replaced]) RETURN NONE;
         };",
        write_session!(),
        "COMMIT;"
    ),
);

/// Stores a new session; `replaced` is the hash of the session that it replaces. `false`:
/// the user is deactivated, or has another password or second factor by now than the proved
/// one, and nothing was written.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &SessionRow,
    replaced: Option<&str>,
    proved: Proved<'_>,
) -> Result<bool> {
    let vars = bind! {
        hash: row.hash.as_str(),
        user: row.user.0,
        now: row.signed_in_at.micros(),
        replaced: replaced.map(str::to_owned),
        proved: proved.password.map(|hash| hash.0.clone()),
        factor: proved.second_factor,
        row: Stored::from(row),
    };
    is_done(store.db.run(CREATE, vars).await)
}

const GET: Operation = Operation::read("sessions get");

/// `session:<hash>`
fn key(hash: &str) -> RecordId {
    RecordId::new("session", hash)
}

/// The session with this hash, if its user is active, with the address of the user and the
/// verified domain of that address. `domain_of` returns the name of the domain of an address. The caller
/// checks whether the session has expired, and whether the domain allows it.
///
/// # Errors
/// Any failure of the store.
pub async fn of_active_user(
    store: &Store,
    hash: &str,
    domain_of: fn(&str) -> Option<String>,
) -> Result<Option<(SessionRow, String, Option<DomainRow>)>> {
    #[derive(SurrealValue)]
    struct User {
        is_active: bool,
        email: String,
    }
    let keyspace = store.db.keyspace().await?;
    let session = keyspace.key(key(hash))?;
    let work = move |tx: Transaction| {
        let session = session.clone();
        async move {
            let Some(found) = tx.get_one::<Stored>(&session).await? else { return Ok(None) };
            let user = keyspace.key(users::key(UserId(found.user)))?;
            let user = tx.get_one::<User>(&user).await?.filter(|user| user.is_active);
            let Some(user) = user else { return Ok(None) };
            let domain = match domain_of(&user.email) {
                Some(name) => domains::verified(&tx, keyspace, &name).await?,
                None => None,
            };
            Ok(Some((found, user.email, domain)))
        }
    };
    let found = store.db.transact(GET, (), work).await?;
    Ok(found.map(|(session, email, domain)| (SessionRow::from(session), email, domain)))
}

/// The session with this hash. The caller checks whether it has expired.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, hash: &str) -> Result<Option<SessionRow>> {
    let found = store.db.get_one::<Stored>(GET, key(hash)).await?;
    Ok(found.map(SessionRow::from))
}

const IS_KNOWN: Statement = Statement::read(
    "sessions known browser",
    "RETURN record::exists(type::record('known_browser', [$user, $browser]));",
);

const KNOW: Statement = Statement::sign_in(
    "sessions know browser",
    "UPSERT type::record('known_browser', [$user, $browser])
     CONTENT { seen_at: $now } RETURN NONE;",
);

/// Stores that this user has signed in in the browser whose token has this hash. The next
/// new session removes browsers beyond the limit.
///
/// # Errors
/// Any failure of the store.
pub async fn know_browser(
    store: &Store,
    user: UserId,
    browser: &str,
    now: Timestamp,
) -> Result<()> {
    let vars = bind! { user: user.0, browser: browser, now: now.micros() };
    store.db.run(KNOW, vars).await.map(drop)
}

/// Whether this user has signed in before in the browser whose token has this hash.
///
/// # Errors
/// Any failure of the store.
pub async fn is_known_browser(store: &Store, user: UserId, browser: &str) -> Result<bool> {
    let mut answer = store.db.run(IS_KNOWN, bind! { user: user.0, browser: browser }).await?;
    Ok(answer.row(0)?.unwrap_or(false))
}

const TOUCH: Statement = Statement::write(
    "sessions touch",
    "UPDATE type::record('session', $hash) SET seen_at = $now WHERE seen_at < $now RETURN NONE;",
);

/// Stores when the session was last used.
///
/// # Errors
/// Any failure of the store.
pub async fn touch(store: &Store, hash: &str, now: Timestamp) -> Result<()> {
    store.db.run(TOUCH, bind! { hash: hash, now: now.micros() }).await.map(drop)
}

const DELETE: Statement = Statement::delete(
    "sessions delete",
    "BEGIN;
     DELETE type::record('session', $hash) RETURN NONE;
     DELETE type::record('user_session', [$user, $hash]) RETURN NONE;
     COMMIT;",
);

/// Ends a session of this user.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(store: &Store, user: UserId, hash: &str) -> Result<()> {
    store.db.run(DELETE, bind! { user: user.0, hash: hash }).await.map(drop)
}

const DELETE_OTHERS: Statement = Statement::delete(
    "sessions delete others",
    concat!("BEGIN;", end_other_sessions!(), "COMMIT;"),
);

/// Ends all sessions of this user except one, and the sign-ins that wait for a second
/// factor.
///
/// # Errors
/// Any failure of the store.
pub async fn delete_others(store: &Store, user: UserId, kept: &str) -> Result<()> {
    store.db.run(DELETE_OTHERS, bind! { user: user.0, kept: kept }).await.map(drop)
}

const LIST: Statement = Statement::read(
    "sessions of a user",
    "SELECT * FROM (SELECT VALUE type::record('session', record::id(id)[1])
                    FROM user_session:[$user]..=[$user, ..]);",
);

/// All sessions of a user, in no particular order.
///
/// # Errors
/// Any failure of the store.
pub async fn of_user(store: &Store, user: UserId) -> Result<Vec<SessionRow>> {
    let mut answer = store.db.run(LIST, bind! { user: user.0 }).await?;
    Ok(answer.rows::<Stored>(0)?.into_iter().map(SessionRow::from).collect())
}

const PART: Statement = Statement::read("sessions in parts", "SELECT hash, user FROM $range;");

/// The hashes of the sessions that begin with this byte, and the users of the sessions. It
/// is a 256th of all sessions, because hashes are spread evenly.
///
/// # Errors
/// Any failure of the store.
pub async fn part(store: &Store, byte: u8) -> Result<Vec<(String, UserId)>> {
    #[derive(SurrealValue)]
    struct Found {
        hash: String,
        user: Uuid,
    }
    let digits = |byte: u16| match byte {
        // After every text of hexadecimal digits.
        0x100 => "g".to_owned(),
        _ => format!("{byte:02x}"),
    };
    let start = Bound::Included(RecordIdKey::String(digits(byte.into())));
    let end = Bound::Excluded(RecordIdKey::String(digits(u16::from(byte) + 1)));
    let range = RecordIdKeyRange { start, end };
    let range = RecordId::new("session", RecordIdKey::Range(Box::new(range)));
    let found: Vec<Found> = store.db.run(PART, bind! { range: range }).await?.rows(0)?;
    Ok(found.into_iter().map(|found| (found.hash, UserId(found.user))).collect())
}

/// The current organization and project of a user or session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Current {
    /// The current organization.
    pub organization: Option<OrganizationId>,
    /// The current project, which belongs to the organization.
    pub project: Option<ProjectId>,
}

#[derive(Debug, Clone, SurrealValue)]
struct StoredCurrent {
    current_organization: Option<Uuid>,
    current_project: Option<i64>,
}

const CURRENT: Operation = Operation::read("sessions current");

/// The current organization and project of the session; `None`: none was chosen in it
/// yet.
///
/// # Errors
/// Any failure of the store.
pub async fn current(store: &Store, hash: &str) -> Result<Option<Current>> {
    let stored = store.db.get_one::<StoredCurrent>(CURRENT, key(hash)).await?;
    let chosen = stored.filter(|stored| stored.current_organization.is_some());
    Ok(chosen.map(|stored| Current {
        organization: stored.current_organization.map(OrganizationId),
        project: stored.current_project.map(ProjectId),
    }))
}

const SET_CURRENT: Statement = Statement::write(
    "sessions set current",
    "UPDATE type::record('session', $hash)
     SET current_organization = $organization, current_project = $project RETURN NONE;",
);

/// Sets the current organization and project of the session.
///
/// # Errors
/// Any failure of the store.
pub async fn set_current(store: &Store, hash: &str, current: Current) -> Result<()> {
    let vars = bind! {
        hash: hash,
        organization: current.organization.map(|id| id.0),
        project: current.project.map(|id| id.0),
    };
    store.db.run(SET_CURRENT, vars).await.map(drop)
}

const PUT_FLASH: Statement = Statement::write(
    "sessions put flash",
    "UPDATE type::record('session', $hash)
     SET flash = object::extend(flash ?? {}, object::from_entries([[$name, $sealed]]))
     RETURN NONE;",
);

/// Stores a sealed text in the session under a name.
///
/// # Errors
/// Any failure of the store.
pub async fn put_flash(store: &Store, hash: &str, name: &str, sealed: &str) -> Result<()> {
    let vars = bind! { hash: hash, name: name, sealed: sealed };
    store.db.run(PUT_FLASH, vars).await.map(drop)
}

const TAKE_FLASH: Statement = Statement::delete(
    "sessions take flash",
    "UPDATE type::record('session', $hash) SET flash = object::remove(flash, $name)
     WHERE flash[$name] != NONE RETURN VALUE $before.flash[$name];",
);

/// Removes and returns the sealed text of that name.
///
/// # Errors
/// Any failure of the store.
pub async fn take_flash(store: &Store, hash: &str, name: &str) -> Result<Option<String>> {
    let mut answer = store.db.run(TAKE_FLASH, bind! { hash: hash, name: name }).await?;
    answer.row(0)
}

const PUT_MESSAGE: Statement = Statement::write(
    "sessions put message",
    "UPDATE type::record('session', $hash)
     SET messages = array::slice(array::concat([$message], messages ?? []), 0, $most)
     RETURN NONE;",
);

/// Adds a message to the session and drops the oldest messages beyond `most`.
///
/// # Errors
/// Any failure of the store.
pub async fn put_message(store: &Store, hash: &str, message: &Message, most: i64) -> Result<()> {
    let stored = StoredMessage { at: message.at.micros(), text: message.text.clone() };
    let vars = bind! { hash: hash, message: stored, most: most };
    store.db.run(PUT_MESSAGE, vars).await.map(drop)
}

const MESSAGES: Operation = Operation::read("sessions messages");

#[derive(Debug, Clone, SurrealValue)]
struct StoredMessages {
    messages: Option<Vec<StoredMessage>>,
}

/// The messages of the session, newest first.
///
/// # Errors
/// Any failure of the store.
pub async fn messages(store: &Store, hash: &str) -> Result<Vec<Message>> {
    let stored = store.db.get_one::<StoredMessages>(MESSAGES, key(hash)).await?;
    let stored = stored.and_then(|stored| stored.messages).unwrap_or_default().into_iter();
    let shown = |one: StoredMessage| Message { at: Timestamp::from_micros(one.at), text: one.text };
    Ok(stored.map(shown).collect())
}
