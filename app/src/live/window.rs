//! How many rows of the list are drawn: those on screen and some below. A thousand
//! are kept, but drawing them anew with every key of the filter would keep whoever
//! types waiting.

use std::sync::Arc;

use leptos::prelude::*;

use super::list;
use super::row::Row;

/// Rows that are drawn first, and more at a time: some screens of most devices.
const STEP: usize = 50;
/// Least height of a row, in CSS pixels.
const ROW: f64 = 38.0;
/// More are drawn before their place comes into view, in CSS pixels.
const MARGIN: f64 = 600.0;
/// Id of the button that draws more.
const MORE: &str = "live-more";

/// The newest rows that are drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawWindow {
    size: RwSignal<usize>,
    /// Key of the newest row of the list when it was drawn last.
    newest: StoredValue<Option<String>>,
}

impl DrawWindow {
    /// All that the server has drawn: without scripts nobody asks for more.
    pub(super) fn new(drawn: usize) -> Self {
        Self { size: RwSignal::new(drawn.max(STEP)), newest: StoredValue::new(None) }
    }

    /// Begins anew, for other rows.
    pub(super) fn reset(self) {
        self.newest.set_value(None);
        self.size.set(STEP);
    }

    /// Those of the rows that are drawn. New ones push none away from under the eyes
    /// of whoever has scrolled down to it, or reads one; otherwise what is drawn far
    /// below is let go. This is decided here, so that no row goes only to come back.
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

    /// Draws more when its place comes near, or when it is pressed.
    pub(super) fn more(self, shown: Memo<Vec<Arc<Row>>>) -> AnyView {
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
            // They stand before the button, which may be gone with the last ones.
            let first = shown.with_untracked(|rows| rows.get(size).map(|row| list::id(&row.key)));
            if let Some(id) = first {
                request_animation_frame(move || {
                    list::focus(&id);
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

/// How many rows fill the screen and some more.
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
    // What is hidden has no height.
    place.height() > 0.0 && place.top() < height() + MARGIN
}
