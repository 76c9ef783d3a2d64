//! Menus close on Escape, and when something else is used.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlDetailsElement, HtmlElement, KeyboardEvent};

use super::{closest, each, on, within};

const OPEN: &str = "details.menu[open]";

/// `details.menu`.
pub(super) fn start() {
    on("click", |_, target| close_others(target));
    on("focusin", |_, target| close_others(target));
    on("keydown", |event, target| {
        let escape = event.dyn_ref::<KeyboardEvent>().is_some_and(|event| event.key() == "Escape");
        if let Some(menu) = closest(target, OPEN).filter(|_| escape) {
            // It closes the menu and nothing else.
            event.prevent_default();
            let _ = menu.remove_attribute("open");
            if let Some(summary) = within::<HtmlElement>(&menu, "summary") {
                let _ = summary.focus();
            }
        }
    });
}

fn close_others(used: &Element) {
    each::<HtmlDetailsElement>(OPEN, |menu| {
        if !menu.contains(Some(used)) {
            menu.set_open(false);
        }
    });
}
