//! The tiles of a page, with their answers. The server answers the questions of a document as
//! far as it can in time. In the browser each tile asks for what is missing, alone, so that a
//! slow tile delays no other one.

use leptos::prelude::*;

use super::answer::answer;
use crate::error::UiError;
use crate::server_fns::dashboards::TileView;
use crate::server_fns::dashboards::sharing::answer_shared_tile;
use crate::server_fns::dashboards::tiles::{TileAnswer, answer_tile};
use crate::ui::empty::panel;
use crate::ui::pager::{ListPage, page_in_query};
use crate::ui::time::is_in_browser;

/// Tiles on one page.
const PAGE_SIZE: u32 = 12;
/// Questions that a page asks at the same time.
const AT_A_TIME: usize = 2;
/// How long the server waits for the answers of a document.
#[cfg(feature = "ssr")]
const WAIT: std::time::Duration = std::time::Duration::from_secs(15);

/// The answer of a tile. `None`: it is not there yet.
pub(super) type Outcome = Option<Result<TileAnswer, UiError>>;

/// Where the questions of tiles are asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// On the page of a dashboard.
    Dashboard {
        project: i64,
        dashboard: String,
        /// The date at which the range begins. Empty: the range of the dashboard.
        range: String,
    },
    /// On the page of a share link.
    Link { token: String },
}

impl Source {
    async fn answer(&self, tile: i64) -> Result<TileAnswer, UiError> {
        match self.clone() {
            Self::Dashboard { project, dashboard, range } => {
                answer_tile(project, dashboard, tile, range).await
            }
            Self::Link { token } => answer_shared_tile(token, tile).await,
        }
    }
}

/// The part of the tiles that the address names.
pub(super) fn tile_page() -> ListPage {
    page_in_query(PAGE_SIZE)
}

/// The tiles of a page, and the number of all.
pub(super) fn on_page(tiles: Vec<TileView>, list_page: ListPage) -> (Vec<TileView>, u64) {
    let total = tiles.len() as u64;
    let (skipped, taken) = (list_page.offset as usize, list_page.limit as usize);
    (tiles.into_iter().skip(skipped).take(taken).collect(), total)
}

/// The answers of tiles, in their order, as far as the server has them in time.
#[cfg(feature = "ssr")]
pub(super) async fn answers(source: Source, tiles: &[TileView]) -> Vec<Outcome> {
    use std::time::Instant;

    use futures::StreamExt as _;
    use weir_service::questions::within;

    let mut found: Vec<Outcome> = tiles.iter().map(|_| None).collect();
    let ids: Vec<i64> = tiles.iter().map(|tile| tile.id).collect();
    let asked = ids.into_iter().enumerate().map(|(at, tile)| {
        let source = source.clone();
        async move { (at, source.answer(tile).await) }
    });
    let mut asked = futures::stream::iter(asked).buffer_unordered(AT_A_TIME);
    let end = Instant::now() + WAIT;
    while let Some(Some((at, answer))) =
        within(end.saturating_duration_since(Instant::now()), asked.next()).await
    {
        if let Some(outcome) = found.get_mut(at) {
            *outcome = Some(answer);
        }
    }
    found
}

/// In the browser the tiles ask when they are drawn.
#[cfg(not(feature = "ssr"))]
pub(super) async fn answers(_: Source, tiles: &[TileView]) -> Vec<Outcome> {
    tiles.iter().map(|_| None).collect()
}

/// A tile on a page.
pub(super) struct Tile {
    pub(super) view: TileView,
    pub(super) outcome: Outcome,
    /// The name of the tile as it is shown: a link to its insight, or a text.
    pub(super) heading: AnyView,
    /// The menu of the tile, if it can be changed.
    pub(super) menu: Option<AnyView>,
}

/// The tiles, each with its answer.
pub(super) fn drawn(source: Source, tiles: Vec<Tile>) -> AnyView {
    let mut missing = Vec::new();
    let tiles: Vec<AnyView> = tiles
        .into_iter()
        .map(|tile| {
            let id = tile.view.id;
            let is_missing = tile.outcome.is_none();
            let outcome = RwSignal::new(begin(&source, id, tile.outcome));
            if is_missing {
                missing.push((id, outcome));
            }
            one(tile.view, tile.heading, tile.menu, outcome)
        })
        .collect();
    ask(source, missing);
    view! { <ol class="tiles">{tiles}</ol> }.into_any()
}

fn one(
    tile: TileView,
    heading: AnyView,
    menu: Option<AnyView>,
    outcome: RwSignal<Outcome>,
) -> AnyView {
    let TileView { id, name, description, is_wide, .. } = tile;
    let class = if is_wide { "tile tile-wide" } else { "tile" };
    let labelled_by = format!("tile-{id}-title");
    let description =
        (!description.is_empty()).then(|| view! { <p class="hint">{description}</p> });
    let content = move || match outcome.get() {
        None => waiting(),
        Some(found) => untrack(|| panel(found, |found| answer(id, &name, found))),
    };
    view! {
        <li class=class id=format!("tile-{id}")>
            <section class="card" aria-labelledby=labelled_by.clone()>
                <header class="tile-head">
                    <h2 id=labelled_by.clone()>{heading}</h2>
                    {menu}
                </header>
                {description}
                {content}
            </section>
        </li>
    }
    .into_any()
}

/// Shown while the answer of a tile is missing. A document of the server waits for no more.
fn waiting() -> AnyView {
    if is_in_browser() {
        return view! { <p class="loading" role="status">"Loading..."</p> }.into_any();
    }
    view! {
        <p>
            "The answer takes longer than the page waits. "
            <a href="">"Load the page again"</a>
        </p>
    }
    .into_any()
}

#[cfg(feature = "ssr")]
fn begin(_: &Source, _: i64, outcome: Outcome) -> Outcome {
    outcome
}

#[cfg(feature = "ssr")]
fn ask(_: Source, _: Vec<(i64, RwSignal<Outcome>)>) {}

#[cfg(not(feature = "ssr"))]
use self::browser::{ask, begin};

/// Asking in the browser.
#[cfg(not(feature = "ssr"))]
mod browser {
    use std::cell::RefCell;

    use leptos::prelude::*;
    use leptos::task::spawn_local;

    use super::{AT_A_TIME, Outcome, Source};
    use crate::server_fns::dashboards::tiles::TileAnswer;

    thread_local! {
        /// The answers of the page that was drawn last. Drawn again, it begins with them, so
        /// that its height stays while newer answers are on their way.
        static LAST: RefCell<(Option<Source>, Vec<(i64, TileAnswer)>)> =
            const { RefCell::new((None, Vec::new())) };
    }

    /// What a tile shows first: the answer in the document, or else the last one.
    pub(super) fn begin(source: &Source, tile: i64, outcome: Outcome) -> Outcome {
        if let Some(Ok(found)) = &outcome {
            keep(source, tile, found.clone());
        }
        outcome.or_else(|| {
            LAST.with_borrow(|(of, answers)| {
                let answers = answers.iter().filter(|(id, _)| *id == tile);
                let mut known = answers.filter(|_| of.as_ref() == Some(source));
                known.next().map(|(_, answer)| Ok(answer.clone()))
            })
        })
    }

    fn keep(source: &Source, tile: i64, answer: TileAnswer) {
        LAST.with_borrow_mut(|(of, answers)| {
            if of.as_ref() != Some(source) {
                *of = Some(source.clone());
                answers.clear();
            }
            answers.retain(|(id, _)| *id != tile);
            answers.push((tile, answer));
        });
    }

    /// Asks for the missing answers, a few at a time.
    pub(super) fn ask(source: Source, missing: Vec<(i64, RwSignal<Outcome>)>) {
        for first in 0..AT_A_TIME {
            let source = source.clone();
            let tiles: Vec<_> = missing.iter().skip(first).step_by(AT_A_TIME).copied().collect();
            spawn_local(async move {
                for (tile, outcome) in tiles {
                    // The page can be gone.
                    if outcome.try_with_untracked(|_| ()).is_none() {
                        return;
                    }
                    let answer = source.answer(tile).await;
                    if let Ok(found) = &answer {
                        keep(&source, tile, found.clone());
                    }
                    let _ = outcome.try_set(Some(answer));
                }
            });
        }
    }
}
