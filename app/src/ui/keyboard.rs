//! Single-key shortcuts. They are ignored in fields, with a modifier key, and if the user
//! has turned them off.

use std::rc::Rc;

use leptos::ev;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlElement, KeyboardEvent};

/// Attribute of the page if the user has turned single keys off.
const SWITCHED: &str = "data-shortcuts";

/// Calls `act` when the key is pressed and nothing else handles it. `act` returns whether
/// it did something. Otherwise the browser handles the key, for example to close a menu.
/// Call this within a component.
pub(crate) fn on_key(key: &'static str, act: impl Fn() -> bool + 'static) {
    listen(key, Rc::new(act));
}

/// Without the type of the function, so that it is compiled once.
fn listen(key: &'static str, act: Rc<dyn Fn() -> bool>) {
    // Runs in the browser only.
    Effect::new(move |_| {
        let act = Rc::clone(&act);
        let listening = window_event_listener(ev::keydown, move |event| {
            let target = event.target().and_then(|target| target.dyn_into::<Element>().ok());
            if target.is_some_and(|target| is_free(&event, &target, key)) && act() {
                event.prevent_default();
            }
        });
        on_cleanup(move || listening.remove());
    });
}

/// Whether this key was pressed without a modifier, and nothing else handles it.
pub(crate) fn is_free(event: &KeyboardEvent, target: &Element, key: &str) -> bool {
    let modified = event.ctrl_key() || event.meta_key() || event.alt_key();
    let is_off = is_character(key) && are_off();
    event.key() == key
        && !modified
        && !is_off
        && !event.default_prevented()
        && !takes_key(target, key)
}

/// Characters can be turned off, because speech recognition can press them by mistake.
fn is_character(key: &str) -> bool {
    key != " " && key.chars().count() == 1
}

fn are_off() -> bool {
    document().document_element().is_some_and(|page| page.has_attribute(SWITCHED))
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
