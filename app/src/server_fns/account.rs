//! Who is signed in, what the navigation shows, and changing one's own account.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use crate::context::{enter, go, keep_theme, ui_error};
use crate::error::UiError;
use crate::theme::Theme;

/// Whoever is signed in, with what the navigation shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Viewer {
    /// First name.
    pub(crate) name: String,
    /// E-mail address.
    pub(crate) email: String,
    /// Chosen theme.
    pub(crate) theme: Theme,
    /// Whether they may see the instance.
    pub(crate) staff: bool,
    /// The project they looked at last.
    pub(crate) project: Option<i64>,
    /// Their organizations with projects.
    pub(crate) organizations: Vec<Place>,
}

/// An organization in the navigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Id.
    pub(crate) id: String,
    /// Name.
    pub(crate) name: String,
    /// Number and name of its projects.
    pub(crate) projects: Vec<(i64, String)>,
}

/// Whoever is signed in.
#[server(prefix = "/_fn", endpoint = "get_viewer")]
pub(crate) async fn get_viewer() -> Result<Viewer, UiError> {
    use weir_model::pagination::{MAX_LIMIT, Page};

    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    let page = Page { limit: MAX_LIMIT, offset: 0 };
    let organizations = services.organizations.list(&ctx, page).await.map_err(ui_error)?;
    let place = |organization: weir_model::organizations::Organization| Place {
        id: organization.id.to_string(),
        name: organization.name,
        projects: organization.teams.into_iter().map(|team| (team.id.0, team.name)).collect(),
    };
    Ok(Viewer {
        name: me.first_name,
        email: me.email,
        theme: Theme::from_word(me.theme_mode.as_deref().unwrap_or_default()),
        staff: me.is_staff,
        project: me.team.map(|team| team.id.0),
        organizations: organizations.results.into_iter().map(place).collect(),
    })
}

/// How many exports of an organization fail, for the navigation. A page does not
/// fail with it.
#[server(prefix = "/_fn", endpoint = "count_failing_exports")]
pub(crate) async fn count_failing_exports(organization: String) -> Result<u64, UiError> {
    let (services, ctx) = enter()?;
    let Ok(org) = services.organizations.enter(&ctx, &organization).await else { return Ok(0) };
    Ok(services.exports.failing((&org).into()).await.unwrap_or(0))
}

/// Leads to where a visit begins: the project looked at last.
#[server(prefix = "/_fn", endpoint = "find_home")]
pub(crate) async fn find_home() -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    match me.team {
        Some(team) => go(&format!("/projects/{}/start", team.id)),
        None => go("/organizations"),
    }
    Ok(())
}

/// Looks at another project from now on.
#[server(prefix = "/_fn", endpoint = "switch_project")]
pub(crate) async fn switch_project(project: i64) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    let project = weir_model::ProjectId(project);
    services.users.set_current(&ctx, None, Some(project)).await.map_err(ui_error)?;
    go(&format!("/projects/{project}/live"));
    Ok(())
}

/// Changes the name.
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

/// Changes the theme, here and wherever else the person signs in.
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

/// The name of somebody, and the address that they sign in with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    /// Id of the account.
    pub(crate) id: String,
    /// The first name.
    pub(crate) first_name: String,
    /// The last name; may be empty.
    pub(crate) last_name: String,
    /// The address.
    pub(crate) email: String,
    /// The one that takes its place once it is confirmed.
    pub(crate) pending: Option<String>,
    /// Whether a new one is to be confirmed by mail.
    pub(crate) sends_mail: bool,
}

/// Name and address of whoever is signed in.
#[server(prefix = "/_fn", endpoint = "get_address")]
pub(crate) async fn get_address() -> Result<Address, UiError> {
    let (services, ctx) = enter()?;
    let me = services.users.me(&ctx).await.map_err(ui_error)?;
    Ok(Address {
        id: me.uuid.to_string(),
        first_name: me.first_name,
        last_name: me.last_name,
        email: me.email,
        pending: me.pending_email,
        sends_mail: services.identity.sends_mail(),
    })
}

/// Changes the address; the present one takes back a change that waits.
#[server(prefix = "/_fn", endpoint = "change_address")]
pub(crate) async fn change_address(email: String) -> Result<(), UiError> {
    let (services, ctx) = enter()?;
    services.identity.change_address(&ctx, &email).await.map_err(ui_error)
}
