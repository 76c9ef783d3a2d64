//! Loads the code of a page while the user is about to follow a link to it.

use super::{closest, on};
use crate::areas;

/// Acts on links of the app.
pub(super) fn start() {
    for event in ["pointerover", "focusin", "touchstart"] {
        on(event, |_, target| {
            let link = closest(target, "a[href^='/']");
            if let Some(path) = link.and_then(|link| link.get_attribute("href")) {
                areas::preload(&path);
            }
        });
    }
}
