//! The rest of a long list, which the browser draws after it has painted the first part of the
//! page.

use leptos::prelude::*;

/// Draws the rest of a list of a page that a link leads to after the page was painted, else with
/// the page.
pub(crate) fn rest(draw: impl FnOnce() -> AnyView + Send + 'static) -> AnyView {
    #[cfg(feature = "ssr")]
    return draw();
    #[cfg(not(feature = "ssr"))]
    erased(Box::new(draw))
}

#[cfg(not(feature = "ssr"))]
fn erased(draw: Box<dyn FnOnce() -> AnyView + Send>) -> AnyView {
    use crate::client::navigation::is_arriving;
    use crate::client::paint::later;

    let is_due = RwSignal::new(!is_arriving());
    if !is_due.get_untracked() {
        later(move || {
            // The page can be gone.
            let _ = is_due.try_set(true);
        });
    }
    let mut draw = Some(draw);
    let rest = move || {
        let draw = if is_due.get() { draw.take() } else { None };
        draw.map_or_else(|| ().into_any(), untrack)
    };
    rest.into_any()
}
