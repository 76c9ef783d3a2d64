//! Limits the rows that are drawn: those on screen and some below. The page keeps a
//! thousand rows, but drawing all of them would block the page.

use std::sync::Arc;

use leptos::prelude::*;

use super::row::Row;
use super::row_table;
#[cfg(not(feature = "ssr"))]
use crate::ui::rest::{PART, first_rows, grow};

/// Number of rows that are drawn soon, and added at a time: some screens of most devices.
const STEP: usize = 50;
/// Smallest height of a row, in CSS pixels.
const ROW: f64 = 32.0;
/// Distance below the screen at which more rows are drawn, in CSS pixels.
const MARGIN: f64 = 600.0;
/// Id of the button that draws more rows.
const MORE: &str = "live-more";

/// The number of rows that are drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawWindow {
    size: RwSignal<usize>,
    /// Key of the newest row of the list when it was drawn last.
    newest: StoredValue<Option<String>>,
}

impl DrawWindow {
    /// Starts with all rows of a page that the server draws, because without scripts there
    /// is no way to show more, and of a page that the user goes back to, because it is
    /// scrolled to where it was.
    pub(super) fn new(rows: usize) -> Self {
        let window = |size| Self { size: RwSignal::new(size), newest: StoredValue::new(None) };
        if draws_all() {
            return window(rows.max(STEP));
        }
        #[cfg(not(feature = "ssr"))]
        if crate::client::navigation::is_arriving() || is_at_top() {
            let begun = window(first_rows());
            grow(begun.size, PART, STEP);
            return begun;
        }
        window(STEP)
    }

    /// The rows to draw. While the user reads a row or has scrolled down, new rows push
    /// no row out of the window. Otherwise rows far below are removed. The decision is
    /// made here, before drawing, so that no row disappears and comes back.
    pub(super) fn drawn(self, rows: &[Arc<Row>], is_reading: bool) -> Vec<Arc<Row>> {
        let newest = rows.first().map(|row| row.key.clone());
        let before = self.newest.try_update_value(|kept| std::mem::replace(kept, newest)).flatten();
        let new = rows.iter().position(|row| Some(&row.key) == before.as_ref()).unwrap_or(0);
        if new > 0 {
            let rests = !is_reading && is_at_top();
            self.size.update(|size| *size = if rests { screenful() } else { *size + new });
        }
        rows.iter().take(self.size.get()).cloned().collect()
    }

    /// A button that draws more rows, when it is pressed or comes near the screen.
    pub(super) fn more(self, shown: RwSignal<Vec<Arc<Row>>>) -> AnyView {
        Effect::new(move |_| {
            let scrolling = window_event_listener_untyped("scroll", move |_| {
                let more = document().get_element_by_id(MORE);
                if more.is_some_and(|more| is_near(&more)) {
                    self.size.update(|size| *size += STEP);
                }
            });
            on_cleanup(move || scrolling.remove());
        });
        let are_none_left = move || shown.with(Vec::len) <= self.size.get();
        let press = move || {
            let size = self.size.get_untracked();
            self.size.set(size + STEP);
            // Focus the first new row, because the button disappears after the last rows.
            let first =
                shown.with_untracked(|rows| rows.get(size).map(|row| row_table::id(&row.key)));
            if let Some(id) = first {
                request_animation_frame(move || {
                    row_table::focus(&id);
                });
            }
        };
        view! {
            <button
                id=MORE
                type="button"
                class="button rows-more"
                hidden=are_none_left
                on:click=move |_| press()
            >
                "Show more rows"
            </button>
        }
        .into_any()
    }
}

#[cfg(feature = "ssr")]
fn draws_all() -> bool {
    true
}

#[cfg(not(feature = "ssr"))]
fn draws_all() -> bool {
    crate::client::is_hydrating() || crate::client::navigation::is_back()
}

/// Number of rows that fill the screen and the margin.
fn screenful() -> usize {
    STEP.max(((height() + MARGIN) / ROW) as usize)
}

fn height() -> f64 {
    window().inner_height().ok().and_then(|height| height.as_f64()).unwrap_or(0.0)
}

fn is_at_top() -> bool {
    window().scroll_y().is_ok_and(|y| y < 1.0)
}

fn is_near(element: &web_sys::Element) -> bool {
    let place = element.get_bounding_client_rect();
    // Hidden elements have no height.
    place.height() > 0.0 && place.top() < height() + MARGIN
}
