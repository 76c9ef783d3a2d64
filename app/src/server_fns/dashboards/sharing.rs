//! Share links of a dashboard, and the dashboard that a share link shows.

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::TileView;
use super::tiles::TileAnswer;
#[cfg(feature = "ssr")]
use crate::context::{
    add_header, anyone, enter_project, enter_with_token, go, notice, set_not_found, ui_error,
};
use crate::error::UiError;

/// Name of the flash with a new link, behind the number of its dashboard.
#[cfg(feature = "ssr")]
const FLASH: &str = "share_link";

/// A share link that works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShareLinkView {
    pub(crate) id: i64,
    pub(crate) created_at: String,
    /// Who created it. Empty: a former member.
    pub(crate) created_by: String,
    pub(crate) expires_at: String,
}

/// A dashboard as a share link shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedView {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) expires_at: String,
    /// The tiles in the order of the page.
    pub(crate) tiles: Vec<TileView>,
}

/// Lists the share links of a dashboard that work, oldest first.
#[server(prefix = "/_fn", endpoint = "list_share_links")]
pub(crate) async fn list_share_links(
    project: i64,
    dashboard: String,
) -> Result<Vec<ShareLinkView>, UiError> {
    use weir_model::dashboards::{SHARE_LINKS_MAX, ShareLink};
    use weir_model::pagination::Page;

    let (services, project) = enter_project(project).await?;
    let page = Page { limit: SHARE_LINKS_MAX as u64, offset: 0 };
    let found = services.dashboards.share_links(&project, &dashboard, page).await;
    let view = |link: ShareLink| ShareLinkView {
        id: link.id,
        created_at: link.created_at.to_string(),
        created_by: link.created_by.map(|user| user.first_name).unwrap_or_default(),
        expires_at: link.expires_at.to_string(),
    };
    Ok(found.map_err(ui_error)?.results.into_iter().map(view).collect())
}

/// Makes a share link, and leads to the page that shows it once.
#[server(prefix = "/_fn", endpoint = "create_share_link")]
pub(crate) async fn create_share_link(
    project: i64,
    dashboard: String,
    days: i64,
) -> Result<(), UiError> {
    use weir_model::dashboards::ShareLinkInput;

    let (services, ctx) = enter_project(project).await?;
    let (_, user, session) = enter_with_token()?;
    let (_, visit) = anyone()?;
    let input = ShareLinkInput { days };
    let made = services.dashboards.create_share_link(&ctx, &dashboard, input).await;
    let token = made.map_err(ui_error)?.token.unwrap_or_default();
    let made = format!("{dashboard} {}/shared/{token}", visit.origin);
    services.identity.put_flash(&user, &session, FLASH, &made).await.map_err(ui_error)?;
    go(&format!("/projects/{project}/dashboards/{dashboard}/sharing/link"));
    Ok(())
}

/// Returns the address of the new share link, on the first call only.
#[server(prefix = "/_fn", endpoint = "reveal_share_link")]
pub(crate) async fn reveal_share_link(
    project: i64,
    dashboard: String,
) -> Result<Option<String>, UiError> {
    let (services, project) = enter_project(project).await?;
    services.dashboards.get(&project, &dashboard).await.map_err(ui_error)?;
    let (_, user, session) = enter_with_token()?;
    let identity = &services.identity;
    let made = identity.take_flash(&user, &session, FLASH).await.map_err(ui_error)?;
    let Some(made) = made else { return Ok(None) };
    if let Some((of, address)) = made.split_once(' ')
        && of == dashboard
    {
        return Ok(Some(address.to_owned()));
    }
    // The page of the other dashboard shows it.
    identity.put_flash(&user, &session, FLASH, &made).await.map_err(ui_error)?;
    Ok(None)
}

/// Revokes a share link.
#[server(prefix = "/_fn", endpoint = "revoke_share_link")]
pub(crate) async fn revoke_share_link(
    project: i64,
    dashboard: String,
    link: String,
) -> Result<(), UiError> {
    let (services, project) = enter_project(project).await?;
    let revoked = services.dashboards.delete_share_link(&project, &dashboard, &link).await;
    revoked.map_err(ui_error)?;
    notice("Revoked the link.");
    Ok(())
}

/// Returns the dashboard of a share link. `None`: the link does not work.
#[server(prefix = "/_fn", endpoint = "get_shared_dashboard")]
pub(crate) async fn get_shared_dashboard(token: String) -> Result<Option<SharedView>, UiError> {
    use weir_model::dashboards::SharedTile;
    use weir_service::Error;

    let (services, _) = anyone()?;
    // The address has the token. It must not be sent as referrer, nor listed by a search engine.
    add_header(http::header::REFERRER_POLICY, "no-referrer");
    add_header(http::HeaderName::from_static("x-robots-tag"), "noindex, nofollow");
    let mut found = match services.dashboards.shared(&token).await {
        Ok(found) => found,
        Err(Error::NotFound(_)) => {
            set_not_found();
            return Ok(None);
        }
        Err(error) => return Err(ui_error(error)),
    };
    found.tiles.sort_by_key(|tile| tile.layouts.position());
    let tile = |tile: SharedTile| TileView {
        id: tile.id,
        insight: 0,
        short_id: String::new(),
        name: tile.name.unwrap_or_else(|| "Insight".to_owned()),
        description: tile.description.unwrap_or_default(),
        is_wide: tile.layouts.is_wide(),
        height: tile.layouts.height(),
    };
    Ok(Some(SharedView {
        name: found.name,
        description: found.description,
        expires_at: found.expires_at.to_string(),
        tiles: found.tiles.into_iter().map(tile).collect(),
    }))
}

/// Answers the question of a tile of a share link.
#[server(prefix = "/_fn", endpoint = "answer_shared_tile")]
pub(crate) async fn answer_shared_tile(token: String, tile: i64) -> Result<TileAnswer, UiError> {
    use super::answers::{Asker, answered, tile_error};

    let (services, _) = anyone()?;
    let found = services.dashboards.shared_question(&token, tile).await;
    let (project, query) = found.map_err(tile_error)?;
    answered(&services, Asker::Visitor(project), query).await
}
