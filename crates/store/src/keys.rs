//! Personal API keys, found by the SHA-256 of their value.
//!
//! What belongs here: statements about `api_key` (the record, by hash) and
//! `user_key` (a user's keys, by id). What does not: the value, which is never
//! stored; what a key may do (`weir-service`).

mod overlap;
mod uses;

use surrealdb::types::{self, Kind, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::keys::PersonalKey;
use weir_model::scopes::Scope;
use weir_model::{KeyId, OrganizationId, ProjectId, Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::{Operation, Statement};
use crate::transaction::Transaction;
use crate::update::Row;
use crate::{Error, Result, Store, users};

pub use overlap::{NewValue, end_previous, roll};
pub use uses::{uses, write_uses};

/// A key as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// SHA-256 of the value, as hexadecimal digits.
    pub hash: String,
    /// The owner of the key.
    pub user: UserId,
    /// The key as it is shown, without its value.
    pub key: PersonalKey,
    /// The previous value, which stays valid for a limited time.
    pub previous: Option<PreviousValue>,
}

/// A value that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousValue {
    /// SHA-256 of the value, as hexadecimal digits.
    pub hash: String,
    /// First and last characters of the value.
    pub mask: String,
    /// When it stops working.
    pub until: Timestamp,
}

/// The result of creating a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The key is stored.
    Yes,
    /// The owner is deactivated or deleted. Nothing was written.
    Void,
    /// The user has as many keys as allowed. Nothing was written.
    TooMany,
}

#[derive(Debug, Clone, SurrealValue)]
pub(crate) struct Stored {
    hash: String,
    user: Uuid,
    user_number: i64,
    key: String,
    label: String,
    mask: Option<String>,
    scopes: Vec<String>,
    scoped_projects: Vec<i64>,
    scoped_organizations: Vec<Uuid>,
    created_at: i64,
    last_used_at: Option<i64>,
    last_rolled_at: Option<i64>,
    expires_at: Option<i64>,
    previous_hash: Option<String>,
    previous_mask: Option<String>,
    previous_until: Option<i64>,
}

// The record is found by the hash of the value, which `roll` replaces.
impl Row for KeyRow {
    type Id = String;
    type With = ();
    const TABLE: &'static str = "api_key";
    const UPDATE: &'static str = "keys update";

    fn touch(&mut self, _now: Timestamp) {}
}

impl SurrealValue for KeyRow {
    fn kind_of() -> Kind {
        Stored::kind_of()
    }

    fn into_value(self) -> Value {
        Stored::from(&self).into_value()
    }

    fn from_value(value: Value) -> std::result::Result<Self, types::Error> {
        let row = Self::try_from(Stored::from_value(value)?);
        row.map_err(|error| types::Error::internal(error.to_string()))
    }
}

impl TryFrom<Stored> for KeyRow {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self> {
        let scopes: std::result::Result<Vec<Scope>, String> =
            stored.scopes.iter().map(|scope| scope.parse()).collect();
        let key = PersonalKey {
            id: KeyId(stored.key),
            label: stored.label,
            value: None,
            mask_value: stored.mask,
            created_at: Timestamp::from_micros(stored.created_at),
            last_used_at: stored.last_used_at.map(Timestamp::from_micros),
            last_rolled_at: stored.last_rolled_at.map(Timestamp::from_micros),
            user_id: stored.user_number,
            scopes: scopes.map_err(|detail| Error::Shape { statement: "keys", detail })?,
            scoped_teams: stored.scoped_projects.into_iter().map(ProjectId).collect(),
            scoped_organizations: stored
                .scoped_organizations
                .into_iter()
                .map(OrganizationId)
                .collect(),
            expires_at: stored.expires_at.map(Timestamp::from_micros),
        };
        let previous = match (stored.previous_hash, stored.previous_until) {
            (Some(hash), Some(until)) => Some(PreviousValue {
                hash,
                mask: stored.previous_mask.unwrap_or_default(),
                until: Timestamp::from_micros(until),
            }),
            _ => None,
        };
        Ok(Self { hash: stored.hash, user: UserId(stored.user), key, previous })
    }
}

impl From<&KeyRow> for Stored {
    fn from(row: &KeyRow) -> Self {
        let (key, previous) = (&row.key, row.previous.as_ref());
        Self {
            hash: row.hash.clone(),
            user: row.user.0,
            user_number: key.user_id,
            key: key.id.0.clone(),
            label: key.label.clone(),
            mask: key.mask_value.clone(),
            scopes: key.scopes.iter().map(ToString::to_string).collect(),
            scoped_projects: key.scoped_teams.iter().map(|id| id.0).collect(),
            scoped_organizations: key.scoped_organizations.iter().map(|id| id.0).collect(),
            created_at: key.created_at.micros(),
            last_used_at: key.last_used_at.map(Timestamp::micros),
            last_rolled_at: key.last_rolled_at.map(Timestamp::micros),
            expires_at: key.expires_at.map(Timestamp::micros),
            previous_hash: previous.map(|previous| previous.hash.clone()),
            previous_mask: previous.map(|previous| previous.mask.clone()),
            previous_until: previous.map(|previous| previous.until.micros()),
        }
    }
}

const BY_HASH: Operation = Operation::read("keys by hash");

/// What leads to a key: `api_key_previous` and `user_key`.
#[derive(SurrealValue)]
struct Pointer {
    hash: String,
}

/// `api_key:<hash>`
fn record(hash: &str) -> RecordId {
    RecordId::new("api_key", hash)
}

/// The key whose value or previous value has this hash, if its owner is active. The
/// caller checks whether the key has expired and whether the previous value is still
/// valid.
///
/// # Errors
/// Any failure of the store.
pub async fn by_hash(store: &Store, hash: &str) -> Result<Option<KeyRow>> {
    let keyspace = store.db.keyspace().await?;
    let of_value = keyspace.key(record(hash))?;
    let of_previous = keyspace.key(RecordId::new("api_key_previous", hash))?;
    let work = move |tx: Transaction| {
        let (of_value, of_previous) = (of_value.clone(), of_previous.clone());
        async move {
            let mut found = tx.get_one::<Stored>(&of_value).await?;
            if found.is_none()
                && let Some(pointer) = tx.get_one::<Pointer>(&of_previous).await?
            {
                found = tx.get_one(&keyspace.key(record(&pointer.hash))?).await?;
            }
            let Some(found) = found else { return Ok(None) };
            let is_active = users::is_active(&tx, keyspace, UserId(found.user)).await?;
            Ok(is_active.then_some(found))
        }
    };
    let found = store.db.transact(BY_HASH, (), work).await?;
    let row = found.map(KeyRow::try_from).transpose()?;
    let had = |row: &KeyRow| row.previous.as_ref().is_some_and(|previous| previous.hash == hash);
    Ok(row.filter(|row| row.hash == hash || had(row)))
}

const LIST: Statement = Statement::read(
    "keys of a user",
    "SELECT * FROM (SELECT VALUE type::record('api_key', hash)
                    FROM user_key:[$user]..=[$user, ..]);",
);

/// The keys of a user, newest first.
///
/// # Errors
/// Any failure of the store.
pub async fn of_user(store: &Store, user: UserId) -> Result<Vec<KeyRow>> {
    let mut answer = store.db.run(LIST, bind! { user: user.0 }).await?;
    let rows: Result<Vec<KeyRow>> =
        answer.rows::<Stored>(0)?.into_iter().map(KeyRow::try_from).collect();
    let mut rows = rows?;
    rows.sort_by(|a, b| (b.key.created_at, &b.key.id.0).cmp(&(a.key.created_at, &a.key.id.0)));
    Ok(rows)
}

const GET: Operation = Operation::read("keys get");

/// A key of this user.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, user: UserId, key: &KeyId) -> Result<Option<KeyRow>> {
    let keyspace = store.db.keyspace().await?;
    let parts = vec![user.0.into_value(), key.0.clone().into_value()];
    let pointer = keyspace.key(RecordId::new("user_key", RecordIdKey::Array(parts.into())))?;
    let work = move |tx: Transaction| {
        let pointer = pointer.clone();
        async move {
            let Some(Pointer { hash }) = tx.get_one(&pointer).await? else { return Ok(None) };
            tx.get_one::<Stored>(&keyspace.key(record(&hash))?).await
        }
    };
    store.db.transact(GET, (), work).await?.map(KeyRow::try_from).transpose()
}

/// Writes a key and its entry in the owner's list. Used by the transactions that create
/// one; binds `$row` (the record) and `$user` (the owner). Idempotent.
macro_rules! write_key {
    () => {
        "UPSERT type::record('api_key', $row.hash) CONTENT $row RETURN NONE;
         UPSERT type::record('user_key', [$user, $row.key])
             CONTENT { hash: $row.hash } RETURN NONE;"
    };
}
pub(crate) use write_key;

// Two keys created concurrently would each miss the other. Writing the owner's record
// makes them conflict, so that the limit holds. The write needs a new value: the engine
// does not write a record that stays the same.
const CREATE: Statement = Statement::write(
    "keys create",
    concat!(
        "BEGIN;
         LET $owner = (UPDATE type::record('user', $user)
                       SET keys_made = (keys_made ?? 0) + 1 RETURN AFTER);
         IF $owner[0].is_active != true { THROW 'user' };
         LET $others = count(SELECT VALUE 1 FROM user_key:[$user]..=[$user, ..]
                             WHERE record::id(id)[1] != $row.key);
         IF $others >= $limit { THROW 'limit' };",
        write_key!(),
        write_activities!(),
        "COMMIT;"
    ),
);

/// Stores a new key, unless its owner has `limit` keys already.
///
/// # Errors
/// Any failure of the store.
pub async fn create(
    store: &Store,
    row: &KeyRow,
    limit: usize,
    activities: &[Entry],
) -> Result<Created> {
    let vars = bind! {
        user: row.user.0,
        row: Stored::from(row),
        limit: i64::try_from(limit).unwrap_or(i64::MAX),
    };
    match activity::change(store, CREATE, vars, activities).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { reason, .. }) if reason == "limit" => Ok(Created::TooMany),
        Err(Error::Refused { .. }) => Ok(Created::Void),
        Err(error) => Err(error),
    }
}

/// Deletes the key `$key` of `$user`, whose value has the hash `$hash_of`. Idempotent.
macro_rules! remove_key {
    () => {
        "LET $older = (SELECT VALUE previous_hash FROM ONLY type::record('api_key', $hash_of));
         IF $older != NONE {
             DELETE type::record('api_key_previous', $older) RETURN NONE;
         };
         DELETE type::record('api_key_use', [$user, $key]) RETURN NONE;
         DELETE type::record('api_key', $hash_of) RETURN NONE;
         DELETE type::record('user_key', [$user, $key]) RETURN NONE;"
    };
}
pub(crate) use remove_key;

/// Deletes keys of `$user`: all if `$homes` is empty, which lists the other organizations
/// of the user, else those that are limited to `$organization` and its projects. Used by
/// the transaction that deactivates a user. Idempotent.
macro_rules! end_keys {
    () => {
        concat!(
            "FOR $key IN (SELECT VALUE record::id(id)[1] FROM user_key:[$user]..=[$user, ..]) {
             LET $hash_of = (SELECT VALUE hash FROM ONLY type::record('user_key', [$user, $key]));
             LET $limits = (SELECT scoped_organizations, scoped_projects
                            FROM ONLY type::record('api_key', $hash_of));
             LET $projects_in = (SELECT VALUE organization FROM $limits.scoped_projects
                                 .map(|$number| type::record('project', $number)));
             LET $reached = array::concat($limits.scoped_organizations, $projects_in);
             LET $is_limited = $limits.scoped_organizations != []
                 OR $limits.scoped_projects != [];
             IF $homes = [] OR ($is_limited
                 AND array::complement($reached, [$organization]) = []) {",
            crate::keys::remove_key!(),
            "};
         };"
        )
    };
}
pub(crate) use end_keys;

const DELETE: Statement = Statement::delete(
    "keys delete",
    concat!(
        "BEGIN;
         LET $hash_of = (SELECT VALUE hash FROM ONLY type::record('user_key', [$user, $key]));
         IF $hash_of != NONE {",
        remove_key!(),
        write_activities!(),
        "};
         COMMIT;"
    ),
);

/// Deletes a key of this user. Does nothing when it is already deleted.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(store: &Store, user: UserId, key: &KeyId, activities: &[Entry]) -> Result<()> {
    let vars = bind! { user: user.0, key: key.0.as_str() };
    activity::change(store, DELETE, vars, activities).await.map(drop)
}

const TOUCH: Statement = Statement::write(
    "keys touch",
    "UPDATE type::record('api_key', $hash) SET last_used_at = $now RETURN NONE;",
);

/// Stores when a key was last used.
///
/// # Errors
/// Any failure of the store.
pub async fn touch(store: &Store, hash: &str, now: Timestamp) -> Result<()> {
    store.db.run(TOUCH, bind! { hash: hash, now: now.micros() }).await.map(drop)
}
