//! Users: the record, and the pointer that makes the address unique.
//!
//! What belongs here: statements about `user` and `user_email`. What does not: the
//! organizations of a user (`organizations`), signing in (`sessions`, `throttle`), links
//! in mails and the changes that they allow (`user_links`), the second factor
//! (`second_factor`).

use std::fmt;

use surrealdb::types::{self, Kind, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;
use weir_model::{OrganizationId, ProjectId, Timestamp, UserId};

use crate::bind::bind;
use crate::db::{Failure, Operation, Statement};
use crate::transaction::{Keyspace, Transaction};
use crate::update::Row;
use crate::{Error, Result, Store};

/// The text form of a password hash. Its `Debug` does not reveal it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(..)")
    }
}

impl SurrealValue for PasswordHash {
    fn kind_of() -> Kind {
        String::kind_of()
    }

    fn into_value(self) -> Value {
        self.0.into_value()
    }

    fn from_value(value: Value) -> std::result::Result<Self, types::Error> {
        String::from_value(value).map(Self)
    }
}

/// A user as stored. The id of the record is `user:<uuid>`.
#[derive(Debug, Clone, PartialEq, Eq, SurrealValue)]
pub struct UserRow {
    /// Id of the user.
    #[surreal(rename = "uuid")]
    pub id: UserId,
    /// Sequential number of the user in the instance.
    pub number: i64,
    /// Random text that identifies the user in events.
    pub distinct_id: String,
    /// First name.
    pub first_name: String,
    /// Last name; may be empty.
    pub last_name: String,
    /// Address as it was entered.
    pub email: String,
    /// The pending address, which replaces `email` once it is confirmed.
    pub pending_email: Option<String>,
    /// Whether the address was confirmed.
    pub is_email_verified: bool,
    /// Whether the user must confirm the address before signing in with a password or a passkey.
    // Missing in users that were created before this field existed.
    #[surreal(default)]
    pub must_confirm: bool,
    /// Hash of the password, if there is one.
    pub password: Option<PasswordHash>,
    /// The second factor that sign-ins ask for after the password, if there is one.
    pub second_factor: Option<Uuid>,
    /// Whether the user may see instance settings.
    pub is_staff: bool,
    /// Whether the user is active. Other users cannot sign in.
    pub is_active: bool,
    /// Colour theme: `light`, `dark` or `system`.
    pub theme_mode: Option<String>,
    /// The current organization of the user.
    pub current_organization: Option<OrganizationId>,
    /// The current project of the user.
    pub current_project: Option<ProjectId>,
    /// When the user was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When the user last signed in; a new user has not.
    pub last_login: Option<Timestamp>,
}

impl UserRow {
    /// A new active user with the defaults.
    #[must_use]
    pub fn new(id: UserId, number: i64, now: Timestamp) -> Self {
        Self {
            id,
            number,
            distinct_id: String::new(),
            first_name: String::new(),
            last_name: String::new(),
            email: String::new(),
            pending_email: None,
            is_email_verified: false,
            must_confirm: false,
            password: None,
            second_factor: None,
            is_staff: false,
            is_active: true,
            theme_mode: None,
            current_organization: None,
            current_project: None,
            created_at: now,
            updated_at: now,
            last_login: None,
        }
    }

    /// Whether another person may have created the user of this address: no one has proved
    /// to own it. The operator created the staff of the instance.
    #[must_use]
    pub const fn is_unproved(&self) -> bool {
        !self.is_staff && (!self.is_email_verified || self.must_confirm)
    }
}

impl Row for UserRow {
    type Id = UserId;
    type With = ();
    const TABLE: &'static str = "user";
    const UPDATE: &'static str = "users update";

    fn touch(&mut self, now: Timestamp) {
        self.updated_at = now;
    }
}

const GET: Operation = Operation::read("users get");

/// `user:<uuid>`
pub(crate) fn key(user: UserId) -> RecordId {
    RecordId::new("user", RecordIdKey::Uuid(user.0.into()))
}

/// Whether the user who owns a credential is active. Used by the reads of credentials: no
/// credential outlives its user.
pub(crate) async fn is_active(
    tx: &Transaction,
    keyspace: Keyspace,
    user: UserId,
) -> Result<bool, Failure> {
    #[derive(SurrealValue)]
    struct Active {
        is_active: bool,
    }
    let found: Option<Active> = tx.get_one(&keyspace.key(key(user))?).await?;
    Ok(found.is_some_and(|user| user.is_active))
}

/// The user with this id.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store, user: UserId) -> Result<Option<UserRow>> {
    store.db.get_one(GET, key(user)).await
}

const BY_EMAIL: Statement = Statement::read(
    "users by email",
    "SELECT * FROM (SELECT VALUE type::record('user', user) FROM type::record('user_email', $email));",
);

/// The user with this normalised address.
///
/// # Errors
/// Any failure of the store.
pub async fn by_email(store: &Store, normalised: &str) -> Result<Option<UserRow>> {
    // The engine does not allow empty record ids.
    if normalised.is_empty() {
        return Ok(None);
    }
    let mut answer = store.db.run(BY_EMAIL, bind! { email: normalised }).await?;
    answer.row(0)
}

// Without an index: providers of the instance are seldom changed.
const STAFF: Statement = Statement::read(
    "users staff",
    "SELECT * FROM user WHERE is_staff = true AND is_active = true LIMIT $most;",
);

/// The active staff of the instance: at most this many users.
///
/// # Errors
/// Any failure of the store.
pub async fn staff(store: &Store, most: usize) -> Result<Vec<UserRow>> {
    let vars = bind! { most: i64::try_from(most).unwrap_or(i64::MAX) };
    store.db.run(STAFF, vars).await?.rows(0)
}

/// The result of creating a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The user is stored.
    Yes,
    /// The address belongs to another user. Nothing was written.
    EmailTaken,
}

const CREATE: Statement = Statement::write(
    "users create",
    "BEGIN;
     LET $owner = (SELECT VALUE user FROM ONLY type::record('user_email', $email));
     IF $owner != NONE AND $owner != $row.uuid { THROW 'email' };
     UPSERT type::record('user_email', $email) CONTENT { user: $row.uuid } RETURN NONE;
     UPSERT type::record('user', $row.uuid) CONTENT $row RETURN NONE;
     COMMIT;",
);

/// Adds a user; `normalised` is the form of the address that must be unique.
///
/// # Errors
/// Any failure of the store.
pub async fn create(store: &Store, row: &UserRow, normalised: &str) -> Result<Created> {
    let vars = bind! { email: normalised, row: row.clone() };
    match store.db.run(CREATE, vars).await {
        Ok(_) => Ok(Created::Yes),
        Err(Error::Refused { .. }) => Ok(Created::EmailTaken),
        Err(error) => Err(error),
    }
}

const NEXT_NUMBER: Statement =
    Statement::write("users next number", "RETURN sequence::nextval('user_number');");

/// A number that no user has.
///
/// # Errors
/// Any failure of the store.
pub async fn next_number(store: &Store) -> Result<i64> {
    let mut answer = store.db.run(NEXT_NUMBER, bind! {}).await?;
    answer
        .row(0)?
        .ok_or_else(|| Error::Shape { statement: NEXT_NUMBER.name, detail: "no number".to_owned() })
}

const REPLACE_HASH: Statement = Statement::write(
    "users replace hash",
    "UPDATE type::record('user', $user) SET password = $new_hash
     WHERE password IN [$old_hash, $new_hash] RETURN VALUE uuid;",
);

/// Stores a new hash of the same password, unless the stored one has changed since
/// `before` was read. Returns whether it is stored.
///
/// # Errors
/// Any failure of the store.
pub async fn replace_hash(
    store: &Store,
    user: UserId,
    before: &PasswordHash,
    after: &PasswordHash,
) -> Result<bool> {
    let vars = bind! { user: user.0, old_hash: before.0.as_str(), new_hash: after.0.as_str() };
    Ok(store.db.run(REPLACE_HASH, vars).await?.row::<Uuid>(0)?.is_some())
}

const SET_CURRENT: Statement = Statement::write(
    "users set current",
    "UPDATE type::record('user', $user)
     SET current_organization = $organization, current_project = $project RETURN NONE;",
);

/// Sets the current organization and project of the user.
///
/// # Errors
/// Any failure of the store.
pub async fn set_current(
    store: &Store,
    user: UserId,
    organization: Option<OrganizationId>,
    project: Option<ProjectId>,
) -> Result<()> {
    let vars = bind! {
        user: user.0,
        organization: organization.map(|id| id.0),
        project: project.map(|id| id.0),
    };
    store.db.run(SET_CURRENT, vars).await.map(drop)
}

/// The result of deleting a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The user is deleted, or was before.
    Yes,
    /// The user belongs to an organization. Nothing was changed.
    HasMemberships,
}

// Accepting an invite writes the user's record, because it sets the current organization.
// So this conflicts with it, runs again and finds the membership.
const DELETE: Statement = Statement::delete(
    "users delete",
    "BEGIN;
     LET $memberships = (SELECT VALUE 1 FROM user_membership:[$user]..=[$user, ..]);
     IF $memberships != [] { THROW 'memberships' };
     FOR $hash IN (SELECT VALUE hash FROM user_key:[$user]..=[$user, ..]) {
         LET $older = (SELECT VALUE previous_hash FROM ONLY type::record('api_key', $hash));
         IF $older != NONE {
             DELETE type::record('api_key_previous', $older) RETURN NONE;
         };
         DELETE type::record('api_key', $hash) RETURN NONE;
     };
     DELETE api_key_use:[$user]..=[$user, ..] RETURN NONE;
     DELETE project_checklist:[$user]..=[$user, ..] RETURN NONE;
     FOR $key IN (SELECT VALUE record::id(id)[1] FROM user_key:[$user]..=[$user, ..]) {
         DELETE type::record('user_key', [$user, $key]) RETURN NONE;
     };
     FOR $session IN (SELECT VALUE record::id(id)[1]
                      FROM user_session:[$user]..=[$user, ..]) {
         DELETE type::record('session', $session) RETURN NONE;
         DELETE type::record('user_session', [$user, $session]) RETURN NONE;
     };
     DELETE account_link:[$user]..=[$user, ..] RETURN NONE;
     DELETE type::record('preference', $user) RETURN NONE;
     DELETE pending_sign_in:[$user]..=[$user, ..] RETURN NONE;
     DELETE known_browser:[$user]..=[$user, ..] RETURN NONE;
     DELETE type::record('second_factor', $user) RETURN NONE;
     FOR $identity IN (SELECT VALUE record::id(id)[1]
                       FROM user_identity:[$user]..=[$user, ..]) {
         DELETE type::record('external_identity', $identity) RETURN NONE;
         DELETE type::record('user_identity', [$user, $identity]) RETURN NONE;
     };
     FOR $key IN (SELECT VALUE record::id(id)[1] FROM user_passkey:[$user]..=[$user, ..]) {
         DELETE type::record('passkey', $key) RETURN NONE;
         DELETE type::record('user_passkey', [$user, $key]) RETURN NONE;
     };
     DELETE type::record('passkey_handle', $user) RETURN NONE;
     DELETE type::record('user_email', $email) RETURN NONE;
     DELETE type::record('user', $user) RETURN NONE;
     COMMIT;",
);

/// Deletes a user with their keys, sessions, links, second factor, passkeys and identities, unless
/// the user belongs to an organization. `normalised` is the form of their address that must be
/// unique.
///
/// # Errors
/// Any failure of the store.
pub async fn delete(store: &Store, user: UserId, normalised: &str) -> Result<Deleted> {
    match store.db.run(DELETE, bind! { user: user.0, email: normalised }).await {
        Ok(_) => Ok(Deleted::Yes),
        Err(Error::Refused { .. }) => Ok(Deleted::HasMemberships),
        Err(error) => Err(error),
    }
}
