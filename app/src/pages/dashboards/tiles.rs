//! The tiles of a page, with their answers. The server answers the questions of a document as
//! far as it can in time. In the browser each tile asks for what is missing, alone, so that a
//! slow tile delays no other one.

use leptos::prelude::*;
use weir_model::dashboards::TileHeight;

use super::answer::answer;
use crate::error::UiError;
use crate::server_fns::dashboards::TileView;
use crate::server_fns::dashboards::sharing::answer_shared_tile;
use crate::server_fns::dashboards::tiles::{TileAnswer, answer_tile};
use crate::ui::empty::panel;
use crate::ui::pager::{ListPage, page_in_query};
use crate::ui::reorder::drag_handle;
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

/// The id of the element of a tile.
pub(super) fn part(tile: i64) -> String {
    format!("tile-{tile}")
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

/// The answer that a tile shows.
#[derive(Clone)]
struct Shown {
    outcome: Outcome,
    /// Whether it is that of another range, until that of this range is there.
    is_old: bool,
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
    let mut views = Vec::with_capacity(tiles.len());
    // One tile alone has no other place on the page.
    let has_others = tiles.len() > 1;
    for Tile { view, outcome, heading, menu } in tiles {
        let (id, is_missing) = (view.id, outcome.is_none());
        let shown = begin(&source, id, outcome);
        if is_missing {
            missing.push((id, shown.clone()));
        }
        let handle = (menu.is_some() && has_others).then(drag_handle);
        views.push(one(view, heading, handle, menu, shown));
    }
    ask(source, missing);
    view! { <ol class="tiles">{views}</ol> }.into_any()
}

fn one(
    tile: TileView,
    heading: AnyView,
    handle: Option<AnyView>,
    menu: Option<AnyView>,
    shown: ArcRwSignal<Shown>,
) -> AnyView {
    let TileView { id, name, description, is_wide, height, .. } = tile;
    let width = if is_wide { " tile-wide" } else { "" };
    let height = match height {
        TileHeight::Low => " tile-low",
        TileHeight::Usual => "",
        TileHeight::High => " tile-high",
    };
    let class = format!("tile{width}{height}");
    let labelled_by = format!("tile-{id}-title");
    let description =
        (!description.is_empty()).then(|| view! { <p class="hint">{description}</p> });
    let content = move || {
        let Shown { outcome, is_old } = shown.get();
        let Some(found) = outcome else { return waiting() };
        let note = is_old.then(|| view! { <p class="hint" role="status">"Updating..."</p> });
        let found = untrack(|| panel(found, |found| answer(id, &name, found)));
        view! {
            {note}
            {found}
        }
        .into_any()
    };
    view! {
        <li class=class id=part(id) data-reorder-item=id.to_string()>
            <section class="card" aria-labelledby=labelled_by.clone()>
                <header class="tile-head">
                    {handle}
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
fn begin(_: &Source, _: i64, outcome: Outcome) -> ArcRwSignal<Shown> {
    ArcRwSignal::new(Shown { outcome, is_old: false })
}

#[cfg(feature = "ssr")]
fn ask(_: Source, _: Vec<(i64, ArcRwSignal<Shown>)>) {}

#[cfg(not(feature = "ssr"))]
use self::browser::{ask, begin};

/// Asking in the browser.
#[cfg(not(feature = "ssr"))]
mod browser {
    use std::cell::RefCell;

    use leptos::prelude::*;
    use leptos::task::spawn_local;

    use super::{AT_A_TIME, Outcome, Shown, Source};

    /// Pages whose answers are kept.
    const KEPT: usize = 4;

    /// The tiles of a page. Drawn again, it begins with their answers, so that its height stays
    /// while newer answers are on their way.
    struct DrawnPage {
        source: Source,
        tiles: Vec<DrawnTile>,
    }

    struct DrawnTile {
        id: i64,
        shown: ArcRwSignal<Shown>,
        /// Whether its question is asked, or will be.
        is_asked: bool,
    }

    thread_local! {
        /// The page that was drawn last is the last one.
        static PAGES: RefCell<Vec<DrawnPage>> = const { RefCell::new(Vec::new()) };
    }

    impl DrawnPage {
        fn shown(&self, id: i64) -> Option<ArcRwSignal<Shown>> {
            self.tiles.iter().find(|tile| tile.id == id).map(|tile| tile.shown.clone())
        }
    }

    /// Whether two pages have the same tiles, perhaps with another range.
    fn is_same_dashboard(one: &Source, other: &Source) -> bool {
        match (one, other) {
            (
                Source::Dashboard { project, dashboard, .. },
                Source::Dashboard { project: other_project, dashboard: other_dashboard, .. },
            ) => (project, dashboard) == (other_project, other_dashboard),
            _ => one == other,
        }
    }

    /// What a tile shows: the answer in the document, or else the last one, or else that of
    /// another range.
    pub(super) fn begin(source: &Source, id: i64, outcome: Outcome) -> ArcRwSignal<Shown> {
        let (known, old) = PAGES.with_borrow_mut(|pages| {
            let at = pages.iter().position(|page| page.source == *source);
            let page = match at {
                Some(at) => pages.remove(at),
                None => DrawnPage { source: source.clone(), tiles: Vec::new() },
            };
            let known = page.shown(id);
            let mut near =
                pages.iter().rev().filter(|page| is_same_dashboard(&page.source, source));
            let old = near.find_map(|page| page.shown(id));
            pages.drain(..pages.len().saturating_sub(KEPT - 1));
            pages.push(page);
            (known, old)
        });
        if let Some(known) = known {
            if outcome.is_some() {
                known.set(Shown { outcome, is_old: false });
            }
            return known;
        }
        let old = old.and_then(|old| old.get_untracked().outcome).filter(Result::is_ok);
        let is_old = outcome.is_none() && old.is_some();
        let shown = ArcRwSignal::new(Shown { outcome: outcome.or(old), is_old });
        let tile = DrawnTile { id, shown: shown.clone(), is_asked: false };
        PAGES.with_borrow_mut(|pages| {
            if let Some(page) = pages.last_mut() {
                page.tiles.push(tile);
            }
        });
        shown
    }

    /// Whether the page of these tiles was drawn last.
    fn is_current(source: &Source) -> bool {
        PAGES.with_borrow(|pages| pages.last().is_some_and(|page| page.source == *source))
    }

    /// Sets whether the question of a tile is asked, and returns whether it was. `None`: its
    /// page is not kept any more.
    fn set_asked(source: &Source, id: i64, is_asked: bool) -> Option<bool> {
        PAGES.with_borrow_mut(|pages| {
            let page = pages.iter_mut().find(|page| page.source == *source)?;
            let tile = page.tiles.iter_mut().find(|tile| tile.id == id)?;
            Some(std::mem::replace(&mut tile.is_asked, is_asked))
        })
    }

    /// Asks for the missing answers, a few at a time.
    pub(super) fn ask(source: Source, mut missing: Vec<(i64, ArcRwSignal<Shown>)>) {
        missing.retain(|(id, _)| set_asked(&source, *id, true) == Some(false));
        for first in 0..AT_A_TIME {
            let source = source.clone();
            let tiles: Vec<_> = missing.iter().skip(first).step_by(AT_A_TIME).cloned().collect();
            spawn_local(async move {
                for (id, shown) in tiles {
                    // Another page can be there meanwhile.
                    if !is_current(&source) {
                        set_asked(&source, id, false);
                        continue;
                    }
                    let outcome = Some(source.answer(id).await);
                    set_asked(&source, id, false);
                    shown.set(Shown { outcome, is_old: false });
                }
            });
        }
    }
}
