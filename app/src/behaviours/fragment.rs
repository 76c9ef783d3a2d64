//! Leaves links within the page to the browser, which moves the focus to their target. The
//! router would only scroll.

use super::{closest, on};

/// Acts on links that are a fragment. Start this after all other behaviours: they do not see
/// the click.
pub(super) fn start() {
    on("click", |event, target| {
        if closest(target, "a[href^='#']").is_some() {
            event.stop_immediate_propagation();
        }
    });
}
