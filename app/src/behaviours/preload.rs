//! Loads the code of a page while the user is about to follow a link to it, and also its data
//! when the link is pressed.

use leptos::prelude::window;
use leptos::task::spawn_local;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, MouseEvent};

use super::{closest, on};
use crate::areas;

/// Acts on links of the app.
pub(super) fn start() {
    for event in ["pointerover", "focusin"] {
        on(event, |_, target| {
            if let Some(path) = path_of_link(target) {
                // A failure shows when the page is opened.
                spawn_local(async move { _ = areas::preload(&path).await });
            }
        });
    }
    on("pointerdown", |event, target| {
        let opens_here = event.dyn_ref::<MouseEvent>().is_some_and(|event| {
            let modified = event.ctrl_key() || event.meta_key() || event.shift_key();
            event.button() == 0 && !modified
        });
        // Links of a page to itself, such as the rows of events, need not load all its data.
        let is_other = |path: &String| {
            let here = window().location().pathname().unwrap_or_default();
            path.split(['?', '#']).next() != Some(here.as_str())
        };
        if opens_here && let Some(path) = path_of_link(target).filter(is_other) {
            spawn_local(async move { areas::preload_with_data(&path).await });
        }
    });
}

fn path_of_link(target: &Element) -> Option<String> {
    closest(target, "a[href^='/']:not([rel=external], [download], [target])")?.get_attribute("href")
}
