//! Personal API keys: the credential of scripts, and its owner's list of them (API-17,
//! API-18).
//!
//! What belongs here: creating, checking, replacing and deleting keys. What does not:
//! where in a request a key is found (the server), what it may do (`policy`).
//!
//! Creating a key and replacing its value need a recent sign-in: both return a secret
//! that outlives the session. Deleting does not, on purpose. It returns no secret, and
//! a leaked key must stop working before its owner has found the password. A stolen
//! session can at worst stop a script, which the owner sees and repairs with a new key.

mod changes;
mod overview;
mod rotation;
mod uses;

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::keys::{LABEL_MAX, PER_USER, PREFIX, PersonalKey, PersonalKeyInput};
use weir_model::scopes::Scope;
use weir_model::{KeyId, OrganizationId, ProjectId, Timestamp, UserId, validate};
use weir_store::keys::{self as rows, Created, KeyRow};
use weir_store::organizations::{self as organization_rows, Contents};
use weir_store::projects as project_rows;
use weir_store::update::lock;
use weir_store::users::{self, UserRow};

use crate::activity::{self, About, Changes};
use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NO_KEYS, NOT_FOUND};
use crate::policy;
use crate::secrets::{self, Secret};
use crate::{Core, Result};

pub use overview::{KeyOverview, PreviousValue};

use uses::Uses;

/// The use of a key is stored at most once in this time, in seconds.
const TOUCH_SECONDS: i64 = 60 * 60;
/// Maximum length of a value that is looked up, in bytes.
const VALUE_MAX: usize = 200;
/// Maximum number of projects or organizations that a key can be limited to.
const LIMITS_MAX: usize = 100;

/// The service for personal API keys.
#[derive(Clone)]
pub struct PersonalKeys {
    core: Arc<Core>,
    uses: Arc<Uses>,
}

impl PersonalKeys {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, uses: Arc::default() }
    }

    /// The context of the key with this value. `found_in` says where in the request it was
    /// found.
    ///
    /// # Errors
    /// [`Error::BadCredential`], the same for a key that never existed, was replaced or
    /// deleted, has expired, or whose owner is not active.
    pub async fn authenticate(
        &self,
        value: &str,
        found_in: &'static str,
        request_id: String,
    ) -> Result<Ctx> {
        let bad = || Error::BadCredential(found_in);
        // A shorter way to the same answer: only values of our own form are stored.
        if value.len() > VALUE_MAX || !value.starts_with(PREFIX) {
            return Err(bad());
        }
        let store = &self.core.store;
        let now = self.core.clock.now();
        let hash = secrets::sha256_hex(value);
        let row = rows::by_hash(store, &hash).await?.ok_or_else(bad)?;
        if row.key.expires_at.is_some_and(|end| end <= now) {
            return Err(bad());
        }
        if row.hash != hash {
            // The value that was found is the previous one.
            if row.previous.as_ref().is_none_or(|previous| previous.until <= now) {
                return Err(bad());
            }
            self.uses.note_previous(row.user, &row.key.id, now);
        }
        let stale = |used: Timestamp| used.plus_seconds(TOUCH_SECONDS) <= now;
        if row.key.last_used_at.is_none_or(stale) {
            // A request must succeed even when this write fails.
            if let Err(error) = rows::touch(store, &row.hash, now).await {
                tracing::warn!(%error, "the use of a key was not noted");
            }
        }
        let actor = Actor::Key { user: row.user, key: Box::new(row.key) };
        Ok(Ctx { actor, now, request_id })
    }

    /// The caller's keys, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys.
    pub async fn list(&self, ctx: &Ctx) -> Result<Vec<PersonalKey>> {
        policy::person_only(ctx)?;
        let rows = rows::of_user(&self.core.store, ctx.user()).await?;
        Ok(rows.into_iter().map(|row| row.key).collect())
    }

    /// Creates a key. Only this answer contains its value.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`],
    /// [`Error::Invalid`], also when there are too many.
    pub async fn create(&self, ctx: &Ctx, input: PersonalKeyInput) -> Result<PersonalKey> {
        policy::recent_person_only(ctx)?;
        if input.scopes.is_empty() {
            return Err(no_scopes().into());
        }
        if input.expires_at.is_some_and(|end| end <= ctx.now) {
            return Err(expired().into());
        }
        self.refuse_foreign_limits(ctx, &input.scoped_teams, &input.scoped_organizations).await?;
        self.store_new(ctx, input).await
    }

    /// Deletes a key of the caller: it stops working immediately. Any session is
    /// enough; the header of this module says why.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::NotFound`].
    pub async fn delete(&self, ctx: &Ctx, id: &KeyId) -> Result<()> {
        policy::person_only(ctx)?;
        let (store, missing) = (&self.core.store, || Error::NotFound(NOT_FOUND));
        let found = rows::get(store, ctx.user(), id).await?.ok_or_else(missing)?;
        let _permit = lock::<KeyRow>(store, &found.hash).await;
        let row = rows::get(store, ctx.user(), id).await?.ok_or_else(missing)?;
        let changes = Changes::none().field("label", &Some(&row.key.label), &None);
        let audit_entry = self.audit_entry(ctx, &row.key, AuditAction::Deleted, changes).await?;
        Ok(rows::delete(store, row.user, id, &audit_entry).await?)
    }

    /// The key of the request.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a session.
    pub async fn current(&self, ctx: &Ctx) -> Result<PersonalKey> {
        match &ctx.actor {
            Actor::Key { user, key } => self.find(*user, &key.id).await,
            Actor::Session { .. } => Err(Error::NotFound(NOT_FOUND)),
        }
    }

    /// A key of the caller. A key can read only itself.
    ///
    /// # Errors
    /// [`Error::NotFound`] for another user's key; [`Error::Forbidden`] when a key asks
    /// for another key of its owner.
    pub async fn get(&self, ctx: &Ctx, id: &KeyId) -> Result<PersonalKey> {
        let found = self.find(ctx.user(), id).await?;
        match &ctx.actor {
            Actor::Key { key, .. } if key.id != *id => Err(Error::Forbidden(NO_KEYS.to_owned())),
            Actor::Key { .. } | Actor::Session { .. } => Ok(found),
        }
    }

    async fn find(&self, user: UserId, id: &KeyId) -> Result<PersonalKey> {
        let row = rows::get(&self.core.store, user, id).await?;
        Ok(row.ok_or(Error::NotFound(NOT_FOUND))?.key)
    }

    async fn store_new(&self, ctx: &Ctx, input: PersonalKeyInput) -> Result<PersonalKey> {
        let store = &self.core.store;
        let user = users::get(store, ctx.user()).await?.ok_or(Error::NotFound(NOT_FOUND))?;
        let (row, secret) = new_row(input, &user, ctx.now)?;
        let changes = Changes::none().field("label", &None, &Some(&row.key.label)).field(
            "scopes",
            &None,
            &Some(&row.key.scopes),
        );
        let audit_entry = self.audit_entry(ctx, &row.key, AuditAction::Created, changes).await?;
        match rows::create(store, &row, PER_USER, &audit_entry).await? {
            Created::Yes => Ok(PersonalKey { value: Some(secret.reveal()), ..row.key }),
            Created::TooMany => Err(too_many().into()),
            Created::Void => Err(Error::NotAuthenticated),
        }
    }

    /// An audit entry for every organization of the owner that the key reaches.
    async fn audit_entry(
        &self,
        ctx: &Ctx,
        key: &PersonalKey,
        action: AuditAction,
        changes: Changes,
    ) -> Result<Vec<Entry>> {
        let reach = self.reach(ctx.user()).await?;
        Ok(reach.of(key).into_iter().map(|id| entry(ctx, id, key, action, &changes)).collect())
    }

    async fn reach(&self, owner: UserId) -> Result<OwnProjects> {
        let store = &self.core.store;
        let own = organization_rows::of_user(store, owner).await?;
        let own: Vec<OrganizationId> = own.iter().map(|own| own.row.id).collect();
        let contents = organization_rows::contents(store, &own).await?;
        let projects = |contents: Contents| contents.projects.iter().map(|one| one.id).collect();
        Ok(OwnProjects(own.into_iter().zip(contents.into_iter().map(projects)).collect()))
    }

    /// A key can only be limited to projects and organizations of its owner. Otherwise
    /// the answer would reveal which ids exist.
    async fn refuse_foreign_limits(
        &self,
        ctx: &Ctx,
        projects: &[ProjectId],
        organizations: &[OrganizationId],
    ) -> Result<()> {
        if projects.is_empty() && organizations.is_empty() {
            return Ok(());
        }
        let store = &self.core.store;
        let own: Vec<OrganizationId> = organization_rows::of_user(store, ctx.user())
            .await?
            .into_iter()
            .map(|belonging| belonging.row.id)
            .collect();
        if !organizations.iter().all(|id| own.contains(id)) {
            return Err(foreign("organizations", "scoped_organizations").into());
        }
        for project in projects {
            let home = project_rows::find(store, *project).await?;
            if !home.is_some_and(|row| own.contains(&row.brief.organization)) {
                return Err(foreign("teams", "scoped_teams").into());
            }
        }
        Ok(())
    }
}

/// The organizations of a user with their projects.
struct OwnProjects(Vec<(OrganizationId, BTreeSet<ProjectId>)>);

impl OwnProjects {
    /// The organizations that a key of the user reaches.
    fn of(&self, key: &PersonalKey) -> Vec<OrganizationId> {
        let (organizations, teams) = (&key.scoped_organizations, &key.scoped_teams);
        let is_reached = |id: &OrganizationId, projects: &BTreeSet<ProjectId>| {
            (organizations.is_empty() || organizations.contains(id))
                && (teams.is_empty() || teams.iter().any(|team| projects.contains(team)))
        };
        let reached = self.0.iter().filter(|(id, projects)| is_reached(id, projects));
        reached.map(|(id, _)| *id).collect()
    }
}

/// An audit entry about a key. It does not name the limits of the key, so that one
/// organization does not learn of another.
fn entry(
    ctx: &Ctx,
    organization: OrganizationId,
    key: &PersonalKey,
    action: AuditAction,
    changes: &Changes,
) -> Entry {
    let about = About {
        subject: Subject::PersonalApiKey,
        id: key.id.to_string(),
        name: Some(&key.label),
        project: None,
    };
    activity::entry(ctx, organization, about, action, changes.clone())
}

/// The record of a new key, and the value, which is shown once.
pub(crate) fn new_row(
    input: PersonalKeyInput,
    owner: &UserRow,
    now: Timestamp,
) -> Result<(KeyRow, Secret)> {
    let secret = secrets::personal_key()?;
    let key = PersonalKey {
        id: KeyId(secrets::name()?),
        label: input.label,
        value: None,
        mask_value: Some(secret.mask()),
        created_at: now,
        last_used_at: None,
        last_rolled_at: None,
        user_id: owner.number,
        scopes: input.scopes,
        scoped_teams: input.scoped_teams,
        scoped_organizations: input.scoped_organizations,
        expires_at: input.expires_at,
    };
    Ok((KeyRow { hash: secret.hash(), user: owner.id, key, previous: None }, secret))
}

/// Checks the input for a new key.
///
/// # Errors
/// The first fault, at `label`, `scopes`, `scoped_teams` or `scoped_organizations`.
pub fn check_input(
    label: &str,
    scopes: &[String],
    scoped_teams: &[i64],
    scoped_organizations: &[String],
    expires_at: Option<Timestamp>,
) -> Result<PersonalKeyInput, FieldError> {
    let label = validate::text("label", label, LABEL_MAX)?;
    let mut checked_scopes: Vec<Scope> = Vec::new();
    for scope in scopes {
        let scope: Scope = scope.parse().map_err(|detail: String| invalid("scopes", detail))?;
        if !checked_scopes.contains(&scope) {
            checked_scopes.push(scope);
        }
    }
    if checked_scopes.is_empty() {
        return Err(no_scopes());
    }
    for (attr, length) in
        [("scoped_teams", scoped_teams.len()), ("scoped_organizations", scoped_organizations.len())]
    {
        validate::list_length(attr, length, LIMITS_MAX)?;
    }
    let organizations = scoped_organizations.iter().map(|id| {
        id.parse().map_err(|_| invalid("scoped_organizations", "Invalid organization UUID"))
    });
    Ok(PersonalKeyInput {
        label,
        scopes: checked_scopes,
        scoped_teams: scoped_teams.iter().map(|id| ProjectId(*id)).collect(),
        scoped_organizations: organizations.collect::<Result<_, _>>()?,
        expires_at,
    })
}

fn invalid(attr: &str, detail: impl Into<String>) -> FieldError {
    FieldError::new(attr, "invalid_input", detail)
}

fn no_scopes() -> FieldError {
    FieldError::new("scopes", "required", "Choose at least one scope.")
}

fn expired() -> FieldError {
    invalid("expires_at", "This time is in the past.")
}

fn foreign(what: &str, attr: &str) -> FieldError {
    invalid(attr, format!("You must be a member of all {what} that you are scoping the key to."))
}

fn too_many() -> FieldError {
    FieldError::body(
        "invalid_input",
        format!(
            "You can only have {PER_USER} personal API keys. Remove an existing key before \
             creating a new one."
        ),
    )
}

#[cfg(test)]
mod tests;
