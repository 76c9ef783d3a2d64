//! How many rows of the list are drawn: those on screen and some below. A thousand
//! are kept, but drawing them anew with every key of the filter would keep whoever
//! types waiting.

use std::sync::Arc;

use leptos::prelude::*;

use super::row::Row;

/// Rows that are drawn first, and more at a time: some screens.
const STEP: usize = 50;
/// More are drawn before their place comes into view, in CSS pixels.
const MARGIN: f64 = 600.0;

/// Id of the button that draws more.
const MORE: &str = "live-more";

/// The newest rows that are drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawWindow {
    size: RwSignal<usize>,
}

impl DrawWindow {
    /// All that the server has drawn: without scripts nobody asks for more.
    pub(super) fn new(drawn: usize) -> Self {
        Self { size: RwSignal::new(drawn.max(STEP)) }
    }

    /// How many rows are drawn at most.
    pub(super) fn size(self) -> usize {
        self.size.get()
    }

    /// Begins anew, for other rows.
    pub(super) fn reset(self) {
        self.size.set(STEP);
    }

    fn grow(self) {
        self.size.update(|size| *size += STEP);
    }

    /// New rows push none away from under the eyes of whoever has scrolled down to
    /// it. At the top, what is drawn far below is let go.
    pub(super) fn follow(self, shown: Memo<Vec<Arc<Row>>>) {
        Effect::new(move |newest: Option<Option<String>>| {
            let newest = newest.flatten();
            let (now, new) = shown.with(|rows| {
                let known = rows.iter().position(|row| Some(&row.key) == newest.as_ref());
                (rows.first().map(|row| row.key.clone()), known.unwrap_or(0))
            });
            if new > 0 {
                self.size.update(|size| *size = if is_at_top() { STEP } else { *size + new });
            }
            now
        });
    }

    /// Draws more when its place comes near, or when it is pressed.
    pub(super) fn more(self, shown: Memo<Vec<Arc<Row>>>) -> AnyView {
        Effect::new(move |_| {
            let scrolling = window_event_listener_untyped("scroll", move |_| {
                let more = document().get_element_by_id(MORE);
                if more.is_some_and(|more| is_near(&more)) {
                    self.grow();
                }
            });
            on_cleanup(move || scrolling.remove());
        });
        let are_none_left = move || shown.with(Vec::len) <= self.size.get();
        view! {
            <button
                id=MORE
                type="button"
                class="button rows-more"
                hidden=are_none_left
                on:click=move |_| self.grow()
            >
                "Show more rows"
            </button>
        }
        .into_any()
    }
}

fn is_at_top() -> bool {
    window().scroll_y().is_ok_and(|y| y < 1.0)
}

fn is_near(element: &web_sys::Element) -> bool {
    let height = window().inner_height().ok().and_then(|height| height.as_f64());
    let place = element.get_bounding_client_rect();
    // What is hidden has no height.
    place.height() > 0.0 && place.top() < height.unwrap_or(0.0) + MARGIN
}
