//! The rest of a long list, which the browser draws in parts, after it has painted the first
//! part of the page.

use leptos::prelude::*;

/// Rows that a page is drawn with. They fill the screen of most devices.
const FIRST: usize = 15;
/// The same on a narrow screen, where each row is a card.
#[cfg(not(feature = "ssr"))]
const FIRST_CARDS: usize = 6;
/// The width below which rows are cards, CSS pixels: 52rem in `style/tables.css`.
#[cfg(not(feature = "ssr"))]
const CARDS_BELOW: f64 = 832.0;
/// Rows of a part of the rest.
pub(crate) const PART: usize = 10;

/// Number of rows that a page is drawn with at first. The document of the server has parts of
/// the same size in all browsers.
pub(crate) fn first_rows() -> usize {
    #[cfg(not(feature = "ssr"))]
    if !crate::client::is_hydrating() {
        let width = window().inner_width().ok().and_then(|width| width.as_f64());
        return if width.is_some_and(|width| width < CARDS_BELOW) { FIRST_CARDS } else { FIRST };
    }
    FIRST
}

/// A part of the rest.
pub(crate) type Part = Box<dyn FnOnce() -> AnyView + Send>;

/// Draws the rest of a list of a page that a link leads to after the page was painted, one
/// part after each frame, so that inputs are answered in between. Otherwise the rest is drawn
/// with the page.
pub(crate) fn rest(parts: Vec<Part>) -> AnyView {
    #[cfg(feature = "ssr")]
    return parts.into_iter().map(|draw| draw()).collect_view().into_any();
    #[cfg(not(feature = "ssr"))]
    in_turn(parts)
}

#[cfg(not(feature = "ssr"))]
fn in_turn(parts: Vec<Part>) -> AnyView {
    let count = parts.len();
    let drawn = if crate::client::navigation::is_arriving() { 0 } else { count };
    let drawn = RwSignal::new(drawn);
    grow(drawn, 1, count);
    let part = |(at, draw): (usize, Part)| {
        let mut draw = Some(draw);
        let is_due = Memo::new(move |_| drawn.get() > at);
        let view = move || {
            let draw = if is_due.get() { draw.take() } else { None };
            draw.map_or_else(|| ().into_any(), untrack)
        };
        view.into_any()
    };
    parts.into_iter().enumerate().map(part).collect_view().into_any()
}

/// Adds `step` to the number of what is drawn after each frame, up to `most`.
#[cfg(not(feature = "ssr"))]
pub(crate) fn grow(drawn: RwSignal<usize>, step: usize, most: usize) {
    // The page can be gone.
    if drawn.try_get_untracked().is_some_and(|drawn| drawn < most) {
        crate::client::paint::later(move || {
            let _ = drawn.try_update(|drawn| *drawn = most.min(*drawn + step).max(*drawn));
            grow(drawn, step, most);
        });
    }
}
