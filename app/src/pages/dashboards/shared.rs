//! The page of a share link: a dashboard for visitors without an account, with nothing else of
//! its organization.

use leptos::prelude::*;

use super::tiles::{self, Outcome, Source, Tile};
use crate::error::UiError;
use crate::frame::Logo;
use crate::pages::in_path;
use crate::server_fns::dashboards::TileView;
use crate::server_fns::dashboards::sharing::{SharedView, get_shared_dashboard};
use crate::ui::page::{PageHead, page};
use crate::ui::pager::{ListPage, Pager};
use crate::ui::time::Time;

const TITLE: &str = "Shared dashboard";

/// The link in the address, and the part of the tiles.
type Inputs = (String, ListPage);

/// The dashboard, its tiles on the page with their answers, and the number of all tiles.
/// `None`: the link does not work.
type Loaded = Option<(SharedView, Vec<Outcome>, u64)>;

#[component]
pub(crate) fn SharedDashboard() -> impl IntoView {
    let content = page(TITLE, read, load, draw);
    view! {
        <div class="shared">
            <header class="shared-head"><p class="brand"><Logo /> "Weir"</p></header>
            <main id="main" tabindex="-1">{content}</main>
        </div>
    }
    .into_any()
}

fn read() -> Inputs {
    (in_path("token"), tiles::tile_page())
}

async fn load((token, list_page): Inputs) -> Result<Loaded, UiError> {
    let Some(mut found) = get_shared_dashboard(token.clone()).await? else { return Ok(None) };
    let (shown, total) = tiles::on_page(found.tiles, list_page);
    let outcomes = tiles::answers(Source::Link { token }, &shown).await;
    found.tiles = shown;
    Ok(Some((found, outcomes, total)))
}

fn draw((token, list_page): Inputs, found: Loaded) -> AnyView {
    let Some((found, outcomes, total)) = found else { return refused() };
    let SharedView { name, description, expires_at, tiles: shown } = found;
    let description =
        (!description.is_empty()).then(|| view! { <p class="lead">{description}</p> });
    let tile = |(view, outcome): (TileView, Outcome)| {
        let heading = view.name.clone().into_any();
        Tile { view, outcome, heading, menu: None }
    };
    let all: Vec<Tile> = shown.into_iter().zip(outcomes).map(tile).collect();
    let content = match total {
        0 => view! { <div class="empty"><p>"The dashboard has no tiles."</p></div> }.into_any(),
        total => view! {
            {tiles::drawn(Source::Link { token }, all)}
            <Pager page=list_page total=total what="tiles" />
        }
        .into_any(),
    };
    view! {
        <PageHead title=name />
        {description}
        {content}
        <p class="hint">"This link works until " <Time iso=expires_at /> "."</p>
    }
    .into_any()
}

fn refused() -> AnyView {
    view! {
        <PageHead title=TITLE />
        <div class="empty">
            <p>"This link does not work: it has expired, it was revoked, or its address is not complete."</p>
            <p>"Ask the person who sent it for a new one."</p>
        </div>
    }
    .into_any()
}
