//! Closes menus on Escape and when the focus leaves them, and moves through them with
//! arrow keys.

use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlDetailsElement, HtmlElement, KeyboardEvent};

use super::{all_within, closest, each, on, step, within};

const OPEN: &str = "details.menu[open]";

/// Acts on `details.menu`.
pub(super) fn start() {
    on("click", |_, target| {
        // A dialog returns the focus to what had it when it opened. A closed menu has no
        // button, so that is its opener.
        if closest(target, "[popovertarget]").is_some()
            && let Some(menu) = closest(target, OPEN)
        {
            close(&menu);
        }
        close_others(target);
    });
    on("focusin", |_, target| close_others(target));
    on("keydown", |event, target| {
        let (Some(event), Some(menu)) = (event.dyn_ref::<KeyboardEvent>(), closest(target, OPEN))
        else {
            return;
        };
        if event.key() == "Escape" {
            // Escape closes only the menu.
            event.prevent_default();
            close(&menu);
        // Fields use the arrow keys themselves.
        } else if closest(target, "input, select, textarea").is_none() {
            step(event, target, &all_within(&menu, ".menu-body :is(a, button)"), || opener(&menu));
        }
    });
}

fn opener(menu: &Element) -> Option<HtmlElement> {
    within(menu, "summary")
}

/// Closes a menu and focuses its opener.
fn close(menu: &Element) {
    if let Some(opener) = opener(menu) {
        let _ = opener.focus();
    }
    let _ = menu.remove_attribute("open");
}

fn close_others(used: &Element) {
    each::<HtmlDetailsElement>(OPEN, |menu| {
        if !menu.contains(Some(used)) {
            menu.set_open(false);
        }
    });
}
