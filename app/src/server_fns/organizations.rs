//! Organizations.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter, enter_organization, go, projects_changed, ui_error};
use crate::error::UiError;

/// An organization as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrganizationView {
    /// Id of the organization.
    pub(crate) id: String,
    /// Name of the organization.
    pub(crate) name: String,
    /// Slug for addresses.
    pub(crate) slug: String,
    /// When it was created.
    pub(crate) created_at: String,
    /// Number of members.
    pub(crate) members: String,
    /// The user's level.
    pub(crate) level: String,
    /// Whether the user may change its settings.
    pub(crate) may_change: bool,
    /// Whether the user may delete it.
    pub(crate) may_delete: bool,
    /// Whether it is the user's current organization.
    pub(crate) is_current: bool,
    /// Whether members get mail when a user joins.
    pub(crate) mails_joins: bool,
    /// Whether members must have a second factor.
    pub(crate) enforces_2fa: bool,
    /// Names of its features.
    pub(crate) features: Vec<String>,
    /// Projects: number, name, whether an event was ever stored.
    pub(crate) projects: Vec<(i64, String, bool)>,
}

#[cfg(feature = "ssr")]
impl From<weir_model::organizations::Organization> for OrganizationView {
    fn from(organization: weir_model::organizations::Organization) -> Self {
        use weir_service::policy::Action;

        let level = organization.membership_level;
        let projects = organization.teams.into_iter();
        let features = organization.available_product_features.into_iter();
        Self {
            id: organization.row.id.to_string(),
            name: organization.row.name,
            slug: organization.row.slug,
            created_at: organization.row.created_at.to_string(),
            members: organization.member_count,
            level: level.text().to_owned(),
            may_change: level >= Action::UpdateOrganization.level(),
            may_delete: level >= Action::DeleteOrganization.level(),
            is_current: false,
            mails_joins: organization.row.is_member_join_email_enabled,
            enforces_2fa: organization.row.enforce_2fa,
            features: features.map(|feature| feature.name).collect(),
            projects: projects.map(|team| (team.id.0, team.name, team.ingested_event)).collect(),
        }
    }
}

/// Lists the organizations of the user.
#[server(prefix = "/_fn", endpoint = "list_organizations")]
pub(crate) async fn list_organizations() -> Result<Vec<OrganizationView>, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let (services, ctx) = enter()?;
    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let found = services.organizations.list(&ctx, page).await.map_err(ui_error)?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    let current = me.organization.map(|organization| organization.row.id);
    let shown = |organization: weir_model::organizations::Organization| OrganizationView {
        is_current: Some(organization.row.id) == current,
        ..OrganizationView::from(organization)
    };
    Ok(found.results.into_iter().map(shown).collect())
}

/// Sets the current organization of the user.
#[server(prefix = "/_fn", endpoint = "switch_organization")]
pub(crate) async fn switch_organization(id: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let switched = services.users.set_current(&org.ctx, Some(org.organization), None).await;
    switched.map_err(ui_error)?;
    go("/");
    Ok(())
}

/// Counts the objects that are deleted with an organization, besides projects and
/// members.
#[server(prefix = "/_fn", endpoint = "get_organization_stake")]
pub(crate) async fn get_organization_stake(id: String) -> Result<Vec<(usize, String)>, UiError> {
    let (services, org) = enter_organization(&id).await?;
    let stake = services.organizations.deletion_impact(&org).await.map_err(ui_error)?;
    let word = |count: usize, one: &str, many: &str| {
        (count, if count == 1 { one.to_owned() } else { many.to_owned() })
    };
    Ok(vec![
        word(stake.exports, "export", "exports"),
        word(stake.plugin_configs, "plugin in a project", "plugins in projects"),
        word(stake.domains, "domain", "domains"),
        word(stake.invites, "invite", "invites"),
    ])
}

/// Whether the user is a member of only one organization.
#[server(prefix = "/_fn", endpoint = "has_one_organization")]
pub(crate) async fn has_one_organization() -> Result<bool, UiError> {
    use weir_model::pagination::Page;

    let (services, ctx) = enter()?;
    let first = Page { limit: 1, offset: 0 };
    let found = services.organizations.list(&ctx, first).await.map_err(ui_error)?;
    Ok(found.count == 1)
}

/// Returns one organization.
#[server(prefix = "/_fn", endpoint = "get_organization")]
pub(crate) async fn get_organization(id: String) -> Result<OrganizationView, UiError> {
    let (services, org) = enter_organization(&id).await?;
    let found = services.organizations.get(&org).await.map_err(ui_error)?;
    Ok(found.into())
}

/// Creates an organization with a first project and redirects to it.
#[server(prefix = "/_fn", endpoint = "create_organization")]
pub(crate) async fn create_organization(name: String) -> Result<(), UiError> {
    use weir_model::organizations::OrganizationPatch;

    let (services, ctx) = enter()?;
    let input = OrganizationPatch::named("name", &name).map_err(UiError::Field)?;
    let made = services.organizations.create(&ctx, input).await.map_err(ui_error)?;
    projects_changed().await;
    match made.teams.first() {
        Some(project) => go(&format!("/projects/{}/start", project.id)),
        None => go(&format!("/organizations/{}", made.row.id)),
    }
    Ok(())
}

#[server(prefix = "/_fn", endpoint = "rename_organization")]
pub(crate) async fn rename_organization(
    id: String,
    #[server(default)] seen: String,
    name: String,
) -> Result<(), UiError> {
    use weir_model::organizations::OrganizationPatch;

    use crate::edits::Edits;

    let (services, org) = enter_organization(&id).await?;
    let now = services.organizations.get(&org).await.map_err(ui_error)?;
    let mut edits = Edits::of(&seen);
    let name = edits.text("name", "Name", &name, &now.row.name);
    edits.check()?;
    let patch = OrganizationPatch { name, ..OrganizationPatch::default() };
    services.organizations.update(&org, patch).await.map_err(ui_error)?;
    Ok(())
}

/// Sets whether members get mail when a user joins.
#[server(prefix = "/_fn", endpoint = "set_join_mail")]
pub(crate) async fn set_join_mail(
    id: String,
    #[server(default)] enabled: Option<String>,
) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::organizations::OrganizationPatch;

    let (services, org) = enter_organization(&id).await?;
    let patch = OrganizationPatch {
        is_member_join_email_enabled: Patch::Set(enabled.is_some()),
        ..OrganizationPatch::default()
    };
    services.organizations.update(&org, patch).await.map_err(ui_error)?;
    Ok(())
}

/// Sets whether members must have a second factor.
#[server(prefix = "/_fn", endpoint = "enforce_second_factor")]
pub(crate) async fn enforce_second_factor(id: String, enforce: bool) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_model::organizations::OrganizationPatch;

    let (services, org) = enter_organization(&id).await?;
    let patch =
        OrganizationPatch { enforce_2fa: Patch::Set(enforce), ..OrganizationPatch::default() };
    services.organizations.update(&org, patch).await.map_err(ui_error)?;
    Ok(())
}

/// Deletes the organization with all its data, if its name was typed.
#[server(prefix = "/_fn", endpoint = "delete_organization")]
pub(crate) async fn delete_organization(id: String, typed_name: String) -> Result<(), UiError> {
    let (services, org) = enter_organization(&id).await?;
    let present = services.organizations.get(&org).await.map_err(ui_error)?;
    if typed_name.trim() != present.row.name {
        let detail = format!("Type the name exactly: {}", present.row.name);
        return Err(UiError::field("typed_name", "mismatch", &detail));
    }
    services.organizations.delete(&org).await.map_err(ui_error)?;
    projects_changed().await;
    go("/organizations");
    Ok(())
}
