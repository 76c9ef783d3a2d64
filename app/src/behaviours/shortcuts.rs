//! Single-key shortcuts for all pages: `?` lists them, `g` and a letter opens a page.
//! Other shortcuts are in the modules that handle them: `u` in `times`, those of the
//! events page in its list.

use std::cell::Cell;

use leptos::prelude::document;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{HtmlDialogElement, HtmlElement, KeyboardEvent};

use super::{each, on, palette};
use crate::ui::keyboard::is_free;

/// Longest pause between `g` and the letter, in milliseconds.
const PATIENCE: f64 = 1500.0;

/// `data-go` on links is the letter of the link. `#keys` is the list of shortcuts.
pub(super) fn start() {
    let began = Cell::new(None::<f64>);
    on("keydown", move |event, target| {
        let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
        let key = event.key();
        // Modifier keys can be pressed between the two.
        if key.chars().count() != 1 {
            return;
        }
        let now = event.time_stamp();
        let follows = began.take().is_some_and(|began| now - began < PATIENCE);
        let in_dialog = palette::exists("dialog[open]") || palette::exists(palette::OPEN);
        if in_dialog || !is_free(event, target, &key) {
            return;
        }
        if follows {
            go(&key, event);
        } else if key == "g" {
            began.set(Some(now));
        } else if key == "?" && list() {
            event.prevent_default();
        }
    });
}

/// Follows the first link with the letter.
fn go(letter: &str, event: &KeyboardEvent) {
    let found = Cell::new(None::<HtmlElement>);
    each::<HtmlElement>("a[data-go]", |link| {
        let known = found.take();
        let fits = link.get_attribute("data-go").as_deref() == Some(letter);
        found.set(known.or_else(|| fits.then(|| link.clone())));
    });
    if let Some(link) = found.into_inner() {
        event.prevent_default();
        link.click();
    }
}

fn list() -> bool {
    let list = document().get_element_by_id("keys");
    let list = list.and_then(|list| list.dyn_into::<HtmlDialogElement>().ok());
    list.is_some_and(|list| list.show_modal().is_ok())
}
