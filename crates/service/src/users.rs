//! The caller as a user: `users/@me` (API-29).
//!
//! What belongs here: showing and changing one's own user. What does not: members of an
//! organization; sign-in, with the address (`identity`).

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::organizations::Organization;
use weir_model::projects::ProjectBrief;
use weir_model::projects::serde_object::Empty;
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::users::{EventsColumns, Me, OrganizationRef, User};
use weir_model::{OrganizationId, Patch, ProjectId, validate};
use weir_store::organizations::{self as organization_rows, Belonging};
use weir_store::projects as project_rows;
use weir_store::sso::identities;
use weir_store::users::{self as rows, Deleted, UserRow};

use crate::activity::{self, About, Changes};
use crate::ctx::{Actor, Ctx};
use crate::error::{Error, NOT_FOUND};
use crate::identity::emails;
use crate::update::update;
use crate::{Core, Result, current, organizations, policy};

/// Maximum length of a first or last name, in characters.
pub const NAME_MAX: usize = 150;
/// The message for a caller who asks for another user.
pub const ONLY_ME: &str =
    "As a non-staff user you're only allowed to access the `@me` user instance.";
/// The message for deleting a user who belongs to an organization.
pub const HAS_MEMBERSHIPS: &str = "Cannot delete user with organization memberships.";
/// The valid values of `theme_mode`.
pub const THEMES: [&str; 3] = ["light", "dark", "system"];

/// Changes of one's own user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MePatch {
    /// New first name.
    pub first_name: Patch<String>,
    /// New last name.
    pub last_name: Patch<String>,
    /// New theme: one of [`THEMES`], or null.
    pub theme_mode: Patch<String>,
}

/// The service for users.
#[derive(Clone)]
pub struct Users {
    core: Arc<Core>,
}

impl Users {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Proves that the user in a path is the caller: `@me`, or for staff also their own
    /// id. Other users cannot be reached.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for every other id, so that it does not reveal users; for
    /// staff [`Error::NotFound`], likewise the same for all of them.
    pub async fn enter(&self, ctx: &Ctx, id: &str) -> Result<()> {
        if id == "@me" {
            return Ok(());
        }
        let caller = rows::get(&self.core.store, ctx.user()).await?;
        let caller = caller.ok_or(Error::NotAuthenticated)?;
        if !caller.is_staff {
            return Err(Error::Forbidden(ONLY_ME.to_owned()));
        }
        if id.eq_ignore_ascii_case(&caller.id.to_string()) {
            return Ok(());
        }
        Err(Error::NotFound(NOT_FOUND))
    }

    /// The caller.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn me(&self, ctx: &Ctx) -> Result<Me> {
        ctx.require(Scope::read(ScopeObject::User))?;
        let user = rows::get(&self.core.store, ctx.user()).await?;
        self.show(ctx, user.ok_or(Error::NotAuthenticated)?).await
    }

    /// Changes the current organization and project of the caller. A project also sets
    /// its organization. An organization alone sets its first project.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Invalid`] at `set_current_organization` or
    /// `set_current_team` when the caller cannot see it.
    pub async fn set_current(
        &self,
        ctx: &Ctx,
        organization: Option<OrganizationId>,
        project: Option<ProjectId>,
    ) -> Result<()> {
        ctx.require(Scope::write(ScopeObject::User))?;
        let core = &self.core;
        let (organization, project) = match (organization, project) {
            (None, None) => return Ok(()),
            (Some(organization), None) => {
                let unknown = unknown("set_current_organization", &organization);
                self.refuse_unseen(ctx, organization, unknown).await?;
                let first = current::first_project(core, organization).await?;
                (organization, first.map(|row| row.brief.id))
            }
            (organization, Some(project)) => {
                let unknown = || unknown("set_current_team", &project);
                let row = project_rows::find(&core.store, project).await?.ok_or_else(unknown)?;
                let home = row.brief.organization;
                if organization.is_some_and(|wanted| wanted != home)
                    || !policy::project_in_limits(ctx, home, project)
                {
                    return Err(unknown());
                }
                self.refuse_unseen(ctx, home, unknown()).await?;
                (home, Some(project))
            }
        };
        rows::set_current(&core.store, ctx.user(), Some(organization), project).await?;
        current::follow(core, ctx, organization, project).await;
        Ok(())
    }

    /// Changes the caller's own settings.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Invalid`].
    pub async fn update_me(&self, ctx: &Ctx, patch: MePatch) -> Result<Me> {
        ctx.require(Scope::write(ScopeObject::User))?;
        let belongings = organization_rows::of_user(&self.core.store, ctx.user()).await?;
        let change = |row: &mut UserRow| Ok(apply(patch.clone(), row)?);
        let entries = |before: &UserRow, after: &UserRow| {
            entries(ctx, before, &belongings, &named(before, after))
        };
        let user = update(&self.core, ctx.user(), ctx.now, (), change, entries).await?;
        self.show(ctx, user.stored().ok_or(Error::NotAuthenticated)?).await
    }

    /// Deletes the caller's user with its keys and sessions.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for keys, [`Error::SignInAgain`];
    /// [`Error::Conflict`] while the caller belongs to an organization.
    pub async fn delete_me(&self, ctx: &Ctx) -> Result<()> {
        policy::recent_person_only(ctx)?;
        let store = &self.core.store;
        let Some(user) = rows::get(store, ctx.user()).await? else { return Ok(()) };
        match rows::delete(store, user.id, &emails::normalise(&user.email)).await? {
            Deleted::Yes => {
                let request = &ctx.request_id;
                tracing::info!(user.id = %user.id, request.id = request, "user deleted");
                Ok(())
            }
            Deleted::HasMemberships => {
                Err(Error::Conflict { code: "conflict", detail: HAS_MEMBERSHIPS.to_owned() })
            }
        }
    }

    async fn refuse_unseen(
        &self,
        ctx: &Ctx,
        organization: OrganizationId,
        unknown: Error,
    ) -> Result<()> {
        if !homes(&self.core, ctx).await?.show(ctx, organization) {
            return Err(unknown);
        }
        match organizations::enter(&self.core, ctx, organization).await {
            Ok(_) => Ok(()),
            Err(Error::NotFound(_)) => Err(unknown),
            Err(other) => Err(other),
        }
    }

    async fn show(&self, ctx: &Ctx, user: UserRow) -> Result<Me> {
        let core = &self.core;
        let project = current::project_of(core, ctx, &user).await?;
        let current = match &project {
            Some(project) => Some(project.brief.organization),
            None => current::organization_of(core, ctx, &user).await?,
        };
        let has_social_auth = !identities::of_user(&core.store, user.id).await?.is_empty();
        let has_sso_enforcement = core.enforcement(&user.email).await?.is_some();
        let mut belongings = organization_rows::of_user(&core.store, user.id).await?;
        let homes = homes(core, ctx).await?;
        belongings.retain(|belonging| homes.show(ctx, belonging.row.id));
        let organizations = belongings.iter().map(reference).collect();
        let organization = self.current_organization(ctx, current, belongings).await?;
        let is_visible =
            |brief: &ProjectBrief| policy::project_in_limits(ctx, brief.organization, brief.id);
        let team = project.map(|project| project.brief).filter(is_visible);
        let first = || organization.as_ref()?.teams.first().cloned();
        let team = team.or_else(first);
        Ok(Me {
            date_joined: user.created_at,
            uuid: user.id,
            distinct_id: user.distinct_id,
            first_name: user.first_name,
            last_name: user.last_name,
            email: user.email,
            pending_email: user.pending_email,
            is_email_verified: user.is_email_verified,
            notification_settings: Empty {},
            anonymize_data: false,
            toolbar_mode: "disabled".to_owned(),
            has_password: user.password.is_some(),
            id: user.number,
            is_staff: user.is_staff,
            is_impersonated: false,
            team,
            organization,
            organizations,
            is_2fa_enabled: user.second_factor.is_some(),
            has_social_auth,
            has_sso_enforcement,
            has_seen_product_intro_for: None,
            scene_personalisation: None,
            theme_mode: user.theme_mode,
            hedgehog_config: Empty {},
            role_at_organization: None,
            events_column_config: EventsColumns { active: "DEFAULT".to_owned() },
        })
    }

    /// The current one of these organizations, else the first, with the projects that
    /// the key may see.
    async fn current_organization(
        &self,
        ctx: &Ctx,
        current: Option<OrganizationId>,
        mut belongings: Vec<Belonging>,
    ) -> Result<Option<Organization>> {
        if belongings.is_empty() {
            return Ok(None);
        }
        let of_current = belongings.iter().position(|one| Some(one.row.id) == current);
        let belonging = belongings.swap_remove(of_current.unwrap_or(0));
        let mut shown = organizations::show(&self.core, belonging.row, belonging.level).await?;
        shown.teams.retain(|team| policy::project_in_limits(ctx, team.organization, team.id));
        Ok(Some(shown))
    }
}

/// The organizations of the projects that a key is limited to; `None`: the actor is not
/// limited to projects.
struct Homes(Option<BTreeSet<OrganizationId>>);

impl Homes {
    /// Whether the limits of the actor's key include this organization.
    fn show(&self, ctx: &Ctx, organization: OrganizationId) -> bool {
        policy::organization_in_limits(ctx, organization)
            && self.0.as_ref().is_none_or(|homes| homes.contains(&organization))
    }
}

async fn homes(core: &Core, ctx: &Ctx) -> Result<Homes> {
    let projects = match &ctx.actor {
        Actor::Key { key, .. } if !key.scoped_teams.is_empty() => &key.scoped_teams,
        Actor::Key { .. } | Actor::Session { .. } => return Ok(Homes(None)),
    };
    let mut homes = BTreeSet::new();
    for project in projects {
        if let Some(row) = project_rows::find(&core.store, *project).await? {
            homes.insert(row.brief.organization);
        }
    }
    Ok(Homes(Some(homes)))
}

/// Checks the settings in the order of the resource, and applies them.
fn apply(patch: MePatch, row: &mut UserRow) -> Result<(), FieldError> {
    if let Some(name) = patch.first_name.required("first_name")? {
        row.first_name = validate::text("first_name", &name, NAME_MAX)?;
    }
    if let Some(name) = patch.last_name.required("last_name")? {
        row.last_name = validate::optional_text("last_name", &name, NAME_MAX)?;
    }
    let theme = patch.theme_mode.try_map(|theme| {
        let is_known = THEMES.contains(&theme.as_str());
        if is_known { Ok(theme) } else { Err(validate::invalid_choice("theme_mode", &theme)) }
    })?;
    row.theme_mode = theme.over(row.theme_mode.take());
    Ok(())
}

/// The changed names for the audit entry. The theme is private.
fn named(before: &UserRow, after: &UserRow) -> Changes {
    Changes::none().field("first_name", &before.first_name, &after.first_name).field(
        "last_name",
        &before.last_name,
        &after.last_name,
    )
}

/// An audit entry about a user for every organization of the user, because members
/// there know the user.
pub(crate) async fn audit_entry(
    core: &Core,
    ctx: &Ctx,
    user: &UserRow,
    changes: Changes,
) -> Result<Vec<Entry>> {
    let belongings = organization_rows::of_user(&core.store, user.id).await?;
    Ok(entries(ctx, user, &belongings, &changes))
}

fn entries(ctx: &Ctx, user: &UserRow, belongings: &[Belonging], changes: &Changes) -> Vec<Entry> {
    if changes.is_empty() {
        return Vec::new();
    }
    let entry = |belonging: &Belonging| {
        let about = About {
            subject: Subject::User,
            id: user.id.to_string(),
            name: Some(&user.email),
            project: None,
        };
        activity::entry(ctx, belonging.row.id, about, AuditAction::Updated, changes.clone())
    };
    belongings.iter().map(entry).collect()
}

fn reference(belonging: &Belonging) -> OrganizationRef {
    OrganizationRef {
        id: belonging.row.id,
        name: belonging.row.name.clone(),
        slug: belonging.row.slug.clone(),
        logo_media_id: None,
        membership_level: belonging.level,
        members_can_use_personal_api_keys: true,
    }
}

fn unknown(attr: &str, id: &dyn std::fmt::Display) -> Error {
    Error::Invalid(FieldError::new(
        attr,
        "does_not_exist",
        format!("Object with id={id} does not exist."),
    ))
}

/// The user as other resources embed it.
pub(crate) fn shown(user: &UserRow) -> User {
    User {
        id: user.number,
        uuid: user.id,
        distinct_id: user.distinct_id.clone(),
        first_name: user.first_name.clone(),
        last_name: user.last_name.clone(),
        email: user.email.clone(),
        is_email_verified: user.is_email_verified,
        hedgehog_config: Empty {},
    }
}

#[cfg(test)]
mod tests;
