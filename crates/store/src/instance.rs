//! The instance: whether it is set up, the transaction that sets it up, and how many
//! users, organizations, projects and events it has.
//!
//! What belongs here: statements about the record `instance:setup`. The first migration
//! creates it, so that a set-up token can be stored there. What does not: how the set-up
//! token is made (`weir-service`).

use surrealdb::types::SurrealValue;
use uuid::Uuid;
use weir_model::activity::Entry;
use weir_model::organizations::Level;
use weir_model::{Timestamp, UserId};

use crate::activity::{self, write_activities};
use crate::bind::bind;
use crate::db::Statement;
use crate::keys::{self, KeyRow, write_key};
use crate::organizations::{self, NewOrganization, write_organization};
use crate::users::UserRow;
use crate::{Error, Result, Store, events, projects};

/// The state of the set-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRow {
    /// The first user, once the instance is set up.
    pub first_user: Option<UserId>,
    /// SHA-256 of the token that allows the set-up, and when the token expires.
    pub token: Option<(String, Timestamp)>,
}

/// All records that the set-up writes.
#[derive(Debug, Clone)]
pub struct NewInstance {
    /// The record of the first user.
    pub user: UserRow,
    /// The user's address in normalised form.
    pub email_key: String,
    /// The first organization with its project; owned by `user`.
    pub organization: NewOrganization,
    /// A first personal API key of the user. Written in the same transaction: if the
    /// set-up was interrupted between two, there would be a user whose key no person has
    /// seen.
    pub key: Option<KeyRow>,
    /// SHA-256 of the token that must be valid; `None`: the caller has access to the
    /// host.
    pub token: Option<String>,
    /// The audit entries of the change.
    pub activities: Vec<Entry>,
}

/// The result of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUp {
    /// This call set the instance up.
    Done,
    /// A user exists already, or the token is not valid or has expired.
    Refused,
}

#[derive(Debug, SurrealValue)]
struct Stored {
    user: Option<Uuid>,
    token: Option<String>,
    token_expires_at: Option<i64>,
}

const GET: Statement = Statement::read("instance get", "SELECT * FROM instance:setup;");

/// The state of the set-up.
///
/// # Errors
/// Any failure of the store.
pub async fn get(store: &Store) -> Result<InstanceRow> {
    let mut answer = store.db.run(GET, bind! {}).await?;
    let stored = answer.row::<Stored>(0)?.ok_or_else(|| Error::Shape {
        statement: GET.name,
        detail: "the record `instance:setup` is missing".to_owned(),
    })?;
    Ok(InstanceRow {
        first_user: stored.user.map(UserId),
        token: stored.token.zip(stored.token_expires_at.map(Timestamp::from_micros)),
    })
}

const PUT_TOKEN: Statement = Statement::write(
    "instance put token",
    "UPDATE instance:setup SET token = $token_hash, token_expires_at = $expires_at
     WHERE user = NONE RETURN VALUE true;",
);

/// Replaces the set-up token; `false` when a user exists.
///
/// # Errors
/// Any failure of the store.
pub async fn put_token(store: &Store, hash: &str, expires_at: Timestamp) -> Result<bool> {
    let vars = bind! { token_hash: hash, expires_at: expires_at.micros() };
    let mut answer = store.db.run(PUT_TOKEN, vars).await?;
    Ok(answer.row::<bool>(0)?.is_some())
}

// Concurrent calls all write `instance:setup`, so one commits. The others conflict with
// it, run again and find a user. A retry of the first one (the result of its commit was
// lost) finds its own user and writes the same again.
const SET_UP: Statement = Statement::write(
    "instance set up",
    concat!(
        "BEGIN;
         LET $state = (SELECT * FROM ONLY instance:setup);
         IF $state.user != NONE AND $state.user != $user { THROW 'done' };
         IF $state.user = NONE AND $token_hash != NONE
             AND ($state.token = NONE OR $state.token != $token_hash
                  OR $state.token_expires_at <= $now) { THROW 'token' };
         UPSERT type::record('user', $user) CONTENT $first_user RETURN NONE;
         UPSERT type::record('user_email', $email) CONTENT { user: $user } RETURN NONE;",
        write_organization!(),
        "IF $row != NONE {",
        write_key!(),
        "};
         UPDATE instance:setup SET user = $user, token = NONE, token_expires_at = NONE
             RETURN NONE;",
        write_activities!(),
        "COMMIT;"
    ),
);

/// Creates the first user with organization, project and an optional key, or writes
/// nothing.
///
/// # Errors
/// Any failure of the store.
pub async fn set_up(store: &Store, new: &NewInstance, now: Timestamp) -> Result<SetUp> {
    let vars = bind! {
        user: new.user.id.0,
        first_user: new.user.clone(),
        email: new.email_key.as_str(),
        organization: new.organization.row.clone(),
        membership: organizations::StoredMembership::new(
            new.organization.membership,
            Level::Owner,
            now,
        ),
        project: projects::Stored::from(&new.organization.project),
        row: new.key.as_ref().map(keys::Stored::from),
        token_hash: new.token.clone(),
        now: now.micros(),
    };
    match activity::change(store, SET_UP, vars, &new.activities).await {
        Ok(_) => Ok(SetUp::Done),
        Err(Error::Refused { .. }) => Ok(SetUp::Refused),
        Err(error) => Err(error),
    }
}

/// Totals over all organizations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Number of users.
    pub users: u64,
    /// Number of organizations.
    pub organizations: u64,
    /// Number of projects.
    pub projects: u64,
    /// Number of stored events.
    pub events: u64,
}

#[derive(Debug, SurrealValue)]
struct StoredCounts {
    users: i64,
    organizations: i64,
    projects: i64,
}

// Reads one record for each: as many as users have created.
const COUNTS: Statement = Statement::read(
    "instance counts",
    "RETURN {
         users: count(SELECT VALUE 1 FROM `user`),
         organizations: count(SELECT VALUE 1 FROM organization),
         projects: count(SELECT VALUE 1 FROM project)
     };",
);

/// Totals over all organizations. Events are counted by their arrival numbers.
///
/// # Errors
/// Any failure of the store.
pub async fn counts(store: &Store) -> Result<Counts> {
    let stored = store.db.run(COUNTS, bind! {}).await?.row::<StoredCounts>(0)?;
    let stored = stored
        .ok_or_else(|| Error::Shape { statement: COUNTS.name, detail: "no answer".to_owned() })?;
    let next = events::next_arrivals(store).await?;
    let number = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok(Counts {
        users: number(stored.users),
        organizations: number(stored.organizations),
        projects: number(stored.projects),
        events: next.values().map(|next| next.saturating_sub(1)).sum(),
    })
}
