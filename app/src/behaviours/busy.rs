//! A form that is being sent says so, and is not sent twice.

use std::time::Duration;

use leptos::prelude::{set_timeout, window_event_listener_untyped};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{HtmlButtonElement, SubmitEvent};

use super::{each, on};

/// `data-busy` on a submit button: what it says meanwhile.
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
        // A button that is disabled at once would not be sent along.
        set_timeout(move || button.set_disabled(true), Duration::ZERO);
    });
    // Coming back to a page that the browser kept.
    let _forever = window_event_listener_untyped("pageshow", |_| again());
}

fn again() {
    each::<HtmlButtonElement>("button[data-label]", |button| {
        button.set_text_content(button.get_attribute("data-label").as_deref());
        let _ = button.remove_attribute("data-label");
        button.set_disabled(false);
    });
}
