//! Closes menus on Escape and when the focus leaves them, and moves through them with
//! arrow keys.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlDetailsElement, HtmlElement, KeyboardEvent};

use super::{all_within, closest, each, on, step, within};

const OPEN: &str = "details.menu[open]";

/// Acts on `details.menu`.
pub(super) fn start() {
    on("click", |_, target| close_others(target));
    on("focusin", |_, target| close_others(target));
    on("keydown", |event, target| {
        let (Some(event), Some(menu)) = (event.dyn_ref::<KeyboardEvent>(), closest(target, OPEN))
        else {
            return;
        };
        let opener = || within::<HtmlElement>(&menu, "summary");
        if event.key() == "Escape" {
            // Escape closes only the menu.
            event.prevent_default();
            let _ = menu.remove_attribute("open");
            if let Some(opener) = opener() {
                let _ = opener.focus();
            }
        // Fields use the arrow keys themselves.
        } else if closest(target, "input, select, textarea").is_none() {
            step(event, target, &all_within(&menu, ".menu-body :is(a, button)"), opener);
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
