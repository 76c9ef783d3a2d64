//! The signed-in user, the data of the navigation, and changes of the user's own account.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};
use weir_model::preferences::Preferences;

#[cfg(feature = "ssr")]
use crate::context::{enter, go, keep_theme, ui_error};
use crate::error::UiError;
use crate::theme::Theme;

/// The signed-in user, with the data of the navigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Viewer {
    /// First name.
    pub(crate) name: String,
    /// E-mail address.
    pub(crate) email: String,
    /// The chosen theme.
    pub(crate) theme: Theme,
    /// The other preferences.
    pub(crate) preferences: Preferences,
    /// Whether the user may see the instance page.
    pub(crate) staff: bool,
    /// Number of the project that the user visited last.
    pub(crate) project: Option<i64>,
    /// The user's organizations with their projects.
    pub(crate) organizations: Vec<OrganizationNav>,
}

/// An organization in the navigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OrganizationNav {
    /// Id of the organization.
    pub(crate) id: String,
    /// Name of the organization.
    pub(crate) name: String,
    /// Number and name of each project.
    pub(crate) projects: Vec<(i64, String)>,
}

/// Returns the signed-in user.
#[server(prefix = "/_fn", endpoint = "get_viewer")]
pub(crate) async fn get_viewer() -> Result<Viewer, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let organizations = services.organizations.list(&ctx, page).await.map_err(ui_error)?;
    let preferences = services.preferences.get(&ctx).await.map_err(ui_error)?;
    let place = |organization: weir_model::organizations::Organization| OrganizationNav {
        id: organization.row.id.to_string(),
        name: organization.row.name,
        projects: organization.teams.into_iter().map(|team| (team.id.0, team.name)).collect(),
    };
    Ok(Viewer {
        name: me.first_name,
        email: me.email,
        theme: Theme::from_word(me.theme_mode.as_deref().unwrap_or_default()),
        preferences,
        staff: me.is_staff,
        project: me.team.map(|team| team.id.0),
        organizations: organizations.results.into_iter().map(place).collect(),
    })
}

/// What fails behind the links of the navigation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct NavFailures {
    /// The number of failing exports of the organization.
    pub(crate) exports: u64,
    /// The exports that fail longest.
    pub(crate) first: Vec<FailingLine>,
    /// The number of transformations of the project that failed in the last 24 hours.
    pub(crate) transformations: u64,
    /// The number of destinations and apps of the project that failed in the last 24 hours.
    pub(crate) plugins: u64,
    /// The number of alerts of the project that fire.
    pub(crate) alerts: u64,
    /// The names of the first of them.
    pub(crate) first_alerts: Vec<String>,
}

/// A failing export in the navigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FailingLine {
    pub(crate) name: String,
    /// Time of the first failed attempt.
    pub(crate) since: String,
    /// Time of the next attempt.
    pub(crate) next_try: Option<String>,
    /// First line of the last error.
    pub(crate) error: Option<String>,
}

/// Finds what fails in an organization and one of its projects, for the navigation. A
/// failure here does not fail the page.
#[server(prefix = "/_fn", endpoint = "find_failing")]
pub(crate) async fn find_failing(
    organization: String,
    project: Option<i64>,
) -> Result<NavFailures, UiError> {
    /// Limit of exports with their reason, and of alerts with their name.
    const SHOWN: usize = 5;

    let (services, ctx) = enter()?;
    let exports = async {
        let org = services.organizations.enter(&ctx, &organization).await.ok()?;
        services.exports.failing((&org).into()).await.ok()
    };
    let of_project = async {
        let project = services.projects.enter(&ctx, &project?.to_string()).await.ok()?;
        let configs = services.plugin_configs.failing(&project);
        let (configs, alerts) = futures::join!(configs, services.alerts.firing(&project));
        Some((configs.unwrap_or_default(), alerts.unwrap_or_default()))
    };
    let (exports, of_project) = futures::join!(exports, of_project);
    let (configs, alerts) = of_project.unwrap_or_default();
    let exports = exports.unwrap_or_default();
    let line = |export: &weir_service::exports::FailingExport| FailingLine {
        name: export.name.clone(),
        since: export.failing.since.to_string(),
        next_try: export.failing.next_try.map(|time| time.to_string()),
        error: export
            .failing
            .error
            .as_deref()
            .and_then(|text| text.lines().next())
            .map(str::to_owned),
    };
    Ok(NavFailures {
        exports: exports.len() as u64,
        first: exports.iter().take(SHOWN).map(line).collect(),
        transformations: configs.transformations as u64,
        plugins: configs.others as u64,
        alerts: alerts.len() as u64,
        first_alerts: alerts.into_iter().take(SHOWN).map(|alert| alert.name).collect(),
    })
}

/// Redirects to the project that the user visited last: to its overview, or to its start
/// page as long as it has no events.
#[server(prefix = "/_fn", endpoint = "find_home")]
pub(crate) async fn find_home() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    match me.team {
        Some(team) if team.ingested_event => go(&format!("/projects/{}", team.id)),
        Some(team) => go(&format!("/projects/{}/start", team.id)),
        None => go("/organizations"),
    }
    Ok(())
}

/// Sets the current project of the user.
#[server(prefix = "/_fn", endpoint = "switch_project")]
pub(crate) async fn switch_project(project: i64) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let project = weir_model::ProjectId(project);
    services.users.set_current(&ctx, None, Some(project)).await.map_err(ui_error)?;
    go(&format!("/projects/{project}"));
    Ok(())
}

/// Changes the user's name.
#[server(prefix = "/_fn", endpoint = "rename_account")]
pub(crate) async fn rename_account(
    #[server(default)] seen: String,
    first_name: String,
    #[server(default)] last_name: String,
) -> Result<(), UiError> {
    use weir_service::users::MePatch;

    use crate::edits::Edits;

    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    let mut edits = Edits::of(&seen);
    let patch = MePatch {
        first_name: edits.text("first_name", "First name", &first_name, &me.first_name),
        last_name: edits.text("last_name", "Last name", &last_name, &me.last_name),
        ..MePatch::default()
    };
    edits.check()?;
    services.users.update_me(&ctx, patch).await.map_err(ui_error)?;
    Ok(())
}

/// Changes the theme on all devices of the user.
#[server(prefix = "/_fn", endpoint = "choose_theme")]
pub(crate) async fn choose_theme(theme: String) -> Result<(), UiError> {
    use weir_model::Patch;
    use weir_service::users::MePatch;

    let (services, ctx) = enter()?;
    let theme = Theme::from_word(&theme);
    let patch = MePatch { theme_mode: Patch::Set(theme.word().to_owned()), ..MePatch::default() };
    services.users.update_me(&ctx, patch).await.map_err(ui_error)?;
    keep_theme(theme);
    Ok(())
}

/// The signed-in user, for the page of the own account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnProfile {
    /// Id of the user.
    pub(crate) id: String,
    pub(crate) first_name: String,
    /// The last name. Can be empty.
    pub(crate) last_name: String,
    /// The current e-mail address.
    pub(crate) email: String,
    /// The new e-mail address that is not confirmed yet.
    pub(crate) pending: Option<String>,
    /// Whether a new address is confirmed by mail.
    pub(crate) sends_mail: bool,
}

/// Returns the id, name and address of the signed-in user.
#[server(prefix = "/_fn", endpoint = "get_profile")]
pub(crate) async fn get_profile() -> Result<OwnProfile, UiError> {
    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    Ok(OwnProfile {
        id: me.uuid.to_string(),
        first_name: me.first_name,
        last_name: me.last_name,
        email: me.email,
        pending: me.pending_email,
        sends_mail: services.identity.sends_mail(),
    })
}

/// Changes the e-mail address. The current address cancels a pending change.
#[server(prefix = "/_fn", endpoint = "change_address")]
pub(crate) async fn change_address(email: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.change_address(&ctx, &email).await.map_err(ui_error)
}
