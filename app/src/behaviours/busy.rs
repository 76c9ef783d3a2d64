//! A form that is being sent says so, and is not sent twice. A switch shows at once
//! what it leads to.

use std::time::Duration;

use leptos::prelude::{document, set_timeout, window_event_listener_untyped};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlButtonElement, SubmitEvent};

use super::{each, on};

/// `data-busy` on a submit button: what it says meanwhile; `data-becomes`: the word that
/// the state whose id is `data-state` has then.
pub(super) fn start() {
    on("submit", |event, _| {
        let button = event
            .dyn_ref::<SubmitEvent>()
            .and_then(SubmitEvent::submitter)
            .and_then(|button| button.dyn_into::<HtmlButtonElement>().ok());
        let Some(button) = button.filter(|_| !event.default_prevented()) else { return };
        let Some(busy) = button.get_attribute("data-busy") else { return };
        let label = button.text_content().unwrap_or_default();
        let _ = button.set_attribute("data-label", &label);
        button.set_text_content(Some(&busy));
        show(&button);
        // A button that is disabled at once would not be sent along.
        set_timeout(move || button.set_disabled(true), Duration::ZERO);
    });
    // Coming back to a page that the browser kept.
    let _forever = window_event_listener_untyped("pageshow", |_| again());
}

/// The page that answers has the state that is, and the reason if it is another.
fn show(button: &HtmlButtonElement) {
    let named = |name: &str| button.get_attribute(name);
    let state = named("data-state").and_then(|id| document().get_element_by_id(&id));
    if let (Some(state), Some(word)) = (state, named("data-becomes")) {
        let _ = state.set_attribute("data-was", &state.text_content().unwrap_or_default());
        let _ = state.set_attribute("aria-busy", "true");
        state.set_text_content(Some(&word));
    }
}

fn again() {
    each::<Element>("[data-was]", |state| {
        state.set_text_content(state.get_attribute("data-was").as_deref());
        let _ = state.remove_attribute("data-was");
        let _ = state.remove_attribute("aria-busy");
    });
    each::<HtmlButtonElement>("button[data-label]", |button| {
        button.set_text_content(button.get_attribute("data-label").as_deref());
        let _ = button.remove_attribute("data-label");
        button.set_disabled(false);
    });
}
