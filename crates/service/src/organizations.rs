//! Organizations: entering one, listing, creating, changing, deleting (API-23, API-30).
//!
//! What belongs here: reading and changing an organization for its caller. What does
//! not: levels and scopes (`policy`), members and invites.

use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;
use weir_model::activity::{AuditAction, Entry, Subject};
use weir_model::errors::FieldError;
use weir_model::organizations::{
    self as model, FEATURES, Level, Organization, OrganizationPatch, OrganizationRow,
    ProductFeature,
};
use weir_model::pagination::{Page, Paged};
use weir_model::plugins::PluginsAccess;
use weir_model::projects::DEFAULT_NAME;
use weir_model::scopes::{Scope, ScopeObject};
use weir_model::{MembershipId, OrganizationId, Timestamp};
use weir_store::organizations::{self as rows, Contents, Created, Deletion, NewOrganization};
use weir_store::projects::{self, ProjectRow};
use weir_store::update::lock;
use weir_store::{domains, erasures, events, exports, ids, invites, plugin_configs as configs};

use crate::activity::{self, About, Changes};
use crate::ctx::{Ctx, OrgCtx};
use crate::error::{Error, NOT_FOUND};
use crate::identity::second_factor;
use crate::policy::{self, Action};
use crate::unchecked::Unchecked;
use crate::update::{stored, update};
use crate::{Core, Result, current, plugin_configs, secrets};

/// The message for a caller without a current organization.
pub const NO_CURRENT: &str = "Current organization not found.";
/// How many slugs are tried when one is taken.
const SLUG_TRIES: usize = 10;

/// The number of records that are deleted with an organization, in addition to its
/// projects and their events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeletionImpact {
    /// Invites that are not accepted yet.
    pub invites: usize,
    /// Domains, verified or not.
    pub domains: usize,
    /// Batch exports.
    pub exports: usize,
    /// Plugin configs of all its projects.
    pub plugin_configs: usize,
}

/// The service for organizations.
#[derive(Clone)]
pub struct Organizations {
    core: Arc<Core>,
}

impl Organizations {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Proves that the actor belongs to the organization: a uuid or `@current`.
    ///
    /// # Errors
    /// [`Error::NotFound`], the same for an id that is malformed, unknown, of an
    /// organization of others or outside the key's limits; [`Error::Forbidden`] for
    /// keys that are limited to projects; [`Error::SecondFactorMissing`] for a user
    /// without the second factor that it requires.
    pub async fn enter(&self, ctx: &Ctx, id: &str) -> Result<OrgCtx> {
        policy::refuse_project_keys(ctx)?;
        let organization = if id == "@current" {
            current::organization(&self.core, ctx).await?.ok_or(Error::NotFound(NO_CURRENT))?
        } else {
            parse_id(id).ok_or(Error::NotFound(NOT_FOUND))?
        };
        enter(&self.core, ctx, organization).await
    }

    /// The organizations of the caller, oldest first.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] for keys that are limited
    /// to projects.
    pub async fn list(&self, ctx: &Ctx, page: Page) -> Result<Paged<Organization>> {
        ctx.require(Scope::read(ScopeObject::Organization))?;
        policy::refuse_project_keys(ctx)?;
        let mut all = rows::of_user(&self.core.store, ctx.user()).await?;
        all.retain(|belonging| policy::organization_in_limits(ctx, belonging.row.id));
        let count = all.len() as u64;
        let page = page.slice(all);
        let ids: Vec<OrganizationId> = page.iter().map(|belonging| belonging.row.id).collect();
        let contents = rows::contents(&self.core.store, &ids).await?;
        let results = page
            .into_iter()
            .zip(contents)
            .map(|(belonging, contents)| shown(belonging.row, belonging.level, contents))
            .collect();
        Ok(Paged { count, results })
    }

    /// Creates an organization with a default project. The caller owns it, and it
    /// becomes the current one.
    ///
    /// # Errors
    /// [`Error::MissingScope`]; [`Error::Forbidden`] for limited keys;
    /// [`Error::Invalid`].
    pub async fn create(&self, ctx: &Ctx, settings: OrganizationPatch) -> Result<Organization> {
        ctx.require(Scope::write(ScopeObject::Organization))?;
        policy::refuse_project_keys(ctx)?;
        policy::refuse_organization_keys(ctx)?;
        let store = &self.core.store;
        let row = new_row(settings, ctx.now)?;
        let suggested = row.slug.clone();
        let project = ProjectRow::new(
            projects::next_number(store).await?,
            row.id,
            DEFAULT_NAME.to_owned(),
            secrets::project_key()?,
            ctx.now,
        );
        let mut new = NewOrganization {
            row,
            owner: ctx.user(),
            membership: MembershipId(ids::time_ordered(ctx.now)),
            project,
        };
        let created = audit_entry(
            ctx,
            &new.row,
            AuditAction::Created,
            Changes::none().field("name", &None, &Some(&new.row.name)),
        );
        for _ in 0..=SLUG_TRIES {
            match rows::create(store, &new, std::slice::from_ref(&created)).await? {
                Created::Yes => {
                    let project = new.project.brief.id;
                    current::follow(&self.core, ctx, new.row.id, Some(project)).await;
                    let contents = Contents { member_count: 1, projects: vec![new.project.brief] };
                    return Ok(shown(new.row, Level::Owner, contents));
                }
                Created::SlugTaken => {
                    let start: String = suggested.chars().take(43).collect();
                    new.row.slug = format!("{start}-{}", secrets::letters::<4>()?);
                }
            }
        }
        Err(Error::Conflict {
            code: "slug_taken",
            detail: "Many organizations have this name. Choose another.".to_owned(),
        })
    }

    /// Removes the stored data of organizations and projects that were deleted before a
    /// time: background work of the instance, without a caller. No event of theirs may
    /// wait to be applied.
    ///
    /// # Errors
    /// Any failure of the store; the next call continues.
    pub async fn purge_deleted(&self, before: Timestamp) -> Result<()> {
        let store = &self.core.store;
        for deletion in rows::deletions(store).await? {
            if deletion.requested_at >= before {
                continue;
            }
            // A failure of one must not delay the others.
            if let Err(error) = self.purge_one(&deletion).await {
                tracing::error!(of = %deletion.of, %error, "events of a deleted organization remain");
            }
        }
        Ok(())
    }

    async fn purge_one(&self, deletion: &Deletion) -> Result<()> {
        let store = &self.core.store;
        for project in &deletion.projects {
            events::purge(store, *project).await?;
        }
        // Files of the database and of the log still have data.
        erasures::request_sweep(store, &deletion.projects, self.core.clock.now()).await?;
        rows::deletion_done(store, deletion).await?;
        let projects = deletion.projects.len();
        tracing::info!(of = %deletion.of, projects, "removed events of a deleted organization");
        Ok(())
    }

    /// Sets an organization's access to plugins, for the operator. `false`: there is no
    /// such organization.
    ///
    /// # Errors
    /// Any failure of the store.
    pub async fn set_plugins_access(
        &self,
        organization: OrganizationId,
        access: PluginsAccess,
        now: Timestamp,
    ) -> Result<bool> {
        let notification = rows::plugins_notification(&self.core.store, organization).await?;
        let change = |row: &mut OrganizationRow| {
            row.plugins_access_level = access;
            Ok(())
        };
        let entries = |before: &OrganizationRow, after: &OrganizationRow| {
            let (about, changes) = (about(before), Changes::between(before, after));
            vec![activity::own_entry(now, before.id, about, AuditAction::Updated, changes)]
        };
        let updated = update(&self.core, organization, now, notification, change, entries).await?;
        Ok(updated.stored().is_some())
    }

    /// The organization.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn get(&self, org: &OrgCtx) -> Result<Organization> {
        policy::check(org, Action::ReadOrganization)?;
        let found = rows::get_whole(&self.core.store, org.organization).await?;
        let (row, contents) = found.ok_or(Error::NotFound(NOT_FOUND))?;
        Ok(shown(row, org.level, contents))
    }

    /// Changes the organization's settings.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below administrator,
    /// [`Error::Invalid`].
    pub async fn update(
        &self,
        org: &OrgCtx,
        patch: impl Into<Unchecked<'_, OrganizationPatch>>,
    ) -> Result<Organization> {
        policy::check(org, Action::UpdateOrganization)?;
        let patch = patch.into().read()?;
        let change = |row: &mut OrganizationRow| Ok(patch.clone().apply(row)?);
        let entries = |before: &OrganizationRow, after: &OrganizationRow| {
            let (about, changes) = (about(before), Changes::between(before, after));
            vec![activity::entry(&org.ctx, before.id, about, AuditAction::Updated, changes)]
        };
        let now = org.ctx.now;
        let updated = update(&self.core, org.organization, now, (), change, entries).await?;
        show(&self.core, stored(updated)?, org.level).await
    }

    /// The number of records that are deleted with the organization.
    ///
    /// # Errors
    /// [`Error::MissingScope`].
    pub async fn deletion_impact(&self, org: &OrgCtx) -> Result<DeletionImpact> {
        policy::check(org, Action::ReadOrganization)?;
        let (store, id) = (&self.core.store, org.organization);
        Ok(DeletionImpact {
            invites: invites::ordered(store, id).await?.len(),
            domains: domains::ordered(store, id).await?.len(),
            exports: exports::ordered(store, exports::Of::Organization(id)).await?.len(),
            plugin_configs: configs::of_organization(store, id).await?.len(),
        })
    }

    /// Deletes the organization with its projects. Their keys stop working immediately.
    /// Stored events are removed in the background. Members without another
    /// organization are signed out everywhere, except the caller.
    ///
    /// # Errors
    /// [`Error::MissingScope`], [`Error::Forbidden`] below owner.
    pub async fn delete(&self, org: &OrgCtx) -> Result<()> {
        policy::check(org, Action::DeleteOrganization)?;
        let store = &self.core.store;
        let _permit = lock::<OrganizationRow>(store, &org.organization).await;
        let Some(row) = rows::get(store, org.organization).await? else { return Ok(()) };
        let changes = Changes::none().field("name", &Some(&row.name), &None);
        let deleted = audit_entry(&org.ctx, &row, AuditAction::Deleted, changes);
        let mut entries = plugin_configs::gone_elsewhere(&self.core, org).await?;
        entries.push(deleted);
        rows::delete(store, org.organization, org.ctx.user(), org.ctx.now, &entries).await?;
        tracing::info!(
            organization.id = %org.organization,
            user.id = %org.ctx.user(),
            request.id = org.ctx.request_id,
            "organization deleted"
        );
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn store(&self) -> &weir_store::Store {
        &self.core.store
    }
}

/// The organization as the API shows it to a caller with this level.
pub(crate) async fn show(core: &Core, row: OrganizationRow, level: Level) -> Result<Organization> {
    let contents = rows::contents(&core.store, &[row.id]).await?.into_iter().next();
    Ok(shown(row, level, contents.unwrap_or_default()))
}

/// Proves that the actor belongs to this organization.
pub(crate) async fn enter(core: &Core, ctx: &Ctx, organization: OrganizationId) -> Result<OrgCtx> {
    let not_found = || Error::NotFound(NOT_FOUND);
    if !policy::organization_in_limits(ctx, organization) {
        return Err(not_found());
    }
    let level = rows::level(&core.store, organization, ctx.user()).await?.ok_or_else(not_found)?;
    second_factor::refuse_without(core, ctx, organization).await?;
    Ok(OrgCtx { ctx: ctx.clone(), organization, level })
}

/// The id in a path. Only its usual written form is accepted: other spellings would be
/// further addresses of the same organization.
pub(crate) fn parse_id(text: &str) -> Option<OrganizationId> {
    let id: OrganizationId = text.parse().ok()?;
    text.eq_ignore_ascii_case(&id.to_string()).then_some(id)
}

/// The slug that a name suggests.
pub(crate) fn slug(name: &str) -> String {
    let decomposed: String = name.nfkd().collect();
    model::slug(&decomposed)
}

/// The record of a new organization, with the slug that its name suggests.
///
/// # Errors
/// The fault of the first setting that has one.
pub(crate) fn new_row(
    settings: OrganizationPatch,
    now: Timestamp,
) -> Result<OrganizationRow, FieldError> {
    let mut row = OrganizationRow::new(OrganizationId(ids::time_ordered(now)), now);
    settings.apply(&mut row)?;
    row.slug = slug(&row.name);
    Ok(row)
}

/// The audit entry about a new or deleted organization.
pub(crate) fn audit_entry(
    ctx: &Ctx,
    row: &OrganizationRow,
    action: AuditAction,
    changes: Changes,
) -> Entry {
    activity::entry(ctx, row.id, about(row), action, changes)
}

fn about(row: &OrganizationRow) -> About<'_> {
    About {
        subject: Subject::Organization,
        id: row.id.to_string(),
        name: Some(&row.name),
        project: None,
    }
}

fn shown(row: OrganizationRow, level: Level, contents: Contents) -> Organization {
    Organization {
        row,
        membership_level: level,
        teams: contents.projects,
        available_features: FEATURES.iter().map(|(key, _)| (*key).to_owned()).collect(),
        available_product_features: FEATURES
            .iter()
            .map(|feature| product_feature(*feature))
            .collect(),
        metadata: r#"{"instance_tag":"none"}"#.to_owned(),
        customer_id: None,
        member_count: contents.member_count.to_string(),
    }
}

fn product_feature((key, name): (&str, &str)) -> ProductFeature {
    ProductFeature {
        key: key.to_owned(),
        name: name.to_owned(),
        description: None,
        unit: None,
        limit: None,
        note: None,
        is_plan_default: true,
    }
}

#[cfg(test)]
mod tests;
