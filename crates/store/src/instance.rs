//! The instance: whether it is set up, the one transaction that does it, and how
//! much there is of everything.
//!
//! What belongs here: statements about the one record `instance:setup`. It is
//! created by the first migration, so that a token can be put there. What does
//! not: how the set-up token is made (`weir-service`).

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
use crate::users::{self, UserRow};
use crate::{Error, Result, Store, events, projects};

/// What is known of the set-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceRow {
    /// The first user, once the instance is set up.
    pub first_user: Option<UserId>,
    /// SHA-256 of the token that allows the set-up, and when it ends.
    pub token: Option<(String, Timestamp)>,
}

/// Everything the set-up writes.
#[derive(Debug, Clone)]
pub struct NewInstance {
    /// The first user.
    pub user: UserRow,
    /// The user's address, normalised.
    pub email_key: String,
    /// The first organization with its project; owned by `user`.
    pub organization: NewOrganization,
    /// A first key of the user. Written with the rest: a set-up that was cut
    /// short between the two would leave a user whose key nobody has seen.
    pub key: Option<KeyRow>,
    /// SHA-256 of the token that must be valid; `None`: the caller has the host.
    pub token: Option<String>,
    /// What the activity log tells.
    pub activities: Vec<Entry>,
}

/// What became of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUp {
    /// It is done, by this call.
    Done,
    /// A user exists, or the token is not valid (any more).
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

// Parallel calls all write `instance:setup`, so one wins; the others collide
// with it, run again and find a user. A second run of the winner itself (its
// commit's answer was lost) finds its own user and writes the same again.
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

/// Creates the first user with organization, project and perhaps a key, or
/// nothing.
///
/// # Errors
/// Any failure of the store.
pub async fn set_up(store: &Store, new: &NewInstance, now: Timestamp) -> Result<SetUp> {
    let vars = bind! {
        user: new.user.id.0,
        first_user: users::Stored::from(&new.user),
        email: new.email_key.as_str(),
        organization: organizations::Stored::from(&new.organization.row),
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

/// How much there is, over all organizations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Accounts.
    pub users: u64,
    /// Organizations.
    pub organizations: u64,
    /// Projects.
    pub projects: u64,
    /// Events that can be read back.
    pub events: u64,
}

#[derive(Debug, SurrealValue)]
struct StoredCounts {
    users: i64,
    organizations: i64,
    projects: i64,
}

// One record for each: as many as people have made.
const COUNTS: Statement = Statement::read(
    "instance counts",
    "RETURN {
         users: count(SELECT VALUE 1 FROM `user`),
         organizations: count(SELECT VALUE 1 FROM organization),
         projects: count(SELECT VALUE 1 FROM project)
     };",
);

/// How much there is. Events are counted by the numbers that they were given.
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
