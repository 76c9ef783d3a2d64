//! Shows that a form is being sent, and prevents a second submission. A switch shows its
//! new state immediately.

use std::time::Duration;

use leptos::prelude::{document, set_timeout, window_event_listener_untyped};
use leptos::wasm_bindgen::JsCast as _;
use web_sys::{Element, HtmlButtonElement, HtmlFormElement, SubmitEvent};

use super::{all_within, each, guard, on, write, written};

const BUSY: &str = "aria-busy";
const BUTTONS: &str = "button[type=submit]";

/// Acts on forms that change something, and on other forms whose button has `data-busy`.
/// `data-busy` is the label while the request runs. `data-becomes` is the new text of the
/// element whose id is `data-state`.
pub(super) fn start() {
    on("submit", |event, form| {
        let button = event.dyn_ref::<SubmitEvent>().and_then(SubmitEvent::submitter);
        let busy = button.as_ref().and_then(|button| button.get_attribute("data-busy"));
        let changes = form.dyn_ref::<HtmlFormElement>().is_some_and(|form| form.method() == "post");
        if event.default_prevented() || !changes && busy.is_none() {
            return;
        }
        if form.has_attribute(BUSY) {
            event.prevent_default();
            return;
        }
        let _ = form.set_attribute(BUSY, "true");
        if let Some(button) = button {
            if let Some(busy) = busy {
                let _ = button.set_attribute("data-label", &written(&button));
                write(&button, &busy);
            }
            show(&button);
        }
        let form = form.clone();
        // The browser does not send a button that is already disabled.
        set_timeout(move || disable(&form, true), Duration::ZERO);
    });
    // The browser can restore this page from its cache, with buttons still disabled.
    let _forever = window_event_listener_untyped("pageshow", |_| again());
}

fn disable(form: &Element, disabled: bool) {
    for button in all_within(form, BUTTONS) {
        if let Ok(button) = button.dyn_into::<HtmlButtonElement>() {
            button.set_disabled(disabled);
        }
    }
}

/// Shows the expected state. The page of the answer shows the actual state, and the
/// reason if the change failed.
fn show(button: &Element) {
    let named = |name: &str| button.get_attribute(name);
    let state = named("data-state").and_then(|id| document().get_element_by_id(&id));
    if let (Some(state), Some(word)) = (state, named("data-becomes")) {
        let _ = state.set_attribute("data-was", &written(&state));
        let _ = state.set_attribute(BUSY, "true");
        write(&state, &word);
    }
}

/// Removes what shows that forms are being sent.
pub(crate) fn again() {
    each::<Element>("[data-was]", |state| {
        write(state, &state.get_attribute("data-was").unwrap_or_default());
        let _ = state.remove_attribute("data-was");
        let _ = state.remove_attribute(BUSY);
    });
    each::<Element>("button[data-label]", |button| {
        write(button, &button.get_attribute("data-label").unwrap_or_default());
        let _ = button.remove_attribute("data-label");
    });
    each::<Element>("form[aria-busy]", |form| {
        let _ = form.remove_attribute(BUSY);
        disable(form, false);
    });
    guard::again();
}
