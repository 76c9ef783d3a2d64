//! Single keys as shortcuts. Ignored in fields, and with a modifier.

use leptos::ev;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement};

/// Calls `act` whenever the key is pressed outside of fields and, for the
/// space bar, outside of anything that the space bar operates.
pub(crate) fn on_key(key: &'static str, act: impl Fn() + Clone + 'static) {
    // Runs in the browser only.
    Effect::new(move |_| {
        let act = act.clone();
        let listening = window_event_listener(ev::keydown, move |event| {
            let modified = event.ctrl_key() || event.meta_key() || event.alt_key();
            if event.key() != key || modified || event.default_prevented() {
                return;
            }
            let target = event.target().and_then(|t| t.dyn_into::<Element>().ok());
            if target.is_some_and(|element| takes_key(&element, key)) {
                return;
            }
            event.prevent_default();
            act();
        });
        on_cleanup(move || listening.remove());
    });
}

fn takes_key(element: &Element, key: &str) -> bool {
    let editable = element.dyn_ref::<HtmlElement>().is_some_and(HtmlElement::is_content_editable);
    editable
        || match element.tag_name().as_str() {
            "TEXTAREA" | "SELECT" | "INPUT" => true,
            "BUTTON" | "SUMMARY" => key == " ",
            _ => false,
        }
}
